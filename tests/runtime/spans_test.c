/* The level `spans` of the profile: records beyond phases and runs, such as sleeps, houses that run
 * for other threads, stalls, and the way of an ask to its answer; which thread has run which house
 * for which other one; and the trace that a stall leaves. */
#include "protocols/observe/writers.h"
#include "tests/runtime/running.h"
#include "tests/runtime/stalls.h"
#include "tests/runtime/traced.h"
#include "tests/support/tree.h"

#include <domus/trace.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint8_t bytes[16 << 20];
static size_t length;
static domt_traced traced;

static int append_bytes_of_trace(void *context, const void *more, size_t count)
{
    if (count > sizeof bytes - length)
        return -ENOBUFS;
    memcpy(bytes + length, more, count);
    length += count;
    return 0;
}

static void write_and_decode_trace(const domus_system *system, uint64_t since_ns)
{
    length = 0;
    ck_assert_int_eq(domus_trace_write(system, since_ns, append_bytes_of_trace, NULL), 0);
    domt_traced_decode(bytes, length, &traced);
}

static domus_config config_with_spans(uint32_t threads)
{
    domus_config config = domt_config_of_threads(threads);
    config.profile.level = DOMUS_PROFILE_SPANS;
    config.profile.records = 1024;
    return config;
}

static bool is_span_open_now(const domus_system *system, const char *thread, const char *text)
{
    length = 0;
    if (domus_trace_write(system, 0, append_bytes_of_trace, NULL) != 0)
        return false;
    domt_traced_decode(bytes, length, &traced);
    return domt_traced_is_last_span_open(&traced, thread, text);
}

/* --- actors ----------------------------------------------------------------------------------- */

/* the payload of `work` and of `begin` is a time in nanoseconds */
static const domus_type work = {.name = "work", .size = sizeof(uint64_t)};
static const domus_type begin = {.name = "begin", .size = sizeof(uint64_t)};
static const domus_type stay = {.name = "stay", .size = 0};
static const domus_type question = {.name = "question", .size = 0};
static const domus_type answer = {.name = "answer", .size = 0};
static const domus_type wander = {.name = "wander", .size = 0};
static const domus_type nudge = {.name = "nudge", .size = 0};

#define WORKERS 200u

static _Atomic uint64_t done;
static _Atomic bool is_late; /* true: asks are answered only after some time */
static domus_address workers[WORKERS], answerer_at;

static int burn_cpu_as_message_says(domus_stack *stack, void *self, const void *ns)
{
    domt_stay_busy(*(const uint64_t *)ns, NULL);
    atomic_fetch_add(&done, 1);
    return 0;
}

static int send_work_to_workers(domus_stack *stack, void *self, const void *ns)
{
    for (uint32_t i = 0; i < WORKERS; i++)
        ck_assert_int_eq(domus_notice(stack, workers[i], &work, ns), 0);
    return 0;
}

static int doze_in_handler(domus_stack *stack, void *self, const void *payload)
{
    domt_stay_asleep(150 * DOMT_MS, "is stuck for");
    return 0;
}

static int reply_after_sleep(domus_stack *stack, void *self, const domus_answer *slept)
{
    domt_stay_busy(20000, NULL);
    return domus_reply(stack, &answer, NULL);
}

static int reply_now_or_after_sleep(domus_stack *stack, void *self, const void *payload)
{
    domt_stay_busy(20000, NULL);
    return atomic_load(&is_late) ? domus_sleep(stack, 5 * DOMT_MS, reply_after_sleep)
                                 : domus_reply(stack, &answer, NULL);
}

static int count_good_answer(domus_stack *stack, void *self, const domus_answer *got)
{
    domt_stay_busy(20000, NULL);
    atomic_fetch_add(&done, got->error == 0);
    return 0;
}

/* Send a short run to an actor on the other thread, so that it is worthwhile to stand in for that
 * thread. */
static int send_short_run_to_answerer(domus_stack *stack, void *self, const void *payload)
{
    const uint64_t ns = 0;
    return domus_notice(stack, answerer_at, &work, &ns);
}

static int ask_answerer(domus_stack *stack, void *self, const void *payload)
{
    domt_stay_busy(20000, NULL);
    return domus_ask(stack, answerer_at, &question, NULL, count_good_answer);
}

