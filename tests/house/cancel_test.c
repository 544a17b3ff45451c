/* Cancels: everything that the conversation waits for fails, and actors that work for it are told.
 *
 * The actors are in a row, one on each home; an ask travels down the row, and the last actor
 * sleeps. */
#include "base/memory.h"
#include "house/conversation/holder.h"
#include "house/conversation/stack.h"
#include "house/dispatch/dispatch.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "tests/house/asking.h"
#include "tests/house/steps.h"
#include "tests/support/suite.h"

#include <domus/receive.h>

#include <errno.h>
#include <string.h>

#define MS    UINT64_C(1000000)
#define HOMES 4

static domt_world world;
static domus_address actors[HOMES];
static unsigned handled[HOMES];

/* The waits of all actors in the order in which they ended: the number of the actor, and the
 * error. */
static unsigned heard;
static uint32_t heard_by[32];
static int errors[32];

static domus_conversation first; /* handle of the conversation of actor 0 */
static domus_kept kept;

static uint32_t number_of_this_actor(const domus_stack *stack)
{
    uint32_t i = 0;

    while (actors[i].house != domus_self(stack).house)
        i++;
    return i;
}

static int count_question_and_run_call(domus_stack *stack, void *self, const void *call_)
{
    (void)domus_take(stack);
    handled[number_of_this_actor(stack)]++;
    return domt_on_call_run_function(stack, self, call_);
}

static const domus_behaviour talking = {
    .name = "talking",
    .on = (const domus_on[]){{&domt_ask_question, count_question_and_run_call, 0},
                             {&domt_call_type, domt_on_call_run_function, 0},
                             {0}}};

static void open_world(void)
{
    heard = domt_ask_releases = domt_reply_releases = 0;
    memset(handled, 0, sizeof handled);
    domt_world_open(&world, HOMES);
    for (uint32_t i = 0; i < HOMES; i++)
        actors[i] = domt_spawn(domt_outside_manager(&world), world.managers[i], &talking, NULL);
    domt_settle_world(&world);
}

static void close_world(void)
{
    domt_asking_end_world(&world, actors, HOMES);
}

static int record_answers(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)domus_take(stack);
    for (; answer != NULL; answer = answer->next) {
        ck_assert_uint_lt(heard, 32);
        heard_by[heard] = number_of_this_actor(stack);
        errors[heard++] = answer->error;
    }
    return 0;
}

/* Ask the next actor of the row; the last actor sleeps instead. */
static int ask_next_actor(domus_stack *stack, void *context)
{
    static const domt_call on = {ask_next_actor, NULL};
    uint32_t next = number_of_this_actor(stack) + 1;

    if (next == 1)
        ck_assert_int_eq(domus_conversation_of(stack, &first), 0);
    if (next == HOMES)
        return domus_sleep(stack, 100 * MS, record_answers);
    return domus_ask(stack, actors[next], &domt_ask_question, &on, record_answers);
}

static int try_to_cancel_first_conversation(domus_stack *stack, void *result)
{
    *(int *)result = domus_cancel(stack, first);
    return 0;
}

static void stop_actor(uint32_t i)
{
    domt_stop_actor_and_settle(&world, domt_outside_manager(&world), actors[i]);
}

static int result_of_cancel_by_actor(uint32_t i)
{
    int result = 1;

    domt_run_as_actor(&world, actors[i], try_to_cancel_first_conversation, &result);
    return result;
}

/* --- whom it hits ---------------------------------------------------------------------------- */

DOMT_TEST(cancel_runs_down_a_chain_over_four_homes)
{
    open_world();
    domt_run_as_actor(&world, actors[0], ask_next_actor, NULL);
    ck_assert_uint_eq(heard, 0);
    ck_assert_int_eq(result_of_cancel_by_actor(0), 0);
    ck_assert_uint_eq(heard, HOMES);
    bool by[HOMES] = {false};
    for (uint32_t i = 0; i < HOMES; i++) {
        ck_assert_int_eq(errors[i], -ECANCELED);
        by[heard_by[i]] = true;
    }
    for (uint32_t i = 0; i < HOMES; i++)
        ck_assert(by[i]);
    ck_assert_uint_eq(DOMT_SUM(&world, cancels), HOMES);
    /* the asks were answered late: their askers' conversations have ended and wait no more */
    ck_assert_uint_eq(DOMT_SUM(&world, late_replies), HOMES - 1);
    ck_assert_uint_eq(DOMT_SUM(&world, failures), 0);
    close_world();
}

