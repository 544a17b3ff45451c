/* Counts what a connection takes, by estimate: on the budget of its context, and as memory of the
 * library. Owner thread. */
#include "protocols/tls/tls.h"

#include <domus/memory.h>

int domi_tls_charge(domi_tls_state *state, uint64_t bytes)
{
    domus_budget *budget = state->tls->settings.budget;
    uint64_t before = state->charged;
    int error = domus_budget_charge(budget, &state->charged, bytes);

    if (error != 0)
        return error;
    error = domus_memory_count(&state->counted, bytes);
    if (error != 0)
        (void)domus_budget_charge(budget, &state->charged, before);
    return error;
}