static const domus_on rows[] = {{&work, burn_cpu_as_message_says, 0},
                                {&begin, send_work_to_workers, 0},
                                {&stay, doze_in_handler, 0},
                                {&question, reply_now_or_after_sleep, 0},
                                {&wander, ask_answerer, 0},
                                {&nudge, send_short_run_to_answerer, 0},
                                {0}};
static const domus_behaviour starter = {.name = "starter", .on = rows};
static const domus_behaviour worker = {.name = "worker", .on = rows};
static const domus_behaviour stuck = {.name = "stuck", .on = rows};
static const domus_behaviour asker = {.name = "asker", .on = rows};
static const domus_behaviour answerer = {.name = "answerer", .on = rows};

/* --- parks ------------------------------------------------------------------------------------ */

DOMT_TEST(a_sleep_is_a_span_within_its_phase)
{
    domus_config config = config_with_spans(1);
    domus_system *system = domt_start_system(&config);
    const uint64_t ns = 20000;

    workers[0] = domt_spawn(system, 0, &worker, NULL);
    for (int i = 0; i < 20; i++) {
        domt_send_notice(system, workers[0], &work, &ns);
        domt_pause_ns(5 * DOMT_MS);
    }
    DOMT_WAIT_FOR(20, is_span_open_now(system, "thread 0", "park"));
    const domt_traced_event *end =
        domt_traced_find_event_on_thread(&traced, "thread 0", 'E', "park");
    const domt_traced_event *phase =
        domt_traced_find_event_on_thread(&traced, "thread 0", 'E', "enter");
    ck_assert_ptr_nonnull(end);
    ck_assert_ptr_nonnull(phase);
    ck_assert_uint_eq(end->depth, phase->depth + 1);
    domt_end_system(system);
}

/* --- loans ------------------------------------------------------------------------------------ */

static uint64_t sum_of_loans_of_pairs(const domus_system *system, bool stand_ins)
{
    domus_pair pairs[4];
    size_t count = domus_system_pairs(system, pairs, 4);
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(pairs[i].thief + pairs[i].victim, 1);
        ck_assert(i == 0 || pairs[i].thief > pairs[i - 1].thief);
        sum += stand_ins ? pairs[i].stand_ins : pairs[i].steals;
    }
    return sum;
}

/* Check that the observation port shows the same texts for these pairs
 * (protocols/observe/pairs.c). */
static void check_texts_of_pairs(const domus_system *system, const domus_pair *pairs, size_t count)
{
    domus_appender json = {0};
    domi_metrics metrics = {.is_open = true};
    domus_slice text;
    char part[256];

    domi_thread_pairs_write_json(&json, system);
    ck_assert_int_eq(domus_append_end(&json, &text), 0);
    for (size_t i = 0; i < count; i++) {
        snprintf(part, sizeof part,
                 "{\"thief\":%u,\"victim\":%u,\"steals\":%llu,\"stand_ins\":%llu}", pairs[i].thief,
                 pairs[i].victim, (unsigned long long)pairs[i].steals,
                 (unsigned long long)pairs[i].stand_ins);
        ck_assert_ptr_nonnull(memmem(domus_slice_data(text), text.size, part, strlen(part)));
    }
    domus_slice_free(text);
    domi_thread_pairs_write_metrics(&metrics, system);
    ck_assert_int_eq(domus_append_end(&metrics.out, &text), 0);
    for (size_t i = 0; i < count; i++) {
        bool steals = pairs[i].steals != 0;
        snprintf(part, sizeof part, "domus_pair_%s_total{thief=\"%u\",victim=\"%u\"} %llu\n",
                 steals ? "steals" : "stand_ins", pairs[i].thief, pairs[i].victim,
                 (unsigned long long)(steals ? pairs[i].steals : pairs[i].stand_ins));
        ck_assert_ptr_nonnull(memmem(domus_slice_data(text), text.size, part, strlen(part)));
    }
    domus_slice_free(text);
}

