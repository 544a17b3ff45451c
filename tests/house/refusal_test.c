/* M11: at mailboxMax asks and notices are refused on both lanes, and counted; replies, exceptions
 * and events are never refused. A sender that was refused keeps what its payload owns. */
#include "house/dispatch/dispatch.h"
#include "house/family/life.h"
#include "tests/house/recorder.h"
#include "tests/house/steps.h"
#include "tests/support/suite.h"

#include <errno.h>

#define MS  UINT64_C(1000000)
#define MAX 100u

static domt_world world;
static domt_log log0; /* log of the actor under test, on home 0 */
static domt_log log1; /* log of the other actors, on home 1 */
static domus_address one;
static domus_address other;

static void open_world(void)
{
    domt_world_init(&world, 2);
    world.config.scheduler.mailbox_max = MAX;
    ck_assert_int_eq(domt_world_start(&world), 0);
    one = domt_spawn_recorder(&world, 0, &log0);
    other = domt_spawn_recorder(&world, 1, &log1);
}

/* Send notes from the thread of `from` until one is refused. Returns how many were taken. */
static unsigned count_notes_until_refused(domi_manager *from)
{
    unsigned taken = 0;
    int64_t number = 1;

    while (domt_send_notice(from, one, &domt_note, &number) == 0)
        ck_assert_uint_lt(taken++, 1000);
    return taken;
}

static bool is_mailbox_marked_full(void)
{
    return (atomic_load(&one.house->life) & DOMI_LIFE_FULL) != 0;
}

DOMT_TEST(m11_home_lane_refuses_at_mailbox_max)
{
    open_world();
    ck_assert_uint_eq(count_notes_until_refused(world.managers[0]), MAX);
    ck_assert_uint_eq(DOMT_SUM(&world, refusals), 1);
    ck_assert_int_eq(domt_send_notice(world.managers[0], one, &domt_counted, "payload"), -ENOBUFS);
    ck_assert_int_eq(domt_send_notice(world.managers[1], one, &domt_counted, "payload"), -ENOBUFS);
    ck_assert_int_eq(domt_send_notice(domt_outside_manager(&world), one, &domt_counted, "payload"),
                     -ENOBUFS);
    ck_assert_uint_eq(DOMT_SUM(&world, refusals), 4);
    ck_assert_uint_eq(domt_releases, 0); /* the refused notice leaves its payload with the caller */
    ck_assert_uint_eq(domt_count_all_objects_in_use(&world), MAX);
    domt_settle_world(&world);
    ck_assert_uint_eq(log0.count, MAX);
    domt_world_end(&world);
}

DOMT_TEST(m11_inbox_lane_refuses_at_mailbox_max)
{
    open_world();
    ck_assert_uint_eq(count_notes_until_refused(world.managers[1]), MAX);
    ck_assert_int_eq(domt_send_notice(world.managers[1], one, &domt_counted, "payload"), -ENOBUFS);
    ck_assert_int_eq(domt_send_notice(world.managers[0], one, &domt_counted, "payload"), -ENOBUFS);
    (void)domi_manager_take_arrivals(world.managers[0]);
    /* the messages were sorted but not handled, so the mailbox is still full for all senders */
    ck_assert(is_mailbox_marked_full());
    ck_assert_int_eq(domt_send_notice(world.managers[1], one, &domt_counted, "payload"), -ENOBUFS);
    ck_assert_int_eq(domt_send_notice(world.managers[0], one, &domt_counted, "payload"), -ENOBUFS);
    ck_assert_uint_eq(DOMT_SUM(&world, refusals), 5);
    ck_assert_uint_eq(domt_releases, 0);
    domt_settle_world(&world);
    ck_assert_uint_eq(log0.count, MAX);
    domt_world_end(&world);
}

DOMT_TEST(m11_home_and_inbox_lane_together_are_bounded)
{
    open_world();
    unsigned taken =
        count_notes_until_refused(world.managers[0]) + count_notes_until_refused(world.managers[1]);
    /* messages that came by the home lane count for senders of the inbox lane, too */
    ck_assert_uint_eq(taken, MAX);
    domt_settle_world(&world);
    for (unsigned i = 0; i < MAX - 1; i++)
        domt_send_note(world.managers[0], one, 1);
    taken =
        count_notes_until_refused(world.managers[1]) + count_notes_until_refused(world.managers[0]);
    /* the inbox is not counted with the mailboxes: together they hold at most twice MAX messages */
    ck_assert_uint_le(taken, MAX);
    domt_settle_world(&world);
    ck_assert_uint_eq(log0.count, 2 * MAX - 1 + taken);
    domt_world_end(&world);
}

