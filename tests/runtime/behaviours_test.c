/* runtime/control/behaviours.c counts what the actors of each behaviour have done, and how many of
 * them wait. The tests use real threads, and stepped threads (tests/runtime/stepped.h), on which
 * houses are lent and the level of the profile changes at exact steps. */
#include "tests/runtime/running.h"
#include "tests/runtime/stepped.h"

#include "house/dispatch/loan.h"
#include "house/dispatch/phases.h"
#include "runtime/loop/observing.h"

#include <domus/profile.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const domus_type work_type = {.name = "work", .size = sizeof(uint64_t)};
static const domus_type fail_type = {.name = "fail", .size = 0};
static const domus_type change_type = {.name = "change", .size = 0};
static _Atomic uint64_t worked;

/* Handle a message for as many nanoseconds as it says. */
static int work_for_time_in_message(domus_stack *stack, void *self, const void *payload)
{
    uint64_t until_ns = domt_now_ns() + *(const uint64_t *)payload;

    while (domt_now_ns() < until_ns)
        continue;
    atomic_fetch_add(&worked, 1);
    return 0;
}

static int fail_handler_with_eio(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&worked, 1);
    return -EIO;
}

static int become_other_and_count(domus_stack *stack, void *self, const void *payload);

static const domus_on rows[] = {{&work_type, work_for_time_in_message, 0},
                                {&fail_type, fail_handler_with_eio, 0},
                                {&change_type, become_other_and_count, 0},
                                {0}};

static const domus_behaviour worker = {.name = "worker", .on = rows};
static const domus_behaviour namesake = {.name = "worker", .state_size = 4096, .on = rows};
static const domus_behaviour other = {.name = "other", .on = rows};

static int become_other_and_count(domus_stack *stack, void *self, const void *payload)
{
    int error = domus_become(stack, &other);
    atomic_fetch_add(&worked, 1);
    return error;
}

static int become_other_in_mount(domus_stack *stack, void *self)
{
    return domus_become(stack, &other);
}

static const domus_behaviour fickle = {
    .name = "fickle", .on = rows, .on_mount = become_other_in_mount};

static domus_system *start_system(uint32_t threads)
{
    atomic_store(&worked, 0);
    return domt_start_system_of_threads(threads);
}

/* Returns the counts of a behaviour on a thread of the system; all of them are 0 if no behaviour
 * has that name. */
static domus_behaviour_profile find_profile_of_behaviour(const domus_system *system,
                                                         uint32_t thread, const char *name)
{
    static domus_behaviour_profile all[DOMUS_BEHAVIOURS_MAX + 1];
    domus_behaviour_profile found = {0};
    uint32_t count, hits = 0;

    ck_assert_int_eq(domus_system_behaviours(system, thread, all, DOMUS_BEHAVIOURS_MAX + 1, &count),
                     0);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(all[i].name, name) == 0) {
            found = all[i];
            hits++;
        }
    }
    ck_assert_uint_le(hits, 1);
    return found;
}

static void send_and_wait_until_handled(domus_system *system, domus_address to,
                                        const domus_type *type, uint64_t times)
{
    uint64_t until = atomic_load(&worked) + times, none = 0;

    for (uint64_t i = 0; i < times; i++)
        domt_send_notice(system, to, type, &none);
    DOMT_WAIT_FOR(20, atomic_load(&worked) == until);
}

DOMT_TEST(each_behaviour_is_counted_on_the_thread_where_it_runs)
{
    domus_system *system = start_system(2);
    domus_address one = domt_spawn(system, 0, &worker, NULL);
    domus_address two = domt_spawn(system, 1, &worker, NULL);
    domus_address large = domt_spawn(system, 1, &namesake, NULL);
    domus_address third = domt_spawn(system, 1, &other, NULL);

    send_and_wait_until_handled(system, one, &work_type, 300);
    send_and_wait_until_handled(system, two, &work_type, 20);
    send_and_wait_until_handled(system, large, &work_type, 3);
    send_and_wait_until_handled(system, third, &fail_type, 7);
    DOMT_WAIT_FOR(20, find_profile_of_behaviour(system, 0, "worker").messages == 300);
    DOMT_WAIT_FOR(20, find_profile_of_behaviour(system, 1, "worker").messages == 23);
    DOMT_WAIT_FOR(20, find_profile_of_behaviour(system, 1, "other").failures == 7);
    domus_behaviour_profile first = find_profile_of_behaviour(system, 0, "worker");
    domus_behaviour_profile second = find_profile_of_behaviour(system, 1, "worker");
    ck_assert_uint_ge(first.runs, 1);
    ck_assert_uint_le(first.runs, 300);
    ck_assert_uint_eq(first.alive, 1);
    ck_assert_uint_eq(first.bytes, 192);
    ck_assert_uint_eq(first.failures, 0);
    ck_assert(!first.is_channels);
    ck_assert_uint_eq(second.alive, 2);
    ck_assert_uint_eq(second.bytes, 192 + 192 + 4096);
    ck_assert_uint_eq(find_profile_of_behaviour(system, 1, "other").messages, 7);
    ck_assert_uint_eq(find_profile_of_behaviour(system, 0, "other").runs, 0);
    ck_assert_int_eq(domus_outside_stop(system, two), 0);
    DOMT_WAIT_FOR(20, find_profile_of_behaviour(system, 1, "worker").alive == 1);
    ck_assert_uint_eq(find_profile_of_behaviour(system, 1, "worker").bytes, 192 + 4096);
    domt_end_system(system);
}

