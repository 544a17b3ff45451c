/* runtime/control/cpu_profile.c: a profile says which behaviours and functions use the CPU, is
 * refused where it cannot be taken, and ends with its system. */
#include "tests/runtime/cpu.h"
#include "tests/runtime/program.h"

#include <domus/blocking.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Returns the CPU time that this process has used; its threads outside of the system use little of
 * it. */
static uint64_t cpu_time_of_process_ns(void)
{
    struct timespec now;

    ck_assert_int_eq(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now), 0);
    return (uint64_t)now.tv_sec * 1000 * DOMT_MS + (uint64_t)now.tv_nsec;
}

/* On a busy machine a profile has few samples, so the test repeats it until there are enough. */
DOMT_TEST(samples_show_share_of_each_behaviour)
{
    ck_assert_int_eq(domus_cpu_profile_signal(), 0);
    domus_system *system = domt_cpu_start_busy_system();
    uint64_t all = 0, first = 0, second = 0, functions = 0, used_ns = 0;

    for (int i = 0; i < 60 && all < 500; i++) {
        uint64_t before_ns = cpu_time_of_process_ns();
        domus_cpu_profile *profile = domt_cpu_take_profile(system, 500, 997);
        used_ns += cpu_time_of_process_ns() - before_ns;
        domt_cpu_write_folded_stacks(profile);
        all += domt_cpu_summary_of_profile(profile).samples;
        ck_assert_uint_eq(domt_cpu_summary_of_profile(profile).dropped, 0);
        ck_assert_uint_eq(domt_cpu_summary_of_profile(profile).frequency, 997);
        ck_assert_uint_eq(domt_cpu_summary_of_profile(profile).threads, 1);
        ck_assert_uint_ge(domt_cpu_summary_of_profile(profile).wall_ns, 500 * DOMT_MS);
        first += domt_cpu_sum_samples_of_lines("busy;");
        second += domt_cpu_sum_samples_of_lines("less:busy;");
        functions +=
            domt_cpu_sum_samples_of_lines("busy;on_go_burn_much;burn_much;domt_cpu_keep_busy");
        functions += domt_cpu_sum_samples_of_lines(
            "less:busy;on_go_burn_little;burn_little;domt_cpu_keep_busy");
        domus_cpu_profile_free(profile);
    }
    ck_assert_msg(all >= 500, "%llu samples", (unsigned long long)all);
    ck_assert_msg(first >= 2 * second && first <= 5 * second, "%llu and %llu of %llu:\n%s",
                  (unsigned long long)first, (unsigned long long)second, (unsigned long long)all,
                  domt_cpu_text);
    ck_assert_uint_ge(first + second, all * 9 / 10);
    /* The lower bound holds also where the kernel has fewer than 997 ticks a second.
     * ThreadSanitizer delivers signals late, and only the last one of them, so it gets no lower
     * bound. */
    ck_assert_uint_le(all, used_ns * 997 / 1000 / DOMT_MS * 3 / 2);
    if (!DOMT_TSAN)
        ck_assert_uint_ge(all, used_ns * 997 / 1000 / DOMT_MS / 2);
    ck_assert_msg(functions >= (first + second) * 9 / 10, "%llu of %llu:\n%s",
                  (unsigned long long)functions, (unsigned long long)(first + second),
                  domt_cpu_text);
    domt_end_system(system);
}

/* Returns the number of timers that the kernel lists for this process; 0 where it lists none. */
static uint32_t count_timers_of_process(void)
{
    FILE *list = fopen("/proc/self/timers", "re");
    char line[256];
    uint32_t count = 0;

    while (list != NULL && fgets(line, sizeof line, list) != NULL)
        count += strncmp(line, "ID:", 3) == 0;
    if (list != NULL)
        fclose(list);
    return count;
}

DOMT_TEST(profile_leaves_no_timer_in_the_kernel)
{
    ck_assert_int_eq(domus_cpu_profile_signal(), 0);
    domus_system *system = domt_start_system_of_threads(2);

    ck_assert_uint_eq(count_timers_of_process(), 0);
    for (int i = 0; i < 3; i++)
        domus_cpu_profile_free(domt_cpu_take_profile(system, 20, 100));
    ck_assert_uint_eq(count_timers_of_process(), 0);
    domt_end_system(system);
}

