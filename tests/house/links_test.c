/* Links of a run: gathered for homes that are busy, told at once to those that are not. */
#include "house/links.h"

#include "house/dispatch.h"
#include "tests/house/recorder.h"
#include "tests/support/suite.h"

#define MANY (DOMI_LINKS_MAX + 8)

static domt_world world;
static domt_log records;
static domus_address sender;
static domus_address near_by[MANY], far[MANY]; /* on homes 1 and 2 */

static void begin(void)
{
    domt_world_open(&world, 3);
    memset(&records, 0, sizeof records);
    sender = domt_spawn(world.managers[0], world.managers[0], &domt_agent, NULL);
    for (size_t i = 0; i < MANY; i++) {
        near_by[i] = domt_recorder_new(&world, 1, &records);
        far[i] = domt_recorder_new(&world, 2, &records);
    }
}

static uint32_t arrived(uint32_t home)
{
    uint32_t count = 0;

    for (const domi_house *house = atomic_load(&world.managers[home]->arrivals); house != NULL;
         house = atomic_load(&house->arrival_next))
        count++;
    return count;
}

/* What a sender does, and what home 1 then has of it before and after the run has ended. */
typedef struct deed {
    uint32_t count; /* notes to each of so many */
    uint32_t arrived_within, wakes_within;
} deed;

static int send_to_both(domus_stack *stack, void *deed_)
{
    deed *now = deed_;

    for (uint32_t i = 0; i < now->count; i++) {
        int64_t number = i;
        ck_assert_int_eq(domus_notice(stack, near_by[i], &domt_note, &number), 0);
        ck_assert_int_eq(domus_notice(stack, far[i], &domt_note, &number), 0);
        ck_assert_uint_ne(atomic_load(&near_by[i].house->inbox), 0); /* the put is not put off */
    }
    now->arrived_within = arrived(1);
    now->wakes_within = world.wakes[1];
    return 0;
}

static void run_sender(deed *now)
{
    domt_send(world.managers[0], sender, send_to_both, now);
    (void)domt_events(world.managers[0]);
    ck_assert_uint_eq(domt_run_state(world.managers[0]), 1);
}

START_TEST(links_to_busy_homes_wait_for_the_end_of_the_run)
{
    deed now = {.count = 10};

    begin();
    run_sender(&now);
    ck_assert_uint_eq(now.arrived_within, 0);
    ck_assert_uint_eq(arrived(1), 10);
    ck_assert_uint_eq(arrived(2), 10);
    domt_settle(&world);
    ck_assert_uint_eq(domt_log_count(&records, 'n'), 20);
    domt_world_end(&world);
}
END_TEST

START_TEST(no_more_than_the_bound_wait)
{
    deed now = {.count = MANY};

    begin();
    run_sender(&now);
    ck_assert_uint_ge(now.arrived_within, MANY - DOMI_LINKS_MAX);
    ck_assert_uint_lt(now.arrived_within, MANY);
    domt_settle(&world);
    ck_assert_uint_eq(domt_log_count(&records, 'n'), 2 * MANY);
    domt_world_end(&world);
}
END_TEST

/* It has nothing else to do, and the run may be long. */
START_TEST(a_home_that_sleeps_or_spins_is_told_at_once)
{
    deed now = {.count = 3};

    begin();
    atomic_store(&world.managers[1]->park, DOMI_PARK_SLEEPING);
    run_sender(&now);
    ck_assert_uint_eq(now.wakes_within, 1);
    ck_assert_uint_eq(world.wakes[1], 1);
    ck_assert_uint_eq(now.arrived_within, 3);
    atomic_store(&world.managers[1]->park, DOMI_PARK_SPINNING);
    domt_settle(&world);
    run_sender(&now);
    ck_assert_uint_eq(now.arrived_within, 3);
    ck_assert_uint_eq(world.wakes[1], 1);
    domt_settle(&world);
    ck_assert_uint_eq(domt_log_count(&records, 'n'), 12);
    domt_world_end(&world);
}
END_TEST

static int send_and_let_sleep(domus_stack *stack, void *deed_)
{
    (void)send_to_both(stack, deed_);
    atomic_store(&world.managers[1]->park, DOMI_PARK_SLEEPING);
    return 0;
}

START_TEST(who_fell_asleep_meanwhile_is_woken_when_the_run_ends)
{
    deed now = {.count = 5};

    begin();
    domt_send(world.managers[0], sender, send_and_let_sleep, &now);
    (void)domt_events(world.managers[0]);
    (void)domt_run_state(world.managers[0]);
    ck_assert_uint_eq(now.arrived_within, 0);
    ck_assert_uint_eq(world.wakes[1], 1);
    ck_assert_uint_eq(arrived(1), 5);
    domt_settle(&world);
    ck_assert_uint_eq(domt_log_count(&records, 'n'), 10);
    domt_world_end(&world);
}
END_TEST

/* A second message finds the inbox filled, though its house is not linked yet. */
START_TEST(a_house_is_linked_once)
{
    deed now = {.count = 4};

    begin();
    domt_send(world.managers[0], sender, send_to_both, &now);
    domt_send(world.managers[0], sender, send_to_both, &now);
    (void)domt_events(world.managers[0]);
    ck_assert_uint_eq(domt_run_state(world.managers[0]), 1);
    ck_assert_uint_eq(arrived(1), 4);
    domt_settle(&world);
    ck_assert_uint_eq(domt_log_count(&records, 'n'), 16);
    domt_world_end(&world);
}
END_TEST

START_TEST(outside_of_a_run_nothing_waits)
{
    begin();
    domt_note_to(world.managers[0], near_by[0], 1);
    ck_assert_uint_eq(arrived(1), 1);
    ck_assert_uint_eq(world.managers[0]->links.houses, 0);
    domt_note_to(domt_outside(&world), near_by[1], 1);
    ck_assert_uint_eq(arrived(1), 2);
    domt_settle(&world);
    ck_assert_uint_eq(domt_log_count(&records, 'n'), 2);
    domt_world_end(&world);
}
END_TEST

DOMT_MAIN("links", 20, links_to_busy_homes_wait_for_the_end_of_the_run, no_more_than_the_bound_wait,
          a_home_that_sleeps_or_spins_is_told_at_once,
          who_fell_asleep_meanwhile_is_woken_when_the_run_ends, a_house_is_linked_once,
          outside_of_a_run_nothing_waits)
