/* An actor that sends requests for a test: either whole, or with a body in pieces of 1,000 bytes.
 * It reads the answer, and reports the outcome. The receiver is a connection or a pool of the test
 * kit. */
#ifndef DOMT_HTTP_CALLER_H
#define DOMT_HTTP_CALLER_H

#include <domus/http.h>
#include <domus/pool.h>
#include <domus/testkit_net.h>

#define DOMT_CALLER_PIECE 1000u

/* A request that the behaviour domt_caller has to send. */
typedef struct domt_call_up {
    const char *path;
    const char *fields; /* further header fields; NULL: none */
    uint64_t length;    /* announced length of the body; 0: none is announced */
    uint64_t up;        /* bytes of the body to send */
    uint64_t pause_ms;  /* ms between two reads of the answer's body */
    uint8_t method;
    bool trailers;
    bool cuts;  /* the caller breaks the request off instead of ending it */
    bool close; /* the request is to be the last one of its connection */
    bool expects;
} domt_call_up;

typedef struct domt_outcome {
    int error;       /* error of the request; 0: it was answered */
    int write_error; /* error of the last write of the request's body that failed */
    int read_error;  /* error of the last read of the answer's body that failed */
    unsigned status;
    bool close;
    uint64_t down;     /* number of bytes in the body of the answer */
    uint64_t trailers; /* number of bytes in the trailers of the answer */
    char body[64];     /* the first bytes of an answer's body that came whole */
} domt_outcome;

/* Types of the asks to a caller, both answered with an outcome: send a request with a body in
 * pieces, or send it whole. */
extern const domus_type domt_up_type, domt_whole_type, domt_outcome_type;

/* The caller as a state actor and as a channels actor. */
extern const domus_behaviour domt_caller, domt_caller_of_channels;

/* The address to which callers send their requests; a test may set it. */
extern domus_address domt_caller_to;

/* Let callers send to this pool, or, if `pool` is NULL, over one connection with this behaviour. */
void domt_caller_connect_or_open_pool(domus_testkit *kit, const char *at,
                                      const domus_pool_options *pool,
                                      const domus_behaviour *connection);

/* Check that the outcome of a call comes within a minute, and return it. */
domt_outcome domt_caller_await_outcome(domus_testkit *kit, domus_probe *probe);

#endif
