/* A run takes replies, exceptions, asks, notices, events, and then what the channels have, in this
 * order.
 *
 * domi_house_is_runnable() alone decides whether mail may run, from the mailboxes and marks
 * themselves. The runner looks at STOP before each ask and notice. Until a conversation parks, its
 * `domus_stack` is a local variable here. */
#include "house/dispatch/dispatch.h"

#include "base/check.h"
#include "house/conversation/answer.h"
#include "house/conversation/cancel.h"
#include "house/conversation/dead.h"
#include "house/conversation/receive.h"
#include "house/conversation/turn.h"
#include "house/directory/router.h"
#include "house/dispatch/invariants.h"
#include "house/dispatch/rows.h"
#include "house/family/family.h"
#include "house/family/life.h"
#include "house/family/watch.h"
#include "house/message/kind.h"
#include "house/message/letters.h"
#include "house/message/owned.h"
#include "house/message/pool.h"
#include "house/message/types.h"

#include <errno.h>

/* `stack` serves all turns whose conversations end at once. domi_stack_prepare() sets it up before
 * the first message of a kind, and again after a turn that did not end at once: it parked, failed,
 * still owed its answer, or a verb left work for its end. A turn that ends at once changes `ask`
 * and `message`, which handle_user_message() sets for each message; `sender`, which is read only
 * after a turn has set it; and `answered`, which only a turn of an ask reads. */
typedef struct house_run {
    domi_manager *manager; /* of the thread that runs the house */
    domi_house *house;     /* the house that runs */
    uint32_t left;         /* messages that this run may still handle */
    domus_stack *stack;    /* set up once for turns that end at once */
} house_run;

/* Count the messages of `kind` that were handled since `before` places were left. */
static inline void count_handled(const house_run *run, uint32_t kind, uint32_t before)
{
    if (before != run->left)
        domi_counter_add(&run->manager->counters.handled[kind], before - run->left);
}

/* Handle a message that the library itself sends. True if it was one; the caller frees it. */
static bool take_own_message(house_run *run, domi_envelope *message)
{
    if (message->type == &domi_cancel_type) {
        domi_ask_handle_cancel(run->manager, run->house, message);
        return true;
    }
    if (message->type == &domi_last_type) {
        (void)domi_house_stop(run->manager, domi_house_address(run->house));
        return true;
    }
    return message->node.kind == DOMI_EVENT &&
           run->manager->io_hooks.take_event(run->manager, run->house, message);
}

/* Report a dead letter for an event that stays with its timer or watch and is not freed. */
static void drop_event(house_run *run, const domi_envelope *message, int why)
{
    domi_letters_tell_dead(run->manager, domi_house_address(run->house), message, why);
}

/* Call a row that has a frame. A frame lies in a pooled stack, so the conversation begins in one.
 */
static void handle_framed(house_run *run, domi_envelope *message, const domus_on *on, uint32_t kind)
{
    domus_stack *stack = domi_stack_new(run->manager, run->house, on->frame_size);

    if (stack == NULL) {
        if (kind == DOMI_EVENT)
            drop_event(run, message, -ENOMEM); /* the event goes back to its timer or watch */
        else
            /* there is no memory for the stack; the spawn has checked the size of the frame */
            domi_mailbox_drop(run->manager, run->house, &message->node, -ENOMEM);
        return;
    }
    stack->message = message;
    stack->ask = kind == DOMI_ASK ? message : NULL;
    stack->begun_by = message->type;
    domi_turn_begin(stack, message->type);
    int result = on->handle(stack, run->house->self, domi_envelope_payload_of(message, kind));
    if (kind == DOMI_NOTICE && stack->message != NULL)
        domi_envelope_end(run->manager, message);
    domi_turn_end(stack, result);
}

/* Call a row without a frame. Frees the message if it is a notice that the handler did not keep.
 * Inlined, so that `kind` is a constant. `house` is run->house: the compiler cannot know that the
 * handler does not change `run`, and would load the house again behind it. */
