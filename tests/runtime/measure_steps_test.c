/* Measuring step by step, on threads that do not exist: while houses are lent, and while the level
 * changes. */
#include "house/dispatch/loan.h"
#include "house/dispatch/phases.h"
#include "runtime/loop/observing.h"
#include "tests/runtime/running.h"
#include "tests/runtime/stepped.h"

#include <domus/profile.h>

#include <string.h>

#define LONG_NS (10000 * DOMT_MS)

static domt_stepped world;
static domus_address one; /* on thread 0 */
static const domus_type poke = {.name = "poke"};

static int on_poke(domus_stack *stack, void *self, const void *payload)
{
    return 0;
}

static const domus_on rows[] = {{&poke, on_poke, 0}, {0}};
static const domus_behaviour plain = {.name = "plain", .on = rows};
static const domus_behaviour changed = {.name = "changed", .on = rows};

static int change(domus_stack *stack, void *self, const void *payload)
{
    return domus_become(stack, &changed);
}

static const domus_behaviour changing = {.name = "changing",
                                         .on = (const domus_on[]){{&poke, change, 0}, {0}}};

static domi_manager *victim(void)
{
    return &domt_stepped_thread(&world, 0)->manager;
}

static domi_manager *thief(void)
{
    return &domt_stepped_thread(&world, 1)->manager;
}

static void open_world(const domus_behaviour *behaviour)
{
    domus_config config = domt_config(2);

    config.scheduler.steal.enabled = true;
    domt_stepped_init(&world, &config);
    world.system->outside.directory.behaviours = &world.system->behaviours;
    one = domt_spawn(world.system, 0, behaviour, NULL);
    domt_stepped_iterate(&world, 0, false);
    domt_stepped_iterate(&world, 1, false);
}

/* Let thread 0 follow a level. */
static void follow(domus_profile_level level)
{
    ck_assert_int_eq(domus_system_set_profile_level(world.system, level), 0);
    domt_stepped_advance(&world, 100 * DOMT_MS);
    domi_thread_stamp(domt_stepped_thread(&world, 0), DOMI_SPAN_OTHER);
    domt_stepped_iterate(&world, 0, false);
}

/* Put a message, and let thread 0 see it. */
static void put(domus_address address)
{
    domt_notice(world.system, address, &poke, NULL);
    (void)domi_manager_take_arrivals(victim());
}

/* The one house that is ready at thread 0 runs at the other one, and is back. */
static void lend(void)
{
    ck_assert_uint_eq(domi_loans_expose(victim(), &victim()->schedule.ready[DOMUS_STATE], 1), 1);
    domi_loan *loan = domi_loan_take(thief(), victim());
    ck_assert_ptr_nonnull(loan);
    domi_manager_own(thief());
    domi_loan_run(thief(), loan);
    domi_manager_own(victim());
    ck_assert_uint_eq(domi_loans_settle(victim()), 1);
}

static const domi_house *waiter(void)
{
    const domi_observing *observing = atomic_load(&domt_stepped_thread(&world, 0)->observing);

    ck_assert_ptr_nonnull(observing);
    return observing->runs.waiting.waiter.house;
}

static uint64_t sum_ns(domus_histogram_kind kind)
{
    domus_histogram found;

    ck_assert_int_eq(domus_system_histogram(world.system, 0, kind, &found), 0);
    return found.sum_ns;
}

static uint64_t alive(uint32_t thread, const char *name)
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

/* Sums over the threads are right only if each thread has its own. */
DOMT_TEST(who_becomes_another_on_a_thief_counts_where_it_lives)
{
    open_world(&changing);
    ck_assert_uint_eq(alive(0, "changing"), 1);
    put(one);
    lend();
    ck_assert_uint_eq(alive(0, "changing"), 0);
    ck_assert_uint_eq(alive(0, "changed"), 1);
    ck_assert_uint_eq(alive(1, "changed"), 0);
    ck_assert_int_eq(domus_outside_stop(world.system, one), 0);
    for (int i = 0; i < 3; i++)
        domt_stepped_iterate(&world, 0, false);
    ck_assert_uint_eq(alive(0, "changed"), 0);
    domt_stepped_fini(&world);
}

