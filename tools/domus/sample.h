/* A sample: the contents of a program's /profile at one moment. All counters only grow, so the
 * difference of two samples tells what happens now (rates.h). */
#ifndef DOMUS_TOOL_SAMPLE_H
#define DOMUS_TOOL_SAMPLE_H

#include "tools/domus/port.h"

#include <stdint.h>

/* threads, and so on, that are read, at most; the rest of a longer list is ignored */
#define THREADS_MAX    4096u
#define RUNNERS_MAX    4096u
#define BEHAVIOURS_MAX 16384u
#define NAME_SIZE      64u

/* The phases of a thread, in the order of `phase_names`. */
#define PHASES 7
enum { PHASE_SUBMIT, PHASE_SLEEP, PHASE_COMPLETIONS, PHASE_CHANNELS, PHASE_EVENTS, PHASE_STATE };
extern const char *const phase_names[PHASES];

/* Counters of a thread, which `counter_names` has by the port's names. MESSAGES is the sum of all
 * kinds. */
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
    char pool[NAME_SIZE]; /* name of the runner's pool, printable ASCII as all names here */
    uint64_t runner;
    uint64_t wall_ns, run_ns, search_ns, park_ns;
    uint64_t counts[COUNTERS]; /* counts of the runner, whose RUNS are turns */
} runner_sample;

/* A behaviour on all threads, or in one pool. */
typedef struct behaviour_sample {
    char name[NAME_SIZE];
    char pool[NAME_SIZE]; /* name of the pool; "": the behaviour is on threads */
    uint64_t runs, run_ns, messages, waits, wait_ns, failures;
    uint64_t alive, bytes; /* now */
} behaviour_sample;

typedef struct sample {
    /* time of the sample; by this machine's clock if the program does not tell its own */
    uint64_t taken_ns;
    uint64_t uptime_ns; /* ns since the program's start; 0: unknown */
    int64_t pid;        /* pid of the program; 0: unknown */
    char program[NAME_SIZE];
    char version[NAME_SIZE];
    char level[NAME_SIZE];
    uint32_t thread_count, runner_count, behaviour_count;
    thread_sample *threads;
    runner_sample *runners;
    behaviour_sample *behaviours;
    uint64_t used_bytes; /* bytes of memory that the program uses */
} sample;

/* Take a sample of a program, within `ms`. Returns whether that succeeded, and then sample_free()
 * must follow; otherwise `error` of the port is set. */
bool sample_take(port *from, long ms, sample *ret_sample);
void sample_free(sample *old);

/* Returns the time in ns of a clock that only grows. */
uint64_t sample_now_ns(void);

#endif