/* An actor that has become another behaviour counts for that behaviour, also if it did so in its
 * on_mount. */
DOMT_TEST(become_counts_actor_under_new_behaviour)
{
    domus_system *system = start_system(1);
    domus_address one = domt_spawn(system, 0, &worker, NULL);

    domt_spawn(system, 0, &fickle, NULL);
    send_and_wait_until_handled(system, one, &change_type, 1);
    DOMT_WAIT_FOR(20, find_profile_of_behaviour(system, 0, "other").alive == 2);
    ck_assert_uint_eq(find_profile_of_behaviour(system, 0, "worker").alive, 0);
    ck_assert_uint_eq(find_profile_of_behaviour(system, 0, "fickle").alive, 0);
    send_and_wait_until_handled(system, one, &work_type, 5);
    DOMT_WAIT_FOR(20, find_profile_of_behaviour(system, 0, "other").messages >= 5);
    ck_assert_int_eq(domus_outside_stop(system, one), 0);
    DOMT_WAIT_FOR(20, find_profile_of_behaviour(system, 0, "other").alive == 1);
    ck_assert_uint_eq(find_profile_of_behaviour(system, 0, "worker").alive, 0);
    domt_end_system(system);
}

DOMT_TEST(behaviours_above_the_maximum_share_an_entry)
{
    enum { MANY = DOMUS_BEHAVIOURS_MAX + 10 };
    static domus_behaviour many[MANY];
    static char names[MANY][16];
    domus_behaviour_profile all[DOMUS_BEHAVIOURS_MAX + 1];
    domus_system *system = start_system(1);
    uint32_t count;

    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "b%d", i);
        many[i] = (domus_behaviour){.name = names[i], .on = rows};
        domus_address address = domt_spawn(system, 0, &many[i], NULL);
        send_and_wait_until_handled(system, address, &work_type, 1);
    }
    DOMT_WAIT_FOR(20, find_profile_of_behaviour(system, 0, "(others)").alive != 0 &&
                          find_profile_of_behaviour(system, 0, "(others)").messages != 0);
    ck_assert_int_eq(domus_system_behaviours(system, 0, all, DOMUS_BEHAVIOURS_MAX + 1, &count), 0);
    ck_assert_uint_le(count, DOMUS_BEHAVIOURS_MAX + 1);
    uint64_t alive = 0;
    for (uint32_t i = 0; i < count; i++)
        alive += all[i].name[0] == 'b' ? all[i].alive : 0;
    ck_assert_uint_ge(alive + find_profile_of_behaviour(system, 0, "(others)").alive, MANY);
    ck_assert_uint_ge(find_profile_of_behaviour(system, 0, "(others)").alive, 10);
    /* the call must not write more rows of the table than were asked for */
    memset(&all[2], 0x5a, sizeof all[2]);
    ck_assert_int_eq(domus_system_behaviours(system, 0, all, 2, &count), 0);
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(all[2].name[0], 0x5a);
    ck_assert_int_eq(domus_system_behaviours(system, 1, all, 2, &count), -EINVAL);
    domt_end_system(system);
}

