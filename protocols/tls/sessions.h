/* Sessions that a client keeps, to resume them with the server that gave them.
 *
 * Each thread keeps its own in its shard: a session is tied to the certificate and authorities
 * of its context, so both end together, and no lock is taken. A session of TLS 1.3 is used once,
 * because its ticket is visible on the wire, and an eavesdropper could recognise the client by
 * it (RFC 8446, C.4). At most DOMI_TLS_SESSIONS_EACH are kept for a server. Thread-safety: owner
 * thread. */
#ifndef DOMI_PROTOCOLS_TLS_SESSIONS_H
#define DOMI_PROTOCOLS_TLS_SESSIONS_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

#define DOMI_TLS_SESSIONS_EACH 8u   /* sessions that a client keeps for one server, at most */
#define DOMI_TLS_HOST_MAX      253u /* bytes of the name of a server, at most */

typedef struct domi_tls_session domi_tls_session;

typedef struct domi_tls_sessions {
    domi_tls_session *newest;
    uint32_t count;
} domi_tls_sessions;

/* The server of a client's connection: its name in lower case, and its port. A copy that is kept in
 * memory ends behind the last byte of the name. */
typedef struct domi_tls_peer_name {
    uint16_t port;
    uint8_t size;
    char host[DOMI_TLS_HOST_MAX + 1];
} domi_tls_peer_name;

/* The part of a client's connection that OpenSSL's callback needs when the server gives a
 * session. */
typedef struct domi_tls_taker {
    /* the server for whose sessions this connection keeps tickets; NULL: it keeps none */
    domi_tls_peer_name *server;
    uint16_t tickets; /* number of tickets that the current record has brought so far */
} domi_tls_taker;

/* Keep a session of a server until `until_s`, and remove the oldest sessions beyond `most`. If
 * there is no memory, the session is not kept. Returns whether the list owns the session now. */
bool domi_tls_keep_session(domi_tls_sessions *sessions, const domi_tls_peer_name *server,
                           SSL_SESSION *session, uint64_t now_s, uint64_t until_s, uint32_t most);

/* Take the newest session of a server out of the list, for a handshake. Returns NULL if there is
 * none. Ownership: the session is the caller's. */
SSL_SESSION *domi_tls_take_session_of_server(domi_tls_sessions *sessions,
                                             const domi_tls_peer_name *server, uint64_t now_s);

/* Remove a session from the list, because a handshake with it has failed, or the server did not
 * accept it. */
void domi_tls_remove_session_if_kept(domi_tls_sessions *sessions, const SSL_SESSION *session);

/* Remove all sessions from the list. */
void domi_tls_remove_all_sessions(domi_tls_sessions *sessions);

/* Returns for how many seconds a session may be kept: `most`, bounded by the lifetime that its
 * server gave and by how long the server's certificate is valid. 0: it must not be kept. */
uint64_t domi_tls_seconds_to_keep_session(const SSL_SESSION *session, uint64_t most);

#endif
