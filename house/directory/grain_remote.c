/* Implements the verbs of domus/remote.h for grains that are spread over nodes. */
#include "base/memory.h"
#include "house/conversation/ask_make.h"
#include "house/directory/grain_parts.h"
#include "house/directory/remote.h"

#include <errno.h>
#include <string.h>

/* True if the actor that runs now is the gateway of its thread. */
static bool is_running_actor_gateway(const domus_stack *stack)
{
    return stack->manager->gateway == domi_stack_get_house(stack);
}

/* Returns the state of spread kinds; NULL: no kind is spread over nodes. */
static domi_grain_parts *get_state_of_spread_kinds(const domus_stack *stack)
{
    domi_grains *grains = stack->manager->directory.grains;

    /* acquire: pairs with the release in publish_state_of_spread_kinds(). */
    return grains != NULL ? atomic_load_explicit(&grains->parts, memory_order_acquire) : NULL;
}

/* --- kinds ------------------------------------------------------------------------------------ */

/* Make one of the two addresses that stand for grains in messages of gateways. */
static int make_address_that_stands_for_grains(domi_remotes *remotes, uint32_t number,
                                               domus_address *ret_address)
{
    const domus_remote_name name = {.node = DOMUS_REMOTE_GRAINS, .number = number, .lease = 1};

    return domi_remote_find_or_make(remotes, &name, 0, ret_address);
}

static int make_state_of_spread_kinds(const domus_stack *stack, domi_grain_parts **ret_parts)
{
    domi_remotes *remotes = stack->manager->directory.remotes;
    uint32_t threads = stack->manager->threads;
    domi_grain_parts *parts = domi_memory_new(sizeof *parts + (size_t)threads * DOMUS_REMOTE_PARTS);

    if (parts == NULL)
        return -ENOMEM;
    int error = domi_remote_node_open(remotes, DOMUS_REMOTE_GRAINS, 0);
    if (error == -EALREADY)
        error = 0;
    if (error == 0)
        error = make_address_that_stands_for_grains(remotes, 0, &parts->elsewhere);
    if (error == 0)
        error = make_address_that_stands_for_grains(remotes, 1, &parts->here);
    if (error != 0) {
        domi_memory_free(parts);
        return error;
    }
    /* Relaxed: a thread gets the address for grains only after this store. */
    atomic_store_explicit(&domi_remote_of_face(parts->here.house)->is_here, true,
                          memory_order_relaxed);
    parts->threads = threads;
    *ret_parts = parts;
    return 0;
}

/* Publish `parts` as the state of the system's spread kinds, unless the system has one already.
 * Returns the one that the system has now. */
static domi_grain_parts *publish_state_of_spread_kinds(domi_grains *grains, domi_grain_parts *made)
{
    domi_grain_parts *before = NULL;

    /* release: pairs with the acquire loads of the system's `parts`. */
    if (atomic_compare_exchange_strong_explicit(&grains->parts, &before, made, memory_order_acq_rel,
                                                memory_order_acquire))
        return made;
    domi_memory_free(made);
    return before;
}

int domus_remote_grains_place(domus_stack *stack, domus_grains grains)
{
    domi_grain_parts *parts;

    if (!is_running_actor_gateway(stack))
        return -EPERM;
    if (grains.kind == NULL)
        return -EINVAL;
    parts = get_state_of_spread_kinds(stack);
    if (parts == NULL) {
        int error = make_state_of_spread_kinds(stack, &parts);
        if (error != 0)
            return error;
        parts = publish_state_of_spread_kinds(stack->manager->directory.grains, parts);
    }
    /* release: pairs with the acquire load in domi_grain_put_here_or_to_gateway(). */
    atomic_store_explicit(&grains.kind->parts, parts, memory_order_release);
    return 0;
}

static bool is_kind_spread_over_nodes(const domi_grain_kind *kind)
{
    return kind != NULL &&
           atomic_load_explicit((_Atomic(domi_grain_parts *) *)(uintptr_t)&kind->parts,
                                memory_order_acquire) != NULL;
}

