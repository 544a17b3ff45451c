/* Reads and writes bytes of the application. A record costs one call of OpenSSL, which decrypts it
 * directly to where the next stage reads. Thread-safety: owner thread. */
#include "protocols/tls/buffers.h"
#include "protocols/tls/tls.h"

#include <errno.h>

int domi_tls_encrypt_and_send(domi_tls_call *call, const char *bytes, size_t size)
{
    size_t sent;

    return SSL_write_ex(call->state->ssl, bytes, size, &sent) == 1
               ? 0
               : domi_tls_fail_by_openssl_error(call);
}

/* End the reading of a record from which OpenSSL gives no further bytes. `passed` bytes of it were
 * passed to the next stage. */
static int end_record_or_note_end_of_tls(domi_tls_call *call, size_t passed)
{
    if (domi_tls_needs_call_more_bytes(call, 0))
        return (int)passed;
    if (call->no_memory || SSL_get_error(call->state->ssl, 0) != SSL_ERROR_ZERO_RETURN)
        return domi_tls_fail_by_openssl_error(call);
    call->state->phase = DOMI_TLS_ENDED;
    return (int)passed;
}

int domi_tls_decrypt_record(domi_tls_call *call, size_t record_size)
{
    SSL *ssl = call->state->ssl;
    size_t room = record_size < DOMI_TLS_PLAIN_MAX ? record_size : DOMI_TLS_PLAIN_MAX;
    size_t passed = 0;
    size_t size;

    domi_tls_keep_buffers_in_place_of_oldest(call->state);
    while (call->in_size != 0 || SSL_has_pending(ssl) == 1) {
        char *to = domus_wire_pass_space(call->wire, room);
        if (to == NULL)
            return -ENOMEM;
        if (SSL_read_ex(ssl, to, room, &size) != 1)
            return end_record_or_note_end_of_tls(call, passed);
        domus_wire_passed(call->wire, size);
        passed += size;
    }
    return (int)passed;
}