__attribute__((always_inline)) static inline void
handle_user_message(house_run *run, domi_house *house, domi_envelope *message, const domus_on *on,
                    uint32_t kind)
{
    domus_stack *stack = run->stack;

    stack->ask = kind == DOMI_ASK ? message : NULL;
    stack->message = message;
    domi_turn_begin(stack, message->type);
    int result = on->handle(stack, house->self, domi_envelope_payload_of(message, kind));
    if (kind == DOMI_NOTICE && DOMI_LIKELY(stack->message != NULL))
        domi_envelope_end(run->manager, message);
    if (!domi_turn_end_begun(stack, result, kind))
        domi_stack_prepare(stack, run->manager, house);
}

/* Handle an ask or notice whose type has no row: a message of the library, else by the last row;
 * without a last row an ask fails with -EOPNOTSUPP, and a notice is a dead letter. */
static void drop_unhandled(house_run *run, domi_envelope *message, uint32_t kind)
{
    const domus_on *rest = domi_row_of_rest(run->house->behaviour);

    if (take_own_message(run, message))
        domi_pool_free(run->manager, &message->node);
    else if (run->house->behaviour->pipeline != NULL &&
             run->manager->io_hooks.send_mail(run->manager, run->house, message))
        return;
    else if (rest == NULL)
        domi_mailbox_drop(run->manager, run->house, &message->node, -EOPNOTSUPP);
    else if (rest->frame_size != 0)
        handle_framed(run, message, rest, kind);
    else
        handle_user_message(run, run->house, message, rest, kind);
}

DOMI_INLINE void take_replies(house_run *run, uint32_t kept)
{
    domi_house *house = run->house;
    uint32_t before = run->left;

    while (house->tails[DOMI_REPLY] != NULL && run->left > kept) {
        domi_node *node = domi_list_take(&house->tails[DOMI_REPLY]);
        house->replies--;
        run->left--;
        domi_stack_take_answer(run->manager, house, (domi_envelope *)(void *)node);
    }
    count_handled(run, DOMI_REPLY, before);
}

DOMI_INLINE void take_exceptions(house_run *run, uint32_t kept)
{
    domi_house *house = run->house;
    uint32_t before = run->left;

    while (house->tails[DOMI_EXCEPTION] != NULL && run->left > kept) {
        domi_node *node = domi_list_take(&house->tails[DOMI_EXCEPTION]);
        run->left--;
        if (domi_node_is_stack(node) || domi_node_is_promise(node))
            domi_stack_run_node(run->manager, node);
        else
            domi_stack_take_answer(run->manager, house, (domi_envelope *)(void *)node);
    }
    count_handled(run, DOMI_EXCEPTION, before);
}

static void take_answers(house_run *run, uint32_t kept, uint32_t kept_each)
{
    take_replies(run, kept + (run->house->tails[DOMI_EXCEPTION] != NULL ? kept_each : 0));
    take_exceptions(run, kept);
}

static inline bool may_take_user(domi_manager *manager, domi_house *house)
{
    if ((house->marks & (DOMI_MARKS_HOLD | DOMI_MARK_STOPPING)) != 0)
        return false;
    if (DOMI_UNLIKELY(domi_house_is_asked_to_stop(house))) {
        domi_house_stop_begin(manager, house);
        return false;
    }
    return true;
}

/* Take asks, or notices, down to `kept` places. Inlined, so that `kind` is a constant. */
__attribute__((always_inline)) static inline void take_user(house_run *run, uint32_t kind,
                                                            uint32_t kept)
{
    domi_house *house = run->house;
    uint32_t before = run->left;

    domi_stack_prepare(run->stack, run->manager, house);
    while (house->tails[kind] != NULL && run->left > kept && may_take_user(run->manager, house)) {
        domi_envelope *message = (domi_envelope *)(void *)domi_list_take(&house->tails[kind]);

        house->mail--;
        run->left--;
        const domus_on *on = domi_row_of(house->behaviour, message->type);
        if (kind == DOMI_ASK && DOMI_UNLIKELY(domi_ask_is_expired(run->manager, message)))
            domi_ask_expire(run->manager, message);
        else if (DOMI_UNLIKELY(on == NULL))
            drop_unhandled(run, message, kind);
        else if (DOMI_UNLIKELY(on->frame_size != 0))
            handle_framed(run, message, on, kind);
        else
            handle_user_message(run, house, message, on, kind);
    }
    count_handled(run, kind, before);
}

