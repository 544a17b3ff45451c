/* runtime/loop/observing.c: histograms of runs, waits, phases and deliveries, spans, and a
 * level of the profile that changes while the system runs. */
#include "tests/runtime/running.h"
#include "tests/runtime/traced.h"
#include "tests/support/crowd.h"

#include <domus/pipeline.h>
#include <domus/profile.h>
#include <domus/trace.h>

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define US UINT64_C(1000)

static const domus_type work_type = {.name = "work", .size = sizeof(uint64_t)};
static const domus_type ball_type = {.name = "ball", .size = sizeof(uint64_t)};
static _Atomic uint64_t worked;

static uint64_t cpu_time_of_thread_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Handle a message by using as much CPU time as it says. */
static int use_cpu_as_message_says(domus_stack *stack, void *self, const void *payload)
{
    uint64_t until_ns = cpu_time_of_thread_ns() + *(const uint64_t *)payload;

    while (cpu_time_of_thread_ns() < until_ns)
        continue;
    atomic_fetch_add(&worked, 1);
    return 0;
}

static const domus_behaviour worker = {
    .name = "worker", .on = (const domus_on[]){{&work_type, use_cpu_as_message_says, 0}, {0}}};

static domus_address partners[2];

static int pass_ball_to_partner(domus_stack *stack, void *self, const void *payload)
{
    uint64_t left = *(const uint64_t *)payload - 1;

    atomic_fetch_add(&worked, 1);
    return left == 0 ? 0
                     : domus_notice(stack, partners[domus_self(stack).house == partners[0].house],
                                    &ball_type, &left);
}

static const domus_behaviour player = {
    .name = "player", .on = (const domus_on[]){{&ball_type, pass_ball_to_partner, 0}, {0}}};

static domus_system *start_system(uint32_t threads, domus_profile_level level)
{
    domus_config config = domt_config_of_threads(threads);

    config.profile.level = level;
    atomic_store(&worked, 0);
    return domt_start_system(&config);
}

static domus_histogram histogram_of_thread(const domus_system *system, uint32_t thread,
                                           domus_histogram_kind kind)
{
    domus_histogram found;

    ck_assert_int_eq(domus_system_histogram(system, thread, kind, &found), 0);
    return found;
}

static uint64_t count_in_histogram(const domus_system *system, uint32_t thread,
                                   domus_histogram_kind kind)
{
    return histogram_of_thread(system, thread, kind).count;
}

/* Send an actor on thread 0 `times` messages, one for each run, and let it work for `time_ns` in
 * each. */
static void let_actor_work_so_often(domus_system *system, domus_address address, uint64_t times,
                                    uint64_t time_ns)
{
    uint64_t before = atomic_load(&worked);

    for (uint64_t i = 1; i <= times; i++) {
        domt_send_notice(system, address, &work_type, &time_ns);
        DOMT_WAIT_FOR(20, atomic_load(&worked) == before + i);
    }
}

/* Wait until thread 0 has followed the new level, so that it measures runs and has forgotten what
 * it measured before. */
static void wait_until_thread_measures_anew(domus_system *system, domus_address address)
{
    DOMT_WAIT_FOR(20, (let_actor_work_so_often(system, address, 1, 2 * DOMT_MS),
                       count_in_histogram(system, 0, DOMUS_HISTOGRAM_RUN) != 0));
}

