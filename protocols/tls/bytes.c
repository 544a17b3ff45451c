/* Bytes of the application, in and out. A record costs one call of OpenSSL, which makes its bytes
 * where the next stage finds them. Owner thread. */
#include "protocols/tls/buffers.h"
#include "protocols/tls/tls.h"

#include <errno.h>
#include <openssl/err.h>

void domi_tls_begin_call(void)
{
    if (ERR_peek_error() != 0) /* clearing the queue costs more than looking whether it is empty */
        ERR_clear_error();
}

int domi_tls_write(domi_tls_state *state, const char *bytes, size_t size)
{
    size_t sent;

    return SSL_write_ex(state->ssl, bytes, size, &sent) == 1 ? 0 : domi_tls_fail(state);
}

/* OpenSSL has no further bytes of the record. */
static int end_read(domi_tls_state *state, size_t passed)
{
    switch (SSL_get_error(state->ssl, 0)) {
    case SSL_ERROR_WANT_READ:
        return (int)passed;
    case SSL_ERROR_ZERO_RETURN:
        state->phase = DOMI_TLS_ENDED;
        return (int)passed;
    default:
        return domi_tls_fail(state);
    }
}

int domi_tls_read(domi_tls_state *state, size_t record_size)
{
    size_t room = record_size < DOMI_TLS_PLAIN_MAX ? record_size : DOMI_TLS_PLAIN_MAX;
    size_t passed = 0;
    size_t size;

    domi_tls_buffers_keep(state);
    while (state->in_size != 0 || SSL_has_pending(state->ssl) == 1) {
        char *to = domus_wire_pass_space(state->wire, room);
        if (to == NULL)
            return -ENOMEM;
        if (SSL_read_ex(state->ssl, to, room, &size) != 1)
            return end_read(state, passed);
        domus_wire_passed(state->wire, size);
        passed += size;
    }
    return (int)passed;
}
