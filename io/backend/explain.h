/* Explains in one line why a ring could not be made, and how to change that. Called before
 * start. */
#ifndef DOMI_IO_BACKEND_EXPLAIN_H
#define DOMI_IO_BACKEND_EXPLAIN_H

#include <domus/config.h>

typedef enum domi_setup_step {
    /* step of the set-up that failed: memory of the library could not be allocated */
    DOMI_SETUP_MEMORY,
    DOMI_SETUP_RING, /* step of the set-up that failed: io_uring_setup(2) */
    /* step of the set-up that failed: the registration of the provided buffers */
    DOMI_SETUP_BUFFERS,
    DOMI_SETUP_EPOLL,  /* step of the set-up that failed: a call of the epoll backend */
    DOMI_SETUP_ENABLE, /* step of the set-up that failed: enabling the ring on its thread */
} domi_setup_step;

/* The facts about a ring's failed set-up and about the kernel, from which the line of explanation
 * is made; tests fill this structure by hand. */
typedef struct domi_setup_facts {
    int result;           /* negative errno of the call of the ring's set-up that has failed */
    domi_setup_step step; /* the step of the ring's set-up that has failed */
    /* value of the sysctl kernel.io_uring_disabled; -1: it cannot be read */
    int disabled;
    /* state of the filters of system calls (seccomp) of this process; 2: one is in force; -1: not
     * known */
    int seccomp;
    /* the limit RLIMIT_MEMLOCK of the process in bytes; UINT64_MAX: unlimited */
    uint64_t memlock_bytes;
    uint64_t needed_bytes; /* estimate of the bytes that one ring needs with this configuration */
    char kernel[64];       /* release of the running kernel, as `uname -r` prints it */
} domi_setup_facts;

/* Find out the facts about a ring that could not be set up, and write the line that explains it
 * into `error`. */
void domi_setup_explain_failure_of_ring(int result, domi_setup_step step,
                                        const domus_config *config, char *error, size_t error_size);

/* Write the line that explains these `facts` about a failed set-up into `error`. */
void domi_setup_write_explanation(const domi_setup_facts *facts, char *error, size_t error_size);

#endif
