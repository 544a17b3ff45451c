/* runtime/loop/steal.c, step by step, on threads that do not exist (tests/runtime/stepped.h):
 * thieves are counted, houses are exposed and taken back, and the profile's counters show this. */
#include "house/dispatch/loan.h"
#include "house/dispatch/phases.h"
#include "runtime/loop/steal.h"
#include "tests/runtime/running.h"
#include "tests/runtime/stepped.h"

#define HOUSES 20
#define FLOOR  4

static domt_stepped world;
static domus_address actors[HOUSES]; /* actors on thread 0, the victim */
static domus_address other;          /* an actor on thread 1, the thief */
static const domus_type poke = {.name = "poke"};
static const domus_behaviour idle = {.name = "idle"};

static domi_thread *victim_thread(void)
{
    return domt_stepped_thread(&world, 0);
}

static domi_thread *thief_thread(void)
{
    return domt_stepped_thread(&world, 1);
}

static domi_queue *get_state_queue_of_victim(void)
{
    return &victim_thread()->manager.schedule.ready[DOMUS_STATE];
}

static void open_world_with_patience(uint32_t threads, uint32_t patience)
{
    domus_config config = domt_config_of_threads(threads);

    config.scheduler.steal.patience = patience;
    config.scheduler.steal.enabled = true;
    config.scheduler.steal.floor = FLOOR;
    config.scheduler.steal.aggression = 1;
    config.scheduler.steal.min_run_ns = 0;
    domt_stepped_init(&world, &config);
    for (int i = 0; i < HOUSES; i++)
        actors[i] = domt_spawn(world.system, 0, &idle, NULL);
    other = domt_spawn(world.system, 1, &idle, NULL);
    domt_stepped_iterate(&world, 0, false);
    domt_stepped_iterate(&world, 1, false);
}

static void open_world_of_two_threads(void)
{
    open_world_with_patience(2, 32768);
}

static void make_all_houses_ready(void)
{
    for (int i = 0; i < HOUSES; i++)
        domt_send_notice(world.system, actors[i], &poke, NULL);
    (void)domi_manager_take_arrivals(&victim_thread()->manager);
    ck_assert_uint_eq(get_state_queue_of_victim()->count, HOUSES);
}

/* Let the victim look for work, `after_ns` after the last step. */
static void let_victim_look_for_work(uint64_t after_ns)
{
    domt_stepped_advance_clock(&world, after_ns);
    domi_thread_stamp_time(victim_thread(), DOMI_SPAN_OTHER);
    domi_thread_expose_or_take_back_houses(victim_thread(), get_state_queue_of_victim());
}

DOMT_TEST(only_the_thread_called_to_steal_clears_the_call)
{
    open_world_of_two_threads();
    /* this value names thread 1 as the one that was called */
    atomic_store(&world.system->waking, 2);
    domt_send_notice(world.system, actors[0], &poke, NULL);
    for (int i = 0; i < 3; i++) {
        /* thread 0 is busy in the first iteration, and idle in the second */
        domt_stepped_iterate(&world, 0, true);
        ck_assert_uint_eq(atomic_load(&world.system->waking), 2);
    }
    domt_send_notice(world.system, other, &poke, NULL);
    domt_stepped_iterate(&world, 1, true);
    ck_assert_uint_eq(atomic_load(&world.system->waking), 0);
    domt_stepped_fini(&world);
}

DOMT_TEST(thief_that_has_work_of_its_own_again_is_not_counted_any_more)
{
    open_world_of_two_threads();
    atomic_store(&victim_thread()->manager.loans.lendable, 1000);
    domt_stepped_iterate(&world, 1, true);
    ck_assert_uint_eq(atomic_load(&victim_thread()->manager.loans.thieves), 1);
    domt_send_notice(world.system, other, &poke, NULL);
    domt_stepped_iterate(&world, 1, true);
    ck_assert_uint_eq(atomic_load(&victim_thread()->manager.loans.thieves), 0);
    ck_assert_uint_eq(thief_thread()->stealing.victim, DOMI_NO_VICTIM);
    domt_stepped_fini(&world);
}

