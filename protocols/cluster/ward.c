/* Changes the state of a part of the grains for the warden, and shows it to the gateways. */
#include "protocols/cluster/wards.h"

const domus_type domi_ward_tell_type = {.name = "cluster warden tell"};

/* Write the holder of a part, and whether this node accepts messages for it, into the table that
 * gateways read. Returns whether that has changed. */
static bool show_holder_of_part_to_gateways(domi_warden *self, uint32_t index)
{
    domus_cluster *cluster = self->cluster;
    const domi_ward *at = &self->parts[index];
    domi_part *shown = &cluster->parts->parts[index];
    bool is_open = at->state == DOMI_WARD_OPEN;
    uint64_t holder = is_open ? cluster->id : at->state == DOMI_WARD_OTHER ? at->holder : 0;

    domi_lock_take(&cluster->lock);
    bool has_changed = shown->holder != holder || shown->is_open != is_open;
    shown->holder = holder;
    shown->is_open = is_open;
    domi_lock_release(&cluster->lock);
    return has_changed;
}

/* Make sure that the gateways are told soon. One notice of the warden to itself comes behind the
 * entries that wait in its mailbox, and is enough for all of them. If it is refused, the gateways
 * learn of the changes later, at their next heartbeat. */
static void send_notice_to_tell_gateways(domus_stack *stack, domi_warden *self)
{
    if (!self->tells)
        self->tells = domus_notice(stack, domus_self(stack), &domi_ward_tell_type, NULL) == 0;
}

static void add_to_relaxed_counter(_Atomic uint64_t *number, uint64_t by)
{
    atomic_fetch_add_explicit(number, by, memory_order_relaxed);
}

/* Change the state of a part of the grains, and tell the gateways if it concerns them. */
void domi_ward_change_state_of_part(domus_stack *stack, domi_warden *self, uint32_t index,
                                    domi_ward_state state)
{
    domi_parts *parts = self->cluster->parts;
    domi_ward *at = &self->parts[index];

    if (at->state == DOMI_WARD_CLOSES)
        self->closing--;
    if (state == DOMI_WARD_CLOSES)
        self->closing++;
    if (state == DOMI_WARD_OPEN) {
        (void)domus_remote_part_set(stack, index, at->revision);
        add_to_relaxed_counter(&parts->taken, 1);
        add_to_relaxed_counter(&parts->held, 1);
    }
    if (at->state == DOMI_WARD_OPEN)
        add_to_relaxed_counter(&parts->held, UINT64_MAX);
    if (state == DOMI_WARD_LOST) {
        (void)domus_remote_part_set(stack, index, 0);
        add_to_relaxed_counter(&parts->lost, 1);
    }
    at->state = state;
    at->since_ns = domus_now_ns(stack);
    if (show_holder_of_part_to_gateways(self, index))
        send_notice_to_tell_gateways(stack, self);
}

domi_ward_state domi_ward_free_or_others_state_of_part(const domi_warden *self, const domi_ward *at)
{
    return at->holder == 0 || at->holder == self->cluster->id ? DOMI_WARD_FREE : DOMI_WARD_OTHER;
}
