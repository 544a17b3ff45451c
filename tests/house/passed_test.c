/* Cancels find asks that were passed on: by one forward or several, on one thread or several, by a
 * router, kept or stashed, and also while no actor holds the ask just then. */
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
/* an asker, two actors that may pass asks on, one that holds them, and another one */
#define ACTORS 5u
#define LAST   3u
#define OTHER  4u

static domt_world world;
static domus_address actors[ACTORS];
static domus_address router; /* a router to the last actor */
static domi_routers routers;
static domus_conversation asking;
static domus_kept kept;
static int asked_error;  /* error that the asker got; 1: none yet */
static int holder_error; /* error that the holder got; 1: none yet */
static unsigned shown;   /* asks that the last actor was shown */

/* --- actors ----------------------------------------------------------------------------------- */

/* Pass a question on; the last actor does what the question says. */
static int handle_question(domus_stack *stack, void *self, const void *call_)
{
    uint32_t i = 0;

    while (i < OTHER && actors[i].house != domus_self(stack).house)
        i++;
    if (i < LAST)
        return domus_forward(stack, router.house != NULL && i + 1 == LAST ? router : actors[i + 1]);
    shown++;
    return domt_on_call(stack, self, call_);
}

static const domus_behaviour talking = {
    .name = "talking",
    .on = (const domus_on[]){
        {&domt_ask_question, handle_question, 0}, {&domt_call_type, domt_on_call, 0}, {0}}};

/* Open a world in which each actor has a home of its own, or one that all share. */
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
        actors[i] = domt_spawn(domt_outside(&world), world.managers[i % homes], &talking, NULL);
    domt_settle(&world);
}

static void close_world(void)
{
    ck_assert_uint_eq(domt_ask_releases, shown);
    domt_asking_end(&world, actors, ACTORS);
    domi_routers_fini(&routers);
}

/* --- deeds ------------------------------------------------------------------------------------ */

static int handle_asked_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    asked_error = answer->error;
    return 0;
}

/* Let the asker ask `call` through as many others as `from` says. */
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
                     &domt_ask_question, &what->call, handle_asked_answer);
}

static int cancel(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_cancel(stack, asking), 0);
    return 0;
}

static int stop_oneself(domus_stack *stack, void *context)
{
    return domus_stop(stack, domus_self(stack));
}

static int handle_end_of_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    holder_error = answer->error;
    return answer->error != 0 ? answer->error : domus_reply(stack, &domt_ask_done, "answered");
}

static int sleep_long(domus_stack *stack, void *context)
{
    return domus_sleep(stack, 50 * MS, handle_end_of_sleep);
}

static int end_with_error(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error;
}

static int hold_asks_back(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_barrier(stack), 0);
    return domus_sleep(stack, 5 * MS, end_with_error);
}

static int keep_ask(domus_stack *stack, void *context)
{
    return domus_keep(stack, &kept);
}

static int put_aside(domus_stack *stack, void *context)
{
    return domus_stash(stack);
}

static int reply_kept(domus_stack *stack, void *result)
{
    bool is_wanted = domus_kept_is_wanted(stack, kept);

    *(int *)result = domus_kept_reply(stack, kept, &domt_ask_done, "answered");
    ck_assert_int_eq(*(int *)result, is_wanted ? 0 : -ENOENT);
    ck_assert(!domus_kept_is_wanted(stack, kept));
    return 0;
}

static int fail_kept(domus_stack *stack, void *result)
{
    *(int *)result = domus_kept_fail(stack, kept, -EIO);
    return 0;
}

static int forward_kept(domus_stack *stack, void *result)
{
    *(int *)result = domus_kept_forward(stack, kept, actors[OTHER]);
    return 0;
}

/* --- tests ------------------------------------------------------------------------------------ */

typedef int (*deed)(domus_stack *stack, void *context);

/* How an asker gives an ask up. */
static const deed ways[] = {cancel, stop_oneself};

/* Call `test` for each way, for each length of the chain, on four threads and on one. */
static void for_each_chain(void (*test)(uint32_t from, deed give_up))
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

static void cancel_sleeper(uint32_t from, deed give_up)
{
    plan asked = {from, {sleep_long, NULL}};

    domt_do(&world, actors[0], ask_as_planned, &asked);
    ck_assert_int_eq(holder_error, 1);
    domt_do(&world, actors[0], give_up, NULL);
    ck_assert_int_eq(holder_error, -ECANCELED);
    ck_assert_int_eq(asked_error, -ECANCELED);
}

DOMT_TEST(conversation_that_works_for_a_passed_ask_is_cancelled)
{
    for_each_chain(cancel_sleeper);
}