DOMT_TEST(long_runs_are_each_measured)
{
    domus_system *system = start_system(1, DOMUS_PROFILE_HISTOGRAMS);
    domus_address address = domt_spawn(system, 0, &worker, NULL);

    wait_until_thread_measures_anew(system, address);
    domus_histogram before = histogram_of_thread(system, 0, DOMUS_HISTOGRAM_RUN);
    let_actor_work_so_often(system, address, 40, 2 * DOMT_MS);
    DOMT_WAIT_FOR(20, domt_profile_of_thread(system, 0).runs != 0);
    domt_pause_ns(20 * DOMT_MS);
    domus_histogram after = histogram_of_thread(system, 0, DOMUS_HISTOGRAM_RUN);
    domus_histogram_subtract(&after, &before);
    uint64_t median_ns = domus_histogram_quantile_ns(&after, 0.5);
    ck_assert_uint_ge(after.count, 30);
    ck_assert_uint_le(after.count, 60);
    ck_assert_uint_ge(median_ns, 19 * DOMT_MS / 10);
    /* a run may take longer than its 2 ms, because the thread may lose its CPU */
    ck_assert_uint_le(median_ns, 20 * DOMT_MS);
    domus_histogram state = histogram_of_thread(system, 0, DOMUS_HISTOGRAM_STATE);
    ck_assert_uint_ge(state.count, 40);
    ck_assert_uint_ge(state.sum_ns, 80 * DOMT_MS);
    ck_assert_uint_ge(histogram_of_thread(system, 0, DOMUS_HISTOGRAM_ITERATION).sum_ns,
                      80 * DOMT_MS);
    ck_assert_uint_ne(count_in_histogram(system, 0, DOMUS_HISTOGRAM_ENTER), 0);
    /* The times of iterations do not overlap, so their sum is at most the time that has passed. */
    uint64_t iterations_ns = histogram_of_thread(system, 0, DOMUS_HISTOGRAM_ITERATION).sum_ns;
    ck_assert_uint_le(iterations_ns, domt_profile_of_thread(system, 0).wall_ns);
    domt_end_system(system);
}

/* Short runs are sampled: a run that is measured counts for those that are not, by a weight. */
DOMT_TEST(sampled_short_runs_count_in_full_by_their_weight)
{
    domus_system *system = start_system(1, DOMUS_PROFILE_HISTOGRAMS);
    domus_address address = domt_spawn(system, 0, &worker, NULL);
    const uint64_t balls = 200000;

    for (int i = 0; i < 2; i++)
        partners[i] = domt_spawn(system, 0, &player, NULL);
    wait_until_thread_measures_anew(system, address);
    uint64_t runs = domt_profile_of_thread(system, 0).runs;
    uint64_t before = count_in_histogram(system, 0, DOMUS_HISTOGRAM_RUN);
    uint64_t until = atomic_load(&worked) + balls;
    domt_send_notice(system, partners[0], &ball_type, &balls);
    DOMT_WAIT_FOR(60, atomic_load(&worked) == until);
    runs = domt_profile_of_thread(system, 0).runs - runs;
    uint64_t counted = count_in_histogram(system, 0, DOMUS_HISTOGRAM_RUN) - before;
    ck_assert_uint_ge(runs, balls);
    ck_assert_msg(counted > runs * 9 / 10 && counted < runs * 11 / 10, "%llu runs count as %llu",
                  (unsigned long long)runs, (unsigned long long)counted);
    domt_end_system(system);
}

static const domus_type all_type = {.name = "all", .size = sizeof(uint64_t)};
static domus_address workers[3];

/* Send one message to each of the actors, and a second one to the last actor. */
static int send_work_to_all_actors(domus_stack *stack, void *self, const void *payload)
{
    int error = 0;

    for (int i = 0; i < 4 && error == 0; i++)
        error = domus_notice(stack, workers[i < 3 ? i : 2], &work_type, payload);
    return error;
}

static const domus_behaviour dealer = {
    .name = "dealer", .on = (const domus_on[]){{&all_type, send_work_to_all_actors, 0}, {0}}};

/* Four messages are put within one run. The last of them waits for three runs, because its actor
 * handles one message in a run and has another message before it. */
