/* A stop from anywhere ends an actor once, in every state; its messages are dropped once, and so
 * are the messages of a whole system that ends. */
#include "house/dispatch/dispatch.h"
#include "house/family/life.h"
#include "tests/house/recorder.h"
#include "tests/house/steps.h"
#include "tests/support/suite.h"

#include <errno.h>

#define MS UINT64_C(1000000)

static domt_world world;
static domt_log log0; /* log of the actor that is stopped, on home 0 */
static domt_log log1; /* log of the other actors, on home 1 */
static domus_address one;
static domus_address other;

static void open_world(void)
{
    log0 = log1 = (domt_log){.count = 0};
    domt_world_open(&world, 3);
    one = domt_spawn_recorder(&world, 0, &log0);
    other = domt_spawn_recorder(&world, 1, &log1);
}

static bool has_actor_ended(domus_address address)
{
    return domi_house_ask_to_stop(domt_outside_manager(&world), address) == -ESTALE;
}

/* --- from anywhere, in every state ----------------------------------------------------------- */

typedef enum when { UNSORTED, MOUNTING, WAITING, READY, WITH_MAIL_UNDER_WAY, WHENS } when;

static domus_address spawn_actor_in_state(when then)
{
    domt_recorder recorder = {.log = &log0};
    domi_manager *home = world.managers[0];
    domus_address address =
        domt_spawn(then == UNSORTED ? world.managers[1] : home, home, &domt_recording, &recorder);

    if (then >= WAITING)
        domt_settle_world(&world);
    if (then == READY)
        domt_send_note(home, address, 1);
    if (then == WITH_MAIL_UNDER_WAY)
        domt_send_note(world.managers[1], address, 1);
    return address;
}

DOMT_TEST(stop_from_anywhere_in_every_state_ends_the_actor_once)
{
    open_world();
    for (unsigned then = 0; then < WHENS; then++) {
        for (uint32_t from = 0; from < 3; from++) {
            for (uint32_t again = 0; again < 3; again++) {
                log0 = (domt_log){.count = 0};
                domus_address address = spawn_actor_in_state((when)then);
                ck_assert_int_eq(domi_house_ask_to_stop(world.managers[from], address), 0);
                domt_stop_actor_and_settle(&world, world.managers[again], address);
                ck_assert(has_actor_ended(address));
                /* an actor that was mounted is stopped once; one that was not mounted is not */
                ck_assert_uint_eq(log0.mounts, then >= WAITING);
                ck_assert_uint_eq(log0.stops, log0.mounts);
                ck_assert_uint_le(log0.count, 1); /* M9: at most one more user message */
            }
        }
    }
    ck_assert_uint_eq(world.managers[0]->births.houses, 1);
    ck_assert_uint_eq(DOMT_SUM(&world, stops), WHENS * 9);
    domt_end_clean_world(&world);
}

static int stop_itself_and_send(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_stop(stack, domus_self(stack)), 0);
    ck_assert_int_eq(domus_stop(stack, domus_self(stack)), 0);
    ck_assert_int_eq(domus_notice(stack, domus_self(stack), &domt_counted, "payload"), -ESTALE);
    return 0;
}

static int stop_actor_under_test(domus_stack *stack, void *context)
{
    return domus_stop(stack, one);
}

DOMT_TEST(m9_at_most_one_more_message_is_handled_behind_a_stop)
{
    enum { NOTES = 10000 };

    open_world();
    domt_send_function_to_call(domt_outside_manager(&world), one, stop_itself_and_send, NULL);
    for (int64_t i = 0; i < NOTES; i++)
        domt_send_note(domt_outside_manager(&world), one, i);
    domt_settle_world(&world);
    ck_assert_uint_eq(log0.count, 0);
    ck_assert_uint_eq(log0.stops, 1);
    ck_assert_uint_eq(DOMT_SUM(&world, dead_letters), NOTES);
    domt_world_end(&world);

    open_world();
    for (int64_t i = 0; i < NOTES; i++)
        domt_send_note(domt_outside_manager(&world), one, i);
    (void)domt_iterate_home(world.managers[0]);
    uint32_t before = log0.count;
    ck_assert_uint_eq(before, 64);
    /* home 1 stops the actor between two of its runs */
    domt_run_as_actor(&world, other, stop_actor_under_test, NULL);
    /* the actor had one run of 64 notes before the stop */
    ck_assert_uint_le(log0.count, before + 64 + 1);
    ck_assert_uint_eq(log0.count + DOMT_SUM(&world, dead_letters), NOTES);
    ck_assert(has_actor_ended(one));
    domt_world_end(&world);
}

