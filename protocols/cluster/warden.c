/* The warden's work: its ticks, the entries that it writes and reads, and the leases that it checks
 * (wards.h). */
#include "protocols/cluster/wards.h"

#include <domus/await.h>

#include <errno.h>
#include <stdlib.h>

#define MS UINT64_C(1000000)

static const domus_type tick_type = {.name = "cluster warden tick"};
static const domus_type read_type = {.name = "cluster warden read", .size = sizeof(uint32_t)};
static const domus_type look_type = {.name = "cluster warden look"};
static const domus_type watch_type = {.name = "cluster warden watch"};
const domus_type domi_give_all_type = {.name = "cluster warden give all"};

/* Returns the time in ns between two ticks of the warden. */
static uint64_t tick_ns_of_warden(const domus_cluster *cluster)
{
    uint64_t shortest_ns = cluster->options.heartbeat_ns < cluster->options.lease_ns
                               ? cluster->options.heartbeat_ns
                               : cluster->options.lease_ns;

    return shortest_ns > 100 * MS ? shortest_ns / 10 : 10 * MS;
}

/* --- entries and leases ----------------------------------------------------------------------- */

struct writing {
    domi_ward_change change;
    int error;
    uint64_t revision;
};

/* Write the entry of a part that is in the state DOMI_WARD_TAKES or DOMI_WARD_GIVES. If that fails,
 * the entry may have been written nevertheless, or by another node. The watch tells so, but servers
 * that have lost their leader need some seconds until a watch can begin again, so the entry is
 * read, too. */
DOMUS_SEQUENCE(write_entry_of_part, struct writing)
{
    domi_warden *self_ = self;
    domus_address entries = self_->cluster->parts->entries;
    unsigned char value[DOMI_WARD_VALUE];
    char key[DOMI_KEY_SIZE];

    if (message != NULL)
        frame->change = *(const domi_ward_change *)message;
    DOMUS_BEGIN;
    domi_ward_write_key_of_part(frame->change.index, key);
    domi_ward_write_value_of_entry(frame->change.holder, value);
    if (frame->change.revision == 0)
        DOMUS_AWAIT(domus_nats_kv_create(stack, entries, key, value, sizeof value,
                                         self_->cluster->options.lease_ns / 2, then));
    else
        DOMUS_AWAIT(domus_nats_kv_update(stack, entries, key, value, sizeof value,
                                         frame->change.revision,
                                         self_->cluster->options.lease_ns / 2, then));
    frame->error = answer->error;
    if (answer->error == 0) {
        frame->revision = ((const domus_nats_kv_revision *)answer->payload)->revision;
    } else if (answer->error != -ECANCELED) {
        domi_ward_write_key_of_part(frame->change.index, key);
        DOMUS_AWAIT(
            domus_nats_kv_read(stack, entries, key, self_->cluster->options.lease_ns / 2, then));
        if (answer->error == 0)
            (void)domi_ward_store_watched_entry_of_part(stack, self_, answer->payload);
    }
    domi_ward_change_state_after_write(stack, self_, &frame->change, frame->error, frame->revision);
    DOMUS_END;
}

struct reading {
    uint32_t index;
};

/* Read the entry of a part for which messages wait. The watch on the entries should have told its
 * value, but after a broken connection it may be without a server for some seconds. */
DOMUS_SEQUENCE(read_entry_of_doubted_part, struct reading)
{
    domi_warden *self_ = self;
    char key[DOMI_KEY_SIZE];

    if (message != NULL)
        frame->index = *(const uint32_t *)message;
    DOMUS_BEGIN;
    domi_ward_write_key_of_part(frame->index, key);
    DOMUS_AWAIT(domus_nats_kv_read(stack, self_->cluster->parts->entries, key,
                                   self_->cluster->options.lease_ns / 2, then));
    if (self_->reads != 0)
        self_->reads--;
    if (answer->error == 0)
        (void)domi_ward_store_watched_entry_of_part(stack, self_, answer->payload);
    DOMUS_END;
}