/* Let the receives that wait choose their messages. */
static void take_received(house_run *run, uint32_t kept)
{
    domi_house *house = run->house;

    if (run->left <= kept)
        return;
    uint32_t handled = domi_receive_run(run->manager, house, run->left - kept);
    run->left -= handled;
    domi_counter_add(&run->manager->counters.handled[DOMI_NOTICE], handled);
}

/* Call the row for the event. Returns 0; then the caller frees the event or gives it back to its
 * timer, watch or descriptor. Returns -EOPNOTSUPP if there is no row, and -ESTALE if the actor is
 * not mounted; then nothing was called, and the caller makes the event a dead letter. */
DOMI_INLINE int handle_event(house_run *run, domi_envelope *message, bool mounted)
{
    if (!mounted)
        return -ESTALE;
    const domus_on *on = domi_row_of(run->house->behaviour, message->type);

    if (on == NULL)
        on = domi_row_of_rest(run->house->behaviour);
    if (on == NULL)
        return -EOPNOTSUPP;
    if (on->frame_size != 0)
        handle_framed(run, message, on, DOMI_EVENT);
    else
        handle_user_message(run, run->house, message, on, DOMI_EVENT);
    return 0;
}

/* Handle an event of a timer, watch or descriptor; the caller then gives it back to that. */
DOMI_INLINE void handle_lent_event(house_run *run, domi_envelope *message, bool mounted)
{
    int error = handle_event(run, message, mounted);

    if (error != 0)
        drop_event(run, message, error);
}

/* Handle the event of an object that is more than a message, and give it back to that object. */
static void take_event_of_object(house_run *run, domi_node *node, bool mounted)
{
    const domi_kind *kind = domi_kind_of(node);

    if (kind->begin_event(run->manager, run->house, node))
        handle_lent_event(run, (domi_envelope *)(void *)node, mounted);
    kind->end_event(run->manager, run->house, node);
}

DOMI_INLINE void take_event(house_run *run, domi_node *node, bool mounted)
{
    domi_envelope *message = (domi_envelope *)(void *)node;
    int error;

    if (domi_node_is_embedded(node))
        take_event_of_object(run, node, mounted);
    else if (take_own_message(run, message) || (error = handle_event(run, message, mounted)) == 0)
        domi_pool_free(run->manager, node);
    else
        domi_mailbox_drop(run->manager, run->house, node, error);
}

/* `mounted` is a constant in each call, so the events of a mounted actor pay for no test of it. */
DOMI_INLINE void take_events(house_run *run, uint32_t kept, bool mounted)
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
    count_handled(run, DOMI_EVENT, before);
}

/* Events are taken even if the actor is not mounted, because the ends of its children are events,
 * and a stop waits for them. An event that is not the library's own becomes a dead letter, so no
 * event is left that would keep the house READY. */
__attribute__((noinline, cold)) static void take_events_unmounted(house_run *run, uint32_t kept)
{
    take_events(run, kept, false);
}

/* Marks that few houses have, and for which settle() has more to do. */
#define DOMI_MARKS_SPECIAL                                                                         \
    (DOMI_MARK_RESTART | DOMI_MARK_PASSIVATES | DOMI_MARK_ROUTEE | DOMI_MARK_GONE)