static void check_pairs_of_steals(const domus_system *system)
{
    domus_pair pairs[2];

    ck_assert_uint_eq(sum_of_loans_of_pairs(system, false) + sum_of_loans_of_pairs(system, true),
                      domt_profile_of_all_threads(system).steals);
    size_t count = domus_system_pairs(system, pairs, 2);
    check_texts_of_pairs(system, pairs, count);
    for (size_t i = 0; i < count; i++)
        ck_assert_uint_eq(pairs[i].steals + pairs[i].stand_ins,
                          domt_profile_of_thread(system, pairs[i].thief).steals);
    ck_assert_uint_eq(domus_system_pairs(system, NULL, 0), count);
}

DOMT_TEST(a_steal_names_whose_house_it_runs_and_home_that_it_was_lent)
{
    domus_config config = config_with_spans(2);
    domus_system *system = domt_start_system(&config);
    domus_address first = domt_spawn(system, 0, &starter, NULL);
    const uint64_t ns = 200000;

    ck_assert_uint_eq(domus_system_pairs(system, NULL, 0), 0);
    for (uint32_t i = 0; i < WORKERS; i++)
        workers[i] = domt_spawn(system, 0, &worker, NULL);
    /* false at first, because both threads follow the level only when they run */
    bool seen = false;
    for (uint64_t round = 1; !seen; round++) {
        ck_assert_uint_lt(round, 100);
        domt_send_notice(system, first, &begin, &ns);
        DOMT_WAIT_FOR(30, atomic_load(&done) == round * WORKERS);
        write_and_decode_trace(system, 0);
        seen = domt_traced_find_event_on_thread(&traced, "thread 0", 'I', "lend worker") != NULL &&
               domt_traced_find_begin_around(&traced, "thread 1", "steal worker",
                                             "run worker (work)") != NULL;
    }
    const domt_traced_event *steal =
        domt_traced_find_begin_around(&traced, "thread 1", "steal worker", "run worker (work)");
    const domt_traced_event *loan =
        domt_traced_find_event_on_thread(&traced, "thread 0", 'I', "lend worker");
    ck_assert_ptr_nonnull(loan);
    ck_assert_uint_eq(steal[1].depth, steal->depth + 1);
    ck_assert_str_eq(loan->category, "loan");
    ck_assert_ptr_nonnull(
        domt_traced_find_event_on_thread(&traced, "thread 1", 'E', "steal worker"));
    if (domt_protoc_is_installed()) {
        const char *text = domt_protoc_decode_trace(bytes, length);
        ck_assert_ptr_nonnull(
            strstr(text, "debug_annotations { uint_value: 0 name: \"from thread\" }"));
        ck_assert_ptr_nonnull(
            strstr(text, "debug_annotations { uint_value: 1 name: \"to thread\" }"));
    }
    check_pairs_of_steals(system);
    domt_end_system(system);
}

DOMT_TEST(a_stand_in_names_whose_house_it_runs)
{
    domus_config config = config_with_spans(2);
    config.scheduler.idle.stand_in_ns = 1000000;
    domus_system *system = domt_start_system(&config);
    domus_address first = domt_spawn(system, 0, &asker, NULL);
    bool seen = false;

    answerer_at = domt_spawn(system, 1, &worker, NULL);
    for (uint64_t round = 1; !seen; round++) {
        ck_assert_uint_lt(round, 20000);
        domt_send_notice(system, first, &nudge, NULL);
        DOMT_WAIT_FOR(20, atomic_load(&done) == round);
        if (sum_of_loans_of_pairs(system, true) == 0)
            continue;
        length = 0;
        if (domus_trace_write(system, 0, append_bytes_of_trace, NULL) == 0)
            domt_traced_decode(bytes, length, &traced);
        seen = domt_traced_find_event_on_thread(&traced, "thread 0", 'E', "stand in for worker") !=
               NULL;
    }
    check_pairs_of_steals(system);
    domt_end_system(system);
}

/* --- stalls ----------------------------------------------------------------------------------- */

static domus_system *start_system_that_stalls(domus_profile_level level, const char *file,
                                              domus_address *ret_stuck)
{
    domus_config config = config_with_spans(2);

    config.profile.level = level;
    /* a threshold so long that a busy machine alone causes no stall */
    config.stall.threshold_ns = 100 * DOMT_MS;
    config.profile.stall_file = file;
    domus_system *system = domt_start_logging_system(&config);
    *ret_stuck = domt_spawn(system, 1, &stuck, NULL);
    /* A thread follows the new level only when it works. */
    const uint64_t ns = 2 * DOMT_MS;
    for (int i = 0; i < 5; i++)
        domt_send_notice(system, *ret_stuck, &work, &ns);
    DOMT_WAIT_FOR(20, atomic_load(&done) == 5);
    return system;
}

