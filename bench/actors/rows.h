/* The rows of the actor benches in domus, and the functions (stage_...) that all rows share.
 *
 * A row gets a system that runs, spawns what it needs and sets it going. A handler then
 * begins and ends the measured work, while the main thread waits; then it prints. Each row
 * checks its own result. */
#ifndef DOMUS_BENCH_ACTORS_ROWS_H
#define DOMUS_BENCH_ACTORS_ROWS_H

#include "bench/actors/ring_numbers.h"
#include "bench/stage/stage.h"

#include <stdint.h>

/* Numbers of the rows' work, which the programs in bench/peers/ must have, too. */
#define FAN_OUT_TARGETS 10000u
#define SPAWN_BATCH     1000u
#define TIMER_SPREAD_MS 100u
#define CANCEL_AFTER_MS 10000u
#define RING_BATCH      1024u

/* A notice of this type tells an actor to begin the work of its row. Actors also send it to
 * themselves to go on. */
extern const domus_type go_type;

void row_run_asks_one_by_one(domus_system *system, uint64_t asks);
void row_run_asks_all_at_once(domus_system *system, uint64_t rounds);
void row_run_spawns_and_stops(domus_system *system, uint64_t children);
void row_run_timers_that_fire(domus_system *system, uint64_t timers);
void row_run_timers_cancelled_at_once(domus_system *system, uint64_t timers);
void row_run_ring(domus_system *system, uint64_t nodes);
void row_run_ring_in_shuffled_order(domus_system *system, uint64_t nodes);

/* Called in a handler of a row: stage_begin_clocks() starts the clocks of the measurement,
 * stage_end_clocks() stops them. */
void stage_begin_clocks(void);
void stage_end_clocks(void);

/* Called in a handler when all work of a row is done: the main thread then returns from
 * stage_wait_and_print_times(). */
void stage_let_main_thread_return(void);

/* Wait until a handler calls stage_let_main_thread_return(), then print `seconds` and `cpu_seconds`
 * of the measured work. */
void stage_wait_and_print_times(void);

/* Called by the main thread: spawn the actor of a row on thread `thread`, and send it a notice to
 * begin. */
domus_address stage_spawn_child_of_root(domus_system *system, uint32_t thread,
                                        const domus_behaviour *behaviour, const void *state);
void stage_spawn_and_notify(domus_system *system, domus_address to, const domus_type *type,
                            const void *payload);

#endif
