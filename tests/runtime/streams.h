/* A service whose requests have bodies and whose answers leave in pieces, in a test kit; and the
 * stage of its protocol.
 *
 * A request is a line "KIND HOW NUMBER". KIND says which body follows:
 *
 *   Q    none
 *   L<n> n bytes
 *   C    chunks, "<n>:" and n bytes each, up to "0:"; or up to "T<text>\n", which is a trailer
 *   X    the same, but the peer awaits "go\n" before it sends the first one
 *   E    all bytes up to the end of the connection
 *
 * HOW says what the handler does, which is a sequence; with "f" before it, the request is forwarded
 * to an actor on another thread, which does the same:
 *
 *   count  reads the body, and NUMBER ms lie before each read; the answer is "<bytes> <sum>", and
 *          the trailer behind it; or "read <error>"
 *   echo   the answer is a stream of the same pieces, and with the same trailer
 *   give   the answer is a stream of NUMBER bytes
 *   part   the same, but then it fails with -EBADMSG
 *   drop   answers at once
 *   one    reads one piece, and answers
 *   twice  two conversations read at once
 *   over   reads to the end, and then once more
 *   wait   sleeps for NUMBER ms, and answers
 *   hang   sleeps for an hour
 *   wrong  misuses the calls for streams, and answers "ok"
 *   lend   lets the other actor write "hello" into the stream
 *
 * An answer is a line; a stream begins with "<text>+\n", has chunks as above, and ends with "0:" or
 * "T<text>\n". A failure is "error <error>\n"; a stream that is cut gets "!<error>\n", or nothing
 * if the stage has no `cut`. "A" before KIND is alone, and "Z" (also "AZ") is the peer's last one.
 * The answer "last" is the last one of the service; `last` gives it at once. */
#ifndef DOMT_STREAMS_H
#define DOMT_STREAMS_H

#include "tests/runtime/pipes.h"

/* A line of the protocol; `body` is that of a request or an answer. */
typedef struct domt_line {
    char text[64];
    domus_body body;
} domt_line;

extern const domus_type domt_line_type; /* a request or an answer */
/* the end of a body, whose payload is also a domt_line */
extern const domus_type domt_trailer_type;

typedef struct domt_stream_options {
    domus_role role;
    bool cuts; /* the stage has a text for a stream that is cut */
} domt_stream_options;

/* its options are domt_stream_options, and not NULL */
extern const domus_stage domt_stream_stage;
extern const domus_stage domt_cutless_stage;    /* the same stage without `cut` */
extern const domus_pipeline domt_stream_server; /* serves by the stage with `cut` */

/* Counts of the service since domt_streams_kit(). */
typedef struct domt_streams {
    domus_address far;      /* the actor to which requests are forwarded */
    _Atomic uint64_t bytes; /* bytes of bodies that were read */
    _Atomic uint32_t reads; /* pieces that were read */
    _Atomic uint32_t ended; /* conversations that have ended normally or with an error */
    _Atomic uint64_t given; /* bytes that were written to streams */
    _Atomic int error;      /* the error of the last failed read or write */
} domt_streams;

extern domt_streams domt_streams_now;

extern const domus_behaviour domt_stream_service;

/* The time-out of requests of the behaviour below, which is else the same. */
#define DOMT_STREAM_HASTE_MS 20u
extern const domus_behaviour domt_stream_hasty;

/* Check that `sent` is answered so, in whichever pieces it comes, and that the channel ends when
 * the peer has finished: with `finish` before the answers, else behind them. */
void domt_streams_hold(const char *sent, bool finish, const char *answered);

/* Send text in pieces of `size` bytes, each of which arrives by itself; 0: as a whole. */
void domt_streams_send(domus_testkit *kit, domus_peer *peer, const char *text, size_t size);

/* Make a kit as domt_pipes_kit() does, with the other actor on thread 2. */
domus_testkit *domt_streams_kit(const domus_config *config, const domus_behaviour *behaviour);

#endif
