/* The state that bounds and compares the log lines about nodes and servers (say.c). */
#ifndef DOMI_CLUSTER_SAID_H
#define DOMI_CLUSTER_SAID_H

#include <stdbool.h>
#include <stdint.h>

/* The last news about this node and its servers that the log was told; the news about each other
 * node are in its record. Gateway 0. */
typedef struct domi_said {
    uint64_t began_ns;    /* time of the first check */
    uint64_t lost_ns;     /* time at which the servers were lost, as the log was told */
    uint64_t refilled_ns; /* time at which `lines` last grew */
    uint32_t lines;       /* lines that may be logged now */
    bool has_server;      /* the last line about servers says that there is one */
    bool had_server;      /* there was a server at some time */
    bool misses_server;   /* the log was told that no server was found since the start */
    bool is_rival;        /* the log was told of the newer node with the same name */
    bool has_rival;       /* the log was told of the older node with the same name */
    bool is_behind;       /* the log was told that there are more changes than lines */
} domi_said;

#endif
