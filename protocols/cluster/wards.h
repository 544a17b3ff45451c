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

/* entries that the warden writes at a time, and parts that are in DOMI_WARD_CLOSES at a time, at
 * most */
#define DOMI_WARD_WRITES_MAX 32u
/* Heartbeats for which the set of nodes must stay the same before the warden gives parts away. */
#define DOMI_WARD_SETTLE 2u
/* bytes of the value of a part's entry in the store: the id of a node */
#define DOMI_WARD_VALUE 8u

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
    uint64_t revision; /* revision of the part's entry in the store; 0: there is no entry */
    uint64_t holder;   /* id of the node that the part's entry names; 0: it names no node */
    uint64_t wanted;   /* id of the node that should have the part; 0: no node should */
    uint64_t since_ns; /* time at which the part's state began */
    uint32_t serial;   /* number of the last change of the part's entry that was begun */
    uint32_t losses; /* how often this node had lost its lease when the last write of the entry was
                        begun */
} domi_ward;

/* A node that may have parts of the grains, because it is up and does not leave. */
typedef struct domi_candidate {
    uint64_t id;
    uint64_t hash; /* hash of the candidate's name */
} domi_candidate;

typedef struct domi_warden {
    domus_cluster *cluster;
    bool has_entries; /* the watch on the parts' entries has delivered all entries that exist */
    bool gives_all;   /* this node leaves the cluster, so the warden gives all its parts away */
    /* a notice to itself (domi_ward_tell_type) by which the warden tells the gateways is under
     * way */
    bool tells;
    bool looks; /* the conversation that checks other nodes' leases is under way */
    /* domi_give_all_type has come, and the ask `leaving` must be answered when all parts are
     * given */
    bool has_asked;
    domus_kept leaving;
    /* value of domi_cluster_count_lost_leases() at the warden's last tick; when it changes, the
     * node's lease in the store has ended, and all parts are lost */
    uint32_t losses;
    uint32_t suspect;  /* part at which the next search for a node that may be dead begins */
    uint32_t writes;   /* number of entries of parts that are being written now */
    uint32_t reads;    /* number of entries of parts that are being read, as gateways doubt them */
    uint64_t reads_ns; /* time at which the last read of a doubted entry began */
    uint32_t closing;  /* number of parts that are in the state DOMI_WARD_CLOSES */
    /* time from which on the set of candidates counts as settled, so parts may be given */
    uint64_t settled_ns;
    domi_candidate candidates[DOMUS_CLUSTER_NODES_MAX + 1];
    uint32_t candidates_count;
    /* time from which on the warden takes parts: by then other nodes have been heard */
    uint64_t begun_ns;
    domi_ward parts[DOMUS_REMOTE_PARTS];
} domi_warden;

/* --- wanted.c --------------------------------------------------------------------------------- */

/* Find out which nodes are up, and if they have changed, which of them should have each part. */
void domi_wanted_assign_parts_to_nodes_up(domus_stack *stack, domi_warden *self);

/* --- ward.c ----------------------------------------------------------------------------------- */

/* The notice that the warden sends to itself, so that it tells the gateways of changes of parts. */
extern const domus_type domi_ward_tell_type;

/* Change the state of a part; if that concerns gateways, make sure that the warden tells them. */
void domi_ward_change_state_of_part(domus_stack *stack, domi_warden *self, uint32_t index,
                                    domi_ward_state state);

/* Returns the state of a part that follows from its entry, as long as this node neither takes nor
 * gives the part. */
domi_ward_state domi_ward_free_or_others_state_of_part(const domi_warden *self,
                                                       const domi_ward *at);

/* --- ward_entries.c --------------------------------------------------------------------------- */

/* Handle an entry of a part that the watch on the bucket has delivered
 * (domus_nats_kv_entry_type). */
int domi_ward_store_watched_entry_of_part(domus_stack *stack, void *self, const void *payload);

/* Write the entry of a part in the state TAKES or GIVES. Does nothing if too many writes are under
 * way. */
void domi_ward_begin_to_take_or_give_part(domus_stack *stack, domi_warden *self, uint32_t index,
                                          domi_ward_state state);

/* Find a node that has a part which this node should have, and that may be dead or without its
 * lease; `ret_next` gets the part at which the next search must begin, so that all nodes are
 * checked. Returns its id; 0 if there is none. */
uint64_t domi_ward_find_node_maybe_dead(const domi_warden *self, uint32_t *ret_next);

/* A decided change of the entry of a part: it stays the same, whatever entries come before it is
 * written. */
typedef struct domi_ward_change {
    uint32_t index;
    /* value of the part's `serial`; if the part has another one by now, the change was given up */
    uint32_t serial;
    uint64_t revision; /* revision of the entry that is replaced; 0: there is no entry yet */
    uint64_t holder;   /* id of the node that the new entry names; 0: none */
} domi_ward_change;

/* The notice by which the warden tells itself to make the change of an entry that the notice
 * carries. */
extern const domus_type domi_ward_write_type;

/* Write the key of a part's entry; write the value of an entry, which names a node. */
void domi_ward_write_key_of_part(uint32_t index, char key[DOMI_KEY_SIZE]);
void domi_ward_write_value_of_entry(uint64_t id, unsigned char value[DOMI_WARD_VALUE]);

/* End a change of a part's entry, which was written with this revision, or has failed with
 * `error`. */
void domi_ward_change_state_after_write(domus_stack *stack, domi_warden *self,
                                        const domi_ward_change *change, int error,
                                        uint64_t revision);

/* A check whether another node still has its lease. */
typedef struct domi_ward_looking {
    uint64_t id;
    /* newest revision of an entry that the warden had seen when the check began */
    uint64_t revision;
} domi_ward_looking;

/* Returns the newest revision of all parts' entries that the warden has seen. */
uint64_t domi_ward_newest_revision_seen(const domi_warden *self);

/* Free the parts of a node whose lease was found to be over. */
void domi_ward_free_parts_of_dead_node(domus_stack *stack, domi_warden *self,
                                       const domi_ward_looking *look);

#endif
