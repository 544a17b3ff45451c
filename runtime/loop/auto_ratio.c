/* This file computes the budget of state actors from the two waits (auto_ratio.h). */
#include "runtime/loop/auto_ratio.h"

#define SHARE_OF_WAIT 4 /* io may wait this part (1/4) of the time that state actors may wait */

static uint64_t bound_budget(const domi_auto_bounds *bounds, uint64_t budget_ns)
{
    uint64_t most_ns = bounds->wait_ns / SHARE_OF_WAIT;

    if (most_ns > bounds->most_ns)
        most_ns = bounds->most_ns;
    if (budget_ns > most_ns)
        budget_ns = most_ns;
    return budget_ns < bounds->least_ns ? bounds->least_ns : budget_ns;
}

uint64_t domi_auto_ratio_begin(domi_auto_ratio *state, const domi_auto_bounds *bounds,
                               uint64_t now_ns, uint32_t ready)
{
    state->phase_from_ns = now_ns;
    if (state->round_left == 0) {
        state->round_from_ns = now_ns;
        state->round_left = ready;
    }
    return bound_budget(bounds, state->budget_ns);
}

void domi_auto_ratio_end(domi_auto_ratio *state, const domi_auto_bounds *bounds, uint64_t now_ns,
                         uint64_t ran, uint32_t left)
{
    uint64_t round_ns = now_ns - state->round_from_ns;

    if (left == 0 || ran >= state->round_left) {
        state->round_from_ns = now_ns;
        state->round_left = left;
    } else {
        state->round_left -= (uint32_t)ran;
    }
    state->budget_ns = bound_budget(bounds, round_ns > bounds->wait_ns ? 2 * state->budget_ns
                                                                       : state->budget_ns / 2);
}
