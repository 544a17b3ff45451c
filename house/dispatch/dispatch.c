/* Priority dispatch: replies, exceptions, asks, notices, events, then what the kind adds.
 *
 * The mail that may run is decided in one place (domi_house_runnable), by the lists themselves; no
 * hint, no cursor. The runner looks at STOP before each ask and notice. The stack of a handler that
 * does not park lives here, on the thread's own stack. */
#include "house/dispatch/dispatch.h"

#include "base/check.h"
#include "house/conversation/ask.h"
#include "house/conversation/owned.h"
#include "house/conversation/receive.h"
#include "house/conversation/timer.h"
#include "house/directory/letters.h"
#include "house/directory/router.h"
#include "house/dispatch/invariants.h"
#include "house/family/family.h"
#include "house/family/life.h"
#include "house/family/memory_watch.h"
#include "house/message/pool.h"

#include <errno.h>

typedef struct run {
    domi_manager *manager;
    domi_house *house;
    uint32_t left;
} run;

/* `before` places were left when this kind began. */
static inline void count(const run *now, uint32_t kind, uint32_t before)
{
    if (before != now->left)
        domi_counter_add(&now->manager->counters.handled[kind], before - now->left);
}

static const domus_on *find(const domus_behaviour *behaviour, const domus_type *type)
{
    const domus_on *on = behaviour->on;

    if (on == NULL)
        return NULL;
    for (; on->type != NULL; on++) {
        if (on->type == type)
            return on;
    }
    return NULL;
}

/* The row that takes what no other does: the last, if it has a handler. */
static const domus_on *find_rest(const domus_behaviour *behaviour)
{
    const domus_on *on = behaviour->on;

    while (on != NULL && on->type != NULL)
        on++;
    return on != NULL && on->handle != NULL ? on : NULL;
}

/* What the library itself sends to an actor. */
static bool is_ours(run *now, domi_envelope *message)
{
    if (message->type == &domi_cancel_type) {
        domi_ask_cancelled(now->manager, now->house, message);
        return true;
    }
    if (message->type == &domi_last_type) {
        (void)domi_house_stop(now->manager, domi_house_address(now->house));
        return true;
    }
    return now->manager->take_event != NULL && message->node.kind == DOMI_EVENT &&
           now->manager->take_event(now->manager, now->house, message);
}

/* An event that stays with what sent it: a timer, a watch. */
static void dead_event(run *now, const domi_envelope *message, int why)
{
    domi_letters_dead(now->manager, domi_house_address(now->house), message, why);
}

/* A row with a frame needs a pooled stack from the start. */
static void handle_framed(run *now, domi_envelope *message, const domus_on *on, uint32_t kind)
{
    domus_stack *stack = domi_stack_new(now->manager, now->house, on->frame_size);

    if (stack == NULL) {
        if (kind == DOMI_EVENT)
            dead_event(now, message, -ENOMEM); /* its timer goes on */
        else
            /* spawn checked the size */
            domi_mailbox_dead(now->manager, now->house, &message->node, -ENOMEM);
        return;
    }
    stack->message = message;
    stack->ask = kind == DOMI_ASK ? message : NULL;
    stack->begun_by = message->type;
    int result = on->handle(stack, now->house->self, domi_envelope_payload_of(message, kind));
    if (kind == DOMI_NOTICE && stack->message != NULL)
        domi_envelope_done(now->manager, message);
    domi_stack_return(stack, result);
}

/* Of a notice, it also frees what the handler left. Inlined: the kind is a constant. */
__attribute__((always_inline)) static inline void handle(run *now, domi_envelope *message,
                                                         const domus_on *on, uint32_t kind)
{
    domus_stack stack;

    domi_stack_begin(&stack, now->manager, now->house);
    stack.ask = kind == DOMI_ASK ? message : NULL;
    stack.message = message;
    int result = on->handle(&stack, now->house->self, domi_envelope_payload_of(message, kind));
    if (kind == DOMI_NOTICE && DOMI_LIKELY(stack.message != NULL))
        domi_envelope_done(now->manager, message);
    if (DOMI_LIKELY(result == 0 && stack.pooled == NULL && stack.ask == NULL && !stack.barrier))
        return; /* done: nothing to answer, nothing kept */
    domi_stack_return(&stack, result);
}

/* No row for this type: an ask fails with -EOPNOTSUPP, else it is a dead letter. */
static void unhandled(run *now, domi_envelope *message, uint32_t kind)
{
    const domus_on *rest = find_rest(now->house->behaviour);

    if (is_ours(now, message))
        domi_pool_free(now->manager, &message->node);
    else if (rest == NULL)
        domi_mailbox_dead(now->manager, now->house, &message->node, -EOPNOTSUPP);
    else if (rest->frame_size != 0)
        handle_framed(now, message, rest, kind);
    else
        handle(now, message, rest, kind);
}

