/* These functions explain in one line why a ring could not be made, and what to do. Called
 * before start. */
#ifndef DOMI_IO_BACKEND_EXPLAIN_H
#define DOMI_IO_BACKEND_EXPLAIN_H

#include <domus/config.h>

typedef enum domi_setup_step {
    DOMI_SETUP_MEMORY,  /* memory of the library */
    DOMI_SETUP_RING,    /* io_uring_setup */
    DOMI_SETUP_BUFFERS, /* registering the provided buffers */
    DOMI_SETUP_EPOLL,   /* a call of the epoll backend */
    DOMI_SETUP_ENABLE,  /* enabling the ring on its thread */
} domi_setup_step;

/* Facts about the kernel and the environment, from which the line is made; tests fill
 * this in by hand. */
typedef struct domi_setup_facts {
    int result;             /* the negative errno */
    domi_setup_step step;   /* the call that has failed */
    int disabled;           /* the sysctl kernel.io_uring_disabled; -1: cannot be read */
    int seccomp;            /* 2: a filter of system calls is in force; -1: not known */
    uint64_t memlock_bytes; /* RLIMIT_MEMLOCK; UINT64_MAX: unlimited */
    uint64_t needed_bytes;  /* an estimate of what one ring needs with this configuration */
    char kernel[64];        /* uname -r */
} domi_setup_facts;

/* Read the facts from the system and write the line into `error`. */
void domi_setup_explain(int result, domi_setup_step step, const domus_config *config, char *error,
                        size_t error_size);

/* Write the line that follows from `facts`. */
void domi_setup_write_line(const domi_setup_facts *facts, char *error, size_t error_size);

#endif
