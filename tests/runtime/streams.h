/* A service in a test kit whose requests have bodies and whose answers leave in pieces, and the
 * stage of its protocol.
 *
 * A request is a line "KIND HOW NUMBER". KIND says which body follows the line:
 *
 *   Q    no body
 *   L<n> a body of n bytes
 *   C    chunks, each of them "<n>:" and n bytes; the last one is "0:", or "T<text>\n", a trailer
 *   X    chunks as with C, but the peer sends the first one only after it has received "go\n"
 *   E    all bytes up to the end of the connection
 *
 * HOW says which sequence handles the request. With "f" before HOW (but before twice, wrong and
 * lend) the request is forwarded to an actor on another thread, which handles it in the same way:
 *
 *   count  reads the body, and sleeps NUMBER ms before each read; answers "<bytes> <sum>" with the
 *          trailer behind it, or "read <error>"
 *   echo   answers with a stream of the same pieces and the same trailer
 *   give   answers with a stream of NUMBER bytes
 *   part   answers like `give`, but fails with -EBADMSG at the end
 *   drop   answers at once, without reading the body
 *   last   answers at once with "last"
 *   one    reads one piece, and answers
 *   twice  reads two times at once, of which the second read fails
 *   over   reads to the end of the body, and then once more
 *   wait   sleeps for NUMBER ms, and answers
 *   hang   sleeps for an hour
 *   wrong  misuses the calls for streams, and answers "ok"
 *   lend   lets the other actor write "hello" into the stream
 *
 * An answer is a line. A stream begins with "<text>+\n", continues with chunks as above, and ends
 * with "0:" or "T<text>\n". A failure is "error <error>\n". A stream that is cut gets
 * "!<error>\n", or nothing if the stage has no `cut`. A request whose KIND has "A" before it is
 * alone, and one with "Z" (or "AZ") is the last one of its peer. The answer "last" is the last one
 * of the service. */
#ifndef DOMT_STREAMS_H
#define DOMT_STREAMS_H

#include "tests/runtime/pipes.h"

/* A line of the protocol: a request or an answer, with its body. */
typedef struct domt_line {
    char text[64];
    domus_body body;
} domt_line;

extern const domus_type domt_line_type; /* type of a request or an answer */
/* type of the trailer at the end of a body; its payload is a domt_line, too */
extern const domus_type domt_trailer_type;

typedef struct domt_stream_options {
    domus_role role;
    bool cuts; /* the stage can write a text for a stream that is cut */
} domt_stream_options;

/* the stage of the protocol; it needs options, a domt_stream_options */
extern const domus_stage domt_stream_stage;
/* the stage of the protocol without the function `cut` */
extern const domus_stage domt_cutless_stage;
/* pipeline of a server with domt_stream_stage, which has `cut` */
extern const domus_pipeline domt_stream_server;

/* Counts of the service since the last domt_streams_new_kit(). */
typedef struct domt_streams {
    domus_address far;      /* the actor on thread 2 to which requests are forwarded */
    _Atomic uint64_t bytes; /* number of bytes of bodies that handlers have read */
    _Atomic uint32_t reads; /* number of pieces of bodies that handlers have read */
    _Atomic uint32_t ended; /* number of conversations that have ended, normally or with an error */
    _Atomic uint64_t given; /* number of bytes that handlers have written to streams */
    _Atomic int error;      /* error of the last read or write that failed */
} domt_streams;

extern domt_streams domt_streams_now;

extern const domus_behaviour domt_stream_service;

/* Time-out of requests in milliseconds for domt_stream_hasty, which is otherwise like
 * domt_stream_service. */
#define DOMT_STREAM_HASTE_MS 20u
extern const domus_behaviour domt_stream_hasty;

/* Check that a peer which sends `sent`, in one piece or in small ones, is answered with exactly
 * `answered`, and that the channel ends when the peer has sent FIN: before the answers if `finish`
 * is true, else after them. */
void domt_streams_check_answers(const char *sent, bool finish, const char *answered);

/* Let a peer send text in pieces of `size` bytes, each of which arrives alone; with a size of 0, as
 * a whole. */
void domt_streams_send_pieces(domus_testkit *kit, domus_peer *peer, const char *text, size_t size);

/* Make a test kit as domt_pipes_new_kit() does, with the actor for forwarded requests on thread 2.
 */
domus_testkit *domt_streams_new_kit(const domus_config *config, const domus_behaviour *behaviour);

#endif
