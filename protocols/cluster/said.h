/* The state of the lines that the log gets about nodes and servers (say.c). */
#ifndef DOMI_CLUSTER_SAID_H
#define DOMI_CLUSTER_SAID_H

#include <stdbool.h>
#include <stdint.h>

/* The last news that the log has of this node; that of each other node is in its record. Gateway 0.
 */
typedef struct domi_said {
    uint64_t began_ns;    /* of the first look */
    uint64_t lost_ns;     /* when the servers were lost that the log has told of */
    uint64_t refilled_ns; /* `lines` grew then */
    uint32_t lines;       /* lines of the log that may be written now */
    bool has_server;      /* the last line about servers says so */
    bool had_server;      /* there was one, at some time */
    bool misses_server;   /* the log has said that none was found since the start */
    bool is_rival;        /* the log has told of the newer node of the same name */
    bool has_rival;       /* or of the older one */
    bool is_behind;       /* the log has told that there are more changes than lines */
} domi_said;

#endif
