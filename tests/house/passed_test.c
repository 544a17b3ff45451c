/* Cancels find asks that were passed on: forwarded once or several times, on one thread or several,
 * by a router, kept or stashed, and also while no actor holds the ask just then. */
#include "house/directory/router.h"
#include "house/dispatch/dispatch.h"
#include "house/family/family.h"
#include "house/message/stop.h"
#include "tests/house/asking.h"
#include "tests/house/steps.h"
#include "tests/support/suite.h"

#include <domus/receive.h>
#include <domus/router.h>
#include <domus/spawn.h>

#include <errno.h>

#define MS UINT64_C(1000000)
/* the actors: 0 asks, 1 and 2 may pass asks on, LAST holds them, and OTHER gets asks that LAST
 * passes on */
#define ACTORS 5u
#define LAST   3u
#define OTHER  4u

static domt_world world;
static domus_address actors[ACTORS];
static domus_address router; /* a router whose one routee is the actor LAST */
static domi_routers routers;
static domus_conversation asking;
static domus_kept kept;
static int asked_error;  /* error of the answer that the asker got; 1: none yet */
static int holder_error; /* error of the answer that the holder got; 1: none yet */
static unsigned shown;   /* number of asks that the handler of the actor LAST was shown */

/* --- actors ----------------------------------------------------------------------------------- */

/* Handle a question: pass the ask on to the next actor; the last actor does as the question
 * says. */
static int forward_or_run_call_at_last_actor(domus_stack *stack, void *self, const void *call_)
{
    uint32_t i = 0;

    while (i < OTHER && actors[i].house != domus_self(stack).house)
        i++;
    if (i < LAST)
        return domus_forward(stack, router.house != NULL && i + 1 == LAST ? router : actors[i + 1]);
    shown++;
    return domt_on_call_run_function(stack, self, call_);
}

static const domus_behaviour talking = {
    .name = "talking",
    .on = (const domus_on[]){{&domt_ask_question, forward_or_run_call_at_last_actor, 0},
                             {&domt_call_type, domt_on_call_run_function, 0},
                             {0}}};

/* Open a world in which each actor has a home of its own, or all actors share one. */
static void open_world(uint32_t homes)
{
    asked_error = holder_error = 1;
    shown = domt_ask_releases = domt_reply_releases = 0;
    router = (domus_address){NULL, 0};
    domt_world_open(&world, homes);
    domi_routers_init(&routers, 1, 1);
    for (uint32_t i = 0; i <= homes; i++)
        world.managers[i]->directory.routers = &routers;
    for (uint32_t i = 0; i < ACTORS; i++)
        actors[i] =
            domt_spawn(domt_outside_manager(&world), world.managers[i % homes], &talking, NULL);
    domt_settle_world(&world);
}

static void close_world(void)
{
    ck_assert_uint_eq(domt_ask_releases, shown);
    domt_asking_end_world(&world, actors, ACTORS);
    domi_routers_fini(&routers);
}

/* --- deeds ------------------------------------------------------------------------------------ */

static int record_error_of_asker(domus_stack *stack, void *self, const domus_answer *answer)
{
    asked_error = answer->error;
    return 0;
}

/* An order to the asker: ask actor `from`, which passes the ask on, as all others do up to the
 * actor LAST, which runs `call`. */
typedef struct plan {
    uint32_t from; /* number of the actor that is asked first */
    domt_call call;
} plan;

static int ask_as_planned(domus_stack *stack, void *plan_)
{
    const plan *what = plan_;

    ck_assert_int_eq(domus_conversation_of(stack, &asking), 0);
    return domus_ask(stack,
                     what->from == LAST && router.house != NULL ? router : actors[what->from],
                     &domt_ask_question, &what->call, record_error_of_asker);
}

static int cancel_conversation_of_asker(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_cancel(stack, asking), 0);
    return 0;
}

static int stop_itself(domus_stack *stack, void *context)
{
    return domus_stop(stack, domus_self(stack));
}

static int record_error_and_reply(domus_stack *stack, void *self, const domus_answer *answer)
{
    holder_error = answer->error;
    return answer->error != 0 ? answer->error : domus_reply(stack, &domt_ask_done, "answered");
}

static int sleep_50_ms_then_reply(domus_stack *stack, void *context)
{
    return domus_sleep(stack, 50 * MS, record_error_and_reply);
}

static int return_error_of_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error;
}

static int raise_barrier_for_5_ms(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_barrier(stack), 0);
    return domus_sleep(stack, 5 * MS, return_error_of_answer);
}