int domus_remote_grains_find(const domus_stack *stack, const char *name, domus_grains *ret_grains)
{
    domi_grains *grains = stack->manager->directory.grains;
    domi_grain_kind *kind = grains != NULL ? domi_grain_kind_find(grains, name) : NULL;

    if (!is_kind_spread_over_nodes(kind))
        return -ENOENT;
    ret_grains->kind = kind;
    return 0;
}

int domus_remote_part_of(domus_grains grains, const char *key)
{
    return grains.kind != NULL ? domi_grain_part_of_key(grains.kind, key) : -EINVAL;
}

/* --- messages --------------------------------------------------------------------------------- */

int domus_remote_grain_of(const domus_stack *stack, domus_remote_grain *ret_grain)
{
    domus_remote_message message;
    int error = domus_remote_target(stack, &message);

    if (error == 0 && message.to.node != DOMUS_REMOTE_GRAINS)
        error = -EINVAL;
    if (error != 0)
        return error;
    const domi_grain_tail *tail = domi_grain_tail_of_message(stack->message);
    *ret_grain =
        (domus_remote_grain){.grains = {tail->kind}, .kind = tail->kind->name, .part = tail->part};
    memcpy(ret_grain->key, tail->key, sizeof ret_grain->key);
    return 0;
}

int domus_remote_grain_pass(domus_stack *stack)
{
    const domi_grain_parts *parts = get_state_of_spread_kinds(stack);

    if (!is_running_actor_gateway(stack))
        return -EPERM;
    return parts != NULL ? domus_forward(stack, parts->here) : -EINVAL;
}

int domus_remote_grain_pass_kept(domus_stack *stack, domus_kept kept)
{
    const domi_grain_parts *parts = get_state_of_spread_kinds(stack);

    if (!is_running_actor_gateway(stack))
        return -EPERM;
    return parts != NULL ? domus_kept_forward(stack, kept, parts->here) : -EINVAL;
}

int domus_remote_grain_notice(domus_stack *stack, domus_address from, domus_grains grains,
                              const char *key, const domus_type *type, const void *payload)
{
    domi_manager *manager = stack->manager;
    domus_address to;

    if (!is_running_actor_gateway(stack))
        return -EPERM;
    if (grains.kind == NULL)
        return -EINVAL;
    if (type->size > DOMUS_PAYLOAD_MAX)
        return -EMSGSIZE;
    domi_envelope *envelope = domi_message_new(manager, DOMI_ENVELOPE_HEAD + type->size);
    if (envelope == NULL)
        return domi_message_error_of_failed_new(manager);
    domi_envelope_set_type_and_sender(envelope, type, domi_stack_get_house(stack));
    envelope->sender = from.house;
    envelope->sender_lease = from.lease;
    domi_payload_copy(envelope->payload, payload, type->size);
    int error = domi_grain_put_in_this_system(manager, domi_stack_get_house(stack)->home,
                                              grains.kind, key, &envelope->node, DOMI_NOTICE, &to);
    if (error != 0)
        domi_pool_free_object(manager, &envelope->node);
    return error;
}

/* The parameters of put_ask_to_local_grain(): the grain that an ask is for. */
typedef struct asked_grain {
    domus_grains grains;
    const char *key;
} asked_grain;

static int put_ask_to_local_grain(domi_manager *manager, domus_address nobody_known,
                                  domi_node *node, void *asked_)
{
    const asked_grain *asked = asked_;
    domus_address to;

    (void)nobody_known;
    return domi_grain_put_in_this_system(manager, manager, asked->grains.kind, asked->key, node,
                                         DOMI_ASK, &to);
}

int domus_remote_grain_ask(domus_stack *stack, domus_conversation asker, domus_address from,
                           domus_grains grains, const char *key, const domus_type *type,
                           const void *payload, uint64_t timeout_ns, uint64_t tag,
                           domus_remote_asked *ret_asked)
{
    asked_grain asked = {grains, key};

    if (grains.kind == NULL)
        return -EINVAL;
    return domi_remote_ask_by_put_function(stack, asker, from, (domus_address){NULL, 0}, type,
                                           payload, timeout_ns, tag, put_ask_to_local_grain, &asked,
                                           ret_asked);
}