/* The time of a behaviour is measured in each run, however seldom the counts are read. */
DOMT_TEST(time_is_counted_for_the_behaviour_that_runs)
{
    domus_system *system = start_system(1);
    domus_address busy = domt_spawn(system, 0, &worker, NULL);
    domus_address idle = domt_spawn(system, 0, &other, NULL);
    const uint64_t long_ns = 3 * DOMT_MS;

    send_and_wait_until_handled(system, idle, &work_type, 10);
    uint64_t begin_ns = domt_now_ns();
    for (int i = 0; i < 80; i++)
        domt_send_notice(system, busy, &work_type, &long_ns);
    DOMT_WAIT_FOR(60, atomic_load(&worked) == 90);
    uint64_t passed_ns = domt_now_ns() - begin_ns;
    uint64_t busy_ns = find_profile_of_behaviour(system, 0, "worker").run_ns;
    ck_assert_msg(busy_ns >= 120 * DOMT_MS && busy_ns <= passed_ns + 40 * DOMT_MS,
                  "%llu ms of %llu", (unsigned long long)(busy_ns / DOMT_MS),
                  (unsigned long long)(passed_ns / DOMT_MS));
    ck_assert_uint_le(find_profile_of_behaviour(system, 0, "other").run_ns, busy_ns / 4);
    domt_end_system(system);
}

#define CROWD 100

/* Send each of the 100 actors of the crowd a message that takes 0.1 ms, and wait until all are
 * handled. */
static void send_to_whole_crowd_and_wait(domus_system *system, domus_address *crowd)
{
    uint64_t until = atomic_load(&worked) + CROWD;
    const uint64_t time_ns = DOMT_MS / 10;

    for (int i = 0; i < CROWD; i++)
        domt_send_notice(system, crowd[i], &work_type, &time_ns);
    DOMT_WAIT_FOR(20, atomic_load(&worked) == until);
}

DOMT_TEST(waits_are_sampled_and_the_waiting_are_counted)
{
    domus_system *system = start_system(1);
    domus_address crowd[CROWD];

    for (int i = 0; i < CROWD; i++)
        crowd[i] = domt_spawn(system, 0, &worker, NULL);
    uint64_t begin_ns = domt_now_ns();
    DOMT_WAIT_FOR(20, (send_to_whole_crowd_and_wait(system, crowd),
                       find_profile_of_behaviour(system, 0, "worker").waits >= 10));
    uint64_t passed_ns = domt_now_ns() - begin_ns;
    domus_behaviour_profile found = find_profile_of_behaviour(system, 0, "worker");
    /* A message waits for half of the crowd on average, which is 5 ms. The least wait that is
     * checked is smaller, because most messages are put one by one. */
    ck_assert_uint_ge(found.wait_ns / found.waits, DOMT_MS / 4);
    ck_assert_uint_le(found.wait_ns / found.waits, passed_ns);
    uint64_t ready_ns = domt_profile_of_thread(system, 0).ready_ns;
    ck_assert_uint_ge(ready_ns, passed_ns);
    ck_assert_uint_le(ready_ns, passed_ns * CROWD);
    domt_end_system(system);
}

DOMT_TEST(nothing_is_measured_at_the_level_off)
{
    domus_config config = domt_config_of_threads(1);
    const uint64_t long_ns = 3 * DOMT_MS;

    config.profile.level = DOMUS_PROFILE_OFF;
    atomic_store(&worked, 0);
    domus_system *system = domt_start_system(&config);
    domus_address address = domt_spawn(system, 0, &worker, NULL);
    for (int i = 0; i < 20; i++)
        domt_send_notice(system, address, &work_type, &long_ns);
    DOMT_WAIT_FOR(20, atomic_load(&worked) == 20);
    ck_assert_uint_eq(find_profile_of_behaviour(system, 0, "worker").run_ns, 0);
    ck_assert_uint_eq(find_profile_of_behaviour(system, 0, "worker").waits, 0);
    DOMT_WAIT_FOR(20, find_profile_of_behaviour(system, 0, "worker").messages == 20);
    domt_end_system(system);
}

/* --- step by step ----------------------------------------------------------------------------- */

#define LONG_NS (10000 * DOMT_MS)

static domt_stepped world;
static domus_address poked; /* the actor on thread 0 to which the test sends messages */
static const domus_type poke = {.name = "poke"};

static const domus_on poke_rows[] = {{&poke, domt_ignore_message, 0}, {0}};
static const domus_behaviour plain = {.name = "plain", .on = poke_rows};
static const domus_behaviour changed = {.name = "changed", .on = poke_rows};

static int become_changed_behaviour(domus_stack *stack, void *self, const void *payload)
{
    return domus_become(stack, &changed);
}

static const domus_behaviour changing = {
    .name = "changing", .on = (const domus_on[]){{&poke, become_changed_behaviour, 0}, {0}}};

static domi_manager *manager_of_victim(void)
{
    return &domt_stepped_thread(&world, 0)->manager;
}

static domi_manager *manager_of_thief(void)
{
    return &domt_stepped_thread(&world, 1)->manager;
}

