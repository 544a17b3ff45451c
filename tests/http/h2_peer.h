/* A client of HTTP/2, by nghttp2, that talks with the service of served.h over the simulated
 * network. Frames of its own choice can be sent, too. */
#ifndef DOMT_HTTP_H2_PEER_H
#define DOMT_HTTP_H2_PEER_H

#include "tests/http/served.h"

#include <domus/http2.h>

#include <nghttp2/nghttp2.h>

#define DOMT_H2_STREAMS 300u   /* streams whose outcome is noted */
#define DOMT_H2_BODY    400000 /* bytes of a body that are kept */

/* The outcome of a stream, or as much of it as has come. */
typedef struct domt_h2_stream {
    int status;      /* 0: no answer has come */
    int interims;    /* answers of 1xx */
    size_t size;     /* bytes of the body */
    bool ended;      /* the answer has come to its end */
    bool closed;     /* the stream is closed, */
    uint32_t code;   /* with this code */
    uint32_t order;  /* streams whose answers had ended before this one's */
    char text[64];   /* the first bytes of the body */
    char field[64];  /* the value of the last field "x-trailer" or "content-type" */
    size_t to_send;  /* bytes of the body that are to be sent, */
    bool holds_end;  /* whose end is not sent then */
    size_t trailers; /* trailers are sent behind it */
} domt_h2_stream;

typedef struct domt_h2 {
    domus_testkit *kit;
    domus_peer *peer;
    nghttp2_session *session;
    domt_h2_stream streams[DOMT_H2_STREAMS]; /* by (id - 1) / 2 */
    uint32_t ended;
    uint32_t aways;    /* GOAWAYs that have come */
    bool is_away;      /* one has come, */
    uint32_t away;     /* with this code, */
    int32_t last;      /* and this last stream */
    uint32_t settings; /* SETTINGS and their acks that have come */
    uint32_t pings;    /* acks of pings that have come */
    bool keeps_window; /* no credit is given for what comes */
} domt_h2;

/* Behaviours as those of served.h, with HTTP/2 in front: the second one has small limits. */
extern const domus_behaviour domt_h2_by_whole, domt_h2_by_streams, domt_h2_by_small;

/* The limits of domt_h2_by_small. */
#define DOMT_H2_SMALL_STREAMS  4u
#define DOMT_H2_SMALL_HEAD     1024u
#define DOMT_H2_SMALL_FIELDS   5u
#define DOMT_H2_SMALL_WINDOW   2000u
#define DOMT_H2_SMALL_RESETS   3u
#define DOMT_H2_SMALL_CONTROLS 10u

/* Begin a client; its first domt_h2_pass() sends the preface and SETTINGS. End it. */
void domt_h2_begin(domt_h2 *h2, domus_testkit *kit);
void domt_h2_end(domt_h2 *h2);

/* Close its connection, end it, and end the kit. */
void domt_h2_finish(domt_h2 *h2);

/* Begin a request with a body of `size` bytes, and other fields (name, value, ..., NULL), which may
 * be NULL. Returns its stream. */
int32_t domt_h2_ask(domt_h2 *h2, const char *method, const char *path, size_t size,
                    const char *const *fields);

/* Send what the client has to send, let this time pass, and read what has come. */
void domt_h2_pass(domt_h2 *h2, uint64_t ns);

/* Send bytes as they are. */
void domt_h2_send(domt_h2 *h2, const void *bytes, size_t size);

/* Send a frame of the test's own choice. */
void domt_h2_send_frame(domt_h2 *h2, uint8_t type, uint8_t flags, int32_t id, const void *bytes,
                        size_t size);

static inline domt_h2_stream *domt_h2_stream_of(domt_h2 *h2, int32_t id)
{
    return &h2->streams[((uint32_t)id - 1) / 2];
}

/* Hold that a stream was answered with a status and a text, and has ended in order. */
void domt_h2_hold(domt_h2 *h2, int32_t id, int status, const char *text);

/* Ask, let this time pass, and hold that the stream was answered so. Returns the stream. */
int32_t domt_h2_serve(domt_h2 *h2, const char *method, const char *path, size_t size,
                      const char *const *fields, uint64_t ns, int status, const char *text);

/* Hold that a stream was reset with a code. */
void domt_h2_hold_reset(domt_h2 *h2, int32_t id, uint32_t code);

/* Ask for /now, and hold that it is answered: the connection is well. */
void domt_h2_hold_well(domt_h2 *h2);

/* Hold that the connection has ended with this code. */
void domt_h2_hold_away(domt_h2 *h2, uint32_t code);

#endif