DOMI_INLINE void take_replies(run *now, uint32_t kept)
{
    domi_house *house = now->house;
    uint32_t before = now->left;

    while (house->tails[DOMI_REPLY] != NULL && now->left > kept) {
        domi_node *node = domi_list_take(&house->tails[DOMI_REPLY]);
        house->replies--;
        now->left--;
        domi_stack_answer(now->manager, house, (domi_envelope *)(void *)node);
    }
    count(now, DOMI_REPLY, before);
}

DOMI_INLINE void take_exceptions(run *now, uint32_t kept)
{
    domi_house *house = now->house;
    uint32_t before = now->left;

    while (house->tails[DOMI_EXCEPTION] != NULL && now->left > kept) {
        domi_node *node = domi_list_take(&house->tails[DOMI_EXCEPTION]);
        now->left--;
        if (domi_node_is_stack(node) || domi_node_is_promise(node))
            domi_stack_node(now->manager, node);
        else
            domi_stack_answer(now->manager, house, (domi_envelope *)(void *)node);
    }
    count(now, DOMI_EXCEPTION, before);
}

static void take_answers(run *now, uint32_t kept, uint32_t kept_each)
{
    take_replies(now, kept + (now->house->tails[DOMI_EXCEPTION] != NULL ? kept_each : 0));
    take_exceptions(now, kept);
}

static inline bool may_take_user(run *now)
{
    domi_house *house = now->house;

    if ((house->marks & (DOMI_MARKS_HOLD | DOMI_MARK_STOPPING)) != 0)
        return false;
    if (DOMI_UNLIKELY(domi_house_is_asked_to_stop(house))) {
        domi_house_stop_begin(now->manager, house);
        return false;
    }
    return true;
}

/* Inlined twice on purpose: the kind is a constant in each. */
__attribute__((always_inline)) static inline void take_user(run *now, uint32_t kind, uint32_t kept)
{
    domi_house *house = now->house;
    uint32_t before = now->left;

    while (house->tails[kind] != NULL && now->left > kept && may_take_user(now)) {
        domi_envelope *message = (domi_envelope *)(void *)domi_list_take(&house->tails[kind]);
        const domus_on *on = find(house->behaviour, message->type);

        house->mail--;
        now->left--;
        domi_manager_handles(now->manager, message->type);
        if (kind == DOMI_ASK && DOMI_UNLIKELY(domi_ask_is_expired(now->manager, message)))
            domi_ask_expire(now->manager, message);
        else if (DOMI_UNLIKELY(on == NULL))
            unhandled(now, message, kind);
        else if (DOMI_UNLIKELY(on->frame_size != 0))
            handle_framed(now, message, on, kind);
        else
            handle(now, message, on, kind);
    }
    count(now, kind, before);
}

/* While a receive waits it chooses. */
static void take_received(run *now, uint32_t kept)
{
    domi_house *house = now->house;

    if (now->left <= kept)
        return;
    uint32_t handled = domi_receive_run(now->manager, house, now->left - kept);
    now->left -= handled;
    domi_counter_add(&now->manager->counters.handled[DOMI_NOTICE], handled);
}

/* Call the row's function. Returns 0, and the caller frees the event or gives it back to its timer,
 * watch or descriptor; -EOPNOTSUPP without a row; -ESTALE when the actor is not mounted: then
 * nothing was called, and the event is a dead letter. */
DOMI_INLINE int handle_event(run *now, domi_envelope *message, bool mounted)
{
    if (!mounted)
        return -ESTALE;
    const domus_on *on = find(now->house->behaviour, message->type);

    if (on == NULL)
        on = find_rest(now->house->behaviour);
    if (on == NULL)
        return -EOPNOTSUPP;
    domi_manager_handles(now->manager, message->type);
    if (on->frame_size != 0)
        handle_framed(now, message, on, DOMI_EVENT);
    else
        handle(now, message, on, DOMI_EVENT);
    return 0;
}

/* An event of a timer, a watch or a descriptor, which has it back afterwards. */
DOMI_INLINE void handle_lent_event(run *now, domi_envelope *message, bool mounted)
{
    int error = handle_event(now, message, mounted);

    if (error != 0)
        dead_event(now, message, error);
}

