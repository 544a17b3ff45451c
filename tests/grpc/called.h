/* A service of gRPC in a test kit, and a client that says each byte of its calls.
 *
 *   /t.T/Unary   with the message, if that is none of these:
 *     fail N T   ends with the status N and the words T
 *     error N    fails with the errno N
 *     sleep N    answers N ms later
 *     none       ends without an answer
 *     before N   has the metadata domt_called_wrong[N] before the message, which cannot be sent,
 *     behind N   or behind it
 *     many N     has N trailers
 *     fields N   has trailers of N bytes
 *     large N    has a message of N bytes
 *     echo       has x-echo of the call before the message, and x-echo-bin behind it
 *   /t.T/Down    the message N times, which is its first letter as a digit. If its second letter is
 *                '!', it fails then; if that is '-', it does not begin
 *   /t.T/Up      the number of messages and the sum of their bytes
 *   /t.T/Both    each message as it comes
 *   /t.T/Far     the same by actors of all threads, one after the other
 *   /t.T/Late    begins a stream after 3 ms, in an actor of the thread that is its first letter,
 * and ends /t.T/Begin   begins a stream with the metadata domt_called_wrong[N], where N is the
 * message, and fails /t.T/Twice   begins a stream twice, and fails with -EALREADY /t.T/Wrong   a
 * unary call that begins a stream */
#ifndef DOMT_GRPC_CALLED_H
#define DOMT_GRPC_CALLED_H

#include <domus/domus.h>
#include <domus/grpc.h>
#include <domus/http2.h>
#include <domus/testkit_net.h>

#include <nghttp2/nghttp2.h>

#define DOMT_CALLED_AT  "127.0.0.1:80"
#define DOMT_CALLED_MAX 2000u /* largest message in bytes that the service takes */
#define DOMT_CALLED_MS  UINT64_C(1000000)

/* Counts of the calls that the service's handlers got since the last domt_called_start_service().
 */
typedef struct domt_called {
    uint32_t begun;     /* number of calls whose handlers have begun */
    uint32_t cancelled; /* calls that were cancelled while their handlers waited */
    uint64_t deadline_ns;
} domt_called;

extern domt_called domt_called_now;
extern const domus_behaviour domt_called_behaviour, domt_called_chained_behaviour;

/* Addresses of actors, one on each thread, to which calls are passed on. */
#define DOMT_CALLED_THREADS 3u
extern const domus_behaviour domt_called_far_behaviour, domt_called_late_behaviour;
extern domus_address domt_called_far[DOMT_CALLED_THREADS], domt_called_late[DOMT_CALLED_THREADS];

/* Fields that the metadata of a call may not contain, number N of which a test sends. */
#define DOMT_CALLED_WRONG 14u
extern const char *const domt_called_wrong[DOMT_CALLED_WRONG];

/* The outcome of a call, as the client has received it. */
typedef struct domt_call {
    int http;             /* status of the HTTP response; 0: none has come */
    int status;           /* status of gRPC with which the call has ended; -1: none has come */
    char text[4000];      /* value of the field "grpc-message", not decoded */
    char type[64];        /* value of the field "content-type" in the response */
    char encoding[64];    /* value of the field "grpc-encoding" in the response */
    char before[64];      /* value of the field x-echo before the messages */
    char behind[64];      /* value of the field x-echo behind the messages */
    char accepts[64];     /* value of the field "grpc-accept-encoding" in the response */
    uint8_t bytes[70000]; /* received messages of the call with their prefixes */
    size_t size;
    uint32_t heads; /* number of blocks of fields that have come for the call */
    bool ended;     /* whether the call's stream has ended without a reset */
    bool closed;
    uint32_t code; /* code of the reset that has ended the call's stream */
    const void *body;
    size_t body_size; /* bytes of the call's body that are to be sent */
    size_t step;      /* bytes in each frame of the body; 0: as many as possible */
    bool holds_end;
} domt_call;

typedef struct domt_caller {
    domus_testkit *kit;
    domus_peer *peer;
    nghttp2_session *session;
    domt_call calls[64];
} domt_caller;

/* Begin a service and its client in a kit, also with another behaviour or seed; end both. */
void domt_called_start_service(domt_caller *caller);
void domt_called_start_service_with(domt_caller *caller, const domus_behaviour *behaviour,
                                    uint64_t seed);
void domt_called_end_service(domt_caller *caller);

/* Begin a call with these bytes as its body, and further fields (name, value, ..., NULL), or NULL.
 * "content-type" among the fields replaces application/grpc, and ":method" replaces POST. Returns
 * the number of the call's stream. */
int32_t domt_called_begin_call(domt_caller *caller, const char *path, const void *body, size_t size,
                               const char *const *fields);

/* Advance the time of the kit while client and service exchange bytes. */
void domt_called_advance_time(domt_caller *caller, uint64_t ns);

static inline domt_call *domt_called_find_call(domt_caller *caller, int32_t id)
{
    return &caller->calls[((uint32_t)id - 1) / 2];
}

/* Make a frame of gRPC: a message behind its prefix. */
typedef struct domt_frame {
    uint8_t bytes[3000];
    size_t size;
} domt_frame;

domt_frame domt_called_make_frame(const char *text, size_t size, bool is_packed);

/* Make a unary call, advance the time by 1 ms, and check that the call has ended with this status
 * and these messages. */
domt_call *domt_called_make_unary_call_and_check(domt_caller *caller, const char *path,
                                                 const void *body, size_t size,
                                                 const char *const *fields, int status,
                                                 const char *text);

#endif