static void open_world_of_two_threads(const domus_behaviour *behaviour)
{
    domus_config config = domt_config_of_threads(2);

    config.scheduler.steal.enabled = true;
    domt_stepped_init(&world, &config);
    world.system->outside.directory.behaviours = &world.system->behaviours;
    poked = domt_spawn(world.system, 0, behaviour, NULL);
    domt_stepped_iterate(&world, 0, false);
    domt_stepped_iterate(&world, 1, false);
}

/* Set a level of the profile, and let thread 0 follow it. */
static void set_profile_level_of_thread_0(domus_profile_level level)
{
    ck_assert_int_eq(domus_system_set_profile_level(world.system, level), 0);
    domt_stepped_advance_clock(&world, 100 * DOMT_MS);
    domi_thread_stamp_time(domt_stepped_thread(&world, 0), DOMI_SPAN_OTHER);
    domt_stepped_iterate(&world, 0, false);
}

/* Put a message for an actor, and let thread 0 receive it. */
static void send_poke_and_take_arrivals(domus_address address)
{
    domt_send_notice(world.system, address, &poke, NULL);
    (void)domi_manager_take_arrivals(manager_of_victim());
}

/* Lend the only ready house of thread 0 to the other thread, run it there, and give it back. */
static void run_ready_house_on_other_thread(void)
{
    ck_assert_uint_eq(domi_loans_expose_houses(manager_of_victim(),
                                               &manager_of_victim()->schedule.ready[DOMUS_STATE],
                                               1),
                      1);
    domi_loan *loan = domi_loan_take_exposed_house(manager_of_thief(), manager_of_victim());
    ck_assert_ptr_nonnull(loan);
    domi_manager_become_owner(manager_of_thief());
    domi_loan_run_house_and_return(manager_of_thief(), loan);
    domi_manager_become_owner(manager_of_victim());
    ck_assert_uint_eq(domi_loans_settle_returned_houses(manager_of_victim()), 1);
}

static const domi_house *house_whose_wait_is_observed(void)
{
    const domi_observing *observing = atomic_load(&domt_stepped_thread(&world, 0)->observing);

    ck_assert_ptr_nonnull(observing);
    return observing->runs.waiting.waiter.house;
}

static uint64_t sum_of_histogram_in_ns(domus_histogram_kind kind)
{
    domus_histogram found;

    ck_assert_int_eq(domus_system_histogram(world.system, 0, kind, &found), 0);
    return found.sum_ns;
}

static uint64_t count_living_actors_of_behaviour(uint32_t thread, const char *name)
{
    static domus_behaviour_profile all[DOMUS_BEHAVIOURS_MAX + 1];
    uint32_t count;

    ck_assert_int_eq(
        domus_system_behaviours(world.system, thread, all, DOMUS_BEHAVIOURS_MAX + 1, &count), 0);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(all[i].name, name) == 0)
            return all[i].alive;
    }
    return 0;
}

/* Each thread counts its own actors, so the sums over the threads are right also after an actor
 * changed its behaviour on another thread. */
DOMT_TEST(actor_that_becomes_another_on_a_thief_counts_on_its_home)
{
    open_world_of_two_threads(&changing);
    ck_assert_uint_eq(count_living_actors_of_behaviour(0, "changing"), 1);
    send_poke_and_take_arrivals(poked);
    run_ready_house_on_other_thread();
    ck_assert_uint_eq(count_living_actors_of_behaviour(0, "changing"), 0);
    ck_assert_uint_eq(count_living_actors_of_behaviour(0, "changed"), 1);
    ck_assert_uint_eq(count_living_actors_of_behaviour(1, "changed"), 0);
    ck_assert_int_eq(domus_outside_stop(world.system, poked), 0);
    for (int i = 0; i < 3; i++)
        domt_stepped_iterate(&world, 0, false);
    ck_assert_uint_eq(count_living_actors_of_behaviour(0, "changed"), 0);
    domt_stepped_fini(&world);
}

DOMT_TEST(wait_of_a_message_ends_when_a_thief_handles_it)
{
    open_world_of_two_threads(&plain);
    set_profile_level_of_thread_0(DOMUS_PROFILE_HISTOGRAMS);
    send_poke_and_take_arrivals(poked);
    ck_assert_ptr_eq(house_whose_wait_is_observed(), poked.house);
    run_ready_house_on_other_thread();
    domt_stepped_advance_clock(&world, LONG_NS);
    domt_stepped_iterate(&world, 0, false);
    send_poke_and_take_arrivals(poked);
    domt_stepped_iterate(&world, 0, false);
    ck_assert_uint_lt(sum_of_histogram_in_ns(DOMUS_HISTOGRAM_WAIT), LONG_NS);
    domt_stepped_fini(&world);
}

