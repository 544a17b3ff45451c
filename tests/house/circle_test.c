/* Asks that would wait for themselves fail with -EDEADLK, and no others.
 *
 * An ask travels along a route of actors: each asks the next, the last one answers, and answers and
 * errors come back the same way. The first one may hold a barrier. */
#include "house/dispatch/dispatch.h"
#include "tests/house/steps.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <errno.h>

#define MS    UINT64_C(1000000)
#define HOMES 4

static domt_world world;
static domus_address actors[HOMES]; /* an actor on each home */
static unsigned ends;               /* number of trips that came to the end of their route */
static int outcomes[8];
static unsigned resumed;

typedef struct trip {
    /* numbers of the actors that a trip visits one after the other, up to STOP */
    const uint8_t *route;
    uint64_t place;
} trip;

enum { STOP = 255 };

static const domus_type trip_type = {
    .name = "trip", .size = sizeof(trip), .release = domt_count_release};
static const domus_type done_type = {.name = "done"};

static int pass_answer_to_asker(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error != 0 ? answer->error : domus_reply(stack, &done_type, NULL);
}

static int handle_trip_by_asking_next(domus_stack *stack, void *self, const void *trip_)
{
    trip next = *(const trip *)trip_;

    (void)domus_take(stack);
    next.place++;
    if (next.route[next.place] != STOP)
        return domus_ask(stack, actors[next.route[next.place]], &trip_type, &next,
                         pass_answer_to_asker);
    ends++;
    return domus_reply(stack, &done_type, NULL);
}

static const domus_behaviour travelling = {
    .name = "travelling",
    .on = (const domus_on[]){{&trip_type, handle_trip_by_asking_next, 0},
                             {&domt_call_type, domt_on_call_run_function, 0},
                             {0}}};

static void open_world(void)
{
    domt_world_open(&world, HOMES);
    for (uint32_t i = 0; i < HOMES; i++)
        actors[i] = domt_spawn(domt_outside_manager(&world), world.managers[i], &travelling, NULL);
    domt_settle_world(&world);
}

static void close_world(void)
{
    for (uint32_t i = 0; i < HOMES; i++) {
        ck_assert_uint_eq(domi_house_count_parked_conversations(actors[i].house), 0);
        ck_assert_uint_eq(actors[i].house->mail, 0);
        ck_assert_uint_eq(actors[i].house->marks & DOMI_MARKS_HOLD, 0);
    }
    domt_end_clean_world(&world);
}

static int record_error_of_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    outcomes[resumed++] = answer->error;
    return 0;
}

static int begin_trip_along_route(domus_stack *stack, const uint8_t *route, domus_resumed *then)
{
    trip now = {route, 0};

    return domus_ask(stack, actors[route[0]], &trip_type, &now, then);
}

static int raise_barrier_and_travel(domus_stack *stack, void *route)
{
    ck_assert_int_eq(domus_barrier(stack), 0);
    return begin_trip_along_route(stack, route, record_error_of_answer);
}

static int travel_along_route(domus_stack *stack, void *route)
{
    return begin_trip_along_route(stack, route, record_error_of_answer);
}

static int raise_barrier_and_travel_within_20_ms(domus_stack *stack, void *route)
{
    trip now = {route, 0};

    ck_assert_int_eq(domus_barrier(stack), 0);
    return domus_ask_within(stack, actors[now.route[0]], &trip_type, &now, 20 * MS,
                            record_error_of_answer);
}

static void send_call_to_actor(uint32_t who, int (*function)(domus_stack *, void *),
                               const void *context)
{
    domt_send_function_to_call(world.managers[who], actors[who], function,
                               (void *)(uintptr_t)context);
}

static void let_home_work(uint32_t home)
{
    domt_let_home_work(world.managers[home]);
}

