/* Groups: names for sets of actors, and who they are.
 *
 * On each thread that has members a group has a shard, an actor that never leaves it. To publish is
 * one message to each shard; the shard puts a notice to each of its members by the home lane. Its
 * list of members is touched by its thread alone: joining and leaving travel to it as nodes of
 * their own kind, which are never refused and take effect as they are sorted, and a member that
 * ends is struck directly, because it ends on the same thread.
 *
 * What threads share of a group is little: of each thread its shard, set once, and a count of
 * members. A joiner counts himself before he is on his way, so whoever hears of his joining finds
 * the count and the shard, and puts behind him. */
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

/* All groups of a system. Groups are added, never removed: finding takes no lock. */
struct domi_groups {
    _Atomic(domi_group *) *buckets; /* constant from here on ... */
    uint64_t key[2];
    uint32_t buckets_count; /* a power of two */
    uint32_t max;
    uint32_t members_max;
    uint32_t homes;     /* ... to here */
    domi_spinlock lock; /* for adding, and for setting a shard */
    uint32_t count;
};

/* What a group has of one home. The line is written when somebody joins or leaves. */
typedef struct domi_group_slot {
    alignas(64) _Atomic(domi_house *) shard; /* set once */
    uint32_t lease;                          /* of the shard; before it */
    _Atomic uint32_t members;                /* joins under way among them */
} domi_group_slot;

struct domi_group {
    char name[DOMI_NAME_MAX + 1];
    domi_group *next; /* in its bucket */
    domi_groups *groups;
    alignas(64) _Atomic uint32_t members; /* joins under way among them */
    domi_group_slot slots[];              /* by home */
};

/* A membership, on its way to the shard and then in two lists, its shard's and its house's (in the
 * family); or the wish to end one. Home's, from when it has arrived. */
struct domi_member {
    domi_node node; /* its `next` is in the shard's list */
    domi_group *group;
    domi_house *house;
    uint32_t lease;
    bool leaves;
    domi_member *previous;
    domi_member *next_of_house;
    domi_member *previous_of_house;
};

static_assert(sizeof(domi_member) == 64, "one cache line");

/* For up to `max` groups, whose shards live on `homes` homes. `key` is to be secret and random.
 * Returns 0; -ENOMEM. */
int domi_groups_init(domi_groups *groups, uint32_t max, uint32_t members_max, uint32_t homes,
                     const uint64_t key[2]);

/* When no thread uses them any more. Zeroed or finished ones are taken. */
void domi_groups_fini(domi_groups *groups);

/* As domus_group_open() and domus_publish(), from the thread of `manager`. */
int domi_group_open(domi_manager *manager, const char *name, domi_group **ret_group);
int domi_group_publish(domi_manager *manager, domus_address sender, domi_group *group,
                       const domus_type *type, const void *payload);

/* What a shard is; its state begins zeroed. */
extern const domus_behaviour domi_shard_behaviour;

/* A member's node has come to the shard's home; or it came too late. */
void domi_group_arrived(domi_manager *manager, domi_house *shard, domi_node *node);
void domi_group_dropped(domi_manager *manager, domi_node *node);

/* The house ends: it leaves its groups; a shard lets its members go. Home. */
void domi_group_house_ends(domi_manager *manager, domi_house *house);

#endif
