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

#define DOMI_TLS_HEAD_SIZE  5u     /* bytes before those of a record */
#define DOMI_TLS_PLAIN_MAX  16384u /* bytes of the application in a record */
#define DOMI_TLS_RECORD_MAX (DOMI_TLS_HEAD_SIZE + DOMI_TLS_PLAIN_MAX + 2048u) /* of TLS 1.2 */
#define DOMI_TLS_ALERT_MAX  128u /* bytes of an alert, in a record of its own */

/* Estimates of what OpenSSL keeps for a connection. */
#define DOMI_TLS_SHAKING_BYTES 49152u
#define DOMI_TLS_OPEN_BYTES    16384u
#define DOMI_TLS_BUFFER_BYTES  34816u /* more, if it keeps its buffers */

typedef struct domi_tls_state domi_tls_state;

typedef enum domi_tls_phase {
    DOMI_TLS_HANDSHAKE,
    DOMI_TLS_OPEN,
    DOMI_TLS_ENDED,
    DOMI_TLS_FAILED,
} domi_tls_phase;

/* The parts of a state that few connections need, and those for a short time. */
typedef struct domi_tls_extra {
    domus_appender held; /* bytes that wait for the handshake */
    /* the session that the server was offered, until the handshake is done; NULL: none */
    SSL_SESSION *offered;
    uint8_t alert_size; /* bytes of the alert with which the connection has failed */
    char alert[DOMI_TLS_ALERT_MAX];
} domi_tls_extra;

/* An idle connection keeps this beside what OpenSSL has, so it is small. */
struct domi_tls_state {
    SSL *ssl;
    domus_tls *tls;
    domi_tls_taker taker;  /* of a client */
    domi_tls_extra *extra; /* NULL: there is none */
    const char *failure;   /* why it has failed, a constant text; NULL: it has not */
    uint32_t charged;      /* bytes that the budget counts, and so does the memory of the library */
    uint16_t quiet;        /* records and tickets in a row without bytes of the application */
    /* 1 + its index among the shard's `keepers`; 0: it does not keep its buffers */
    uint8_t place;
    uint8_t phase : 4; /* domi_tls_phase */
    bool heard : 1;    /* a record has come */
};

static_assert(sizeof(domi_tls_state) <= 56, "the memory of an idle connection");
static_assert(DOMI_TLS_SHAKING_BYTES + DOMI_TLS_BUFFER_BYTES <= UINT32_MAX, "of `charged`");

/* One call of the stage: the things of a connection that live no longer. OpenSSL reads and writes
 * by the call of its thread that began last. */
typedef struct domi_tls_call {
    struct domi_tls_call *outer; /* the call within which this one is made; NULL: none */
    domi_tls_state *state;
    domus_wire *wire;
    const char *in; /* bytes of the record that OpenSSL has not read yet */
    size_t in_size;
    bool wrote;         /* OpenSSL has written */
    bool no_memory;     /* OpenSSL could not write, because there was no memory */
    uint8_t alert_size; /* bytes of the last write, if they may be an alert */
    char alert[DOMI_TLS_ALERT_MAX];
} domi_tls_call;

/* Begin and end a call. OpenSSL's queue of errors is empty then: code of others may have left some.
 */
void domi_tls_call_begin(domi_tls_call *call, domi_tls_state *state, domus_wire *wire);
void domi_tls_call_end(const domi_tls_call *call);

/* Returns whether OpenSSL, which has returned `result`, only needs more bytes of the peer. */
bool domi_tls_call_wants_more(const domi_tls_call *call, int result);

/* Get the extra parts of a state, which are made if it has none. NULL: no memory. */
domi_tls_extra *domi_tls_extra_of(domi_tls_state *state);
void domi_tls_extra_free(domi_tls_state *state);

/* Let the connection count with so many bytes: on the budget of the context, and as memory of the
 * library. Returns 0; -ENOMEM: then it counts as before. */
int domi_tls_charge(domi_tls_state *state, uint32_t bytes);

/* Let OpenSSL read and write by the calls of the stage. Returns 0; -ENOMEM. */
int domi_tls_bio_use(domi_tls_state *state);

/* Say with which server a client wants to talk, and that its certificate has to have this name;
 * and offer it a session that was kept (client.c). `host` is that of the options. Returns 0;
 * -EINVAL; -ENOMEM. */
int domi_tls_client_begin(const domi_tls_call *call, const char *host);

/* Returns whether this may be the name of one host. OpenSSL takes a name with a dot before it for
 * all hosts of that domain, so any certificate of one of them would do. */
bool domi_tls_is_host(const char *host);

/* The handshake of a client is done, or has failed: forget a session that the server
 * has not taken. */
void domi_tls_client_end_handshake(domi_tls_state *state);

/* Look at the first bytes of a record: `size` (1 and more) bytes. Returns 0, with the size of the
 * whole record, or with that of what has to be seen before that is known; or -EPROTO, when it is
 * no record that may come now. */
int domi_tls_record_look(const domi_tls_state *state, const char *bytes, size_t size,
                         size_t *ret_whole);

/* Let OpenSSL use the record at `in` of the call, and pass on what it holds. Returns how many
 * bytes; or an error. */
int domi_tls_read(domi_tls_call *call, size_t record_size);

/* Send bytes of the application. Returns 0, or an error. */
int domi_tls_write(domi_tls_call *call, const char *bytes, size_t size);

/* OpenSSL has answered with an error: note it, and fail. Returns the negative errno. */
int domi_tls_fail(domi_tls_call *call);

/* Fail by an error that OpenSSL knows nothing of; the peer gets this alert (RFC 8446, 6.2).
 * `reason` is a constant. */
int domi_tls_refuse(domi_tls_call *call, int error, unsigned char alert, const char *reason);

#endif