DOMT_TEST(ask_that_comes_back_to_the_barrier_fails_at_once)
{
    static uint8_t hundreds[602];
    const struct {
        const char *name;
        const uint8_t *route;
    } rows[] = {
        {"there and back", (const uint8_t[]){1, 0, STOP}},
        {"through three others on their homes", (const uint8_t[]){1, 2, 3, 0, STOP}},
        {"through one actor twice", (const uint8_t[]){1, 2, 1, 2, 0, STOP}},
        {"of oneself", (const uint8_t[]){0, STOP}},
        {"of hundreds of asks", hundreds},
    };

    for (int i = 0; i < 600; i++)
        hundreds[i] = (uint8_t)(1 + i % 3);
    hundreds[601] = STOP;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        resumed = domt_releases = 0;
        open_world();
        send_call_to_actor(0, raise_barrier_and_travel, rows[i].route);
        domt_settle_world(&world);
        ck_assert_msg(resumed == 1 && outcomes[0] == -EDEADLK, "%s: %d", rows[i].name, outcomes[0]);
        ck_assert_uint_eq(DOMT_SUM(&world, circles), 1);
        ck_assert_uint_eq(domt_releases, 1);
        ck_assert_uint_eq(ends, 0);
        close_world();
    }
}

DOMT_TEST(without_a_barrier_the_same_routes_go_through)
{
    static const uint8_t route[] = {0, 1, 0, 1, 2, 3, 0, STOP};

    open_world();
    send_call_to_actor(0, travel_along_route, route);
    domt_settle_world(&world);
    ck_assert_int_eq(outcomes[0], 0);
    ck_assert_uint_eq(ends, 1);
    ck_assert_uint_eq(DOMT_SUM(&world, circles), 0);
    close_world();
}

/* --- raised late ----------------------------------------------------------------------------- */

static int raise_barrier_after_first_answer(domus_stack *stack, void *self,
                                            const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, 0);
    ck_assert_uint_eq(answer->tag, 2);
    ck_assert_int_eq(domus_barrier(stack), 0);
    return domus_wait_all(stack, record_error_of_answer);
}

/* Begin two trips: one comes back to this actor, and the answer of the other one makes the
 * conversation raise its barrier. */
static int begin_two_trips_and_wait_for_first(domus_stack *stack, void *context)
{
    static const uint8_t back[] = {1, 0, STOP};
    static const uint8_t there[] = {2, STOP};
    trip trips[2] = {{back, 0}, {there, 0}};

    ck_assert_int_eq(domus_ask_add(stack, actors[1], &trip_type, &trips[0], 0, 1), 0);
    ck_assert_int_eq(domus_ask_add(stack, actors[2], &trip_type, &trips[1], 0, 2), 0);
    return domus_wait_first(stack, raise_barrier_after_first_answer);
}

DOMT_TEST(ask_that_waits_when_the_barrier_is_raised_fails)
{
    open_world();
    send_call_to_actor(0, begin_two_trips_and_wait_for_first, NULL);
    let_home_work(0);
    /* one run of the actor on home 2 sends the answer and the ask that comes back */
    let_home_work(2);
    let_home_work(1);
    domt_settle_world(&world);
    ck_assert_uint_eq(resumed, 1);
    ck_assert_int_eq(outcomes[0], -EDEADLK);
    ck_assert_uint_eq(DOMT_SUM(&world, circles), 1);
    ck_assert_uint_eq(domt_releases, 1);
    close_world();
}

static int raise_barrier_and_ask_itself(domus_stack *stack, void *self, const domus_answer *answer)
{
    static const uint8_t own[] = {0, STOP};

    ck_assert_int_eq(domus_barrier(stack), 0);
    return begin_trip_along_route(stack, own, record_error_of_answer);
}

static int travel_then_raise_and_ask_itself(domus_stack *stack, void *route)
{
    return begin_trip_along_route(stack, route, raise_barrier_and_ask_itself);
}