/* --- what is under way ----------------------------------------------------------------------- */

DOMT_TEST(stopping_actor_cancels_its_conversations)
{
    open_world();
    for (int64_t i = 0; i < 5; i++)
        domt_let_recorder_ask(world.managers[0], one, other, i);
    (void)domt_iterate_home(world.managers[0]);
    domt_stop_actor_and_settle(&world, world.managers[0], one);
    /* Each waiting conversation was resumed once, by its answer or by the cancel. */
    ck_assert_uint_eq(domt_log_count_letter(&log0, 'r') + domt_log_count_letter(&log0, 'x'), 5);
    ck_assert_uint_eq(log0.stops, 1);
    ck_assert(has_actor_ended(one));
    domt_world_end(&world);
}

static int raise_barrier_and_ask(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_barrier(stack), 0);
    return domus_ask(stack, other, &domt_counted, "payload", domt_hear_nothing);
}

DOMT_TEST(stop_in_a_barrier_fails_asks_that_wait_behind_it)
{
    open_world();
    domus_address asker = domt_spawn_recorder(&world, 2, &log1);
    domt_send_function_to_call(world.managers[0], one, raise_barrier_and_ask, NULL);
    (void)domt_iterate_home(world.managers[0]);
    for (int64_t i = 0; i < 5; i++)
        domt_let_recorder_ask(world.managers[2], asker, one, i);
    (void)domt_iterate_home(world.managers[2]);
    (void)domt_iterate_home(world.managers[0]);
    ck_assert_uint_eq(one.house->mail, 5);
    ck_assert_int_eq(domi_house_ask_to_stop(world.managers[1], one), 0);
    (void)domt_iterate_home(world.managers[0]);
    ck_assert_uint_eq(one.house->mail, 0);
    domt_settle_world(&world);
    ck_assert_uint_eq(domt_log_count_letter(&log1, 'x'), 5);
    ck_assert_int_eq(log1.entries[0].number, -ESTALE);
    ck_assert(has_actor_ended(one));
    domt_end_clean_world(&world);
}

static const domus_type kept_type = {.name = "kept", .size = 8};

static int abort_when_asked(domus_stack *stack, void *self, const void *payload)
{
    ck_abort_msg("an actor that is gone was asked");
}

static const domus_behaviour deaf = {.name = "deaf",
                                     .on = (const domus_on[]){{&kept_type, abort_when_asked, 0},
                                                              {&domt_counted, abort_when_asked, 0},
                                                              {0}}};

static int heard_error;

static int record_error_of_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    heard_error = answer->error;
    return 0;
}

static int ask_actor_without_answer(domus_stack *stack, void *to)
{
    return domus_ask(stack, *(domus_address *)to, &domt_counted, "payload", record_error_of_answer);
}

DOMT_TEST(dead_letters_are_dropped_once_and_asks_fail_with_estale)
{
    open_world();
    domus_address gone = domt_spawn(domt_outside_manager(&world), world.managers[0], &deaf, NULL);
    domt_settle_world(&world);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(
            domt_send_notice(domt_outside_manager(&world), gone, &domt_counted, "payload"), 0);
    domt_send_function_to_call(world.managers[1], other, ask_actor_without_answer, &gone);
    (void)domt_iterate_home(world.managers[1]);
    (void)domi_manager_take_arrivals(world.managers[0]);
    domt_stop_actor_and_settle(&world, world.managers[0], gone);
    ck_assert_uint_eq(domt_releases, 4);
    ck_assert_int_eq(heard_error, -ESTALE);
    ck_assert_uint_eq(DOMT_SUM(&world, dead_letters), 4);
    domt_end_clean_world(&world);
}

static int arm_two_timers(domus_stack *stack, void *context)
{
    int64_t number = 1;

    ck_assert_int_eq(domus_after(stack, 2 * MS, &domt_tick, &number, NULL), 0);
    return domus_every(stack, 2 * MS, &domt_tick, &number, NULL);
}

