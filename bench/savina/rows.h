/* The rows of the Savina benches, as domus does them, and the stage they stand on.
 *
 * Most rows are one behaviour, the root of a round: it is told to go, spawns what the row needs as
 * its children, and ends with stage_result(). It and all its children are gone before the next
 * round begins. A row that waits for time or for a foreign thread is a function instead. */
#ifndef DOMUS_BENCH_SAVINA_ROWS_H
#define DOMUS_BENCH_SAVINA_ROWS_H

#include "bench/stage/stage.h"
#include "bench/support/histogram.h"

#include <stdint.h>

struct stage_row {
    const char *name;
    const domus_behaviour *root;

    /* Outside of the clock, by the main thread: what a root finds, and what its result is. `told`
     * is what it gave to stage_result(); *messages is changed where only the row can tell it. */
    void (*prepare)(uint64_t size);
    uint64_t (*finish)(uint64_t told, uint64_t *messages);

    /* Instead of all that: do the row, print its figures, return the result. */
    uint64_t (*run)(domus_system *system, uint64_t size);
};

extern const struct stage_row row_pingpong, row_counting, row_fjthrput, row_fjcreate,
    row_threadring, row_chameneos, row_big, row_bndbuffer, row_banking, row_fib, row_skynet,
    row_quicksort, row_mailbox, row_wake, row_idle, row_fair;

/* Tells a root to begin; the payload is the row's size, a uint64_t. */
extern const domus_type go_type;

/* From a root: the clock stops, and the root ends; `return stage_result(...)`. */
int stage_result(domus_stack *stack, uint64_t result);

/* The on_stop of every root: all is gone. */
void stage_left(domus_stack *stack, void *self);

/* Spawn a child where the placement that is measured says; send it a notice. Both end the process
 * when they fail, which no row's bounds allow. */
domus_address stage_spawn(domus_stack *stack, const domus_behaviour *behaviour, const void *state);
void stage_send(domus_stack *stack, domus_address to, const domus_type *type, const void *payload);

uint32_t stage_last_thread(void);

/* The line `latency_ns` with the percentiles 50, 99 and 99.9. */
void stage_print_latencies(const struct histogram *latencies);

/* For rows without a root: an actor on thread `thread`. */
domus_address stage_spawn_outside(domus_system *system, uint32_t thread,
                                  const domus_behaviour *behaviour, const void *state);

/* xorshift32: the numbers that all contenders draw. */
static inline uint32_t stage_draw(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

#endif
