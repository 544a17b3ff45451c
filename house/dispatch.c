/* Priority dispatch: replies, exceptions, asks, notices, events, then what the kind adds.
 *
 * The mail that may run is decided in one place (domi_house_runnable), by the lists themselves; no
 * hint, no cursor. The runner looks at STOP before each ask and notice. The stack of a handler that
 * does not park lives here, on the thread's own stack. */
#include "house/dispatch.h"

#include "base/check.h"
#include "house/life.h"
#include "house/mailbox.h"
#include "house/pool.h"
#include "house/stack.h"
#include "house/timer.h"

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

/* Nobody handles this type: an ask fails with -EOPNOTSUPP, else it is a dead letter. */
static void unhandled(run *now, domi_node *node)
{
    if (now->manager->take_event != NULL && node->kind == DOMI_EVENT &&
        now->manager->take_event(now->manager, now->house, (domi_envelope *)(void *)node)) {
        domi_pool_free(now->manager, node);
        return;
    }
    domi_mailbox_dead(now->manager, node, -EOPNOTSUPP);
}

/* A row with a frame needs a pooled stack from the start. */
static void handle_framed(run *now, domi_envelope *message, const domus_on *on)
{
    domus_stack *stack = domi_stack_new(now->manager, now->house, on->frame_size);

    if (stack == NULL && domi_node_is_timer(&message->node)) {
        domi_counter_add(&now->manager->counters.dead_letters, 1);
        return; /* this event is lost; take_event() goes on with its timer */
    }
    if (stack == NULL) {
        domi_mailbox_dead(now->manager, &message->node, -ENOMEM); /* spawn checked the size */
        return;
    }
    bool is_ask = message->node.kind == DOMI_ASK;
    stack->message = message;
    stack->ask = is_ask ? message : NULL;
    int result = on->handle(stack, now->house->self, domi_envelope_payload(message));
    domi_stack_return(stack, result);
    if (!is_ask && !domi_node_is_timer(&message->node))
        domi_pool_free(now->manager, &message->node);
}

static inline void handle(run *now, domi_envelope *message, const domus_on *on, bool is_ask)
{
    domus_stack stack;

    stack.manager = now->manager;
    atomic_init(&stack.house, now->house);
    stack.ask = is_ask ? message : NULL;
    stack.message = message;
    stack.pooled = NULL;
    stack.frame_size = 0;
    stack.answered = false;
    stack.sender = (domus_address){NULL, 0};
    int result = on->handle(&stack, now->house->self, domi_envelope_payload(message));
    if (DOMI_LIKELY(result == 0 && stack.pooled == NULL && stack.ask == NULL &&
                    now->house->barrier != &stack))
        return; /* done: nothing to answer, nothing kept */
    domi_stack_return(&stack, result);
}

static void take_replies(run *now, uint32_t kept, uint32_t kept_each)
{
    domi_house *house = now->house;
    uint32_t before = now->left;
    uint32_t exceptions = house->tails[DOMI_EXCEPTION] != NULL ? kept_each : 0;

    while (house->tails[DOMI_REPLY] != NULL && now->left > kept + exceptions) {
        domi_node *node = domi_list_take(&house->tails[DOMI_REPLY]);
        house->replies--;
        now->left--;
        domi_stack_resume(now->manager, house, (domi_envelope *)(void *)node);
    }
    count(now, DOMI_REPLY, before);
    before = now->left;
    while (house->tails[DOMI_EXCEPTION] != NULL && now->left > kept) {
        domi_node *node = domi_list_take(&house->tails[DOMI_EXCEPTION]);
        now->left--;
        if (domi_node_is_stack(node))
            domi_stack_resume_failed(now->manager, house, node);
        else
            domi_stack_resume(now->manager, house, (domi_envelope *)(void *)node);
    }
    count(now, DOMI_EXCEPTION, before);
}

static inline bool may_take_user(run *now)
{
    domi_house *house = now->house;

    if ((house->marks & (DOMI_MARKS_HOLD | DOMI_MARK_STOPPING)) != 0)
        return false;
    /* Relaxed: a stop that is not seen yet is seen before the next message. */
    if (DOMI_UNLIKELY((atomic_load_explicit(&house->life, memory_order_relaxed) & DOMI_LIFE_STOP) !=
                      0)) {
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
        if (DOMI_UNLIKELY(on == NULL)) {
            unhandled(now, &message->node);
        } else if (DOMI_UNLIKELY(on->frame_size != 0)) {
            handle_framed(now, message, on);
        } else {
            handle(now, message, on, kind == DOMI_ASK);
            if (kind == DOMI_NOTICE)
                domi_pool_free(now->manager, &message->node);
        }
    }
    count(now, kind, before);
}

