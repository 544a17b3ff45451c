/* How many threads this machine can have beside all that run already.
 *
 * A program that makes threads until no more can be made leaves none to others: no shell could
 * start to end it. So a bench asks here first. */
#ifndef DOMUS_BENCH_THREAD_LIMITS_H
#define DOMUS_BENCH_THREAD_LIMITS_H

#include <stdint.h>

#define THREAD_LIMIT_NONE UINT64_MAX

/* The limits of the number of threads, and how much of them is used. THREAD_LIMIT_NONE: there is no
 * such limit, or it cannot be read. */
struct thread_limits {
    uint64_t user;   /* `ulimit -u`: threads that the user may have */
    uint64_t system; /* the smaller one of kernel.threads-max and kernel.pid_max */
    uint64_t group;  /* pids.max of the control group of this process */
    uint64_t maps;   /* vm.max_map_count: memory mappings that one process may have */
    uint64_t used;   /* number of threads of all users that run now; 0 if it cannot be read */
};

void thread_limits_read(struct thread_limits *ret_limits);

/* Returns how many threads one process may make under these limits, at most `most`: an eighth of
 * each limit of threads is left to others, and each thread takes two memory mappings, its stack and
 * the guard page of that. */
uint64_t thread_limits_count_startable_threads(const struct thread_limits *limits, uint64_t most);

#endif