/* List some of the parts that gateways doubt, and reset their marks. Returns how many there are. */
static uint32_t take_parts_that_gateways_doubt(domi_warden *self, uint32_t room,
                                               uint32_t ret_parts[])
{
    domi_parts *parts = self->cluster->parts;
    uint32_t count = 0;

    domi_lock_take(&self->cluster->lock);
    bool has_doubts = parts->has_doubts;
    parts->has_doubts = false;
    for (uint32_t i = 0; has_doubts && i < DOMUS_REMOTE_PARTS; i++) {
        if (!parts->parts[i].is_doubted)
            continue;
        if (count == room) {
            /* the marks of the other doubted parts are left for the next tick */
            parts->has_doubts = true;
            break;
        }
        parts->parts[i].is_doubted = false;
        ret_parts[count++] = i;
    }
    domi_lock_release(&self->cluster->lock);
    return count;
}

/* Read the entries of the parts whose holders gateways doubt, a few at a time. */
static void read_entries_of_doubted_parts(domus_stack *stack, domi_warden *self)
{
    uint32_t doubted[DOMI_WARD_WRITES_MAX];
    uint64_t now_ns = domus_now_ns(stack);

    /* A read that could not begin for want of memory is never counted down in `reads`, so the count
     * is given up after a time. */
    if (now_ns - self->reads_ns > 2 * self->cluster->options.lease_ns)
        self->reads = 0;
    uint32_t count =
        take_parts_that_gateways_doubt(self, DOMI_WARD_WRITES_MAX - self->reads, doubted);
    for (uint32_t i = 0; i < count; i++) {
        if (domus_notice(stack, domus_self(stack), &read_type, &doubted[i]) == 0)
            self->reads++;
        self->reads_ns = now_ns;
    }
}

/* Check whether a node that is not known to be up still has its lease. */
DOMUS_SEQUENCE(check_lease_of_suspect_node, domi_ward_looking)
{
    domi_warden *self_ = self;
    char key[DOMI_KEY_SIZE];

    (void)message;
    DOMUS_BEGIN;
    frame->id = domi_ward_find_node_maybe_dead(self_, &self_->suspect);
    frame->revision = domi_ward_newest_revision_seen(self_);
    if (frame->id != 0) {
        domi_make_key_of_lease(frame->id, key);
        DOMUS_AWAIT(domus_nats_kv_read(stack, self_->cluster->parts->leases, key,
                                       self_->cluster->options.lease_ns / 2, then));
        if (answer->error == -ENOENT)
            domi_ward_free_parts_of_dead_node(stack, self_, frame);
    }
    self_->looks = false;
    DOMUS_END;
}

static int mark_that_all_entries_have_come(domus_stack *stack, void *self_, const void *payload)
{
    domi_warden *self = self_;

    (void)stack, (void)payload;
    self->has_entries = true;
    return 0;
}

/* --- a tick ----------------------------------------------------------------------------------- */

static bool is_part_used_by_gateway(const domi_warden *self, uint32_t index)
{
    domus_cluster *cluster = self->cluster;

    domi_lock_take(&cluster->lock);
    bool is = cluster->parts->parts[index].users != 0;
    domi_lock_release(&cluster->lock);
    return is;
}

static void advance_state_of_part(domus_stack *stack, domi_warden *self, uint32_t index)
{
    domi_ward *at = &self->parts[index];
    bool is_wanted = at->wanted == self->cluster->id;
    bool is_settled = self->gives_all || domus_now_ns(stack) >= self->settled_ns;

    switch (at->state) {
    case DOMI_WARD_FREE:
        if (is_wanted && domus_now_ns(stack) >= self->begun_ns)
            domi_ward_begin_to_take_or_give_part(stack, self, index, DOMI_WARD_TAKES);
        else if (!is_wanted && at->holder == self->cluster->id)
            domi_ward_begin_to_take_or_give_part(stack, self, index, DOMI_WARD_GIVES);
        break;
    case DOMI_WARD_OPEN:
        if (!is_wanted && is_settled && (at->wanted != 0 || self->gives_all) &&
            self->closing < DOMI_WARD_WRITES_MAX)
            domi_ward_change_state_of_part(stack, self, index, DOMI_WARD_CLOSES);
        break;
    case DOMI_WARD_CLOSES:
        if (is_part_used_by_gateway(self, index) || domus_remote_part_living(stack, index) != 0)
            break;
        (void)domus_remote_part_set(stack, index, 0);
        if (domus_remote_part_living(stack, index) == 0)
            domi_ward_begin_to_take_or_give_part(stack, self, index, DOMI_WARD_GIVES);
        break;
    case DOMI_WARD_LOST:
        if (domus_remote_part_living(stack, index) == 0 && !is_part_used_by_gateway(self, index))
            domi_ward_change_state_of_part(stack, self, index,
                                           domi_ward_free_or_others_state_of_part(self, at));
        break;
    case DOMI_WARD_TAKES:
    case DOMI_WARD_GIVES:
        /* A write of an entry that could not begin for want of memory never ends, so it is given up
         * after a time. */
        if (domus_now_ns(stack) - at->since_ns > 2 * self->cluster->options.lease_ns)
            domi_ward_change_state_after_write(
                stack, self, &(domi_ward_change){.index = index, .serial = at->serial}, -ETIMEDOUT,
                0);
        break;
    case DOMI_WARD_OTHER:
        break;
    }
}