DOMT_TEST(m11_full_mailbox_takes_messages_again_below_half)
{
    open_world();
    (void)count_notes_until_refused(world.managers[0]);
    domi_house *house = domi_queue_take_house(&world.managers[0]->schedule.ready[0]);
    ck_assert_ptr_eq(house, one.house);
    ck_assert_uint_eq(domi_house_run_and_settle(world.managers[0], house), 64);
    ck_assert_uint_eq(house->mail, 36);
    ck_assert(!is_mailbox_marked_full());
    domt_send_note(world.managers[1], one, 2);
    domt_send_note(world.managers[0], one, 2);
    domt_settle_world(&world);
    ck_assert_uint_eq(log0.count, MAX + 2);
    domt_world_end(&world);
}

DOMT_TEST(m11_full_mailbox_stays_full_above_half)
{
    domt_world_init(&world, 1);
    world.config.scheduler.mailbox_max = MAX;
    world.config.scheduler.messages_per_run_max = 50;
    ck_assert_int_eq(domt_world_start(&world), 0);
    one = domt_spawn_recorder(&world, 0, &log0);
    (void)count_notes_until_refused(world.managers[0]);
    domi_house_run_and_settle(world.managers[0],
                              domi_queue_take_house(&world.managers[0]->schedule.ready[0]));
    ck_assert_uint_eq(one.house->mail, 50);
    ck_assert(is_mailbox_marked_full());
    domi_house_run_and_settle(world.managers[0],
                              domi_queue_take_house(&world.managers[0]->schedule.ready[0]));
    ck_assert(!is_mailbox_marked_full());
    domt_world_end(&world);
}

/* --- asks ------------------------------------------------------------------------------------ */

static int heard_error;

static int record_error_of_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    heard_error = answer->error;
    return 0;
}

static int ask_with_counted_payload(domus_stack *stack, void *context)
{
    return domus_ask(stack, one, &domt_counted, "payload", record_error_of_answer);
}

DOMT_TEST(m11_refused_ask_resumes_with_enobufs)
{
    open_world();
    domus_address here = domt_spawn(world.managers[0], world.managers[0], &domt_agent, NULL);
    domus_address there = domt_spawn(world.managers[1], world.managers[1], &domt_agent, NULL);
    domt_settle_world(&world);
    (void)count_notes_until_refused(world.managers[0]);
    /* takes the full actor off its queue, so that it does not run */
    domi_house *full = domi_queue_take_house(&world.managers[0]->schedule.ready[0]);
    for (int i = 0; i < 2; i++) {
        heard_error = 0;
        domt_run_as_actor(&world, i == 0 ? here : there, ask_with_counted_payload, NULL);
        ck_assert_int_eq(heard_error, -ENOBUFS);
        /* the refused ask's payload was released */
        ck_assert_uint_eq(domt_releases, (unsigned)i + 1);
    }
    domi_queue_put_house(&world.managers[0]->schedule.ready[0], full);
    domt_settle_world(&world);
    domt_end_clean_world(&world);
}

/* --- never refused --------------------------------------------------------------------------- */

static int arm_timers_of_1_ms(domus_stack *stack, void *count)
{
    for (int64_t i = 0; i < *(int *)count; i++)
        ck_assert_int_eq(domus_after(stack, MS, &domt_tick, &i, NULL), 0);
    return 0;
}

DOMT_TEST(m11_replies_exceptions_and_events_are_never_refused)
{
    int events = 3 * (int)MAX;

    open_world();
    domus_address failing = domt_spawn_failing_recorder(&world, 1, &log1);
    domt_run_as_actor(&world, one, arm_timers_of_1_ms, &events);
    for (unsigned i = 0; i < 2 * MAX; i++) {
        domt_let_recorder_ask(world.managers[0], one, i % 2 == 0 ? other : failing, i);
        (void)domt_run_state_queue(world.managers[0]);
    }
    domt_let_home_work(world.managers[1]);
    ck_assert_uint_eq(atomic_load(&one.house->inbox) >> 48, 2 * MAX);
    ck_assert_uint_eq(count_notes_until_refused(world.managers[0]), 0);
    domt_advance_time_without_runs(&world, 2 * MS);
    ck_assert_uint_eq(domi_manager_fire_timers(world.managers[0]), 3 * MAX);
    (void)domi_manager_take_arrivals(world.managers[0]);
    /* messages that are never refused take no room from those that may be */
    ck_assert_uint_eq(count_notes_until_refused(world.managers[0]), MAX);
    domt_settle_world(&world);
    ck_assert_uint_eq(domt_log_count_letter(&log0, 'r'), MAX);
    ck_assert_uint_eq(domt_log_count_letter(&log0, 'x'), MAX);
    ck_assert_uint_eq(domt_log_count_letter(&log0, 'e'), 3 * MAX);
    ck_assert_uint_eq(domt_log_count_letter(&log0, 'n'), MAX);
    domt_world_end(&world);
}

DOMT_SUITE(60)
