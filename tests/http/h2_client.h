/* A client of HTTP over HTTP/2 in a test kit; a probe sends the requests to it. The server is that
 * of h2_peer.h in the same kit, or a script of the test at the address DOMT_H2C_SCRIPT. */
#ifndef DOMT_HTTP_H2_CLIENT_H
#define DOMT_HTTP_H2_CLIENT_H

#include "tests/http/h2_peer.h"

#include <domus/http2_client.h>
#include <domus/http_client.h>

#define DOMT_H2C_SCRIPT "10.0.0.1:80"

typedef struct domt_h2c {
    domus_testkit *kit;
    domus_probe *probe;
    domus_address client; /* a client of whole urls (domus/http_client.h) */
} domt_h2c;

/* Behaviours of connections with prior knowledge of HTTP/2: with whole bodies, with bodies in
 * pieces, with small limits, and with two streams. */
extern const domus_behaviour domt_h2c_whole, domt_h2c_streams, domt_h2c_small, domt_h2c_two;

/* Limits of connections with the behaviour domt_h2c_small. */
#define DOMT_H2C_SMALL_STREAMS  2u
#define DOMT_H2C_SMALL_HEAD     1024u
#define DOMT_H2C_SMALL_FIELDS   5u
#define DOMT_H2C_SMALL_WINDOW   2000u
#define DOMT_H2C_SMALL_CONTROLS 10u

/* Begin a kit whose service has the behaviour `served`, with a client; `options` may be NULL.
 * domt_h2c_end_kit() checks that no further answer has come, and ends the kit. */
void domt_h2c_begin_kit(domt_h2c *h2c, const domus_behaviour *served,
                        const domus_http_client_options *options);
void domt_h2c_end_kit(domt_h2c *h2c);

/* Send a request to the client for a url or a path of the service; domt_h2c_send_request_to() sends
 * it to the actor `of`, with a time-out (0: none). */
void domt_h2c_send_request(domt_h2c *h2c, domus_http_method method, const char *url,
                           const char *fields, size_t body);
void domt_h2c_send_request_to(domt_h2c *h2c, domus_address of, const domus_http_request *like,
                              const char *url, const char *fields, size_t body, uint64_t within_ns);
void domt_h2c_send_get(domt_h2c *h2c, const char *url);

/* Check that the next answer has this status and this body (NULL: any). Returns the bytes of the
 * body. */
size_t domt_h2c_expect_answer(domt_h2c *h2c, unsigned status, const char *body);
void domt_h2c_expect_error(domt_h2c *h2c, int error);

/* Get `url`, and check that the answer has this status and body. */
void domt_h2c_get_and_expect_answer(domt_h2c *h2c, const char *url, unsigned status,
                                    const char *body);

/* Receive one outcome of a request. Returns its status; its error, if a lost connection, time,
 * memory or a wrong request explains it; 0 if no outcome has come in time. */
int domt_h2c_receive_outcome(domt_h2c *h2c, uint64_t within_ns);

#define DOMT_H2C_URL(path) "http://127.0.0.1" path

#endif