/* Stop the grains of parts that this node gives away or has lost. Grains of a part that is given
 * away end once no message goes to the part any more. Grains of a lost part end at once, although a
 * gateway may still pass messages on: such a message begins no new life. */
static void stop_grains_of_lost_parts(domus_stack *stack, const domi_warden *self)
{
    domus_remote_parts closing = {{0}}, lost = {{0}};
    bool closes = false, loses = false;

    for (uint32_t i = 0; i < DOMUS_REMOTE_PARTS; i++) {
        domi_ward_state state = self->parts[i].state;
        uint64_t bit = UINT64_C(1) << i % 64;
        if (state == DOMI_WARD_CLOSES && !is_part_used_by_gateway(self, i)) {
            closing.bits[i / 64] |= bit;
            closes = true;
        } else if (state == DOMI_WARD_LOST) {
            lost.bits[i / 64] |= bit;
            loses = true;
        }
    }
    if (closes)
        domus_remote_parts_stop(stack, &closing, true);
    if (loses)
        domus_remote_parts_stop(stack, &lost, false);
}

/* Lose all parts of this node, because it has no lease any more and other nodes may have the parts
 * by now. */
static void lose_all_parts_without_lease(domus_stack *stack, domi_warden *self)
{
    for (uint32_t i = 0; i < DOMUS_REMOTE_PARTS; i++) {
        domi_ward_state state = self->parts[i].state;
        if (state == DOMI_WARD_OPEN || state == DOMI_WARD_CLOSES || state == DOMI_WARD_GIVES)
            domi_ward_change_state_of_part(stack, self, i, DOMI_WARD_LOST);
    }
}

static bool has_any_part_of_grains(const domi_warden *self)
{
    for (uint32_t i = 0; i < DOMUS_REMOTE_PARTS; i++) {
        const domi_ward *at = &self->parts[i];
        if (at->state != DOMI_WARD_OTHER &&
            (at->state != DOMI_WARD_FREE || at->holder == self->cluster->id))
            return true;
    }
    return false;
}

static void reply_when_all_parts_are_given(domus_stack *stack, domi_warden *self)
{
    if (!self->has_asked || has_any_part_of_grains(self))
        return;
    self->has_asked = false;
    (void)domus_kept_reply(stack, self->leaving, &domus_cluster_done_type, NULL);
}

static int check_all_parts_at_tick(domus_stack *stack, void *self_, const void *payload)
{
    domi_warden *self = self_;
    uint32_t losses = domi_cluster_count_lost_leases(self->cluster), next;
    /* The grains of this node stop two ticks before its lease ends by its own clock; in the store
     * the lease ends a little later. */
    bool has_lease =
        atomic_load_explicit(&self->cluster->parts->lease_until_ns, memory_order_relaxed) >
        domus_now_ns(stack) + 2 * tick_ns_of_warden(self->cluster);

    (void)payload;
    domi_wanted_assign_parts_to_nodes_up(stack, self);
    if (!has_lease || losses != self->losses)
        lose_all_parts_without_lease(stack, self);
    self->losses = losses;
    stop_grains_of_lost_parts(stack, self);
    for (uint32_t i = 0; i < DOMUS_REMOTE_PARTS; i++) {
        if (self->parts[i].state == DOMI_WARD_LOST || (has_lease && self->has_entries))
            advance_state_of_part(stack, self, i);
    }
    reply_when_all_parts_are_given(stack, self);
    if (has_lease)
        read_entries_of_doubted_parts(stack, self);
    if (has_lease && self->has_entries && !self->looks &&
        domi_ward_find_node_maybe_dead(self, &next) != 0)
        self->looks = domus_notice(stack, domus_self(stack), &look_type, NULL) == 0;
    return 0;
}

