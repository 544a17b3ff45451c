/* Implements the verbs of a gateway (domus/remote.h). */
#include "house/directory/remote.h"

#include "house/conversation/ask_make.h"
#include "house/conversation/asks.h"
#include "house/directory/router.h"
#include "house/family/slots.h"
#include "house/family/watch.h"
#include "house/message/mailbox.h"
#include "house/message/remote.h"

#include <errno.h>

bool domus_address_is_remote(domus_address address)
{
    return address.house != NULL && domi_house_is_remote(address.house);
}

/* True if the actor that runs now is the gateway of its thread. */
static bool is_running_actor_gateway(const domus_stack *stack)
{
    return stack->manager->gateway == domi_stack_get_house(stack);
}

static domi_remotes *get_table_of_remote_addresses(const domus_stack *stack)
{
    return stack->manager->directory.remotes;
}

/* --- gateways and nodes ----------------------------------------------------------------------- */

int domus_remote_open(domus_stack *stack, const domus_remote_options *options)
{
    domi_manager *manager = stack->manager;
    domi_house *house = domi_stack_get_house(stack);

    if (house->behaviour->kind != DOMUS_CHANNELS || manager->directory.remotes == NULL ||
        manager->index >= manager->threads)
        return -EOPNOTSUPP;
    if (manager->gateway != NULL)
        return -EEXIST;
    int error = domi_remotes_allocate_tables(manager->directory.remotes, options, manager->threads);
    if (error != 0)
        return error;
    manager->gateway = house;
    domi_gateway *gateway = &atomic_load_explicit(&manager->directory.remotes->gateways,
                                                  memory_order_relaxed)[manager->index];
    uint64_t opening = (uint64_t)++gateway->openings << 32;
    /* release, by these stores: they pair with the loads in domi_remote_gateway_of_manager(). A
     * thread that reads this lease also finds that the last gateway has left, because
     * domi_remote_forget_gateway_if_it_ends() has stored that before. */
    atomic_store_explicit(&gateway->lease, opening | domi_house_get_address(house).lease,
                          memory_order_release);
    atomic_store_explicit(&gateway->house, house, memory_order_release);
    return 0;
}

/* Tell the watches on all remote addresses that this gateway owns of its end, because later no
 * other gateway could do it. */
static void tell_watchers_of_gateways_end(domi_manager *manager)
{
    domi_remotes *remotes = manager->directory.remotes;
    domi_remote *remote;

    for (uint32_t i = 0; (remote = domi_remote_at_index(remotes, i)) != NULL; i++) {
        if (atomic_load_explicit(&remote->owner, memory_order_relaxed) != manager->index)
            continue;
        remote->face.reason = -EHOSTDOWN;
        domi_watch_tell_all_of_end(manager, &remote->face);
    }
}

void domi_remote_forget_gateway_if_it_ends(domi_manager *manager, const domi_house *house)
{
    if (DOMI_LIKELY(manager->gateway != house))
        return;
    domi_gateway *gateways =
        atomic_load_explicit(&manager->directory.remotes->gateways, memory_order_relaxed);
    atomic_store_explicit(&gateways[manager->index].house, NULL, memory_order_relaxed);
    manager->gateway = NULL;
    tell_watchers_of_gateways_end(manager);
}

int domus_remote_gateway(const domus_stack *stack, domus_address *ret_gateway)
{
    const domi_manager *manager = stack->manager;

    if (manager->directory.remotes == NULL)
        return -ENOENT;
    domus_address gateway = domi_remote_gateway_for_sender(manager, domi_stack_get_house(stack));
    if (gateway.house == NULL)
        return -ENOENT;
    *ret_gateway = gateway;
    return 0;
}

int domus_remote_node_open(domus_stack *stack, uint64_t node, int error)
{
    if (!is_running_actor_gateway(stack))
        return -EPERM;
    return node != DOMUS_REMOTE_GRAINS
               ? domi_remote_node_open(get_table_of_remote_addresses(stack), node, error)
               : -EINVAL;
}

int domus_remote_node_set(domus_stack *stack, uint64_t node, int error)
{
    return is_running_actor_gateway(stack)
               ? domi_remote_node_set_state(get_table_of_remote_addresses(stack), node, error)
               : -EPERM;
}

/* --- names ------------------------------------------------------------------------------------ */

/* Returns the house of an actor or router of this system by its name; NULL if there is no such slot
 * or router, or if the house takes no mail of its own: that of a gateway, and the one in whose name
 * foreign threads ask. */
static domi_house *find_local_house_by_name(const domus_stack *stack, const domus_remote_name *name)
{
    domi_manager *manager = stack->manager;
    domi_house *house;

    if (name->home == DOMUS_REMOTE_ROUTER)
        return domi_router_at_number(manager->directory.routers, name->number);
    if (name->home >= manager->count)
        return NULL;
    house = domi_slots_house_at_number(manager->managers[name->home], name->number);
    if (house == manager->asker ||
        domi_remote_gateway_of_manager(manager, name->home).house == house)
        return NULL;
    return house;
}