DOMT_TEST(resumed_conversation_that_raises_a_barrier_and_asks_itself_fails)
{
    static const uint8_t route[] = {1, STOP};

    open_world();
    send_call_to_actor(0, travel_then_raise_and_ask_itself, route);
    domt_settle_world(&world);
    ck_assert_uint_eq(resumed, 1);
    ck_assert_int_eq(outcomes[0], -EDEADLK);
    ck_assert_uint_eq(domt_releases, 1);
    close_world();
}

/* --- independent chains ---------------------------------------------------------------------- */

static int reply_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    return domus_reply(stack, &done_type, NULL);
}

static int raise_barrier_and_sleep(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_barrier(stack), 0);
    return domus_sleep(stack, 10 * MS, reply_after_sleep);
}

static int record_errors_of_answers(domus_stack *stack, void *self, const domus_answer *answer)
{
    for (; answer != NULL; answer = answer->next)
        (void)record_error_of_answer(stack, self, answer);
    return 0;
}

/* Ask actor 1, which raises its barrier and sleeps, and actor 2, which asks actor 1 in turn. */
static int ask_holder_of_barrier_by_two_routes(domus_stack *stack, void *context)
{
    static const uint8_t route[] = {2, 1, STOP};
    static const domt_call nap = {raise_barrier_and_sleep, NULL};
    trip now = {route, 0};

    ck_assert_int_eq(domus_ask_add(stack, actors[1], &domt_call_type, &nap, 0, 1), 0);
    ck_assert_int_eq(domus_ask_add(stack, actors[2], &trip_type, &now, 0, 2), 0);
    return domus_wait_all(stack, record_errors_of_answers);
}

DOMT_TEST(ask_by_another_branch_of_one_root_waits_for_the_barrier)
{
    open_world();
    send_call_to_actor(0, ask_holder_of_barrier_by_two_routes, NULL);
    domt_settle_world(&world);
    ck_assert_uint_eq(actors[1].house->mail, 1);
    domt_pass_time(&world, 11 * MS);
    ck_assert_uint_eq(resumed, 2);
    ck_assert(outcomes[0] == 0 && outcomes[1] == 0);
    ck_assert_uint_eq(ends, 1);
    ck_assert_uint_eq(DOMT_SUM(&world, circles), 0);
    close_world();
}

DOMT_TEST(other_conversation_of_the_actor_that_holds_a_barrier_waits)
{
    static const uint8_t route[] = {1, 0, STOP};

    open_world();
    send_call_to_actor(0, travel_along_route, route);
    let_home_work(0);
    /* the ask under way belongs to another conversation than the one that raises the barrier */
    send_call_to_actor(0, raise_barrier_and_sleep, NULL);
    domt_settle_world(&world);
    ck_assert_uint_eq(actors[0].house->mail, 1);
    ck_assert_uint_eq(resumed, 0);
    domt_pass_time(&world, 11 * MS);
    ck_assert_uint_eq(resumed, 1);
    ck_assert_int_eq(outcomes[0], 0);
    ck_assert_uint_eq(DOMT_SUM(&world, circles), 0);
    close_world();
}

DOMT_TEST(independent_holders_that_wait_for_each_other_end_by_their_deadlines)
{
    static const uint8_t there[] = {1, STOP};
    static const uint8_t back[] = {0, STOP};

    open_world();
    send_call_to_actor(0, raise_barrier_and_travel_within_20_ms, there);
    send_call_to_actor(1, raise_barrier_and_travel_within_20_ms, back);
    /* Each of two actors has raised its barrier before the ask of the other one comes. */
    (void)domt_run_state_queue(world.managers[0]);
    (void)domt_run_state_queue(world.managers[1]);
    domt_settle_world(&world);
    domt_pass_time(&world, 19 * MS);
    ck_assert_uint_eq(resumed, 0);
    domt_pass_time(&world, 2 * MS);
    ck_assert_uint_eq(resumed, 2);
    ck_assert(outcomes[0] == -ETIMEDOUT && outcomes[1] == -ETIMEDOUT);
    ck_assert_uint_eq(DOMT_SUM(&world, circles), 0);
    ck_assert_uint_eq(DOMT_SUM(&world, asks_expired), 2);
    ck_assert_uint_eq(domt_releases, 2);
    close_world();
}

