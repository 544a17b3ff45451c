/* The registrar of a node: an actor that holds the node's lease in the key-value store, and the
 * names of the actors here.
 *
 * A cluster has two buckets. In `dm_NAME_leases` entries live for lease_ns; a node renews its own,
 * `n.ID`. In `dm_NAME_names` they stay: an entry `w.NAME` tells which actor of which node has the
 * name. An entry whose node has no lease counts as none: a node that wants the name changes the
 * entry at the revision that it has seen, so of several that try, one succeeds.
 *
 * A node trusts its lease until lease_ns have passed, by its own clock, since it began to write the
 * last entry: the server counts from when it has received the entry, which is later. */
#ifndef DOMI_CLUSTER_REGISTRY_H
#define DOMI_CLUSTER_REGISTRY_H

#include "protocols/cluster/inside.h"

#include <domus/nats_kv.h>

#define DOMI_NAMES_MAX     65536u
#define DOMI_NAMES_BUCKETS 1024u
/* value of `place` of a name that is not in the cluster's list of names */
#define DOMI_UNLISTED UINT32_MAX
#define DOMI_KEY_SIZE 256u
/* bytes of the value of a name's entry in the store: the name of an actor's address */
#define DOMI_ENTRY_BYTES DOMI_NAME_BYTES

/* A name that an actor of this node has registered for the whole cluster. */
typedef struct domi_name domi_name;

struct domi_name {
    char name[DOMUS_CLUSTER_NAME_MAX + 1];
    domus_address actor;
    domus_watch watch;
    /* revision of the name's entry in the store; 0: the name is still being registered */
    uint64_t revision;
    uint32_t place; /* index of this name in the cluster's list of names (listed.c) */
    domi_name *next;
};

typedef struct domi_registrar {
    domus_cluster *cluster;
    /* addresses of the two buckets of the store; nobody: this machine is alone, or they are not
     * open yet */
    domus_address leases, entries;
    /* revision of the entry that is this node's lease; 0: the node has no lease */
    uint64_t lease_revision;
    uint64_t valid_until_ns; /* time until which this node's lease is valid; 0: it is not valid */
    int lease_error;         /* the errno because of which this node has no lease */
    /* this node has had a lease, so the servers have JetStream, even if it has no leader now */
    bool had_lease;
    uint32_t count;
    domi_name *names[DOMI_NAMES_BUCKETS];
    /* names that this node has lost, whose entries are deleted when it has a lease again */
    domi_name *lost;
    bool is_sweeping; /* the conversation that deletes the entries of lost names is under way */
} domi_registrar;

/* --- names.c ---------------------------------------------------------------------------------- */

domi_name *domi_name_find(domi_registrar *registrar, const char *name);

/* Add a name to the registrar's table before its entry in the store is written, and watch its
 * actor. Returns 0; -ENOSPC; -ENOMEM; or as domus_watch_actor(). */
int domi_name_add_and_watch_actor(domus_stack *stack, domi_registrar *registrar, const char *name,
                                  domus_address actor);

/* Remove a name from the registrar's table, so that the caller owns it. Returns NULL if the table
 * does not have it. */
domi_name *domi_name_take_from_table(domus_stack *stack, domi_registrar *registrar,
                                     const char *name);
void domi_name_remove_and_free(domus_stack *stack, domi_registrar *registrar, const char *name);

/* --- listed.c --------------------------------------------------------------------------------- */

/* Allocate memory in the list of names for `count` names. Returns 0; -ENOMEM. */
int domi_listed_reserve_memory(domus_cluster *cluster, uint32_t count);

/* Add a registered name to the list of names, which must have room; remove a name, if the list has
 * it. Only the registrar calls these. */
void domi_listed_add_name(domus_cluster *cluster, domi_name *name);
void domi_listed_remove_name(domus_cluster *cluster, domi_name *name);

/* --- registrar.c ------------------------------------------------------------------------------ */

/* Make the key of a node's lease in the store, `n.ID`. */
void domi_make_key_of_lease(uint64_t id, char key[DOMI_KEY_SIZE]);

/* The payload of an ask to the registrar to register, unregister or find a name. */
typedef struct domi_name_request {
    char name[DOMUS_CLUSTER_NAME_MAX + 1];
} domi_name_request;

extern const domus_type domi_register_type, domi_unregister_type, domi_find_type;

#endif