DOMT_TEST(graph_is_xml_and_names_both_behaviours)
{
    ck_assert_int_eq(domus_cpu_profile_signal(), 0);
    domus_system *system = domt_cpu_start_busy_system();
    domus_cpu_profile *profile = domt_cpu_take_profile(system, 1000, 0);

    domt_end_system(system); /* a profile can still be written after its system has ended */
    domt_cpu_length = 0;
    ck_assert_int_eq(domus_cpu_profile_write_svg(profile, domt_cpu_append_piece_to_text, NULL), 0);
    ck_assert_ptr_nonnull(strstr(domt_cpu_text, "<title>busy: "));
    ck_assert_ptr_nonnull(strstr(domt_cpu_text, "<title>less:busy: "));
    ck_assert_ptr_nonnull(strstr(domt_cpu_text, " samples at 99 Hz of 1 threads in 1."));
    FILE *parser = popen("timeout 60 /usr/bin/python3 -c 'import sys, xml.dom.minidom as m; "
                         "m.parse(sys.stdin.buffer)'",
                         "w");
    ck_assert_ptr_nonnull(parser);
    ck_assert_uint_eq(fwrite(domt_cpu_text, 1, domt_cpu_length, parser), domt_cpu_length);
    ck_assert_int_eq(pclose(parser), 0);
    domus_cpu_profile_free(profile);
    domus_cpu_profile_free(NULL);
}

DOMT_TEST(runners_of_pools_are_sampled)
{
    ck_assert_int_eq(domus_cpu_profile_signal(), 0);
    domt_pooled_start_with_policy("sharing", 2, 1);
    domt_cpu_much = domt_pooled_spawn(domt_pooled.pool, &domt_cpu_busy, NULL);
    domt_cpu_little = domt_pooled_spawn(domt_pooled.pool, &domt_cpu_less_busy, NULL);
    domt_send_notice(domt_pooled.system, domt_cpu_much, &domt_cpu_go, NULL);
    uint64_t all = 0, first = 0;

    for (int i = 0; i < 60 && all < 100; i++) {
        domus_cpu_profile *profile = domt_cpu_take_profile(domt_pooled.system, 500, 500);
        domt_cpu_write_folded_stacks(profile);
        all += domt_cpu_summary_of_profile(profile).samples;
        first += domt_cpu_sum_samples_of_lines("busy;on_go_burn_much;burn_much;domt_cpu_keep_busy");
        ck_assert_uint_eq(domt_cpu_summary_of_profile(profile).threads, 3);
        domus_cpu_profile_free(profile);
    }
    ck_assert_uint_ge(all, 100);
    ck_assert_msg(first >= all / 2, "%llu of %llu:\n%s", (unsigned long long)first,
                  (unsigned long long)all, domt_cpu_text);
    domt_end_system(domt_pooled.system);
}

static atomic_bool holds;

static int block_thread_while_held(domus_stack *stack, void *self, const void *payload)
{
    while (atomic_load(&holds))
        domt_pause_ns(DOMT_MS);
    return 0;
}

static const domus_behaviour blocker = {
    .name = "blocker", .on = (const domus_on[]){{&domt_cpu_go, block_thread_while_held, 0}, {0}}};

static domus_cpu_profile *beside;

static void *take_second_profile_beside(void *system)
{
    beside = domt_cpu_take_profile(system, 1500, 500);
    return NULL;
}

/* The only runner of the pool blocks, so a spare begins during the profile and runs the other
 * actors. */
DOMT_TEST(runner_that_begins_meanwhile_is_sampled)
{
    const domus_pool_config work = {.name = "work", .runners = 1, .policy = "sharing", .spares = 1};
    domus_config config = domt_config_of_threads(1);
    pthread_t thread;

    ck_assert_int_eq(domus_cpu_profile_signal(), 0);
    config.pools = &work;
    config.pool_count = 1;
    domt_pooled.system = domt_start_system(&config);
    domt_pooled.pool = domus_outside_pool_find(domt_pooled.system, "work");
    domt_cpu_much = domt_pooled_spawn(domt_pooled.pool, &domt_cpu_busy, NULL);
    domt_cpu_little = domt_pooled_spawn(domt_pooled.pool, &domt_cpu_less_busy, NULL);
    domus_address blocking = domt_pooled_spawn(domt_pooled.pool, &blocker, NULL);
    atomic_store(&holds, true);
    ck_assert_int_eq(pthread_create(&thread, NULL, take_second_profile_beside, domt_pooled.system),
                     0);
    domt_pause_ns(100 * DOMT_MS);
    domt_send_notice(domt_pooled.system, blocking, &domt_cpu_go, NULL);
    domt_send_notice(domt_pooled.system, domt_cpu_much, &domt_cpu_go, NULL);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    atomic_store(&holds, false);
    domt_cpu_write_folded_stacks(beside);
    ck_assert_uint_eq(domt_cpu_summary_of_profile(beside).threads, 3);
    ck_assert_uint_ge(
        domt_cpu_sum_samples_of_lines("busy;on_go_burn_much;burn_much;domt_cpu_keep_busy"), 10);
    domus_cpu_profile_free(beside);
    domt_end_system(domt_pooled.system);
}

