/* Outsiders send notices and asks. An outsider waits for the answer to its ask, or receives it
 * later. */
#include "runtime/outside/outsider.h"

#include "base/memory.h"
#include "house/conversation/stack.h"

#include <errno.h>
#include <string.h>

const domus_type domus_outsider_failed_type = {.name = "failed", .size = sizeof(int)};

/* --- sending ---------------------------------------------------------------------------------- */

int domus_outsider_notice(domus_outsider *outsider, domus_address to, const domus_type *type,
                          const void *payload)
{
    domi_visit visit;
    domus_stack stack;
    int result = domi_outsider_enter_seat_to_send(outsider, &visit);

    if (result != 0)
        return result;
    domi_outsider_begin_stack_of_verb(outsider, &stack);
    result = domus_notice(&stack, to, type, payload);
    domi_outsider_end_stack_of_verb(outsider, &stack);
    domi_outsider_leave_seat(outsider, &visit);
    return result;
}

static void release_payload_of_ask(const domus_type *type, const void *payload)
{
    if (type->release != NULL)
        type->release((void *)(uintptr_t)payload);
}

static uint64_t limit_timeout_of_ask(uint64_t timeout_ns)
{
    if (timeout_ns == 0)
        return DOMUS_OUTSIDE_ASK_NS;
    return timeout_ns < DOMUS_OUTSIDE_ASK_MAX_NS ? timeout_ns : DOMUS_OUTSIDE_ASK_MAX_NS;
}

/* Enter the seat for an ask. If this fails, what the ask's payload owns is released. */
static int enter_seat_to_ask(domus_outsider *seat, const domus_type *type, const void *payload,
                             domi_visit *ret_visit)
{
    int result = type->size > DOMUS_PAYLOAD_MAX ? -EMSGSIZE
                                                : domi_outsider_enter_seat_to_send(seat, ret_visit);

    if (result == -ESTALE)
        result = -ECANCELED;
    if (result != 0)
        release_payload_of_ask(type, payload);
    return result;
}

/* Begin a conversation of the outsider that sends an ask, and in which `then` is called with the
 * answer; its frame holds `pointer`. With `alone` the conversation raises a barrier, so an ask
 * to this outsider that would wait for the same answer fails with -EDEADLK. Returns 0; a
 * negative errno, and then the payload is released. */
static int begin_conversation_that_asks(domus_outsider *seat, domus_address to,
                                        const domus_type *type, const void *payload,
                                        uint64_t timeout_ns, void *pointer, bool alone,
                                        domus_resumed *then)
{
    domus_stack *stack =
        domi_stack_new(&seat->detached.manager, seat->address.house, sizeof pointer);
    int result = -ENOMEM;

    if (stack != NULL) {
        memcpy(domus_frame(stack), &pointer, sizeof pointer);
        if (alone)
            (void)domus_barrier(stack);
        result = domus_ask_within(stack, to, type, payload, limit_timeout_of_ask(timeout_ns), then);
    }
    if (result != DOMUS_PARKED)
        release_payload_of_ask(type, payload);
    if (stack != NULL)
        domi_stack_park_or_end(stack, result == DOMUS_PARKED ? result : 0);
    return result == DOMUS_PARKED ? 0 : result;
}

/* An ask of an outsider that waits for the answer; it lies on the stack of the outsider's
 * thread. */
typedef struct waiting {
    domus_outside_reply *reply; /* buffer in which the caller wants the answer; NULL: none */
    int result;
    bool done;
} waiting;

static int on_answer_copy_it_to_buffer(domus_stack *stack, void *self, const domus_answer *answer)
{
    waiting *ask = *(waiting **)domus_frame(stack);
    domus_outside_reply *reply = ask->reply;

    (void)self;
    ask->done = true;
    ask->result = answer->error;
    if (answer->error != 0 || reply == NULL)
        return 0;
    reply->type = answer->type;
    reply->length = answer->type->size;
    if (reply->length > reply->size) {
        ask->result = -EMSGSIZE;
        return 0;
    }
    if (reply->length != 0)
        memcpy(reply->buffer, answer->payload, reply->length);
    ask->result = domus_take(stack);
    return 0;
}

