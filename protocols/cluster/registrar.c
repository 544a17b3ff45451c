/* The registrar: an actor that keeps the names of this node's actors for the whole cluster
 * (registry.h). */
#include "protocols/cluster/parts.h"
#include "protocols/cluster/registry.h"

#include <domus/await.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)

static const domus_type keep_type = {.name = "cluster keep lease"};
static const domus_type sweep_type = {.name = "cluster sweep names"};

/* --- entries in the store --------------------------------------------------------------------- */

static void make_key_of_name(const char *name, char key[DOMI_KEY_SIZE])
{
    (void)snprintf(key, DOMI_KEY_SIZE, "w.");
    (void)domus_nats_kv_make_key(name, strlen(name), key + 2, DOMI_KEY_SIZE - 2);
}

void domi_make_key_of_lease(uint64_t id, char key[DOMI_KEY_SIZE])
{
    (void)snprintf(key, DOMI_KEY_SIZE, "n.%016llx", (unsigned long long)id);
}

static bool has_no_servers(const domi_registrar *registrar)
{
    return domi_cluster_has_no_servers(registrar->cluster);
}

/* Returns 0 if this node holds its lease now; otherwise the errno that the asker gets. */
static int check_lease_of_this_node(const domus_stack *stack, const domi_registrar *registrar)
{
    if (has_no_servers(registrar))
        return 0;
    if (registrar->valid_until_ns > domus_now_ns(stack))
        return 0;
    return registrar->lease_error != 0 ? registrar->lease_error : -EHOSTDOWN;
}

/* Write the value of a name's entry in the store: the name of the actor's address. */
static void write_entry_of_name(domus_stack *stack, const domi_registrar *registrar,
                                domus_address actor, unsigned char bytes[DOMI_ENTRY_BYTES])
{
    domus_remote_name name = {.lease = 0};

    (void)domus_remote_name_of(stack, actor, &name);
    if (name.node == DOMUS_REMOTE_HERE)
        name.node = registrar->cluster->id;
    domi_remote_name_write(&name, bytes);
}

static bool read_entry_of_name(const domus_answer *answer, domus_remote_name *ret_name)
{
    domus_slice value = domus_nats_kv_value(answer->payload);

    if (value.size != DOMI_ENTRY_BYTES)
        return false;
    domi_remote_name_read((const unsigned char *)domus_slice_data(value), ret_name);
    return ret_name->node != 0 && ret_name->lease != 0;
}

/* --- registering a name ----------------------------------------------------------------------- */

typedef struct registering {
    char name[DOMUS_CLUSTER_NAME_MAX + 1];
    domus_address actor;
    uint64_t revision; /* revision of the name's entry in the store that is to be replaced */
    uint64_t owner;    /* id of the node to which the name's entry belongs */
} registering;

/* Delete the entry of a name in the store, if it still has the revision that is known here, and do
 * not wait for the answer. */
static void delete_entry_of_name(domus_stack *stack, const domi_registrar *registrar,
                                 const char *name, uint64_t revision)
{
    domus_nats_kv_put put = {.revision = revision,
                             .operation = DOMUS_NATS_KV_DELETE,
                             .condition = DOMUS_NATS_KV_IF_REVISION};

    if (has_no_servers(registrar) || revision == 0)
        return;
    make_key_of_name(name, put.key);
    (void)domus_ask_add(stack, registrar->entries, &domus_nats_kv_put_type, &put, 0, 0);
}

static int return_estale_to_asker(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)stack, (void)self, (void)answer;
    return -ESTALE;
}

/* Finish a registration whose entry was written: the name belongs to the actor, if the actor still
 * lives and the node still has its lease. */
static int finish_registration_of_written_entry(domus_stack *stack, domi_registrar *registrar,
                                                const registering *frame, uint64_t revision)
{
    domi_name *at = domi_name_find(registrar, frame->name);

    /* the actor that wanted the name has ended meanwhile */
    if (at == NULL || !domus_address_equals(at->actor, frame->actor)) {
        delete_entry_of_name(stack, registrar, frame->name, revision);
        return domus_wait_all(stack, return_estale_to_asker);
    }
    at->revision = revision;
    domi_listed_add_name(registrar->cluster, at);
    return domus_reply(stack, &domus_cluster_done_type, NULL);
}

