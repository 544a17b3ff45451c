/* Park and wake (contract: Park and wake): no thread sleeps while work is left (M3), each wakes in
 * time, and an idle one costs nothing.
 *
 * The stepped ring (tests/runtime/stepped.h) checks M3 whenever a thread goes to sleep. The rest
 * is measured on real threads, with bounds that a busy machine keeps: a lost wake-up would show
 * as a delay of a second (the cap of a sleep). */
#include "tests/runtime/running.h"
#include "tests/runtime/stepped.h"

#include "base/random.h"
#include "house/conversation/timer.h"
#include "house/dispatch/phases.h"

#include <sched.h>
#include <sys/eventfd.h>

static const domus_type poke_type = {.name = "poke", .size = 4};
static const domus_type tick_type = {.name = "tick"};

/* --- M3, on a virtual clock ------------------------------------------------------------------- */

#define THREADS 3
#define ACTORS  12

static domt_stepped world;
static domi_random dice;
static domus_address actors[ACTORS];
static uint64_t poked, pokes, ticks;

static const domus_behaviour mayfly = {.name = "mayfly"};

/* Pass the poke on to a random actor by a notice, and by chance arm a timer, and spawn and stop an
 * actor. `left` more pokes follow from it. */
static int pass_poke_to_random_actor(domus_stack *stack, void *self, const void *payload)
{
    uint32_t left = *(const uint32_t *)payload;
    domus_address born;

    poked++;
    domt_stepped_advance_clock(&world, domi_random_below(&dice, 3000));
    if (left == 0)
        return 0;
    left--;
    pokes++;
    if (domi_random_below(&dice, 4) == 0)
        (void)domus_after(stack, domi_random_below(&dice, 20 * DOMT_MS), &tick_type, NULL, NULL);
    if (domi_random_below(&dice, 8) == 0) {
        ck_assert_int_eq(domus_spawn(stack, &mayfly, NULL, &born), 0);
        (void)domus_stop(stack, born);
    }
    return domus_notice(stack, actors[domi_random_below(&dice, ACTORS)], &poke_type, &left);
}

static int count_timer_tick(domus_stack *stack, void *self, const void *payload)
{
    ticks++;
    return 0;
}

static const domus_on rows[] = {
    {&poke_type, pass_poke_to_random_actor, 0}, {&tick_type, count_timer_tick, 0}, {0}};
static const domus_behaviour restless[] = {
    [DOMUS_STATE] = {.name = "restless", .on = rows},
    [DOMUS_CHANNELS] = {.name = "restless", .kind = DOMUS_CHANNELS, .on = rows}};

/* Called when a thread falls asleep: the other threads may run and put messages, and then the clock
 * moves to some time before the end of the sleep. */
static void let_others_run_during_sleep(domt_stepped *stepped, uint32_t sleeper)
{
    uint64_t sleep_ns = stepped->rings[sleeper].sleep_ns;
    _Atomic uint32_t *word = &domt_stepped_thread(stepped, sleeper)->manager.park;

    for (uint64_t i = domi_random_below(&dice, 4); i != 0; i--) {
        uint32_t other = (uint32_t)domi_random_below(&dice, THREADS);
        if (other != sleeper)
            domt_stepped_iterate(stepped, other, false);
    }
    if (domi_random_below(&dice, 8) == 0) {
        domt_send_notice(stepped->system, actors[domi_random_below(&dice, ACTORS)], &poke_type,
                         &(uint32_t){5});
        pokes++;
    }
    if (atomic_load(word) == DOMI_PARK_NOTIFIED)
        stepped->rings[sleeper].completions = 1;
    else
        domt_stepped_advance_clock(stepped,
                                   domi_random_below(&dice, 4) != 0 ? sleep_ns : sleep_ns / 2);
}

static bool are_all_pokes_done(void)
{
    for (uint32_t i = 0; i < THREADS; i++) {
        if (domi_manager_has_work(&domt_stepped_thread(&world, i)->manager))
            return false;
    }
    return poked == pokes;
}

