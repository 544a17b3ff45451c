/* The state of a read: a stack of the objects and arrays that are open, each with the place in the
 * struct that it fills, and the memory that the struct points to. The first frame is an array of
 * one element, the whole struct, so nothing has to treat the begin apart.
 *
 * The stack is the path, too, so an error tells where it is, and a text without an error pays
 * nothing for it. Nothing here is larger than a few KiB, so a reader lies on the stack of its
 * thread. */
#ifndef DOMI_PROTOCOLS_JSON_READER_H
#define DOMI_PROTOCOLS_JSON_READER_H

#include "protocols/json/fault.h"
#include "protocols/json/memory.h"
#include "protocols/json/parse.h"

#include <domus/json.h>

/* An object or an array that is open. */
typedef struct domi_json_frame {
    const domus_json_table *table; /* of an object; NULL: it is an array */
    const domus_json_field *field; /* of an object: whose value is read, NULL: none is; of an array:
                                      its row */
    char *at;                      /* the struct; the first element */
    uint64_t seen;                 /* of an object: a bit for each row that was there */
    uint32_t next; /* of an object: the row that is expected; of an array: elements read */
    uint32_t room; /* of an array: elements that `at` has room for */
} domi_json_frame;

struct domi_json_reader {
    const domus_json_table *table; /* of the whole; NULL: it is only looked at */
    void *value;
    const char *text; /* the text as it was given */
    size_t size;
    char *copy;          /* of `text`, which the parse changes */
    bool has_odd_escape; /* an escape in it may be a lone low surrogate, or is a zero */

    domi_json_frame *top; /* the innermost frame */
    uint32_t depth_max;
    bool skips;          /* the value that is read goes nowhere, */
    uint32_t skipped;    /* and so many objects and arrays within it are open */
    domus_json_raw *raw; /* but its text goes here; NULL: it does not */
    size_t raw_from;

    domi_json_arena arena;
    bool may_own; /* the caller takes memory */
    domi_json_fault fault;
    domus_json_field whole; /* the row of the first frame */
    domi_json_frame frames[DOMUS_JSON_DEPTH_MAX + 1];
};

/* Read `size` bytes by `reader`, of which table, value, depth_max, arena and may_own are set.
 * Returns as domus_json_read(); after an error `fault` says what is wrong, and the memory is
 * released. `copy` has room for `size` bytes and the padding. */
int domi_json_read_text(domi_json_reader *reader, const char *text, size_t size, char *copy);

/* Read as domi_json_read_text() does, with a copy that this function makes. */
int domi_json_read_bytes(domi_json_reader *reader, const char *text, size_t size);

/* Refuse what is read: say what is wrong at an offset. Returns false. */
bool domi_json_refuse(domi_json_reader *reader, size_t offset, int error, const char *format, ...)
    __attribute__((format(printf, 4, 5), cold));

/* Take memory for what the struct points to, or refuse. */
bool domi_json_take_for(domi_json_reader *reader, size_t offset, uint64_t size, void **ret_bytes);

/* Put a text or a number into a place, as the row of the place says. Both return false after
 * domi_json_refuse(). */
bool domi_json_store_text(domi_json_reader *reader, const domus_json_field *field, void *at,
                          const char *text, uint32_t size);
bool domi_json_store_number(domi_json_reader *reader, const domus_json_field *field, void *at,
                            char *text, uint32_t size);

/* Copy a value of `size` bytes at an offset of the given text. */
bool domi_json_store_raw(domi_json_reader *reader, const domus_json_field *field,
                         domus_json_raw *raw, size_t offset, size_t size);

/* Refuse a value of another kind than its row. */
bool domi_json_refuse_kind(domi_json_reader *reader, const domus_json_field *field, bool is_element,
                           size_t offset);

/* The greatest number of so many bytes, 1, 2, 4 or 8. */
static inline uint64_t domi_json_greatest(uint32_t size)
{
    return UINT64_MAX >> (64 - 8 * size);
}

static inline void domi_json_put_number(void *at, uint32_t size, uint64_t bits)
{
    uint8_t u8 = (uint8_t)bits;
    uint16_t u16 = (uint16_t)bits;
    uint32_t u32 = (uint32_t)bits;

    if (size == sizeof bits)
        __builtin_memcpy(at, &bits, sizeof bits);
    else if (size == sizeof u32)
        __builtin_memcpy(at, &u32, sizeof u32);
    else if (size == sizeof u16)
        __builtin_memcpy(at, &u16, sizeof u16);
    else
        __builtin_memcpy(at, &u8, sizeof u8);
}

static inline uint64_t domi_json_get_number(const void *at, uint32_t size)
{
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;

    if (size == sizeof u64) {
        __builtin_memcpy(&u64, at, sizeof u64);
        return u64;
    }
    if (size == sizeof u32) {
        __builtin_memcpy(&u32, at, sizeof u32);
        return u32;
    }
    if (size == sizeof u16) {
        __builtin_memcpy(&u16, at, sizeof u16);
        return u16;
    }
    __builtin_memcpy(&u8, at, sizeof u8);
    return u8;
}

#endif
