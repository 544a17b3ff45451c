/* Puts messages to grains that may live on other nodes. A message that this thread may not put to a
 * grain here goes to the thread's gateway, as a copy with a tail. The gateway pickles it anyway,
 * and a copy costs little beside that. */
#include "house/directory/grain_parts.h"

#include "house/message/mailbox.h"
#include "house/message/pool.h"

#include <errno.h>
#include <string.h>

/* Returns the offset of the tail, which names the grain, in a message. */
static uint32_t get_offset_of_tail_in_message(uint32_t head, const domus_type *type)
{
    return (head + type->size + 7) & ~7u;
}

static uint32_t get_size_of_head_of_message(uint32_t mail)
{
    return mail == DOMI_ASK ? DOMI_ASK_HEAD : DOMI_ENVELOPE_HEAD;
}

const domi_grain_tail *domi_grain_tail_of_message(const domi_envelope *message)
{
    return (
        const domi_grain_tail *)(const void *)((const char *)message +
                                               get_offset_of_tail_in_message(
                                                   get_size_of_head_of_message(message->node.kind),
                                                   message->type));
}

/* Put a copy of the message, with a tail that names the grain, to the gateway. Returns 0 if the
 * message was freed; else a negative errno. */
static int put_copy_with_tail_to_gateway(domi_manager *manager, domus_address elsewhere,
                                         domi_envelope *message, uint32_t mail,
                                         const domi_grain_tail *tail)
{
    uint32_t at = get_offset_of_tail_in_message(get_size_of_head_of_message(mail), message->type);
    domi_envelope *copy = domi_message_new(manager, at + sizeof *tail);

    if (copy == NULL)
        return domi_message_error_of_failed_new(manager);
    memcpy((char *)copy + sizeof copy->node, (char *)message + sizeof message->node,
           get_size_of_head_of_message(mail) + message->type->size - sizeof copy->node);
    memcpy((char *)copy + at, tail, sizeof *tail);
    int error = domi_mailbox_put(manager, elsewhere, &copy->node, mail);
    domi_pool_free_object(manager, error == 0 ? &message->node : &copy->node);
    return error;
}

/* True if no message of the kind `mail` (asks or notices) waits for the gateway. Home. */
static bool is_mailbox_of_gateway_empty(const domi_house *gateway, uint32_t mail)
{
    return gateway != NULL && gateway->tails[mail] == NULL &&
           atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)&gateway->inbox,
                                memory_order_relaxed) == 0;
}

int domi_grain_put_here_or_to_gateway(domi_manager *manager, domi_manager *near,
                                      domi_grain_kind *kind, const char *key, domi_node *node,
                                      uint32_t mail, domus_address *ret_address)
{
    /* acquire: pairs with the release store in domus_remote_grains_place(). */
    const domi_grain_parts *parts = atomic_load_explicit(&kind->parts, memory_order_acquire);
    domi_grain_tail tail = {.kind = kind};
    int part = domi_grain_part_of_key(kind, key);

    if (part < 0)
        return part;
    /* Messages that the actor sent while it was lent may still wait for the gateway, so the gateway
     * has to be idle. An actor of a pool, or one on a borrower's thread, is on no thread whose
     * gateway could know whether earlier messages of the actor are on the way. */
    if (manager == near && manager->index < parts->threads &&
        parts->opened[manager->index * DOMUS_REMOTE_PARTS + (uint32_t)part] != 0 &&
        is_mailbox_of_gateway_empty(manager->gateway, mail))
        return domi_grain_put_in_this_system(manager, near, kind, key, node, mail, ret_address);
    tail.part = (uint32_t)part;
    memcpy(tail.key, key, strlen(key) + 1);
    *ret_address = parts->elsewhere;
    return put_copy_with_tail_to_gateway(manager, parts->elsewhere, (domi_envelope *)(void *)node,
                                         mail, &tail);
}

int domi_grain_put_by_tail_of_message(domi_manager *manager, domi_node *node)
{
    const domi_grain_tail *tail = domi_grain_tail_of_message((domi_envelope *)(void *)node);
    domus_address to;

    return domi_grain_put_in_this_system(manager, manager, tail->kind, tail->key, node, node->kind,
                                         &to);
}