static int burn_cpu_in_mount(domus_stack *stack, void *self)
{
    domt_cpu_keep_busy(400 * DOMT_MS);
    return 0;
}

static const domus_behaviour slow_to_mount = {.name = "slow", .on_mount = burn_cpu_in_mount};

/* The library calls on_mount and handlers from different functions, so stacks must be cut at the
 * function of the behaviour. */
DOMT_TEST(stack_begins_with_a_function_of_the_behaviour)
{
    pthread_t thread;

    ck_assert_int_eq(domus_cpu_profile_signal(), 0);
    domus_system *system = domt_start_system_of_threads(1);
    ck_assert_int_eq(pthread_create(&thread, NULL, take_second_profile_beside, system), 0);
    domt_pause_ns(100 * DOMT_MS);
    domt_spawn(system, 0, &slow_to_mount, NULL);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    domt_cpu_write_folded_stacks(beside);
    ck_assert_uint_ge(domt_cpu_sum_samples_of_lines("slow;"), 10);
    ck_assert_uint_eq(domt_cpu_sum_samples_of_lines("slow;"),
                      domt_cpu_sum_samples_of_lines("slow;burn_cpu_in_mount;"));
    domus_cpu_profile_free(beside);
    domt_end_system(system);
}

DOMT_TEST(threads_that_sleep_have_no_samples)
{
    ck_assert_int_eq(domus_cpu_profile_signal(), 0);
    domus_system *system = domt_start_system_of_threads(3);

    domt_pause_ns(50 * DOMT_MS);
    domus_cpu_profile *profile = domt_cpu_take_profile(system, 300, 100);
    ck_assert_uint_eq(domt_cpu_summary_of_profile(profile).threads, 3);
    ck_assert_uint_le(domt_cpu_summary_of_profile(profile).samples, 10);
    domt_cpu_write_folded_stacks(profile);
    domus_cpu_profile_free(profile);
    domt_end_system(system);
}

/* --- limits ----------------------------------------------------------------------------------- */

__attribute__((noinline)) static uint64_t recurse_and_burn_cpu(uint32_t levels)
{
    if (levels == 0) {
        domt_cpu_keep_busy(DOMT_MS);
        return 1;
    }
    uint64_t sum = recurse_and_burn_cpu(levels - 1);
    __asm__ volatile("" : "+r"(sum));
    return sum + 1;
}

static int recurse_deep_and_repeat(domus_stack *stack, void *self, const void *payload)
{
    ck_assert_uint_eq(recurse_and_burn_cpu(200), 201);
    (void)domus_notice(stack, domus_self(stack), &domt_cpu_go, NULL);
    return 0;
}

static const domus_behaviour diver = {
    .name = "diver", .on = (const domus_on[]){{&domt_cpu_go, recurse_deep_and_repeat, 0}, {0}}};

DOMT_TEST(deep_stacks_are_cut_and_samples_without_room_are_counted)
{
    const domus_cpu_profile_options options = {
        .duration_ns = 300 * DOMT_MS, .frequency = 1000, .bytes_max = 64 << 10};
    domus_cpu_profile_summary summary = {0};

    ck_assert_int_eq(domus_cpu_profile_signal(), 0);
    domus_system *system = domt_start_system_of_threads(1);
    domt_send_notice(system, domt_spawn(system, 0, &diver, NULL), &domt_cpu_go, NULL);
    for (uint64_t factor = 1; summary.dropped == 0; factor *= 2) {
        domus_cpu_profile_options longer = options;
        domus_cpu_profile *profile;
        longer.duration_ns *= factor;
        ck_assert_uint_le(factor, 64);
        ck_assert_int_eq(domus_cpu_profile_take(system, &longer, &profile), 0);
        summary = domt_cpu_summary_of_profile(profile);
        domt_cpu_write_folded_stacks(profile);
        domus_cpu_profile_free(profile);
    }
    /* a sample takes 66 words of 8 bytes, so at least this many have room */
    ck_assert_uint_ge(summary.samples, (64 << 10) / (66 * 8));
    ck_assert_uint_ge(
        domt_cpu_sum_samples_of_lines("diver;(cut);recurse_and_burn_cpu;recurse_and_burn_cpu;"),
        summary.samples / 2);
    domt_end_system(system);
}