static int keep_ask_of_handler(domus_stack *stack, void *context)
{
    return domus_keep(stack, &kept);
}

static int stash_ask_of_handler(domus_stack *stack, void *context)
{
    return domus_stash(stack);
}

static int reply_to_kept_if_wanted(domus_stack *stack, void *result)
{
    bool is_wanted = domus_kept_is_wanted(stack, kept);

    *(int *)result = domus_kept_reply(stack, kept, &domt_ask_done, "answered");
    ck_assert_int_eq(*(int *)result, is_wanted ? 0 : -ENOENT);
    ck_assert(!domus_kept_is_wanted(stack, kept));
    return 0;
}

static int fail_kept_ask(domus_stack *stack, void *result)
{
    *(int *)result = domus_kept_fail(stack, kept, -EIO);
    return 0;
}

static int forward_kept_ask(domus_stack *stack, void *result)
{
    *(int *)result = domus_kept_forward(stack, kept, actors[OTHER]);
    return 0;
}

/* --- tests ------------------------------------------------------------------------------------ */

typedef int (*deed)(domus_stack *stack, void *context);

/* A function by which an asker gives its ask up. */
static const deed ways[] = {cancel_conversation_of_asker, stop_itself};

/* Call `test` for each way to give up, for each number of actors that pass the ask on, on four
 * threads and on one. */
static void run_test_for_each_chain_of_actors(void (*test)(uint32_t from, deed give_up))
{
    for (uint32_t homes = 1; homes <= ACTORS; homes += ACTORS - 1) {
        for (uint32_t from = LAST; from >= 1; from--) {
            for (uint32_t way = 0; way < 2; way++) {
                open_world(homes);
                test(from, ways[way]);
                close_world();
            }
        }
    }
}

static void check_cancel_of_sleeper(uint32_t from, deed give_up)
{
    plan asked = {from, {sleep_50_ms_then_reply, NULL}};

    domt_run_as_actor(&world, actors[0], ask_as_planned, &asked);
    ck_assert_int_eq(holder_error, 1);
    domt_run_as_actor(&world, actors[0], give_up, NULL);
    ck_assert_int_eq(holder_error, -ECANCELED);
    ck_assert_int_eq(asked_error, -ECANCELED);
}

DOMT_TEST(conversation_that_works_for_a_passed_ask_is_cancelled)
{
    run_test_for_each_chain_of_actors(check_cancel_of_sleeper);
}

static void check_cancel_of_keeper(uint32_t from, deed give_up)
{
    static const deed uses[] = {reply_to_kept_if_wanted, fail_kept_ask, forward_kept_ask};
    plan asked = {from, {keep_ask_of_handler, NULL}};
    int result = 1;

    domt_run_as_actor(&world, actors[0], ask_as_planned, &asked);
    ck_assert_uint_eq(domi_house_count_parked_conversations(actors[LAST].house), 1);
    domt_run_as_actor(&world, actors[0], give_up, NULL);
    ck_assert_uint_eq(domi_house_count_parked_conversations(actors[LAST].house), 0);
    for (uint32_t i = 0; i < 3; i++) {
        domt_run_as_actor(&world, actors[LAST], uses[i], &result);
        ck_assert_int_eq(result, -ENOENT);
    }
    ck_assert_uint_eq(domt_reply_releases, 0);
}

DOMT_TEST(passed_ask_is_kept_no_more_when_its_asker_is_gone)
{
    run_test_for_each_chain_of_actors(check_cancel_of_keeper);
}

/* Let the asker give up while the ask is on its way to the last actor: the cancel finds no holder
 * yet. */
static void check_cancel_of_ask_on_its_way(uint32_t from, deed give_up)
{
    plan asked = {from, {keep_ask_of_handler, NULL}};

    domt_run_as_actor(&world, actors[LAST], raise_barrier_for_5_ms, NULL);
    domt_run_as_actor(&world, actors[0], ask_as_planned, &asked);
    ck_assert_uint_eq(actors[LAST].house->mail, 1);
    domt_run_as_actor(&world, actors[0], give_up, NULL);
    domt_pass_time(&world, 6 * MS);
    ck_assert_uint_eq(shown, from != LAST);
    ck_assert_uint_eq(domi_house_count_parked_conversations(actors[LAST].house), 0);
    shown = 1; /* the ask is released once, although nobody was shown it */
}

