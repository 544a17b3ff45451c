/* The TLS stage: handshakes, and the decrypting and encrypting of records. Thread-safety: owner
 * thread. */
#include "protocols/tls/buffers.h"
#include "protocols/tls/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <string.h>

/* records that one call of `decode` uses, at most; small ones take about 0.1 ms together */
#define RECORDS_MOST 64u

#define ALERT_UNEXPECTED_MESSAGE 10
#define ALERT_RECORD_OVERFLOW    22

/* --- begin and end ---------------------------------------------------------------------------- */

static uint32_t count_bytes_kept_until_handshake(const domi_tls_state *state)
{
    return state->extra != NULL ? state->extra->held.size : 0;
}

static int check_tls_options(const void *options_)
{
    const domus_tls_options *options = options_;

    if (options == NULL || options->tls == NULL)
        return -EINVAL;
    const domi_tls_settings *settings = &options->tls->settings;
    size_t size = options->host != NULL ? strlen(options->host) : 0;
    if (settings->is_server)
        return options->host == NULL ? 0 : -EINVAL;
    if (options->host == NULL)
        return 0;
    return size != 0 && size <= DOMI_TLS_HOST_MAX && domi_tls_is_host_name(options->host) ? 0
                                                                                          : -EINVAL;
}

static void close_tls_stage(domus_wire *wire, void *state_)
{
    domi_tls_state *state = state_;

    (void)wire;
    domi_tls_settle_offered_session(state);
    /* Without this, OpenSSL would mark the session of a connection that ends without close_notify
     * as bad. The last bytes of such a connection may be missing, but its keys are good (RFC 5246,
     * 7.2.1). */
    if (state->phase == DOMI_TLS_OPEN || state->phase == DOMI_TLS_ENDED)
        SSL_set_shutdown(state->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    domi_tls_stop_keeping_buffers(state);
    SSL_free(state->ssl);
    OPENSSL_free(state->taker.server);
    domi_tls_free_extra_state(state);
    (void)domi_tls_set_counted_memory(state, 0);
}

static int make_connection_of_openssl(const domi_tls_call *call, const char *host)
{
    domi_tls_state *state = call->state;
    SSL_CTX *context;
    int error = domi_tls_get_openssl_context(state->tls, &context);

    if (error == 0)
        error = domi_tls_set_counted_memory(state, DOMI_TLS_SHAKING_BYTES);
    if (error != 0)
        return error;
    state->ssl = SSL_new(context);
    error = state->ssl != NULL ? domi_tls_set_bio_of_connection(state) : -ENOMEM;
    if (error == 0 && !state->tls->settings.is_server)
        error = domi_tls_set_server_of_client(call, host);
    if (error != 0)
        return error;
    if (state->tls->settings.is_server)
        SSL_set_accept_state(state->ssl);
    else
        SSL_set_connect_state(state->ssl);
    return 0;
}

/* --- bytes to the peer ------------------------------------------------------------------------ */

/* Keep bytes that the application has sent until the handshake is done. */
static int keep_bytes_until_handshake_is_done(domi_tls_state *state, const char *bytes, size_t size)
{
    domi_tls_extra *extra = domi_tls_get_or_make_extra_state(state);
    int error = extra != NULL ? domus_append(&extra->held, bytes, size) : -ENOMEM;

    return error == -EMSGSIZE ? -ENOBUFS : error;
}

static int send_bytes_kept_until_handshake(domi_tls_call *call)
{
    domus_slice held;
    int error;

    if (call->state->extra == NULL)
        return 0;
    error = domus_append_end(&call->state->extra->held, &held);
    if (error == 0 && held.size != 0)
        error = domi_tls_encrypt_and_send(call, domus_slice_data(held), held.size);
    domus_slice_free(held);
    return error;
}

static int encrypt_bytes_or_keep_for_handshake(domus_wire *wire, void *state_, const char *bytes,
                                               size_t size)
{
    domi_tls_state *state = state_;
    domi_tls_call call;
    int error;

    switch ((domi_tls_phase)state->phase) {
    case DOMI_TLS_HANDSHAKE:
        return keep_bytes_until_handshake_is_done(state, bytes, size);
    case DOMI_TLS_OPEN:
    case DOMI_TLS_ENDED:
        domi_tls_set_call_that_bio_serves(&call, state, wire);
        error = domi_tls_encrypt_and_send(&call, bytes, size);
        domi_tls_restore_outer_call_of_bio(&call);
        return error;
    case DOMI_TLS_FAILED:
        break;
    }
    /* 0 although the connection has failed: the peer cannot read the bytes any more, but `finish`
     * still has to send the alert */
    return 0;
}

static int send_close_notify_or_kept_alert(domus_wire *wire, void *state_)
{
    domi_tls_state *state = state_;
    const domi_tls_extra *extra = state->extra;
    domi_tls_call call;
    int error;

    switch ((domi_tls_phase)state->phase) {
    case DOMI_TLS_HANDSHAKE:
        return count_bytes_kept_until_handshake(state) != 0 ? -ENOTCONN : 0;
    case DOMI_TLS_OPEN:
    case DOMI_TLS_ENDED:
        domi_tls_set_call_that_bio_serves(&call, state, wire);
        error = SSL_shutdown(state->ssl) >= 0 ? 0 : domi_tls_fail_by_openssl_error(&call);
        domi_tls_restore_outer_call_of_bio(&call);
        return error;
    case DOMI_TLS_FAILED:
        break;
    }
    return extra != NULL ? domus_wire_append(wire, extra->alert, extra->alert_size) : 0;
}

/* --- bytes of the peer ------------------------------------------------------------------------ */

/* Tell the stages behind this one which application protocol ALPN has agreed on. */
static void report_protocol_of_alpn(const domi_tls_call *call)
{
    const unsigned char *name;
    unsigned size;

    SSL_get0_alpn_selected(call->state->ssl, &name, &size);
    domus_wire_agree(call->wire, name, size);
}

/* Continue the handshake of a connection. Returns 1 when it is done; 0 when more bytes of the peer
 * are needed; a negative errno. */
static int continue_handshake(domi_tls_call *call)
{
    domi_tls_state *state = call->state;
    int result = SSL_do_handshake(state->ssl);
    domus_wire_yield(call->wire);
    if (result != 1) {
        if (!domi_tls_needs_call_more_bytes(call, result))
            return domi_tls_fail_by_openssl_error(call);
        domus_wire_expect_head(call->wire);
        return 0;
    }
    state->phase = DOMI_TLS_OPEN;
    domi_tls_settle_offered_session(state);
    (void)domi_tls_set_counted_memory(state, DOMI_TLS_OPEN_BYTES);
    int error = send_bytes_kept_until_handshake(call);
    if (error != 0)
        return error;
    domi_tls_free_extra_state(state);
    report_protocol_of_alpn(call);
    return 1;
}

/* Let OpenSSL use one whole record of the peer. Returns 0, or a negative errno. */
static int let_openssl_use_record_of_peer(domi_tls_call *call, const char *bytes, size_t size)
{
    domi_tls_state *state = call->state;
    int result = 1;

    call->in = bytes;
    call->in_size = size;
    state->heard = true;
    if (state->phase == DOMI_TLS_HANDSHAKE)
        result = continue_handshake(call);
    if (result > 0)
        result = domi_tls_decrypt_record(call, size);
    if (result < 0)
        return result;
    if (result != 0)
        state->quiet = 0;
    else
        state->quiet = (uint16_t)(state->quiet + 1 + state->taker.tickets);
    state->taker.tickets = 0;
    if (state->quiet > state->tls->settings.quiet_max)
        return domi_tls_fail_with_alert(call, -EPROTO, ALERT_UNEXPECTED_MESSAGE,
                                        "too many empty records");
    return call->in_size == 0 || state->phase == DOMI_TLS_ENDED
               ? 0
               : domi_tls_fail_by_openssl_error(call);
}

/* Use whole records of the peer while there is room for their bytes. Stop after a record to which
 * OpenSSL has written an answer, because a failure in a later record would discard what this call
 * has appended. Returns as `decode` of a stage does. */
static int let_openssl_use_whole_records(domi_tls_call *call, const char *bytes, size_t size)
{
    domi_tls_state *state = call->state;
    size_t used = 0;
    size_t whole;
    uint32_t count = RECORDS_MOST;

    while (used < size && !call->wrote && state->phase <= DOMI_TLS_OPEN &&
           domus_wire_pass_room(call->wire) >= DOMI_TLS_PLAIN_MAX) {
        bool is_shaking = state->phase == DOMI_TLS_HANDSHAKE;
        int error = domi_tls_check_head_of_record(state, bytes + used, size - used, &whole);
        if (error != 0 && used == 0)
            return domi_tls_fail_with_alert(call, error, ALERT_UNEXPECTED_MESSAGE,
                                            "not a record of TLS");
        if (error != 0)
            break;
        if (whole > size - used) {
            if (used == 0)
                domus_wire_need(call->wire, whole);
            break;
        }
        error = let_openssl_use_record_of_peer(call, bytes + used, whole);
        if (error != 0)
            return error;
        used += whole;
        if (is_shaking)
            break;
        if (--count == 0) {
            domus_wire_yield(call->wire);
            break;
        }
    }
    if (used == 0 && state->phase == DOMI_TLS_HANDSHAKE)
        domus_wire_expect_head(call->wire);
    return (int)used;
}

static int decode_tls_bytes(domus_wire *wire, void *state_, const char *bytes, size_t size)
{
    domi_tls_state *state = state_;
    domi_tls_call call;

    domi_tls_set_call_that_bio_serves(&call, state, wire);
    int used = let_openssl_use_whole_records(&call, bytes, size);
    domi_tls_restore_outer_call_of_bio(&call);
    if (used > 0 && state->phase == DOMI_TLS_ENDED)
        domus_wire_last(wire); /* the peer sends no byte of TLS behind its close_notify */
    return used;
}

static int fail_if_connection_was_cut_within_tls(domus_wire *wire, void *state_, size_t left)
{
    domi_tls_state *state = state_;

    (void)wire;
    if (state->phase == DOMI_TLS_ENDED ||
        (left == 0 && !state->heard && count_bytes_kept_until_handshake(state) == 0))
        return 0;
    state->failure = "the connection was cut";
    return -ECONNABORTED;
}

static int open_tls_stage(domus_wire *wire, void *state_, const void *options_)
{
    domi_tls_state *state = state_;
    const domus_tls_options *options = options_;
    domi_tls_call call;

    state->tls = options->tls;
    domi_tls_set_call_that_bio_serves(&call, state, wire);
    domus_wire_expect_head(wire);
    int error = make_connection_of_openssl(&call, options->host);
    if (error == 0 && !options->tls->settings.is_server)
        error = continue_handshake(&call);
    domi_tls_restore_outer_call_of_bio(&call);
    if (error < 0) {
        ERR_clear_error();
        close_tls_stage(wire, state);
    }
    return error;
}

const domus_stage domus_tls_stage = {
    .name = "tls",
    .state_size = sizeof(domi_tls_state),
    .check = check_tls_options,
    .open = open_tls_stage,
    .decode = decode_tls_bytes,
    .end = fail_if_connection_was_cut_within_tls,
    .wrap = encrypt_bytes_or_keep_for_handshake,
    .finish = send_close_notify_or_kept_alert,
    .close = close_tls_stage,
};