DOMT_TEST(wait_histogram_counts_the_runs_ahead_of_a_message)
{
    domus_config config = domt_config_of_threads(1);
    const uint64_t long_ns = 3 * DOMT_MS;

    config.profile.level = DOMUS_PROFILE_HISTOGRAMS;
    config.scheduler.messages_per_run_max = 1;
    atomic_store(&worked, 0);
    domus_system *system = domt_start_system(&config);
    domus_address address = domt_spawn(system, 0, &dealer, NULL);
    for (int i = 0; i < 3; i++)
        workers[i] = domt_spawn(system, 0, &worker, NULL);
    wait_until_thread_measures_anew(system, workers[0]);
    domus_histogram before = histogram_of_thread(system, 0, DOMUS_HISTOGRAM_WAIT);
    for (int i = 0; i < 20; i++) {
        uint64_t until = atomic_load(&worked) + 4;
        domt_send_notice(system, address, &all_type, &long_ns);
        DOMT_WAIT_FOR(60, atomic_load(&worked) == until);
    }
    domus_histogram after = histogram_of_thread(system, 0, DOMUS_HISTOGRAM_WAIT);
    domus_histogram_subtract(&after, &before);
    ck_assert_uint_ge(after.count, 10);
    ck_assert_uint_ge(domus_histogram_quantile_ns(&after, 0.8), 17 * DOMT_MS / 2);
    domt_end_system(system);
}

/* Each message finds the thread idle, so its wait is followed from where home sorts it. */
DOMT_TEST(wait_histogram_counts_mail_of_other_threads)
{
    domus_system *system = start_system(1, DOMUS_PROFILE_HISTOGRAMS);
    domus_address address = domt_spawn(system, 0, &worker, NULL);

    wait_until_thread_measures_anew(system, address);
    uint64_t before = count_in_histogram(system, 0, DOMUS_HISTOGRAM_WAIT);
    let_actor_work_so_often(system, address, 50, 2 * DOMT_MS);
    ck_assert_uint_ge(count_in_histogram(system, 0, DOMUS_HISTOGRAM_WAIT), before + 10);
    domt_end_system(system);
}

static int pass_ball_after_50_us(domus_stack *stack, void *self, const void *payload)
{
    uint64_t until_ns = domt_now_ns() + 50 * US;

    /* stay busy, so that neither thread is idle and runs houses of the other one */
    while (domt_now_ns() < until_ns)
        continue;
    return pass_ball_to_partner(stack, self, payload);
}

static const domus_behaviour slow_player = {
    .name = "slow player", .on = (const domus_on[]){{&ball_type, pass_ball_after_50_us, 0}, {0}}};

DOMT_TEST(histogram_samples_deliveries_between_threads)
{
    domus_system *system = start_system(2, DOMUS_PROFILE_HISTOGRAMS);
    domus_address address = domt_spawn(system, 0, &worker, NULL);
    const uint64_t balls = 2000;

    for (uint32_t i = 0; i < 2; i++)
        partners[i] = domt_spawn(system, i, &slow_player, NULL);
    wait_until_thread_measures_anew(system, address);
    uint64_t until = atomic_load(&worked) + 8 * balls;
    for (uint32_t i = 0; i < 8; i++)
        domt_send_notice(system, partners[i % 2], &ball_type, &balls);
    DOMT_WAIT_FOR(60, atomic_load(&worked) == until);
    for (uint32_t i = 0; i < 2; i++) {
        domus_histogram found = histogram_of_thread(system, i, DOMUS_HISTOGRAM_DELIVERY);
        ck_assert_uint_gt(found.count, 10);
        ck_assert_uint_le(domus_histogram_quantile_ns(&found, 0.5), 100 * DOMT_MS);
    }
    domt_end_system(system);
}

