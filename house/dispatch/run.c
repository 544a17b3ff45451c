/* The parts of a run that few runs need: mail of several kinds, exceptions, events, receives,
 * channels, rows with frames, messages without a row. */
#include "house/dispatch/run.h"

#include "house/conversation/cancel.h"
#include "house/conversation/dead.h"
#include "house/conversation/passed.h"
#include "house/conversation/receive.h"
#include "house/message/kind.h"
#include "house/message/letters.h"
#include "house/message/order.h"
#include "house/message/pool.h"
#include "house/message/types.h"

#include <errno.h>

/* Handle a message that the library itself sends. True if it was one; the caller frees it. */
static bool take_own_message(domi_manager *manager, domi_house *house, domi_envelope *message)
{
    if (message->type == &domi_cancel_type) {
        domi_ask_handle_cancel(manager, house, message);
        return true;
    }
    if (message->type == &domi_held_type) {
        domi_ask_note_holder(manager, message);
        return true;
    }
    if (message->type == &domi_last_type) {
        (void)domi_house_stop(manager, domi_house_address(house));
        return true;
    }
    return message->node.kind == DOMI_EVENT &&
           manager->io_hooks.take_event(manager, house, message);
}

/* Report a dead letter for an event that stays with its timer or watch and is not freed. */
static void drop_event(domi_manager *manager, const domi_house *house, const domi_envelope *message,
                       int why)
{
    domi_letters_tell_dead(manager, domi_house_address(house), message, why);
}

void domi_run_handle_framed(domi_manager *manager, domi_house *house, domi_envelope *message,
                            const domus_on *on, uint32_t kind)
{
    domus_stack *stack = domi_stack_new(manager, house, on->frame_size);

    if (stack == NULL) {
        if (kind == DOMI_EVENT)
            /* the event goes back to its timer or watch */
            drop_event(manager, house, message, -ENOMEM);
        else
            /* there is no memory for the stack; the spawn has checked the size of the frame */
            domi_mailbox_drop(manager, house, &message->node, -ENOMEM);
        return;
    }
    stack->message = message;
    stack->ask = kind == DOMI_ASK ? message : NULL;
    stack->begun_by = message->type;
    domi_turn_begin(stack, message->type);
    int result = on->handle(stack, house->self, domi_envelope_payload_of(message, kind));
    if (kind == DOMI_NOTICE && stack->message != NULL)
        domi_envelope_end(manager, message);
    domi_turn_end(stack, result);
}

/* No row handles an ask or a notice of this type, which the log tells once: its sender may not
 * learn of it. */
__attribute__((noinline, cold)) static void refuse_unknown(domi_manager *manager, domi_house *house,
                                                           domi_envelope *message)
{
    domi_manager_warn(manager, house, DOMI_TYPE_UNKNOWN, message->type, -EOPNOTSUPP);
    domi_mailbox_drop(manager, house, &message->node, -EOPNOTSUPP);
}

void domi_run_handle_rest(domi_manager *manager, domi_house *house, domus_stack *stack,
                          domi_envelope *message, uint32_t kind)
{
    const domus_on *rest = domi_row_of_rest(house->behaviour);

    if (take_own_message(manager, house, message))
        domi_pool_free(manager, &message->node);
    else if (house->behaviour->pipeline != NULL &&
             manager->io_hooks.send_mail(manager, house, message))
        return;
    else if (rest == NULL)
        refuse_unknown(manager, house, message);
    else if (rest->frame_size != 0)
        domi_run_handle_framed(manager, house, message, rest, kind);
    else
        domi_run_handle(manager, house, stack, message, rest, kind);
}

/* True if a node of the exception mailbox is a failure. The end of a sleep, and a wait that was
 * over before it began, come by the same mailbox and count as replies; the end of the sleep that
 * stands for the deadline of a kept ask is a failure. */
static bool is_failure(const domi_node *node)
{
    const domi_promise *promise = (const domi_promise *)(const void *)node;

    if (domi_node_is_stack(node))
        return false;
    return !domi_node_is_promise(node) || promise->answer.error != 0 ||
           domi_promise_stack(promise)->wait == DOMI_WAIT_KEPT;
}