static void cancel_keeper(uint32_t from, deed give_up)
{
    static const deed uses[] = {reply_kept, fail_kept, forward_kept};
    plan asked = {from, {keep_ask, NULL}};
    int result = 1;

    domt_do(&world, actors[0], ask_as_planned, &asked);
    ck_assert_uint_eq(domi_house_count_parked(actors[LAST].house), 1);
    domt_do(&world, actors[0], give_up, NULL);
    ck_assert_uint_eq(domi_house_count_parked(actors[LAST].house), 0);
    for (uint32_t i = 0; i < 3; i++) {
        domt_do(&world, actors[LAST], uses[i], &result);
        ck_assert_int_eq(result, -ENOENT);
    }
    ck_assert_uint_eq(domt_reply_releases, 0);
}

DOMT_TEST(passed_ask_is_kept_no_more_when_its_asker_is_gone)
{
    for_each_chain(cancel_keeper);
}

/* Let the asker give up while the last actor has not been shown the ask: the cancel finds no
 * holder. */
static void cancel_on_the_way(uint32_t from, deed give_up)
{
    plan asked = {from, {keep_ask, NULL}};

    domt_do(&world, actors[LAST], hold_asks_back, NULL);
    domt_do(&world, actors[0], ask_as_planned, &asked);
    ck_assert_uint_eq(actors[LAST].house->mail, 1);
    domt_do(&world, actors[0], give_up, NULL);
    domt_pass(&world, 6 * MS);
    ck_assert_uint_eq(shown, from != LAST);
    ck_assert_uint_eq(domi_house_count_parked(actors[LAST].house), 0);
    shown = 1; /* the one release of the ask */
}

DOMT_TEST(ask_that_was_given_up_between_two_actors_is_cancelled_when_it_is_held)
{
    for_each_chain(cancel_on_the_way);
}

#define CROWD 5000u

static int handle_crowd_answers(domus_stack *stack, void *self, const domus_answer *answer)
{
    for (; answer != NULL; answer = answer->next)
        ck_assert_int_eq(answer->error, -ECANCELED);
    return 0;
}

static int ask_as_a_crowd(domus_stack *stack, void *context)
{
    const domt_call call = {keep_ask, NULL};

    for (unsigned i = 0; i < CROWD; i++)
        ck_assert_int_eq(domus_ask_add(stack, actors[1], &domt_ask_question, &call, 0, 0), 0);
    ck_assert_int_eq(domus_conversation_of(stack, &asking), 0);
    return domus_wait_all(stack, handle_crowd_answers);
}

/* Far more asks are given up at once than promises fit into a page of them. */
DOMT_TEST(crowd_that_was_given_up_between_two_actors_is_cancelled)
{
    open_world(ACTORS);
    domt_do(&world, actors[LAST], hold_asks_back, NULL);
    domt_do(&world, actors[0], ask_as_a_crowd, NULL);
    ck_assert_uint_eq(actors[LAST].house->mail, CROWD);
    domt_do(&world, actors[0], cancel, NULL);
    domt_pass(&world, 6 * MS);
    ck_assert_uint_eq(shown, CROWD);
    close_world();
}

static void cancel_aside(uint32_t from, deed give_up)
{
    plan asked = {from, {put_aside, NULL}};

    domt_do(&world, actors[0], ask_as_planned, &asked);
    ck_assert_uint_eq(actors[LAST].house->family->stashed, 1);
    domt_do(&world, actors[0], give_up, NULL);
    ck_assert_uint_eq(actors[LAST].house->family->stashed, 0);
    domt_do(&world, actors[LAST], domt_do_unstash, NULL);
    ck_assert_uint_eq(shown, 1);
}

DOMT_TEST(passed_ask_that_was_put_aside_is_dropped)
{
    for_each_chain(cancel_aside);
}

static int make_router(domus_stack *stack, void *context)
{
    const domus_routing routing = {.route = DOMUS_ROUTE_NEAR};

    ck_assert_int_eq(domus_spawn_many(stack, &talking, NULL, 1, &routing, NULL, &router), 0);
    ck_assert_uint_eq(domus_routees(stack, router, &actors[LAST], 1), 1);
    return 0;
}

static void cancel_behind_router(uint32_t from, deed give_up)
{
    domt_do(&world, actors[LAST], make_router, NULL);
    cancel_keeper(from, give_up);
}

DOMT_TEST(cancel_finds_an_ask_behind_a_router)
{
    for_each_chain(cancel_behind_router);
}

/* Keep the ask, and pass it on from there to an actor that works for it. */
static void cancel_kept_and_passed(uint32_t from, deed give_up)
{
    plan asked = {from, {keep_ask, NULL}};
    int result = 1;

    domt_do(&world, actors[0], ask_as_planned, &asked);
    domt_do(&world, actors[LAST], forward_kept, &result);
    ck_assert_int_eq(result, 0);
    ck_assert_uint_eq(shown, 2);
    ck_assert_uint_eq(domi_house_count_parked(actors[OTHER].house), 1);
    domt_do(&world, actors[0], give_up, NULL);
    ck_assert_uint_eq(domi_house_count_parked(actors[OTHER].house), 0);
    shown = 1; /* the one release of the ask */
}

