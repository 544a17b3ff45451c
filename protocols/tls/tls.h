/* The state of the TLS stage for a channel, and the doors between its files.
 *
 *     HANDSHAKE --> OPEN --> ENDED     the peer has sent close_notify: nothing of it is read
 *         |          |
 *         +----------+----> FAILED     nothing is read or written any more, but for an alert
 *
 * OpenSSL is shown one whole record at a time, where it was received. So it keeps no bytes between
 * two calls, and gives its buffers back after each, unless it is one of the few connections that
 * keep them (buffers.h). The parts of a record wait in the window of the stage, which is as large
 * as they are. */
#ifndef DOMI_PROTOCOLS_TLS_H
#define DOMI_PROTOCOLS_TLS_H

#include "protocols/tls/context.h"

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

struct domi_tls_state {
    SSL *ssl;
    domus_tls *tls;
    domus_wire *wire;     /* the wire of the call that runs now */
    domi_tls_taker taker; /* of a client */
    /* the session that the server was offered, until the handshake is done; NULL: none */
    SSL_SESSION *offered;
    const char *in; /* bytes of the record that OpenSSL has not read yet */
    size_t in_size;
    uint8_t phase;  /* domi_tls_phase */
    bool heard;     /* a record has come */
    bool wrote;     /* OpenSSL has written in this call */
    bool no_memory; /* OpenSSL could not write, because there was no memory */
    /* 1 + its index among the shard's `keepers`; 0: it does not keep its buffers */
    uint8_t place;
    uint8_t alert_size;  /* bytes of the last write, if they may be an alert */
    uint32_t quiet;      /* records and tickets in a row without bytes of the application */
    uint64_t charged;    /* bytes that the budget of the settings counts */
    uint64_t counted;    /* bytes that count as memory of the library */
    domus_appender held; /* bytes that wait for the handshake */
    char alert[DOMI_TLS_ALERT_MAX];
    char failure[160];
};

/* Let the connection count with so many bytes: on the budget of the context, and as memory of the
 * library. Returns 0; -ENOMEM: then it counts as before. */
int domi_tls_charge(domi_tls_state *state, uint64_t bytes);

/* Let OpenSSL read from and write to the wire of the state. Returns 0; -ENOMEM. */
int domi_tls_bio_use(domi_tls_state *state);

/* Say with which server a client wants to talk, and that its certificate has to have this name;
 * and offer it a session that was kept (client.c). `host` is that of the options. Returns 0;
 * -EINVAL; -ENOMEM. */
int domi_tls_client_begin(domi_tls_state *state, const char *host);

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

/* Let OpenSSL use the record at `in`, and pass on what it holds. Returns how many
 * bytes; or an error. */
int domi_tls_read(domi_tls_state *state, size_t record_size);

/* Send bytes of the application. Returns 0, or an error. */
int domi_tls_write(domi_tls_state *state, const char *bytes, size_t size);

/* A call of OpenSSL is about to begin: empty its queue of errors, in which code of others may have
 * left some. */
void domi_tls_begin_call(void);

/* OpenSSL has answered with an error: note it, and fail. Returns the negative errno. */
int domi_tls_fail(domi_tls_state *state);

/* The same for an error that OpenSSL knows nothing of; the peer gets this alert (RFC 8446, 6.2). */
int domi_tls_refuse(domi_tls_state *state, int error, unsigned char alert, const char *reason);

#endif
