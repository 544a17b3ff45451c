/* The one way into the code of a user: runs and turns (contract: Time and order).
 *
 * A *run* is one visit of a thread to a house, from domi_run_begin() to domi_run_end(). A *turn* is
 * one entry into a function of the actor that gets a stack, from domi_turn_begin() to
 * domi_turn_end(). A run has many turns. These are all of them:
 *
 *     a handler of a message            run.h, run.c   in a run that takes mail
 *     a function that goes on           turn.c         in such a run
 *     on_open, on_read, on_end,         io/completions/calls.c
 *     on_close                                         in such a run of a channels actor
 *                                                      (on_open: mostly in a run of its own)
 *     on_mount, on_stop                 life.c         a run of its own, with this one turn
 *     on_restart                        restart.c      the same
 *     a verb in the name of a probe     runtime/testkit/probe.c
 *                                                      the same
 *
 * So what has to be done before or after code of a user has one place:
 *
 *     domi_run_begin()   says whose code runs here, for stall reports
 *     domi_turn_begin()  says what is handled, for stall reports; the owner is checked
 *     domi_turn_end()    parks the conversation or ends it: answers, tells a failure, lowers a
 *                        barrier; does what a verb wants to be done now (`end_acts` of the stack)
 *     domi_run_end()     nobody's code runs here any more. Home then settles the house
 *                        (settle.h), unless it is a run of one turn
 *
 * Functions of a user that get no stack are no turns: `release` of a type, `matches` of a pattern,
 * `key` of a router, blocking work. They can use no verb, and so leave nothing to be done. The
 * functions of a process (domus/process.h) are called within the turns of the actor in process.c.
 *
 * A function that has a stack among its locals is DOMI_NO_CANARY: it runs once per turn, and the
 * array at the end of a stack is no part of such a local. Whoever runs the house calls all this. */
#ifndef DOMI_HOUSE_CONVERSATION_TURN_H
#define DOMI_HOUSE_CONVERSATION_TURN_H

#include "base/check.h"
#include "base/probe.h"
#include "house/conversation/stack.h"

/* Begin a run: from here on, code of `house` runs on this thread. release, here and in
 * domi_turn_begin(): a monitor reads the name in the behaviour or type, which the program may have
 * made just now (domi_manager_running_behaviour()). */
DOMI_INLINE void domi_run_begin(domi_manager *manager, const domi_house *house)
{
    DOMI_CHECK_SLOW(domi_manager_is_owned_by_caller(manager));
    /* the last run has ended, because runs do not nest */
    DOMI_CHECK_SLOW(manager->activity.running == NULL);
    const domus_behaviour *behaviour = house->behaviour;
    atomic_store_explicit(&manager->activity.running, behaviour, memory_order_release);
    DOMI_PROBE_2(run__begin, manager->index, behaviour);
}

/* End a run of a house. Work that a thread has to do after each visit to a house, before anything
 * else, belongs in this function. */
DOMI_INLINE void domi_run_end(domi_manager *manager)
{
    /* Relaxed: a thread that reads NULL reads nothing through it. */
    atomic_store_explicit(&manager->activity.running, NULL, memory_order_relaxed);
    DOMI_PROBE_1(run__end, manager->index);
}

/* Begin a turn of the conversation `stack`, which is new (domi_stack_begin_without_message(),
 * domi_stack_new()) or goes on. `handled` is the type of the message; NULL: there is none.
 * Callbacks without a message, such as on_mount and on_read, have types for this purpose alone. */
DOMI_INLINE void domi_turn_begin(domus_stack *stack, const domus_type *handled)
{
    domi_manager *manager = stack->manager;

    DOMI_CHECK_SLOW(domi_manager_is_owned_by_caller(manager));
    DOMI_CHECK_SLOW(manager->activity.running != NULL);
    atomic_store_explicit(&manager->activity.handling, handled, memory_order_release);
    DOMI_PROBE_2(turn__begin, manager->index, handled);
}

/* End a turn whose function returned `result`. A negative result is the answer to the ask that the
 * conversation handles, else a failure of the actor. */
DOMI_INLINE void domi_turn_end(domus_stack *stack, int result)
{
    domi_stack_park_or_end(stack, result);
}

/* End a turn as domi_turn_end() does, for a conversation that a message of `kind` began in this
 * turn, on the stack in the run's own C frame (domi_stack_set_up_in_frame_of_run()). Mostly the
 * conversation is over, and nothing is to be answered or kept: then this does nothing and returns
 * true, and the stack can serve the next message as it is. After false the caller has to prepare
 * the stack again. */
DOMI_INLINE bool domi_turn_end_of_begun_conversation(domus_stack *stack, int result, uint32_t kind)
{
    bool owes_answer = kind == DOMI_ASK && stack->ask != NULL;

    if (DOMI_LIKELY(result == 0 && stack->pooled == NULL && !owes_answer && !stack->end_acts))
        return true;
    domi_turn_end(stack, result);
    return false;
}

/* End a turn as domi_turn_end() does, for a callback whose failure the caller itself reports.
 * Returns `result`. */
DOMI_INLINE int domi_turn_end_of_callback(domus_stack *stack, int result)
{
    domi_turn_end(stack, result < 0 ? 0 : result);
    return result;
}

#endif
