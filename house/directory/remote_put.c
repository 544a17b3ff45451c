/* Puts messages for remote actors to gateways: asks and notices to the gateway of the sender's
 * home, so that they stay in order; answers to the gateway that has made the ask; watches to the
 * gateway that owns the address. */
#include "house/directory/grain_parts.h"
#include "house/directory/remote.h"

#include "house/conversation/holder.h"
#include "house/conversation/promise.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "house/message/remote.h"
#include "house/message/shared.h"
#include "house/message/types.h"

#include <errno.h>

const domus_type domus_remote_stop_type = {.name = "remote stop",
                                           .size = sizeof(domus_remote_stop)};
const domus_type domus_remote_stop_after_mail_type = {.name = "remote stop after mail"};
const domus_type domus_remote_joined_type = {.name = "remote joined",
                                             .size = sizeof(domus_remote_joined)};

static_assert(sizeof(domus_remote_stop) <= sizeof(((domi_envelope *)NULL)->payload),
              "a small notice");
static_assert(sizeof(domus_remote_joined) <= sizeof(((domi_envelope *)NULL)->payload),
              "a small notice");

domus_address domi_remote_gateway_of_manager(const domi_manager *manager, uint32_t index)
{
    domi_remotes *remotes = manager->directory.remotes;

    if (remotes == NULL)
        return (domus_address){NULL, 0};
    /* acquire: pairs with the release store in domi_remotes_allocate_tables(). */
    domi_gateway *gateways = atomic_load_explicit(&remotes->gateways, memory_order_acquire);
    if (gateways == NULL || index >= remotes->threads)
        return (domus_address){NULL, 0};
    /* acquire, by these loads: they pair with the stores of domus_remote_open(). Behind this lease
     * the house of an earlier gateway cannot be read any more. If the house is that of a later
     * gateway, the second load of the lease reads a later opening, however often the gateway has
     * changed. */
    uint64_t lease = atomic_load_explicit(&gateways[index].lease, memory_order_acquire);
    domi_house *house = atomic_load_explicit(&gateways[index].house, memory_order_acquire);
    if (house == NULL ||
        atomic_load_explicit(&gateways[index].lease, memory_order_relaxed) != lease)
        return (domus_address){NULL, 0};
    return (domus_address){house, (uint32_t)lease};
}

domus_address domi_remote_gateway_for_sender(const domi_manager *manager, const domi_house *sender)
{
    uint32_t threads = manager->threads;
    uint32_t index = manager->index < threads ? manager->index : 0;

    if (sender != NULL && sender->home == NULL)
        index = atomic_load_explicit(&domi_remote_of_face((domi_house *)(uintptr_t)sender)->owner,
                                     memory_order_relaxed);
    else if (sender != NULL && sender->home->index < threads)
        index = sender->home->index;
    else if (sender != NULL)
        index = (uint32_t)((uintptr_t)sender / sizeof(domi_house) % threads);
    domus_address gateway = domi_remote_gateway_of_manager(manager, index);
    for (uint32_t i = 0; gateway.house == NULL && i < threads; i++)
        gateway = domi_remote_gateway_of_manager(manager, i);
    return gateway;
}

/* Put an ask or a notice for a remote actor into the mailbox of the sender's gateway. */
static int put_message_to_gateway(domi_manager *manager, domi_remote *remote,
                                  domi_envelope *message)
{
    const domi_envelope before = *message;
    int error = atomic_load_explicit(
        &atomic_load_explicit(&remote->node, memory_order_relaxed)->error, memory_order_relaxed);

    /* Relaxed: an address becomes a member of a group only after it was marked as its outlet. */
    if (message->node.slab == DOMI_SLAB_SHARED && domi_shared_notice_is_from_other_node(message) &&
        atomic_load_explicit(&remote->is_outlet, memory_order_relaxed))
        return -ESTALE; /* a message from another node does not go back to other nodes */
    if (error != 0) {
        if (error == -ENOBUFS)
            domi_counter_add(&manager->counters.refusals, 1);
        return error;
    }
    domus_address gateway = domi_remote_gateway_for_sender(manager, message->sender);
    if (gateway.house == NULL)
        return -EHOSTDOWN;
    message->error = domi_remote_tag_of_index_and_lease(remote->index, message->node.lease);
    /* the notice of domus_stop_after_mail() would stop the gateway itself, so it gets another
     * type */
    if (message->type == &domi_last_type)
        message->type = &domus_remote_stop_after_mail_type;
    error = domi_mailbox_put(manager, gateway, &message->node, message->node.kind);
    if (error != 0) {
        message->error = before.error;
        message->type = before.type;
        message->node.lease = before.node.lease;
        return error == -ESTALE ? -EHOSTDOWN : error;
    }
    return 0;
}

