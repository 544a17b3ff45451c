/* The times of a runner: how long it lives, searches and sleeps; the rest is work.
 *
 * No turn reads a clock for this. A runner that has found no job reads the time and its CPU clock
 * before it waits, and once more when it goes on: the CPU time between the two is search, the rest
 * was sleep. */
#ifndef DOMI_RUNTIME_POOLS_SPAN_H
#define DOMI_RUNTIME_POOLS_SPAN_H

#include "runtime/policies/pool.h"

/* The runner's life begins, and ends. */
void domi_span_begin(domus_runner *runner);
void domi_span_end(domus_runner *runner);

/* The runner begins to wait, and goes on. */
void domi_span_wait(domus_runner *runner);
void domi_span_go_on(domus_runner *runner);

typedef struct domi_spans {
    uint64_t lived_ns, search_ns, park_ns;
} domi_spans;

/* Read the times up to now. Any thread. */
domi_spans domi_span_read(const domus_runner *runner);

#endif
