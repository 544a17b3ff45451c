/* A load generator for a server of RESP, on one thread, that checks every reply.
 *
 * Requests are of one kind, and their keys take turns. A load with a rate is paced: it sends
 * `depth` requests at once on the connection that has had nothing under way for the longest time,
 * as often as the rate asks. Without a rate each connection sends the next `depth` requests when
 * the replies to the last ones are there. */
#ifndef DOMUS_BENCH_KV_LOAD_H
#define DOMUS_BENCH_KV_LOAD_H

#include <stdint.h>
#include <sys/types.h>

#define KV_LOAD_DEPTH_MAX 64u

/* A kind of request: words with a space between each. KEY is replaced by a key, and VALUE by a
 * value of 32 bytes. */
struct kv_load_row {
    const char *name;
    const char *words;
    const char *reply; /* as the bytes begin; ":" is any integer; "$" is the value */
};

struct kv_load_options {
    uint16_t port; /* on 127.0.0.1 */
    const struct kv_load_row *row;
    uint32_t connections;
    uint32_t depth;
    uint32_t keys;
    double rate;             /* requests per second that are offered in all; 0: a closed loop */
    pid_t watched;           /* the server, whose CPU time is taken */
    uint64_t requests_least; /* that are sent, however long it takes */
    uint64_t duration_ns;
    uint64_t stall_ns; /* how long to wait for a reply before it counts as missing */
};

struct kv_load_result {
    uint64_t requests;
    double rate;   /* requests per second while the time ran */
    double p50_us; /* of `depth` requests */
    double p99_us;
    double busy;             /* share of its CPU that the load used */
    uint64_t watched_cpu_ns; /* that the server used for `requests` */
};

/* Run to the end on the calling thread. Returns 0; -EBADMSG for a wrong reply or one too many;
 * -ECONNRESET; -ETIMEDOUT when a reply does not come; or what a system call said. */
int kv_load_run(const struct kv_load_options *options, struct kv_load_result *ret_result);

#endif
