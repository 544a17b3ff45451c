/* runtime/control/cpu_profile.c: a profile is refused where it cannot be taken, and ends with its
 * system. */
#include "tests/runtime/cpu.h"
#include "tests/runtime/program.h"

#include <domus/blocking.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static domus_system *start(uint32_t threads)
{
    const domus_config config = domt_config(threads);

    return domt_start(&config);
}

DOMT_TEST(options_out_of_range_are_refused)
{
    static const domus_cpu_profile_options wrong[] = {
        {.duration_ns = 10 * DOMT_MS - 1},
        {.duration_ns = 3600 * 1000 * DOMT_MS + 1},
        {.frequency = 1001},
        {.bytes_max = (64 << 10) - 1},
        {.bytes_max = (256 << 20) + 1},
    };
    static const domus_cpu_profile_options right[] = {
        {.duration_ns = 10 * DOMT_MS, .frequency = 1, .bytes_max = 64 << 10},
        {.duration_ns = 20 * DOMT_MS, .frequency = 1000, .bytes_max = 256 << 20},
    };
    domus_cpu_profile *profile = NULL;

    ck_assert_int_eq(domus_cpu_profile_signal(), 0);
    domus_system *system = start(1);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(domus_cpu_profile_take(system, &wrong[i], &profile), -EINVAL);
    ck_assert_ptr_null(profile);
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        ck_assert_int_eq(domus_cpu_profile_take(system, &right[i], &profile), 0);
        domus_cpu_profile_free(profile);
    }
    domt_end(system);
}

/* --- who may take one ------------------------------------------------------------------------- */

static int take_short(void *system)
{
    const domus_cpu_profile_options options = {.duration_ns = 20 * DOMT_MS};
    domus_cpu_profile *profile;
    int result = domus_cpu_profile_take(system, &options, &profile);

    if (result == 0)
        domus_cpu_profile_free(profile);
    return result;
}

DOMT_TEST(without_the_handler_there_is_none)
{
    const struct sigaction none = {.sa_handler = SIG_DFL};
    domus_system *system = start(1);

    ck_assert_int_eq(take_short(system), -ENOENT);
    ck_assert_int_eq(domus_cpu_profile_signal(), 0);
    ck_assert_int_eq(domus_cpu_profile_signal(), 0);
    ck_assert_int_eq(take_short(system), -EACCES);
    domt_end(system);
    ck_assert_int_eq(take_short(system = start(1)), 0);
    ck_assert_int_eq(sigaction(SIGPROF, &none, NULL), 0);
    ck_assert_int_eq(take_short(system), -ENOENT);
    domt_end(system);
}

static void handle_own(int number)
{
}

DOMT_TEST(handler_of_the_program_stays)
{
    struct sigaction own = {.sa_handler = handle_own};
    struct sigaction after;

    sigemptyset(&own.sa_mask);
    ck_assert_int_eq(sigaction(SIGPROF, &own, NULL), 0);
    ck_assert_int_eq(domus_cpu_profile_signal(), -EBUSY);
    ck_assert_int_eq(sigaction(SIGPROF, NULL, &after), 0);
    ck_assert(after.sa_handler == handle_own);
    own.sa_handler = SIG_IGN;
    ck_assert_int_eq(sigaction(SIGPROF, &own, NULL), 0);
    ck_assert_int_eq(domus_cpu_profile_signal(), -EBUSY);
}

static int profile_and_quit(domus_system *system, void *argument)
{
    domus_main_quit(take_short(system) == 0 ? 7 : 8);
    return 0;
}

DOMT_TEST(programs_of_domus_main_have_the_handler)
{
    const domus_program program = {.name = "profiled", .start = profile_and_quit};
    domt_program own;

    ck_assert_int_eq(domt_program_run(&own, &program, domt_no_arguments), 7);
}

static _Atomic int handler_result, worker_result;

static int on_finished(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_store(&worker_result,
                 answer->error != 0 ? answer->error : *(const int *)answer->payload);
    return 0;
}

static int on_take(domus_stack *stack, void *self, const void *system)
{
    atomic_store(&handler_result, take_short(*(domus_system *const *)system));
    return domus_blocking(stack, take_short, *(domus_system *const *)system, on_finished);
}

