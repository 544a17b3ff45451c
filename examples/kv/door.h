/* Doors: actors that stand for the shards of a cluster on one node.
 *
 * A door knows where its shard lives, and forwards everything. When the shard's actor has ended, or
 * its node is down, the door looks for it anew, and what comes meanwhile waits before the door, in
 * order. If it cannot be found, all that waits fails at once, and the next message after a moment
 * begins a new search.
 *
 * Thread-safety: as any actor. */
#ifndef KV_DOOR_H
#define KV_DOOR_H

#include "nodes.h"

struct kv_door {
    uint32_t shard;
    bool is_open;   /* `to` is known */
    bool is_remote; /* and on another node */
    int error;      /* of the last search, which ended at `failed_ns`; 0: there was none */
    uint64_t failed_ns;
    domus_address to;
    domus_watch down;
    domus_grains grains;
};

extern const domus_behaviour kv_door;

#endif
