/* The rows of the Savina benches in domus, and the functions (stage_...) that all rows share.
 *
 * Most rows are one behaviour, the root of a round: the root gets the notice `go_type`, spawns the
 * actors of the row as its children, and ends with stage_end_root_with_result(). The root and all
 * its children have ended before the next round begins. A row that waits for time or for a foreign
 * thread is a function instead. */
#ifndef DOMUS_BENCH_SAVINA_ROWS_H
#define DOMUS_BENCH_SAVINA_ROWS_H

#include "bench/stage/stage.h"
#include "bench/support/histogram.h"

#include <stdint.h>

struct stage_row {
    const char *name;
    const domus_behaviour *root;

    /* The main thread calls these functions while the clock does not run; each may be NULL.
     * `prepare` makes the input of the root. `finish` returns the result of the round: `told` is
     * the value that the root gave to stage_end_root_with_result(); a row that alone knows the
     * number of messages sets `*messages`. */
    void (*prepare)(uint64_t size);
    uint64_t (*finish)(uint64_t told, uint64_t *messages);

    /* The whole row as a function, called instead of the three members above if it is not NULL: it
     * does the row, prints the figures and returns the result. */
    uint64_t (*run)(domus_system *system, uint64_t size);
};

extern const struct stage_row row_pingpong, row_counting, row_fjthrput, row_fjcreate,
    row_threadring, row_chameneos, row_big, row_bndbuffer, row_banking, row_fib, row_skynet,
    row_quicksort, row_mailbox, row_wake, row_idle, row_fair;

/* A notice of this type tells a root to begin; the payload is the row's size, a uint64_t. */
extern const domus_type go_type;

/* Stop the clock of the round and end the calling root, which calls this as `return
 * stage_end_root_with_result(...)`. */
int stage_end_root_with_result(domus_stack *stack, uint64_t result);

/* The on_stop of every root. The root's children have ended when this is called. */
void stage_on_stop_of_root(domus_stack *stack, void *self);

/* stage_spawn_child_of_root() spawns a child of a root by the placement that is measured,
 * stage_send_notice() sends a notice. Both end the process if they fail, which cannot happen within
 * the bounds of the rows. */
domus_address stage_spawn_child_of_root(domus_stack *stack, const domus_behaviour *behaviour,
                                        const void *state);
void stage_send_notice(domus_stack *stack, domus_address to, const domus_type *type,
                       const void *payload);

/* Returns the options by which an actor is spawned on the last thread, or in the pool that is
 * measured. */
domus_spawn_options stage_options_for_far_spawn(void);

/* Print the line `latency_ns` with the percentiles 50, 99 and 99.9 of these latencies. */
void stage_print_latencies(const struct histogram *latencies);

/* Spawn an actor on thread `thread`, or in the pool that is measured; for rows that have no
 * root. */
domus_address stage_spawn_without_root(domus_system *system, uint32_t thread,
                                       const domus_behaviour *behaviour, const void *state);

/* Draw a random number by xorshift32, as all contenders do. */
static inline uint32_t stage_draw_random_number(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

#endif