static void run_pokes_of_seed(uint64_t seed)
{
    domus_profile sums;

    domi_random_init(&dice, seed);
    domt_stepped_init_default(&world, THREADS);
    world.on_sleep = let_others_run_during_sleep;
    poked = pokes = 0;
    for (uint32_t i = 0; i < ACTORS; i++)
        actors[i] = domt_spawn(world.system, i % THREADS, &restless[i % 2], NULL);
    for (uint32_t i = 0; i < ACTORS; i++, pokes++)
        domt_send_notice(world.system, actors[i], &poke_type, &(uint32_t){30});
    for (uint32_t iteration = 0; iteration < 3000; iteration++)
        domt_stepped_iterate(&world, (uint32_t)domi_random_below(&dice, THREADS), true);
    world.on_sleep = NULL;
    for (uint32_t iteration = 0; iteration < 10000 && !are_all_pokes_done(); iteration++)
        domt_stepped_iterate(&world, iteration % THREADS, true);
    ck_assert_msg(are_all_pokes_done(), "seed %lu: %lu of %lu", seed, poked, pokes);

    sums = domt_profile_of_all_threads(world.system);
    ck_assert_uint_gt(sums.parks, 0);
    ck_assert_uint_eq(sums.notices, pokes);
    ck_assert_uint_eq(sums.cap_wakeups_with_work, 0);
    /* M12: each wake-up was sent to a thread that had parked */
    ck_assert_uint_le(sums.wakeups_sent, sums.parks);
    domt_stepped_fini(&world);
}

DOMT_TEST(no_thread_parks_with_anything_left)
{
    for (uint64_t seed = 1; seed <= (DOMT_SANITIZED ? 10 : 60); seed++)
        run_pokes_of_seed(seed);
    ck_assert_uint_gt(ticks, 0);
}

DOMT_TEST(park_lasts_until_the_next_timer_and_at_most_a_second)
{
    uint64_t slept_ns = 0;

    domt_stepped_init_default(&world, 1);
    domt_stepped_iterate(&world, 0, true);
    ck_assert_uint_eq(world.rings[0].sleeps, 1);
    ck_assert_uint_eq(world.rings[0].sleep_ns, 1000 * DOMT_MS);

    domus_address address = domt_spawn(world.system, 0, &restless[DOMUS_STATE], NULL);
    domt_stepped_iterate(&world, 0, false);
    domi_timer *timer;
    domi_thread *thread = domt_stepped_thread(&world, 0);
    uint64_t armed_ns = thread->manager.now_ns;
    ck_assert_int_eq(
        domi_timer_new(&thread->manager, address.house, 300 * DOMT_MS, 0, &tick_type, NULL, &timer),
        0);
    for (int i = 0; i < 8 && ticks == 0; i++) {
        domt_stepped_iterate(&world, 0, true);
        slept_ns = domt_stepped_now_ns(&world) - armed_ns;
    }
    ck_assert_uint_eq(ticks, 1);
    ck_assert_uint_ge(slept_ns, 300 * DOMT_MS);
    domt_stepped_fini(&world);
}

/* Called when a thread falls asleep: many messages are sent to it, of which only the first writes
 * to its eventfd and ends the sleep. */
static void send_many_during_sleep(domt_stepped *stepped, uint32_t sleeper)
{
    domi_manager *manager = &domt_stepped_thread(stepped, sleeper)->manager;

    for (uint32_t i = 0; i < ACTORS; i++) {
        domt_send_notice(stepped->system, actors[i], &poke_type, &(uint32_t){0});
        domi_manager_notify_of_push(&domt_stepped_thread(stepped, 1)->manager, manager);
    }
    ck_assert_uint_eq(stepped->rings[sleeper].wakes, stepped->rings[sleeper].sleeps);
    stepped->rings[sleeper].completions = 1;
}

DOMT_TEST(sleeping_thread_is_woken_by_one_write_for_each_sleep)
{
    domt_stepped_init_default(&world, 2);
    domi_random_init(&dice, 1);
    for (uint32_t i = 0; i < ACTORS; i++)
        actors[i] = domt_spawn(world.system, 0, &restless[i % 2], NULL);
    domt_stepped_iterate(&world, 0, false);
    world.on_sleep = send_many_during_sleep;
    while (world.rings[0].sleeps < 20)
        domt_stepped_iterate(&world, 0, true);
    domus_profile sums = domt_profile_of_all_threads(world.system);
    ck_assert_uint_eq(world.rings[0].wakes, 20);
    ck_assert_uint_eq(sums.wakeups_received, 20);
    ck_assert_uint_eq(sums.wakeups_empty, 0);
    domt_stepped_fini(&world);
}

/* Called when a thread falls asleep: the sleep ends at once, without a message. */
static void end_sleep_without_message(domt_stepped *stepped, uint32_t sleeper)
{
}