static int remove_name_and_return_error(domus_stack *stack, domi_registrar *registrar,
                                        const registering *frame, int error)
{
    const domi_name *at = domi_name_find(registrar, frame->name);

    if (at != NULL && domus_address_equals(at->actor, frame->actor))
        domi_name_remove_and_free(stack, registrar, frame->name);
    return error;
}

DOMUS_SEQUENCE(register_name, registering)
{
    domi_registrar *registrar = self;
    char key[DOMI_KEY_SIZE];
    unsigned char value[DOMI_ENTRY_BYTES];
    domus_remote_name found;
    int error;

    if (message == NULL)
        make_key_of_name(frame->name, key);
    DOMUS_BEGIN;
    memcpy(frame->name, ((const domi_name_request *)message)->name, sizeof frame->name);
    frame->actor = domus_sender(stack);
    domi_name *other;
    other = domi_name_find(registrar, frame->name);
    if (other != NULL)
        return domus_address_equals(other->actor, frame->actor) ? -EALREADY : -EEXIST;
    error = check_lease_of_this_node(stack, registrar);
    if (error == 0)
        error = domi_name_add_and_watch_actor(stack, registrar, frame->name, frame->actor);
    if (error != 0)
        return error;
    if (has_no_servers(registrar))
        return finish_registration_of_written_entry(stack, registrar, frame, 1);
    make_key_of_name(frame->name, key);
    write_entry_of_name(stack, registrar, frame->actor, value);
    DOMUS_AWAIT(domus_nats_kv_create(stack, registrar->entries, key, value, sizeof value, 0, then));
    if (answer->error == 0)
        return finish_registration_of_written_entry(
            stack, registrar, frame, ((const domus_nats_kv_revision *)answer->payload)->revision);
    if (answer->error != -EEXIST)
        return remove_name_and_return_error(stack, registrar, frame, answer->error);

    DOMUS_AWAIT(domus_nats_kv_read(stack, registrar->entries, key, 0, then));
    if (answer->error != 0)
        return remove_name_and_return_error(stack, registrar, frame,
                                            answer->error == -ENOENT ? -EEXIST : answer->error);
    if (!read_entry_of_name(answer, &found))
        return remove_name_and_return_error(stack, registrar, frame, -EEXIST);
    frame->revision = ((const domus_nats_kv_entry *)answer->payload)->revision;
    frame->owner = found.node;
    /* The entry names this node, but the name is not in the table: its actor has ended, or has lost
     * its names, so the entry may be replaced. */
    if (found.node != registrar->cluster->id) {
        domi_make_key_of_lease(frame->owner, key);
        DOMUS_AWAIT(domus_nats_kv_read(stack, registrar->leases, key, 0, then));
        if (answer->error != -ENOENT)
            return remove_name_and_return_error(stack, registrar, frame,
                                                answer->error == 0 ? -EEXIST : answer->error);
    }
    make_key_of_name(frame->name, key);
    write_entry_of_name(stack, registrar, frame->actor, value);
    DOMUS_AWAIT(domus_nats_kv_update(stack, registrar->entries, key, value, sizeof value,
                                     frame->revision, 0, then));
    if (answer->error != 0)
        return remove_name_and_return_error(stack, registrar, frame, answer->error);
    return finish_registration_of_written_entry(
        stack, registrar, frame, ((const domus_nats_kv_revision *)answer->payload)->revision);
    DOMUS_END;
}

/* --- unregistering, and the end of actors ----------------------------------------------------- */

static int ignore_answer_to_deletion(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)stack, (void)self, (void)answer;
    return 0;
}

static int reply_that_name_is_registered(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)self, (void)answer;
    return domus_reply(stack, &domus_cluster_done_type, NULL);
}

