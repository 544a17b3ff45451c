/* The parts of a run that few runs need: mail of several kinds, exceptions, events, receives,
 * channels, rows with frames, and messages without a row. */
#include "house/dispatch/run.h"

#include "house/conversation/asks.h"
#include "house/conversation/dead.h"
#include "house/conversation/receive.h"
#include "house/message/kind.h"
#include "house/message/letters.h"
#include "house/message/order.h"
#include "house/message/pool.h"
#include "house/message/types.h"

#include <errno.h>

/* Handle a message that the library itself has sent to an actor. Returns true if the message is
 * such a one; the caller frees it. */
static bool handle_message_of_library(domi_manager *manager, domi_house *house,
                                      domi_envelope *message)
{
    if (message->type == &domi_cancel_type) {
        domi_ask_carry_out_cancels_in_row(manager, house, message);
        return true;
    }
    if (message->type == &domi_held_type) {
        domi_ask_record_sender_as_holder(manager, message);
        return true;
    }
    if (message->type == &domi_last_type) {
        (void)domi_house_ask_to_stop(manager, domi_house_get_address(house));
        return true;
    }
    return message->node.kind == DOMI_EVENT &&
           manager->io_hooks.take_event(manager, house, message);
}

/* Report an event as a dead letter that stays with its timer or watch and is not freed. */
static void report_event_as_dead_letter(domi_manager *manager, const domi_house *house,
                                        const domi_envelope *message, int why)
{
    domi_letters_report_dead_letter(manager, domi_house_get_address(house), message, why);
}

void domi_run_handle_by_row_with_frame(domi_manager *manager, domi_house *house,
                                       domi_envelope *message, const domus_on *on, uint32_t kind)
{
    domus_stack *stack = domi_stack_new(manager, house, on->frame_size);

    if (stack == NULL) {
        if (kind == DOMI_EVENT)
            /* the event itself goes back to its timer or watch */
            report_event_as_dead_letter(manager, house, message, -ENOMEM);
        else
            /* there is no memory for the stack with the row's frame; its size was checked by the
             * spawn */
            domi_mailbox_end_unhandled_message(manager, house, &message->node, -ENOMEM);
        return;
    }
    stack->message = message;
    stack->ask = kind == DOMI_ASK ? message : NULL;
    stack->begun_by = message->type;
    domi_turn_begin(stack, message->type);
    int result = on->handle(stack, house->self, domi_envelope_payload_by_kind(message, kind));
    if (kind == DOMI_NOTICE && stack->message != NULL)
        domi_envelope_release_and_free(manager, message);
    domi_turn_end(stack, result);
}

/* Turn an ask or a notice for which the behaviour has no row into a dead letter. The log tells of
 * it once for each type, because the sender may not learn of it. */
__attribute__((noinline, cold)) static void
refuse_message_without_row(domi_manager *manager, domi_house *house, domi_envelope *message)
{
    domi_manager_report_mistake(manager, house, DOMI_TYPE_UNKNOWN, message->type, -EOPNOTSUPP);
    domi_mailbox_end_unhandled_message(manager, house, &message->node, -EOPNOTSUPP);
}

void domi_run_handle_message_without_row(domi_manager *manager, domi_house *house,
                                         domus_stack *stack, domi_envelope *message, uint32_t kind)
{
    const domus_on *rest = domi_row_for_other_types(house->behaviour);

    if (handle_message_of_library(manager, house, message))
        domi_pool_free_object(manager, &message->node);
    else if (house->behaviour->pipeline != NULL &&
             manager->io_hooks.send_mail(manager, house, message))
        return;
    else if (rest == NULL)
        refuse_message_without_row(manager, house, message);
    else if (rest->frame_size != 0)
        domi_run_handle_by_row_with_frame(manager, house, message, rest, kind);
    else
        domi_run_handle_by_row_without_frame(manager, house, stack, message, rest, kind);
}

/* True if a node of the exception mailbox is a failure. The end of a sleep, and a wait that was
 * over before it began, come through the same mailbox and count as replies; the end of the sleep
 * that stands for the deadline of a kept ask is a failure. */
static bool is_exception_node_a_failure(const domi_node *node)
{
    const domi_promise *promise = (const domi_promise *)(const void *)node;

    if (domi_node_is_stack(node))
        return false;
    return !domi_node_is_promise(node) || promise->answer.error != 0 ||
           domi_promise_get_stack(promise)->wait == DOMI_WAIT_KEPT;
}