/* Take exceptions until `most` were taken or none is left. Returns how many it took. */
__attribute__((noinline)) static uint32_t take_exceptions(domi_manager *manager, domi_house *house,
                                                          uint32_t most)
{
    uint32_t taken = 0;
    uint32_t failures = 0;

    for (; house->tails[DOMI_EXCEPTION] != NULL && taken < most; taken++) {
        domi_node *node = domi_list_take(&house->tails[DOMI_EXCEPTION]);
        failures += is_failure(node);
        if (domi_node_is_stack(node) || domi_node_is_promise(node))
            domi_stack_run_node(manager, node);
        else
            domi_stack_take_answer(manager, house, (domi_envelope *)(void *)node);
    }
    domi_counter_add(&manager->counters.handled[DOMI_EXCEPTION], failures);
    domi_counter_add(&manager->counters.handled[DOMI_REPLY], taken - failures);
    return taken;
}

/* Let the receives that wait choose their messages. */
DOMI_INLINE void take_received(domi_run *run, uint32_t kept, bool ordered)
{
    if (run->left <= kept)
        return;
    uint32_t handled = ordered
                           ? domi_receive_run_in_order(run->manager, run->house, run->left - kept)
                           : domi_receive_run(run->manager, run->house, run->left - kept);
    run->left -= handled;
    domi_counter_add(&run->manager->counters.handled[DOMI_NOTICE], handled);
}

/* Take asks and notices of an actor with an order. Returns how many places are left. */
__attribute__((noinline)) static uint32_t take_in_order(domi_run run, uint32_t kept)
{
    domi_house *house = run.house;
    domi_manager *manager = run.manager;

    domi_stack_prepare(run.stack, manager, house);
    /* A handler may change the behaviour to one without an order. */
    while (run.left > kept && house->mail != 0 && domi_house_is_ordered(house) &&
           domi_run_may_take_but(manager, house, 0)) {
        domi_node *node = domi_order_take(house);
        domi_envelope *message = (domi_envelope *)(void *)node;

        DOMI_CHECK(node != NULL);
        domi_counter_add(&manager->counters.handled[node->kind], 1);
        if (node->kind == DOMI_ASK)
            domi_run_handle_taken(&run, message, DOMI_ASK);
        else
            domi_run_handle_taken(&run, message, DOMI_NOTICE);
    }
    if (domi_house_is_ordered(house) && domi_house_has_receive_to_look(house))
        take_received(&run, kept, true);
    return run.left;
}

/* True if asks and notices are taken in another way than from the heads of their mailboxes: by
 * receives, or by an order. FRESH is set only while receives wait. */
DOMI_INLINE bool is_mail_chosen(const domi_house *house)
{
    return (house->marks & (DOMI_MARK_FRESH | DOMI_MARK_ORDERED)) != 0;
}

/* Take asks and notices of a house for which is_mail_chosen(). */
DOMI_INLINE void take_chosen(domi_run *run, uint32_t kept)
{
    if (domi_house_is_ordered(run->house))
        run->left = take_in_order(*run, kept);
    else if (domi_house_has_receive_to_look(run->house))
        take_received(run, kept, false);
}

/* Call the row for the event. Returns 0; then the caller frees the event or gives it back to its
 * timer, watch or descriptor. Returns -EOPNOTSUPP if there is no row, and -ESTALE if the actor is
 * not mounted; then nothing was called, and the caller makes the event a dead letter. */
DOMI_INLINE int handle_event(domi_manager *manager, domi_house *house, domus_stack *stack,
                             domi_envelope *message, bool mounted)
{
    if (!mounted)
        return -ESTALE;
    const domus_on *on = domi_row_of(house->behaviour, message->type);

    if (on == NULL)
        on = domi_row_of_rest(house->behaviour);
    if (on == NULL)
        return -EOPNOTSUPP;
    if (on->frame_size != 0)
        domi_run_handle_framed(manager, house, message, on, DOMI_EVENT);
    else
        domi_run_handle(manager, house, stack, message, on, DOMI_EVENT);
    return 0;
}

