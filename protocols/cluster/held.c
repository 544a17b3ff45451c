/* Messages to grains that wait until a node has the grain's part, in the form in which they travel:
 * at most queued_max bytes in each gateway, and for at most down_after_ns. */
#include "protocols/cluster/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void domi_held_append_message(domi_held_list *list, domi_held *held)
{
    held->next = NULL;
    if (list->last != NULL)
        list->last->next = held;
    else
        list->first = held;
    list->last = held;
}

static domi_held *take_first_held_message(domi_held_list *list)
{
    domi_held *held = list->first;

    if (held == NULL)
        return NULL;
    list->first = held->next;
    if (list->first == NULL)
        list->last = NULL;
    return held;
}

void domi_held_put_message_back_first(domi_route *route, domi_held *held)
{
    held->next = route->waiting.first;
    route->waiting.first = held;
    if (route->waiting.last == NULL)
        route->waiting.last = held;
}

domi_held *domi_held_take_first_message(domi_route *route)
{
    if (route->returned.first != NULL) {
        route->returned.last->next = route->waiting.first;
        if (route->waiting.last == NULL)
            route->waiting.last = route->returned.last;
        route->waiting.first = route->returned.first;
        route->returned = (domi_held_list){NULL, NULL};
    }
    return take_first_held_message(&route->waiting);
}

static void add_or_subtract_waiting_message(domi_cluster_gateway *gateway, const domi_held *held,
                                            bool more)
{
    if (more) {
        gateway->waiting_bytes += sizeof *held + held->size;
        atomic_fetch_add_explicit(&gateway->cluster->parts->waiting, 1, memory_order_relaxed);
    } else {
        gateway->waiting_bytes -= sizeof *held + held->size;
        atomic_fetch_sub_explicit(&gateway->cluster->parts->waiting, 1, memory_order_relaxed);
    }
}

/* Make a waiting message from the bytes of a message to a grain. Returns 0; -ENOBUFS if the gateway
 * would hold more than queued_max bytes; -ENOMEM. */
int domi_held_make_message(domi_cluster_gateway *gateway, const unsigned char *bytes, uint32_t size,
                           domi_held **ret_held)
{
    if (gateway->waiting_bytes + size > gateway->cluster->options.queued_max)
        return -ENOBUFS;
    domi_held *held = calloc(1, sizeof *held + size);
    if (held == NULL)
        return -ENOMEM;
    held->since_ns = domus_now_ns(gateway->stack);
    held->size = size;
    memcpy(held->bytes, bytes, size);
    add_or_subtract_waiting_message(gateway, held, true);
    *ret_held = held;
    return 0;
}

void domi_held_free_message(domi_cluster_gateway *gateway, domi_held *held)
{
    add_or_subtract_waiting_message(gateway, held, false);
    free(held);
}

/* Fail a waiting message that cannot be sent: its ask fails, or its notice is counted as lost. */
void domi_held_fail_message(domi_cluster_gateway *gateway, domi_held *held, int error)
{
    atomic_fetch_add_explicit(&gateway->cluster->refused, 1, memory_order_relaxed);
    if (held->is_ask)
        (void)domus_kept_fail(gateway->stack, held->kept, error);
    domi_held_free_message(gateway, held);
}

/* --- messages that wait for too long ---------------------------------------------------------- */

/* Fail the messages of a list that have waited since a time before `before_ns`. Asks whose deadline
 * has passed have failed already. */
static void fail_old_messages_in_list(domi_cluster_gateway *gateway, domi_held_list *list,
                                      uint64_t before_ns, int error)
{
    uint64_t now_ns = domus_now_ns(gateway->stack);
    domi_held_list left = {NULL, NULL};
    domi_held *held;

    while ((held = take_first_held_message(list)) != NULL) {
        if (held->since_ns < before_ns)
            domi_held_fail_message(gateway, held, error);
        else if (held->deadline_ns != 0 && held->deadline_ns < now_ns)
            domi_held_free_message(gateway, held);
        else
            domi_held_append_message(&left, held);
    }
    *list = left;
}

/* Make the warden check who has a part for which messages wait. This node, and the node that should
 * have the part, may both know only an old entry of it. */
static void ask_wardens_to_check_holder_of_part(domi_cluster_gateway *gateway, uint32_t part)
{
    const domi_wire_envelope envelope = {.kind = DOMI_TO_DOUBT, .id = part};

    domi_part_let_warden_check_holder(gateway->cluster, part);
    domi_lock_take(&gateway->cluster->lock);
    uint64_t wanted = gateway->cluster->parts->parts[part].wanted;
    domi_lock_release(&gateway->cluster->lock);
    if (wanted == 0 || wanted == gateway->cluster->id)
        return;
    domi_peer *peer = domi_peer_find_or_make(gateway, wanted);
    if (peer != NULL && domi_peer_is_up(gateway, peer))
        (void)domi_add_envelope_to_batch_of_link(
            gateway, peer, domi_gateway_index_at_peer(gateway, peer), &envelope);
}

void domi_routes_fail_old_messages(domi_cluster_gateway *gateway)
{
    uint64_t now_ns = domus_now_ns(gateway->stack);
    uint64_t patience_ns = gateway->cluster->options.down_after_ns;
    uint64_t before_ns = now_ns > patience_ns ? now_ns - patience_ns : 0;

    if (gateway->routes == NULL || gateway->waiting_bytes == 0)
        return;
    int error = atomic_load_explicit(&gateway->cluster->parts->error, memory_order_relaxed);
    for (uint32_t i = 0; i < DOMUS_REMOTE_PARTS; i++) {
        domi_route *route = &gateway->routes[i];
        if (route->returned.first != NULL || route->waiting.first != NULL)
            ask_wardens_to_check_holder_of_part(gateway, i);
        fail_old_messages_in_list(gateway, &route->returned, error != 0 ? UINT64_MAX : before_ns,
                                  error != 0 ? error : -EHOSTDOWN);
        fail_old_messages_in_list(gateway, &route->waiting, error != 0 ? UINT64_MAX : before_ns,
                                  error != 0 ? error : -EHOSTDOWN);
    }
}

/* Remove a waiting ask from a list, because its asker has cancelled it. Returns whether the list
 * had it. */
static bool cancel_ask_in_list(domi_cluster_gateway *gateway, domi_held_list *list, domus_kept kept)
{
    domi_held *before = NULL;

    for (domi_held *held = list->first; held != NULL; before = held, held = held->next) {
        if (!held->is_ask || held->kept.stack != kept.stack || held->kept.serial != kept.serial)
            continue;
        *(before != NULL ? &before->next : &list->first) = held->next;
        if (list->last == held)
            list->last = before;
        domi_held_free_message(gateway, held);
        return true;
    }
    return false;
}

bool domi_routes_cancel_waiting_ask(domi_cluster_gateway *gateway, domus_kept kept)
{
    bool found = false;

    if (gateway->routes == NULL || gateway->waiting_bytes == 0)
        return false;
    for (uint32_t i = 0; !found && i < DOMUS_REMOTE_PARTS; i++)
        found = cancel_ask_in_list(gateway, &gateway->routes[i].returned, kept) ||
                cancel_ask_in_list(gateway, &gateway->routes[i].waiting, kept);
    return found;
}