/* Take exceptions from their mailbox until `most` were taken or none is left. Returns their
 * number. */
__attribute__((noinline)) static uint32_t
handle_exceptions_of_house(domi_manager *manager, domi_house *house, uint32_t most)
{
    uint32_t taken = 0;
    uint32_t failures = 0;

    for (; house->tails[DOMI_EXCEPTION] != NULL && taken < most; taken++) {
        domi_node *node = domi_list_take_first_node(&house->tails[DOMI_EXCEPTION]);
        failures += is_exception_node_a_failure(node);
        if (domi_node_is_stack(node) || domi_node_is_promise(node))
            domi_stack_handle_exception_node(manager, node);
        else
            domi_stack_handle_answer(manager, house, (domi_envelope *)(void *)node);
    }
    domi_counter_add(&manager->counters.handled[DOMI_EXCEPTION], failures);
    domi_counter_add(&manager->counters.handled[DOMI_REPLY], taken - failures);
    return taken;
}

/* Let the waiting receives of a house choose their messages. */
DOMI_INLINE void let_receives_choose_messages(domi_run *run, uint32_t kept, bool ordered)
{
    if (run->left <= kept)
        return;
    uint32_t handled =
        ordered ? domi_receive_search_new_ordered_mail(run->manager, run->house, run->left - kept)
                : domi_receive_search_new_mail(run->manager, run->house, run->left - kept);
    run->left -= handled;
    domi_counter_add(&run->manager->counters.handled[DOMI_NOTICE], handled);
}

/* Take asks and notices of an actor with an order. Returns the number of places that are left in
 * the run. */
__attribute__((noinline)) static uint32_t handle_ordered_mail(domi_run run, uint32_t kept)
{
    domi_house *house = run.house;
    domi_manager *manager = run.manager;

    domi_stack_set_up_in_frame_of_run(run.stack, manager, house);
    /* checked for each message: a handler may change the behaviour to one without an order */
    while (run.left > kept && house->mail != 0 && domi_house_is_ordered(house) &&
           domi_run_may_take_mail_unless_marked(manager, house, 0)) {
        domi_node *node = domi_order_take_next_message(house);
        domi_envelope *message = (domi_envelope *)(void *)node;

        DOMI_CHECK(node != NULL);
        domi_counter_add(&manager->counters.handled[node->kind], 1);
        if (node->kind == DOMI_ASK)
            domi_run_handle_taken_message(&run, message, DOMI_ASK);
        else
            domi_run_handle_taken_message(&run, message, DOMI_NOTICE);
    }
    if (domi_house_is_ordered(house) && domi_house_has_receive_to_search(house))
        let_receives_choose_messages(&run, kept, true);
    return run.left;
}

/* True if asks and notices are taken in another way than from the heads of their mailboxes: by
 * receives, or by an order. FRESH is set only while receives wait. */
DOMI_INLINE bool is_mail_chosen_by_receive_or_order(const domi_house *house)
{
    return (house->marks & (DOMI_MARK_FRESH | DOMI_MARK_ORDERED)) != 0;
}

/* Take asks and notices of a house whose mail is chosen by receives or by an order. */
DOMI_INLINE void handle_mail_chosen_by_receive_or_order(domi_run *run, uint32_t kept)
{
    if (domi_house_is_ordered(run->house))
        run->left = handle_ordered_mail(*run, kept);
    else if (domi_house_has_receive_to_search(run->house))
        let_receives_choose_messages(run, kept, false);
}

/* Call the row for an event. Returns 0; then the caller frees the event or gives it back to its
 * timer, watch or descriptor. Returns -EOPNOTSUPP if there is no row, and -ESTALE if the actor is
 * not mounted; then nothing was called, and the caller makes the event a dead letter. */
DOMI_INLINE int call_row_for_event(domi_manager *manager, domi_house *house, domus_stack *stack,
                                   domi_envelope *message, bool mounted)
{
    if (!mounted)
        return -ESTALE;
    const domus_on *on = domi_row_for_type(house->behaviour, message->type);

    if (on == NULL)
        on = domi_row_for_other_types(house->behaviour);
    if (on == NULL)
        return -EOPNOTSUPP;
    if (on->frame_size != 0)
        domi_run_handle_by_row_with_frame(manager, house, message, on, DOMI_EVENT);
    else
        domi_run_handle_by_row_without_frame(manager, house, stack, message, on, DOMI_EVENT);
    return 0;
}