DOMT_TEST(cancel_finds_an_ask_that_was_kept_and_then_passed_on)
{
    for_each_chain(cancel_kept_and_passed);
}

/* The asker has ended, and the keeper answers before the cancel is handled, which comes behind all
 * other messages. */
DOMT_TEST(answer_before_the_cancel_finds_nobody_either)
{
    plan asked = {1, {keep_ask, NULL}};
    int result = 1;

    open_world(ACTORS);
    domt_do(&world, actors[0], ask_as_planned, &asked);
    domt_send(world.managers[0], actors[0], stop_oneself, NULL);
    domt_let_work(world.managers[0]);
    domt_send(world.managers[0], actors[LAST], reply_kept, &result);
    domt_settle(&world);
    ck_assert_int_eq(result, -ENOENT);
    close_world();
}

/* The asker is there when the holder tells it, but ends before it is told. */
DOMT_TEST(ask_is_cancelled_whose_asker_ends_before_it_hears_where_it_is)
{
    plan asked = {2, {keep_ask, NULL}};

    open_world(ACTORS);
    domt_send(world.managers[0], actors[0], ask_as_planned, &asked);
    for (uint32_t home = 0; home < ACTORS; home += home == 0 ? 2 : 1) {
        domt_let_work(world.managers[home]);
    }
    ck_assert_uint_eq(domi_house_count_parked(actors[LAST].house), 1);
    /* the actor ends before it comes to its events */
    world.managers[0]->limits.messages_per_run_max = 1;
    domt_send(world.managers[0], actors[0], stop_oneself, NULL);
    domt_settle(&world);
    ck_assert_uint_eq(domi_house_count_parked(actors[LAST].house), 0);
    close_world();
}

/* --- asks that nobody cancels ------------------------------------------------------------------
 */

static int go_on_at_once(domus_stack *stack, void *self, const domus_answer *answer)
{
    asked_error = answer->error;
    return 0; /* the conversation ends, and one of its asks is still under way */
}

/* Wait for the first answer, which is the end of a sleep. */
static int ask_and_lose_interest(domus_stack *stack, void *plan_)
{
    const plan *what = plan_;

    ck_assert_int_eq(
        domus_ask_add(stack, actors[what->from], &domt_ask_question, &what->call, 0, 1), 0);
    ck_assert_int_eq(domus_sleep_add(stack, MS, 2), 0);
    return domus_wait_first(stack, go_on_at_once);
}

DOMT_TEST(conversation_that_ends_without_an_answer_cancels_nothing)
{
    for (uint32_t from = 1; from <= LAST; from++) {
        plan asked = {from, {sleep_long, NULL}};
        open_world(ACTORS);
        domt_do(&world, actors[LAST], hold_asks_back, NULL);
        domt_do(&world, actors[0], ask_and_lose_interest, &asked);
        domt_pass(&world, 2 * MS);
        ck_assert_int_eq(asked_error, 0);
        ck_assert_uint_eq(shown, 0);
        domt_pass(&world, 60 * MS);
        ck_assert_int_eq(holder_error, 0);
        close_world();
    }
}

DOMT_TEST(passed_ask_that_is_waited_for_is_answered)
{
    for (uint32_t from = 1; from <= LAST; from++) {
        plan asked = {from, {sleep_long, NULL}};
        open_world(ACTORS);
        domt_do(&world, actors[0], ask_as_planned, &asked);
        domt_pass(&world, 60 * MS);
        ck_assert_int_eq(asked_error, 0);
        ck_assert_int_eq(holder_error, 0);
        ck_assert_uint_eq(DOMT_SUM(&world, cancels), 0);
        close_world();
    }
}

/* A cancel that came too late for its ask does not hit the next ask of the same promise. */
DOMT_TEST(cancel_meets_only_its_own_ask)
{
    plan slow = {1, {sleep_long, NULL}};
    plan kept_one = {1, {keep_ask, NULL}};
    int result = 1;

    open_world(ACTORS);
    domt_do(&world, actors[0], ask_as_planned, &slow);
    domt_do(&world, actors[0], cancel, NULL);
    ck_assert_int_eq(holder_error, -ECANCELED);
    domt_do(&world, actors[0], ask_as_planned, &kept_one);
    ck_assert_uint_eq(domi_house_count_parked(actors[LAST].house), 1);
    domt_do(&world, actors[LAST], reply_kept, &result);
    ck_assert_int_eq(result, 0);
    ck_assert_int_eq(asked_error, 0);
    close_world();
}

DOMT_SUITE(60)