/* --- what is refused, and ends ---------------------------------------------------------------- */

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
    domus_system *system = domt_start_system_of_threads(1);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(domus_cpu_profile_take(system, &wrong[i], &profile), -EINVAL);
    ck_assert_ptr_null(profile);
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        ck_assert_int_eq(domus_cpu_profile_take(system, &right[i], &profile), 0);
        domus_cpu_profile_free(profile);
    }
    domt_end_system(system);
}

/* --- who may take one ------------------------------------------------------------------------- */

static int take_profile_of_20_ms(void *system)
{
    const domus_cpu_profile_options options = {.duration_ns = 20 * DOMT_MS};
    domus_cpu_profile *profile;
    int result = domus_cpu_profile_take(system, &options, &profile);

    if (result == 0)
        domus_cpu_profile_free(profile);
    return result;
}

DOMT_TEST(profile_without_signal_handler_is_refused)
{
    const struct sigaction none = {.sa_handler = SIG_DFL};
    domus_system *system = domt_start_system_of_threads(1);

    ck_assert_int_eq(take_profile_of_20_ms(system), -ENOENT);
    ck_assert_int_eq(domus_cpu_profile_signal(), 0);
    ck_assert_int_eq(domus_cpu_profile_signal(), 0);
    ck_assert_int_eq(take_profile_of_20_ms(system), -EACCES);
    domt_end_system(system);
    ck_assert_int_eq(take_profile_of_20_ms(system = domt_start_system_of_threads(1)), 0);
    ck_assert_int_eq(sigaction(SIGPROF, &none, NULL), 0);
    ck_assert_int_eq(take_profile_of_20_ms(system), -ENOENT);
    domt_end_system(system);
}

static void ignore_sigprof(int number)
{
}

DOMT_TEST(sigprof_handler_of_the_program_stays)
{
    struct sigaction own = {.sa_handler = ignore_sigprof};
    struct sigaction after;

    sigemptyset(&own.sa_mask);
    ck_assert_int_eq(sigaction(SIGPROF, &own, NULL), 0);
    ck_assert_int_eq(domus_cpu_profile_signal(), -EBUSY);
    ck_assert_int_eq(sigaction(SIGPROF, NULL, &after), 0);
    ck_assert(after.sa_handler == ignore_sigprof);
    own.sa_handler = SIG_IGN;
    ck_assert_int_eq(sigaction(SIGPROF, &own, NULL), 0);
    ck_assert_int_eq(domus_cpu_profile_signal(), -EBUSY);
}

static int take_profile_and_quit(domus_system *system, void *argument)
{
    domus_main_quit(take_profile_of_20_ms(system) == 0 ? 7 : 8);
    return 0;
}

DOMT_TEST(programs_of_domus_main_have_the_handler)
{
    const domus_program program = {.name = "profiled", .start = take_profile_and_quit};
    domt_program own;

    domt_program_check_exit(&own, &program, 7, NULL);
}

static _Atomic int handler_result, worker_result;

static int record_result_of_profile(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_store(&worker_result,
                 answer->error != 0 ? answer->error : *(const int *)answer->payload);
    return 0;
}

static int take_profile_in_handler_and_in_work(domus_stack *stack, void *self, const void *system)
{
    atomic_store(&handler_result, take_profile_of_20_ms(*(domus_system *const *)system));
    return domus_blocking(stack, take_profile_of_20_ms, *(domus_system *const *)system,
                          record_result_of_profile);
}

static const domus_type take_type = {.name = "take", .size = sizeof(domus_system *)};
static const domus_behaviour taker = {
    .name = "taker",
    .on = (const domus_on[]){{&take_type, take_profile_in_handler_and_in_work, 0}, {0}}};