/* Handle an event that is embedded in an object (a timer, a watch or a descriptor), and give it
 * back to that object. */
static void handle_event_embedded_in_object(domi_manager *manager, domi_house *house,
                                            domus_stack *stack, domi_node *node, bool mounted)
{
    domi_envelope *message = (domi_envelope *)(void *)node;
    const domi_kind *kind = domi_kind_of_node(node);

    if (kind->begin_event(manager, house, node)) {
        int error = call_row_for_event(manager, house, stack, message, mounted);
        if (error != 0)
            report_event_as_dead_letter(manager, house, message, error);
    }
    kind->end_event(manager, house, node);
}

DOMI_INLINE void handle_next_event(domi_run *run, domi_node *node, bool mounted)
{
    domi_envelope *message = (domi_envelope *)(void *)node;
    int error;

    if (domi_node_is_embedded(node))
        handle_event_embedded_in_object(run->manager, run->house, run->stack, node, mounted);
    else if (handle_message_of_library(run->manager, run->house, message) ||
             (error = call_row_for_event(run->manager, run->house, run->stack, message, mounted)) ==
                 0)
        domi_pool_free_object(run->manager, node);
    else
        domi_mailbox_end_unhandled_message(run->manager, run->house, node, error);
}

/* Take events from their mailbox. `mounted` is a constant in each call, so that the events of a
 * mounted actor cost no test of it. */
DOMI_INLINE void handle_events_of_house(domi_run *run, uint32_t kept, bool mounted)
{
    domi_house *house = run->house;
    uint32_t before = run->left;

    domi_stack_set_up_in_frame_of_run(run->stack, run->manager, house);
    while (house->tails[DOMI_EVENT] != NULL && run->left > kept) {
        domi_node *node = domi_list_take_first_node(&house->tails[DOMI_EVENT]);
        house->events -= DOMI_EVENT_STEP;
        run->left--;
        handle_next_event(run, node, mounted);
    }
    domi_run_count_handled_messages(run, DOMI_EVENT, before);
}

/* Take events from their mailbox, also if the actor is not mounted, because the ends of its
 * children are events, and a stop waits for them. An event of a user becomes a dead letter then, so
 * that no event is left that would keep the house READY. */
DOMI_INLINE void handle_events_also_if_unmounted(domi_run *run, uint32_t kept)
{
    if (DOMI_UNLIKELY((run->house->marks & DOMI_MARK_UNMOUNTED) != 0))
        handle_events_of_house(run, kept, false);
    else
        handle_events_of_house(run, kept, true);
}

/* Let io handle the work of the channels of a channels actor. */
DOMI_INLINE void handle_work_of_channels(domi_run *run)
{
    if (domi_house_may_run_channels(run->house))
        run->left -= run->manager->io_hooks.run_channels(run->manager, run->house, run->left);
}

/* Take mail from one source until it is empty or the run is full. A source is a mailbox, or the
 * channels. */
static void handle_mail_of_source(domi_run *run, uint32_t source)
{
    switch (source) {
    case DOMI_REPLY:
        domi_run_handle_replies(run, 0);
        break;
    case DOMI_EXCEPTION:
        run->left -= handle_exceptions_of_house(run->manager, run->house, run->left);
        break;
    case DOMI_ASK:
        domi_run_handle_mail_of_kind(run, DOMI_ASK, 0);
        break;
    case DOMI_NOTICE:
        domi_run_handle_mail_of_kind(run, DOMI_NOTICE, 0);
        if (is_mail_chosen_by_receive_or_order(run->house))
            handle_mail_chosen_by_receive_or_order(run, 0);
        break;
    case DOMI_EVENT:
        handle_events_also_if_unmounted(run, 0);
        break;
    default:
        handle_work_of_channels(run);
    }
}

/* number of sources of a run: all mailboxes, and the channel of a channels actor */
#define SOURCES (DOMI_MAILBOXES + 1u)

static_assert(SOURCES <= DOMI_EVENT_STEP, "each source fits beside the events");

/* Take mail from all sources, in a run of fewer than 8 messages. Such a run keeps no places for
 * later sources, so in the usual order the first mailbox could fill each run, and the others would
 * starve. Each run therefore begins behind the source with which the last one began. Returns the
 * number of places that are left. */
