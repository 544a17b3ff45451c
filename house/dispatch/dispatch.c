/* The short form of a run, which nearly all runs have: mail of one kind waits, and the house has no
 * marks.
 *
 * All other runs are in run.c, and houses with marks are settled in settle.c. The runner looks at
 * STOP before each ask and notice. Until a conversation parks, its `domus_stack` is a local
 * variable here. */
#include "house/dispatch/dispatch.h"

#include "house/dispatch/invariants.h"
#include "house/dispatch/run.h"
#include "house/dispatch/settle.h"
#include "house/message/mailbox.h"

/* Take mail of one kind from the only mailbox that held mail when the run began. Mostly the other
 * mailboxes still are empty afterwards; if not, their mail is taken, too. */
DOMI_INLINE void handle_mail_of_only_mailbox(domi_run *run, uint32_t kind)
{
    domi_house *house = run->house;
    uint32_t before = run->left;
    uintptr_t behind = (uintptr_t)house->tails[DOMI_EVENT];

    if (kind == DOMI_REPLY) {
        do
            domi_run_handle_next_reply(run);
        while (house->tails[kind] != NULL && run->left != 0);
    } else {
        domi_stack_set_up_in_frame_of_run(run->stack, run->manager, house);
        do
            domi_run_handle_next_message(run, kind);
        while (house->tails[kind] != NULL && run->left != 0 &&
               domi_run_may_take_mail_without_order(run->manager, house));
    }
    domi_run_count_handled_messages(run, kind, before);
    for (uint32_t later = kind + 1; later < DOMI_MAILBOXES; later++)
        behind |= (uintptr_t)house->tails[later];
    if (DOMI_UNLIKELY(behind != 0 || (house->marks & (DOMI_MARK_CHANNELS | DOMI_MARK_FRESH |
                                                      DOMI_MARK_ORDERED)) != 0))
        run->left = domi_run_handle_later_mailboxes(*run, kind);
}

/* True if only the mailbox of `kind` may hold mail. Inlined, so that this is three
 * or-operations. */
DOMI_INLINE bool has_mail_of_one_kind(const domi_house *house, uint32_t kind)
{
    uintptr_t others = 0;

    for (uint32_t other = 0; other < DOMI_MAILBOXES; other++)
        others |= other != kind ? (uintptr_t)house->tails[other] : 0;
    return others == 0;
}

/* True if the house need not stop and has no mark that holds mail back, changes the order of mail,
 * or brings other work. */
DOMI_INLINE bool may_house_run_in_short_form(const domi_house *house)
{
    return (house->marks &
            (DOMI_MARKS_HOLD | DOMI_MARK_STOPPING | DOMI_MARK_CHANNELS | DOMI_MARK_ORDERED)) == 0 &&
           !domi_house_is_asked_to_stop(house);
}

/* Handle mail of one kind in a run, which is the most frequent case by far. No places of the run
 * have to be kept for other kinds. */
DOMI_INLINE void run_mail_of_one_kind(domi_run *run)
{
    domi_house *house = run->house;
    bool plain = may_house_run_in_short_form(house);

    if (DOMI_LIKELY(plain) && house->tails[DOMI_NOTICE] != NULL &&
        has_mail_of_one_kind(house, DOMI_NOTICE))
        handle_mail_of_only_mailbox(run, DOMI_NOTICE);
    else if (DOMI_LIKELY(plain) && house->tails[DOMI_ASK] != NULL &&
             has_mail_of_one_kind(house, DOMI_ASK))
        handle_mail_of_only_mailbox(run, DOMI_ASK);
    else if (DOMI_LIKELY(plain) && house->tails[DOMI_REPLY] != NULL &&
             has_mail_of_one_kind(house, DOMI_REPLY))
        handle_mail_of_only_mailbox(run, DOMI_REPLY);
    else
        run->left = domi_run_handle_all_mailboxes(*run);
}

DOMI_INLINE uint32_t run_house_without_settling(domi_manager *manager, domi_house *house)
{
    /* how many messages this run may handle: a copy, because a handler may change the limit */
    const uint32_t most = manager->limits.messages_per_run_max;
    domus_stack stack;
    domi_run run = {.manager = manager, .house = house, .left = most, .stack = &stack};

    domi_house_change_state(house, DOMI_SCHEDULED);
    domi_house_change_state(house, DOMI_RUNNING);

    domi_run_begin(manager, house);
    run_mail_of_one_kind(&run);
    domi_run_end(manager);
    uint32_t handled = most - run.left;
    domi_tally *tally = &manager->tallies[house->tally];
    domi_counter_add(&tally->runs, 1);
    domi_counter_add(&tally->messages, handled);
    domi_counter_add(&manager->counters.runs, 1);
    return handled;
}

/* End the run of a house that has no marks and that no other thread wants: it becomes READY, at the
 * tail of its queue, or WAITING. settle.c settles all others. */
DOMI_INLINE void settle_house_after_run(domi_manager *manager, domi_house *house, uint32_t handled)
{
    if (DOMI_UNLIKELY((house->marks & DOMI_MARKS_SETTLED) != 0 ||
                      (domi_house_life_word(house) & DOMI_LIFE_SETTLED) != 0)) {
        domi_house_settle_after_run(manager, house, handled);
        return;
    }
    if (house->mail != 0 || domi_house_has_answers_or_events(house))
        domi_house_make_ready(manager, house);
    else
        domi_house_change_state(house, DOMI_WAITING);
    DOMI_CHECK_SLOW(domi_house_is_sound(manager, house));
}

DOMI_NO_CANARY uint32_t domi_house_run_and_settle(domi_manager *manager, domi_house *house)
{
    uint32_t handled = run_house_without_settling(manager, house);

    settle_house_after_run(manager, house, handled);
    return handled;
}

DOMI_NO_CANARY uint32_t domi_house_run_lent(domi_manager *manager, domi_house *house)
{
    return run_house_without_settling(manager, house);
}
