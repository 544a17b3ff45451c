/* A load generator for servers that answer requests in their order, on one thread, that checks
 * every answer. The kind of the load knows the protocol.
 *
 * A load with a rate is paced: it sends `depth` requests at once on the connection that has had
 * nothing under way for the longest time, as often as the rate asks. Without a rate each connection
 * sends the next `depth` requests when the answers to the last ones are there. */
#ifndef DOMUS_BENCH_REQUEST_LOAD_H
#define DOMUS_BENCH_REQUEST_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define REQUEST_LOAD_CONNECTIONS_MAX 1024u
#define REQUEST_LOAD_DEPTH_MAX       64u
#define REQUEST_LOAD_REQUEST_MAX     256u /* bytes of a request */
#define REQUEST_LOAD_KEPT_MAX        512u /* bytes that check() may leave */

/* Requests of one kind. `context` is given to its functions. */
struct request_load_kind {
    char request[REQUEST_LOAD_REQUEST_MAX];
    uint32_t request_size;
    /* Bytes that follow each request, the same for all; NULL: none. They stay the caller's. */
    const char *rest;
    uint32_t rest_size;
    /* Change what differs from one request to the next. NULL: all are the same. */
    void (*vary)(void *context, char *request);
    /* Check the bytes that follow. `place` is a word for the answer at hand, 0 at its start.
     * Returns how many bytes were right, and whether the answer ends with them; 0: more are needed
     * to tell, and these are shown again; -EBADMSG. */
    int (*check)(const void *context, uint64_t *place, const char *bytes, size_t size,
                 bool *ret_ends);
    void *context;
};

/* A layer between the load and its sockets (TLS), with a state for each connection. */
struct request_load_link {
    /* Begin on a connected socket that blocks, before the time counts. The socket stays the
     * load's. Returns 0, or a negative errno. */
    int (*open)(const void *context, int fd, void **ret_state);
    /* As send(2) and recv(2) that do not wait, but with a negative errno as the result. A receive
     * that does not fill the room leaves nothing behind that the socket does not tell of. */
    ssize_t (*send)(void *state, const char *bytes, size_t size);
    ssize_t (*receive)(void *state, char *bytes, size_t room);
    void (*close)(void *state); /* NULL is allowed */
    const void *context;        /* of `open` */
};

struct request_load_options {
    uint16_t port;                        /* on 127.0.0.1 */
    const struct request_load_link *link; /* NULL: the sockets themselves */
    const struct request_load_kind *kind;
    uint32_t connections;
    uint32_t depth;
    double rate;             /* requests per second that are offered in all; 0: a closed loop */
    uint32_t burst;          /* of a rate: so many times `depth` requests are due at once; 0: 1 */
    bool counts_waits;       /* the latency of a request that had to wait for a connection begins
                              * when it was due */
    pid_t watched;           /* the server, whose CPU time is taken */
    uint64_t requests_least; /* that are sent, however long it takes */
    uint64_t duration_ns;
    uint64_t stall_ns; /* how long to wait for an answer before it counts as missing */
};

struct request_load_result {
    uint64_t requests;
    double rate;   /* requests per second while the time ran */
    double p50_us; /* of `depth` requests */
    double p90_us;
    double p99_us;
    double busy;             /* share of its CPU that the load used */
    uint64_t watched_cpu_ns; /* that the server used for `requests` */
};

/* Run to the end on the calling thread. Returns 0; -EBADMSG for a wrong answer or one too many;
 * -ECONNRESET; -ETIMEDOUT when an answer does not come; or what a system call said. */
int request_load_run(const struct request_load_options *options,
                     struct request_load_result *ret_result);

#endif