/* Put an answer, or an event that tells who holds an ask, to the gateway that has made the promise
 * of the ask. The memory of a promise belongs to one manager for ever. */
static int put_answer_to_asking_gateway(domi_manager *manager, domi_envelope *answer)
{
    const domi_promise *promise = domi_envelope_get_return_of_ask(answer)->promise;

    return domi_mailbox_put(manager, domi_remote_gateway_of_manager(manager, promise->node.owner),
                            &answer->node, answer->node.kind);
}

/* Tell all gateways that an ask was cancelled; the gateway that keeps the ask finds it. */
static int put_cancel_to_all_gateways(domi_manager *manager, domi_envelope *cancel)
{
    for (uint32_t i = 0; i < manager->threads; i++) {
        domus_address gateway = domi_remote_gateway_of_manager(manager, i);
        if (gateway.house != NULL)
            domi_ask_tell_actor_of_cancel(manager, gateway,
                                          domi_envelope_get_return_of_ask(cancel));
    }
    domi_pool_free_object(manager, &cancel->node);
    return 0;
}

/* Put the node of a watch on a remote actor to the gateway that owns the address. */
static int put_watch_to_owning_gateway(domi_manager *manager, const domi_remote *remote,
                                       domi_node *node)
{
    domus_address gateway = domi_remote_gateway_of_manager(
        manager,
        atomic_load_explicit((_Atomic uint16_t *)(uintptr_t)&remote->owner, memory_order_relaxed));

    node->lease = gateway.lease;
    return domi_mailbox_put_slow(manager, gateway.house, node);
}

int domi_remote_put_to_gateway(domi_manager *manager, domi_house *face, domi_node *node)
{
    domi_remote *remote = domi_remote_of_face(face);
    domi_envelope *message = (domi_envelope *)(void *)node;

    if (node->kind == DOMI_REPLY || node->kind == DOMI_EXCEPTION)
        return put_answer_to_asking_gateway(manager, message);
    if (node->kind == DOMI_WATCH && node->slab == DOMI_SLAB_UNWATCH)
        return put_watch_to_owning_gateway(manager, remote, node);
    /* acquire: pairs with the release store in make_remote_address_of_name(). */
    if (atomic_load_explicit(&face->life, memory_order_acquire) != (uint64_t)node->lease << 32)
        return -ESTALE;
    if (node->kind == DOMI_WATCH)
        return put_watch_to_owning_gateway(manager, remote, node);
    if (atomic_load_explicit(&remote->idle, memory_order_relaxed) != 0)
        atomic_store_explicit(&remote->idle, 0, memory_order_relaxed);
    if (domi_node_is_user_mail(node))
        return atomic_load_explicit(&remote->is_here, memory_order_relaxed)
                   ? domi_grain_put_by_tail_of_message(manager, node)
                   : put_message_to_gateway(manager, remote, message);
    if (node->kind != DOMI_EVENT || domi_node_is_part_of_object(node))
        return -ESTALE;
    if (message->type == &domi_held_type)
        return put_answer_to_asking_gateway(manager, message);
    return message->type == &domi_cancel_type ? put_cancel_to_all_gateways(manager, message)
                                              : -ESTALE;
}

/* Put an event to a gateway that tells it the name of a remote actor. */
static int put_name_of_remote_to_gateway(domi_manager *manager, domus_address gateway,
                                         const domus_type *type, const domus_remote_name *name)
{
    domi_envelope *message = domi_envelope_new(manager, sizeof *message);

    if (message == NULL)
        return -ENOMEM;
    message->type = type;
    message->sender = NULL;
    message->sender_lease = 0;
    *(domus_remote_name *)(void *)message->payload = *name;
    int error = domi_mailbox_put(manager, gateway, &message->node, DOMI_EVENT);
    if (error != 0)
        domi_pool_free_object(manager, &message->node);
    return error == 0 ? 0 : -EHOSTDOWN;
}

int domi_remote_stop_actor(domi_manager *manager, domus_address address)
{
    domi_remote *remote = domi_remote_of_face(address.house);
    domus_remote_name name;

    if (!domi_remote_read_name(manager->directory.remotes, remote, address.lease, UINT32_MAX,
                               &name))
        return -ESTALE;
    return put_name_of_remote_to_gateway(manager,
                                         domi_remote_gateway_for_sender(manager, address.house),
                                         &domus_remote_stop_type, &name);
}

void domi_remote_tell_gateway_of_first_member(domi_manager *manager, domi_remote *outlet)
{
    domus_address gateway = domi_remote_gateway_of_manager(
        manager, atomic_load_explicit(&outlet->owner, memory_order_relaxed));
    domus_remote_name name;

    if (gateway.house != NULL &&
        domi_remote_read_name(manager->directory.remotes, outlet, 0, 0, &name))
        (void)put_name_of_remote_to_gateway(manager, gateway, &domus_remote_joined_type, &name);
}