DOMT_TEST(ask_that_was_given_up_between_two_actors_is_cancelled_when_it_is_held)
{
    run_test_for_each_chain_of_actors(check_cancel_of_ask_on_its_way);
}

#define CROWD 5000u

static int check_all_are_cancelled(domus_stack *stack, void *self, const domus_answer *answer)
{
    for (; answer != NULL; answer = answer->next)
        ck_assert_int_eq(answer->error, -ECANCELED);
    return 0;
}

static int ask_many_times_and_wait_for_all(domus_stack *stack, void *context)
{
    const domt_call call = {keep_ask_of_handler, NULL};

    for (unsigned i = 0; i < CROWD; i++)
        ck_assert_int_eq(domus_ask_add(stack, actors[1], &domt_ask_question, &call, 0, 0), 0);
    ck_assert_int_eq(domus_conversation_of(stack, &asking), 0);
    return domus_wait_all(stack, check_all_are_cancelled);
}

/* More asks are given up at once than a page of promises has places for. */
DOMT_TEST(crowd_that_was_given_up_between_two_actors_is_cancelled)
{
    open_world(ACTORS);
    domt_run_as_actor(&world, actors[LAST], raise_barrier_for_5_ms, NULL);
    domt_run_as_actor(&world, actors[0], ask_many_times_and_wait_for_all, NULL);
    ck_assert_uint_eq(actors[LAST].house->mail, CROWD);
    domt_run_as_actor(&world, actors[0], cancel_conversation_of_asker, NULL);
    domt_pass_time(&world, 6 * MS);
    ck_assert_uint_eq(shown, CROWD);
    close_world();
}

static void check_cancel_of_stashed_ask(uint32_t from, deed give_up)
{
    plan asked = {from, {stash_ask_of_handler, NULL}};

    domt_run_as_actor(&world, actors[0], ask_as_planned, &asked);
    ck_assert_uint_eq(actors[LAST].house->family->stashed, 1);
    domt_run_as_actor(&world, actors[0], give_up, NULL);
    ck_assert_uint_eq(actors[LAST].house->family->stashed, 0);
    domt_run_as_actor(&world, actors[LAST], domt_unstash_all, NULL);
    ck_assert_uint_eq(shown, 1);
}

DOMT_TEST(passed_ask_that_was_put_aside_is_dropped)
{
    run_test_for_each_chain_of_actors(check_cancel_of_stashed_ask);
}

static int make_router_to_last_actor(domus_stack *stack, void *context)
{
    const domus_routing routing = {.route = DOMUS_ROUTE_NEAR};

    ck_assert_int_eq(domus_spawn_many(stack, &talking, NULL, 1, &routing, NULL, &router), 0);
    ck_assert_uint_eq(domus_routees(stack, router, &actors[LAST], 1), 1);
    return 0;
}

static void check_cancel_behind_router(uint32_t from, deed give_up)
{
    domt_run_as_actor(&world, actors[LAST], make_router_to_last_actor, NULL);
    check_cancel_of_keeper(from, give_up);
}

DOMT_TEST(cancel_finds_an_ask_behind_a_router)
{
    run_test_for_each_chain_of_actors(check_cancel_behind_router);
}

/* Keep the ask, and forward the kept ask to an actor that works for it. */
static void check_cancel_of_ask_kept_and_passed(uint32_t from, deed give_up)
{
    plan asked = {from, {keep_ask_of_handler, NULL}};
    int result = 1;

    domt_run_as_actor(&world, actors[0], ask_as_planned, &asked);
    domt_run_as_actor(&world, actors[LAST], forward_kept_ask, &result);
    ck_assert_int_eq(result, 0);
    ck_assert_uint_eq(shown, 2);
    ck_assert_uint_eq(domi_house_count_parked_conversations(actors[OTHER].house), 1);
    domt_run_as_actor(&world, actors[0], give_up, NULL);
    ck_assert_uint_eq(domi_house_count_parked_conversations(actors[OTHER].house), 0);
    shown = 1; /* the ask is released once */
}

DOMT_TEST(cancel_finds_an_ask_that_was_kept_and_then_passed_on)
{
    run_test_for_each_chain_of_actors(check_cancel_of_ask_kept_and_passed);
}

/* The asker has ended. The actor that keeps the ask answers it before it handles the cancel, which
 * comes behind all other messages. */