static int unregister_name(domus_stack *stack, void *self, const void *payload)
{
    domi_registrar *registrar = self;
    const domi_name_request *request = payload;
    domi_name *name = domi_name_find(registrar, request->name);

    if (name == NULL || !domus_address_equals(name->actor, domus_sender(stack)))
        return -ENOENT;
    delete_entry_of_name(stack, registrar, name->name, name->revision);
    domi_name_remove_and_free(stack, registrar, request->name);
    return domus_wait_all(stack, reply_that_name_is_registered);
}

static int remove_names_of_ended_actor(domus_stack *stack, void *self, const void *payload)
{
    domi_registrar *registrar = self;
    domus_address who = ((const domus_down *)payload)->who;

    for (uint32_t i = 0; i < DOMI_NAMES_BUCKETS; i++) {
        domi_name *next;
        for (domi_name *name = registrar->names[i]; name != NULL; name = next) {
            next = name->next;
            if (!domus_address_equals(name->actor, who))
                continue;
            delete_entry_of_name(stack, registrar, name->name, name->revision);
            domi_name_remove_and_free(stack, registrar, name->name);
        }
    }
    return domus_wait_all(stack, ignore_answer_to_deletion);
}

/* --- finding a name --------------------------------------------------------------------------- */

/* Returns whether the node that an entry names is this one, or is known to be up. */
static bool is_node_up(domi_registrar *registrar, uint64_t id)
{
    domus_cluster *cluster = registrar->cluster;

    domi_lock_take(&cluster->lock);
    const domi_node_record *record = domi_node_find(cluster, id);
    bool is = id == cluster->id || (record != NULL && record->state == DOMUS_NODE_UP);
    domi_lock_release(&cluster->lock);
    return is;
}

static int reply_with_address_of_name(domus_stack *stack, const domi_registrar *registrar,
                                      domus_remote_name name)
{
    domus_cluster_found found;

    if (name.node == registrar->cluster->id)
        name.node = DOMUS_REMOTE_HERE;
    int error = domus_remote_address(stack, &name, &found.address);
    if (error != 0)
        return error == -ESTALE ? -ENOENT : error;
    return domus_reply(stack, &domus_cluster_found_type, &found);
}

struct finding {
    domus_remote_name found;
};

DOMUS_SEQUENCE(find_name_in_cluster, struct finding)
{
    domi_registrar *registrar = self;
    char key[DOMI_KEY_SIZE];

    DOMUS_BEGIN;
    const domi_name *name;
    name = domi_name_find(registrar, ((const domi_name_request *)message)->name);
    if (name != NULL && name->revision != 0)
        return domus_reply(stack, &domus_cluster_found_type, &(domus_cluster_found){name->actor});
    if (has_no_servers(registrar))
        return -ENOENT;
    if (registrar->entries.house == NULL)
        return -EHOSTDOWN;
    make_key_of_name(((const domi_name_request *)message)->name, key);
    DOMUS_AWAIT(domus_nats_kv_read(stack, registrar->entries, key, 0, then));
    if (answer->error != 0)
        return answer->error;
    if (!read_entry_of_name(answer, &frame->found) || frame->found.node == registrar->cluster->id)
        return -ENOENT; /* the entry names an actor here, but no actor has the name any more */
    if (is_node_up(registrar, frame->found.node))
        return reply_with_address_of_name(stack, registrar, frame->found);
    domi_make_key_of_lease(frame->found.node, key);
    DOMUS_AWAIT(domus_nats_kv_read(stack, registrar->leases, key, 0, then));
    if (answer->error != 0)
        return answer->error;
    return reply_with_address_of_name(stack, registrar, frame->found);
    DOMUS_END;
}

/* --- the lease of the node -------------------------------------------------------------------- */

/* Remove all names after this node's lease has ended: other nodes' actors may have them by now.
 * Entries that still name this node would be valid with its next lease, and are deleted then. */
static void tell_actors_and_lose_all_names(domus_stack *stack, domi_registrar *registrar)
{
    for (uint32_t i = 0; i < DOMI_NAMES_BUCKETS; i++) {
        while (registrar->names[i] != NULL) {
            domus_cluster_lost lost;
            domi_name *name =
                domi_name_take_from_table(stack, registrar, registrar->names[i]->name);
            memcpy(lost.name, name->name, sizeof lost.name);
            (void)domus_notice(stack, name->actor, &domus_cluster_lost_type, &lost);
            name->next = registrar->lost;
            registrar->lost = name;
        }
    }
}