DOMT_TEST(poll_is_armed_anew_after_512_empty_wakeups_in_a_row)
{
    domt_stepped_init_default(&world, 1);
    world.on_sleep = end_sleep_without_message;
    uint32_t polls = world.rings[0].polls;
    for (uint32_t iteration = 1; iteration <= 3 * 512; iteration++) {
        domt_stepped_iterate(&world, 0, true);
        uint32_t rearms =
            (iteration - 1) / 512; /* the sleep of an iteration is counted in the next one */
        ck_assert_uint_eq(world.rings[0].polls, polls + rearms);
        ck_assert_uint_eq(world.rings[0].cancels, rearms);
        ck_assert_uint_eq(domt_profile_of_thread(world.system, 0).wake_rearms, rearms);
        ck_assert_uint_eq(domt_profile_of_thread(world.system, 0).wakeups_empty, iteration - 1);
    }
    for (uint32_t iteration = 1; iteration <= 3000;
         /* count empty sleeps that follow each other; a sleep that brings work begins the count
            anew */
         iteration++) {
        world.rings[0].completions = iteration % 500 == 0;
        domt_stepped_iterate(&world, 0, true);
    }
    ck_assert_uint_eq(world.rings[0].cancels, 3);
    domt_stepped_fini(&world);
}

DOMT_TEST(poll_is_armed_anew_after_as_many_as_are_configured)
{
    domus_config config = domt_config_of_threads(1);

    config.io.empty_wakeups_max = 3;
    domt_stepped_init(&world, &config);
    world.on_sleep = end_sleep_without_message;
    for (uint32_t iteration = 1; iteration <= 10; iteration++) {
        domt_stepped_iterate(&world, 0, true);
        ck_assert_uint_eq(domt_profile_of_thread(world.system, 0).wake_rearms, (iteration - 1) / 3);
    }
    domt_stepped_fini(&world);
}

/* --- real threads ----------------------------------------------------------------------------- */

static _Atomic uint64_t early, latest_ns, fired;

struct alarm {
    uint64_t delay_ns;
    uint64_t armed_ns; /* time on the thread's clock at which the timer was armed */
    uint64_t real_ns;
};

static int arm_alarm_and_note_time(domus_stack *stack, void *self_)
{
    struct alarm *self = self_;
    self->armed_ns = domus_now_ns(stack);
    self->real_ns = domt_now_ns();
    return domus_after(stack, self->delay_ns, &tick_type, NULL, NULL);
}

static int check_alarm_is_in_time(domus_stack *stack, void *self_, const void *payload)
{
    struct alarm *self = self_;
    uint64_t late_ns = domt_now_ns() - self->real_ns - self->delay_ns;

    if (domus_now_ns(stack) < self->armed_ns + self->delay_ns)
        atomic_fetch_add(&early, 1);
    if ((int64_t)late_ns > (int64_t)atomic_load(&latest_ns))
        atomic_store(&latest_ns, late_ns);
    atomic_fetch_add(&fired, 1);
    return 0;
}

static const domus_behaviour alarm_clock = {
    .name = "alarm",
    .state_size = sizeof(struct alarm),
    .on = (const domus_on[]){{&tick_type, check_alarm_is_in_time, 0}, {0}},
    .on_mount = arm_alarm_and_note_time};

/* Check how late timers ring on real threads, in the best of several rounds: a busy machine only
 * adds time, and a thread that has spun for long may get its CPU late several times. */
static void check_timers_ring_within(domus_system *system, uint64_t late_max_ns)
{
    static const uint64_t delays_ms[] = {1, 2, 7, 30, 70};
    const uint64_t count = sizeof delays_ms / sizeof delays_ms[0];
    uint64_t best_ns = UINT64_MAX;

    for (int round = 0; round < 40 && best_ns > late_max_ns; round++) {
        atomic_store(&fired, 0);
        atomic_store(&latest_ns, 0);
        for (size_t i = 0; i < count; i++)
            (void)domt_spawn(system, 0, &alarm_clock,
                             &(struct alarm){delays_ms[i] * DOMT_MS, 0, 0});
        DOMT_WAIT_FOR(20, atomic_load(&fired) == count);
        if (atomic_load(&latest_ns) < best_ns)
            best_ns = atomic_load(&latest_ns);
    }
    ck_assert_uint_eq(atomic_load(&early), 0);
    ck_assert_uint_le(best_ns, late_max_ns);
}