__attribute__((noinline, cold)) static uint32_t handle_sources_in_short_run(domi_run run)
{
    domi_house *house = run.house;
    uint32_t places = run.left;
    uint32_t first = house->events & DOMI_EVENT_FIRST_MASK;

    for (uint32_t i = 0; i < SOURCES && run.left != 0; i++) {
        uint32_t source = (first + i) % SOURCES;

        /* nothing was handled before this source, so the run counts as begun with it */
        if (run.left == places)
            house->events = (house->events & ~DOMI_EVENT_FIRST_MASK) | (source + 1) % SOURCES;
        handle_mail_of_source(&run, source);
    }
    return run.left;
}

/* Returns the number of places that are kept for notices: `kept` if some wait and may be taken, or
 * if a receive has mail to look at, else 0. Without these places endless replies would keep a
 * receive from its message. For an actor with an order the places are for its asks, too. */
DOMI_INLINE uint32_t get_places_kept_for_notices(const domi_house *house, bool held, uint32_t kept)
{
    bool waits = held ? domi_house_has_receive_to_search(house) ||
                            (house->mail != 0 && (house->marks & DOMI_MARKS_HOLD) == 0)
                      : house->tails[DOMI_NOTICE] != NULL;

    return waits ? kept : 0;
}

/* For each kind of mail, the number of the run's messages that must be left when this kind has been
 * handled, for the kinds that are handled after it and wait. */
typedef struct kept_places {
    uint32_t behind_replies;
    uint32_t behind_exceptions;
    uint32_t behind_asks;
    uint32_t behind_notices;
    uint32_t behind_events;
} kept_places;

/* Keep `kept` places of a run for each later kind of mail that waits. */
static kept_places keep_places_for_later_kinds(const domi_house *house, uint32_t kept)
{
    bool held = (house->marks & (DOMI_MARKS_HOLD | DOMI_MARK_ORDERED)) != 0;
    uint32_t channels = (house->marks & DOMI_MARK_CHANNELS) != 0 ? kept : 0;
    uint32_t events = channels + (house->tails[DOMI_EVENT] != NULL ? kept : 0);
    uint32_t notices = events + get_places_kept_for_notices(house, held, kept);
    uint32_t asks = notices + (house->tails[DOMI_ASK] != NULL && !held ? kept : 0);

    return (kept_places){
        .behind_replies = asks + (house->tails[DOMI_EXCEPTION] != NULL ? kept : 0),
        .behind_exceptions = asks,
        .behind_asks = notices,
        .behind_notices = events,
        .behind_events = channels,
    };
}

/* Take mail from the mailboxes from `first` on in their order, and then from the channels. Returns
 * the number of places that are left. */
static uint32_t handle_mailboxes_from_given_one(domi_run run, uint32_t first, kept_places kept)
{
    domi_house *house = run.house;

    if (first == DOMI_REPLY && house->tails[DOMI_REPLY] != NULL)
        domi_run_handle_replies(&run, kept.behind_replies);
    if (first <= DOMI_EXCEPTION && house->tails[DOMI_EXCEPTION] != NULL &&
        run.left > kept.behind_exceptions)
        run.left -=
            handle_exceptions_of_house(run.manager, house, run.left - kept.behind_exceptions);
    if (first <= DOMI_ASK && house->tails[DOMI_ASK] != NULL)
        domi_run_handle_mail_of_kind(&run, DOMI_ASK, kept.behind_asks);
    if (first <= DOMI_NOTICE && house->tails[DOMI_NOTICE] != NULL)
        domi_run_handle_mail_of_kind(&run, DOMI_NOTICE, kept.behind_notices);
    if (DOMI_UNLIKELY(is_mail_chosen_by_receive_or_order(house)))
        handle_mail_chosen_by_receive_or_order(&run, kept.behind_notices);
    if (house->tails[DOMI_EVENT] != NULL)
        handle_events_also_if_unmounted(&run, kept.behind_events);
    handle_work_of_channels(&run);
    return run.left;
}

uint32_t domi_run_handle_all_mailboxes(domi_run run)
{
    uint32_t kept = run.manager->limits.run_kept;

    if (DOMI_UNLIKELY(kept == 0))
        return handle_sources_in_short_run(run);
    return handle_mailboxes_from_given_one(run, DOMI_REPLY,
                                           keep_places_for_later_kinds(run.house, kept));
}

uint32_t domi_run_handle_later_mailboxes(domi_run run, uint32_t kind)
{
    return handle_mailboxes_from_given_one(run, kind + 1, (kept_places){0});
}
