/* Slots of a simulated client's requests and flushes: an ask has a slot until it is answered. */
#include "protocols/cluster/testkit/client_parts.h"

#include <domus/conversation.h>

#include <errno.h>
#include <stdlib.h>

#define SLOTS_LEAST 16u

static int grow_slots_for_asks(domi_sim_client *client)
{
    uint32_t count = client->slot_count != 0 ? 2 * client->slot_count : SLOTS_LEAST;
    uint32_t most = client->node->sim->options.inflight_max;

    if (count > most)
        count = most;
    if (count <= client->slot_count)
        return -ENOBUFS;
    domi_sim_slot *slots = realloc(client->slots, count * sizeof *slots);
    if (slots == NULL)
        return -ENOMEM;
    for (uint32_t i = count; i-- > client->slot_count;) {
        slots[i] = (domi_sim_slot){.next_free = client->free_slot};
        client->free_slot = i;
    }
    client->slots = slots;
    client->slot_count = count;
    return 0;
}

int domi_sim_find_slot_for_kept_ask(domi_sim_client *client, domus_kept kept, uint64_t deadline_ns,
                                    uint32_t *ret_slot)
{
    int error = client->free_slot == DOMI_SIM_NO_SLOT ? grow_slots_for_asks(client) : 0;

    if (error != 0)
        return error;
    domi_sim_slot *slot = &client->slots[client->free_slot];
    *ret_slot = client->free_slot;
    client->free_slot = slot->next_free;
    slot->kept = kept;
    slot->deadline_ns = deadline_ns;
    slot->generation++;
    slot->is_used = true;
    slot->is_flush = slot->is_sent = false;
    slot->ping = 0;
    if (client->slots_used++ == 0 || deadline_ns < client->expire_ns)
        client->expire_ns = deadline_ns;
    return 0;
}

uint64_t domi_sim_deadline_of_current_ask(domus_stack *stack, const domi_sim_client *client)
{
    uint64_t deadline_ns = domus_deadline_ns(stack);

    return deadline_ns != 0 ? deadline_ns
                            : domus_now_ns(stack) + client->node->sim->options.request_timeout_ns;
}

int domi_sim_keep_ask_in_slot(domus_stack *stack, domi_sim_client *client, uint32_t *ret_slot)
{
    uint64_t deadline_ns = domi_sim_deadline_of_current_ask(stack, client);
    domus_kept kept = {0};
    int error = domi_sim_find_slot_for_kept_ask(client, kept, deadline_ns, ret_slot);

    if (error != 0)
        return error;
    error = domus_keep(stack, &client->slots[*ret_slot].kept);
    if (error != 0)
        domi_sim_free_slot(client, *ret_slot);
    return error;
}

void domi_sim_free_slot(domi_sim_client *client, uint32_t slot)
{
    client->slots[slot].is_used = false;
    client->slots[slot].next_free = client->free_slot;
    client->free_slot = slot;
    client->slots_used--;
}

void domi_sim_fail_asks_already_sent(domus_stack *stack, domi_sim_client *client, int error)
{
    for (uint32_t i = 0; i < client->slot_count; i++) {
        if (!client->slots[i].is_used || !client->slots[i].is_sent)
            continue;
        (void)domus_kept_fail(stack, client->slots[i].kept, error);
        domi_sim_free_slot(client, i);
    }
}

void domi_sim_fail_asks_after_deadline(domus_stack *stack, domi_sim_client *client)
{
    uint64_t now_ns = domus_now_ns(stack);
    uint64_t next_ns = DOMI_SIM_NEVER;

    if (client->slots_used == 0 || client->expire_ns > now_ns)
        return;
    for (uint32_t i = 0; i < client->slot_count; i++) {
        domi_sim_slot *slot = &client->slots[i];
        if (!slot->is_used)
            continue;
        if (slot->deadline_ns <= now_ns) {
            (void)domus_kept_fail(stack, slot->kept, -ETIMEDOUT);
            domi_sim_free_slot(client, i);
        } else if (slot->deadline_ns < next_ns) {
            next_ns = slot->deadline_ns;
        }
    }
    client->expire_ns = next_ns;
}
