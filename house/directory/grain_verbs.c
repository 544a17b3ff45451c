/* Implements the verbs of domus/grain.h that send. Messages are made here as those to actors are,
 * and are put to grains. */
#include "house/conversation/ask_make.h"
#include "house/directory/grain_parts.h"

#include <errno.h>

/* The parameters of put_ask_to_grain(): the grain that an ask is for, and the address to which it
 * was put. */
typedef struct asked_grain {
    domi_manager *near; /* the home of the actor that asks */
    domi_grain_kind *kind;
    const char *key;
    domus_address address; /* the address of the grain's life that
                              domi_grain_put_wherever_it_lives() has returned */
} asked_grain;

static int put_ask_to_grain(domi_manager *manager, domus_address nobody_known, domi_node *node,
                            void *asked_)
{
    asked_grain *asked = asked_;

    (void)nobody_known;
    return domi_grain_put_wherever_it_lives(manager, asked->near, asked->kind, asked->key, node,
                                            DOMI_ASK, &asked->address);
}

static int begin_ask_to_grain(domus_stack *stack, domus_grains grains, const char *key,
                              const domus_type *type, const void *payload, uint64_t timeout_ns,
                              uint64_t tag, domi_promise **ret_promise)
{
    asked_grain asked = {
        .near = domi_stack_get_house(stack)->home, .kind = grains.kind, .key = key};
    int error = domi_ask_make_and_put(stack, asked.address, type, payload, timeout_ns, tag,
                                      put_ask_to_grain, &asked, ret_promise);

    /* Only a promise that still waits gets the target; one that has failed already keeps none. */
    if (error == 0 && *ret_promise != NULL && (*ret_promise)->state == DOMI_PROMISE_WAITING)
        (*ret_promise)->target = asked.address;
    return error;
}

int domus_grain_ask_within(domus_stack *stack, domus_grains grains, const char *key,
                           const domus_type *type, const void *payload, uint64_t timeout_ns,
                           domus_resumed *then)
{
    domi_promise *promise = NULL;
    int error = begin_ask_to_grain(stack, grains, key, type, payload, timeout_ns, 0, &promise);

    if (DOMI_UNLIKELY(error != 0))
        return error;
    domi_stack_set_wait(stack->pooled, DOMI_WAIT_ONE, promise, then);
    return DOMUS_PARKED;
}

int domus_grain_ask(domus_stack *stack, domus_grains grains, const char *key,
                    const domus_type *type, const void *payload, domus_resumed *then)
{
    return domus_grain_ask_within(stack, grains, key, type, payload, 0, then);
}

int domus_grain_ask_add(domus_stack *stack, domus_grains grains, const char *key,
                        const domus_type *type, const void *payload, uint64_t timeout_ns,
                        uint64_t tag)
{
    domi_promise *promise = NULL;

    return begin_ask_to_grain(stack, grains, key, type, payload, timeout_ns, tag, &promise);
}

int domi_grain_send_notice(domi_manager *manager, const domi_house *sender, domi_grain_kind *kind,
                           const char *key, const domus_type *type, const void *payload)
{
    domus_address to;

    if (type->size > DOMUS_PAYLOAD_MAX)
        return -EMSGSIZE;
    domi_envelope *envelope = domi_message_new(manager, DOMI_ENVELOPE_HEAD + type->size);
    if (envelope == NULL)
        return domi_message_error_of_failed_new(manager);
    envelope->type = type;
    envelope->sender = NULL;
    envelope->sender_lease = 0;
    if (sender != NULL)
        domi_envelope_set_type_and_sender(envelope, type, sender);
    domi_payload_copy(envelope->payload, payload, type->size);
    int error = domi_grain_put_wherever_it_lives(manager, sender != NULL ? sender->home : manager,
                                                 kind, key, &envelope->node, DOMI_NOTICE, &to);
    if (error != 0)
        domi_pool_free_object(manager, &envelope->node);
    return error;
}

int domus_grain_notice(domus_stack *stack, domus_grains grains, const char *key,
                       const domus_type *type, const void *payload)
{
    return domi_grain_send_notice(stack->manager, domi_stack_get_house(stack), grains.kind, key,
                                  type, payload);
}