DOMT_TEST(level_changes_while_the_system_runs_and_phases_still_sum)
{
    static const domus_profile_level levels[] = {DOMUS_PROFILE_HISTOGRAMS, DOMUS_PROFILE_OFF,
                                                 DOMUS_PROFILE_COUNTERS,   DOMUS_PROFILE_OFF,
                                                 DOMUS_PROFILE_HISTOGRAMS, DOMUS_PROFILE_COUNTERS};
    domus_system *system = start_system(1, DOMUS_PROFILE_COUNTERS);
    domus_address address = domt_spawn(system, 0, &worker, NULL);

    let_actor_work_so_often(system, address, 5, 2 * DOMT_MS);
    ck_assert_uint_eq(count_in_histogram(system, 0, DOMUS_HISTOGRAM_RUN), 0);
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        uint64_t runs = count_in_histogram(system, 0, DOMUS_HISTOGRAM_RUN);
        ck_assert_int_eq(domus_system_set_profile_level(system, levels[i]), 0);
        ck_assert_int_eq(domus_system_profile_level(system), (int)levels[i]);
        let_actor_work_so_often(system, address, 20, 2 * DOMT_MS);
        domt_pause_ns(20 * DOMT_MS);
        runs = count_in_histogram(system, 0, DOMUS_HISTOGRAM_RUN) - runs;
        if (levels[i] == DOMUS_PROFILE_HISTOGRAMS)
            ck_assert_uint_ge(runs, 10);
        else
            /* some runs were still measured, because the level holds only from the end of the next
             * run on */
            ck_assert_uint_le(runs, 8);
        domus_profile profile = domt_profile_of_thread(system, 0);
        uint64_t sum_ns = 0;
        for (int phase = 0; phase < DOMUS_PHASES; phase++)
            sum_ns += profile.phase_ns[phase];
        ck_assert_uint_eq(sum_ns, profile.wall_ns);
    }
    /* The time in which the level was off does not count for the phase `submit`. */
    domus_profile profile = domt_profile_of_thread(system, 0);
    ck_assert_uint_lt(profile.phase_ns[DOMUS_PHASE_SUBMIT], 60 * DOMT_MS);
    domt_end_system(system);
}

/* --- spans ------------------------------------------------------------------------------------ */

typedef struct trace_bytes {
    size_t length;
    uint8_t bytes[4 << 20];
} trace_bytes;

static trace_bytes trace;
static domt_traced traced;

static int append_bytes_of_trace(void *context, const void *bytes, size_t length)
{
    trace_bytes *all = context;

    if (length > sizeof all->bytes - all->length)
        return -ENOBUFS;
    memcpy(all->bytes + all->length, bytes, length);
    all->length += length;
    return 0;
}

/* Check that all records with this text, except the outermost, lie directly within a record of the
 * kind `wanted`. */
static void check_records_lie_within_kind(const char *text, const char *wanted)
{
    uint32_t seen = 0;

    for (const domt_traced_event *at = traced.event; at < &traced.event[traced.events]; at++) {
        const domt_traced_event *outer = at;

        if (at->type != 'B' || at->depth == 0 || strcmp(at->text, text) != 0)
            continue;
        while (outer->type != 'B' || outer->depth + 1 != at->depth)
            outer--;
        ck_assert_str_eq(outer->text, wanted);
        seen++;
    }
    ck_assert_uint_ne(seen, 0);
}

DOMT_TEST(spans_are_traced_at_the_profile_level_spans_alone)
{
    domus_system *system = start_system(1, DOMUS_PROFILE_SPANS);
    domus_address address = domt_spawn(system, 0, &worker, NULL);

    wait_until_thread_measures_anew(system, address);
    let_actor_work_so_often(system, address, 20, 2 * DOMT_MS);
    domt_pause_ns(20 * DOMT_MS);
    trace.length = 0;
    ck_assert_int_eq(domus_trace_write(system, 0, append_bytes_of_trace, &trace), 0);
    domt_traced_decode(trace.bytes, trace.length, &traced);
    ck_assert_uint_eq(traced.threads, 1);
    const domt_traced_event *run = domt_traced_find_event(&traced, 'B', "run worker (work)");
    ck_assert_ptr_nonnull(run);
    ck_assert_str_eq(run->thread, "thread 0");
    /* the run lies within a phase, and the phase within an iteration */
    ck_assert_uint_eq(run->depth, 2);
    check_records_lie_within_kind("run worker (work)", "state");
    check_records_lie_within_kind("park", "enter");

    ck_assert_int_eq(domus_system_set_profile_level(system, DOMUS_PROFILE_HISTOGRAMS), 0);
    let_actor_work_so_often(system, address, 5, 2 * DOMT_MS);
    uint64_t now_ns = domt_now_ns();
    let_actor_work_so_often(system, address, 20, 2 * DOMT_MS);
    trace.length = 0;
    ck_assert_int_eq(domus_trace_write(system, now_ns, append_bytes_of_trace, &trace), 0);
    domt_traced_decode(trace.bytes, trace.length, &traced);
    ck_assert_uint_eq(traced.events, 0);
    domt_end_system(system);
}

