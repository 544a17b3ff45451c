/* A reverse proxy (domus_http_proxy) in a test kit; its client and its server are scripts of the
 * test. */
#ifndef DOMT_RUNTIME_PROXIED_H
#define DOMT_RUNTIME_PROXIED_H

#include "tests/runtime/network.h"
#include "tests/runtime/pipes.h"

#include <domus/http_proxy.h>

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

/* The header fields that the proxy adds to a request. */
#define FOR(host)                                                                                  \
    "X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: " host "\r\n"
#define ADDED FOR("h") "Via: 1.1 domus\r\n\r\n"
#define GET   "GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
#define GOT   "GET /a HTTP/1.1\r\nHost: h\r\n" ADDED

typedef struct domt_proxied {
    /* configuration of the next kit; NULL: the one of domt_pipes_make_config() */
    const domus_config *config;
    domus_testkit *kit;
    domus_peer_listener *listener;
    /* peers of the proxy; the server is NULL until the proxy's connection to it was accepted */
    domus_peer *client, *server;
    domus_http_proxy proxy; /* options of the proxy; at first its path is "/p" */
} domt_proxied;

extern domt_proxied domt_edge;

/* behaviour of a proxy that passes bodies on in pieces */
extern const domus_behaviour domt_proxied_edge;
/* behaviour of a proxy that passes bodies on as a whole */
extern const domus_behaviour domt_proxied_gathering_edge;
/* behaviour of a proxy whose row for requests has no frame */
extern const domus_behaviour domt_proxied_frameless_edge;
/* behaviour of a proxy whose row for requests has no marks */
extern const domus_behaviour domt_proxied_plain_edge;

/* Make the kit: `behaviour` is that of connections from clients, and `connection` that of
 * connections to the server. */
void domt_proxied_begin(const domus_behaviour *behaviour);
void domt_proxied_begin_with(const domus_behaviour *behaviour, const domus_behaviour *connection);
void domt_proxied_end(void);

/* Let the client send `sent`, and check that the server gets exactly `expected`. */
void domt_relay_request(const char *sent, const char *expected);

/* Let the server send `sent`, and check that the client gets exactly `expected`. */
void domt_relay_answer(const char *sent, const char *expected);

/* Let the server answer with status 204, and check that the client gets this answer. */
void domt_relay_empty_answer(void);

/* Check that the client gets an answer whose status line begins with `status`. */
void domt_expect_answer_status(const char *status);

#endif