DOMT_TEST(cancel_is_for_a_waiting_conversation_of_the_actor_and_once)
{
    open_world();
    first = (domus_conversation){NULL, 0};
    ck_assert_int_eq(result_of_cancel_by_actor(0), -ENOENT);
    domt_run_as_actor(&world, actors[0], ask_next_actor, NULL);
    /* another actor may not cancel a conversation of actor 0 */
    ck_assert_int_eq(result_of_cancel_by_actor(1), -ENOENT);
    int results[2] = {1, 1};
    domt_send_function_to_call(world.managers[0], actors[0], try_to_cancel_first_conversation,
                               &results[0]);
    domt_send_function_to_call(world.managers[0], actors[0], try_to_cancel_first_conversation,
                               &results[1]);
    domt_settle_world(&world);
    ck_assert_int_eq(results[0], 0);
    ck_assert_int_eq(results[1], -EALREADY);
    /* a conversation that has ended cannot be cancelled */
    ck_assert_int_eq(result_of_cancel_by_actor(0), -ENOENT);
    close_world();
}

static int try_to_wait_after_cancel(domus_stack *stack, void *self, const domus_answer *answer)
{
    static const domus_pattern any = {0};
    static const domt_call call = {ask_next_actor, NULL};

    ck_assert_int_eq(answer->error, -ECANCELED);
    /* the conversation runs just now and does not wait, so it cannot be cancelled */
    ck_assert_int_eq(domus_cancel(stack, first), -ENOENT);
    ck_assert_int_eq(domus_ask(stack, actors[1], &domt_ask_question, &call, record_answers),
                     -ECANCELED);
    ck_assert_int_eq(domus_ask_add(stack, actors[1], &domt_ask_question, &call, 0, 0), -ECANCELED);
    ck_assert_int_eq(domus_sleep(stack, 0, record_answers), -ECANCELED);
    ck_assert_int_eq(domus_receive(stack, &any, record_answers), -ECANCELED);
    ck_assert_int_eq(domus_wait_all(stack, record_answers), -ECANCELED);
    ck_assert_int_eq(domus_notice(stack, actors[1], &domt_ask_done, "anything"), 0);
    (void)record_answers(stack, self, answer);
    /* domus_wait_first() returns an error, which ends the conversation but is no failure of the
     * actor */
    return domus_wait_first(stack, record_answers);
}

static int ask_chain_then_wait_after_cancel(domus_stack *stack, void *context)
{
    static const domt_call on = {ask_next_actor, NULL};

    ck_assert_int_eq(domus_conversation_of(stack, &first), 0);
    return domus_ask(stack, actors[1], &domt_ask_question, &on, try_to_wait_after_cancel);
}

DOMT_TEST(cancelled_conversation_waits_for_nothing_more)
{
    open_world();
    domt_run_as_actor(&world, actors[0], ask_chain_then_wait_after_cancel, NULL);
    ck_assert_int_eq(result_of_cancel_by_actor(0), 0);
    ck_assert_uint_eq(DOMT_SUM(&world, failures), 0);
    ck_assert_uint_eq(domt_reply_releases, 1); /* the notice that no row takes is released */
    close_world();
}

static int ask_six_times_and_wait(domus_stack *stack, void *first_only)
{
    static const domt_call on = {ask_next_actor, NULL};

    ck_assert_int_eq(domus_conversation_of(stack, &first), 0);
    for (uint32_t i = 0; i < 6; i++)
        ck_assert_int_eq(domus_ask_add(stack, actors[1 + i % 3], &domt_ask_question, &on, 0, i), 0);
    return first_only != NULL ? domus_wait_first(stack, record_answers)
                              : domus_wait_all(stack, record_answers);
}

DOMT_TEST(all_of_several_asks_are_cancelled)
{
    open_world();
    domt_run_as_actor(&world, actors[0], ask_six_times_and_wait, NULL);
    ck_assert_int_eq(result_of_cancel_by_actor(0), 0);
    /* the asks of the asker, and those that the asked actors sent on */
    ck_assert_uint_eq(heard, 6 + 2 * (2 + 1) + 6);
    for (uint32_t i = 0; i < 16; i++)
        ck_assert_int_eq(errors[i], -ECANCELED);
    close_world();
}

DOMT_TEST(first_of_several_that_is_cancelled_ends_the_wait_once)
{
    open_world();
    domt_run_as_actor(&world, actors[0], ask_six_times_and_wait, &world);
    ck_assert_int_eq(result_of_cancel_by_actor(0), 0);
    uint32_t by_first = 0;
    for (uint32_t i = 0; i < heard; i++)
        by_first += heard_by[i] == 0;
    ck_assert_uint_eq(by_first, 1);
    close_world();
}

