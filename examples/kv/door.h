/* Doors: actors that stand for the shards of a cluster on one node.
 *
 * A door knows where its shard lives, and forwards every message. When the shard's actor has ended,
 * or its node is down, the door searches for it again, and later messages wait before the door, in
 * order. If it cannot be found, all waiting messages fail at once, and the first message after a
 * pause begins a new search.
 *
 * Thread-safety: as any actor. */
#ifndef KV_DOOR_H
#define KV_DOOR_H

#include "nodes.h"

struct kv_door {
    uint32_t shard;
    bool is_open;   /* whether the address `to` of the door's shard is known */
    bool is_remote; /* whether the door's shard is on another node */
    /* error of the last search for the shard, which ended at `failed_ns`; 0: none */
    int error;
    uint64_t failed_ns;
    domus_address to;
    domus_watch down;
    domus_grains grains;
};

extern const domus_behaviour kv_door;

#endif
