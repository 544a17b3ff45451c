/* The first thing that is wrong with a text or a struct, while it is found and told.
 *
 * The path is put together from the inner end to the outer one, so that of a path which is too long
 * the inner part is told. */
#ifndef DOMI_PROTOCOLS_JSON_FAULT_H
#define DOMI_PROTOCOLS_JSON_FAULT_H

#include <domus/json.h>

#include <stdarg.h>

#define DOMI_JSON_SHOWN_MAX 24u /* bytes of a stranger's text that an error shows */

typedef struct domi_json_fault {
    int error;     /* 0: nothing is wrong, and the other members mean nothing */
    uint32_t from; /* where in `path` the path begins */
    bool is_cut;   /* the outer part did not fit */
    size_t offset;
    char path[DOMUS_JSON_PATH_MAX]; /* without a zero */
    char words[DOMUS_JSON_WORDS_MAX + 1];
} domi_json_fault;

/* Say what is wrong, unless something is already. */
void domi_json_fault_say(domi_json_fault *fault, int error, const char *format, va_list list)
    __attribute__((format(printf, 3, 0), cold));

/* Put the name of a field, or the index of an element, before the path. */
void domi_json_fault_name(domi_json_fault *fault, const char *name) __attribute__((cold));
void domi_json_fault_element(domi_json_fault *fault, uint64_t index) __attribute__((cold));

/* Write the fault for the user, without a place. `ret_error` may be NULL. Returns the errno. */
int domi_json_fault_tell(const domi_json_fault *fault, domus_json_error *ret_error)
    __attribute__((cold));

/* Add the place: `offset` bytes into `text`, which itself begins at the place that `ret_error` has,
 * if its line is not 0. */
void domi_json_fault_place(domus_json_error *ret_error, const char *text, size_t offset)
    __attribute__((cold));

/* Copy what an error may show of a stranger's text: at most DOMI_JSON_SHOWN_MAX bytes, with '?' for
 * all that is no letter, digit or sign of ASCII, and "..." where it is cut. */
const char *domi_json_shown(const char *text, size_t size, char shown[DOMI_JSON_SHOWN_MAX + 4])
    __attribute__((cold));

#endif