DOMT_TEST(exposed_house_that_nobody_takes_is_taken_back)
{
    open_world_of_two_threads();
    make_all_houses_ready();
    atomic_store(&victim_thread()->manager.loans.thieves,
                 1); /* count one thief, which never comes, as if it were in a long handler */
    let_victim_look_for_work(0);
    ck_assert_uint_eq(domi_loans_count_shared_houses(&victim_thread()->manager), FLOOR);
    let_victim_look_for_work(DOMT_MS);
    ck_assert_uint_eq(domi_loans_count_shared_houses(&victim_thread()->manager), FLOOR);
    let_victim_look_for_work(2 * DOMT_MS);
    ck_assert_uint_eq(domi_loans_count_shared_houses(&victim_thread()->manager), 0);
    ck_assert_uint_eq(get_state_queue_of_victim()->count, HOUSES);
    /* houses that were taken back are not exposed again at once */
    let_victim_look_for_work(DOMT_MS);
    ck_assert_uint_eq(domi_loans_count_shared_houses(&victim_thread()->manager), 0);
    atomic_store(&victim_thread()->manager.loans.thieves, 0);
    domt_stepped_fini(&world);
}

DOMT_TEST(exposed_house_counts_as_ready)
{
    open_world_of_two_threads();
    make_all_houses_ready();
    atomic_store(&victim_thread()->manager.loans.thieves, 1);
    let_victim_look_for_work(0);
    ck_assert_uint_eq(get_state_queue_of_victim()->count, HOUSES - FLOOR);
    domi_thread_publish_ready_count(victim_thread(), get_state_queue_of_victim()->count);
    ck_assert_uint_eq(atomic_load(&victim_thread()->manager.loans.readies), HOUSES);
    ck_assert_uint_eq(atomic_load(&victim_thread()->manager.loans.lendable), HOUSES);
    atomic_store(&victim_thread()->manager.loans.thieves, 0);
    domt_stepped_fini(&world);
}

/* The thread has exposed all its ready houses, and says that it has no more. Thieves take them, and
 * no other thief may come for more. */
DOMT_TEST(thief_learns_that_victim_has_no_ready_house)
{
    open_world_of_two_threads();
    make_all_houses_ready();
    (void)domi_loans_expose_houses(&victim_thread()->manager, get_state_queue_of_victim(), HOUSES);
    domi_thread_publish_ready_count(victim_thread(), get_state_queue_of_victim()->count);
    ck_assert_uint_eq(atomic_load(&victim_thread()->manager.loans.readies), HOUSES);
    for (int i = 0; i < HOUSES; i++) {
        domi_loan *loan =
            domi_loan_take_exposed_house(&thief_thread()->manager, &victim_thread()->manager);
        ck_assert_ptr_nonnull(loan);
        domi_loan_run_house_and_return(&thief_thread()->manager, loan);
    }
    domt_stepped_iterate(&world, 0, false);
    ck_assert_uint_eq(atomic_load(&victim_thread()->manager.loans.readies), 0);
    ck_assert_uint_eq(atomic_load(&victim_thread()->manager.loans.lendable), 0);
    domt_stepped_fini(&world);
}

/* --- a victim that others are at -------------------------------------------------------------- */

static domi_manager *manager_of_thread(uint32_t index)
{
    return &domt_stepped_thread(&world, index)->manager;
}

/* Make a world in which threads 0 and 2 expose houses, and the thief tries thread 0, whose queue
 * others keep locked. */
