/* The first fault of a text or a struct, from where it is found until it is told to the user.
 *
 * The path is built from its inner end to its outer end, so of a path that is too long the inner
 * part is told. */
#ifndef DOMI_PROTOCOLS_JSON_FAULT_H
#define DOMI_PROTOCOLS_JSON_FAULT_H

#include <domus/json.h>

#include <stdarg.h>

#define DOMI_JSON_SHOWN_MAX 24u /* bytes of a stranger's text that an error's words may show */

typedef struct domi_json_fault {
    /* negative errno of the fault; 0: there is none, and the other members mean nothing */
    int error;
    uint32_t from; /* index in `path` at which the path begins */
    bool is_cut;   /* the outer part of the path did not fit into `path` */
    size_t offset;
    /* the path to the wrong value, without a zero byte at its end */
    char path[DOMUS_JSON_PATH_MAX];
    char words[DOMUS_JSON_WORDS_MAX + 1];
} domi_json_fault;

/* Record what is wrong with a text or struct, unless a fault was recorded before. */
void domi_json_fault_record(domi_json_fault *fault, int error, const char *format, va_list list)
    __attribute__((format(printf, 3, 0), cold));

/* Put the name of a field, or the index of an element, before the path of a fault. */
void domi_json_fault_put_name_before(domi_json_fault *fault, const char *name)
    __attribute__((cold));
void domi_json_fault_put_index_before(domi_json_fault *fault, uint64_t index) __attribute__((cold));

/* Fill in the user's error from a fault, without line and column. `ret_error` may be NULL. Returns
 * the errno of the fault. */
int domi_json_fault_fill_in_error(const domi_json_fault *fault, domus_json_error *ret_error)
    __attribute__((cold));

/* Add to the user's error the line and column of the fault, which is `offset` bytes into `text`. If
 * the line of `ret_error` is not 0, `text` begins at that line and column. */
void domi_json_fault_add_line_and_column(domus_json_error *ret_error, const char *text,
                                         size_t offset) __attribute__((cold));

/* Copy the part of a stranger's text that an error may show: at most DOMI_JSON_SHOWN_MAX bytes,
 * with "..." where it is cut, and '?' in place of all but letters, digits and signs of ASCII. */
const char *domi_json_copy_shown_part(const char *text, size_t size,
                                      char shown[DOMI_JSON_SHOWN_MAX + 4]) __attribute__((cold));

#endif
