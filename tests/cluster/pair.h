/* Two nodes of a cluster in one process, each a system with its own threads, over a real
 * nats-server; and an outsider on the first node, through which the test sends and asks. */
#ifndef DOMT_CLUSTER_PAIR_H
#define DOMT_CLUSTER_PAIR_H

#include "tests/nats/user.h"
#include "tests/support/suite.h"

#include <domus/cluster.h>
#include <domus/domus.h>
#include <domus/outsider.h>

#include <stdatomic.h>

#define DOMT_MS     UINT64_C(1000000)
#define DOMT_SECOND UINT64_C(1000000000)

extern domt_nats_server domt_broker;
extern domus_system *domt_systems[2];
extern domus_cluster *domt_clusters[2];
extern domus_outsider *domt_user;

/* The payload of numbers, which have a pickler, and of secrets, which have none. Releases of
 * numbers are counted. */
typedef struct domt_number {
    uint64_t value;
    domus_address about; /* address of an actor, for messages that name one */
} domt_number;
extern const domus_type domt_number_type, domt_secret_type;
/* Types of messages that workers understand. */
extern const domus_type domt_twice_type; /* an ask that is answered with twice its value */
extern const domus_type domt_hold_type;  /* an ask that is kept, and never answered */
extern const domus_type domt_pass_type;  /* an ask that is forwarded to `about` */
/* a notice that stops the worker, or lets it fail with -value */
extern const domus_type domt_end_type;
extern const domus_type domt_tell_type; /* a notice that is counted, and whose order is checked */
/* a notice after which a number is sent back to the sender */
extern const domus_type domt_back_type;

/* How many numbers of `domt_tell_type` have come in order, and how many have not. */
extern _Atomic uint64_t domt_told, domt_disorder;
extern _Atomic unsigned domt_cancelled; /* number of conversations of workers that were cancelled */

/* Further lines for the server's configuration; NULL: none. To be set before
 * domt_pair_open_nodes(). */
extern const char *domt_pair_config;

/* Start the server and two nodes, "a" and "b", with `threads` threads each; `options` (or NULL) has
 * times and bounds for both. Waits until both nodes are up. */
void domt_pair_open_nodes(uint32_t threads, const domus_cluster_options *options);
void domt_pair_close_nodes(void);

/* End node b, which leaves the cluster or falls silent; or start it again. */
void domt_pair_end_node_b(bool leaves);
void domt_pair_open_node_b(void);

/* Wait until node a sees node b in this state. */
void domt_pair_wait_for_state_of_b(domus_node_state state);
domus_node domt_read_id_of_b(void);
domus_node_info domt_read_info_of_b(void);

/* Spawn a worker on node b from node a. */
domus_address domt_spawn_worker_on_b(void);

/* Ask an actor from node a. Returns the error; if it is 0, `ret_value` has the value of the
 * answer. */
int domt_ask_from_node_a(domus_address to, const domus_type *type, uint64_t value,
                         uint64_t timeout_ns, uint64_t *ret_value);
int domt_ask_from_node_a_about(domus_address to, const domus_type *type, domus_address about,
                               uint64_t *ret_value);

#endif