static void take_event(run *now, domi_node *node)
{
    domi_envelope *message = (domi_envelope *)(void *)node;
    bool timer = domi_node_is_timer(node);
    const domus_on *on = find(now->house->behaviour, message->type);

    if (timer && ((domi_timer *)(void *)node)->cancelled) {
        domi_timer_handled(now->manager, (domi_timer *)(void *)node);
        return;
    }
    if (on == NULL) {
        unhandled(now, node);
        return;
    }
    if (on->frame_size != 0) {
        handle_framed(now, message, on);
    } else {
        handle(now, message, on, false);
        if (!timer)
            domi_pool_free(now->manager, node);
    }
    if (timer)
        domi_timer_handled(now->manager, (domi_timer *)(void *)node);
}

static void take_events(run *now, uint32_t kept)
{
    domi_house *house = now->house;
    uint32_t before = now->left;

    while (house->tails[DOMI_EVENT] != NULL && now->left > kept) {
        domi_node *node = domi_list_take(&house->tails[DOMI_EVENT]);
        house->events--;
        now->left--;
        take_event(now, node);
    }
    count(now, DOMI_EVENT, before);
}

/* READY at the tail, WAITING, or gone. */
static void settle(domi_manager *manager, domi_house *house)
{
    uint64_t life = atomic_load_explicit(&house->life, memory_order_relaxed);

    if (DOMI_UNLIKELY((life & (DOMI_LIFE_STOP | DOMI_LIFE_FULL)) != 0)) {
        if ((life & DOMI_LIFE_FULL) != 0 && house->mail < manager->mailbox_max / 2)
            domi_mailbox_not_full(house);
        if ((life & DOMI_LIFE_STOP) != 0 && (house->marks & DOMI_MARK_STOPPING) == 0)
            domi_house_stop_begin(manager, house);
        if ((house->marks & DOMI_MARK_STOPPING) != 0 && domi_house_stop_end(manager, house))
            return;
    }
    if (!domi_house_runnable(house)) {
        domi_house_move(house, DOMI_WAITING);
        return;
    }
    domi_house_move(house, DOMI_READY);
    domi_queue_put(&manager->ready[house->behaviour->kind], house);
}

uint32_t domi_house_run(domi_manager *manager, domi_house *house)
{
    run now = {.manager = manager, .house = house, .left = manager->messages_per_run_max};

    domi_house_move(house, DOMI_SCHEDULED);
    domi_house_move(house, DOMI_RUNNING);

    /* A short run keeps fewer, so that what each kind keeps is less than the run. */
    uint32_t kept = now.left / 8 < DOMI_RUN_KEPT ? now.left / 8 : DOMI_RUN_KEPT;
    bool held = (house->marks & DOMI_MARKS_HOLD) != 0;
    uint32_t channels = (house->marks & DOMI_MARK_CHANNELS) != 0 ? kept : 0;
    uint32_t events = channels + (house->tails[DOMI_EVENT] != NULL ? kept : 0);
    uint32_t notices = events + (house->tails[DOMI_NOTICE] != NULL && !held ? kept : 0);
    if (house->tails[DOMI_REPLY] != NULL || house->tails[DOMI_EXCEPTION] != NULL)
        take_replies(&now, notices + (house->tails[DOMI_ASK] != NULL && !held ? kept : 0), kept);
    if (house->tails[DOMI_ASK] != NULL)
        take_user(&now, DOMI_ASK, notices);
    if (house->tails[DOMI_NOTICE] != NULL)
        take_user(&now, DOMI_NOTICE, events);
    if (house->tails[DOMI_EVENT] != NULL)
        take_events(&now, channels);
    if (domi_house_channels_runnable(house))
        now.left -= manager->run_channels(manager, house, now.left);

    domi_counter_add(&manager->counters.runs, 1);
    uint32_t handled = manager->messages_per_run_max - now.left;
    settle(manager, house);
    return handled;
}