DOMT_TEST(timer_rings_in_time_on_a_thread_that_sleeps)
{
    domus_system *system = domt_start_system_of_threads(1);
    check_timers_ring_within(system, 3 * DOMT_MS);
    domt_end_system(system);
}

DOMT_TEST(timer_rings_in_time_on_a_thread_that_spins)
{
    domus_config config = domt_config_of_threads(1);
    config.scheduler.idle.spin_ns = 500 * DOMT_MS;
    domus_system *system = domt_start_system(&config);
    check_timers_ring_within(system, 3 * DOMT_MS);
    domt_end_system(system);
}

DOMT_TEST(stop_wakes_sleepers_at_once)
{
    uint64_t best_ns = UINT64_MAX;

    for (int round = 0; round < 5; round++) {
        domus_system *system = domt_start_system_of_threads(4);
        for (uint32_t i = 0; i < 4; i++)
            DOMT_WAIT_FOR(10, domt_profile_of_thread(system, i).parks != 0);
        uint64_t began_ns = domt_now_ns();
        ck_assert_int_eq(domus_system_stop(system), 0);
        uint64_t took_ns = domt_now_ns() - began_ns;
        if (took_ns < best_ns)
            best_ns = took_ns;
        domt_end_system(system);
    }
    ck_assert_uint_lt(best_ns, 100 * DOMT_MS);
}

DOMT_TEST(idle_thread_makes_few_iterations)
{
    domus_system *system = domt_start_system_of_threads(2);

    DOMT_WAIT_FOR(10, domt_profile_of_thread(system, 0).parks != 0 &&
                          domt_profile_of_thread(system, 1).parks != 0);
    domus_profile before = domt_profile_of_all_threads(system);
    domt_pause_ns(1500 * DOMT_MS);
    domus_profile after = domt_profile_of_all_threads(system);
    /* the cap of a sleep has woken each thread once or twice */
    ck_assert_uint_le(after.iterations - before.iterations, 2 * 3);
    ck_assert_uint_le(after.enters - before.enters, 2 * 4);
    ck_assert_uint_eq(after.wakeups_received, before.wakeups_received);
    ck_assert_uint_eq(after.wakeups_empty, before.wakeups_empty);
    domt_end_system(system);
}

static int count_fired_tick(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&fired, 1);
    return 0;
}

static const domus_behaviour counter = {
    .name = "counter", .on = (const domus_on[]){{&tick_type, count_fired_tick, 0}, {0}}};

static void expect_tick_is_handled(domus_system *system, domus_address address)
{
    uint64_t before = atomic_load(&fired);
    uint64_t began_ns = domt_now_ns();
    domt_send_notice(system, address, &tick_type, NULL);
    while (atomic_load(&fired) == before)
        sched_yield();
    /* the answer has come sooner than by the cap of a sleep */
    ck_assert_uint_lt(domt_now_ns() - began_ns, 900 * DOMT_MS);
}

/* A guard against a wake poll that fires for nothing, on a real ring. The test writes to the
 * eventfd without having put anything. The completions of the cancel and of the new poll do not
 * count as empty wake-ups, or the thread would arm its poll anew for ever. */
DOMT_TEST(wake_poll_armed_anew_each_time_wakes_and_lets_sleep)
{
    domus_config config = domt_config_of_threads(1);

    config.io.empty_wakeups_max = 1;
    domus_system *system = domt_start_system(&config);
    domus_address address = domt_spawn(system, 0, &counter, NULL);
    expect_tick_is_handled(system, address);
    for (uint64_t rearms = 1; rearms <= 20; rearms++) {
        DOMT_WAIT_FOR(10, atomic_load(&system->threads[0].manager.park) == DOMI_PARK_SLEEPING);
        ck_assert_int_eq(eventfd_write(system->threads[0].io.wake_fd, 1), 0);
        DOMT_WAIT_FOR(10, domt_profile_of_thread(system, 0).wake_rearms >= rearms);
        expect_tick_is_handled(system, address);
    }
    domt_pause_ns(100 * DOMT_MS);
    domus_profile before = domt_profile_of_thread(system, 0);
    domt_pause_ns(200 * DOMT_MS);
    ck_assert_uint_le(domt_profile_of_thread(system, 0).iterations - before.iterations, 3);
    ck_assert_uint_eq(domt_profile_of_thread(system, 0).wake_rearms, before.wake_rearms);
    expect_tick_is_handled(system, address);
    domt_end_system(system);
}

DOMT_SUITE(60)