/* Handle the event of an object that is more than a message (of a timer, watch or descriptor), and
 * give it back to that object. */
static void take_event_of_object(domi_manager *manager, domi_house *house, domus_stack *stack,
                                 domi_node *node, bool mounted)
{
    domi_envelope *message = (domi_envelope *)(void *)node;
    const domi_kind *kind = domi_kind_of(node);

    if (kind->begin_event(manager, house, node)) {
        int error = handle_event(manager, house, stack, message, mounted);
        if (error != 0)
            drop_event(manager, house, message, error);
    }
    kind->end_event(manager, house, node);
}

DOMI_INLINE void take_event(domi_run *run, domi_node *node, bool mounted)
{
    domi_envelope *message = (domi_envelope *)(void *)node;
    int error;

    if (domi_node_is_embedded(node))
        take_event_of_object(run->manager, run->house, run->stack, node, mounted);
    else if (take_own_message(run->manager, run->house, message) ||
             (error = handle_event(run->manager, run->house, run->stack, message, mounted)) == 0)
        domi_pool_free(run->manager, node);
    else
        domi_mailbox_drop(run->manager, run->house, node, error);
}

/* `mounted` is a constant in each call, so the events of a mounted actor pay for no test of it. */
DOMI_INLINE void take_events(domi_run *run, uint32_t kept, bool mounted)
{
    domi_house *house = run->house;
    uint32_t before = run->left;

    domi_stack_prepare(run->stack, run->manager, house);
    while (house->tails[DOMI_EVENT] != NULL && run->left > kept) {
        domi_node *node = domi_list_take(&house->tails[DOMI_EVENT]);
        house->events -= DOMI_EVENT_STEP;
        run->left--;
        take_event(run, node, mounted);
    }
    domi_run_count(run, DOMI_EVENT, before);
}

/* Events are taken even if the actor is not mounted, because the ends of its children are events,
 * and a stop waits for them. An event that is not the library's own becomes a dead letter, so no
 * event is left that would keep the house READY. */
DOMI_INLINE void take_all_events(domi_run *run, uint32_t kept)
{
    if (DOMI_UNLIKELY((run->house->marks & DOMI_MARK_UNMOUNTED) != 0))
        take_events(run, kept, false);
    else
        take_events(run, kept, true);
}

/* Let io handle what the channels of a channels actor have. */
DOMI_INLINE void take_channels(domi_run *run)
{
    if (domi_house_may_run_channels(run->house))
        run->left -= run->manager->io_hooks.run_channels(run->manager, run->house, run->left);
}

/* Take from one source until it is empty or the run is full. A source is a mailbox, or
 * the channels. */
static void take_all_of_source(domi_run *run, uint32_t source)
{
    switch (source) {
    case DOMI_REPLY:
        domi_run_take_replies(run, 0);
        break;
    case DOMI_EXCEPTION:
        run->left -= take_exceptions(run->manager, run->house, run->left);
        break;
    case DOMI_ASK:
        domi_run_take(run, DOMI_ASK, 0);
        break;
    case DOMI_NOTICE:
        domi_run_take(run, DOMI_NOTICE, 0);
        if (is_mail_chosen(run->house))
            take_chosen(run, 0);
        break;
    case DOMI_EVENT:
        take_all_events(run, 0);
        break;
    default:
        take_channels(run);
    }
}

#define SOURCES (DOMI_MAILBOXES + 1u) /* all mailboxes, and the channel of a channels actor */

static_assert(SOURCES <= DOMI_EVENT_STEP, "each source fits beside the events");

/* A run of fewer than 8 messages has no places to keep. In the usual order the first mailbox could
 * fill each of these runs, and the others would starve, so each run begins behind the source with
 * which the last one began. Returns how many places are left. */
