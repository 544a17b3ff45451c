/* A pair of `bench cluster`: the responder and the requester of one contender, and its broker, for
 * one row.
 *
 * All three are started afresh for a run and ended after it. The bench reads the clocks of their
 * processes just before it lets the requester go, and just after its result has come; so start,
 * connections and end count nowhere, and every contender is measured alike. Nothing is pinned. */
#ifndef DOMUS_BENCH_CLUSTER_PAIR_H
#define DOMUS_BENCH_CLUSTER_PAIR_H

#include "bench/cluster_result.h"

#include <stdbool.h>
#include <stdint.h>

enum cluster_broker { CLUSTER_NO_BROKER, CLUSTER_NATS, CLUSTER_EPMD };

struct cluster_contender {
    const char *name;
    /* path of the contender's program; for Erlang the folder that contains cluster.beam */
    const char *program;
    bool is_erlang;
    enum cluster_broker broker;
    const char *style; /* the last word of the sides' command lines; NULL: there is none */
};

struct cluster_work {
    const char *row; /* name of the row to do, "ask" or "notice" */
    uint64_t count;
    uint32_t seconds_max;
};

/* Returns whether a broker is installed; CLUSTER_NO_BROKER counts as installed. */
bool cluster_is_broker_installed(enum cluster_broker broker);

/* Do the work with a fresh pair. Returns 0 and fills `ret_result`; a negative errno of
 * cluster_result_read_line(); -ENOENT if the broker is not installed; -ECHILD if a process ended,
 * or could not start; -ETIMEDOUT; or the errno of a system call, and then `ret_who` names the
 * process concerned. No process is left in any case. */
int cluster_run_fresh_pair(const struct cluster_contender *contender,
                           const struct cluster_work *work, struct cluster_result *ret_result,
                           const char **ret_who);

#endif
