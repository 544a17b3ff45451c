/* The state of the TLS stage for a channel, and the functions that its files call of each other.
 *
 *     HANDSHAKE --> OPEN --> ENDED     the peer has sent close_notify: nothing of it is read
 *         |          |
 *         +----------+----> FAILED     nothing is read any more; only an alert is written
 *
 * OpenSSL is shown one whole record at a time, where it was received. So it keeps no bytes between
 * two calls, and gives its buffers back after each, unless it is one of the few connections that
 * keep them (buffers.h). The parts of a record wait in the window of the stage, which is as large
 * as they are. The state of an idle connection is small: things that only a call needs are in that
 * call, and what few connections need is made for them (`extra`). */
#ifndef DOMI_PROTOCOLS_TLS_H
#define DOMI_PROTOCOLS_TLS_H

#include "protocols/tls/context.h"

#include <assert.h>

#define DOMI_TLS_HEAD_SIZE 5u     /* bytes of the head of a record, before its content */
#define DOMI_TLS_PLAIN_MAX 16384u /* bytes of the application in one record, at most */
/* bytes of a whole record of TLS 1.2, at most */
#define DOMI_TLS_RECORD_MAX (DOMI_TLS_HEAD_SIZE + DOMI_TLS_PLAIN_MAX + 2048u)
#define DOMI_TLS_ALERT_MAX  128u /* bytes of an alert with its record, at most */

/* Estimates of the bytes that OpenSSL keeps for a connection: during the handshake, and after
 * it. */
#define DOMI_TLS_SHAKING_BYTES 49152u
#define DOMI_TLS_OPEN_BYTES    16384u
/* further bytes of a connection that keeps OpenSSL's buffers */
#define DOMI_TLS_BUFFER_BYTES 34816u

typedef struct domi_tls_state domi_tls_state;

typedef enum domi_tls_phase {
    DOMI_TLS_HANDSHAKE,
    DOMI_TLS_OPEN,
    DOMI_TLS_ENDED,
    DOMI_TLS_FAILED,
} domi_tls_phase;

/* The part of a connection's state that few connections need, and only for a short time. */
typedef struct domi_tls_extra {
    /* bytes that the application has sent before the handshake is done, and that wait for it */
    domus_appender held;
    /* the session that a client has offered to the server, until the handshake is done; NULL:
     * none */
    SSL_SESSION *offered;
    uint8_t alert_size; /* bytes of the alert in `alert`, with which the connection has failed */
    char alert[DOMI_TLS_ALERT_MAX];
} domi_tls_extra;

/* The state of a connection. An idle connection keeps it beside OpenSSL's own state, so it is
 * small. */
struct domi_tls_state {
    SSL *ssl;
    domus_tls *tls;
    /* for a client: the server of the connection, and the tickets that it has sent */
    domi_tls_taker taker;
    /* the part of the state that few connections need; NULL: it was not made */
    domi_tls_extra *extra;
    /* why the connection has failed, a constant text; NULL: it has not failed */
    const char *failure;
    /* bytes by which this connection counts for the budget and as own memory of the library */
    uint32_t charged;
    /* number of records and tickets of the peer since its last record with bytes of the
     * application */
    uint16_t quiet;
    /* 1 + index of this connection among the shard's `keepers`; 0: it does not keep its buffers */
    uint8_t place;
    uint8_t phase : 4; /* domi_tls_phase: how far the connection is */
    bool heard : 1;    /* at least one record of the peer has come */
};

static_assert(sizeof(domi_tls_state) <= 56, "the memory of an idle connection");
static_assert(DOMI_TLS_SHAKING_BYTES + DOMI_TLS_BUFFER_BYTES <= UINT32_MAX, "of `charged`");

/* A call of the stage that is under way, with what is not needed after it. OpenSSL reads and writes
 * for the innermost call of its thread. */
typedef struct domi_tls_call {
    /* the call of the stage within which this one is made; NULL: none */
    struct domi_tls_call *outer;
    domi_tls_state *state;
    domus_wire *wire;
    const char *in; /* bytes of the peer's record that OpenSSL has not read yet */
    size_t in_size;
    bool wrote;         /* OpenSSL has written bytes for the peer in this call */
    bool no_memory;     /* OpenSSL could not write in this call, because there was no memory */
    uint8_t alert_size; /* bytes of the last write in `alert`; 0: it was too long for an alert */
    char alert[DOMI_TLS_ALERT_MAX];
} domi_tls_call;

/* Begin and end a call of the stage. Both functions empty OpenSSL's queue of errors, in which other
 * code may have left some. */
void domi_tls_set_call_that_bio_serves(domi_tls_call *call, domi_tls_state *state,
                                       domus_wire *wire);
void domi_tls_restore_outer_call_of_bio(const domi_tls_call *call);

/* Returns whether OpenSSL, which has returned `result`, only needs more bytes of the peer to go
 * on. */
bool domi_tls_needs_call_more_bytes(const domi_tls_call *call, int result);

/* Get the part of a connection's state that is rarely needed; it is made if it is not there.
 * Returns NULL if there is no memory. */
domi_tls_extra *domi_tls_get_or_make_extra_state(domi_tls_state *state);
void domi_tls_free_extra_state(domi_tls_state *state);

/* Set by how many bytes the connection counts for the budget of its context and as own memory of
 * the library. Returns 0; -ENOMEM, and the number stays as before. */
int domi_tls_set_counted_memory(domi_tls_state *state, uint32_t bytes);

/* Connect OpenSSL's connection to the BIO of its shard, so that it reads and writes by the calls of
 * the stage. Returns 0; -ENOMEM. */
int domi_tls_set_bio_of_connection(domi_tls_state *state);

/* Set the server with which a client's connection wants to talk. Its certificate must have that
 * name, and it is offered a kept session (client.c). `host` is the host in the options. Returns 0;
 * -EINVAL; -ENOMEM. */
int domi_tls_set_server_of_client(const domi_tls_call *call, const char *host);

/* Returns whether a text may be the name of one host. With a dot before the name, OpenSSL would
 * accept the certificate of any host in that domain. */
bool domi_tls_is_host_name(const char *host);

/* End the handshake of a client's connection, whether it has succeeded or not: a session that the
 * server did not accept is removed. */
void domi_tls_settle_offered_session(domi_tls_state *state);

/* Check the first `size` (at least 1) bytes of a record. Returns 0; `ret_size` gets the size of the
 * whole record, or the number of bytes that are needed to know it; -EPROTO for a record that may
 * not come now. */
int domi_tls_check_head_of_record(const domi_tls_state *state, const char *bytes, size_t size,
                                  size_t *ret_whole);

/* Let OpenSSL use the record at `in` of the call, and pass the application's bytes in it to the
 * next stage. Returns how many bytes were passed; or a negative errno. */
int domi_tls_decrypt_record(domi_tls_call *call, size_t record_size);

/* Encrypt and send bytes of the application. Returns 0, or a negative errno. */
int domi_tls_encrypt_and_send(domi_tls_call *call, const char *bytes, size_t size);

/* Record that a connection has failed by an error of OpenSSL. Returns the negative errno. */
int domi_tls_fail_by_openssl_error(domi_tls_call *call);

/* Fail a connection by an error that OpenSSL does not know of, and send the peer an alert with this
 * number (RFC 8446, 6.2). `reason` is a constant. */
int domi_tls_fail_with_alert(domi_tls_call *call, int error, unsigned char alert,
                             const char *reason);

#endif
