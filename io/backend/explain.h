/* Explains in one line why a ring could not be made, and how to change that. Called before
 * start. */
#ifndef DOMI_IO_BACKEND_EXPLAIN_H
#define DOMI_IO_BACKEND_EXPLAIN_H

#include <domus/config.h>

typedef enum domi_setup_step {
    DOMI_SETUP_MEMORY,  /* memory of the library could not be allocated */
    DOMI_SETUP_RING,    /* io_uring_setup(2) has failed */
    DOMI_SETUP_BUFFERS, /* the registration of the provided buffers has failed */
    DOMI_SETUP_EPOLL,   /* a call of the epoll backend has failed */
    DOMI_SETUP_ENABLE,  /* the ring could not be enabled on its thread */
} domi_setup_step;

/* Facts about the kernel and the environment, from which the line is made; tests fill this
 * structure by hand. */
typedef struct domi_setup_facts {
    int result;           /* negative errno of the failed call */
    domi_setup_step step; /* the call that has failed */
    /* value of the sysctl kernel.io_uring_disabled; -1: it cannot be read */
    int disabled;
    /* state of the filters of system calls; 2: one is in force; -1: not known */
    int seccomp;
    uint64_t memlock_bytes; /* limit RLIMIT_MEMLOCK in bytes; UINT64_MAX: unlimited */
    uint64_t needed_bytes;  /* estimate of the bytes that one ring needs with this configuration */
    char kernel[64];        /* release of the kernel, as `uname -r` prints it */
} domi_setup_facts;

/* Read the facts from the system and write the line into `error`. */
void domi_setup_explain(int result, domi_setup_step step, const domus_config *config, char *error,
                        size_t error_size);

/* Write the line that `facts` lead to into `error`. */
void domi_setup_write_line(const domi_setup_facts *facts, char *error, size_t error_size);

#endif
