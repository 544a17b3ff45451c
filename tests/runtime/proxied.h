/* A reverse proxy in a test kit, between a client and a server that are scripts of a test. */
#ifndef DOMT_RUNTIME_PROXIED_H
#define DOMT_RUNTIME_PROXIED_H

#include "tests/runtime/network.h"
#include "tests/runtime/pipes.h"

#include <domus/http_proxy.h>

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

/* The header fields that the proxy adds. */
#define FOR(host)                                                                                  \
    "X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: " host "\r\n"
#define ADDED FOR("h") "Via: 1.1 domus\r\n\r\n"
#define GET   "GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
#define GOT   "GET /a HTTP/1.1\r\nHost: h\r\n" ADDED

typedef struct domt_proxied {
    /* configuration of the next kits; NULL: that of domt_pipes_configure() */
    const domus_config *config;
    domus_testkit *kit;
    domus_peer_listener *listener;
    domus_peer *client, *server; /* the server is NULL until its connection was accepted */
    domus_http_proxy proxy;      /* the path of the proxy is "/p" at first */
} domt_proxied;

extern domt_proxied domt_edge;

extern const domus_behaviour domt_proxied_edge;           /* passes bodies on in pieces */
extern const domus_behaviour domt_proxied_gathering_edge; /* passes bodies on as a whole */
/* the row of the behaviour has no frame */
extern const domus_behaviour domt_proxied_frameless_edge;
/* the row of the behaviour has no marks */
extern const domus_behaviour domt_proxied_plain_edge;

/* Begin with this behaviour for the connections of clients; or also for those to the server. */
void domt_proxied_begin(const domus_behaviour *behaviour);
void domt_proxied_begin_with(const domus_behaviour *behaviour, const domus_behaviour *connection);
void domt_proxied_end(void);

/* Check that the server gets what is expected when the client sends `sent`; and the other way. */
void domt_proxied_goes(const char *sent, const char *expected);
void domt_proxied_comes(const char *sent, const char *expected);

/* Let the server answer 204, and check that the client gets that. */
void domt_proxied_comes_empty(void);

/* Check that the client gets an answer that begins with `status`. */
void domt_proxied_fails(const char *status);

#endif