/* Tell the gateways once of all changes of parts, so that they read the table. */
static int tell_gateways_of_changed_parts(domus_stack *stack, void *self_, const void *payload)
{
    domi_warden *self = self_;

    (void)payload;
    self->tells = false;
    for (uint32_t i = 0; i < self->cluster->gateways; i++)
        (void)domus_notice(stack, self->cluster->addresses[i], &domi_follow_type, NULL);
    return 0;
}

static int begin_to_give_all_parts_away(domus_stack *stack, void *self_, const void *payload)
{
    domi_warden *self = self_;

    (void)payload;
    if (!has_any_part_of_grains(self))
        return domus_reply(stack, &domus_cluster_done_type, NULL);
    self->gives_all = true;
    int error = domus_keep(stack, &self->leaving);
    self->has_asked = error == 0;
    return error;
}

/* --- life ------------------------------------------------------------------------------------- */

static int watch_again_after_failure(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)self;
    if (answer->error == 0)
        return 0;
    return domus_after(stack, 100 * MS, &watch_type, NULL, NULL);
}

/* Watch the entries of the parts, once the bucket that has them is open. */
static int begin_watch_on_entries(domus_stack *stack, void *self_, const void *payload)
{
    domi_warden *self = self_;
    domus_cluster *cluster = self->cluster;
    domus_nats_kv_watch watch = {.pattern = "g.*",
                                 .heartbeat_ns = cluster->options.heartbeat_ns > 100 * MS
                                                     ? cluster->options.heartbeat_ns
                                                     : 100 * MS};

    (void)payload;
    domi_lock_take(&cluster->lock);
    domus_address entries = cluster->parts->entries;
    domi_lock_release(&cluster->lock);
    if (entries.house == NULL)
        return domus_after(stack, 20 * MS, &watch_type, NULL, NULL);
    return domus_ask_within(stack, entries, &domus_nats_kv_watch_type, &watch, 0,
                            watch_again_after_failure);
}

/* Handle that the watch on the entries has ended by itself: the bucket was removed, so its entries
 * mean nothing any more. */
static int forget_entries_of_removed_bucket(domus_stack *stack, void *self_, const void *payload)
{
    domi_warden *self = self_;

    (void)payload;
    self->has_entries = false;
    lose_all_parts_without_lease(stack, self);
    for (uint32_t i = 0; i < DOMUS_REMOTE_PARTS; i++) {
        self->parts[i].revision = self->parts[i].holder = 0;
        if (self->parts[i].state == DOMI_WARD_OTHER)
            domi_ward_change_state_of_part(stack, self, i, DOMI_WARD_FREE);
    }
    return domus_after(stack, 100 * MS, &watch_type, NULL, NULL);
}

void domi_warden_set_cluster_of_state(void *state, domus_cluster *cluster)
{
    ((domi_warden *)state)->cluster = cluster;
}

static int begin_watch_and_ticks_at_mount(domus_stack *stack, void *self_)
{
    domi_warden *self = self_;
    int error = domus_notice(stack, domus_self(stack), &watch_type, NULL);

    self->begun_ns = domus_now_ns(stack) + DOMI_WARD_SETTLE * self->cluster->options.heartbeat_ns;
    if (error == 0)
        error = domus_every(stack, tick_ns_of_warden(self->cluster), &tick_type, NULL, NULL);
    return error;
}

const domus_behaviour domi_warden_behaviour = {
    .name = "cluster warden",
    .state_size = sizeof(domi_warden),
    .on_mount = begin_watch_and_ticks_at_mount,
    .on = (const domus_on[]){{&domus_nats_kv_entry_type, domi_ward_store_watched_entry_of_part, 0},
                             {&domus_nats_kv_initial_type, mark_that_all_entries_have_come, 0},
                             {&domus_nats_kv_ended_type, forget_entries_of_removed_bucket, 0},
                             {&tick_type, check_all_parts_at_tick, 0},
                             {&domi_ward_tell_type, tell_gateways_of_changed_parts, 0},
                             {&watch_type, begin_watch_on_entries, 0},
                             DOMUS_ON(&look_type, check_lease_of_suspect_node),
                             DOMUS_ON(&read_type, read_entry_of_doubted_part),
                             DOMUS_ON(&domi_ward_write_type, write_entry_of_part),
                             {&domi_give_all_type, begin_to_give_all_parts_away, 0},
                             {NULL, NULL, 0}},
};
