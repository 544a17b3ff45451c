/* Groups over the cluster, which all gateways of a node share: which groups were opened here, which
 * have members here, and which nodes have members of each.
 *
 * A node numbers the changes of its own groups (a group gets its first member, or loses its last
 * one) and sends them to the others in this order (interest.c). So another node that has the
 * changes up to some number knows the state at that time, and knows which changes are missing.
 *
 * The table has its own lock, under which no other lock is taken. */
#ifndef DOMI_CLUSTER_WIDE_H
#define DOMI_CLUSTER_WIDE_H

#include "protocols/cluster/lock.h"

#include <domus/cluster.h>
#include <domus/group.h>

#define DOMI_WIDE_BUCKETS 4096u
/* bytes of a group's name, at most, as in domus/group.h */
#define DOMI_WIDE_NAME_MAX 63u
/* bytes that follow a published message: the group's name, and a byte with the name's length */
#define DOMI_WIDE_TAIL (DOMI_WIDE_NAME_MAX + 1u)

/* A group over the cluster. It is freed when it was not opened here and no node has members of
 * it. */
typedef struct domi_wide_group {
    char name[DOMI_WIDE_NAME_MAX + 1];
    struct domi_wide_group *next; /* the next group in its bucket of the hash table */

    /* Members for a group that was opened on this node. */
    domus_group group; /* the group as this node's system has it; zeroed: it was not opened here */
    uint32_t number;   /* index of the group among those that were opened here; constant */
    /* the group has an outlet, so its publications come to the gateways */
    bool has_outlet;
    bool has_members; /* there are members of the group here, as the other nodes have been told */
    uint64_t changed; /* number of this group's last change; 0: it has not changed */
    /* neighbours in the list of groups, in the order of `changed` */
    struct domi_wide_group *older, *newer;

    /* Ids of the other nodes that have members of the group. */
    uint64_t *nodes;
    uint32_t nodes_count, nodes_room;
} domi_wide_group;

typedef struct domi_wide {
    domi_lock lock; /* guards all members of the table of groups */
    domi_wide_group *buckets[DOMI_WIDE_BUCKETS];
    uint32_t count; /* number of groups in the table */
    /* groups that were opened on this node, at the index that is their number */
    domi_wide_group **opened;
    uint32_t opened_count, opened_room;
    uint64_t changes; /* number of the last change of a group of this node */
    domi_wide_group *oldest, *newest;
} domi_wide;

/* Returns whether the bytes may be the name of a group, or of an export: 1..63 printable ASCII
 * bytes without spaces. */
bool domi_wide_is_valid_name(const char *name, size_t length);

/* Find the group that was opened here under this name, or add it. Returns 0, and `ret_number`;
 * -ENOSPC at DOMUS_CLUSTER_GROUPS_MAX; -ENOMEM. */
int domi_wide_open_or_add_group(domi_wide *wide, const char *name, domus_group group,
                                uint32_t *ret_number);

/* Return whether the group with this number has an outlet; record that the group has one. */
bool domi_wide_has_group_outlet(domi_wide *wide, uint32_t number);
void domi_wide_record_outlet(domi_wide *wide, uint32_t number);

/* Return the group that was opened here under this name; return the group with this number. The
 * result is zeroed if there is none. */
domus_group domi_wide_find_opened_group(domi_wide *wide, const char *name, size_t length);
domus_group domi_wide_group_by_number(domi_wide *wide, uint32_t number);

/* Update whether the group with this number has members here. If that has changed, record a change
 * with the next number, and return true. */
bool domi_wide_update_local_members(domi_wide *wide, uint32_t number);

/* Returns the number of the last change of this node's groups. */
uint64_t domi_wide_last_change_number(domi_wide *wide);

/* One change of a group of this node, as the other nodes are told of it. */
typedef struct domi_wide_change {
    char name[DOMI_WIDE_NAME_MAX + 1];
    bool has_members;
} domi_wide_change;

/* Copy the oldest changes of this node's groups behind number `from`, at most `room`. Returns how
 * many; `ret_to` gets the number of the last one. A group that has changed again since is copied
 * once, in its current state. */
uint32_t domi_wide_copy_oldest_changes(domi_wide *wide, uint64_t from,
                                       domi_wide_change *ret_changes, uint32_t room,
                                       uint64_t *ret_to);

/* Record whether another node has members of a group. Returns 0; -ENOSPC; -ENOMEM. */
int domi_wide_record_members_of_node(domi_wide *wide, const char *name, size_t length,
                                     uint64_t node, bool has_members);

/* Copy the name of the group with this number, and the ids of the nodes that have members, at most
 * `room`. Returns how many nodes there are. */
uint32_t domi_wide_copy_nodes_with_members(domi_wide *wide, uint32_t number,
                                           char ret_name[DOMI_WIDE_TAIL], uint64_t *ret_nodes,
                                           uint32_t room);

/* Remove a node that has ended from the lists of nodes of all groups. */
void domi_wide_remove_ended_node(domi_wide *wide, uint64_t node);

void domi_wide_free(domi_wide *wide);

#endif
