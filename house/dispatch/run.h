/* What a run does with one message: the parts that dispatch.c, which runs houses with mail of one
 * kind, and order.c, which runs all others, have in common.
 *
 * Only inlined functions get the address of a run, so that the compiler keeps its fields in
 * registers; all others get what they need of it. */
#ifndef DOMI_HOUSE_DISPATCH_RUN_H
#define DOMI_HOUSE_DISPATCH_RUN_H

#include "base/check.h"
#include "house/conversation/answer.h"
#include "house/conversation/turn.h"
#include "house/dispatch/order.h"
#include "house/dispatch/rows.h"
#include "house/family/life.h"
#include "house/message/owned.h"

/* `stack` serves all turns whose conversations end at once. domi_stack_prepare() sets it up before
 * the first message of a kind, and again after a turn that did not end at once: it parked, failed,
 * still owed its answer, or a verb left work for its end. A turn that ends at once changes `ask`
 * and `message`, which domi_run_handle() sets for each message; `sender`, which is read only after
 * a turn has set it; and `answered`, which only a turn of an ask reads. */
struct domi_run {
    domi_manager *manager; /* of the thread that runs the house */
    domi_house *house;     /* the house that runs */
    domus_stack *stack;    /* set up once for turns that end at once */
    uint32_t left;         /* messages that this run may still handle */
};

/* Count the messages of `kind` that were handled since `before` places were left. */
DOMI_INLINE void domi_run_count(const domi_run *run, uint32_t kind, uint32_t before)
{
    domi_counter_add(&run->manager->counters.handled[kind], before - run->left);
}

/* Call a row without a frame. Frees the message if it is a notice that the handler did not keep.
 * Inlined, so that `kind` is a constant. */
DOMI_INLINE void domi_run_handle(domi_manager *manager, domi_house *house, domus_stack *stack,
                                 domi_envelope *message, const domus_on *on, uint32_t kind)
{
    stack->ask = kind == DOMI_ASK ? message : NULL;
    stack->message = message;
    domi_turn_begin(stack, message->type);
    int result = on->handle(stack, house->self, domi_envelope_payload_of(message, kind));
    if (kind == DOMI_NOTICE && DOMI_LIKELY(stack->message != NULL))
        domi_envelope_end(manager, message);
    if (!domi_turn_end_begun(stack, result, kind))
        domi_stack_prepare(stack, manager, house);
}

/* Take the next reply. */
DOMI_INLINE void domi_run_take_reply(domi_run *run)
{
    domi_node *node = domi_list_take(&run->house->tails[DOMI_REPLY]);

    run->house->replies--;
    run->left--;
    domi_stack_take_answer(run->manager, run->house, (domi_envelope *)(void *)node);
}

/* Take replies down to `kept` places. */
DOMI_INLINE void domi_run_take_replies(domi_run *run, uint32_t kept)
{
    uint32_t before = run->left;

    while (run->house->tails[DOMI_REPLY] != NULL && run->left > kept)
        domi_run_take_reply(run);
    domi_run_count(run, DOMI_REPLY, before);
}

/* True if the house may take the next ask or notice. */
DOMI_INLINE bool domi_run_may_take(domi_manager *manager, domi_house *house)
{
    if ((house->marks & (DOMI_MARKS_HOLD | DOMI_MARK_STOPPING)) != 0)
        return false;
    if (DOMI_UNLIKELY(domi_house_is_asked_to_stop(house))) {
        domi_house_stop_begin(manager, house);
        return false;
    }
    return true;
}

/* Take the next ask, or notice. Inlined, so that `kind` is a constant. */
DOMI_INLINE void domi_run_take_one(domi_run *run, uint32_t kind)
{
    domi_house *house = run->house;
    domi_envelope *message = (domi_envelope *)(void *)domi_list_take(&house->tails[kind]);

    house->mail--;
    run->left--;
    const domus_on *on = domi_row_of(house->behaviour, message->type);
    if (kind == DOMI_ASK && DOMI_UNLIKELY(domi_ask_is_expired(run->manager, message)))
        domi_ask_expire(run->manager, message);
    else if (DOMI_UNLIKELY(on == NULL))
        domi_run_handle_rest(run->manager, house, run->stack, message, kind);
    else if (DOMI_UNLIKELY(on->frame_size != 0))
        domi_run_handle_framed(run->manager, house, message, on, kind);
    else
        domi_run_handle(run->manager, house, run->stack, message, on, kind);
}

/* Take asks, or notices, down to `kept` places. */
DOMI_INLINE void domi_run_take(domi_run *run, uint32_t kind, uint32_t kept)
{
    domi_house *house = run->house;
    uint32_t before = run->left;

    domi_stack_prepare(run->stack, run->manager, house);
    while (house->tails[kind] != NULL && run->left > kept && domi_run_may_take(run->manager, house))
        domi_run_take_one(run, kind);
    domi_run_count(run, kind, before);
}

#endif
