/* Groups over the cluster, as all gateways of a node see them: which of them were opened here,
 * which have members here, and which nodes have members of each.
 *
 * A node numbers the changes of its own groups (one has its first member, or its last one has left)
 * and tells them to the others in this order (interest.c). So another node that holds the changes
 * up to some number knows all that was so until then, and what is missing is known, too.
 *
 * The table is under its own lock. No other lock is taken under it. */
#ifndef DOMI_CLUSTER_WIDE_H
#define DOMI_CLUSTER_WIDE_H

#include "protocols/cluster/lock.h"

#include <domus/cluster.h>
#include <domus/group.h>

#define DOMI_WIDE_BUCKETS  4096u
#define DOMI_WIDE_NAME_MAX 63u                       /* bytes, as domus/group.h has it */
#define DOMI_WIDE_TAIL     (DOMI_WIDE_NAME_MAX + 1u) /* bytes behind a message: name and length */

/* A group over the cluster. It is freed when it was not opened here and no node has members. */
typedef struct domi_wide_group {
    char name[DOMI_WIDE_NAME_MAX + 1];
    struct domi_wide_group *next; /* in its bucket */

    /* These are for groups that were opened here. */
    domus_group group;                     /* zeroed: it was not */
    uint32_t number;                       /* its place among those; constant */
    bool has_outlet;                       /* publications come to the gateways */
    bool has_members;                      /* as the others are told */
    uint64_t changed;                      /* the number of its last change; 0: none */
    struct domi_wide_group *older, *newer; /* by `changed` */

    /* Nodes that have members, by id. */
    uint64_t *nodes;
    uint32_t nodes_count, nodes_room;
} domi_wide_group;

typedef struct domi_wide {
    domi_lock lock; /* guards all of it */
    domi_wide_group *buckets[DOMI_WIDE_BUCKETS];
    uint32_t count;           /* groups in the table */
    domi_wide_group **opened; /* groups that were opened on this node, by number */
    uint32_t opened_count, opened_room;
    uint64_t changes; /* the number of the last change */
    domi_wide_group *oldest, *newest;
} domi_wide;

/* True if these bytes can be the name of a group, or of an export: 1..63 printable ASCII bytes
 * without space. */
bool domi_wide_is_name(const char *name, size_t length);

/* Find the group that was opened here under this name, or add it. Returns 0; -ENOSPC at
 * DOMUS_CLUSTER_GROUPS_MAX; -ENOMEM. `ret_number` is that of the group. */
int domi_wide_open(domi_wide *wide, const char *name, domus_group group, uint32_t *ret_number);

/* Look whether the group of this number has an outlet; note that it has one. */
bool domi_wide_has_outlet(domi_wide *wide, uint32_t number);
void domi_wide_note_outlet(domi_wide *wide, uint32_t number);

/* The group that was opened here under this name, or number; zeroed: it was not. */
domus_group domi_wide_find(domi_wide *wide, const char *name, size_t length);
domus_group domi_wide_at(domi_wide *wide, uint32_t number);

/* Look whether the group of this number has members now. Returns whether that has changed, which is
 * noted as a change then. */
bool domi_wide_look(domi_wide *wide, uint32_t number);

/* The number of the last change. */
uint64_t domi_wide_changes(domi_wide *wide);

/* One change, as the others are told it. */
typedef struct domi_wide_change {
    char name[DOMI_WIDE_NAME_MAX + 1];
    bool has_members;
} domi_wide_change;

/* Copy the oldest changes behind `from`, at most `room`. Returns how many; `ret_to` is the number
 * of the last. A group that has changed again since is copied once, as it is now. */
uint32_t domi_wide_copy_changes(domi_wide *wide, uint64_t from, domi_wide_change *ret_changes,
                                uint32_t room, uint64_t *ret_to);

/* Note that a node has members of a group, or has none. Returns 0; -ENOSPC; -ENOMEM. */
int domi_wide_note(domi_wide *wide, const char *name, size_t length, uint64_t node,
                   bool has_members);

/* Copy the name of the group of this number, and the nodes that have members, at most `room`.
 * Returns how many. */
uint32_t domi_wide_copy_nodes(domi_wide *wide, uint32_t number, char ret_name[DOMI_WIDE_TAIL],
                              uint64_t *ret_nodes, uint32_t room);

/* The node has ended: it has no members any more. */
void domi_wide_forget(domi_wide *wide, uint64_t node);

void domi_wide_free(domi_wide *wide);

#endif
