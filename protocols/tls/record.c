/* Checks the head of a record before OpenSSL sees it, because OpenSSL allocates as much as a peer
 * announces before that has come. Also records why a connection has failed. Thread-safety: owner
 * thread. */
#include "protocols/tls/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <string.h>

#define CHANGE_CIPHER_SPEC 20
#define ALERT              21
#define HANDSHAKE          22
#define APPLICATION_DATA   23
#define CLIENT_HELLO       1
#define HELLO_HEAD         4u /* bytes of the head of a handshake message, before its body */

static size_t read_big_endian_number(const char *bytes, uint32_t count)
{
    size_t value = 0;

    for (uint32_t i = 0; i < count; i++)
        value = value << 8 | (unsigned char)bytes[i];
    return value;
}

/* Returns whether the bytes begin a ClientHello that fits into one record, which bounds the memory
 * that OpenSSL allocates for it. */
static bool is_begin_of_client_hello(const char *bytes, size_t size)
{
    return bytes[0] == HANDSHAKE && size > HELLO_HEAD &&
           bytes[DOMI_TLS_HEAD_SIZE] == CLIENT_HELLO &&
           read_big_endian_number(bytes + DOMI_TLS_HEAD_SIZE + 1, 3) <=
               DOMI_TLS_PLAIN_MAX - HELLO_HEAD;
}

/* Returns whether the next record must be the start of a ClientHello. That is so for the first
 * record, and for the one after a HelloRetryRequest, because no other handshake message comes in
 * clear there. OpenSSL by itself allocates up to 128 KiB as soon as a peer announces them. */
static bool must_record_begin_client_hello(const domi_tls_state *state, const char *bytes)
{
    if (!state->tls->settings.is_server || state->phase != DOMI_TLS_HANDSHAKE)
        return false;
    return !state->heard ||
           (bytes[0] == HANDSHAKE && SSL_get_state(state->ssl) == TLS_ST_EARLY_DATA);
}

int domi_tls_check_head_of_record(const domi_tls_state *state, const char *bytes, size_t size,
                                  size_t *ret_whole)
{
    if (bytes[0] < CHANGE_CIPHER_SPEC || bytes[0] > APPLICATION_DATA || (size > 1 && bytes[1] != 3))
        return -EPROTO;
    *ret_whole = DOMI_TLS_HEAD_SIZE;
    if (size < DOMI_TLS_HEAD_SIZE)
        return 0;
    size_t whole = DOMI_TLS_HEAD_SIZE + read_big_endian_number(bytes + 3, 2);
    if (whole > DOMI_TLS_RECORD_MAX)
        return -EPROTO;
    *ret_whole = whole;
    if (!must_record_begin_client_hello(state, bytes))
        return 0;
    if (whole < DOMI_TLS_HEAD_SIZE + HELLO_HEAD)
        return -EPROTO;
    if (size < DOMI_TLS_HEAD_SIZE + HELLO_HEAD) {
        *ret_whole = DOMI_TLS_HEAD_SIZE + HELLO_HEAD;
        return 0;
    }
    return is_begin_of_client_hello(bytes, whole - DOMI_TLS_HEAD_SIZE) ? 0 : -EPROTO;
}

/* --- failures --------------------------------------------------------------------------------- */

/* Empty OpenSSL's queue of errors. Returns the last error of TLS itself, because errors before it
 * come from lower parts, such as a wrong signature; without an error of TLS the first error; 0 if
 * the queue was empty. */
static unsigned long pop_all_errors_and_return_main_one(bool *ret_no_memory)
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

/* Returns the negative errno for the reason that OpenSSL has given for a failure. */
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

/* Record that a connection has failed for `reason`, a constant. The alert that the current call has
 * written is kept until `finish` sends it; if there is no memory for it, the peer gets no alert. */
static void note_failure_and_keep_its_alert(domi_tls_call *call, const char *reason)
{
    domi_tls_state *state = call->state;
    domi_tls_extra *extra =
        call->alert_size != 0 ? domi_tls_get_or_make_extra_state(state) : state->extra;

    state->phase = DOMI_TLS_FAILED;
    state->failure = reason;
    if (extra == NULL)
        return;
    memcpy(extra->alert, call->alert, call->alert_size);
    extra->alert_size = call->alert_size;
}

int domi_tls_fail_by_openssl_error(domi_tls_call *call)
{
    domi_tls_state *state = call->state;
    unsigned long reason = pop_all_errors_and_return_main_one(&call->no_memory);
    const char *text = reason != 0 ? ERR_reason_error_string(reason) : NULL;
    long verified = SSL_get_verify_result(state->ssl);

    if (ERR_GET_REASON(reason) == SSL_R_CERTIFICATE_VERIFY_FAILED && verified != X509_V_OK)
        text = X509_verify_cert_error_string(verified);
    note_failure_and_keep_its_alert(call, text != NULL ? text : "no reason is known");
    return call->no_memory ? -ENOMEM : errno_of_reason(reason);
}

/* Returns whether everything that both sides have sent was in clear. A server has no keys while it
 * waits for a ClientHello or the rest of it; once there are keys, an alert in clear would only
 * confuse the peer. */
static bool is_connection_still_in_clear(const domi_tls_state *state)
{
    if (state->phase != DOMI_TLS_HANDSHAKE)
        return false;
    OSSL_HANDSHAKE_STATE at = SSL_get_state(state->ssl);
    return !state->heard || (state->tls->settings.is_server &&
                             (at == TLS_ST_EARLY_DATA || at == TLS_ST_SR_CLNT_HELLO));
}

int domi_tls_fail_with_alert(domi_tls_call *call, int error, unsigned char alert,
                             const char *reason)
{
    const unsigned char record[] = {ALERT, 3, 3, 0, 2, 2, alert};

    call->alert_size = 0;
    if (is_connection_still_in_clear(call->state)) {
        memcpy(call->alert, record, sizeof record);
        call->alert_size = sizeof record;
    }
    note_failure_and_keep_its_alert(call, reason);
    return error;
}
