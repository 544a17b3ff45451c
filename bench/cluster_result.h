/* The line that a requester of `bench cluster` prints, and what the bench believes of it.
 *
 * The line is `ROW: COUNT in NS ns, ok`. It is refused if anything of that differs from what was
 * asked for, and if its time is not that of the bench, so that a contender with another unit or
 * another clock is found. */
#ifndef DOMUS_BENCH_CLUSTER_RESULT_H
#define DOMUS_BENCH_CLUSTER_RESULT_H

#include <stddef.h>
#include <stdint.h>

/* How much later than the line was printed the bench may have read it. */
#define CLUSTER_RESULT_SLACK_NS UINT64_C(100000000)

/* One run of a contender: the row's time, and the CPU time in it of each of its processes. */
struct cluster_result {
    uint64_t took_ns;
    uint64_t requester_cpu_ns;
    uint64_t responder_cpu_ns;
    uint64_t broker_cpu_ns; /* 0 if there is none */
    double others;          /* the part of all CPUs that other processes took (support/quiet.h) */
};

/* Read a line. `waited_ns` is the time that the bench waited for it. Returns 0; -EBADMSG if the
 * contender says that its result was wrong; -EPROTO if the line is no such line, or is one of
 * another row or count; -ERANGE if its time is longer than `waited_ns`, or less than half of it
 * and of the slack. */
int cluster_result_read(const char *line, const char *row, uint64_t count, uint64_t waited_ns,
                        uint64_t *ret_took_ns);

/* Sort `values` and return the value at `part` (0 to 1) of them; between two values, the one that
 * lies proportionally between. `count` is at least 1. */
double cluster_result_quantile(double *values, size_t count, double part);

#endif
