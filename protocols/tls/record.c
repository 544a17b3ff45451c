/* Checks the head of records before OpenSSL, which allocates as much as a peer announces before it
 * has come. Also records why a connection has failed. Owner thread. */
#include "protocols/tls/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <string.h>

#define CHANGE_CIPHER_SPEC 20
#define ALERT              21
#define HANDSHAKE          22
#define APPLICATION_DATA   23
#define CLIENT_HELLO       1
#define HELLO_HEAD         4u /* bytes of a handshake message before its body */

static size_t read_number(const char *bytes, uint32_t count)
{
    size_t value = 0;

    for (uint32_t i = 0; i < count; i++)
        value = value << 8 | (unsigned char)bytes[i];
    return value;
}

/* Returns whether the bytes begin a ClientHello that fits into one record. This bounds the memory
 * that OpenSSL allocates for it. */
static bool is_hello_begin(const char *bytes, size_t size)
{
    return bytes[0] == HANDSHAKE && size > HELLO_HEAD &&
           bytes[DOMI_TLS_HEAD_SIZE] == CLIENT_HELLO &&
           read_number(bytes + DOMI_TLS_HEAD_SIZE + 1, 3) <= DOMI_TLS_PLAIN_MAX - HELLO_HEAD;
}

/* Returns whether this record must be the start of a ClientHello: the first record must, and the
 * one after a HelloRetryRequest, because no other handshake message comes in clear there. OpenSSL
 * by itself allocates up to 128 KiB as soon as they are announced. */
static bool must_begin_hello(const domi_tls_state *state, const char *bytes)
{
    if (!state->tls->settings.is_server || state->phase != DOMI_TLS_HANDSHAKE)
        return false;
    return !state->heard ||
           (bytes[0] == HANDSHAKE && SSL_get_state(state->ssl) == TLS_ST_EARLY_DATA);
}

int domi_tls_record_look(const domi_tls_state *state, const char *bytes, size_t size,
                         size_t *ret_whole)
{
    if (bytes[0] < CHANGE_CIPHER_SPEC || bytes[0] > APPLICATION_DATA || (size > 1 && bytes[1] != 3))
        return -EPROTO;
    *ret_whole = DOMI_TLS_HEAD_SIZE;
    if (size < DOMI_TLS_HEAD_SIZE)
        return 0;
    size_t whole = DOMI_TLS_HEAD_SIZE + read_number(bytes + 3, 2);
    if (whole > DOMI_TLS_RECORD_MAX)
        return -EPROTO;
    *ret_whole = whole;
    if (!must_begin_hello(state, bytes))
        return 0;
    if (whole < DOMI_TLS_HEAD_SIZE + HELLO_HEAD)
        return -EPROTO;
    if (size < DOMI_TLS_HEAD_SIZE + HELLO_HEAD) {
        *ret_whole = DOMI_TLS_HEAD_SIZE + HELLO_HEAD;
        return 0;
    }
    return is_hello_begin(bytes, whole - DOMI_TLS_HEAD_SIZE) ? 0 : -EPROTO;
}

/* --- failures --------------------------------------------------------------------------------- */

/* Empty OpenSSL's queue of errors. Returns the last error of TLS itself; errors before it come from
 * lower parts, such as a wrong signature. Returns 0 if there is none. */
static unsigned long pop_last_reason(bool *ret_no_memory)
{
    unsigned long reason = 0;
    unsigned long each = ERR_get_error();

    for (; each != 0; each = ERR_get_error()) {
        if (ERR_GET_REASON(each) == ERR_R_MALLOC_FAILURE)
            *ret_no_memory = true;
        if (reason == 0 || ERR_GET_LIB(each) == ERR_LIB_SSL)
            reason = each;
    }
    return reason;
}

/* Returns the negative errno for OpenSSL's reason of a failure. */
static int errno_of_reason(unsigned long reason)
{
    switch (ERR_GET_LIB(reason) == ERR_LIB_SSL ? ERR_GET_REASON(reason) : 0) {
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        return -EACCES;
    case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC:
    case SSL_R_SSLV3_ALERT_BAD_RECORD_MAC:
        return -EBADMSG;
    default:
        return -EPROTO;
    }
}

/* Record that the connection has failed for `reason`, a constant. The alert that the call has
 * written is kept until `finish`; without memory for it the peer gets no alert. */
static void record_failure(domi_tls_call *call, const char *reason)
{
    domi_tls_state *state = call->state;
    domi_tls_extra *extra = call->alert_size != 0 ? domi_tls_extra_of(state) : state->extra;

    state->phase = DOMI_TLS_FAILED;
    state->failure = reason;
    if (extra == NULL)
        return;
    memcpy(extra->alert, call->alert, call->alert_size);
    extra->alert_size = call->alert_size;
}

int domi_tls_fail(domi_tls_call *call)
{
    domi_tls_state *state = call->state;
    unsigned long reason = pop_last_reason(&call->no_memory);
    const char *text = reason != 0 ? ERR_reason_error_string(reason) : NULL;
    long verified = SSL_get_verify_result(state->ssl);

    if (ERR_GET_REASON(reason) == SSL_R_CERTIFICATE_VERIFY_FAILED && verified != X509_V_OK)
        text = X509_verify_cert_error_string(verified);
    record_failure(call, text != NULL ? text : "no reason is known");
    return call->no_memory ? -ENOMEM : errno_of_reason(reason);
}

/* Returns true if everything that both sides have sent was in clear. Once there are keys, an alert
 * in clear would only confuse the peer. A server has no keys while it waits for a ClientHello or
 * the rest of it. */
static bool has_no_keys(const domi_tls_state *state)
{
    if (state->phase != DOMI_TLS_HANDSHAKE)
        return false;
    OSSL_HANDSHAKE_STATE at = SSL_get_state(state->ssl);
    return !state->heard || (state->tls->settings.is_server &&
                             (at == TLS_ST_EARLY_DATA || at == TLS_ST_SR_CLNT_HELLO));
}

int domi_tls_refuse(domi_tls_call *call, int error, unsigned char alert, const char *reason)
{
    const unsigned char record[] = {ALERT, 3, 3, 0, 2, 2, alert};

    call->alert_size = 0;
    if (has_no_keys(call->state)) {
        memcpy(call->alert, record, sizeof record);
        call->alert_size = sizeof record;
    }
    record_failure(call, reason);
    return error;
}