DOMT_TEST(wrong_kind_or_thread_of_histogram_is_refused)
{
    domus_system *system = start_system(1, DOMUS_PROFILE_COUNTERS);
    domus_histogram found;

    ck_assert_int_eq(domus_system_histogram(system, 1, DOMUS_HISTOGRAM_RUN, &found), -EINVAL);
    ck_assert_int_eq(domus_system_histogram(system, 0, DOMUS_HISTOGRAMS, &found), -EINVAL);
    ck_assert_int_eq(domus_system_set_profile_level(system, (domus_profile_level)9), -EINVAL);
    for (int i = 0; i < DOMUS_HISTOGRAMS; i++)
        ck_assert_ptr_nonnull(domus_histogram_name((domus_histogram_kind)i));
    ck_assert_ptr_null(domus_histogram_name(DOMUS_HISTOGRAMS));
    domt_end_system(system);
}

/* --- answers ---------------------------------------------------------------------------------- */

static int answer_line_after_1_ms(domus_stack *stack, void *self, const void *payload)
{
    domus_packet answer = {0};
    int error = domus_slice_copy("a", 1, &answer.bytes);

    domt_pause_ns(DOMT_MS);
    return error != 0 ? error : domus_reply(stack, &domus_packet_type, &answer);
}

DOMT_TEST(answers_of_a_pipeline_are_measured_one_after_the_other)
{
    enum { LINES = 50 };
    const domus_pipeline_stage stages[] = {{&domus_line_stage, NULL}, {NULL, NULL}};
    const domus_pipeline lines = {.stages = stages};
    const domus_on_peer rows[] = {{.type = &domus_packet_type, .handle = answer_line_after_1_ms},
                                  {.type = NULL}};
    const domus_behaviour behaviour = {
        .name = "liner", .kind = DOMUS_CHANNELS, .pipeline = &lines, .on_peer = rows};
    domus_system *system = start_system(1, DOMUS_PROFILE_HISTOGRAMS);
    char name[DOMUS_BEHAVIOUR_NAME_SIZE], got[8];
    domus_histogram found;

    ck_assert_int_eq(domus_system_answers(system, 1, 0, name, &found), -EINVAL);
    ck_assert_int_eq(domus_system_answers(system, 0, 0, name, &found), -ENOENT);
    uint64_t begin_ns = domt_now_ns();
    int fd = domt_connect_to_port(domt_serve_channel_at_any_port(system, &behaviour).port);
    for (int i = 0; i < LINES; i++) {
        ck_assert_int_eq(send(fd, "a\n", 2, 0), 2);
        ck_assert_int_eq(recv(fd, got, 2, MSG_WAITALL), 2);
    }
    uint64_t passed_ns = domt_now_ns() - begin_ns;
    close(fd);
    ck_assert_int_eq(domus_system_answers(system, 0, 0, name, &found), 0);
    ck_assert_str_eq(name, "liner");
    ck_assert_uint_ge(found.count, 10); /* of short runs not all are looked at */
    ck_assert_uint_le(found.count, LINES);
    /* each answer is measured from its own request on */
    ck_assert_uint_le(found.sum_ns, passed_ns);
    ck_assert_uint_ge(domus_histogram_quantile_ns(&found, 0), DOMT_MS / 2);
    ck_assert_int_eq(domus_system_answers(system, 0, 1, name, &found), -ENOENT);
    ck_assert_int_eq(domus_system_answers(system, 0, DOMUS_PIPELINES_MAX, name, &found), -ENOENT);
    domt_end_system(system);
}

DOMT_SUITE(60)
