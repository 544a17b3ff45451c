/* Lines in the log about nodes and servers. */
#ifndef DOMI_CLUSTER_SAY_H
#define DOMI_CLUSTER_SAY_H

#include <stdbool.h>
#include <stdint.h>

struct domi_cluster_gateway;

/* What the log has been told of this node; of each other node its record has it. Gateway 0. */
typedef struct domi_said {
    uint64_t began_ns;    /* of the first look */
    uint64_t lost_ns;     /* when the servers were lost that the log has told of */
    uint64_t refilled_ns; /* `lines` grew then */
    uint32_t lines;       /* that may be written now */
    bool has_server;      /* the last line about servers says so */
    bool had_server;      /* there was one, at some time */
    bool misses_server;   /* the log has said that none was found since the start */
    bool is_rival;        /* the log has told of the newer node of the same name */
    bool is_behind;       /* the log has told that there are more changes than lines */
} domi_said;

/* Tell the log what has changed since the last call: a line for each node that is up, down, has
 * ended, for the servers of this node, and for another node of its name. What has changed and
 * changed back is not told. Gateway 0. */
void domi_say_news(struct domi_cluster_gateway *gateway);

#endif