static void open_world_with_locked_queue(void)
{
    open_world_with_patience(3, 32768);
    for (uint32_t index = 0; index < 3; index += 2) {
        domi_manager *home = manager_of_thread(index);

        for (int i = 0; i < 2 * FLOOR; i++)
            domt_send_notice(world.system, domt_spawn(world.system, index, &idle, NULL), &poke,
                             NULL);
        /* in this iteration the actors are mounted and run */
        domt_stepped_iterate(&world, index, false);
        (void)domi_manager_take_arrivals(home);
    }
    make_all_houses_ready();
    domus_address ready[2 * FLOOR];
    for (int i = 0; i < 2 * FLOOR; i++)
        ready[i] = domt_spawn(world.system, 2, &idle, NULL);
    domt_stepped_iterate(&world, 2, false);
    for (int i = 0; i < 2 * FLOOR; i++)
        domt_send_notice(world.system, ready[i], &poke, NULL);
    (void)domi_manager_take_arrivals(manager_of_thread(2));
    ck_assert_uint_eq(
        domi_loans_expose_houses(manager_of_thread(0), get_state_queue_of_victim(), FLOOR), FLOOR);
    ck_assert_uint_eq(domi_loans_expose_houses(manager_of_thread(2),
                                               &manager_of_thread(2)->schedule.ready[DOMUS_STATE],
                                               FLOOR),
                      FLOOR);
    atomic_store(&manager_of_thread(0)->loans.lendable, 1000);
    atomic_store(&manager_of_thread(2)->loans.lendable, 1000);
    thief_thread()->stealing.victim = 0;
    atomic_store(&manager_of_thread(0)->loans.thieves, 1);
    domi_spinlock_lock(&manager_of_thread(0)->loans.shared_lock);
}

static void close_world_with_locked_queue(void)
{
    domi_spinlock_unlock(&manager_of_thread(0)->loans.shared_lock);
    (void)domi_loans_take_houses_back(manager_of_thread(0), get_state_queue_of_victim());
    (void)domi_loans_take_houses_back(manager_of_thread(2),
                                      &manager_of_thread(2)->schedule.ready[DOMUS_STATE]);
    domt_stepped_fini(&world);
}

DOMT_TEST(thief_goes_on_to_the_next_when_others_are_at_its_victim)
{
    open_world_with_locked_queue();
    ck_assert(domi_thread_try_to_steal_house(thief_thread()));
    ck_assert_ptr_nonnull(thief_thread()->stealing.loan);
    ck_assert_ptr_eq(thief_thread()->stealing.loan->house->home, manager_of_thread(2));
    ck_assert_uint_eq(atomic_load(&manager_of_thread(0)->loans.thieves), 0);
    ck_assert_uint_eq(atomic_load(&manager_of_thread(2)->loans.thieves), 1);
    domi_thread_run_borrowed_house(thief_thread(), false);
    (void)domi_loans_settle_returned_houses(manager_of_thread(2));
    close_world_with_locked_queue();
}

DOMT_TEST(thief_stays_with_its_victim_when_there_is_no_other)
{
    open_world_with_locked_queue();
    atomic_store(&manager_of_thread(2)->loans.lendable, 0);
    ck_assert(domi_thread_try_to_steal_house(thief_thread()));
    ck_assert_ptr_null(thief_thread()->stealing.loan);
    ck_assert_uint_eq(thief_thread()->stealing.victim, 0);
    ck_assert_uint_eq(atomic_load(&manager_of_thread(0)->loans.thieves), 1);
    close_world_with_locked_queue();
}

DOMT_TEST(thief_looks_at_each_victim_once_when_others_are_at_all)
{
    open_world_with_locked_queue();
    domi_spinlock_lock(&manager_of_thread(2)->loans.shared_lock);
    ck_assert(domi_thread_try_to_steal_house(thief_thread()));
    ck_assert_ptr_null(thief_thread()->stealing.loan);
    /* the thief will wait, but only for a limited time */
    ck_assert_uint_eq(thief_thread()->stealing.patience, 1);
    ck_assert_uint_eq(atomic_load(&manager_of_thread(0)->loans.thieves) +
                          atomic_load(&manager_of_thread(2)->loans.thieves),
                      1);
    domi_spinlock_unlock(&manager_of_thread(2)->loans.shared_lock);
    close_world_with_locked_queue();
}