int domus_remote_address(domus_stack *stack, const domus_remote_name *name,
                         domus_address *ret_address)
{
    if (get_table_of_remote_addresses(stack) == NULL || name->lease == 0 ||
        name->node == DOMUS_REMOTE_GRAINS)
        return -EINVAL;
    if (name->node != DOMUS_REMOTE_HERE)
        return domi_remote_find_or_make(get_table_of_remote_addresses(stack), name,
                                        (uint16_t)(name->home % stack->manager->threads),
                                        ret_address);
    domi_house *house = find_local_house_by_name(stack, name);
    if (house == NULL)
        return -ENOENT;
    *ret_address = (domus_address){house, name->lease};
    return 0;
}

int domus_remote_name_of(domus_stack *stack, domus_address address, domus_remote_name *ret_name)
{
    const domi_house *house = address.house;

    if (house == NULL || address.lease == 0 || house == stack->manager->asker)
        return -EINVAL;
    if (domi_house_is_remote(house))
        return domi_remote_read_name(get_table_of_remote_addresses(stack),
                                     domi_remote_of_face(address.house), address.lease, UINT32_MAX,
                                     ret_name)
                   ? 0
                   : -ESTALE;
    *ret_name = (domus_remote_name){.node = DOMUS_REMOTE_HERE, .lease = address.lease};
    if (house->home == NULL) {
        ret_name->home = DOMUS_REMOTE_ROUTER;
        ret_name->number = domi_router_get_number(address.house);
    } else {
        ret_name->home = (uint16_t)house->home->index;
        ret_name->number = domi_slots_number_of_house(house);
    }
    return 0;
}

bool domus_remote_is_alive(domus_stack *stack, const domus_remote_name *name)
{
    const domi_house *house =
        name->node == DOMUS_REMOTE_HERE ? find_local_house_by_name(stack, name) : NULL;

    if (house == NULL)
        return false;
    uint64_t life = domi_house_life_word(house);
    return DOMI_LIFE_LEASE(life) == name->lease &&
           (life & (DOMI_LIFE_CLOSED | DOMI_LIFE_STOP)) == 0;
}

/* --- what is sent to remote actors ------------------------------------------------------------ */

int domus_remote_target(const domus_stack *stack, domus_remote_message *ret_message)
{
    const domi_envelope *message = stack->message;

    if (!is_running_actor_gateway(stack))
        return -EPERM;
    if (message == NULL || !domi_node_is_user_mail(&message->node))
        return -EINVAL;
    domi_remote *remote = domi_remote_at_index(get_table_of_remote_addresses(stack),
                                               (uint32_t)message->error & DOMI_REMOTE_INDEX_MAX);
    if (remote == NULL)
        return -EINVAL;
    domus_remote_message found = {.type = message->type, .is_ask = message->node.kind == DOMI_ASK};
    if (!domi_remote_read_name(get_table_of_remote_addresses(stack), remote,
                               (uint32_t)message->error >> 24, 0xff, &found.to))
        return -ESTALE;
    *ret_message = found;
    return 0;
}

int domus_remote_keep(domus_stack *stack, domus_kept *ret_kept)
{
    /* Nobody in this system knows whether the remote actor keeps the ask or works for it, so the
     * keeping counts as work. */
    return is_running_actor_gateway(stack) ? domus_keep_working(stack, ret_kept) : -EPERM;
}

/* --- what remote actors send ------------------------------------------------------------------ */

static void set_remote_sender_of_message(domi_envelope *message, domus_address from)
{
    message->sender = from.house;
    message->sender_lease = from.lease;
}

/* Returns 0 if the actor that runs now may send in the name of `from`; else a negative errno. */
static int check_gateway_may_send_as(const domus_stack *stack, domus_address from)
{
    if (!is_running_actor_gateway(stack))
        return -EPERM;
    return from.house == NULL || domi_house_is_remote(from.house) ? 0 : -EINVAL;
}

int domus_remote_notice(domus_stack *stack, domus_address from, domus_address to,
                        const domus_type *type, const void *payload)
{
    domi_manager *manager = stack->manager;
    int error = check_gateway_may_send_as(stack, from);

    if (error != 0)
        return error;
    if (type->size > DOMUS_PAYLOAD_MAX)
        return -EMSGSIZE;
    domi_envelope *envelope = domi_message_new(manager, DOMI_ENVELOPE_HEAD + type->size);
    if (envelope == NULL)
        return domi_message_error_of_failed_new(manager);
    domi_envelope_set_type_and_sender(envelope, type, domi_stack_get_house(stack));
    set_remote_sender_of_message(envelope, from);
    domi_payload_copy(envelope->payload, payload, type->size);
    error = domi_mailbox_put(manager, to, &envelope->node, DOMI_NOTICE);
    if (error != 0)
        domi_pool_free_object(manager, &envelope->node);
    return error;
}

/* The parameters of a put of an ask in the name of a remote actor. */
typedef struct remote_put {
    domus_address from;
    domi_ask_put *put;
    void *context;
} remote_put;

