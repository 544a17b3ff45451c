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
/* bytes that follow a message: the name and its length */
#define DOMI_WIDE_TAIL (DOMI_WIDE_NAME_MAX + 1u)

/* A group over the cluster. It is freed when it was not opened here and no node has members of
 * it. */
typedef struct domi_wide_group {
    char name[DOMI_WIDE_NAME_MAX + 1];
    struct domi_wide_group *next; /* the next group in its bucket */

    /* Members for groups that were opened here. */
    domus_group group; /* the group; zeroed: it was not opened here */
    uint32_t number;   /* index among the opened groups; constant */
    /* the group has an outlet, so its publications come to the gateways */
    bool has_outlet;
    bool has_members;                      /* there are members here, as the other nodes are told */
    uint64_t changed;                      /* number of the group's last change; 0: none */
    struct domi_wide_group *older, *newer; /* neighbours in the order of `changed` */

    /* Ids of the nodes that have members. */
    uint64_t *nodes;
    uint32_t nodes_count, nodes_room;
} domi_wide_group;

typedef struct domi_wide {
    domi_lock lock; /* guards all members */
    domi_wide_group *buckets[DOMI_WIDE_BUCKETS];
    uint32_t count;           /* groups in the table */
    domi_wide_group **opened; /* groups that were opened on this node, by number */
    uint32_t opened_count, opened_room;
    uint64_t changes; /* number of the last change */
    domi_wide_group *oldest, *newest;
} domi_wide;

/* Returns whether the bytes may be the name of a group, or of an export: 1..63 printable ASCII
 * bytes without spaces. */
bool domi_wide_is_name(const char *name, size_t length);

/* Find the group that was opened here under this name, or add it. Returns 0, and `ret_number`;
 * -ENOSPC at DOMUS_CLUSTER_GROUPS_MAX; -ENOMEM. */
int domi_wide_open(domi_wide *wide, const char *name, domus_group group, uint32_t *ret_number);

/* Return whether the group with this number has an outlet; and record that it has one. */
bool domi_wide_has_outlet(domi_wide *wide, uint32_t number);
void domi_wide_note_outlet(domi_wide *wide, uint32_t number);

/* Return the group that was opened here under this name, or with this number; zeroed if there is
 * none. */
domus_group domi_wide_find(domi_wide *wide, const char *name, size_t length);
domus_group domi_wide_at(domi_wide *wide, uint32_t number);

/* Update whether the group with this number has members here. Returns whether that has changed;
 * then a change is recorded. */
bool domi_wide_look(domi_wide *wide, uint32_t number);

/* Returns the number of the last change. */
uint64_t domi_wide_changes(domi_wide *wide);

/* One change of a group, as the other nodes are told it. */
typedef struct domi_wide_change {
    char name[DOMI_WIDE_NAME_MAX + 1];
    bool has_members;
} domi_wide_change;

/* Copy the oldest changes behind `from`, at most `room`. Returns how many; `ret_to` is the number
 * of the last. A group that has changed again since is copied once, in its current state. */
uint32_t domi_wide_copy_changes(domi_wide *wide, uint64_t from, domi_wide_change *ret_changes,
                                uint32_t room, uint64_t *ret_to);

/* Record whether a node has members of a group. Returns 0; -ENOSPC; -ENOMEM. */
int domi_wide_note(domi_wide *wide, const char *name, size_t length, uint64_t node,
                   bool has_members);

/* Copy the name of the group with this number, and the nodes that have members, at most `room`.
 * Returns how many nodes. */
uint32_t domi_wide_copy_nodes(domi_wide *wide, uint32_t number, char ret_name[DOMI_WIDE_TAIL],
                              uint64_t *ret_nodes, uint32_t room);

/* Remove a node that has ended from all groups. */
void domi_wide_forget(domi_wide *wide, uint64_t node);

void domi_wide_free(domi_wide *wide);

#endif