static void let_actor_stall_once(domus_system *system, domus_address address)
{
    uint64_t before = domt_count_ended_stalls(system);
    domt_send_notice(system, address, &stay, NULL);
    DOMT_WAIT_FOR(30, domt_count_ended_stalls(system) > before);
}

DOMT_TEST(a_stall_is_seen_while_it_lasts_and_has_its_length_afterwards)
{
    domus_address address;
    domus_system *system = start_system_that_stalls(DOMUS_PROFILE_SPANS, NULL, &address);

    domt_send_notice(system, address, &stay, NULL);
    DOMT_WAIT_FOR(20, is_span_open_now(system, "thread 1", "stall in stuck (stay)"));
    ck_assert(domt_traced_is_last_span_open(&traced, "thread 1", "run stuck (stay)"));
    DOMT_WAIT_FOR(30, domt_count_ended_stalls(system) == 1);
    DOMT_WAIT_FOR(20, !is_span_open_now(system, "thread 1", "stall in stuck (stay)"));
    const domt_traced_event *run =
        domt_traced_find_event_on_thread(&traced, "thread 1", 'B', "run stuck (stay)");
    const domt_traced_event *stall =
        domt_traced_find_event_on_thread(&traced, "thread 1", 'B', "stall in stuck (stay)");
    const domt_traced_event *end =
        domt_traced_find_event_on_thread(&traced, "thread 1", 'E', "stall in stuck (stay)");
    ck_assert_ptr_nonnull(run);
    ck_assert_ptr_nonnull(stall);
    ck_assert_ptr_nonnull(end);
    ck_assert_uint_eq(stall->depth, run->depth + 1);
    ck_assert_uint_ge(end->at_ns - stall->at_ns, 100 * DOMT_MS);
    ck_assert(!domt_traced_is_last_span_open(&traced, "thread 1", "stall in stuck (stay)"));
    domt_end_system(system);
}

DOMT_TEST(a_stall_leaves_its_file_once_in_a_while)
{
    domus_address address;
    domt_tree tree;
    char path[PATH_MAX];
    struct stat about;

    domt_tree_make(&tree);
    snprintf(path, sizeof path, "%s/stall.pftrace", tree.root);
    domus_system *system = start_system_that_stalls(DOMUS_PROFILE_SPANS, path, &address);
    let_actor_stall_once(system, address);
    DOMT_WAIT_FOR(20, domt_count_log_lines("profile.stallFile has the trace", NULL) == 1);
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fstat(fileno(file), &about), 0);
    ck_assert_uint_eq(about.st_mode & 07777, 0600);
    length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    domt_traced_decode(bytes, length, &traced);
    ck_assert_uint_eq(traced.threads, 2);
    ck_assert(domt_traced_is_last_span_open(&traced, "thread 1", "stall in stuck (stay)"));
    ck_assert(domt_traced_is_last_span_open(&traced, "thread 1", "run stuck (stay)"));

    ck_assert_int_eq(unlink(path), 0);
    let_actor_stall_once(system, address);
    ck_assert_int_eq(access(path, F_OK), -1);
    ck_assert_uint_eq(domt_count_log_lines("profile.stallFile has the trace", NULL), 1);
    domt_end_system(system);
    domt_tree_remove_copy(&tree);
}

DOMT_TEST(a_stall_whose_file_cannot_be_written_says_so)
{
    domus_address address;
    domus_system *system =
        start_system_that_stalls(DOMUS_PROFILE_SPANS, "/nonexistent/stall", &address);
    let_actor_stall_once(system, address);
    DOMT_WAIT_FOR(20, domt_count_log_lines("no trace of this stall: No such file", NULL) == 1);
    domt_end_system(system);
}

DOMT_TEST(a_stall_without_spans_leaves_no_file)
{
    domus_address address;
    domt_tree tree;
    char path[PATH_MAX];

    domt_tree_make(&tree);
    snprintf(path, sizeof path, "%s/stall.pftrace", tree.root);
    domus_system *system = start_system_that_stalls(DOMUS_PROFILE_HISTOGRAMS, path, &address);
    let_actor_stall_once(system, address);
    ck_assert_int_eq(access(path, F_OK), -1);
    domt_end_system(system);
    domt_tree_remove_copy(&tree);
}