DOMT_TEST(stop_cancels_timers)
{
    open_world();
    domt_run_as_actor(&world, one, arm_two_timers, NULL);
    ck_assert_uint_eq(world.managers[0]->timing.timers, 2);
    domt_stop_actor_and_settle(&world, world.managers[0], one);
    ck_assert_uint_eq(world.managers[0]->timing.timers, 0);
    ck_assert_uint_eq(world.managers[0]->timing.wheel.count, 0);
    domt_pass_time(&world, 10 * MS);
    ck_assert_uint_eq(log0.count, 0);
    domt_world_end(&world);
}

/* Messages of other homes are in the inbox, and timers have fired, when the house is stopped and
 * runs: the house is freed only after home has taken the inbox. */
DOMT_TEST(stop_waits_for_the_inbox_to_be_taken)
{
    open_world();
    domi_manager *home = world.managers[0];
    domt_run_as_actor(&world, one, arm_two_timers, NULL);
    ck_assert_int_eq(domt_send_notice(world.managers[1], one, &domt_counted, "payload"), 0);
    domt_advance_time_without_runs(&world, 3 * MS);
    ck_assert_uint_eq(domi_manager_fire_timers(home), 2);
    ck_assert_int_eq(domi_house_ask_to_stop(home, one), 0);
    while (domt_run_state_queue(home) != 0)
        ;
    ck_assert_uint_eq(log0.stops, 0);
    domt_settle_world(&world);
    ck_assert(has_actor_ended(one));
    ck_assert_uint_eq(log0.stops, 1);
    ck_assert_uint_eq(domt_releases, 1);
    ck_assert_uint_eq(home->timing.timers, 0);
    domt_end_clean_world(&world);
}

/* --- on_stop, and the end of a world --------------------------------------------------------- */

static int64_t farewell = 5;

static void send_and_try_to_begin_in_on_stop(domus_stack *stack, void *self)
{
    domus_address child;

    ck_assert_int_eq(domus_notice(stack, other, &domt_note, &farewell), 0);
    ck_assert_int_eq(
        domus_ask(stack, (domus_address){0}, &domt_counted, "payload", domt_hear_nothing),
        -ECANCELED);
    ck_assert_int_eq(domus_barrier(stack), 0);
    ck_assert_int_eq(domus_every(stack, MS, &domt_tick, &farewell, NULL), 0);
    ck_assert_int_eq(domus_stop(stack, domus_self(stack)), 0);
    ck_assert_int_eq(domus_spawn(stack, &domt_agent, NULL, &child), -ESHUTDOWN);
}

static const domus_behaviour busy = {.name = "busy", .on_stop = send_and_try_to_begin_in_on_stop};

DOMT_TEST(on_stop_may_send_but_begins_nothing)
{
    open_world();
    domus_address dying = domt_spawn(world.managers[0], world.managers[0], &busy, NULL);
    domt_settle_world(&world);
    domt_stop_actor_and_settle(&world, world.managers[1], dying);
    ck_assert(has_actor_ended(dying));
    ck_assert_uint_eq(domt_log_count_letter(&log1, 'n'), 1);
    ck_assert_uint_eq(domt_releases, 0); /* a refused send leaves its payload with the caller */
    ck_assert_uint_eq(world.managers[0]->timing.timers, 0);
    ck_assert_uint_eq(world.managers[0]->births.houses, 1); /* only the house of `one` is left */
    domt_end_clean_world(&world);
}

DOMT_TEST(end_of_the_world_stops_all_and_drops_what_is_under_way)
{
    open_world();
    domus_address dying = domt_spawn(world.managers[0], world.managers[1], &deaf, NULL);
    domt_settle_world(&world);
    domt_run_as_actor(&world, one, arm_two_timers, NULL);
    /* When the world ends, messages are sorted, lie in the inbox, are awaited by a conversation, or
     * wait for a barrier. */
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(domt_send_notice(world.managers[i % 2], dying, &domt_counted, "payload"),
                         0);
        if (i == 1)
            (void)domi_manager_take_arrivals(world.managers[1]);
    }
    domt_send_function_to_call(world.managers[0], one, raise_barrier_and_ask, NULL);
    domt_send_note(world.managers[0], one, 1);
    (void)domt_iterate_home(world.managers[0]);
    (void)spawn_actor_in_state(UNSORTED);
    (void)spawn_actor_in_state(MOUNTING);
    domt_world_end(&world);
    ck_assert_uint_eq(domt_releases, 5);
    ck_assert_uint_eq(log0.mounts, 1);
    ck_assert_uint_eq(log0.stops, 1);
    ck_assert_uint_eq(log1.stops, 1);
}

DOMT_SUITE(60)
