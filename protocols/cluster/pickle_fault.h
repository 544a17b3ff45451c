/* The first fault of a message, with the path of the field that is wrong.
 *
 * The path is built while the functions return, from the field up to the message, so a message
 * without a fault pays nothing for it. */
#ifndef DOMI_PROTOCOLS_CLUSTER_PICKLE_FAULT_H
#define DOMI_PROTOCOLS_CLUSTER_PICKLE_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* bytes of a path to a wrong field, at most; of a longer path the outer part is left out */
#define DOMI_PICKLE_FAULT_PATH 256u
#define DOMI_PICKLE_FAULT_WHAT 160u

typedef struct domi_pickle_fault {
    /* a negative errno; 0: the message has no fault, and the other members mean nothing */
    int error;
    uint32_t from; /* the offset in `path` at which the path begins */
    bool is_cut;   /* the outer part of the path did not fit into `path` */
    /* the path to the wrong field, without a zero byte at its end */
    char path[DOMI_PICKLE_FAULT_PATH];
    char what[DOMI_PICKLE_FAULT_WHAT];
} domi_pickle_fault;

/* Record a fault of the message, unless it has one already. Returns the error of the first
 * fault. */
int domi_pickle_fault_record(domi_pickle_fault *fault, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Put the name of a field, or the index of an element, before the path of the fault. Returns the
 * fault's error. */
int domi_pickle_fault_put_field_name(domi_pickle_fault *fault, const char *name)
    __attribute__((cold));
int domi_pickle_fault_put_element_index(domi_pickle_fault *fault, uint64_t index)
    __attribute__((cold));

/* Write the fault of a message, whose type is called `name`, as a text for the user. The buffer
 * `error` may be NULL if its size is 0. Returns the fault's error. */
int domi_pickle_fault_write_as_text(const domi_pickle_fault *fault, const char *name, char *error,
                                    size_t error_size) __attribute__((cold));

#endif
