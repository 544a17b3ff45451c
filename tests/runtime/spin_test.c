/* runtime/loop/spin.c: a thread spins before it parks as long as that pays, and no longer. The
 * threads are real, and the bounds are such that they hold on a busy machine, too. */
#include "tests/runtime/running.h"

#include "runtime/system/system.h"

#include <sched.h>

#define SPIN_NS (50 * DOMT_MS)

static const domus_type poke_type = {.name = "poke"};
static _Atomic uint64_t poked;

static int count_handled_poke(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&poked, 1);
    return 0;
}

static const domus_behaviour target = {
    .name = "target", .on = (const domus_on[]){{&poke_type, count_handled_poke, 0}, {0}}};

static domus_system *system_;
static domus_address address;

static void start_system_that_spins(uint64_t spin_ns)
{
    domus_config config = domt_config_of_threads(1);
    config.scheduler.idle.spin_ns = spin_ns;
    system_ = domt_start_system(&config);
    address = domt_spawn(system_, 0, &target, NULL);
}

/* Send `times` pokes to an actor, one after each `pause_ns`. Returns how long its thread has
 * searched for work meanwhile. */
static uint64_t searched_time_with_poke_every(uint64_t pause_ns, int times)
{
    uint64_t before = domt_profile_of_thread(system_, 0).phase_ns[DOMUS_PHASE_OTHER];

    for (int i = 0; i < times; i++) {
        uint64_t expected = atomic_load(&poked) + 1;
        domt_pause_ns(pause_ns);
        domt_send_notice(system_, address, &poke_type, NULL);
        while (atomic_load(&poked) != expected)
            sched_yield();
    }
    return domt_profile_of_thread(system_, 0).phase_ns[DOMUS_PHASE_OTHER] - before;
}

static void wait_until_thread_is_asleep(void)
{
    DOMT_WAIT_FOR(10, atomic_load(&system_->threads[0].manager.park) == DOMI_PARK_SLEEPING);
}

DOMT_TEST(message_that_comes_soon_is_caught_and_the_spin_ends_in_time)
{
    start_system_that_spins(SPIN_NS);
    domus_profile before = domt_profile_of_thread(system_, 0);
    (void)searched_time_with_poke_every(0, 200);
    domus_profile after = domt_profile_of_thread(system_, 0);
    /* the spinning thread has noticed nearly all messages without parking */
    ck_assert_uint_le(after.parks - before.parks, 100);
    ck_assert_uint_le(after.wakeups_received - before.wakeups_received,
                      after.parks - before.parks + 1);
    wait_until_thread_is_asleep();
    domt_end_system(system_);
}

DOMT_TEST(a_quiet_thread_soon_spins_no_more)
{
    start_system_that_spins(SPIN_NS);
    wait_until_thread_is_asleep();
    uint64_t spun_ns = searched_time_with_poke_every(2 * SPIN_NS, 8);
    /* each spin that finds nothing halves the next one, so the sum is at most 1 + 1/2 + 1/4 + ...,
     * and not 8 times the full spin */
    ck_assert_uint_le(spun_ns, 2 * SPIN_NS);
    wait_until_thread_is_asleep();
    domt_end_system(system_);
}

DOMT_TEST(a_thread_that_is_woken_soon_spins_anew)
{
    start_system_that_spins(SPIN_NS);
    wait_until_thread_is_asleep();
    system_->threads[0].spin_ns = 0; /* the time of a spin after the thread was quiet for long */
    uint64_t spun_ns = searched_time_with_poke_every(DOMT_MS, 100);
    ck_assert_uint_ge(spun_ns, 10 * DOMT_MS);
    ck_assert_uint_eq(system_->threads[0].config->scheduler.idle.spin_ns, SPIN_NS);
    wait_until_thread_is_asleep();
    domt_end_system(system_);
}

DOMT_TEST(without_spin_a_thread_parks_at_once)
{
    start_system_that_spins(0);
    wait_until_thread_is_asleep();
    domus_profile before = domt_profile_of_thread(system_, 0);
    (void)searched_time_with_poke_every(DOMT_MS, 50);
    ck_assert_uint_ge(domt_profile_of_thread(system_, 0).parks - before.parks, 40);
    domt_end_system(system_);
}

DOMT_TEST(automatic_spin_is_none_where_cpus_are_few)
{
    domus_config config = domt_config_of_threads(1);
    config.scheduler.idle.spin_ns = DOMUS_SPIN_AUTO;
    system_ = domt_start_system(&config);
    uint64_t expected = system_->cpus.few ? 0 : 20000;
    ck_assert_uint_eq(system_->config.scheduler.idle.spin_ns, expected);
    domt_end_system(system_);
}

DOMT_SUITE(30)
