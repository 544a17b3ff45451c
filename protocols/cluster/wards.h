/* The warden of a node, as its files see it: an actor that takes the parts of the grains that this
 * node is to have, and gives those that another one is to have now.
 *
 * The node that is to have a part follows from the names of the nodes that are up (rendezvous
 * hashing), so all wardens that see the same nodes say the same, and a node that comes or goes
 * moves no part of the others. Its holder stands in the store: the entry `g.PART` names the node,
 * and a change of it is made at the revision that was seen. So whatever the wardens believe, one
 * node has a part. That revision is the part's fence.
 *
 *   FREE     nobody has it: the entry says so, or names a node whose lease is over since
 *   OTHER    another node has it
 *   TAKES    this node writes its name into the entry
 *   OPEN     this node has it, and messages go to its grains
 *   CLOSES   it is to be given: no message goes to the grains any more, and they stop behind their
 *            mail
 *   GIVES    nothing of it lives here, and the entry is written that says so
 *   LOST     this node has lost its lease: the grains stop at once, since others may have them
 *
 *   FREE -> TAKES -> OPEN -> CLOSES -> GIVES -> FREE,    OPEN | CLOSES | GIVES -> LOST -> FREE
 *
 * An entry that names this node counts in no other state than these: it is taken or given anew. */
#ifndef DOMI_CLUSTER_WARDS_H
#define DOMI_CLUSTER_WARDS_H

#include "protocols/cluster/parts.h"
#include "protocols/cluster/registry.h"

#define DOMI_WARD_WRITES_MAX 32u /* entries that are written at a time, and parts that close */
/* Heartbeats for which nodes have to be the same before parts are given. */
#define DOMI_WARD_SETTLE 2u
#define DOMI_WARD_VALUE  8u /* bytes of an entry's value: the id of a node */

typedef enum domi_ward_state {
    DOMI_WARD_FREE,
    DOMI_WARD_OTHER,
    DOMI_WARD_TAKES,
    DOMI_WARD_OPEN,
    DOMI_WARD_CLOSES,
    DOMI_WARD_GIVES,
    DOMI_WARD_LOST,
} domi_ward_state;

typedef struct domi_ward {
    domi_ward_state state;
    uint64_t revision; /* of the entry; 0: there is none */
    uint64_t holder;   /* the node that the entry names; 0: none */
    uint64_t wanted;   /* id of the node that is to have it; 0: none is there */
    uint64_t since_ns; /* when the state began */
    uint32_t serial;   /* of the last change that was begun */
    uint32_t losses;   /* of the node's lease, when that was decided */
} domi_ward;

/* A node that may have parts. */
typedef struct domi_candidate {
    uint64_t id;
    uint64_t hash; /* the hash of the node's name */
} domi_candidate;

typedef struct domi_warden {
    domus_cluster *cluster;
    bool has_entries; /* the watch has told all that are there */
    bool gives_all;   /* this node leaves */
    bool tells;       /* domi_ward_tell_type is under way */
    bool looks;       /* the conversation that looks at leases is under way */
    bool has_asked;   /* domi_give_all_type came: `leaving` is to be answered */
    domus_kept leaving;
    uint32_t losses;     /* of the node's lease, as far as the warden has acted on them */
    uint32_t suspect;    /* the part at which the next search for a suspect begins */
    uint32_t writes;     /* entries that are being written */
    uint32_t reads;      /* and read, because they are doubted */
    uint64_t reads_ns;   /* when the last of these began */
    uint32_t closing;    /* parts in DOMI_WARD_CLOSES */
    uint64_t settled_ns; /* the candidates have been the same for long enough from then on */
    domi_candidate candidates[DOMUS_CLUSTER_NODES_MAX + 1];
    uint32_t candidates_count;
    uint64_t begun_ns; /* parts are taken from then on, so that the others are heard before */
    domi_ward parts[DOMUS_REMOTE_PARTS];
} domi_warden;

/* --- wanted.c ----------------------------------------------------------------------------------
 */

/* Look which nodes are up, and which of them is to have each part, if they are others than before.
 */
void domi_wanted_look(domus_stack *stack, domi_warden *self);

/* --- ward.c ------------------------------------------------------------------------------------
 */

/* The notice by which the warden tells itself to tell the gateways. */
extern const domus_type domi_ward_tell_type;

/* Change the state of a part, and see that the gateways are told if it concerns them. */
void domi_ward_move(domus_stack *stack, domi_warden *self, uint32_t index, domi_ward_state state);

/* Read from the entry of a part the state which it has while this node does nothing with it. */
domi_ward_state domi_ward_rest(const domi_warden *self, const domi_ward *at);

/* --- ward_entries.c ----------------------------------------------------------------------------
 */

/* An entry was seen (domus_nats_kv_entry_type). */
int domi_ward_take_entry(domus_stack *stack, void *self, const void *payload);

/* Write the entry of a part: `state` is TAKES or GIVES. Without room for one more it stays as it
 * is. */
void domi_ward_write(domus_stack *stack, domi_warden *self, uint32_t index, domi_ward_state state);

/* Find a node that has parts, and may be dead, or be without its lease; `ret_next` gets where the
 * next search is to begin, so that all are looked at. Returns 0 if there is none. */
uint64_t domi_ward_suspect(const domi_warden *self, uint32_t *ret_next);

/* A change of the entry of a part, as it was decided: entries that are seen before it is written
 * change nothing of that. */
typedef struct domi_ward_change {
    uint32_t index;
    uint32_t serial;   /* of the part: another one is of an earlier change, which was given up */
    uint64_t revision; /* of the entry that is to be changed; 0: there is none */
    uint64_t holder;   /* the node that the entry is to name; 0: none */
} domi_ward_change;

/* The notice by which the warden tells itself to make the change that it carries. */
extern const domus_type domi_ward_write_type;

/* The key of the entry of a part, and the value of one that names a node. */
void domi_ward_key(uint32_t index, char key[DOMI_KEY_SIZE]);
void domi_ward_write_holder(uint64_t id, unsigned char value[DOMI_WARD_VALUE]);

/* The change was made, with this revision; or not. */
void domi_ward_end_write(domus_stack *stack, domi_warden *self, const domi_ward_change *change,
                         int error, uint64_t revision);

/* A look at the lease of a node. */
typedef struct domi_ward_looking {
    uint64_t id;
    uint64_t revision; /* the newest that was seen when the look began */
} domi_ward_looking;

/* The newest revision of all entries that were seen. */
uint64_t domi_ward_newest(const domi_warden *self);

/* The lease of the node was over: what it had then is free. */
void domi_ward_bury(domus_stack *stack, domi_warden *self, const domi_ward_looking *look);

#endif
