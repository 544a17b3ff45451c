/* The state that bounds and compares the log lines about nodes and servers (say.c). */
#ifndef DOMI_CLUSTER_SAID_H
#define DOMI_CLUSTER_SAID_H

#include <stdbool.h>
#include <stdint.h>

/* The last news about this node and its servers that were logged; the news about each other node
 * are in its record. Gateway 0. */
typedef struct domi_said {
    uint64_t began_ns;    /* time at which gateway 0 first looked for news to log */
    uint64_t lost_ns;     /* time at which the servers were lost, as the log says */
    uint64_t refilled_ns; /* time at which the allowance `lines` last grew */
    uint32_t lines;       /* number of lines about the cluster that may be logged now */
    /* the last logged line about servers says that this node is connected to one */
    bool has_server;
    bool had_server;    /* this node was connected to a server at some time */
    bool misses_server; /* it was logged that this node has found no server since its start */
    bool is_rival;      /* it was logged that there is a newer node with this node's name */
    bool has_rival;     /* it was logged that there is an older node with this node's name */
    bool is_behind; /* it was logged that there are more changes than lines that may be logged */
} domi_said;

#endif