__attribute__((noinline, cold)) static uint32_t run_short(domi_run run)
{
    domi_house *house = run.house;
    uint32_t places = run.left;
    uint32_t first = house->events & DOMI_EVENT_FIRST_MASK;

    for (uint32_t i = 0; i < SOURCES && run.left != 0; i++) {
        uint32_t source = (first + i) % SOURCES;

        if (run.left == places) /* nothing was handled so far, so the run begins with this source */
            house->events = (house->events & ~DOMI_EVENT_FIRST_MASK) | (source + 1) % SOURCES;
        take_all_of_source(&run, source);
    }
    return run.left;
}

/* How many places are kept for notices: `kept` if some wait and may be taken, or if a
 * receive has mail to look at, else 0. Without them replies that never end would keep a
 * receive from its message. For an actor with an order they are for its asks, too. */
DOMI_INLINE uint32_t kept_for_notices(const domi_house *house, bool held, uint32_t kept)
{
    bool waits = held ? domi_house_has_receive_to_look(house) ||
                            (house->mail != 0 && (house->marks & DOMI_MARKS_HOLD) == 0)
                      : house->tails[DOMI_NOTICE] != NULL;

    return waits ? kept : 0;
}

/* The places of a run that are kept for the kinds behind the one that is taken. */
typedef struct kept_places {
    uint32_t behind_replies;
    uint32_t behind_exceptions;
    uint32_t behind_asks;
    uint32_t behind_notices;
    uint32_t behind_events;
} kept_places;

/* Keep `kept` places for each later kind that waits. */
static kept_places keep_places(const domi_house *house, uint32_t kept)
{
    bool held = (house->marks & (DOMI_MARKS_HOLD | DOMI_MARK_ORDERED)) != 0;
    uint32_t channels = (house->marks & DOMI_MARK_CHANNELS) != 0 ? kept : 0;
    uint32_t events = channels + (house->tails[DOMI_EVENT] != NULL ? kept : 0);
    uint32_t notices = events + kept_for_notices(house, held, kept);
    uint32_t asks = notices + (house->tails[DOMI_ASK] != NULL && !held ? kept : 0);

    return (kept_places){
        .behind_replies = asks + (house->tails[DOMI_EXCEPTION] != NULL ? kept : 0),
        .behind_exceptions = asks,
        .behind_asks = notices,
        .behind_notices = events,
        .behind_events = channels,
    };
}

/* Take the mailboxes from `first` on in their order, and then what the channels have. Returns how
 * many places are left. */
static uint32_t take_from_mailboxes(domi_run run, uint32_t first, kept_places kept)
{
    domi_house *house = run.house;

    if (first == DOMI_REPLY && house->tails[DOMI_REPLY] != NULL)
        domi_run_take_replies(&run, kept.behind_replies);
    if (first <= DOMI_EXCEPTION && house->tails[DOMI_EXCEPTION] != NULL &&
        run.left > kept.behind_exceptions)
        run.left -= take_exceptions(run.manager, house, run.left - kept.behind_exceptions);
    if (first <= DOMI_ASK && house->tails[DOMI_ASK] != NULL)
        domi_run_take(&run, DOMI_ASK, kept.behind_asks);
    if (first <= DOMI_NOTICE && house->tails[DOMI_NOTICE] != NULL)
        domi_run_take(&run, DOMI_NOTICE, kept.behind_notices);
    if (DOMI_UNLIKELY(is_mail_chosen(house)))
        take_chosen(&run, kept.behind_notices);
    if (house->tails[DOMI_EVENT] != NULL)
        take_all_events(&run, kept.behind_events);
    take_channels(&run);
    return run.left;
}

uint32_t domi_run_take_in_order(domi_run run)
{
    uint32_t kept = run.manager->limits.run_kept;

    if (DOMI_UNLIKELY(kept == 0))
        return run_short(run);
    return take_from_mailboxes(run, DOMI_REPLY, keep_places(run.house, kept));
}

uint32_t domi_run_take_behind(domi_run run, uint32_t kind)
{
    return take_from_mailboxes(run, kind + 1, (kept_places){0});
}