/* --- asks that were not begun ---------------------------------------------------------------- */

static int raise_barrier_and_sleep(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_barrier(stack), 0);
    return domus_sleep(stack, 10 * MS, record_answers);
}

DOMT_TEST(ask_that_was_not_begun_is_dropped_once)
{
    open_world();
    domt_run_as_actor(&world, actors[1], raise_barrier_and_sleep, NULL);
    domt_run_as_actor(&world, actors[0], ask_next_actor, NULL);
    ck_assert_uint_eq(actors[1].house->mail, 1);
    ck_assert_int_eq(result_of_cancel_by_actor(0), 0);
    ck_assert_uint_eq(actors[1].house->mail, 0);
    ck_assert_uint_eq(domt_ask_releases, 1);
    ck_assert_uint_eq(heard, 1);
    domt_pass_time(&world, 11 * MS);
    ck_assert_uint_eq(handled[1], 0);
    ck_assert_uint_eq(heard, 2);
    close_world();
}

/* The ask and its cancel come to the actor together, both by another thread. */
DOMT_TEST(cancel_that_comes_with_its_ask_finds_it_begun)
{
    int result;

    open_world();
    domt_send_function_to_call(world.managers[0], actors[0], ask_next_actor, NULL);
    (void)domt_run_state_queue(world.managers[0]);
    domt_send_function_to_call(world.managers[0], actors[0], try_to_cancel_first_conversation,
                               &result);
    (void)domt_run_state_queue(world.managers[0]);
    /* a run handles asks before events: the ask is begun, and then cancelled */
    domt_settle_world(&world);
    ck_assert_uint_eq(handled[1], 1);
    ck_assert_int_eq(errors[0], -ECANCELED);
    domt_pass_time(&world, 200 * MS);
    close_world();
}

/* --- answers beside it ----------------------------------------------------------------------- */

static int reply_at_once(domus_stack *stack, void *context)
{
    return domus_reply(stack, &domt_ask_done, "replied");
}

static int ask_actor_1(domus_stack *stack, void *call)
{
    ck_assert_int_eq(domus_conversation_of(stack, &first), 0);
    return domus_ask(stack, actors[1], &domt_ask_question, call, record_answers);
}

/* A conversation is cancelled while its answer is on its way. It gets the answer if that is there
 * when the conversation runs, else the cancel, and never both. */
DOMT_TEST(answer_that_meets_the_cancel_resumes_once)
{
    domt_call brief = {reply_at_once, NULL};
    int result;

    for (int late = 0; late < 2; late++) {
        open_world();
        domt_send_function_to_call(world.managers[0], actors[0], ask_actor_1, &brief);
        (void)domt_run_state_queue(world.managers[0]);
        domt_send_function_to_call(world.managers[0], actors[0], try_to_cancel_first_conversation,
                                   &result);
        (void)domt_run_state_queue(world.managers[0]);
        ck_assert_int_eq(result, 0);
        ck_assert_uint_eq(heard, 0);
        if (late == 0)
            (void)domt_iterate_home(world.managers[1]);
        domt_settle_world(&world);
        ck_assert_uint_eq(heard, 1);
        ck_assert_int_eq(errors[0], late == 0 ? 0 : -ECANCELED);
        ck_assert_uint_eq(domt_reply_releases, (unsigned)late);
        close_world();
    }
}

static int record_errors_of_tagged_answers(domus_stack *stack, void *self,
                                           const domus_answer *answer)
{
    for (; answer != NULL; answer = answer->next) {
        errors[answer->tag] = answer->error;
        heard++;
    }
    (void)domus_take(stack);
    return 0;
}

static int make_brief_ask_and_endless_ask(domus_stack *stack, void *context)
{
    static const domt_call brief = {reply_at_once, NULL};
    static const domt_call endless = {ask_next_actor, NULL};

    ck_assert_int_eq(domus_conversation_of(stack, &first), 0);
    ck_assert_int_eq(domus_ask_add(stack, actors[1], &domt_ask_question, &brief, 0, 0), 0);
    ck_assert_int_eq(domus_ask_add(stack, actors[3], &domt_ask_question, &endless, 0, 1), 0);
    return domus_wait_all(stack, record_errors_of_tagged_answers);
}

DOMT_TEST(answers_that_had_come_are_shown_beside_what_was_cancelled)
{
    open_world();
    domt_run_as_actor(&world, actors[0], make_brief_ask_and_endless_ask, NULL);
    ck_assert_int_eq(result_of_cancel_by_actor(0), 0);
    ck_assert_uint_eq(domt_reply_releases, 0);
    domt_settle_world(&world);
    ck_assert_int_eq(errors[1], -ECANCELED);
    close_world();
}

