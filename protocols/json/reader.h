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

/* An object or array of the text that is open while it is read. */
typedef struct domi_json_frame {
    const domus_json_table *table; /* the table of the object; NULL: this frame is an array */
    /* for an object, the row whose value is being read, or NULL; for an array, its row */
    const domus_json_field *field;
    char *at;      /* for an object, its struct; for an array, its first element */
    uint64_t seen; /* for an object, a bit for each row whose key was found */
    /* for an object, the row that is expected next; for an array, the number of elements read */
    uint32_t next;
    uint32_t room; /* for an array, the number of elements for which `at` has room */
} domi_json_frame;

struct domi_json_reader {
    /* the table of the whole struct; NULL: the text is only checked and not stored */
    const domus_json_table *table;
    void *value;
    const char *text; /* the text as the caller gave it */
    size_t size;
    char *copy; /* a copy of `text`, which the parse changes */
    /* the text has an escape of a zero byte, or of a low surrogate that may have no high one */
    bool has_odd_escape;

    domi_json_frame *top; /* the frame of the innermost object or array that is open */
    uint32_t depth_max;
    bool skips;          /* the current value is being skipped, and is not stored */
    uint32_t skipped;    /* number of objects and arrays that are open within the skipped value */
    domus_json_raw *raw; /* where the text of the skipped value is to be stored; NULL: nowhere */
    size_t raw_from;

    domi_json_arena arena;
    bool may_own; /* the caller allows that the struct points to memory that it owns */
    domi_json_fault fault;
    domus_json_field whole; /* the row of the first frame, whose only value is the whole struct */
    domi_json_frame frames[DOMUS_JSON_DEPTH_MAX + 1];
};

/* Read `size` bytes by a reader, of which the caller has set table, value, depth_max, arena and
 * may_own. Returns as domus_json_read(); after an error `fault` tells what is wrong, and the memory
 * is freed. `copy` has room for `size` bytes and the padding. */
int domi_json_parse_text_in_given_copy(domi_json_reader *reader, const char *text, size_t size,
                                       char *copy);

/* Read a text as domi_json_parse_text_in_given_copy() does, into a copy that this function makes.
 */
int domi_json_parse_text_in_own_copy(domi_json_reader *reader, const char *text, size_t size);

/* Refuse the text: record what is wrong at an offset, with the path of the open frames. Returns
 * false. */
bool domi_json_refuse_text(domi_json_reader *reader, size_t offset, int error, const char *format,
                           ...) __attribute__((format(printf, 4, 5), cold));

/* Allocate memory that the struct will point to. Returns false after refusing the text if this
 * fails. */
bool domi_json_take_memory_of_struct(domi_json_reader *reader, size_t offset, uint64_t size,
                                     void **ret_bytes);

/* Store a text or a number in a member of the struct, as the row of its field says. Both functions
 * return false after domi_json_refuse_text(). */
bool domi_json_store_text(domi_json_reader *reader, const domus_json_field *field, void *at,
                          const char *text, uint32_t size);
bool domi_json_store_number(domi_json_reader *reader, const domus_json_field *field, void *at,
                            char *text, uint32_t size);

/* Store a copy of the value that has `size` bytes at `offset` in the given text. Returns false
 * after refusing the text. */
bool domi_json_store_value_as_raw_text(domi_json_reader *reader, const domus_json_field *field,
                                       domus_json_raw *raw, size_t offset, size_t size);

/* Refuse a value whose kind is not the one that its row demands. Returns false. */
bool domi_json_refuse_kind_of_value(domi_json_reader *reader, const domus_json_field *field,
                                    bool is_element, size_t offset);

/* Returns the greatest unsigned number that fits into `size` (1, 2, 4 or 8) bytes. */
static inline uint64_t domi_json_greatest_unsigned_of_size(uint32_t size)
{
    return UINT64_MAX >> (64 - 8 * size);
}

static inline void domi_json_store_unsigned_of_size(void *at, uint32_t size, uint64_t bits)
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

static inline uint64_t domi_json_load_unsigned_of_size(const void *at, uint32_t size)
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

/* Returns the offset in the document of a text that points into the reader's copy of it. */
static inline size_t domi_json_offset_of_text(const domi_json_reader *reader, const char *text)
{
    return (size_t)(text - reader->copy);
}

#endif
