/* Groups: a group is a name for a set of actors, its members.
 *
 * On each thread that has members a group has a shard, which is an actor that never leaves its
 * thread; in a pool that has members the shard is an actor of the pool, and the lists below are
 * under the pool's `members_lock`, because a member may end on one runner while another runs the
 * shard. To publish is to send one message to each shard, and the shard puts a notice to each of
 * its members by the home lane. Only the shard's thread touches its list of members. Joining and
 * leaving travel to that thread as nodes of a kind of their own, which are never refused and take
 * effect when they are sorted. A member that ends is struck from the list directly, because it ends
 * on the same thread.
 *
 * Threads share little of a group: for each thread its shard, which is set once, and a count of
 * members. An actor that joins is counted before its node is put. So a publisher that has learnt of
 * the join finds the count and the shard, and its publication comes to the shard behind the node.
 *
 * A group may have an *outlet* (domus/remote.h): a remote address that is its hidden member. It is
 * linked into a shard's list as any member, so a publication costs nothing for groups without an
 * outlet, but it is in no list of a house, and `members` of the group does not count it. */
#ifndef DOMI_HOUSE_DIRECTORY_GROUP_H
#define DOMI_HOUSE_DIRECTORY_GROUP_H

#include "base/spinlock.h"
#include "house/directory/name_table.h"
#include "house/message/manager.h"

#include <domus/group.h>

#include <stdalign.h>

typedef struct domi_group domi_group;
typedef struct domi_groups domi_groups;
typedef struct domi_member domi_member;

/* All groups of a system. Groups are added and never removed, so finding one takes no lock. */
struct domi_groups {
    /* hash table of the groups; constant after init, as are the next six fields */
    _Atomic(domi_group *) *buckets;
    uint64_t key[2];        /* secret and random key of the hashes of groups' names */
    uint32_t buckets_count; /* number of buckets of the table of groups; a power of two */
    uint32_t max;           /* most groups of the system */
    uint32_t members_max;   /* most members of one group */
    uint32_t threads;       /* number of threads of the loop, whose slots in a group come first */
    uint32_t homes;         /* number of homes that may have shards: threads, then pools */
    domi_spinlock lock;     /* lock that is held to add a group or to set a shard */
    uint32_t count;         /* number of groups of the system; under `lock` */
};

/* The part of a group that belongs to one home. Its cache line is written when an actor of this
 * home joins or leaves. */
typedef struct domi_group_slot {
    /* the group's shard on this home; set once; NULL: none yet */
    alignas(64) _Atomic(domi_house *) shard;
    uint32_t lease; /* lease of the group's shard on this home; written before `shard` */
    /* number of the group's members on this home, including joins under way and the outlet */
    _Atomic uint32_t members;
} domi_group_slot;

struct domi_group {
    char name[DOMI_NAME_MAX + 1]; /* name of the group, with a NUL at its end; constant */
    domi_group *next;             /* next group in the same bucket of the table */
    domi_groups *groups;          /* the registry of groups to which this group belongs */
    /* the remote address that is the group's outlet; set once; NULL: it has none */
    _Atomic(struct domi_remote *) outlet;
    /* number of the group's members on all homes, including joins under way */
    alignas(64) _Atomic uint32_t members;
    domi_group_slot slots[]; /* slots of the group, one for each home, by its index */
};

/* A membership, or the request to end one. It travels to the shard as a node; from its arrival on
 * it belongs to the shard's home. A membership is then in two lists: in that of its shard, and in
 * that of its house (in the family). */
struct domi_member {
    /* the node by which the membership travels; after the arrival its `next` links the shard's
     * list */
    domi_node node;
    domi_group *group; /* the group that the member joins or leaves */
    /* the actor that is the member; the face of the remote address, if it is an outlet */
    domi_house *house;
    uint32_t lease;             /* lease of the actor that is the member */
    bool leaves;                /* whether this is the request to end a membership */
    bool is_outlet;             /* whether the member is the group's outlet */
    domi_member *previous;      /* the membership before this one in the shard's list */
    domi_member *next_of_house; /* next membership in the list of the member's house */
    /* the membership before this one in the list of the member's house */
    domi_member *previous_of_house;
};

static_assert(DOMI_TAKES(sizeof(domi_member), 64), "one cache line");

/* Make a registry for up to `max` groups, each with up to `members_max` members, and with shards on
 * `threads` threads and in `pools` pools. `key` is the key of the hash of groups' names; it has to
 * be secret and random, so that nobody can choose names that fall into one bucket. Returns 0;
 * -ENOMEM. */
int domi_groups_init(domi_groups *groups, uint32_t max, uint32_t members_max, uint32_t threads,
                     uint32_t pools, const uint64_t key[2]);

/* Returns the slot of a home in a group; NULL: actors of this home cannot be members. */
domi_group_slot *domi_group_slot_of_home(domi_group *group, const domi_manager *home);

/* Free all groups, when no thread uses them any more. A zeroed or finished registry is accepted. */
void domi_groups_fini(domi_groups *groups);

/* Open a group and publish to one, as domus_group_open() and domus_publish() do, on the thread of
 * `manager`. */
int domi_group_open(domi_manager *manager, const char *name, domi_group **ret_group);
int domi_group_publish(domi_manager *manager, domus_address sender, domi_group *group,
                       const domus_type *type, const void *payload);

/* Join an outlet to a group as domus_remote_join() does, from the thread of `manager`; the outlet
 * is linked on `home`. */
int domi_group_add_outlet(domi_manager *manager, domi_group *group, domi_manager *home,
                          domus_address outlet);

/* Returns the shard of a group on a home, or the address of zeros if there is none. acquire: pairs
 * with the release in make_shard_of_group(). */
static inline domus_address domi_group_shard_of_slot(const domi_group_slot *slot)
{
    domi_house *house = atomic_load_explicit((_Atomic(domi_house *) *)(uintptr_t)&slot->shard,
                                             memory_order_acquire);

    return house != NULL ? (domus_address){house, slot->lease} : (domus_address){NULL, 0};
}

/* The behaviour of a shard; its state begins zeroed. */
extern const domus_behaviour domi_shard_behaviour;

/* Handle a member's node at the shard's home: domi_group_let_member_join_or_leave() when it
 * arrives, domi_group_drop_late_node_of_member() when it comes too late, because the shard has
 * ended. */
void domi_group_let_member_join_or_leave(domi_manager *manager, domi_house *shard, domi_node *node);
void domi_group_drop_late_node_of_member(domi_manager *manager, domi_node *node);

/* Remove a house that ends from its groups; if it is a shard, remove its members, too. Home
 * only. */
void domi_group_remove_house_from_groups(domi_manager *manager, domi_house *house);

#endif