/* Serve the outsider's seat until the answer of an ask has come. Returns false if the seat was
 * closed meanwhile; then nothing is locked. */
static bool serve_seat_until_reply(domus_outsider *seat, waiting *ask)
{
    for (;;) {
        domi_seat_serve_once(seat, NULL);
        if (ask->done || domi_seat_has_actor_ended(seat))
            return true;
        if (!domi_seat_sleep(seat, UINT64_MAX))
            return false;
    }
}

int domus_outsider_ask(domus_outsider *outsider, domus_address to, const domus_type *type,
                       const void *payload, uint64_t timeout_ns, domus_outside_reply *reply)
{
    waiting ask = {.reply = reply, .result = -ECANCELED};
    domi_visit visit;
    int result = enter_seat_to_ask(outsider, type, payload, &visit);

    if (result != 0)
        return result;
    result = begin_conversation_that_asks(outsider, to, type, payload, timeout_ns, &ask, true,
                                          on_answer_copy_it_to_buffer);
    if (result == 0 && !serve_seat_until_reply(outsider, &ask)) {
        domi_outsider_leave_unlocked_seat(&visit);
        return -ESHUTDOWN;
    }
    if (result == 0)
        result = ask.result;
    if (result == -ECANCELED && domi_seat_must_actor_stop(outsider))
        result = -ESHUTDOWN;
    domi_outsider_leave_seat(outsider, &visit);
    return result;
}

/* Handle the answer to an ask of domus_outsider_ask_add(): keep it in the seat's list until the
 * owner receives it. The answer's envelope is kept, so no memory is needed. */
static int on_answer_store_it_in_seat(domus_stack *stack, void *self, const domus_answer *answer)
{
    domus_outsider *seat = domi_outsider_of_stack(stack);
    domi_outside_mail *mail = *(domi_outside_mail **)domus_frame(stack);
    domus_outside_message *message = &mail->message;

    (void)self;
    if (answer->error == 0) {
        mail->envelope = stack->message;
        message->type = answer->type;
        message->payload = answer->payload;
        message->sender = domus_sender(stack);
        domi_stack_let_message_leave(stack, mail->envelope);
    } else {
        mail->error = answer->error;
        message->type = &domus_outsider_failed_type;
        message->payload = &mail->error;
    }
    domi_outside_mail_remove_from_list(&seat->asked, mail);
    domi_outside_mail_add_to_list(&seat->answers, mail);
    return 0;
}

int domus_outsider_ask_add(domus_outsider *outsider, domus_address to, const domus_type *type,
                           const void *payload, uint64_t timeout_ns, uint64_t tag)
{
    domi_visit visit;
    domi_outside_mail *mail = NULL;
    int result = enter_seat_to_ask(outsider, type, payload, &visit);

    if (result != 0)
        return result;
    if (outsider->asked_count >= outsider->detached.manager.limits.conversations_max)
        result = -ENOBUFS;
    else if ((mail = domi_memory_new(sizeof *mail)) == NULL)
        result = -ENOMEM;
    if (result != 0) {
        release_payload_of_ask(type, payload);
    } else {
        mail->message.kind = DOMUS_OUTSIDE_ANSWER;
        mail->message.tag = tag;
        result = begin_conversation_that_asks(outsider, to, type, payload, timeout_ns, mail, false,
                                              on_answer_store_it_in_seat);
    }
    if (result == 0) {
        domi_outside_mail_add_to_list(&outsider->asked, mail);
        outsider->asked_count++;
    } else {
        domi_memory_free(mail);
    }
    domi_outsider_leave_seat(outsider, &visit);
    return result;
}