/* Remove a name from the list of lost names. Other names may have been added before it. */
static void remove_lost_name(domi_registrar *registrar, domi_name *name)
{
    domi_name **link = &registrar->lost;

    while (*link != name)
        link = &(*link)->next;
    *link = name->next;
    free(name);
}

struct sweeping {
    /* the lost name whose entry is being deleted; it stays in the list until then */
    domi_name *name;
};

/* Delete the entries of lost names in the store one by one, if their revisions have not changed. */
DOMUS_SEQUENCE(delete_entries_of_lost_names, struct sweeping)
{
    domi_registrar *registrar = self;
    char key[DOMI_KEY_SIZE];

    (void)message;
    DOMUS_BEGIN;
    while (registrar->lost != NULL) {
        frame->name = registrar->lost;
        if (frame->name->revision != 0) {
            make_key_of_name(frame->name->name, key);
            DOMUS_AWAIT(domus_nats_kv_delete(stack, registrar->entries, key, frame->name->revision,
                                             0, then));
            if (answer->error != 0 && answer->error != -EEXIST && answer->error != -ENOENT)
                /* the entry could not be deleted, so the next renewal of the lease tries again */
                break;
        }
        remove_lost_name(registrar, frame->name);
    }
    registrar->is_sweeping = false;
    DOMUS_END;
}

static void begin_to_delete_lost_names(domus_stack *stack, domi_registrar *registrar)
{
    if (registrar->lost != NULL && !registrar->is_sweeping)
        registrar->is_sweeping = domus_notice(stack, domus_self(stack), &sweep_type, NULL) == 0;
}

/* End this node's lease if it was not renewed in time. A renewal that comes later does not help. */
static void end_lease_and_lose_names_if_late(domus_stack *stack, domi_registrar *registrar)
{
    if (registrar->valid_until_ns == 0 || registrar->valid_until_ns > domus_now_ns(stack))
        return;
    registrar->valid_until_ns = 0;
    atomic_fetch_add_explicit(&registrar->cluster->parts->losses, 1, memory_order_relaxed);
    tell_actors_and_lose_all_names(stack, registrar);
}

/* Publish the state of the lease for the gateways and the warden of this node. The end of a lease
 * that is over stays published, so that they know for how long this node has been without one. */
static void publish_state_of_lease(const domi_registrar *registrar)
{
    domi_parts *parts = registrar->cluster->parts;

    if (registrar->valid_until_ns != 0)
        atomic_store_explicit(&parts->lease_until_ns, registrar->valid_until_ns,
                              memory_order_relaxed);
    atomic_store_explicit(&parts->error, registrar->lease_error == -EOPNOTSUPP ? -EOPNOTSUPP : 0,
                          memory_order_relaxed);
}

static void publish_addresses_of_buckets(const domi_registrar *registrar)
{
    domus_cluster *cluster = registrar->cluster;

    domi_lock_take(&cluster->lock);
    cluster->parts->leases = registrar->leases;
    cluster->parts->entries = registrar->entries;
    domi_lock_release(&cluster->lock);
}

static domus_nats_kv_config make_bucket_config(const domi_registrar *registrar, uint64_t ttl_ns)
{
    return (domus_nats_kv_config){
        .history = 1, .ttl_ns = ttl_ns, .replicas = registrar->cluster->options.replicas};
}