/* Two of five threads have too much work, and other threads hold the locks of both of their
 * queues. */
DOMT_TEST(thief_tries_no_victim_twice_in_one_iteration)
{
    open_world_with_patience(5, 32768);
    for (uint32_t index = 0; index < 5; index += 4) {
        domus_address ready[FLOOR];
        for (int i = 0; i < FLOOR; i++)
            ready[i] = domt_spawn(world.system, index, &idle, NULL);
        domt_stepped_iterate(&world, index, false);
        for (int i = 0; i < FLOOR; i++)
            domt_send_notice(world.system, ready[i], &poke, NULL);
        (void)domi_manager_take_arrivals(manager_of_thread(index));
        ck_assert_uint_eq(
            domi_loans_expose_houses(manager_of_thread(index),
                                     &manager_of_thread(index)->schedule.ready[DOMUS_STATE], FLOOR),
            FLOOR);
        atomic_store(&manager_of_thread(index)->loans.lendable, 1000);
        domi_spinlock_lock(&manager_of_thread(index)->loans.shared_lock);
    }
    /* the thief goes from one victim to the other, and back again */
    for (uint32_t tries = 1; tries <= 4; tries++) {
        thief_thread()->stealing.victim = 4 * (tries % 2);
        atomic_store(&manager_of_thread(0)->loans.thieves, tries % 2 == 0);
        atomic_store(&manager_of_thread(4)->loans.thieves, tries % 2 == 1);
        ck_assert(domi_thread_try_to_steal_house(thief_thread()));
        ck_assert_ptr_null(thief_thread()->stealing.loan);
        ck_assert_uint_eq(thief_thread()->stealing.victim, 4 - 4 * (tries % 2));
        ck_assert_uint_eq(domi_counter_read(&thief_thread()->counters.steals_wanted), tries);
        ck_assert_uint_eq(thief_thread()->stealing.patience, tries);
    }
    for (uint32_t index = 0; index < 5; index += 4) {
        domi_spinlock_unlock(&manager_of_thread(index)->loans.shared_lock);
        (void)domi_loans_take_houses_back(manager_of_thread(index),
                                          &manager_of_thread(index)->schedule.ready[DOMUS_STATE]);
    }
    domt_stepped_fini(&world);
}

DOMT_TEST(thief_waits_as_long_as_its_patience)
{
    open_world_with_patience(2, 5);
    /* the victim has many houses, but exposes none */
    atomic_store(&victim_thread()->manager.loans.lendable, 1000);
    for (int i = 0; i < 5; i++)
        ck_assert(domi_thread_try_to_steal_house(thief_thread()));
    ck_assert(!domi_thread_try_to_steal_house(thief_thread()));
    ck_assert_uint_eq(atomic_load(&victim_thread()->manager.loans.thieves), 0);
    domt_stepped_fini(&world);
}

DOMT_TEST(thief_that_got_a_house_is_as_patient_as_before)
{
    open_world_with_patience(2, 5);
    make_all_houses_ready();
    atomic_store(&victim_thread()->manager.loans.lendable, 1000);
    for (int i = 0; i < 3; i++)
        ck_assert(domi_thread_try_to_steal_house(thief_thread()));
    ck_assert_uint_eq(
        domi_loans_expose_houses(&victim_thread()->manager, get_state_queue_of_victim(), 1), 1);
    ck_assert(domi_thread_try_to_steal_house(thief_thread()));
    ck_assert_ptr_nonnull(thief_thread()->stealing.loan);
    domi_thread_run_borrowed_house(thief_thread(), false);
    (void)domi_loans_settle_returned_houses(&victim_thread()->manager);
    for (int i = 0; i < 5; i++)
        ck_assert(domi_thread_try_to_steal_house(thief_thread()));
    ck_assert(!domi_thread_try_to_steal_house(thief_thread()));
    domt_stepped_fini(&world);
}

/* --- when home looks up ----------------------------------------------------------------------- */

