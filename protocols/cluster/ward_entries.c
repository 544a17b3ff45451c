/* Reads and writes the entries of parts of the grains in the bucket of names for the warden, and
 * checks the leases of the nodes that these entries name. */
#include "protocols/cluster/wards.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const domus_type domi_ward_write_type = {.name = "cluster warden write",
                                         .size = sizeof(domi_ward_change)};

void domi_ward_write_key_of_part(uint32_t index, char key[DOMI_KEY_SIZE])
{
    (void)snprintf(key, DOMI_KEY_SIZE, "g.%u", index);
}

/* Store an entry of a part that was read, and change the state of the part by it. */
static void store_entry_of_part(domus_stack *stack, domi_warden *self, uint32_t index,
                                uint64_t revision, uint64_t holder)
{
    domi_ward *at = &self->parts[index];

    if (revision <= at->revision)
        return;
    at->revision = revision;
    at->holder = holder;
    if (at->state == DOMI_WARD_FREE || at->state == DOMI_WARD_OTHER)
        domi_ward_change_state_of_part(stack, self, index,
                                       domi_ward_free_or_others_state_of_part(self, at));
    else if ((at->state == DOMI_WARD_OPEN || at->state == DOMI_WARD_CLOSES) &&
             holder != self->cluster->id)
        /* another node has changed the entry, because it has seen this node's lease end */
        domi_ward_change_state_of_part(stack, self, index, DOMI_WARD_LOST);
}

static uint64_t read_holder_from_entry(domus_slice value)
{
    const unsigned char *bytes = (const unsigned char *)domus_slice_data(value);
    uint64_t id = 0;

    for (uint32_t i = 0; value.size == DOMI_WARD_VALUE && i < DOMI_WARD_VALUE; i++)
        id |= (uint64_t)bytes[i] << 8 * i;
    return id;
}

void domi_ward_write_value_of_entry(uint64_t id, unsigned char value[DOMI_WARD_VALUE])
{
    for (uint32_t i = 0; i < DOMI_WARD_VALUE; i++)
        value[i] = (unsigned char)(id >> 8 * i);
}

int domi_ward_store_watched_entry_of_part(domus_stack *stack, void *self_, const void *payload)
{
    domi_warden *self = self_;
    const domus_nats_kv_entry *entry = payload;
    domus_slice key = domus_nats_kv_key(entry);
    const char *text = domus_slice_data(key);
    uint32_t index = 0;

    if (key.size < 3 || key.size > 5 || memcmp(text, "g.", 2) != 0)
        return 0;
    for (uint32_t i = 2; i < key.size; i++) {
        if (text[i] < '0' || text[i] > '9')
            return 0;
        index = 10 * index + (uint32_t)(text[i] - '0');
    }
    if (index < DOMUS_REMOTE_PARTS)
        store_entry_of_part(stack, self, index, entry->revision,
                            read_holder_from_entry(domus_nats_kv_value(entry)));
    return 0;
}

/* --- writing entries -------------------------------------------------------------------------- */

/* Change the state of a part after a write of its entry has ended. `error` is -EEXIST when another
 * node has changed the entry: the watch tells which node. After other errors the entry may have
 * been written nevertheless, which the watch tells, too. */
void domi_ward_change_state_after_write(domus_stack *stack, domi_warden *self,
                                        const domi_ward_change *change, int error,
                                        uint64_t revision)
{
    uint32_t index = change->index;
    domi_ward *at = &self->parts[index];
    bool takes = at->state == DOMI_WARD_TAKES;

    if (at->serial != change->serial)
        return; /* the change of the entry was given up meanwhile */
    at->serial++;
    self->writes--;
    if (at->state != DOMI_WARD_TAKES && at->state != DOMI_WARD_GIVES)
        return; /* the part was lost while its entry was written */
    if (error == 0 && revision > at->revision) {
        at->revision = revision;
        at->holder = change->holder;
    }
    bool is_mine = error == 0 && revision == at->revision && at->holder == self->cluster->id;
    bool has_had_lease = at->losses == domi_cluster_count_lost_leases(self->cluster);
    if (takes && is_mine && has_had_lease && domi_cluster_holds_lease(self->cluster, stack)) {
        domi_ward_change_state_of_part(stack, self, index, DOMI_WARD_OPEN);
        return;
    }
    if (!takes && error == 0)
        atomic_fetch_add_explicit(&self->cluster->parts->given, 1, memory_order_relaxed);
    domi_ward_change_state_of_part(stack, self, index,
                                   domi_ward_free_or_others_state_of_part(self, at));
}

void domi_ward_begin_to_take_or_give_part(domus_stack *stack, domi_warden *self, uint32_t index,
                                          domi_ward_state state)
{
    domi_ward *at = &self->parts[index];
    domi_ward_state before = at->state;
    const domi_ward_change change = {
        .index = index,
        .serial = at->serial + 1,
        .revision = at->revision,
        .holder = state == DOMI_WARD_TAKES ? self->cluster->id : 0,
    };

    if (self->writes == DOMI_WARD_WRITES_MAX)
        return;
    at->serial++;
    at->losses = domi_cluster_count_lost_leases(self->cluster);
    domi_ward_change_state_of_part(stack, self, index, state);
    if (domus_notice(stack, domus_self(stack), &domi_ward_write_type, &change) == 0)
        self->writes++;
    else
        domi_ward_change_state_of_part(stack, self, index, before);
}

/* --- leases of other nodes -------------------------------------------------------------------- */

/* Find a node that has a part which this node should have, and that is not known to be up: it may
 * be dead, or without its lease. Returns its id; 0 if there is none. */
uint64_t domi_ward_find_node_maybe_dead(const domi_warden *self, uint32_t *ret_next)
{
    domus_cluster *cluster = self->cluster;

    for (uint32_t i = 0; i < DOMUS_REMOTE_PARTS; i++) {
        uint32_t index = (self->suspect + i) % DOMUS_REMOTE_PARTS;
        const domi_ward *at = &self->parts[index];
        *ret_next = index + 1;
        if (at->state != DOMI_WARD_OTHER || at->wanted != cluster->id)
            continue;
        domi_lock_take(&cluster->lock);
        const domi_node_record *record = domi_node_find(cluster, at->holder);
        bool has_lease = record != NULL && record->state == DOMUS_NODE_UP && record->hosts_grains;
        domi_lock_release(&cluster->lock);
        if (!has_lease)
            return at->holder;
    }
    return 0;
}

/* Free the parts of a node whose lease was over. The node may have a new lease, but not these
 * parts: by its own clock it has learnt earlier that it has lost them. */
void domi_ward_free_parts_of_dead_node(domus_stack *stack, domi_warden *self,
                                       const domi_ward_looking *look)
{
    for (uint32_t i = 0; i < DOMUS_REMOTE_PARTS; i++) {
        domi_ward *at = &self->parts[i];
        if (at->state != DOMI_WARD_OTHER || at->holder != look->id || at->revision > look->revision)
            continue;
        at->holder = 0;
        domi_ward_change_state_of_part(stack, self, i, DOMI_WARD_FREE);
    }
}

uint64_t domi_ward_newest_revision_seen(const domi_warden *self)
{
    uint64_t newest = 0;

    for (uint32_t i = 0; i < DOMUS_REMOTE_PARTS; i++) {
        if (self->parts[i].revision > newest)
            newest = self->parts[i].revision;
    }
    return newest;
}
