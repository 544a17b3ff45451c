/* A load generator for servers that answer requests in order, on one thread, that checks every
 * answer. The kind of the load knows the protocol.
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
#define REQUEST_LOAD_REQUEST_MAX     256u /* bytes of a request, at most */
/* received bytes that check() may leave unused, at most */
#define REQUEST_LOAD_KEPT_MAX 512u

/* A kind of requests, with the functions that make and check them. `context` is the first argument
 * of the functions. */
struct request_load_kind {
    char request[REQUEST_LOAD_REQUEST_MAX];
    uint32_t request_size;
    /* Bytes that follow each request and are the same for all of them; NULL: there are none. The
     * caller owns them. */
    const char *rest;
    uint32_t rest_size;
    /* Change the bytes of a request that differ from one request to the next. NULL: all requests
     * are the same. */
    void (*vary)(void *context, char *request);
    /* Check received bytes of an answer. `place` is a word in which the function keeps its state
     * within this answer; it is 0 at the start. Returns how many bytes were right, and whether the
     * answer ends with them; 0: more bytes are needed to tell, and the same bytes are shown again
     * with them; -EBADMSG. */
    int (*check)(const void *context, uint64_t *place, const char *bytes, size_t size,
                 bool *ret_ends);
    void *context;
};

/* A layer between the load and its sockets, such as TLS, with a state for each connection. */
struct request_load_link {
    /* Begin the layer on a connected socket that blocks, before the time counts. The load owns the
     * socket. Returns 0, or a negative errno. */
    int (*open)(const void *context, int fd, void **ret_state);
    /* Send and receive as send(2) and recv(2) do without waiting, but with a negative errno as the
     * result. After a receive that does not fill the room, the socket becomes readable for all
     * further bytes. */
    ssize_t (*send)(void *state, const char *bytes, size_t size);
    ssize_t (*receive)(void *state, char *bytes, size_t room);
    void (*close)(void *state); /* closes the layer of a connection; NULL: there is nothing to do */
    const void *context;        /* the first argument of `open` */
};

struct request_load_options {
    uint16_t port;                        /* port of the measured server on 127.0.0.1 */
    const struct request_load_link *link; /* layer between the load and its sockets; NULL: none */
    const struct request_load_kind *kind;
    uint32_t connections;
    uint32_t depth;
    double rate; /* requests per second that the load offers in all; 0: a closed loop */
    /* for a load with a rate: how many batches of `depth` requests become due at once; 0 means 1 */
    uint32_t burst;
    /* the latency of a request that had to wait for a connection counts from when the request
     * was due */
    bool counts_waits;
    pid_t watched; /* process of the server, whose CPU time is measured; 0: none */
    /* number of requests that the load sends at least, however long that takes */
    uint64_t requests_least;
    uint64_t duration_ns;
    /* ns for which the load waits for an answer before the answer counts as missing */
    uint64_t stall_ns;
};

struct request_load_result {
    uint64_t requests;
    double rate;   /* requests per second, until the time was over */
    double p50_us; /* median latency of `depth` requests that were sent together */
    double p90_us;
    double p99_us;
    double busy;             /* share of its CPU that the load used */
    uint64_t watched_cpu_ns; /* CPU time that the server used for all of `requests` */
};

/* Run the load to its end on the calling thread. Returns 0; -EBADMSG for a wrong answer or one too
 * many; -ECONNRESET; -ETIMEDOUT when an answer does not come; or the negative errno of a system
 * call. */
int request_load_run_to_its_end(const struct request_load_options *options,
                                struct request_load_result *ret_result);

#endif
