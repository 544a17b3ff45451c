/* How the addresses of remote actors lie in memory. remote.h says who reads and writes the
 * fields. */
#ifndef DOMI_HOUSE_DIRECTORY_REMOTE_LAYOUT_H
#define DOMI_HOUSE_DIRECTORY_REMOTE_LAYOUT_H

#include "base/spinlock.h"
#include "house/message/manager.h"

#include <domus/remote.h>

/* Another node of the cluster, as it was opened. */
typedef struct domi_remote_node {
    uint64_t number; /* number of the node; 0: the entry is free; under the lock */
    uint32_t faces;  /* number of addresses of its actors; under the lock */
    /* 0, or the errno with which messages to the node are refused; any thread reads it */
    _Atomic int32_t error;
} domi_remote_node;

typedef struct domi_remote domi_remote;

struct domi_remote {
    /* The house to which the address points. Used are `life`, `behaviour`, and `attached`, which
     * only the gateway `owner` touches. */
    domi_house face;
    domus_remote_name name;           /* name of the remote actor; under the lock */
    _Atomic(domi_remote_node *) node; /* the node that the actor's name names */
    /* index of the manager whose gateway has the watches of the actor */
    _Atomic uint16_t owner;
    _Atomic uint8_t idle; /* looks since the last use of the address, at most 2 */
    _Atomic bool
        /* messages to this address are for grains of this system; several gateways set it */
        is_here;
    _Atomic bool is_outlet; /* the address is the outlet of a group */
    uint32_t index;         /* the index of this entry in the table; constant */
    domi_remote *next;      /* next entry in its bucket, or among the free ones */
};

static_assert(sizeof(domi_remote) == 256, "what domus/remote.h says of it");

#define DOMI_REMOTES_BLOCK 256u /* number of addresses that are made at once */

/* The gateway of one thread. Its home writes all, and any thread reads `house` and `lease`. */
typedef struct domi_gateway {
    _Atomic(domi_house *) house; /* the actor that is the gateway; NULL: the thread has none */
    _Atomic uint64_t lease;      /* the lease of the house, and `openings` in the upper half */
    uint32_t openings;           /* number of gateways that this thread has had */
} domi_gateway;

/* All remote addresses of a system. */
typedef struct domi_remotes {
    /* guards the fields below, except those that are constant once they are set */
    domi_spinlock lock;
    uint32_t max;          /* most addresses in use; 0: the tables were not made yet */
    uint32_t nodes_max;    /* entries of `nodes` */
    uint32_t made;         /* number of addresses that were ever made */
    uint32_t count;        /* number of addresses in use */
    uint32_t buckets_mask; /* number of buckets minus 1 */
    domi_remote **buckets; /* addresses in use, by a hash of their names */
    domi_remote **blocks;  /* all addresses ever made, by index / DOMI_REMOTES_BLOCK */
    /* free addresses; the one that has been free for the longest time comes first */
    domi_remote *free_first;
    domi_remote *free_last;
    uint32_t free_count;
    domi_remote_node *nodes;
    uint32_t threads; /* entries of `gateways`; constant once it is set */
    /* array of gateways, by the index of the manager; NULL: the tables were not made yet */
    _Atomic(domi_gateway *) gateways;
} domi_remotes;

#endif