static void settle_special(domi_manager *manager, domi_house *house, uint32_t handled)
{
    if ((house->marks & DOMI_MARK_PASSIVATES) != 0) {
        bool only_looked = house->family->idle_looked && handled <= 1;
        house->family->idle_looked = false;
        if (!only_looked)
            house->family->last_ns = manager->now_ns;
    }
    if ((house->marks & DOMI_MARK_RESTART) != 0)
        domi_house_restart_end(manager, house);
    if ((house->marks & DOMI_MARK_ROUTEE) != 0)
        domi_router_note_load(house);
    if (domi_house_has_outlived_channel(house))
        domi_house_stop_after_run(house);
}

DOMI_INLINE void make_ready_after_run(domi_manager *manager, domi_house *house)
{
    domi_house_move(house, DOMI_READY);
    domi_queue_put(&manager->schedule.ready[house->behaviour->kind], house);
}

/* End the run: the house becomes READY, at the tail of its queue, or WAITING, or free. A stand-in
 * may not end or restart the actor (`may_end`), because that runs code of users and may touch io:
 * then the house becomes READY, and the end of its next run does that. */
DOMI_INLINE void settle(domi_manager *manager, domi_house *house, uint32_t handled, bool may_end)
{
    uint64_t life = domi_house_life(house);

    if (!may_end && domi_house_has_to_end(house, life)) {
        make_ready_after_run(manager, house);
        return;
    }
    if (DOMI_UNLIKELY((house->marks & DOMI_MARKS_SPECIAL) != 0)) {
        settle_special(manager, house, handled);
        /* A stop that a stand-in does not see here comes with a node. */
        if (may_end)
            life = domi_house_life(house);
    }
    if (DOMI_UNLIKELY((life & (DOMI_LIFE_STOP | DOMI_LIFE_FULL)) != 0)) {
        if ((life & (DOMI_LIFE_STOP | DOMI_LIFE_FULL)) == DOMI_LIFE_FULL)
            domi_watch_fire_room(manager, house);
        if ((life & DOMI_LIFE_STOP) != 0 && (house->marks & DOMI_MARK_STOPPING) == 0)
            domi_house_stop_begin(manager, house);
        if ((house->marks & DOMI_MARK_STOPPING) != 0 && domi_house_stop_end(manager, house))
            return;
    }
    if (domi_house_is_runnable(house))
        make_ready_after_run(manager, house);
    else
        domi_house_move(house, DOMI_WAITING);
    DOMI_CHECK_SLOW(domi_house_is_sound(manager, house));
}

/* Take from one source until it is empty or the run is full. A source is a mailbox, or the
 * channels. */
static void take_all(house_run *run, uint32_t source)
{
    domi_house *house = run->house;

    switch (source) {
    case DOMI_REPLY:
        take_replies(run, 0);
        break;
    case DOMI_EXCEPTION:
        take_exceptions(run, 0);
        break;
    case DOMI_ASK:
        take_user(run, DOMI_ASK, 0);
        break;
    case DOMI_NOTICE:
        take_user(run, DOMI_NOTICE, 0);
        if (domi_house_has_receive_to_look(house))
            take_received(run, 0);
        break;
    case DOMI_EVENT:
        if ((house->marks & DOMI_MARK_UNMOUNTED) != 0)
            take_events_unmounted(run, 0);
        else
            take_events(run, 0, true);
        break;
    default:
        if (domi_house_may_run_channels(house))
            run->left -= run->manager->io_hooks.run_channels(run->manager, house, run->left);
    }
}

#define SOURCES (DOMI_MAILBOXES + 1u) /* all mailboxes, and the channel of a channels actor */

static_assert(SOURCES <= DOMI_EVENT_STEP, "each source fits beside the events");

/* A run of fewer than 8 messages has no places to keep. In the usual order the first mailbox could
 * fill each of these runs, and the others would starve, so each run begins behind the source with
 * which the last one began. */
