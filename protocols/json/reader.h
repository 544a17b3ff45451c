/* The state of a read: a stack of the objects and arrays that are open, each with the place in the
 * struct that it fills, and the memory that the struct points to. The first frame is an array of
 * one element, which is the whole struct, so the begin needs no code of its own.
 *
 * The path of an error is made of the stack, so a text without an error pays nothing for paths. A
 * reader has few KiB, so it lies on the stack of its thread. */
#ifndef DOMI_PROTOCOLS_JSON_READER_H
#define DOMI_PROTOCOLS_JSON_READER_H

#include "protocols/json/fault.h"
#include "protocols/json/memory.h"
#include "protocols/json/parse.h"

#include <domus/json.h>

/* An object or an array that is open. */
typedef struct domi_json_frame {
    const domus_json_table *table; /* the table of an object; NULL: the frame is an array */
    /* row of the object's value that is being read, NULL: none is; or the row of the array */
    const domus_json_field *field;
    char *at;      /* the struct of the object, or the first element of the array */
    uint64_t seen; /* a bit for each row of the object that was found */
    /* row that is expected next in the object, or elements of the array that were read */
    uint32_t next;
    uint32_t room; /* elements of the array that `at` has room for */
} domi_json_frame;

struct domi_json_reader {
    /* the table of the whole struct; NULL: the text is only checked */
    const domus_json_table *table;
    void *value;
    const char *text; /* the text as it was given */
    size_t size;
    char *copy; /* the copy of `text`, which the parse changes */
    /* the text has an escape of a zero, or of a low surrogate that may be a lone one */
    bool has_odd_escape;

    domi_json_frame *top; /* the innermost frame */
    uint32_t depth_max;
    bool skips;          /* the current value is skipped and not stored */
    uint32_t skipped;    /* objects and arrays that are open within the skipped value */
    domus_json_raw *raw; /* where the text of the skipped value is stored; NULL: nowhere */
    size_t raw_from;

    domi_json_arena arena;
    bool may_own; /* the caller accepts memory that the struct owns */
    domi_json_fault fault;
    domus_json_field whole; /* the row of the first frame, which stands for the whole struct */
    domi_json_frame frames[DOMUS_JSON_DEPTH_MAX + 1];
};

/* Read `size` bytes by `reader`, whose members table, value, depth_max, arena and may_own are set.
 * Returns as domus_json_read(); after an error `fault` tells what is wrong, and the memory is
 * freed. `copy` has room for `size` bytes and the padding. */
int domi_json_read_text(domi_json_reader *reader, const char *text, size_t size, char *copy);

/* Read as domi_json_read_text() does, into a copy that this function makes. */
int domi_json_read_bytes(domi_json_reader *reader, const char *text, size_t size);

/* Refuse the text: record what is wrong at an offset. Returns false. */
bool domi_json_refuse(domi_json_reader *reader, size_t offset, int error, const char *format, ...)
    __attribute__((format(printf, 4, 5), cold));

/* Allocate memory that the struct will point to, or refuse the text. */
bool domi_json_take_for(domi_json_reader *reader, size_t offset, uint64_t size, void **ret_bytes);

/* Store a text or a number in a member, as the row of its field says. Both functions return false
 * after domi_json_refuse(). */
bool domi_json_store_text(domi_json_reader *reader, const domus_json_field *field, void *at,
                          const char *text, uint32_t size);
bool domi_json_store_number(domi_json_reader *reader, const domus_json_field *field, void *at,
                            char *text, uint32_t size);

/* Store a copy of the value that has `size` bytes at an offset of the given text. */
bool domi_json_store_raw(domi_json_reader *reader, const domus_json_field *field,
                         domus_json_raw *raw, size_t offset, size_t size);

/* Refuse a value whose kind is not that of its row. */
bool domi_json_refuse_kind(domi_json_reader *reader, const domus_json_field *field, bool is_element,
                           size_t offset);

/* Returns the greatest unsigned number of `size` (1, 2, 4 or 8) bytes. */
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