/* Open the buckets of the store, once gateway 0 has a client of NATS. */
static int open_buckets_of_store(domus_stack *stack, domi_registrar *registrar)
{
    domus_cluster *cluster = registrar->cluster;
    domus_nats_kv_config leases = make_bucket_config(registrar, cluster->options.lease_ns);
    domus_nats_kv_config names = make_bucket_config(registrar, 0);
    domus_nats_kv_options options = {.create = &leases, .seed = cluster->options.seed};
    char bucket[DOMUS_CLUSTER_NAME_MAX + 16];

    domi_lock_take(&cluster->lock);
    options.client = cluster->client;
    domi_lock_release(&cluster->lock);
    if (options.client.house == NULL)
        return -EHOSTDOWN;
    options.bucket = bucket;
    (void)snprintf(bucket, sizeof bucket, "dm_%s_leases", cluster->options.name);
    int error = domus_nats_kv_open(stack, &options, &registrar->leases);
    if (error != 0)
        return error;
    options.create = &names;
    (void)snprintf(bucket, sizeof bucket, "dm_%s_names", cluster->options.name);
    return domus_nats_kv_open(stack, &options, &registrar->entries);
}

struct keeping {
    uint64_t began_ns;
};

static bool must_give_up_lease(const domi_registrar *registrar)
{
    return atomic_load_explicit(&registrar->cluster->parts->ends_lease, memory_order_relaxed);
}

/* Renew this node's lease again and again, for as long as the node lives. */
DOMUS_SEQUENCE(keep_lease_renewed, struct keeping)
{
    domi_registrar *registrar = self;
    const domus_cluster_options *options = &registrar->cluster->options;
    char key[DOMI_KEY_SIZE];

    domi_make_key_of_lease(registrar->cluster->id, key);
    DOMUS_BEGIN;
    while (registrar->entries.house == NULL && open_buckets_of_store(stack, registrar) != 0)
        DOMUS_SLEEP(20 * MS);
    publish_addresses_of_buckets(registrar);
    for (;;) {
        while (must_give_up_lease(registrar)) {
            end_lease_and_lose_names_if_late(stack, registrar);
            publish_state_of_lease(registrar);
            DOMUS_SLEEP(options->lease_ns / 10);
        }
        frame->began_ns = domus_now_ns(stack);
        DOMUS_AWAIT(domus_nats_kv_write(stack, registrar->leases, key, options->node,
                                        strlen(options->node), options->lease_ns / 3, then));
        end_lease_and_lose_names_if_late(stack, registrar);
        if (answer->error == 0) {
            registrar->lease_error = 0;
            registrar->had_lease = true;
            registrar->valid_until_ns = frame->began_ns + options->lease_ns;
            begin_to_delete_lost_names(stack, registrar);
        } else {
            registrar->lease_error =
                answer->error == -ECONNREFUSED && !registrar->had_lease ? -EOPNOTSUPP : -EHOSTDOWN;
        }
        publish_state_of_lease(registrar);
        DOMUS_SLEEP(registrar->lease_error != 0 ? options->lease_ns / 10 : options->lease_ns / 3);
    }
    DOMUS_END;
}

/* --- life ------------------------------------------------------------------------------------- */

static int begin_keeping_lease_at_mount(domus_stack *stack, void *self)
{
    domi_registrar *registrar = self;

    return has_no_servers(registrar) ? 0 : domus_notice(stack, domus_self(stack), &keep_type, NULL);
}

static void free_all_names_of_registrar_at_stop(domus_stack *stack, void *self)
{
    domi_registrar *registrar = self;

    for (uint32_t i = 0; i < DOMI_NAMES_BUCKETS; i++) {
        while (registrar->names[i] != NULL)
            domi_name_remove_and_free(stack, registrar, registrar->names[i]->name);
    }
    while (registrar->lost != NULL)
        remove_lost_name(registrar, registrar->lost);
}

const domus_behaviour domi_registrar_behaviour = {
    .name = "cluster registrar",
    .state_size = sizeof(domi_registrar),
    .on_mount = begin_keeping_lease_at_mount,
    .on_stop = free_all_names_of_registrar_at_stop,
    .on = (const domus_on[]){DOMUS_ON(&domi_register_type, register_name),
                             {&domi_unregister_type, unregister_name, 0},
                             DOMUS_ON(&domi_find_type, find_name_in_cluster),
                             DOMUS_ON(&keep_type, keep_lease_renewed),
                             DOMUS_ON(&sweep_type, delete_entries_of_lost_names),
                             {&domus_down_type, remove_names_of_ended_actor, 0},
                             {NULL, NULL, 0}},
};
