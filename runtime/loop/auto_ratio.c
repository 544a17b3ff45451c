/* This file computes the budget of phase 3 for an ioRatio of `auto`, from how long io and how
 * long state actors wait (auto_ratio.h). */
#include "runtime/loop/auto_ratio.h"

/* io may wait for a quarter of the time that state actors may wait */
#define SHARE_OF_WAIT 4

static uint64_t bound_budget_of_phase(const domi_auto_bounds *bounds, uint64_t budget_ns)
{
    uint64_t most_ns = bounds->wait_ns / SHARE_OF_WAIT;

    if (most_ns > bounds->most_ns)
        most_ns = bounds->most_ns;
    if (budget_ns > most_ns)
        budget_ns = most_ns;
    return budget_ns < bounds->least_ns ? bounds->least_ns : budget_ns;
}

uint64_t domi_auto_ratio_begin_state_phase(domi_auto_ratio *state, const domi_auto_bounds *bounds,
                                           uint64_t now_ns, uint32_t ready)
{
    state->phase_from_ns = now_ns;
    if (state->round_left == 0) {
        state->round_from_ns = now_ns;
        state->round_left = ready;
    }
    return bound_budget_of_phase(bounds, state->budget_ns);
}

void domi_auto_ratio_end_state_phase(domi_auto_ratio *state, const domi_auto_bounds *bounds,
                                     uint64_t now_ns, uint64_t ran, uint32_t left)
{
    uint64_t round_ns = now_ns - state->round_from_ns;

    if (left == 0 || ran >= state->round_left) {
        state->round_from_ns = now_ns;
        state->round_left = left;
    } else {
        state->round_left -= (uint32_t)ran;
    }
    state->budget_ns = bound_budget_of_phase(
        bounds, round_ns > bounds->wait_ns ? 2 * state->budget_ns : state->budget_ns / 2);
}