#define LONG_NS (20 * DOMT_MS)
#define MANY    100
static uint64_t began_ns, offered_ns;

/* A handler that runs for long, and records the time at which a house of its thread is exposed. */
static int run_long_and_record_exposure(domus_stack *stack, void *self, const void *payload)
{
    if (offered_ns == 0 && domi_loans_count_shared_houses(&victim_thread()->manager) != 0)
        offered_ns = domt_stepped_now_ns(&world) - began_ns;
    domt_stepped_advance_clock(&world, LONG_NS);
    return 0;
}

static const domus_behaviour slow = {
    .name = "slow", .on = (const domus_on[]){{&poke, run_long_and_record_exposure, 0}, {0}}};

/* When the phase begins, the thread does not know how long runs take. If it first looked after 16
 * runs, the first house would be exposed only after 320 ms. */
DOMT_TEST(long_houses_are_exposed_after_the_first_run)
{
    domus_address many[MANY];

    open_world_of_two_threads();
    for (int i = 0; i < MANY; i++)
        many[i] = domt_spawn(world.system, 0, &slow, NULL);
    domt_stepped_iterate(&world, 0, false);
    for (int i = 0; i < MANY; i++)
        domt_send_notice(world.system, many[i], &poke, NULL);
    atomic_store(&victim_thread()->manager.loans.thieves, 1);
    victim_thread()->stealing.run_ns = 0;
    began_ns = domt_stepped_now_ns(&world);
    for (int i = 0; i < 3; i++)
        domt_stepped_iterate(&world, 0, false);
    ck_assert_uint_eq(offered_ns, LONG_NS);
    atomic_store(&victim_thread()->manager.loans.thieves, 0);
    (void)domi_loans_take_houses_back(&victim_thread()->manager, get_state_queue_of_victim());
    domt_stepped_fini(&world);
}

/* A phase that ends before its first look still adds its runs to the mean time of a run. */
DOMT_TEST(mean_run_is_known_after_a_phase_without_a_look)
{
    domus_address few[3];

    open_world_of_two_threads();
    for (int i = 0; i < 3; i++)
        few[i] = domt_spawn(world.system, 0, &slow, NULL);
    domt_stepped_iterate(&world, 0, false);
    victim_thread()->stealing.run_ns = 0;
    for (int i = 0; i < 3; i++)
        domt_send_notice(world.system, few[i], &poke, NULL);
    domt_stepped_iterate(&world, 0, false);
    ck_assert_uint_eq(victim_thread()->stealing.run_ns,
                      LONG_NS / 4); /* the mean goes a quarter of the way from 0 to LONG_NS */
    domt_stepped_fini(&world);
}

DOMT_TEST(home_looks_as_often_as_the_mean_run_says)
{
    open_world_of_two_threads();
    domi_thread *home = victim_thread();
    static const struct {
        uint64_t run_ns;
        uint32_t houses;
    } rows[] = {{0, 16},    {300, 16},  {3125, 16}, {3126, 15},
                {10000, 5}, {49999, 1}, {50000, 1}, {20 * DOMT_MS, 1}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        home->stealing.run_ns = rows[i].run_ns;
        ck_assert_uint_eq(domi_thread_count_runs_before_first_look(home, FLOOR), rows[i].houses);
        ck_assert_uint_eq(domi_thread_count_runs_before_first_look(home, FLOOR + 1), 1);
        ck_assert_uint_eq(domi_thread_count_runs_before_next_look(home, 16), rows[i].houses);
    }
    home->stealing.run_ns = 0; /* if no mean is known, each look comes after twice as many runs */
    for (uint32_t houses = 1; houses < 16; houses *= 2)
        ck_assert_uint_eq(domi_thread_count_runs_before_next_look(home, houses), 2 * houses);
    world.system->config.scheduler.steal.enabled = false;
    ck_assert_uint_eq(domi_thread_count_runs_before_first_look(home, 1000), 16);
    domt_stepped_fini(&world);
}

DOMT_SUITE(60)