DOMT_TEST(time_with_profile_off_counts_as_no_wait)
{
    open_world_of_two_threads(&plain);
    set_profile_level_of_thread_0(DOMUS_PROFILE_HISTOGRAMS);
    send_poke_and_take_arrivals(poked);
    ck_assert_ptr_eq(house_whose_wait_is_observed(), poked.house);
    set_profile_level_of_thread_0(DOMUS_PROFILE_OFF);
    atomic_store(&manager_of_victim()->mail.sampled_ns, domt_stepped_now_ns(&world));
    domt_stepped_advance_clock(&world, LONG_NS);
    set_profile_level_of_thread_0(DOMUS_PROFILE_HISTOGRAMS);
    send_poke_and_take_arrivals(poked);
    domt_stepped_iterate(&world, 0, false);
    ck_assert_uint_lt(sum_of_histogram_in_ns(DOMUS_HISTOGRAM_WAIT), LONG_NS);
    ck_assert_uint_lt(sum_of_histogram_in_ns(DOMUS_HISTOGRAM_DELIVERY), LONG_NS);
    domt_stepped_fini(&world);
}

/* The test sets the count of mail as if two asks that were put before this message had been
 * cancelled. */
DOMT_TEST(wait_of_a_message_that_is_gone_is_measured_no_more)
{
    open_world_of_two_threads(&plain);
    set_profile_level_of_thread_0(DOMUS_PROFILE_HISTOGRAMS);
    send_poke_and_take_arrivals(poked);
    ck_assert_ptr_eq(house_whose_wait_is_observed(), poked.house);
    atomic_load(&domt_stepped_thread(&world, 0)->observing)->runs.waiting.waiter.ahead = 3;
    domt_stepped_iterate(&world, 0, false);
    ck_assert_ptr_null(house_whose_wait_is_observed());
    domt_stepped_fini(&world);
}

DOMT_TEST(thread_that_could_not_record_stops_to_measure)
{
    open_world_of_two_threads(&plain);
    domi_thread *thread = domt_stepped_thread(&world, 0);
    set_profile_level_of_thread_0(DOMUS_PROFILE_COUNTERS);
    /* a ring of records must have at least 64 places, so no recorder can be made for the level */
    world.system->config.profile.records = 3;
    set_profile_level_of_thread_0(DOMUS_PROFILE_SPANS);
    ck_assert_ptr_nonnull(atomic_load(&thread->observing));
    const domi_observer *measures = &atomic_load(&thread->observing)->runs.waiting.functions;
    ck_assert_ptr_eq(thread->manager.observer, measures);
    set_profile_level_of_thread_0(DOMUS_PROFILE_COUNTERS);
    ck_assert_ptr_ne(thread->manager.observer, measures);
    domt_stepped_fini(&world);
}

DOMT_TEST(sleep_without_a_cpu_clock_is_not_counted_as_submit)
{
    domus_profile profile;

    open_world_of_two_threads(&plain);
    set_profile_level_of_thread_0(DOMUS_PROFILE_OFF);
    set_profile_level_of_thread_0(DOMUS_PROFILE_COUNTERS);
    domt_stepped_advance_clock(&world, LONG_NS);
    domi_thread_stamp_time(domt_stepped_thread(&world, 0), DOMI_SPAN_ENTER);
    ck_assert_int_eq(domus_system_profile(world.system, 0, &profile), 0);
    ck_assert_uint_ge(profile.phase_ns[DOMUS_PHASE_SLEEP], LONG_NS);
    ck_assert_uint_eq(profile.phase_ns[DOMUS_PHASE_SUBMIT], 0);
    domt_stepped_fini(&world);
}

/* A spawn of a behaviour for which the table has no row must not wait for the lock of another
 * spawn. */
DOMT_TEST(look_up_in_full_table_of_behaviours_takes_no_lock)
{
    static domi_behaviours table;
    static domus_behaviour many[DOMUS_BEHAVIOURS_MAX + 1];

    for (uint32_t i = 0; i < DOMUS_BEHAVIOURS_MAX; i++)
        ck_assert_uint_eq(domi_behaviours_add_number(&table, &many[i], 192), i + 1);
    domi_spinlock_lock(&table.lock);
    ck_assert_uint_eq(domi_behaviours_add_number(&table, &many[DOMUS_BEHAVIOURS_MAX], 192), 0);
    ck_assert_uint_eq(domi_behaviours_add_number(&table, &many[7], 192), 8);
    domi_spinlock_unlock(&table.lock);
}

DOMT_SUITE(60)