DOMT_TEST(actor_takes_profile_only_by_blocking_work)
{
    ck_assert_int_eq(domus_cpu_profile_signal(), 0);
    domus_system *system = domt_start_system_of_threads(1);

    atomic_store(&handler_result, 1);
    atomic_store(&worker_result, 1);
    domt_send_notice(system, domt_spawn(system, 0, &taker, NULL), &take_type, &system);
    DOMT_WAIT_FOR(30, atomic_load(&worker_result) != 1);
    ck_assert_int_eq(atomic_load(&handler_result), -EDEADLK);
    ck_assert_int_eq(atomic_load(&worker_result), 0);
    domt_end_system(system);
}

static domus_cpu_profile *long_profile;

static void *take_profile_of_one_hour(void *system)
{
    const domus_cpu_profile_options options = {.duration_ns = 3600 * 1000 * DOMT_MS};

    int result;

    do /* repeat until the other thread has begun its profile */
        result = domus_cpu_profile_take(system, &options, &long_profile);
    while (result == -EBUSY);
    ck_assert_int_eq(result, 0);
    return NULL;
}

DOMT_TEST(one_profile_is_taken_at_a_time_and_a_stop_ends_it)
{
    pthread_t thread;

    ck_assert_int_eq(domus_cpu_profile_signal(), 0);
    domus_system *system = domt_cpu_start_busy_system();
    domus_system *other = domt_start_system_of_threads(1);
    ck_assert_int_eq(pthread_create(&thread, NULL, take_profile_of_one_hour, system), 0);
    DOMT_WAIT_FOR(30, take_profile_of_20_ms(other) == -EBUSY);
    ck_assert_int_eq(take_profile_of_20_ms(system), -EBUSY);
    domt_pause_ns(200 * DOMT_MS);
    ck_assert_int_eq(domus_system_stop(system), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_lt(domt_cpu_summary_of_profile(long_profile).wall_ns, 60 * 1000 * DOMT_MS);
    domt_cpu_write_folded_stacks(long_profile);
    ck_assert_uint_ge(domt_cpu_sum_samples_of_lines("busy;"), 1);
    domus_cpu_profile_free(long_profile);
    ck_assert_int_eq(take_profile_of_20_ms(system), -ESHUTDOWN);
    ck_assert_int_eq(take_profile_of_20_ms(other), 0);
    domus_system_free(system);
    domt_end_system(other);
}

static bool is_over_at_third_look(void *looks)
{
    return ++*(int *)looks == 3;
}

DOMT_TEST(any_thread_may_end_a_profile)
{
    int looks = 0;
    const domus_cpu_profile_options options = {
        .duration_ns = 60 * 1000 * DOMT_MS, .is_over = is_over_at_third_look, .context = &looks};
    domus_cpu_profile *profile;

    ck_assert_int_eq(domus_cpu_profile_signal(), 0);
    domus_system *system = domt_start_system_of_threads(1);
    ck_assert_int_eq(domus_cpu_profile_take(system, &options, &profile), 0);
    ck_assert_int_eq(looks, 3);
    ck_assert_uint_lt(domt_cpu_summary_of_profile(profile).wall_ns, 30 * 1000 * DOMT_MS);
    domus_cpu_profile_free(profile);
    domt_end_system(system);
}

/* The handler for the profile's signal ignores signals that others send, also during a profile.
 * This thread blocks the signal, so the kernel delivers it to threads of the system. */
DOMT_TEST(sigprof_from_elsewhere_is_no_sample)
{
    pthread_t thread;
    uint64_t until_ns;
    sigset_t only;

    sigemptyset(&only);
    sigaddset(&only, SIGPROF);
    ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, &only, NULL), 0);
    ck_assert_int_eq(domus_cpu_profile_signal(), 0);
    domus_system *system = domt_start_system_of_threads(2);
    domus_system *other = domt_start_system_of_threads(1);
    domt_pause_ns(50 * DOMT_MS);
    ck_assert_int_eq(pthread_create(&thread, NULL, take_profile_of_one_hour, system), 0);
    DOMT_WAIT_FOR(30, take_profile_of_20_ms(other) == -EBUSY);
    until_ns = domt_now_ns() + 200 * DOMT_MS;
    while (domt_now_ns() < until_ns) {
        ck_assert_int_eq(kill(getpid(), SIGPROF), 0);
        domt_pause_ns(100000);
    }
    ck_assert_int_eq(domus_system_stop(system), 0);
    /* wait for the thread, which uses the system until it ends */
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    domt_end_system(system);
    ck_assert_uint_le(domt_cpu_summary_of_profile(long_profile).samples, 100);
    domus_cpu_profile_free(long_profile);
    domt_end_system(other);
}

DOMT_SUITE(120)