/* --- who has answered asks for himself ------------------------------------------------------- */

static int forward_ask_to_actor_2(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_forward(stack, actors[2]), 0);
    return 0;
}

static int ask_actor_0_and_pass_answer(domus_stack *stack, void *context)
{
    static const uint8_t route[] = {0, STOP};

    return begin_trip_along_route(stack, route, pass_answer_to_asker);
}

/* Actor 1 forwards its ask to actor 2, and actor 2 asks actor 0, which waits for that ask. */
static int forward_or_ask_actor_0(domus_stack *stack, void *context)
{
    return domus_self(stack).house == actors[1].house ? forward_ask_to_actor_2(stack, context)
                                                      : ask_actor_0_and_pass_answer(stack, context);
}

static int raise_barrier_and_ask_actor_1(domus_stack *stack, void *call)
{
    ck_assert_int_eq(domus_barrier(stack), 0);
    return domus_ask(stack, actors[1], &domt_call_type, call, record_error_of_answer);
}

DOMT_TEST(circle_through_a_forwarded_ask_is_found)
{
    static const domt_call call = {forward_or_ask_actor_0, NULL};

    open_world();
    send_call_to_actor(0, raise_barrier_and_ask_actor_1, &call);
    domt_settle_world(&world);
    ck_assert_uint_eq(resumed, 1);
    ck_assert_int_eq(outcomes[0], -EDEADLK);
    ck_assert_uint_eq(DOMT_SUM(&world, circles), 1);
    close_world();
}

static int answer_how; /* what actor 3 does with an ask; 0: reply; 1: fail; 2: forward; 3: keep */
static domus_kept kept;

static int answer_then_ask_actor_0(domus_stack *stack, void *self, const domus_answer *answer)
{
    static const uint8_t route[] = {0, STOP};

    switch (answer_how) {
    case 0:
        ck_assert_int_eq(domus_reply(stack, &done_type, NULL), 0);
        break;
    case 1:
        ck_assert_int_eq(domus_fail(stack, -EIO), 0);
        break;
    case 2:
        ck_assert_int_eq(domus_forward(stack, actors[3]), 0);
        break;
    default:
        ck_assert_int_eq(domus_keep(stack, &kept), 0);
        break;
    }
    return begin_trip_along_route(stack, route, record_error_of_answer);
}

static int ask_actor_2_then_answer(domus_stack *stack, void *context)
{
    static const uint8_t route[] = {2, STOP};

    /* the ask that actor 3 has forwarded to itself is answered */
    if (domus_self(stack).house == actors[3].house)
        return domus_reply(stack, &done_type, NULL);
    return begin_trip_along_route(stack, route, answer_then_ask_actor_0);
}

static int reply_to_kept(domus_stack *stack, void *context)
{
    return domus_kept_reply(stack, kept, &done_type, NULL);
}

/* The answer and the next ask come to the actor together: its barrier has not fallen yet, but
 * nobody waits for the asker any more. */
DOMT_TEST(ask_of_a_conversation_that_has_answered_waits_and_does_not_fail)
{
    static const domt_call call = {ask_actor_2_then_answer, NULL};

    for (answer_how = 0; answer_how < 4; answer_how++) {
        resumed = domt_releases = 0;
        open_world();
        send_call_to_actor(0, raise_barrier_and_ask_actor_1, &call);
        domt_settle_world(&world);
        if (answer_how == 3)
            domt_run_as_actor(&world, actors[1], reply_to_kept, NULL);
        ck_assert_uint_eq(resumed, 2);
        ck_assert_int_eq(outcomes[0], answer_how == 1 ? -EIO : 0);
        ck_assert_int_eq(outcomes[1], 0);
        ck_assert_uint_eq(DOMT_SUM(&world, circles), 0);
        ck_assert_uint_eq(domt_releases, 0);
        close_world();
    }
}

DOMT_SUITE(60)