DOMT_TEST(answer_before_the_cancel_finds_nobody_either)
{
    plan asked = {1, {keep_ask_of_handler, NULL}};
    int result = 1;

    open_world(ACTORS);
    domt_run_as_actor(&world, actors[0], ask_as_planned, &asked);
    domt_send_function_to_call(world.managers[0], actors[0], stop_itself, NULL);
    domt_let_home_work(world.managers[0]);
    domt_send_function_to_call(world.managers[0], actors[LAST], reply_to_kept_if_wanted, &result);
    domt_settle_world(&world);
    ck_assert_int_eq(result, -ENOENT);
    close_world();
}

/* The asker still exists when the holder tells it where the ask is, but ends before it handles
 * that. */
DOMT_TEST(ask_is_cancelled_whose_asker_ends_before_it_hears_where_it_is)
{
    plan asked = {2, {keep_ask_of_handler, NULL}};

    open_world(ACTORS);
    domt_send_function_to_call(world.managers[0], actors[0], ask_as_planned, &asked);
    for (uint32_t home = 0; home < ACTORS; home += home == 0 ? 2 : 1) {
        domt_let_home_work(world.managers[home]);
    }
    ck_assert_uint_eq(domi_house_count_parked_conversations(actors[LAST].house), 1);
    /* the asker stops in a run of one message, before it comes to its events */
    world.managers[0]->limits.messages_per_run_max = 1;
    domt_send_function_to_call(world.managers[0], actors[0], stop_itself, NULL);
    domt_settle_world(&world);
    ck_assert_uint_eq(domi_house_count_parked_conversations(actors[LAST].house), 0);
    close_world();
}

/* --- asks that nobody cancels ------------------------------------------------------------------
 */

static int record_error_and_end(domus_stack *stack, void *self, const domus_answer *answer)
{
    asked_error = answer->error;
    return 0; /* the conversation ends while one of its asks is still under way */
}

/* Wait for the first of all answers, which is the end of a sleep. */
static int ask_and_end_before_answer(domus_stack *stack, void *plan_)
{
    const plan *what = plan_;

    ck_assert_int_eq(
        domus_ask_add(stack, actors[what->from], &domt_ask_question, &what->call, 0, 1), 0);
    ck_assert_int_eq(domus_sleep_add(stack, MS, 2), 0);
    return domus_wait_first(stack, record_error_and_end);
}

DOMT_TEST(conversation_that_ends_without_an_answer_cancels_nothing)
{
    for (uint32_t from = 1; from <= LAST; from++) {
        plan asked = {from, {sleep_50_ms_then_reply, NULL}};
        open_world(ACTORS);
        domt_run_as_actor(&world, actors[LAST], raise_barrier_for_5_ms, NULL);
        domt_run_as_actor(&world, actors[0], ask_and_end_before_answer, &asked);
        domt_pass_time(&world, 2 * MS);
        ck_assert_int_eq(asked_error, 0);
        ck_assert_uint_eq(shown, 0);
        domt_pass_time(&world, 60 * MS);
        ck_assert_int_eq(holder_error, 0);
        close_world();
    }
}

DOMT_TEST(passed_ask_that_is_waited_for_is_answered)
{
    for (uint32_t from = 1; from <= LAST; from++) {
        plan asked = {from, {sleep_50_ms_then_reply, NULL}};
        open_world(ACTORS);
        domt_run_as_actor(&world, actors[0], ask_as_planned, &asked);
        domt_pass_time(&world, 60 * MS);
        ck_assert_int_eq(asked_error, 0);
        ck_assert_int_eq(holder_error, 0);
        ck_assert_uint_eq(DOMT_SUM(&world, cancels), 0);
        close_world();
    }
}

/* A cancel that came too late for its ask does not hit the next ask that uses the same promise. */
DOMT_TEST(cancel_meets_only_its_own_ask)
{
    plan slow = {1, {sleep_50_ms_then_reply, NULL}};
    plan kept_one = {1, {keep_ask_of_handler, NULL}};
    int result = 1;

    open_world(ACTORS);
    domt_run_as_actor(&world, actors[0], ask_as_planned, &slow);
    domt_run_as_actor(&world, actors[0], cancel_conversation_of_asker, NULL);
    ck_assert_int_eq(holder_error, -ECANCELED);
    domt_run_as_actor(&world, actors[0], ask_as_planned, &kept_one);
    ck_assert_uint_eq(domi_house_count_parked_conversations(actors[LAST].house), 1);
    domt_run_as_actor(&world, actors[LAST], reply_to_kept_if_wanted, &result);
    ck_assert_int_eq(result, 0);
    ck_assert_int_eq(asked_error, 0);
    close_world();
}

DOMT_SUITE(60)
