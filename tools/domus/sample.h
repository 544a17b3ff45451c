/* A sample: the contents of a program's /profile at one moment. All counters only grow, so the
 * difference of two samples tells what happens now (rates.h). */
#ifndef DOMUS_TOOL_SAMPLE_H
#define DOMUS_TOOL_SAMPLE_H

#include "tools/domus/port.h"

#include <stdint.h>

/* most threads, runners and so on that are read; the rest of a longer list is ignored */
#define THREADS_MAX    4096u
#define RUNNERS_MAX    4096u
#define BEHAVIOURS_MAX 16384u
#define NAME_SIZE      64u

/* The phases of a thread, in the order of `phase_names`. */
#define PHASES 7
enum { PHASE_SUBMIT, PHASE_SLEEP, PHASE_COMPLETIONS, PHASE_CHANNELS, PHASE_EVENTS, PHASE_STATE };
extern const char *const phase_names[PHASES];

/* The counters of a thread; `counter_names` has the names by which the port shows them. MESSAGES is
 * the sum of all kinds of messages. */
typedef enum counter {
    COUNTER_MESSAGES,
    COUNTER_ITERATIONS,
    COUNTER_RUNS,
    COUNTER_PARKS,
    COUNTER_STEALS,
    COUNTER_STALLS,
    COUNTER_STALLED_NS,
    COUNTER_FAILURES,
    COUNTER_EXPIRIES,
    COUNTER_WAKEUPS,
    COUNTER_READS,
    COUNTER_RECEIVED,
    COUNTER_SENT,
    COUNTERS,
} counter;
extern const char *const counter_names[COUNTERS];

typedef struct thread_sample {
    uint64_t wall_ns;
    uint64_t phase_ns[PHASES];
    uint64_t counts[COUNTERS];
} thread_sample;

typedef struct runner_sample {
    /* name of the pool to which the runner belongs; printable ASCII as all names of a sample */
    char pool[NAME_SIZE];
    uint64_t runner;
    uint64_t wall_ns, run_ns, search_ns, park_ns;
    uint64_t counts[COUNTERS]; /* counts of the runner's events, of which RUNS are turns */
} runner_sample;

/* The figures of a behaviour on all threads, or in one pool. */
typedef struct behaviour_sample {
    char name[NAME_SIZE];
    /* name of the pool whose actors the behaviour has; "": the behaviour is on threads */
    char pool[NAME_SIZE];
    uint64_t runs, run_ns, messages, waits, wait_ns, failures;
    /* number of the behaviour's actors that are alive now, and bytes that they use */
    uint64_t alive, bytes;
} behaviour_sample;

typedef struct sample {
    /* time at which the sample was taken; by this machine's clock if the program does not tell its
     * own */
    uint64_t taken_ns;
    uint64_t uptime_ns; /* ns since the start of the sampled program; 0: unknown */
    int64_t pid;        /* pid of the sampled program; 0: unknown */
    char program[NAME_SIZE];
    char version[NAME_SIZE];
    char level[NAME_SIZE];
    uint32_t thread_count, runner_count, behaviour_count;
    thread_sample *threads;
    runner_sample *runners;
    behaviour_sample *behaviours;
    uint64_t used_bytes; /* bytes of memory that the sampled program uses */
} sample;

/* Take a sample of a program through its port, within `ms`. Returns whether that succeeded, and
 * then sample_free() must follow; otherwise `error` of the port is set. */
bool sample_request_from_port(port *from, long ms, sample *ret_sample);
void sample_free(sample *old);

/* Returns the time in ns of a clock that never goes back. */
uint64_t sample_get_clock_ns(void);

#endif
