/* The parts of a run. dispatch.c runs houses in which mail of one kind waits, and which have no
 * marks; run.c runs all others: it takes the mailboxes in their order, and keeps places for those
 * that come later. The thread that runs the house calls all this.
 *
 * Only inlined functions get the address of a run, so that the compiler keeps its fields in
 * registers; all others get the fields that they need. */
#ifndef DOMI_HOUSE_DISPATCH_RUN_H
#define DOMI_HOUSE_DISPATCH_RUN_H

#include "base/check.h"
#include "house/conversation/asks.h"
#include "house/conversation/turn.h"
#include "house/dispatch/rows.h"
#include "house/family/life.h"
#include "house/message/owned.h"

/* The state of a run. `stack` serves all turns whose conversations end at once.
 * domi_stack_set_up_in_frame_of_run() sets it up before the first message of a kind, and again
 * after a turn that did not end at once: it parked, failed, still owed its answer, or a verb left
 * work for its end. A turn that ends at once changes `ask` and `message`, which
 * domi_run_handle_by_row_without_frame() sets for each message; `sender`, which is read only after
 * a turn has set it; and `answered`, which only a turn of an ask reads. */
typedef struct domi_run {
    domi_manager *manager; /* the manager of the thread that runs the house */
    domi_house *house;     /* the house whose mail the run handles */
    /* stack that is set up once and serves all turns whose conversations end at once */
    domus_stack *stack;
    uint32_t left; /* number of messages that this run may still handle */
} domi_run;

/* Take mail from all mailboxes of the house, and then from its channels. Returns the number of the
 * run's places that are left. */
uint32_t domi_run_handle_all_mailboxes(domi_run run);

/* Take mail from the mailboxes behind that of `kind`, which alone held mail when the run began, and
 * then from the channels. Returns the number of places that are left. */
uint32_t domi_run_handle_later_mailboxes(domi_run run, uint32_t kind);

/* Handle a message by a row that has a frame. A frame lies in a pooled stack, so the conversation
 * begins in such a stack. */
void domi_run_handle_by_row_with_frame(domi_manager *manager, domi_house *house,
                                       domi_envelope *message, const domus_on *on, uint32_t kind);

/* Handle an ask or notice whose type has no row: it is a message of the library itself, or the last
 * row of the behaviour gets it. Without a last row an ask fails with -EOPNOTSUPP, and a notice
 * becomes a dead letter. */
void domi_run_handle_message_without_row(domi_manager *manager, domi_house *house,
                                         domus_stack *stack, domi_envelope *message, uint32_t kind);

/* Count the messages of `kind` that the run has handled since it had `before` places left. */
DOMI_INLINE void domi_run_count_handled_messages(const domi_run *run, uint32_t kind,
                                                 uint32_t before)
{
    domi_counter_add(&run->manager->counters.handled[kind], before - run->left);
}

/* Handle a message by a row without a frame. Frees the message if it is a notice that the handler
 * did not keep. Inlined, so that `kind` is a constant. */
DOMI_INLINE void domi_run_handle_by_row_without_frame(domi_manager *manager, domi_house *house,
                                                      domus_stack *stack, domi_envelope *message,
                                                      const domus_on *on, uint32_t kind)
{
    stack->ask = kind == DOMI_ASK ? message : NULL;
    stack->message = message;
    domi_turn_begin(stack, message->type);
    int result = on->handle(stack, house->self, domi_envelope_payload_by_kind(message, kind));
    if (kind == DOMI_NOTICE && DOMI_LIKELY(stack->message != NULL))
        domi_envelope_release_and_free(manager, message);
    if (!domi_turn_end_of_begun_conversation(stack, result, kind))
        domi_stack_set_up_in_frame_of_run(stack, manager, house);
}

/* Take the next reply out of its mailbox and handle it. */
DOMI_INLINE void domi_run_handle_next_reply(domi_run *run)
{
    domi_node *node = domi_list_take_first_node(&run->house->tails[DOMI_REPLY]);

    run->house->replies--;
    run->left--;
    domi_stack_handle_answer(run->manager, run->house, (domi_envelope *)(void *)node);
}

/* Handle replies until none is left, or until only `kept` places of the run are left. */
DOMI_INLINE void domi_run_handle_replies(domi_run *run, uint32_t kept)
{
    uint32_t before = run->left;

    while (run->house->tails[DOMI_REPLY] != NULL && run->left > kept)
        domi_run_handle_next_reply(run);
    domi_run_count_handled_messages(run, DOMI_REPLY, before);
}

/* True if the house may take the next ask or notice; each of the marks in `others` forbids it,
 * too. */
DOMI_INLINE bool domi_run_may_take_mail_unless_marked(domi_manager *manager, domi_house *house,
                                                      uint32_t others)
{
    if ((house->marks & (DOMI_MARKS_HOLD | DOMI_MARK_STOPPING | others)) != 0)
        return false;
    if (DOMI_UNLIKELY(domi_house_is_asked_to_stop(house))) {
        domi_house_begin_stop(manager, house);
        return false;
    }
    return true;
}

/* True if the house may take the next message of one mailbox, as
 * domi_run_may_take_mail_unless_marked() says. False for an actor with an order, whose mail run.c
 * takes. */
DOMI_INLINE bool domi_run_may_take_mail_without_order(domi_manager *manager, domi_house *house)
{
    return domi_run_may_take_mail_unless_marked(manager, house, DOMI_MARK_ORDERED);
}

/* Handle an ask or notice that was taken out of its mailbox. Inlined, so that `kind` is a
 * constant. */
DOMI_INLINE void domi_run_handle_taken_message(domi_run *run, domi_envelope *message, uint32_t kind)
{
    domi_house *house = run->house;

    house->mail--;
    run->left--;
    const domus_on *on = domi_row_for_type(house->behaviour, message->type);
    if (kind == DOMI_ASK && DOMI_UNLIKELY(domi_ask_is_expired(run->manager, message)))
        domi_ask_drop_expired(run->manager, message);
    else if (DOMI_UNLIKELY(on == NULL))
        domi_run_handle_message_without_row(run->manager, house, run->stack, message, kind);
    else if (DOMI_UNLIKELY(on->frame_size != 0))
        domi_run_handle_by_row_with_frame(run->manager, house, message, on, kind);
    else
        domi_run_handle_by_row_without_frame(run->manager, house, run->stack, message, on, kind);
}

/* Take the next ask or notice out of its mailbox and handle it. */
DOMI_INLINE void domi_run_handle_next_message(domi_run *run, uint32_t kind)
{
    domi_node *node = domi_list_take_first_node(&run->house->tails[kind]);

    domi_run_handle_taken_message(run, (domi_envelope *)(void *)node, kind);
}

/* Handle asks or notices until none may be taken, or until only `kept` places of the run are
 * left. */
DOMI_INLINE void domi_run_handle_mail_of_kind(domi_run *run, uint32_t kind, uint32_t kept)
{
    domi_house *house = run->house;
    uint32_t before = run->left;

    domi_stack_set_up_in_frame_of_run(run->stack, run->manager, house);
    while (house->tails[kind] != NULL && run->left > kept &&
           domi_run_may_take_mail_without_order(run->manager, house))
        domi_run_handle_next_message(run, kind);
    domi_run_count_handled_messages(run, kind, before);
}

#endif
