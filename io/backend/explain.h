/* Why a ring could not be made, in one line that says what to do. Before start. */
#ifndef DOMI_IO_BACKEND_EXPLAIN_H
#define DOMI_IO_BACKEND_EXPLAIN_H

#include <domus/config.h>

typedef enum domi_setup_step {
    DOMI_SETUP_MEMORY,  /* our own memory */
    DOMI_SETUP_RING,    /* io_uring_setup */
    DOMI_SETUP_BUFFERS, /* registering the provided buffers */
    DOMI_SETUP_ENABLE,  /* enabling the ring on its thread */
} domi_setup_step;

/* What the kernel and its environment say; tests fill it by hand. */
typedef struct domi_setup_facts {
    int result; /* the negative errno */
    domi_setup_step step;
    int disabled; /* kernel.io_uring_disabled; -1: cannot be read */
    int seccomp;  /* prctl(PR_GET_SECCOMP) or Seccomp: of /proc/self/status; 2: filtered */
    uint64_t memlock_bytes; /* RLIMIT_MEMLOCK, UINT64_MAX: unlimited */
    uint64_t needed_bytes;  /* an estimate for one ring with this configuration */
    char kernel[64];        /* uname -r */
} domi_setup_facts;

/* Read the facts and write the line. */
void domi_setup_explain(int result, domi_setup_step step, const domus_config *config, char *error,
                        size_t error_size);

/* The line alone, from given facts. */
void domi_setup_text(const domi_setup_facts *facts, char *error, size_t error_size);

#endif