DOMI_INLINE void take_timer(run *now, domi_timer *timer, bool mounted)
{
    bool is_idle = timer->event.type == &domi_idle_type;

    if (!timer->cancelled && is_idle)
        now->house->family->idle_looked = true;
    else if (!timer->cancelled)
        handle_lent_event(now, &timer->event, mounted);
    bool look = is_idle && !timer->cancelled;
    domi_timer_handled(now->manager, timer);
    if (look)
        domi_house_idle(now->manager, now->house);
}

DOMI_INLINE void take_event(run *now, domi_node *node, bool mounted)
{
    domi_envelope *message = (domi_envelope *)(void *)node;
    int error;

    if (node->slab == DOMI_SLAB_TIMER) {
        take_timer(now, (domi_timer *)(void *)node, mounted);
    } else if (node->slab == DOMI_SLAB_DESCRIPTOR) {
        if (message->error == 0)
            handle_lent_event(now, message, mounted);
        now->manager->descriptor_handled(now->manager, node);
    } else if (node->slab == DOMI_SLAB_HOUSE) {
        domi_family_event(now->manager, now->house, node);
    } else if (node->slab == DOMI_SLAB_WATCH) {
        domi_watch *watch = (domi_watch *)(void *)node;
        if (domi_watch_take(now->manager, now->house, watch))
            handle_lent_event(now, message, mounted);
        domi_watch_handled(now->manager, watch);
    } else if (node->slab == DOMI_SLAB_MEMORY_WATCH) {
        domi_memory_watch *watch = (domi_memory_watch *)(void *)node;
        if (domi_memory_watch_take(now->manager, watch))
            handle_lent_event(now, message, mounted);
        domi_memory_watch_handled(now->manager, watch);
    } else if (is_ours(now, message) || (error = handle_event(now, message, mounted)) == 0) {
        domi_pool_free(now->manager, node);
    } else {
        domi_mailbox_dead(now->manager, now->house, node, error);
    }
}

/* `mounted` is a constant in both uses, so that events of a mounted actor are not asked for it. */
DOMI_INLINE void take_events(run *now, uint32_t kept, bool mounted)
{
    domi_house *house = now->house;
    uint32_t before = now->left;

    while (house->tails[DOMI_EVENT] != NULL && now->left > kept) {
        domi_node *node = domi_list_take(&house->tails[DOMI_EVENT]);
        house->events -= DOMI_EVENT_STEP;
        now->left--;
        take_event(now, node, mounted);
    }
    count(now, DOMI_EVENT, before);
}

/* The mailbox of events is not held back as those of asks and notices are: the ends of children
 * come by it, and a stop waits for them. An event that is not the library's own becomes a dead
 * letter, so nothing stays that could keep the house ready. */
__attribute__((noinline, cold)) static void take_events_unmounted(run *now, uint32_t kept)
{
    take_events(now, kept, false);
}

/* What few houses have to settle besides. */
#define DOMI_MARKS_SPECIAL (DOMI_MARK_RESTART | DOMI_MARK_PASSIVATES | DOMI_MARK_ROUTEE)

static void special(domi_manager *manager, domi_house *house, uint32_t handled)
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
}

/* READY at the tail, WAITING, or gone. */
DOMI_INLINE void settle(domi_manager *manager, domi_house *house, uint32_t handled)
{
    uint64_t life = domi_house_life(house);

    if (DOMI_UNLIKELY((house->marks & DOMI_MARKS_SPECIAL) != 0)) {
        special(manager, house, handled);
        life = domi_house_life(house);
    }
    if (DOMI_UNLIKELY((life & (DOMI_LIFE_STOP | DOMI_LIFE_FULL)) != 0)) {
        if ((life & (DOMI_LIFE_STOP | DOMI_LIFE_FULL)) == DOMI_LIFE_FULL)
            domi_mailbox_room(manager, house);
        if ((life & DOMI_LIFE_STOP) != 0 && (house->marks & DOMI_MARK_STOPPING) == 0)
            domi_house_stop_begin(manager, house);
        if ((house->marks & DOMI_MARK_STOPPING) != 0 && domi_house_stop_end(manager, house))
            return;
    }
    if (domi_house_runnable(house)) {
        domi_house_move(house, DOMI_READY);
        domi_queue_put(&manager->ready[house->behaviour->kind], house);
    } else {
        domi_house_move(house, DOMI_WAITING);
    }
    DOMI_CHECK_SLOW(domi_house_is_sound(manager, house));
}

/* Take from one source until it is empty or the run is full. A source is a mailbox, or the
 * channels. */
