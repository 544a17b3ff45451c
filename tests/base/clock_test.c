/* base/clock.c: the TSC agrees with CLOCK_MONOTONIC, time does not go back, and the virtual clock
 * stands still. domi_clock_read_without_tsc() of a real clock reads CLOCK_MONOTONIC itself; the
 * fast way is held against it. */
#include "base/clock.h"

#include "tests/support/suite.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define NS_PER_MS   UINT64_C(1000000)
#define MEASURED_NS (50 * NS_PER_MS)
#define ATTEMPTS    32

struct pair {
    uint64_t fast;
    uint64_t slow;
};

/* Read the fast and the slow clock at nearly the same moment: of several attempts the one with the
 * smallest gap counts. */
static struct pair read_both_clocks_at_once(const domi_clock *clock)
{
    struct pair best = {0};
    uint64_t gap_min = UINT64_MAX;

    for (int i = 0; i < ATTEMPTS; i++) {
        uint64_t before = domi_clock_read_without_tsc(clock);
        uint64_t fast = domi_clock_now(clock);
        uint64_t gap = domi_clock_read_without_tsc(clock) - before;

        if (gap < gap_min) {
            gap_min = gap;
            best = (struct pair){.fast = fast, .slow = before + gap / 2};
        }
    }
    return best;
}

static uint64_t compute_distance_of_times(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static void wait_by_slow_clock(const domi_clock *clock, uint64_t ns)
{
    uint64_t start = domi_clock_read_without_tsc(clock);

    while (domi_clock_read_without_tsc(clock) - start < ns)
        ;
}

DOMT_TEST(clock_rate_matches_monotonic_within_a_thousandth)
{
    domi_clock clock;

    domi_clock_init(&clock);
    struct pair first = read_both_clocks_at_once(&clock);
    wait_by_slow_clock(&clock, MEASURED_NS);
    struct pair last = read_both_clocks_at_once(&clock);

    uint64_t slow_ns = last.slow - first.slow;
    ck_assert_uint_ge(slow_ns, MEASURED_NS);
    ck_assert_uint_le(compute_distance_of_times(last.fast - first.fast, slow_ns), slow_ns / 1000);
}

DOMT_TEST(clock_shows_same_time_as_slow_read)
{
    domi_clock clock;

    domi_clock_init(&clock);
    struct pair both = read_both_clocks_at_once(&clock);
    /* The clock's calibration took 2 ms. An error of a thousandth of that, and the gap between the
     * two reads, are allowed. */
    ck_assert_uint_le(compute_distance_of_times(both.fast, both.slow), NS_PER_MS / 100);
}

DOMT_TEST(clock_without_tsc_reads_monotonic)
{
    domi_clock clock, slow;

    domi_clock_init(&clock);
    slow = clock;
    slow.has_tsc = false;
    for (int i = 0; i < 1000; i++) {
        uint64_t before = domi_clock_read_without_tsc(&clock);
        uint64_t now = domi_clock_now(&slow);
        uint64_t after = domi_clock_read_without_tsc(&clock);
        ck_assert_uint_ge(now, before);
        ck_assert_uint_le(now, after);
    }
    ck_assert(!clock.is_virtual);
}

DOMT_TEST(clock_never_goes_back_on_one_thread)
{
    domi_clock clock;

    domi_clock_init(&clock);
    uint64_t last = domi_clock_now(&clock);
    int backwards = 0;
    for (int i = 0; i < 1000000; i++) {
        uint64_t now = domi_clock_now(&clock);
        backwards += now < last;
        last = now;
    }
    ck_assert_int_eq(backwards, 0);
}

/* Two threads read the clock in turn. A read of the TSC may run a little ahead of the load before
 * it, so a microsecond is allowed; clocks of two CPUs that differ would differ by more. */
#define TURNS     20000
#define TURNS_MIN 100 /* how many turns a busy machine must manage within ENOUGH_NS */
#define ENOUGH_NS (3000 * NS_PER_MS)
#define SLACK_NS  1000

struct relay {
    domi_clock clock;
    atomic_uint turn;
    uint64_t last_ns; /* the time that the other thread has read in the last turn */
    uint64_t until_ns;
    atomic_uint backwards;
};

struct runner {
    struct relay *relay;
    unsigned parity;
};

static void *read_clock_in_turns(void *runner_)
{
    struct runner *runner = runner_;
    struct relay *relay = runner->relay;

    for (unsigned turn = runner->parity; turn < TURNS; turn += 2) {
        unsigned looks = 0;

        /* acquire: pairs with the release below, so the last_ns that the other thread wrote is
         * seen. */
        for (;;) {
            unsigned whose = atomic_load_explicit(&relay->turn, memory_order_acquire);
            if (whose == TURNS)
                return NULL;
            if (whose == turn)
                break;
            if (++looks % 256 == 0)
                sched_yield();
        }
        uint64_t now = domi_clock_now(&relay->clock);
        if (now + SLACK_NS < relay->last_ns)
            atomic_fetch_add_explicit(&relay->backwards, 1, memory_order_relaxed);
        relay->last_ns = now;
        /* A turn may wait long for a CPU that other programs use, so the relay ends when its time
         * is over. */
        bool is_over = turn >= TURNS_MIN && now >= relay->until_ns;
        atomic_store_explicit(&relay->turn, is_over ? TURNS : turn + 1, memory_order_release);
    }
    return NULL;
}

DOMT_TEST(clock_is_monotonic_across_threads)
{
    struct relay relay = {.last_ns = 0};
    struct runner runners[2] = {{&relay, 0}, {&relay, 1}};
    pthread_t thread[2];

    domi_clock_init(&relay.clock);
    relay.until_ns = domi_clock_now(&relay.clock) + ENOUGH_NS;
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, read_clock_in_turns, &runners[i]), 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    ck_assert_uint_eq(atomic_load(&relay.backwards), 0);
    ck_assert_uint_eq(atomic_load(&relay.turn), TURNS);
}

DOMT_TEST(virtual_clock_stands_still_until_set)
{
    domi_clock clock, real;

    domi_clock_init(&real);
    domi_clock_init_virtual(&clock, 1000);
    ck_assert(clock.is_virtual);
    ck_assert_uint_eq(domi_clock_now(&clock), 1000);
    wait_by_slow_clock(&real, NS_PER_MS);
    ck_assert_uint_eq(domi_clock_now(&clock), 1000);

    domi_clock_advance_virtual(&clock, 0);
    ck_assert_uint_eq(domi_clock_now(&clock), 1000);
    domi_clock_advance_virtual(&clock, 5);
    ck_assert_uint_eq(domi_clock_now(&clock), 1005);
    ck_assert_uint_eq(domi_clock_read_without_tsc(&clock), 1005);
    domi_clock_advance_virtual(&clock, UINT64_MAX - 1005);
    ck_assert_uint_eq(domi_clock_now(&clock), UINT64_MAX);
}

DOMT_SUITE(20)
