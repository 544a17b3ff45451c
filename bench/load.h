/* A load generator for an echo service, on one thread, that checks every byte.
 *
 * Without a rate its loop is closed: each connection keeps `depth` messages of `size` bytes on
 * their way, and for every message that came back whole it sends one more. With a rate it is paced:
 * it sends `depth` messages at once on the connection that has had nothing under way for the
 * longest time, as often as the rate asks. If no connection is free, the messages wait in the load,
 * and their latency counts from when they were due.
 *
 * Each connection sends one endless stream of fixed pseudo-random bytes (each starts elsewhere in
 * it), and the same stream must come back: a byte that differs, is missing, doubled or out of place
 * makes the run fail. When the time is over, the load sends no more, waits for the messages under
 * way, half-closes, and expects the end of the stream.
 *
 * Time is read once per wake-up, not per message: a latency runs from the wake-up that sent a
 * message to the one that brought it back.
 *
 * The load tells which part of its CPU it used. A closed loop that uses nearly all of it measures
 * itself, and its result says nothing about the rate of the server. */
#ifndef DOMUS_BENCH_LOAD_H
#define DOMUS_BENCH_LOAD_H

#include <stdint.h>
#include <sys/types.h>

#define LOAD_CONNECTIONS_MAX 16384
/* bytes in flight on a connection (size * depth), at most */
#define LOAD_IN_FLIGHT_MAX (1u << 20)
#define LOAD_ANY_CPU       (-1)
#define LOAD_WATCHED_MAX   2

/* The share of its CPU that a load may use; beyond it the result is void. */
#define LOAD_BUSY_MAX 0.9

struct load_options {
    uint16_t port; /* port of the service on 127.0.0.1 */
    int cpu;       /* the CPU to which the calling thread is pinned; LOAD_ANY_CPU: to none */
    uint32_t connections;
    uint32_t size;  /* size of a message of the load in bytes */
    uint32_t depth; /* number of messages in flight on each connection */
    /* messages per second that the load offers over all connections; 0: a closed loop */
    double rate;
    /* processes whose CPU time is measured with the load; 0: none */
    pid_t watched[LOAD_WATCHED_MAX];
    uint64_t duration_ns;
    /* ns for which the load waits for a byte that is due before that byte counts as missing */
    uint64_t stall_ns;
};

struct load_result {
    /* number of all round trips, with those that came back after the time was over */
    uint64_t messages;
    double rate; /* round trips per second, until the time was over */
    double p50_us;
    double p99_us;
    double p999_us;
    uint64_t cpu_ns;     /* CPU time that the load itself used for all of `messages` */
    uint64_t elapsed_ns; /* time that all of `messages` took in ns */
    /* CPU time that the watched processes used for all of `messages` */
    uint64_t watched_cpu_ns[LOAD_WATCHED_MAX];
};

/* Run the load to its end on the calling thread. `ret_result` is written only on success.
 *
 * Thread-safety: any thread; pins the thread if `options` say so. Returns 0, and then every
 * connection of a closed loop was served at least `depth` times; -EINVAL for options out of range
 * or a CPU that is not there; -EBADMSG for a wrong or surplus byte; -ECONNRESET when the service
 * closes early; -ETIMEDOUT when bytes, or the end of the stream, do not come; or the negative errno
 * of a system call. */
int load_run_to_its_end(const struct load_options *options, struct load_result *ret_result);

/* Run a load as load_run_to_its_end() does, but in a process of its own, so that the memory, the
 * pinning and the CPU time of the load do not affect the caller. */
int load_run_in_child_process(const struct load_options *options, struct load_result *ret_result);

/* Returns a text that says why load_run_to_its_end() failed with this error. */
const char *load_error_as_text(int error);

/* Returns the share (0 to 1) of its CPU that the load used. */
double load_share_of_one_cpu_used_by_load(const struct load_result *result);

#endif
