/* The nesting of a thread's records. They come each behind those that lie within it, and are turned
 * into steps in the order of time, in which each thing begins before those that lie within it and
 * ends behind them.
 *
 * Readers of traces put steps of one time in the order in which they come, and one thing mostly
 * ends at the very time at which the next begins; so the order has to be right without the
 * times. */
#ifndef DOMI_RUNTIME_TRACE_NESTING_H
#define DOMI_RUNTIME_TRACE_NESTING_H

#include "runtime/trace/record.h"

typedef enum domi_nesting_step {
    DOMI_NESTING_BEGIN,
    DOMI_NESTING_END,
    /* step of a record that takes no time (one of the last depth): it happens at once */
    DOMI_NESTING_INSTANT,
} domi_nesting_step;

/* A function that is called for each step of a walk: `record` begins or ends at `at_ns`, which is
 * never before the time of an earlier step. */
typedef void domi_nesting_visit(void *context, domi_nesting_step step, uint64_t at_ns,
                                const domi_record *record);

/* Visit the steps of `count` records, which are in the order in which the thread has written them,
 * and of `open`, whose things begin and do not end (their kind is NONE where there is none). The
 * begins and ends are nested whatever the times say. It allocates nothing, and takes a time that is
 * proportional to `count`. */
void domi_nesting_walk_over_records(const domi_record *records, uint32_t count,
                                    const domi_record open[DOMI_RECORD_DEPTHS],
                                    domi_nesting_visit *visit, void *context);

#endif
