/* Counts the estimated memory of a connection, for the budget of its context and as own memory of
 * the library. Thread-safety: owner thread. */
#include "protocols/tls/tls.h"

#include <domus/memory.h>

int domi_tls_set_counted_memory(domi_tls_state *state, uint32_t bytes)
{
    domus_budget *budget = state->tls->settings.budget;
    uint64_t charged = state->charged;
    uint64_t counted = state->charged;
    int error = domus_budget_charge(budget, &charged, bytes);

    if (error != 0)
        return error;
    error = domus_memory_count(&counted, bytes);
    if (error != 0)
        (void)domus_budget_charge(budget, &charged, state->charged);
    else
        state->charged = bytes;
    return error;
}