static void take_all(run *now, uint32_t source)
{
    domi_house *house = now->house;

    switch (source) {
    case DOMI_REPLY:
        take_replies(now, 0);
        break;
    case DOMI_EXCEPTION:
        take_exceptions(now, 0);
        break;
    case DOMI_ASK:
        take_user(now, DOMI_ASK, 0);
        break;
    case DOMI_NOTICE:
        take_user(now, DOMI_NOTICE, 0);
        if (domi_house_receives(house))
            take_received(now, 0);
        break;
    case DOMI_EVENT:
        if ((house->marks & DOMI_MARK_UNMOUNTED) != 0)
            take_events_unmounted(now, 0);
        else
            take_events(now, 0, true);
        break;
    default:
        if (domi_house_channels_runnable(house))
            now->left -= now->manager->run_channels(now->manager, house, now->left);
    }
}

#define SOURCES (DOMI_MAILBOXES + 1u)

static_assert(SOURCES <= DOMI_EVENT_STEP, "each source fits beside the events");

/* A run of fewer than 8 messages has no places to keep. In the usual order the first mailbox could
 * fill each of these runs, and the others would starve, so each run begins behind the source with
 * which the last one began. */
__attribute__((noinline, cold)) static uint32_t run_short(domi_manager *manager, domi_house *house,
                                                          uint32_t places)
{
    run now = {.manager = manager, .house = house, .left = places};
    uint32_t first = house->events & DOMI_EVENT_TURN_MASK;

    for (uint32_t i = 0; i < SOURCES && now.left != 0; i++) {
        uint32_t source = (first + i) % SOURCES;

        if (now.left == places) /* nothing so far: it may begin with this one */
            house->events = (house->events & ~DOMI_EVENT_TURN_MASK) | (source + 1) % SOURCES;
        take_all(&now, source);
    }
    return now.left;
}

/* The places that are kept for notices: when some wait and may be taken, or when a receive has mail
 * to look at. Without them, replies that never end would keep a receive from its message. */
DOMI_INLINE uint32_t kept_for_notices(const domi_house *house, bool held, uint32_t kept)
{
    bool waits = held ? domi_house_receives(house) : house->tails[DOMI_NOTICE] != NULL;

    return waits ? kept : 0;
}

/* The order of the mailboxes; each kind that waits has `kept` places kept for it. */
DOMI_INLINE void run_in_order(run *now, domi_manager *manager, domi_house *house, uint32_t kept)
{
    bool held = (house->marks & DOMI_MARKS_HOLD) != 0;
    uint32_t channels = (house->marks & DOMI_MARK_CHANNELS) != 0 ? kept : 0;
    uint32_t events = channels + (house->tails[DOMI_EVENT] != NULL ? kept : 0);
    uint32_t notices = events + kept_for_notices(house, held, kept);

    if (house->tails[DOMI_REPLY] != NULL || house->tails[DOMI_EXCEPTION] != NULL)
        take_answers(now, notices + (house->tails[DOMI_ASK] != NULL && !held ? kept : 0), kept);
    if (house->tails[DOMI_ASK] != NULL)
        take_user(now, DOMI_ASK, notices);
    if (house->tails[DOMI_NOTICE] != NULL)
        take_user(now, DOMI_NOTICE, events);
    if (DOMI_UNLIKELY(domi_house_receives(house)))
        take_received(now, events);
    if (house->tails[DOMI_EVENT] != NULL) {
        if (DOMI_UNLIKELY(held) && (house->marks & DOMI_MARK_UNMOUNTED) != 0)
            take_events_unmounted(now, channels);
        else
            take_events(now, channels, true);
    }
    if (domi_house_channels_runnable(house))
        now->left -= manager->run_channels(manager, house, now->left);
}

DOMI_INLINE uint32_t run_once(domi_manager *manager, domi_house *house)
{
    run now = {.manager = manager, .house = house, .left = manager->messages_per_run_max};

    DOMI_CHECK_SLOW(domi_manager_is_mine(manager));
    domi_house_move(house, DOMI_SCHEDULED);
    domi_house_move(house, DOMI_RUNNING);

    domi_manager_runs(manager, house->behaviour);

    if (DOMI_UNLIKELY(manager->run_kept == 0))
        now.left = run_short(manager, house, now.left);
    else
        run_in_order(&now, manager, house, manager->run_kept);

    domi_manager_runs(manager, NULL);
    domi_counter_add(&manager->counters.runs, 1);
    return manager->messages_per_run_max - now.left;
}

DOMI_NO_CANARY uint32_t domi_house_run(domi_manager *manager, domi_house *house)
{
    uint32_t handled = run_once(manager, house);

    settle(manager, house, handled);
    return handled;
}

DOMI_NO_CANARY uint32_t domi_house_run_lent(domi_manager *manager, domi_house *house)
{
    return run_once(manager, house);
}

void domi_house_settle(domi_manager *home, domi_house *house, uint32_t handled)
{
    settle(home, house, handled);
}
