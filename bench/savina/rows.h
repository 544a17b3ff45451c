/* The rows of the Savina benches in domus, and the functions (stage_...) that all rows share.
 *
 * Most rows are one behaviour, the root of a round: the root gets the notice `go_type`, spawns the
 * actors of the row as its children, and ends with stage_result(). The root and all its children
 * are gone before the next round begins. A row that waits for time or for a foreign thread is a
 * function instead. */
#ifndef DOMUS_BENCH_SAVINA_ROWS_H
#define DOMUS_BENCH_SAVINA_ROWS_H

#include "bench/stage/stage.h"
#include "bench/support/histogram.h"

#include <stdint.h>

struct stage_row {
    const char *name;
    const domus_behaviour *root;

    /* Called by the main thread while the clock does not run; each may be NULL. `prepare` makes the
     * input of the root. `finish` returns the result of the round: `told` is the value that the
     * root gave to stage_result(), and `*messages` is changed if only the row knows it. */
    void (*prepare)(uint64_t size);
    uint64_t (*finish)(uint64_t told, uint64_t *messages);

    /* If this is set, it is called instead of the three above: it does the row, prints its figures
     * and returns the result. */
    uint64_t (*run)(domus_system *system, uint64_t size);
};

extern const struct stage_row row_pingpong, row_counting, row_fjthrput, row_fjcreate,
    row_threadring, row_chameneos, row_big, row_bndbuffer, row_banking, row_fib, row_skynet,
    row_quicksort, row_mailbox, row_wake, row_idle, row_fair;

/* A notice of this type tells a root to begin; the payload is the row's size, a uint64_t. */
extern const domus_type go_type;

/* Called by a root, as `return stage_result(...)`: the clock stops, and the root ends. */
int stage_result(domus_stack *stack, uint64_t result);

/* This is the on_stop of every root; the root's children are gone then. */
void stage_left(domus_stack *stack, void *self);

/* stage_spawn() spawns a child by the placement that is measured, stage_send() sends a notice. Both
 * end the process if they fail, which the bounds of the rows exclude. */
domus_address stage_spawn(domus_stack *stack, const domus_behaviour *behaviour, const void *state);
void stage_send(domus_stack *stack, domus_address to, const domus_type *type, const void *payload);

/* Returns the options of a spawn on the last thread; in a pool, those of a spawn there. */
domus_spawn_options stage_far(void);

/* Print the line `latency_ns` with the percentiles 50, 99 and 99.9. */
void stage_print_latencies(const struct histogram *latencies);

/* For rows without a root: spawn an actor on thread `thread`, or in the pool that is measured. */
domus_address stage_spawn_outside(domus_system *system, uint32_t thread,
                                  const domus_behaviour *behaviour, const void *state);

/* Draw a number by xorshift32, as all contenders do. */
static inline uint32_t stage_draw(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

#endif
