/* The line that a requester of `bench cluster` prints, and how far the bench trusts it.
 *
 * The line is `ROW: COUNT in NS ns, ok`. It is refused if any of it differs from the order, and if
 * its time disagrees with the bench's own, so that a contender with another unit or another clock
 * is noticed. */
#ifndef DOMUS_BENCH_CLUSTER_RESULT_H
#define DOMUS_BENCH_CLUSTER_RESULT_H

#include <stddef.h>
#include <stdint.h>

/* ns that may pass between the moment at which a requester prints its line and the moment at which
 * the bench has read it. */
#define CLUSTER_RESULT_SLACK_NS UINT64_C(100000000)

/* The result of one run of a contender: the time of the row, and the CPU time of each process in
 * it. */
struct cluster_result {
    uint64_t took_ns;
    uint64_t requester_cpu_ns;
    uint64_t responder_cpu_ns;
    uint64_t broker_cpu_ns; /* CPU time of the broker in ns; 0: there is no broker */
    /* share of all CPUs that other processes used during the run (support/quiet.h) */
    double others;
};

/* Read the line of a requester. `waited_ns` is the time that the bench waited for it. Returns 0;
 * -EBADMSG if the contender reports a wrong result; -EPROTO if the line has another form, row or
 * count; -ERANGE if its time is longer than `waited_ns`, or less than half of what `waited_ns` has
 * beyond CLUSTER_RESULT_SLACK_NS. */
int cluster_result_read_line(const char *line, const char *row, uint64_t count, uint64_t waited_ns,
                             uint64_t *ret_took_ns);

/* Sort `values`. Returns their quantile at `part` (0 to 1): the value at that place of the order,
 * or between two places the proportional value between both. `count` is at least 1. */
double cluster_result_sort_and_get_quantile(double *values, size_t count, double part);

#endif