DOMT_TEST(message_that_a_thief_has_handled_waits_no_more)
{
    open_world(&plain);
    follow(DOMUS_PROFILE_HISTOGRAMS);
    put(one);
    ck_assert_ptr_eq(waiter(), one.house);
    lend();
    domt_stepped_advance(&world, LONG_NS);
    domt_stepped_iterate(&world, 0, false);
    put(one);
    domt_stepped_iterate(&world, 0, false);
    ck_assert_uint_lt(sum_ns(DOMUS_HISTOGRAM_WAIT), LONG_NS);
    domt_stepped_fini(&world);
}

DOMT_TEST(time_in_which_nothing_was_measured_is_no_wait)
{
    open_world(&plain);
    follow(DOMUS_PROFILE_HISTOGRAMS);
    put(one);
    ck_assert_ptr_eq(waiter(), one.house);
    follow(DOMUS_PROFILE_OFF);
    atomic_store(&victim()->mail.sampled_ns, domt_stepped_now_ns(&world));
    domt_stepped_advance(&world, LONG_NS);
    follow(DOMUS_PROFILE_HISTOGRAMS);
    put(one);
    domt_stepped_iterate(&world, 0, false);
    ck_assert_uint_lt(sum_ns(DOMUS_HISTOGRAM_WAIT), LONG_NS);
    ck_assert_uint_lt(sum_ns(DOMUS_HISTOGRAM_DELIVERY), LONG_NS);
    domt_stepped_fini(&world);
}

/* As if two asks before it were cancelled after it was put. */
DOMT_TEST(message_that_is_gone_waits_no_more)
{
    open_world(&plain);
    follow(DOMUS_PROFILE_HISTOGRAMS);
    put(one);
    ck_assert_ptr_eq(waiter(), one.house);
    atomic_load(&domt_stepped_thread(&world, 0)->observing)->runs.waiting.waiter.ahead = 3;
    domt_stepped_iterate(&world, 0, false);
    ck_assert_ptr_null(waiter());
    domt_stepped_fini(&world);
}

DOMT_TEST(thread_that_could_not_record_stops_to_measure)
{
    open_world(&plain);
    domi_thread *thread = domt_stepped_thread(&world, 0);
    follow(DOMUS_PROFILE_COUNTERS);
    world.system->config.profile.records = 3; /* no ring has so many */
    follow(DOMUS_PROFILE_SPANS);
    ck_assert_ptr_nonnull(atomic_load(&thread->observing));
    const domi_observer *measures = &atomic_load(&thread->observing)->runs.waiting.functions;
    ck_assert_ptr_eq(thread->manager.observer, measures);
    follow(DOMUS_PROFILE_COUNTERS);
    ck_assert_ptr_ne(thread->manager.observer, measures);
    domt_stepped_fini(&world);
}

DOMT_TEST(thread_without_a_cpu_clock_submits_nothing)
{
    domus_profile profile;

    open_world(&plain);
    follow(DOMUS_PROFILE_OFF);
    follow(DOMUS_PROFILE_COUNTERS);
    domt_stepped_advance(&world, LONG_NS);
    domi_thread_stamp(domt_stepped_thread(&world, 0), DOMI_SPAN_ENTER);
    ck_assert_int_eq(domus_system_profile(world.system, 0, &profile), 0);
    ck_assert_uint_ge(profile.phase_ns[DOMUS_PHASE_SLEEP], LONG_NS);
    ck_assert_uint_eq(profile.phase_ns[DOMUS_PHASE_SUBMIT], 0);
    domt_stepped_fini(&world);
}

/* A spawn of a behaviour beyond the bound waits for no other spawn. */
DOMT_TEST(full_table_of_behaviours_needs_no_lock)
{
    static domi_behaviours table;
    static domus_behaviour many[DOMUS_BEHAVIOURS_MAX + 1];

    for (uint32_t i = 0; i < DOMUS_BEHAVIOURS_MAX; i++)
        ck_assert_uint_eq(domi_behaviours_add(&table, &many[i], 192), i + 1);
    domi_spinlock_lock(&table.lock);
    ck_assert_uint_eq(domi_behaviours_add(&table, &many[DOMUS_BEHAVIOURS_MAX], 192), 0);
    ck_assert_uint_eq(domi_behaviours_add(&table, &many[7], 192), 8);
    domi_spinlock_unlock(&table.lock);
}

DOMT_SUITE(60)
