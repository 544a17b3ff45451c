/* Decides which connections keep OpenSSL's buffers, as buffers.h says. Thread-safety: owner
 * thread. */
#include "protocols/tls/buffers.h"

static domi_tls_shard *shard_of_connection_state(const domi_tls_state *state)
{
    return SSL_CTX_get_app_data(SSL_get_SSL_CTX(state->ssl));
}

static void free_record_buffers(domi_tls_state *state)
{
    state->place = 0;
    /* a lower count of bytes than before cannot be refused */
    (void)domi_tls_set_counted_memory(state, DOMI_TLS_OPEN_BYTES);
    SSL_set_mode(state->ssl, SSL_MODE_RELEASE_BUFFERS);
    (void)SSL_free_buffers(state->ssl);
}

void domi_tls_keep_buffers_in_place_of_oldest(domi_tls_state *state)
{
    if (state->place != 0)
        return;
    domi_tls_shard *shard = shard_of_connection_state(state);
    /* a test kit has moved this connection to another thread than that of its shard */
    if (!domi_tls_is_shard_of_this_thread(shard))
        return;
    uint32_t place = shard->next_keeper++ % shard->settings->buffers_max;
    if (shard->keepers[place] != NULL)
        free_record_buffers(shard->keepers[place]);
    shard->keepers[place] = NULL;
    if (domi_tls_set_counted_memory(state, DOMI_TLS_OPEN_BYTES + DOMI_TLS_BUFFER_BYTES) != 0)
        return;
    shard->keepers[place] = state;
    state->place = (uint8_t)(place + 1);
    SSL_clear_mode(state->ssl, SSL_MODE_RELEASE_BUFFERS);
}

void domi_tls_stop_keeping_buffers(domi_tls_state *state)
{
    if (state->place != 0)
        shard_of_connection_state(state)->keepers[state->place - 1] = NULL;
}
