/* An actor that asks for a test: it sends a request whole, or with a body in pieces of 1,000 bytes,
 * reads the answer, and says how that went. It asks a connection or a pool of the test kit. */
#ifndef DOMT_HTTP_CALLER_H
#define DOMT_HTTP_CALLER_H

#include <domus/http.h>
#include <domus/pool.h>
#include <domus/testkit_net.h>

#define DOMT_CALLER_PIECE 1000u

/* A request for domt_caller. */
typedef struct domt_call_up {
    const char *path;
    const char *fields; /* may be NULL */
    uint64_t length;    /* of the body, is said in the head; 0: it is not */
    uint64_t up;        /* bytes of the body */
    uint64_t pause_ms;  /* between two reads of the answer */
    uint8_t method;
    bool trailers;
    bool cuts;  /* cuts the request at its end */
    bool close; /* the request is the last of its connection */
    bool expects;
} domt_call_up;

typedef struct domt_outcome {
    int error;       /* the error of the request */
    int write_error; /* the error of the last write that failed */
    int read_error;  /* the same of the last read */
    unsigned status;
    bool close;
    uint64_t down;     /* bytes of the body of the answer */
    uint64_t trailers; /* bytes of its trailers */
    char body[64];     /* the first bytes of a body that came whole */
} domt_outcome;

/* Asks, which are answered with an outcome: with a body in pieces, and whole. */
extern const domus_type domt_up_type, domt_whole_type, domt_outcome_type;

/* The actor, of each kind. */
extern const domus_behaviour domt_caller, domt_caller_of_channels;

/* The actor that they ask; a test may set it. */
extern domus_address domt_caller_to;

/* Let them ask this pool; without options, one connection that has this behaviour. */
void domt_caller_connect(domus_testkit *kit, const char *at, const domus_pool_options *pool,
                         const domus_behaviour *connection);

/* Hold that an outcome comes within a minute, and return it. */
domt_outcome domt_outcome_expect(domus_testkit *kit, domus_probe *probe);

#endif