/* --- parts ------------------------------------------------------------------------------------ */

int domus_remote_part_open(domus_stack *stack, uint32_t part)
{
    domi_manager *manager = stack->manager;
    domi_house *gateway = manager->gateway;
    domi_grain_parts *parts = get_state_of_spread_kinds(stack);

    if (!is_running_actor_gateway(stack))
        return -EPERM;
    if (parts == NULL || part >= DOMUS_REMOTE_PARTS)
        return -EINVAL;
    if (gateway->tails[DOMI_ASK] != NULL || gateway->tails[DOMI_NOTICE] != NULL ||
        atomic_load_explicit(&gateway->inbox, memory_order_relaxed) != 0)
        return -EAGAIN;
    parts->opened[manager->index * DOMUS_REMOTE_PARTS + part] = 1;
    return 0;
}

void domus_remote_part_close(domus_stack *stack, uint32_t part)
{
    domi_grain_parts *parts = get_state_of_spread_kinds(stack);

    if (is_running_actor_gateway(stack) && parts != NULL && part < DOMUS_REMOTE_PARTS)
        parts->opened[stack->manager->index * DOMUS_REMOTE_PARTS + part] = 0;
}

int domus_remote_part_set(domus_stack *stack, uint32_t part, uint64_t fence)
{
    domi_grain_parts *parts = get_state_of_spread_kinds(stack);

    if (part >= DOMUS_REMOTE_PARTS)
        return -EINVAL;
    if (parts == NULL)
        return -ENOENT;
    /* seq_cst: the comment in record_part_of_new_grain() of grain.c says why. */
    atomic_store_explicit(&parts->fences[part], fence, memory_order_seq_cst);
    return 0;
}

/* The parameters of a walk that stops the grains of some parts. */
typedef struct stopping {
    domus_stack *stack;
    const domus_remote_parts *parts;
    domi_grain_kind *kind;
    bool after_mail;
} stopping;

static bool is_part_in_set(const domus_remote_parts *parts, uint32_t part)
{
    return (parts->bits[part / 64] >> part % 64 & 1) != 0;
}

static void stop_life_of_grain(const char *key, domus_address life, void *context)
{
    const stopping *walk = context;

    /* A grain whose life is being made has no life to stop yet; the next walk finds it. */
    if (life.lease == 0 ||
        !is_part_in_set(walk->parts, (uint32_t)domi_grain_part_of_key(walk->kind, key)))
        return;
    if (walk->after_mail)
        (void)domus_stop_after_mail(walk->stack, life);
    else
        (void)domus_stop(walk->stack, life);
}

uint32_t domus_remote_part_living(const domus_stack *stack, uint32_t part)
{
    domi_grain_parts *parts = get_state_of_spread_kinds(stack);

    if (parts == NULL || part >= DOMUS_REMOTE_PARTS)
        return 0;
    /* seq_cst: the comment in record_part_of_new_grain() of grain.c says why. */
    return atomic_load_explicit(&parts->living[part], memory_order_seq_cst);
}

void domus_remote_parts_stop(domus_stack *stack, const domus_remote_parts *parts, bool after_mail)
{
    stopping walk = {.stack = stack, .parts = parts, .after_mail = after_mail};
    uint32_t part = 0;

    while (part < DOMUS_REMOTE_PARTS &&
           (!is_part_in_set(parts, part) || domus_remote_part_living(stack, part) == 0))
        part++;
    if (part == DOMUS_REMOTE_PARTS)
        return;
    for (walk.kind = domi_grain_kind_first(stack->manager->directory.grains); walk.kind != NULL;
         walk.kind = walk.kind->next) {
        if (is_kind_spread_over_nodes(walk.kind))
            domi_names_visit_all(&walk.kind->names, stop_life_of_grain, &walk);
    }
}
