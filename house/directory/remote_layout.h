/* How the addresses of remote actors lie in memory. remote.h says who reads and writes the
 * fields. */
#ifndef DOMI_HOUSE_DIRECTORY_REMOTE_LAYOUT_H
#define DOMI_HOUSE_DIRECTORY_REMOTE_LAYOUT_H

#include "base/spinlock.h"
#include "house/message/manager.h"

#include <domus/remote.h>

/* Another node of the cluster, as a gateway has opened it. */
typedef struct domi_remote_node {
    uint64_t number; /* number of the node; 0: this entry is free; under the lock */
    uint32_t faces;  /* number of addresses of actors of the node; under the lock */
    /* 0, or the errno with which messages to the node are refused; any thread reads this */
    _Atomic int32_t error;
} domi_remote_node;

typedef struct domi_remote domi_remote;

struct domi_remote {
    /* The house to which the remote address points. Only these fields of it are used: `life`,
     * `behaviour`, and `attached`, which only the gateway `owner` touches. */
    domi_house face;
    domus_remote_name name; /* name of the remote actor; under the lock */
    /* the node on which the remote actor lives, as its name says */
    _Atomic(domi_remote_node *) node;
    /* index of the manager whose gateway has the watches of the remote actor */
    _Atomic uint16_t owner;
    /* looks of domi_remote_list_idle_addresses() since the last use of the address, at most 2 */
    _Atomic uint8_t idle;
    _Atomic bool
        /* whether messages to this address are for grains of this system; several gateways set
         * it */
        is_here;
    _Atomic bool is_outlet; /* whether the address is the outlet of a group */
    uint32_t index;         /* the index of this remote address in the table; constant */
    domi_remote *next;      /* next remote address in its bucket, or among the free ones */
};

static_assert(sizeof(domi_remote) == 256, "what domus/remote.h says of it");

#define DOMI_REMOTES_BLOCK 256u /* number of remote addresses that are made at once */

/* The gateway of one thread. Its home writes all fields, and any thread reads `house` and
 * `lease`. */
typedef struct domi_gateway {
    _Atomic(domi_house *) house; /* the actor that is the gateway; NULL: the thread has none */
    _Atomic uint64_t lease; /* the lease of the gateway's house, and `openings` in the upper half */
    uint32_t openings;      /* number of gateways that this thread has had */
} domi_gateway;

/* All remote addresses of a system. */
typedef struct domi_remotes {
    /* lock that guards the fields below, except those that are constant once they are set */
    domi_spinlock lock;
    uint32_t max;          /* most remote addresses in use; 0: the tables were not made yet */
    uint32_t nodes_max;    /* number of entries of `nodes` */
    uint32_t made;         /* number of remote addresses that were ever made */
    uint32_t count;        /* number of remote addresses in use */
    uint32_t buckets_mask; /* number of buckets of the table by name, minus 1 */
    domi_remote **buckets; /* remote addresses in use, by a hash of their names */
    domi_remote **blocks;  /* all remote addresses ever made, by index / DOMI_REMOTES_BLOCK */
    /* free remote addresses; the one that has been free for the longest time comes first */
    domi_remote *free_first;
    domi_remote *free_last;
    uint32_t free_count;
    domi_remote_node *nodes;
    uint32_t threads; /* number of entries of `gateways`; constant once it is set */
    /* array of gateways, by the index of the manager; NULL: the tables were not made yet */
    _Atomic(domi_gateway *) gateways;
} domi_remotes;

#endif
