/* Makes and frees the part of a connection's state that few connections need. Thread-safety: owner
 * thread. */
#include "protocols/tls/tls.h"

#include <openssl/crypto.h>

domi_tls_extra *domi_tls_get_or_make_extra_state(domi_tls_state *state)
{
    if (state->extra == NULL)
        state->extra = OPENSSL_zalloc(sizeof *state->extra);
    if (state->extra != NULL)
        state->extra->held.size_max = state->tls->settings.held_max;
    return state->extra;
}

void domi_tls_free_extra_state(domi_tls_state *state)
{
    if (state->extra == NULL)
        return;
    domus_append_drop(&state->extra->held);
    OPENSSL_free(state->extra);
    state->extra = NULL;
}