/* Put an ask whose sender is not the actor that makes it. */
static int put_ask_in_name_of_remote_sender(domi_manager *manager, domus_address to,
                                            domi_node *node, void *how_)
{
    const remote_put *how = how_;

    set_remote_sender_of_message((domi_envelope *)(void *)node, how->from);
    return how->put(manager, to, node, how->context);
}

static int put_ask_to_actor(domi_manager *manager, domus_address to, domi_node *node, void *context)
{
    (void)context;
    return domi_mailbox_put(manager, to, node, DOMI_ASK);
}

int domi_remote_ask_by_put_function(domus_stack *stack, domus_conversation asker,
                                    domus_address from, domus_address to, const domus_type *type,
                                    const void *payload, uint64_t timeout_ns, uint64_t tag,
                                    domi_ask_put *put, void *context, domus_remote_asked *ret_asked)
{
    remote_put how = {.from = from, .put = put, .context = context};
    domus_stack *waiting = asker.stack;
    domi_promise *promise = NULL;
    int error = check_gateway_may_send_as(stack, from);

    if (error == 0 && from.house == NULL)
        error = -EINVAL;
    if (error != 0)
        return error;
    if (waiting == NULL || domi_stack_serial(waiting) != asker.serial ||
        domi_stack_get_house(waiting) != domi_stack_get_house(stack) || !waiting->parked ||
        waiting->wait == DOMI_WAIT_NONE)
        return -ENOENT;
    /* An answer finds this gateway by the manager in the promise. The first promise of a stack has
     * no manager set, so it is set here. */
    waiting->first.node.owner = (uint16_t)stack->manager->index;
    error = domi_ask_make_and_put(waiting, to, type, payload, timeout_ns, tag,
                                  put_ask_in_name_of_remote_sender, &how, &promise);
    if (error == 0 && ret_asked != NULL)
        *ret_asked = (domus_remote_asked){promise, domi_promise_serial(promise)};
    return error;
}

int domus_remote_ask(domus_stack *stack, domus_conversation asker, domus_address from,
                     domus_address to, const domus_type *type, const void *payload,
                     uint64_t timeout_ns, uint64_t tag, domus_remote_asked *ret_asked)
{
    return domi_remote_ask_by_put_function(stack, asker, from, to, type, payload, timeout_ns, tag,
                                           put_ask_to_actor, NULL, ret_asked);
}

int domus_remote_cancel(domus_stack *stack, domus_remote_asked asked)
{
    domi_promise *promise = asked.promise;

    if (!is_running_actor_gateway(stack))
        return -EPERM;
    if (promise == NULL || domi_promise_serial(promise) != asked.serial ||
        domi_stack_get_house(domi_promise_get_stack(promise)) != domi_stack_get_house(stack) ||
        promise->state != DOMI_PROMISE_WAITING)
        return -ENOENT;
    domi_ask_cancel_at_its_actor(stack->manager, promise);
    domi_promise_fail(stack->manager, promise, -ECANCELED);
    return 0;
}

/* --- the end of remote actors ----------------------------------------------------------------- */

/* Find the remote address of a name, if this gateway gets the watches on it. */
static int find_remote_whose_watches_we_get(const domus_stack *stack, const domus_remote_name *name,
                                            domi_remote **ret_remote)
{
    if (!is_running_actor_gateway(stack))
        return -EPERM;
    domi_remote *remote = domi_remote_find_by_name(get_table_of_remote_addresses(stack), name);
    if (remote == NULL)
        return -ENOENT;
    if (atomic_load_explicit(&remote->owner, memory_order_relaxed) != stack->manager->index)
        return -EXDEV;
    *ret_remote = remote;
    return 0;
}

int domus_remote_down(domus_stack *stack, const domus_remote_name *name, int reason)
{
    domi_remote *remote;
    int error = find_remote_whose_watches_we_get(stack, name, &remote);

    if (error != 0)
        return error;
    remote->face.reason = (int16_t)reason;
    domi_watch_tell_all_of_end(stack->manager, &remote->face);
    return 0;
}

int domus_remote_end(domus_stack *stack, const domus_remote_name *name, int reason)
{
    domi_remote *remote;
    int error = domus_remote_down(stack, name, reason);

    if (error != 0)
        return error;
    (void)find_remote_whose_watches_we_get(stack, name, &remote);
    domi_remote_end_address(get_table_of_remote_addresses(stack), remote);
    return 0;
}

int domus_remote_room(domus_stack *stack, const domus_remote_name *name)
{
    domi_remote *remote;
    int error = find_remote_whose_watches_we_get(stack, name, &remote);

    if (error != 0)
        return error;
    domi_watch_tell_of_room(stack->manager, &remote->face);
    return 0;
}

uint32_t domus_remote_idle(domus_stack *stack, uint64_t node, uint32_t *cursor,
                           domus_remote_name *ret_names, uint32_t room)
{
    if (!is_running_actor_gateway(stack))
        return 0;
    return domi_remote_list_idle_addresses(get_table_of_remote_addresses(stack), node,
                                           (uint16_t)stack->manager->index, cursor, ret_names,
                                           room);
}
