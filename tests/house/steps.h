/* Small handlers and resumed functions that many tests of this folder use, and steps of their
 * worlds. */
#ifndef DOMT_HOUSE_STEPS_H
#define DOMT_HOUSE_STEPS_H

#include "house/family/life.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <domus/conversation.h>
#include <domus/receive.h>

/* Run the function of the call that was sent; for behaviours other than the agent's. */
static inline int domt_on_call_run_function(domus_stack *stack, void *self, const void *call_)
{
    const domt_call *call = call_;

    return call->function(stack, call->context);
}

/* Do nothing; a function for domt_call. */
static inline int domt_do_nothing(domus_stack *stack, void *context)
{
    return 0;
}

static inline int domt_keep_ask_for_ever(domus_stack *stack,
                                         void *context) /* keep the ask for ever */
{
    domus_kept kept;

    return domus_keep(stack, &kept);
}

static inline int domt_unstash_all(domus_stack *stack, void *context)
{
    domus_unstash(stack);
    return 0;
}

/* Ignore an answer. */
static inline int domt_hear_nothing(domus_stack *stack, void *self, const domus_answer *answer)
{
    return 0;
}

/* Stop an actor by the thread of `from`, and let the world settle. */
static inline void domt_stop_actor_and_settle(domt_world *of, domi_manager *from,
                                              domus_address actor)
{
    ck_assert_int_eq(domi_house_ask_to_stop(from, actor), 0);
    domt_settle_world(of);
}

/* Let a home take turns until it finds nothing to do; the others do not work meanwhile. */
static inline void domt_let_home_work(domi_manager *home)
{
    while (domt_iterate_home(home) != 0)
        ;
}

/* Check that nothing is in use any more, and end the world. */
static inline void domt_end_clean_world(domt_world *of)
{
    ck_assert_uint_eq(domt_count_all_objects_in_use(of), 0);
    domt_world_end(of);
}

#endif
