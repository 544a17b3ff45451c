/* An actor that sends requests for a test: either whole, or with a body in pieces of 1,000 bytes.
 * It reads the answer, and reports the outcome. The receiver is a connection or a pool of the test
 * kit. */
#ifndef DOMT_HTTP_CALLER_H
#define DOMT_HTTP_CALLER_H

#include <domus/http.h>
#include <domus/pool.h>
#include <domus/testkit_net.h>

#define DOMT_CALLER_PIECE 1000u

/* A request that domt_caller has to send. */
typedef struct domt_call_up {
    const char *path;
    const char *fields; /* header fields; NULL: none */
    uint64_t length;    /* announced length of the body; 0: none is announced */
    uint64_t up;        /* bytes of the body to send */
    uint64_t pause_ms;  /* pause between two reads of the answer */
    uint8_t method;
    bool trailers;
    bool cuts;  /* break the request off at its end */
    bool close; /* the request is the last one of its connection */
    bool expects;
} domt_call_up;

typedef struct domt_outcome {
    int error;       /* the error of the request */
    int write_error; /* the error of the last write that failed */
    int read_error;  /* error of the last read that failed */
    unsigned status;
    bool close;
    uint64_t down;     /* bytes of the body of the answer */
    uint64_t trailers; /* bytes of its trailers */
    char body[64];     /* the first bytes of a body that came whole */
} domt_outcome;

/* Types of the asks, both answered with an outcome: send a request with a body in pieces, or send
 * it whole. */
extern const domus_type domt_up_type, domt_whole_type, domt_outcome_type;

/* The caller as a state actor and as a channels actor. */
extern const domus_behaviour domt_caller, domt_caller_of_channels;

/* Address to which callers send their requests; a test may set it. */
extern domus_address domt_caller_to;

/* Let callers use this pool, or, if `pool` is NULL, one connection with this behaviour. */
void domt_caller_connect(domus_testkit *kit, const char *at, const domus_pool_options *pool,
                         const domus_behaviour *connection);

/* Check that an outcome comes within a minute, and return it. */
domt_outcome domt_outcome_expect(domus_testkit *kit, domus_probe *probe);

#endif
