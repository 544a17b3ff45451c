/* A client of HTTP/2, by nghttp2, that sends requests to the service of served.h over the simulated
 * network. It can also send frames that the test writes itself. */
#ifndef DOMT_HTTP_H2_PEER_H
#define DOMT_HTTP_H2_PEER_H

#include "tests/http/served.h"

#include <domus/http2.h>

#include <nghttp2/nghttp2.h>

#define DOMT_H2_STREAMS 300u   /* largest number of streams whose outcomes are recorded */
#define DOMT_H2_BODY    400000 /* number of bytes of a body that are kept */

/* The outcome of a stream, as far as it has come to the client. */
typedef struct domt_h2_stream {
    int status;      /* status of the answer; 0: none has come */
    int interims;    /* number of interim answers (1xx) that have come */
    size_t size;     /* number of bytes of the answer's body that have come */
    bool ended;      /* true: the end of the answer has come */
    bool closed;     /* true: the stream is closed */
    uint32_t code;   /* error code with which the stream was closed */
    uint32_t order;  /* number of streams that had ended before this one */
    char text[64];   /* the first bytes of the answer's body */
    char field[64];  /* value of the last field "x-trailer" or "content-type" of the answer */
    size_t to_send;  /* number of bytes of the request's body that are still to be sent */
    bool holds_end;  /* true: the client does not send the end of the request's body */
    size_t trailers; /* number of trailers that the client sends behind the body */
} domt_h2_stream;

typedef struct domt_h2 {
    domus_testkit *kit;
    domus_peer *peer;
    nghttp2_session *session;
    domt_h2_stream streams[DOMT_H2_STREAMS]; /* the outcomes of all streams, by (id - 1) / 2 */
    uint32_t ended;
    uint32_t aways;    /* number of GOAWAY frames that have come */
    bool is_away;      /* true: a GOAWAY frame has come */
    uint32_t away;     /* error code of the last GOAWAY */
    int32_t last;      /* number of the last stream that GOAWAY names */
    uint32_t settings; /* number of SETTINGS and of their acknowledgements that have come */
    uint32_t pings;    /* number of acknowledgements of pings that have come */
    bool keeps_window; /* true: the client gives no credit for the bytes that it receives */
} domt_h2;

/* The behaviours of served.h, with HTTP/2 before them: `domt_h2_by_small` has small limits. */
extern const domus_behaviour domt_h2_by_whole, domt_h2_by_streams, domt_h2_by_small;

/* Limits of connections with the behaviour domt_h2_by_small. */
#define DOMT_H2_SMALL_STREAMS  4u
#define DOMT_H2_SMALL_HEAD     1024u
#define DOMT_H2_SMALL_FIELDS   5u
#define DOMT_H2_SMALL_WINDOW   2000u
#define DOMT_H2_SMALL_RESETS   3u
#define DOMT_H2_SMALL_CONTROLS 10u

/* Begin a client; its first domt_h2_send_output_and_advance() sends the preface and SETTINGS.
 * domt_h2_end_client() frees the client. */
void domt_h2_begin_nghttp2_client(domt_h2 *h2, domus_testkit *kit);
void domt_h2_end_client(domt_h2 *h2);

/* Close the client's connection, free the client, and end the kit. */
void domt_h2_end_client_and_kit(domt_h2 *h2);

/* Begin a request with a body of `size` bytes and further fields (name, value, ..., NULL), or NULL.
 * Returns the number of the request's stream. */
int32_t domt_h2_begin_request(domt_h2 *h2, const char *method, const char *path, size_t size,
                              const char *const *fields);

/* Send the client's output, let this time pass, and read the bytes that have come to the client. */
void domt_h2_send_output_and_advance(domt_h2 *h2, uint64_t ns);

/* Send bytes of the test unchanged to the server. */
void domt_h2_send(domt_h2 *h2, const void *bytes, size_t size);

/* Send a frame that the test has made. */
void domt_h2_send_frame(domt_h2 *h2, uint8_t type, uint8_t flags, int32_t id, const void *bytes,
                        size_t size);

static inline domt_h2_stream *domt_h2_stream_of_id(domt_h2 *h2, int32_t id)
{
    return &h2->streams[((uint32_t)id - 1) / 2];
}

/* Check that a stream was answered with this status and text, and has ended without a reset. */
void domt_h2_expect_answer(domt_h2 *h2, int32_t id, int status, const char *text);

/* Send a request, let this time pass, and check that it was answered with this status and text.
 * Returns the number of the request's stream. */
int32_t domt_h2_request_and_expect_answer(domt_h2 *h2, const char *method, const char *path,
                                          size_t size, const char *const *fields, uint64_t ns,
                                          int status, const char *text);

/* Check that the server has reset a stream with this code. */
void domt_h2_expect_reset(domt_h2 *h2, int32_t id, uint32_t code);

/* Check that the connection still works: a request for /now is answered. */
void domt_h2_expect_connection_works(domt_h2 *h2);

/* Check that the connection has ended with this error code. */
void domt_h2_expect_goaway(domt_h2 *h2, uint32_t code);

#endif
