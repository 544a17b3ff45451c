/* Finds the end of a value that comes in pieces, without checking the value: a text ends at its
 * quote, an object or array where as many brackets are closed as were opened, and any other value
 * before a byte that stands between values. */
#ifndef DOMI_PROTOCOLS_JSON_SCAN_H
#define DOMI_PROTOCOLS_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct domi_json_scan {
    uint64_t depth; /* number of objects and arrays of the value that are open */
    bool in_text;
    bool is_escaped; /* the last byte was a backslash within a text, so the next one is escaped */
    bool has_begun;
} domi_json_scan;

/* Scan the bytes of a piece. Returns how many of them belong to the value. `ret_ended` is true if
 * the value ends with them, and false if it continues in the next piece. `scan` must be zeroed
 * before the first piece of a value. */
size_t domi_json_scan_piece_of_value(domi_json_scan *scan, const char *bytes, size_t size,
                                     bool *ret_ended);

static inline bool domi_json_is_space(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

#endif
