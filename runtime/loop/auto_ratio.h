/* The time that state actors get in one phase 3 with an ioRatio of `auto`: two waits are measured,
 * and both are bounded.
 *
 * Completions wait for the end of phase 3. So state actors get the least budget while io waits, and
 * more only while nothing else is to be done on the thread (try_to_extend_deadline() in
 * state_phase.c asks). State actors wait for each other for a round: the time until each actor has
 * run that was ready when the round began. If a round takes longer than waitMax, io gets too much
 * time, and the budget is doubled, up to a quarter of waitMax; otherwise the budget is halved. A
 * round ends when all its actors have run or no actor is ready.
 *
 * These functions only compute with numbers, so that the rule can be tested by itself. The thread
 * itself calls them, at the start and the end of phase 3. */
#ifndef DOMI_RUNTIME_LOOP_AUTO_RATIO_H
#define DOMI_RUNTIME_LOOP_AUTO_RATIO_H

#include "runtime/system/thread.h"

typedef struct domi_auto_bounds {
    uint64_t least_ns; /* least budget of phase 3: scheduler.minBudgetBusy */
    uint64_t most_ns;  /* greatest budget of phase 3: scheduler.maxBudget */
    uint64_t wait_ns;  /* how long state actors may wait for each other: scheduler.waitMax */
} domi_auto_bounds;

/* Begin phase 3 with `ready` houses that are ready, at least one. Returns the budget of the
 * phase in nanoseconds. */
uint64_t domi_auto_ratio_begin_state_phase(domi_auto_ratio *state, const domi_auto_bounds *bounds,
                                           uint64_t now_ns, uint32_t ready);

/* End phase 3, in which `ran` houses have run; `left` houses are still ready. The budget of the
 * next phase is chosen. */
void domi_auto_ratio_end_state_phase(domi_auto_ratio *state, const domi_auto_bounds *bounds,
                                     uint64_t now_ns, uint64_t ran, uint32_t left);

#endif
