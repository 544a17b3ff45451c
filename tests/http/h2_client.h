/* A client of HTTP over HTTP/2 in a test kit, which is asked by a probe. Its server is that of
 * h2_peer.h in the same kit, or a script of the test at DOMT_H2C_SCRIPT. */
#ifndef DOMT_HTTP_H2_CLIENT_H
#define DOMT_HTTP_H2_CLIENT_H

#include "tests/http/h2_peer.h"

#include <domus/http2_client.h>
#include <domus/http_client.h>

#define DOMT_H2C_SCRIPT "10.0.0.1:80"

typedef struct domt_h2c {
    domus_testkit *kit;
    domus_probe *probe;
    domus_address client; /* a client of whole addresses (domus/http_client.h) */
} domt_h2c;

/* Connections with prior knowledge: bodies whole, in pieces, with small limits, and with
 * two streams. */
extern const domus_behaviour domt_h2c_whole, domt_h2c_streams, domt_h2c_small, domt_h2c_two;

/* The limits of domt_h2c_small. */
#define DOMT_H2C_SMALL_STREAMS  2u
#define DOMT_H2C_SMALL_HEAD     1024u
#define DOMT_H2C_SMALL_FIELDS   5u
#define DOMT_H2C_SMALL_WINDOW   2000u
#define DOMT_H2C_SMALL_CONTROLS 10u

/* Begin a kit whose service has the behaviour `served`, with a client; `options` may be NULL. End
 * it, and hold that no other answer has come. */
void domt_h2c_begin(domt_h2c *h2c, const domus_behaviour *served,
                    const domus_http_client_options *options);
void domt_h2c_end(domt_h2c *h2c);

/* Ask for a path of the service, or of a server that is named; or ask another actor, within some
 * time (0: none). */
void domt_h2c_ask(domt_h2c *h2c, domus_http_method method, const char *url, const char *fields,
                  size_t body);
void domt_h2c_ask_of(domt_h2c *h2c, domus_address of, const domus_http_request *like,
                     const char *url, const char *fields, size_t body, uint64_t within_ns);
void domt_h2c_get(domt_h2c *h2c, const char *url);

/* Hold that the next answer has this status, and this body; NULL: whichever. Returns the bytes of
 * the body. */
size_t domt_h2c_expect(domt_h2c *h2c, unsigned status, const char *body);
void domt_h2c_expect_error(domt_h2c *h2c, int error);

/* Get `url`, and hold that this is the answer. */
void domt_h2c_hold(domt_h2c *h2c, const char *url, unsigned status, const char *body);

/* Take one outcome of a request. Returns its status; the error, if a lost connection, time, memory
 * or a wrong request explains it; 0: none has come in time. */
int domt_h2c_take(domt_h2c *h2c, uint64_t within_ns);

#define DOMT_H2C_URL(path) "http://127.0.0.1" path

#endif