__attribute__((noinline, cold)) static uint32_t run_short(domi_manager *manager, domi_house *house,
                                                          uint32_t places)
{
    domus_stack stack;
    house_run run = {.manager = manager, .house = house, .left = places, .stack = &stack};
    uint32_t first = house->events & DOMI_EVENT_FIRST_MASK;

    for (uint32_t i = 0; i < SOURCES && run.left != 0; i++) {
        uint32_t source = (first + i) % SOURCES;

        if (run.left == places) /* nothing was handled so far, so the run begins with this source */
            house->events = (house->events & ~DOMI_EVENT_FIRST_MASK) | (source + 1) % SOURCES;
        take_all(&run, source);
    }
    return run.left;
}

/* How many places are kept for notices: `kept` if some wait and may be taken, or if a receive has
 * mail to look at, else 0. Without them replies that never end would keep a receive from its
 * message. */
DOMI_INLINE uint32_t kept_for_notices(const domi_house *house, bool held, uint32_t kept)
{
    bool waits = held ? domi_house_has_receive_to_look(house) : house->tails[DOMI_NOTICE] != NULL;

    return waits ? kept : 0;
}

/* Take the mailboxes in their order, and keep `kept` places for each later kind that waits. */
DOMI_INLINE void run_in_order(house_run *run, domi_manager *manager, domi_house *house,
                              uint32_t kept)
{
    bool held = (house->marks & DOMI_MARKS_HOLD) != 0;
    uint32_t channels = (house->marks & DOMI_MARK_CHANNELS) != 0 ? kept : 0;
    uint32_t events = channels + (house->tails[DOMI_EVENT] != NULL ? kept : 0);
    uint32_t notices = events + kept_for_notices(house, held, kept);

    if (house->tails[DOMI_REPLY] != NULL || house->tails[DOMI_EXCEPTION] != NULL)
        take_answers(run, notices + (house->tails[DOMI_ASK] != NULL && !held ? kept : 0), kept);
    if (house->tails[DOMI_ASK] != NULL)
        take_user(run, DOMI_ASK, notices);
    if (house->tails[DOMI_NOTICE] != NULL)
        take_user(run, DOMI_NOTICE, events);
    if (DOMI_UNLIKELY(domi_house_has_receive_to_look(house)))
        take_received(run, events);
    if (house->tails[DOMI_EVENT] != NULL) {
        if (DOMI_UNLIKELY(held) && (house->marks & DOMI_MARK_UNMOUNTED) != 0)
            take_events_unmounted(run, channels);
        else
            take_events(run, channels, true);
    }
    if (domi_house_may_run_channels(house))
        run->left -= manager->io_hooks.run_channels(manager, house, run->left);
}

DOMI_INLINE uint32_t run_once(domi_manager *manager, domi_house *house)
{
    domus_stack stack;
    house_run run = {.manager = manager,
                     .house = house,
                     .left = manager->limits.messages_per_run_max,
                     .stack = &stack};

    domi_house_move(house, DOMI_SCHEDULED);
    domi_house_move(house, DOMI_RUNNING);

    domi_run_begin(manager, house);
    if (DOMI_UNLIKELY(manager->limits.run_kept == 0))
        run.left = run_short(manager, house, run.left);
    else
        run_in_order(&run, manager, house, manager->limits.run_kept);
    domi_run_end(manager);
    domi_counter_add(&manager->counters.runs, 1);
    return manager->limits.messages_per_run_max - run.left;
}

DOMI_NO_CANARY uint32_t domi_house_run(domi_manager *manager, domi_house *house)
{
    uint32_t handled = run_once(manager, house);

    settle(manager, house, handled, true);
    return handled;
}

DOMI_NO_CANARY uint32_t domi_house_run_lent(domi_manager *manager, domi_house *house)
{
    return run_once(manager, house);
}

void domi_house_settle(domi_manager *home, domi_house *house, uint32_t handled)
{
    settle(home, house, handled, true);
}

void domi_house_settle_held(domi_manager *home, domi_house *house, uint32_t handled)
{
    settle(home, house, handled, false);
}
