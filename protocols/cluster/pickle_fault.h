/* The first fault of a message, with the path of the field that is wrong.
 *
 * The path is built while the functions return, from the field up to the message, so a message
 * without a fault pays nothing for it. */
#ifndef DOMI_PROTOCOLS_CLUSTER_PICKLE_FAULT_H
#define DOMI_PROTOCOLS_CLUSTER_PICKLE_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOMI_PICKLE_FAULT_PATH 256u /* bytes of a path; a longer one keeps its inner part */
#define DOMI_PICKLE_FAULT_WHAT 160u

typedef struct domi_pickle_fault {
    int error;     /* a negative errno; 0: there is no fault, and the other members mean nothing */
    uint32_t from; /* the offset in `path` at which the path begins */
    bool is_cut;   /* the outer part of the path did not fit */
    char path[DOMI_PICKLE_FAULT_PATH]; /* the path, without a zero at its end */
    char what[DOMI_PICKLE_FAULT_WHAT];
} domi_pickle_fault;

/* Record a fault, unless there is one already. Returns the first error. */
int domi_pickle_fault_say(domi_pickle_fault *fault, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Put the name of a field, or the index of an element, before the path. Returns the error. */
int domi_pickle_fault_name(domi_pickle_fault *fault, const char *name) __attribute__((cold));
int domi_pickle_fault_element(domi_pickle_fault *fault, uint64_t index) __attribute__((cold));

/* Write the fault of a message with the type's `name` as text for the user, whose buffer may be
 * NULL if its size is 0. Returns the error. */
int domi_pickle_fault_tell(const domi_pickle_fault *fault, const char *name, char *error,
                           size_t error_size) __attribute__((cold));

#endif
