/* An answer travels in the envelope of its ask, if it fits into it. */
#include "house/conversation/asks.h"

#include "base/check.h"
#include "house/conversation/stack.h"
#include "house/message/letters.h"
#include "house/message/mailbox.h"
#include "house/message/owned.h"
#include "house/message/sign.h"

#include <errno.h>
#include <string.h>

void domi_ask_fail(domi_manager *manager, domi_envelope *ask, int error)
{
    domus_address asker = {ask->sender, ask->sender_lease};

    /* the failed ask is a request of the channel's peer that has not left this house (asks.h) */
    if (DOMI_UNLIKELY(domi_envelope_get_return_of_ask(ask)->promise == NULL)) {
        manager->io_hooks.fail_request(manager, asker.house, ask, error);
        return;
    }
    domi_envelope_release_payload(ask);
    ask->error = error;
    ask->type = NULL;
    ask->sender = NULL;
    if (domi_mailbox_put(manager, asker, &ask->node, DOMI_EXCEPTION) != 0) {
        domi_letters_report_dead_letter(manager, asker, ask, -ESTALE);
        domi_pool_free_object(manager, &ask->node);
    }
}

void domi_ask_drop_expired(domi_manager *manager, domi_envelope *ask)
{
    domi_counter_add(&manager->counters.asks_expired, 1);
    domi_envelope_release_and_free(manager, ask);
}

/* Returns the envelope for a reply: the ask's own if the reply fits into it, else a larger one;
 * NULL if there is no memory. */
static domi_envelope *get_envelope_for_reply(domi_manager *manager, domi_envelope *ask,
                                             uint32_t size)
{
    if (DOMI_ASK_HEAD + size <= domi_envelope_bytes_in_all(manager, ask))
        return ask;
    domi_envelope *envelope = domi_envelope_new(manager, DOMI_ASK_HEAD + size);
    if (envelope == NULL)
        return NULL;
    *domi_envelope_get_return_of_ask(envelope) = *domi_envelope_get_return_of_ask(ask);
    return envelope;
}

/* Write a reply over the payload of its ask, whose type has a `release`. The reply may be made from
 * that payload, so the payload is copied first, then the reply is moved into place, and then what
 * the ask owned is released by the copy. */
static void write_reply_over_owned_payload(domi_envelope *ask, const domus_type *type,
                                           const void *payload)
{
    const domus_type *asked = ask->type;
    alignas(16) unsigned char copy[DOMI_POOLED_MAX - DOMI_ASK_HEAD];

    /* the payload of the ask fits into `copy`: an ask whose envelope is larger, from the heap, gets
     * a new envelope for its reply instead */
    DOMI_CHECK(asked->size <= sizeof copy);
    memcpy(copy, domi_envelope_get_payload(ask), asked->size);
    if (type->size != 0)
        memmove((char *)ask + DOMI_ASK_HEAD, payload, type->size);
    asked->release(copy);
}

/* Write the reply into its envelope where a plain copy does not do: if the reply needs a larger
 * envelope than its ask's, or if the ask owns something. Returns the envelope of the reply; NULL
 * without memory, and then the ask has failed. */
__attribute__((noinline)) static domi_envelope *
write_reply_that_needs_more_than_copy(domi_manager *manager, domi_envelope *ask,
                                      const domus_type *type, const void *payload)
{
    domi_envelope *reply = get_envelope_for_reply(manager, ask, type->size);

    if (reply == NULL) {
        if (type->release != NULL)
            type->release((void *)(uintptr_t)payload);
        domi_ask_fail(manager, ask, -ENOMEM);
        return NULL;
    }
    if (reply == ask && ask->type->release != NULL && !domi_envelope_is_payload_taken(ask))
        write_reply_over_owned_payload(ask, type, payload);
    else if (type->size != 0)
        memmove((char *)reply + DOMI_ASK_HEAD, payload, type->size);
    if (reply != ask)
        domi_envelope_release_and_free(manager, ask);
    return reply;
}

void domi_ask_answer_for_house(domi_manager *manager, domi_house *house, domi_envelope *ask,
                               const domus_type *type, const void *payload)
{
    domus_address asker = {ask->sender, ask->sender_lease};
    domi_envelope *reply = ask;

    if (DOMI_UNLIKELY(asker.house == house) && domi_ask_is_of_peer(ask, house)) {
        manager->io_hooks.answer_request(manager, house, ask, type, payload);
        return;
    }

    if (DOMI_UNLIKELY(DOMI_ASK_HEAD + type->size > domi_envelope_bytes_in_all(manager, ask) ||
                      ask->type->release != NULL)) {
        reply = write_reply_that_needs_more_than_copy(manager, ask, type, payload);
        if (reply == NULL)
            return;
    } else {
        /* The reply may be made from the ask's own payload, so the copied bytes and their new place
         * may overlap. */
        domi_payload_copy_overlapping((char *)reply + DOMI_ASK_HEAD, payload, type->size);
    }
    domi_envelope_set_type_and_sender(reply, type, house);
    if (domi_mailbox_put(manager, asker, &reply->node, DOMI_REPLY) != 0) {
        domi_letters_report_dead_letter(manager, asker, reply, -ESTALE);
        domi_answer_release_and_free(manager, reply);
    }
}