static const domus_type take_type = {.name = "take", .size = sizeof(domus_system *)};
static const domus_behaviour taker = {.name = "taker",
                                      .on = (const domus_on[]){{&take_type, on_take, 0}, {0}}};

DOMT_TEST(handler_takes_one_by_blocking_work)
{
    ck_assert_int_eq(domus_cpu_profile_signal(), 0);
    domus_system *system = start(1);

    atomic_store(&handler_result, 1);
    atomic_store(&worker_result, 1);
    domt_notice(system, domt_spawn(system, 0, &taker, NULL), &take_type, &system);
    DOMT_WAIT_FOR(30, atomic_load(&worker_result) != 1);
    ck_assert_int_eq(atomic_load(&handler_result), -EDEADLK);
    ck_assert_int_eq(atomic_load(&worker_result), 0);
    domt_end(system);
}

static domus_cpu_profile *long_profile;

static void *take_long(void *system)
{
    const domus_cpu_profile_options options = {.duration_ns = 3600 * 1000 * DOMT_MS};

    int result;

    do /* while the test looks whether this has begun */
        result = domus_cpu_profile_take(system, &options, &long_profile);
    while (result == -EBUSY);
    ck_assert_int_eq(result, 0);
    return NULL;
}

DOMT_TEST(one_is_taken_at_a_time_and_a_stop_ends_it)
{
    pthread_t thread;

    ck_assert_int_eq(domus_cpu_profile_signal(), 0);
    domus_system *system = domt_cpu_start_busy();
    domus_system *other = start(1);
    ck_assert_int_eq(pthread_create(&thread, NULL, take_long, system), 0);
    DOMT_WAIT_FOR(30, take_short(other) == -EBUSY);
    ck_assert_int_eq(take_short(system), -EBUSY);
    domt_pause_ns(200 * DOMT_MS);
    ck_assert_int_eq(domus_system_stop(system), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_lt(domt_cpu_sum_of(long_profile).wall_ns, 60 * 1000 * DOMT_MS);
    domt_cpu_fold(long_profile);
    ck_assert_uint_ge(domt_cpu_samples_of("busy;"), 1);
    domus_cpu_profile_free(long_profile);
    ck_assert_int_eq(take_short(system), -ESHUTDOWN);
    ck_assert_int_eq(take_short(other), 0);
    domus_system_free(system);
    domt_end(other);
}

static bool is_over_at_three(void *looks)
{
    return ++*(int *)looks == 3;
}

DOMT_TEST(whoever_takes_one_may_end_it)
{
    int looks = 0;
    const domus_cpu_profile_options options = {
        .duration_ns = 60 * 1000 * DOMT_MS, .is_over = is_over_at_three, .context = &looks};
    domus_cpu_profile *profile;

    ck_assert_int_eq(domus_cpu_profile_signal(), 0);
    domus_system *system = start(1);
    ck_assert_int_eq(domus_cpu_profile_take(system, &options, &profile), 0);
    ck_assert_int_eq(looks, 3);
    ck_assert_uint_lt(domt_cpu_sum_of(profile).wall_ns, 30 * 1000 * DOMT_MS);
    domus_cpu_profile_free(profile);
    domt_end(system);
}

/* The handler ignores what others send, also while a profile is taken. This thread blocks the
 * signal, so the kernel gives it to threads of the system. */
DOMT_TEST(signals_of_others_are_no_samples)
{
    pthread_t thread;
    uint64_t until_ns;
    sigset_t only;

    sigemptyset(&only);
    sigaddset(&only, SIGPROF);
    ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, &only, NULL), 0);
    ck_assert_int_eq(domus_cpu_profile_signal(), 0);
    domus_system *system = start(2);
    domus_system *other = start(1);
    domt_pause_ns(50 * DOMT_MS);
    ck_assert_int_eq(pthread_create(&thread, NULL, take_long, system), 0);
    DOMT_WAIT_FOR(30, take_short(other) == -EBUSY);
    until_ns = domt_now_ns() + 200 * DOMT_MS;
    while (domt_now_ns() < until_ns) {
        ck_assert_int_eq(kill(getpid(), SIGPROF), 0);
        domt_pause_ns(100000);
    }
    domt_end(system);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_le(domt_cpu_sum_of(long_profile).samples, 100);
    domus_cpu_profile_free(long_profile);
    domt_end(other);
}

DOMT_SUITE(120)
