/* The state of the TLS stage for a channel, and the doors between its files.
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

#define DOMI_TLS_HEAD_SIZE 5u     /* bytes before those of a record */
#define DOMI_TLS_PLAIN_MAX 16384u /* bytes of the application in a record, at most */
/* bytes of a record of TLS 1.2, at most */
#define DOMI_TLS_RECORD_MAX (DOMI_TLS_HEAD_SIZE + DOMI_TLS_PLAIN_MAX + 2048u)
#define DOMI_TLS_ALERT_MAX  128u /* bytes of an alert with its record, at most */

/* Estimates of the bytes that OpenSSL keeps for a connection. */
#define DOMI_TLS_SHAKING_BYTES 49152u
#define DOMI_TLS_OPEN_BYTES    16384u
#define DOMI_TLS_BUFFER_BYTES  34816u /* further bytes if the connection keeps its buffers */

typedef struct domi_tls_state domi_tls_state;

typedef enum domi_tls_phase {
    DOMI_TLS_HANDSHAKE,
    DOMI_TLS_OPEN,
    DOMI_TLS_ENDED,
    DOMI_TLS_FAILED,
} domi_tls_phase;

/* The part of a connection's state that few connections need, and only for a short time. */
typedef struct domi_tls_extra {
    domus_appender held; /* bytes of the application that wait for the handshake */
    /* the session that a client has offered, until the handshake is done; NULL: none */
    SSL_SESSION *offered;
    uint8_t alert_size; /* bytes of the alert with which the connection has failed */
    char alert[DOMI_TLS_ALERT_MAX];
} domi_tls_extra;

/* The state of a connection, which an idle connection keeps beside OpenSSL's own, so it is
 * small. */
struct domi_tls_state {
    SSL *ssl;
    domus_tls *tls;
    domi_tls_taker taker;  /* the server and tickets of a client's connection */
    domi_tls_extra *extra; /* the rarely needed part of the state; NULL: there is none */
    const char *failure;   /* why the connection has failed, a constant text; NULL: it has not */
    /* bytes that the budget and the memory of the library count for this connection */
    uint32_t charged;
    /* records and tickets since the last one with bytes of the application */
    uint16_t quiet;
    /* 1 + its index among the shard's `keepers`; 0: it does not keep its buffers */
    uint8_t place;
    uint8_t phase : 4; /* domi_tls_phase */
    bool heard : 1;    /* a record of the peer has come */
};

static_assert(sizeof(domi_tls_state) <= 56, "the memory of an idle connection");
static_assert(DOMI_TLS_SHAKING_BYTES + DOMI_TLS_BUFFER_BYTES <= UINT32_MAX, "of `charged`");

/* One call of the stage: the data of a connection that is not needed after the call. OpenSSL reads
 * and writes for the innermost call of its thread. */
typedef struct domi_tls_call {
    struct domi_tls_call *outer; /* the call within which this one is made; NULL: none */
    domi_tls_state *state;
    domus_wire *wire;
    const char *in; /* bytes of the record that OpenSSL has not read yet */
    size_t in_size;
    bool wrote;         /* OpenSSL has written bytes in this call */
    bool no_memory;     /* OpenSSL could not write, because there was no memory */
    uint8_t alert_size; /* bytes of the last write, if they may be an alert */
    char alert[DOMI_TLS_ALERT_MAX];
} domi_tls_call;

/* Begin and end a call. Both empty OpenSSL's queue of errors, in which other code may have left
 * some. */
void domi_tls_call_begin(domi_tls_call *call, domi_tls_state *state, domus_wire *wire);
void domi_tls_call_end(const domi_tls_call *call);

/* Returns whether OpenSSL, which has returned `result`, only needs more bytes of the peer. */
bool domi_tls_call_wants_more(const domi_tls_call *call, int result);

/* Get the rarely needed part of a state, which is made if there is none. Returns NULL without
 * memory. */
domi_tls_extra *domi_tls_extra_of(domi_tls_state *state);
void domi_tls_extra_free(domi_tls_state *state);

/* Set the number of bytes that the budget of the context and the memory of the library count for
 * the connection. Returns 0; -ENOMEM, and the number stays as before. */
int domi_tls_charge(domi_tls_state *state, uint32_t bytes);

/* Connect OpenSSL to the BIO of the shard, so that it reads and writes by the calls of the stage.
 * Returns 0; -ENOMEM. */
int domi_tls_bio_use(domi_tls_state *state);

/* Set the server with which a client wants to talk, whose name its certificate must have, and offer
 * it a kept session (client.c). `host` is that of the options. Returns 0; -EINVAL; -ENOMEM. */
int domi_tls_client_begin(const domi_tls_call *call, const char *host);

/* Returns whether the text may be the name of one host. With a dot before it, OpenSSL would accept
 * the certificate of any host in that domain. */
bool domi_tls_is_host(const char *host);

/* End the handshake of a client, whether it has succeeded or not: a session that the server did not
 * accept is removed. */
void domi_tls_client_end_handshake(domi_tls_state *state);

/* Check the first `size` (at least 1) bytes of a record. Returns 0 with the size of the whole
 * record, or with the number of bytes that are needed to know it; -EPROTO for a record that may not
 * come now. */
int domi_tls_record_look(const domi_tls_state *state, const char *bytes, size_t size,
                         size_t *ret_whole);

/* Let OpenSSL use the record at `in` of the call, and pass its bytes to the next stage. Returns how
 * many bytes; or a negative errno. */
int domi_tls_read(domi_tls_call *call, size_t record_size);

/* Send bytes of the application. Returns 0, or a negative errno. */
int domi_tls_write(domi_tls_call *call, const char *bytes, size_t size);

/* Record that the connection has failed by an error of OpenSSL. Returns the negative errno. */
int domi_tls_fail(domi_tls_call *call);

/* Fail the connection by an error that OpenSSL does not know of, and send the peer this alert (RFC
 * 8446, 6.2). `reason` is a constant. */
int domi_tls_refuse(domi_tls_call *call, int error, unsigned char alert, const char *reason);

#endif
