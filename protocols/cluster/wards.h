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

/* entries that are written at a time, and parts that close at a time, at most */
#define DOMI_WARD_WRITES_MAX 32u
/* Heartbeats for which the set of nodes must be the same before parts are given. */
#define DOMI_WARD_SETTLE 2u
#define DOMI_WARD_VALUE  8u /* bytes of an entry's value, the id of a node */

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
    uint64_t revision; /* revision of the entry; 0: there is no entry */
    uint64_t holder;   /* id of the node that the entry names; 0: none */
    uint64_t wanted;   /* id of the node that should have the part; 0: there is none */
    uint64_t since_ns; /* time at which the state began */
    uint32_t serial;   /* number of the last change of this entry that was begun */
    uint32_t losses;   /* number of the node's lost leases, when the state was decided */
} domi_ward;

/* A node that may have parts of the grains. */
typedef struct domi_candidate {
    uint64_t id;
    uint64_t hash; /* hash of the node's name */
} domi_candidate;

typedef struct domi_warden {
    domus_cluster *cluster;
    bool has_entries; /* the watch has delivered all existing entries */
    bool gives_all;   /* this node leaves, so it gives all its parts */
    bool tells;       /* a domi_ward_tell_type is under way */
    bool looks;       /* the conversation that checks leases is under way */
    bool has_asked;   /* domi_give_all_type has come, and `leaving` must be answered */
    domus_kept leaving;
    /* value of domi_losses() at the warden's last tick; when it changes, the node's lease in the
     * store has ended, and all parts are lost */
    uint32_t losses;
    uint32_t suspect;    /* part at which the next search for a suspect node begins */
    uint32_t writes;     /* number of entries that are being written */
    uint32_t reads;      /* number of entries that are being read, because they are doubted */
    uint64_t reads_ns;   /* time at which the last read began */
    uint32_t closing;    /* number of parts in DOMI_WARD_CLOSES */
    uint64_t settled_ns; /* time from which on the candidates count as unchanged for long enough */
    domi_candidate candidates[DOMUS_CLUSTER_NODES_MAX + 1];
    uint32_t candidates_count;
    /* time from which on parts are taken, so that other nodes are heard before */
    uint64_t begun_ns;
    domi_ward parts[DOMUS_REMOTE_PARTS];
} domi_warden;

/* --- wanted.c --------------------------------------------------------------------------------- */

/* Find out which nodes are up, and if these have changed, who should have each part. */
void domi_wanted_look(domus_stack *stack, domi_warden *self);

/* --- ward.c ----------------------------------------------------------------------------------- */

/* The notice by which the warden tells itself to tell the gateways. */
extern const domus_type domi_ward_tell_type;

/* Change the state of a part, and make sure that the gateways are told if it concerns them. */
void domi_ward_move(domus_stack *stack, domi_warden *self, uint32_t index, domi_ward_state state);

/* Returns the state that the entry of a part implies while this node does nothing with the part. */
domi_ward_state domi_ward_rest(const domi_warden *self, const domi_ward *at);

/* --- ward_entries.c --------------------------------------------------------------------------- */

/* Handle an entry that the watch has delivered (domus_nats_kv_entry_type). */
int domi_ward_take_entry(domus_stack *stack, void *self, const void *payload);

/* Write the entry of a part, for the state TAKES or GIVES. If too many writes are under way,
 * nothing changes. */
void domi_ward_write(domus_stack *stack, domi_warden *self, uint32_t index, domi_ward_state state);

/* Find a node that has parts, and may be dead, or without its lease; `ret_next` gets the part at
 * which the next search must begin, so that all are checked. Returns 0 if there is none. */
uint64_t domi_ward_suspect(const domi_warden *self, uint32_t *ret_next);

/* A change of a part's entry as it was decided: entries that come before it is written do not
 * change it. */
typedef struct domi_ward_change {
    uint32_t index;
    uint32_t serial;   /* `serial` of the part; if it differs, the change was given up */
    uint64_t revision; /* revision of the entry that is changed; 0: there is none */
    uint64_t holder;   /* id of the node that the entry will name; 0: none */
} domi_ward_change;

/* The notice by which the warden tells itself to make the change that it carries. */
extern const domus_type domi_ward_write_type;

/* Write the key of the entry of a part, and the value of an entry that names a node. */
void domi_ward_key(uint32_t index, char key[DOMI_KEY_SIZE]);
void domi_ward_write_holder(uint64_t id, unsigned char value[DOMI_WARD_VALUE]);

/* End a change of an entry, which was made with this revision, or has failed. */
void domi_ward_end_write(domus_stack *stack, domi_warden *self, const domi_ward_change *change,
                         int error, uint64_t revision);

/* A check of a node's lease. */
typedef struct domi_ward_looking {
    uint64_t id;
    uint64_t revision; /* newest revision that was seen when the check began */
} domi_ward_looking;

/* Returns the newest revision of all entries that were seen. */
uint64_t domi_ward_newest(const domi_warden *self);

/* Free the parts that a node had when its lease was found to be over. */
void domi_ward_bury(domus_stack *stack, domi_warden *self, const domi_ward_looking *look);

#endif