/* --- kept, forwarded ------------------------------------------------------------------------- */

static int keep_ask_of_handler(domus_stack *stack, void *context)
{
    return domus_keep(stack, &kept);
}

static int try_to_reply_to_kept(domus_stack *stack, void *result)
{
    *(int *)result = domus_kept_reply(stack, kept, &domt_ask_done, "replied");
    return 0;
}

DOMT_TEST(kept_ask_that_is_cancelled_is_kept_no_more)
{
    domt_call call = {keep_ask_of_handler, NULL};
    int result = 1;

    open_world();
    domt_run_as_actor(&world, actors[0], ask_actor_1, &call);
    ck_assert_uint_eq(domi_house_count_parked_conversations(actors[1].house), 1);
    ck_assert_int_eq(result_of_cancel_by_actor(0), 0);
    ck_assert_uint_eq(domi_house_count_parked_conversations(actors[1].house), 0);
    domt_run_as_actor(&world, actors[1], try_to_reply_to_kept, &result);
    ck_assert_int_eq(result, -ENOENT);
    ck_assert_uint_eq(heard, 1);
    close_world();
}

/* --- stops and no memory --------------------------------------------------------------------- */

DOMT_TEST(stop_cancels_down_the_chain)
{
    open_world();
    domt_run_as_actor(&world, actors[0], ask_next_actor, NULL);
    stop_actor(0);
    ck_assert_uint_eq(heard, HOMES);
    for (uint32_t i = 0; i < HOMES; i++)
        ck_assert_int_eq(errors[i], -ECANCELED);
    ck_assert_uint_eq(DOMT_SUM(&world, stops), 1);
    close_world();
}

DOMT_TEST(stop_in_the_middle_fails_the_asker_and_cancels_the_asked_actor)
{
    open_world();
    domt_run_as_actor(&world, actors[0], ask_next_actor, NULL);
    stop_actor(1);
    ck_assert_uint_eq(heard, HOMES);
    for (uint32_t i = 0; i < heard; i++)
        ck_assert_int_eq(errors[i], heard_by[i] == 0 ? -ENOMSG : -ECANCELED);
    close_world();
}

static int count_that_call_ran(domus_stack *stack, void *count)
{
    (*(unsigned *)count)++;
    return 0;
}

/* Cancels that wait one behind the other are handled in one turn, up to an event of another
 * kind. */
DOMT_TEST(cancels_in_one_turn_end_at_an_event_of_another_kind)
{
    unsigned count = 0;
    const domt_call call = {count_that_call_ran, &count};

    open_world();
    domt_run_as_actor(&world, actors[0], ask_next_actor, NULL);
    domi_manager *outside = domt_outside_manager(&world);
    const domi_return nobody = {.promise = actors[2].house->stacks->awaited, .serial = 12345};
    for (int i = 0; i < 3; i++) {
        domi_ask_tell_actor_of_cancel(outside, actors[2], &nobody);
        domi_envelope *event = domi_envelope_new(outside, sizeof *event);
        event->type = &domt_call_type;
        event->sender = NULL;
        event->sender_lease = 0;
        memcpy(domi_envelope_payload_by_kind(event, DOMI_EVENT), &call, sizeof call);
        ck_assert_int_eq(domi_mailbox_put(outside, actors[2], &event->node, DOMI_EVENT), 0);
    }
    domt_settle_world(&world);
    ck_assert_uint_eq(count, 3);
    ck_assert_uint_eq(heard, 0);
    ck_assert_int_eq(result_of_cancel_by_actor(0), 0);
    close_world();
}

DOMT_TEST(actor_whose_cancel_gets_no_memory_goes_on)
{
    open_world();
    domt_run_as_actor(&world, actors[0], ask_next_actor, NULL);
    int result = 1;
    domt_send_function_to_call(world.managers[0], actors[0], try_to_cancel_first_conversation,
                               &result);
    /* All free objects are taken, so no envelope is left for the cancel. */
    domi_memory_fail_allocation_after(0, 1);
    while (domi_pool_take_object(world.managers[0], DOMI_SLAB_64) != NULL)
        ;
    domt_settle_world(&world);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_int_eq(result, 0);
    ck_assert_uint_eq(heard, 1);
    ck_assert_int_eq(errors[0], -ECANCELED);
    domt_pass_time(&world, 101 * MS);
    ck_assert_uint_eq(heard, HOMES);
    ck_assert_uint_eq(DOMT_SUM(&world, cancels), 1);
    domt_world_end(&world);
}

DOMT_SUITE(60)
