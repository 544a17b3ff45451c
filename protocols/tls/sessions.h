/* Sessions that a client keeps, to resume them with the server that has given them.
 *
 * Each thread has its own, in its shard: a session is tied to the certificate and the authorities
 * of the context that it was made with, so both end together, and no lock is taken. One of TLS
 * 1.3 is used once, because its ticket is visible on the wire, and an eavesdropper could
 * recognise the client by it (RFC 8446, C.4). A server has at most DOMI_TLS_SESSIONS_EACH of
 * them. Owner thread. */
#ifndef DOMI_PROTOCOLS_TLS_SESSIONS_H
#define DOMI_PROTOCOLS_TLS_SESSIONS_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

#define DOMI_TLS_SESSIONS_EACH 8u   /* sessions of one server */
#define DOMI_TLS_HOST_MAX      253u /* bytes of the name of a server */

typedef struct domi_tls_session domi_tls_session;

typedef struct domi_tls_sessions {
    domi_tls_session *newest;
    uint32_t count;
} domi_tls_sessions;

/* The server of a connection. The name is in lower case; a copy that is kept ends with
 * its last byte. */
typedef struct domi_tls_peer_name {
    uint16_t port;
    uint8_t size;
    char host[DOMI_TLS_HOST_MAX + 1];
} domi_tls_peer_name;

/* The part of a connection of a client that OpenSSL hands on when the server gives a session. */
typedef struct domi_tls_taker {
    domi_tls_peer_name *server; /* the server for which sessions are kept; NULL: none are */
    uint16_t tickets;           /* tickets that have come with the record at hand */
} domi_tls_taker;

/* Keep a session until `until_s`, and forget the oldest beyond `most` in all. Without memory
 * nothing is kept. Returns whether the session belongs to the list now. */
bool domi_tls_sessions_keep(domi_tls_sessions *sessions, const domi_tls_peer_name *server,
                            SSL_SESSION *session, uint64_t now_s, uint64_t until_s, uint32_t most);

/* Take the newest session of a server for a handshake; NULL: there is none. The caller frees it. */
SSL_SESSION *domi_tls_sessions_take(domi_tls_sessions *sessions, const domi_tls_peer_name *server,
                                    uint64_t now_s);

/* Forget a session with which a handshake has failed, or which the server has not taken. */
void domi_tls_sessions_forget(domi_tls_sessions *sessions, const SSL_SESSION *session);

/* Forget all of them. */
void domi_tls_sessions_clear(domi_tls_sessions *sessions);

/* Returns for how many seconds a session may be kept: `most`, but no longer than its server has
 * said, and than the certificate of that holds. 0: not at all. */
uint64_t domi_tls_session_time_s(const SSL_SESSION *session, uint64_t most);

#endif