/* --- flows ------------------------------------------------------------------------------------ */

/* Find in the trace the first flow that has ended, and its four events in order. Returns false if
 * there is none yet. */
static bool find_ended_flow(const domt_traced_event *ret_steps[4])
{
    static const char *const texts[] = {"ask question", "take ask question", "answer question",
                                        "take answer question"};

    for (uint32_t i = 0; i < traced.events && i < DOMT_TRACED_EVENTS; i++) {
        if (!traced.event[i].is_last)
            continue;
        memset(ret_steps, 0, 4 * sizeof ret_steps[0]);
        for (uint32_t j = 0; j < traced.events && j < DOMT_TRACED_EVENTS; j++) {
            for (int step = 0; step < 4; step++)
                if (traced.event[j].flow == traced.event[i].flow &&
                    strcmp(traced.event[j].text, texts[step]) == 0)
                    ret_steps[step] = &traced.event[j];
        }
        if (ret_steps[0] && ret_steps[1] && ret_steps[2] && ret_steps[3])
            return true;
    }
    return false;
}

static bool has_trace_begin_of_run_at(const char *thread, const char *text, uint64_t at_ns)
{
    for (uint32_t i = 0; i < traced.events && i < DOMT_TRACED_EVENTS; i++) {
        const domt_traced_event *event = &traced.event[i];
        if (event->type == 'B' && event->at_ns == at_ns && strcmp(event->text, text) == 0 &&
            strcmp(event->thread, thread) == 0)
            return true;
    }
    return false;
}

/* Let an actor on thread 0 ask one on thread 1 until the trace has the whole way of one ask. */
static void follow_an_ask_in_trace(bool late, const domt_traced_event *steps[4])
{
    domus_config config = config_with_spans(2);
    config.scheduler.steal.enabled = false; /* without stealing each house runs on its own home */
    domus_system *system = domt_start_system(&config);
    domus_address first = domt_spawn(system, 0, &asker, NULL);
    uint64_t asked = 0;

    atomic_store(&is_late, late);
    answerer_at = domt_spawn(system, 1, &answerer, NULL);
    do {
        ck_assert_uint_lt(asked, 1000);
        domt_send_notice(system, first, &wander, NULL);
        asked++;
        DOMT_WAIT_FOR(20, atomic_load(&done) == asked);
        if (domus_trace_write(system, 0, append_bytes_of_trace, NULL) != 0)
            continue;
        write_and_decode_trace(system, 0);
    } while (!find_ended_flow(steps));
    domt_end_system(system);
}

DOMT_TEST(a_flow_leads_from_an_ask_to_its_answer)
{
    const domt_traced_event *steps[4];

    follow_an_ask_in_trace(false, steps);
    for (int i = 0; i < 4; i++) {
        ck_assert_str_eq(steps[i]->thread, i == 0 || i == 3 ? "thread 0" : "thread 1");
        ck_assert_str_eq(steps[i]->category, "flow");
        ck_assert(i == 0 || steps[i]->at_ns >= steps[i - 1]->at_ns);
        ck_assert(steps[i]->is_last == (i == 3));
    }
    /* the ask was taken and answered within the same run */
    ck_assert_uint_eq(steps[1]->at_ns, steps[2]->at_ns);
    ck_assert(has_trace_begin_of_run_at("thread 0", "run asker (wander)", steps[0]->at_ns));
    ck_assert(has_trace_begin_of_run_at("thread 1", "run answerer (question)", steps[1]->at_ns));
    ck_assert(has_trace_begin_of_run_at("thread 0", "run asker (answer)", steps[3]->at_ns));
}

DOMT_TEST(a_flow_waits_for_an_answer_that_comes_later)
{
    const domt_traced_event *steps[4];
    follow_an_ask_in_trace(true, steps);
    ck_assert_uint_ge(steps[2]->at_ns, steps[1]->at_ns + 4 * DOMT_MS);
    ck_assert_uint_ge(steps[3]->at_ns, steps[2]->at_ns);
}

DOMT_SUITE(60)
