/* How the addresses of remote actors lie in memory. remote.h says who reads and writes the
 * fields. */
#ifndef DOMI_HOUSE_DIRECTORY_REMOTE_LAYOUT_H
#define DOMI_HOUSE_DIRECTORY_REMOTE_LAYOUT_H

#include "base/spinlock.h"
#include "house/message/manager.h"

#include <domus/remote.h>

/* A node that was opened. */
typedef struct domi_remote_node {
    uint64_t number;       /* 0: the entry is free; under the lock */
    uint32_t faces;        /* addresses of its actors; under the lock */
    _Atomic int32_t error; /* 0, or the errno with which messages are refused; any thread reads */
} domi_remote_node;

typedef struct domi_remote domi_remote;

struct domi_remote {
    /* The house to which the address points: `life`, `behaviour`, and `attached`, which the gateway
     * `owner` alone touches. */
    domi_house face;
    domus_remote_name name;           /* under the lock */
    _Atomic(domi_remote_node *) node; /* the node in the actor's name */
    _Atomic uint16_t owner;           /* manager of the gateway that has its watches */
    _Atomic uint8_t idle;             /* looks since it was used last, at most 2 */
    _Atomic bool
        is_here; /* messages to it are for grains of this system; several gateways set it */
    _Atomic bool is_outlet; /* the actor is the hidden member of a group */
    uint32_t index;         /* the index of this entry in the table; constant */
    domi_remote *next;      /* in its bucket, or among the free ones */
};

static_assert(sizeof(domi_remote) == 256, "what domus/remote.h says of it");

#define DOMI_REMOTES_BLOCK 256u /* addresses that are made at a time */

/* The gateway of one thread. Its home writes it, and any thread reads the first two. */
typedef struct domi_gateway {
    _Atomic(domi_house *) house; /* NULL: the thread has none */
    _Atomic uint64_t lease;      /* of the house, and `openings` in its upper half */
    uint32_t openings;           /* gateways that this thread has had */
} domi_gateway;

/* All remote addresses of a system. */
typedef struct domi_remotes {
    domi_spinlock lock;      /* guards the fields below, but what is constant once it is there */
    uint32_t max;            /* most addresses in use; 0: nothing is there yet */
    uint32_t nodes_max;      /* entries of `nodes` */
    uint32_t made;           /* addresses that were ever made */
    uint32_t count;          /* the number of entries in use */
    uint32_t buckets_mask;   /* number of buckets minus 1 */
    domi_remote **buckets;   /* addresses in use, by a hash of their names */
    domi_remote **blocks;    /* all addresses ever made, by index / DOMI_REMOTES_BLOCK */
    domi_remote *free_first; /* free ones; the one that is free for the longest time comes first */
    domi_remote *free_last;
    uint32_t free_count;
    domi_remote_node *nodes;
    uint32_t threads;                 /* entries of `gateways`; constant once it is there */
    _Atomic(domi_gateway *) gateways; /* by the index of the manager; NULL: nothing is there yet */
} domi_remotes;

#endif
