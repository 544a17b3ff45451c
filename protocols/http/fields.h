/* Fields of messages, beyond the functions of domus/http.h, which find one field: comparing their
 * names, and walking through the lists in their values. Parts of slices own nothing. Any thread. */
#ifndef DOMI_PROTOCOLS_HTTP_FIELDS_H
#define DOMI_PROTOCOLS_HTTP_FIELDS_H

#include "protocols/http/chars.h"

#include <domus/http.h>

/* Returns the `size` bytes of a slice from `at` on, as a slice that owns nothing. */
static inline domus_slice domi_http_borrow_part_of_slice(domus_slice from, size_t at, size_t size)
{
    return (domus_slice){from.page, from.offset + (uint32_t)at, (uint32_t)size};
}

/* Returns whether a slice is the word, which is given in small letters, regardless of case. */
static inline bool domi_http_is_slice_word_in_any_case(domus_slice slice, const char *word)
{
    return domi_http_is_word_regardless_of_case(domus_slice_data(slice), slice.size, word);
}

/* Returns whether a slice is one of the words, behind the last of which stands NULL. */
bool domi_http_is_slice_any_word_of_list(domus_slice slice, const char *const *words);

/* A walk through the elements of the lists in all fields with one name, which must be in small
 * letters. `{.fields = fields, .name = name}` begins a walk. */
typedef struct domi_http_elements {
    domus_slice fields;
    const char *name;
    domus_slice list; /* value of the field in which the walk is now */
    uint32_t at;      /* offset in `fields` of the field that the walk looks at next */
    size_t in;        /* offset in `list` at which the next element begins */
} domi_http_elements;

/* Find the next element of a walk, which may be empty. Returns false when there is none. */
bool domi_http_next_element_of_fields(domi_http_elements *walk, const char **ret_element,
                                      size_t *ret_size);

/* Returns whether the lists in the fields with this name have the word, which is given in small
 * letters, regardless of case. */
bool domi_http_do_fields_list_word(domus_slice fields, const char *name, const char *word);

/* --- copies (add.c) --------------------------------------------------------------------------- */

/* Add a field of another message without changes. Returns as domus_http_add(). */
int domi_http_add_field_unchanged(domus_appender *fields, const domus_http_line *line);

/* Add the fields of another message as domus_http_add_end_to_end() does, except the fields for
 * whose name `is_left` returns true. Returns as domus_http_add_end_to_end(). */
int domi_http_add_end_to_end_fields_except(domus_appender *fields, domus_slice received,
                                           bool (*is_left)(domus_slice name));

#endif
