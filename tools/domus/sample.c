/* Reads /profile into a sample. Members that are missing, or have another type, count as 0, so that
 * programs of other versions can be read. */
#include "tools/domus/sample.h"

#include "tools/domus/say.h"

#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *const phase_names[PHASES] = {"submit", "sleep", "completions", "channels",
                                         "events", "state", "other"};

const char *const counter_names[COUNTERS] = {
    [COUNTER_MESSAGES] = "messages",
    [COUNTER_ITERATIONS] = "iterations",
    [COUNTER_RUNS] = "runs",
    [COUNTER_PARKS] = "parks",
    [COUNTER_STEALS] = "steals",
    [COUNTER_STALLS] = "stalls",
    [COUNTER_STALLED_NS] = "stalled_ns",
    [COUNTER_FAILURES] = "failures",
    [COUNTER_EXPIRIES] = "deadline_expiries",
    [COUNTER_WAKEUPS] = "wakeups_received",
    [COUNTER_READS] = "reads",
    [COUNTER_RECEIVED] = "received_bytes",
    [COUNTER_SENT] = "sent_bytes",
};

uint64_t sample_get_clock_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* --- values ----------------------------------------------------------------------------------- */

/* Returns a number of a JSON object that is not negative; 0 if there is none. Numbers beyond 2^63
 * are read as reals. */
static uint64_t get_number_of_member(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    double real = json_is_real(value) ? json_real_value(value) : 0;

    if (json_is_integer(value) && json_integer_value(value) > 0)
        return (uint64_t)json_integer_value(value);
    return real > 0 && real < 18e18 ? (uint64_t)real : 0;
}

static void copy_name_of_member(const json_t *object, const char *name, char *ret_name)
{
    const json_t *value = json_object_get(object, name);

    escape_name_to_ascii(json_string_value(value), json_string_length(value), ret_name, NAME_SIZE);
}

static void read_message_and_event_counters(const json_t *counters, uint64_t *counts)
{
    static const char *const kinds[] = {"replies", "exceptions", "asks", "notices", "events"};

    for (int i = COUNTER_MESSAGES + 1; i < COUNTERS; i++)
        counts[i] = get_number_of_member(counters, counter_names[i]);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        counts[COUNTER_MESSAGES] += get_number_of_member(counters, kinds[i]);
}

/* --- lists ------------------------------------------------------------------------------------ */

/* Allocate the array for a list of a sample. Returns it, and how many elements to read; NULL if
 * there are none, or without memory. */
static void *allocate_list_of_sample(const json_t *list, size_t each, uint32_t most,
                                     uint32_t *ret_count)
{
    size_t count = json_array_size(list);

    if (count > most)
        count = most;
    void *made = count > 0 ? calloc(count, each) : NULL;
    *ret_count = made != NULL ? (uint32_t)count : 0;
    return made;
}

static void read_threads_of_profile(const json_t *list, sample *to)
{
    to->threads =
        allocate_list_of_sample(list, sizeof *to->threads, THREADS_MAX, &to->thread_count);
    for (uint32_t i = 0; i < to->thread_count; i++) {
        const json_t *counters = json_object_get(json_array_get(list, i), "counters");
        const json_t *phases = json_object_get(counters, "phase_ns");
        thread_sample *thread = &to->threads[i];
        thread->wall_ns = get_number_of_member(counters, "wall_ns");
        for (int phase = 0; phase < PHASES; phase++)
            thread->phase_ns[phase] = get_number_of_member(phases, phase_names[phase]);
        read_message_and_event_counters(counters, thread->counts);
    }
}

static void read_runners_of_profile(const json_t *list, sample *to)
{
    to->runners =
        allocate_list_of_sample(list, sizeof *to->runners, RUNNERS_MAX, &to->runner_count);
    for (uint32_t i = 0; i < to->runner_count; i++) {
        const json_t *one = json_array_get(list, i);
        const json_t *times = json_object_get(one, "times");
        runner_sample *runner = &to->runners[i];
        copy_name_of_member(one, "pool", runner->pool);
        runner->runner = get_number_of_member(one, "runner");
        read_message_and_event_counters(json_object_get(one, "counters"), runner->counts);
        runner->counts[COUNTER_RUNS] = get_number_of_member(times, "turns");
        runner->counts[COUNTER_MESSAGES] = get_number_of_member(times, "messages");
        runner->counts[COUNTER_PARKS] = get_number_of_member(times, "parks");
        runner->counts[COUNTER_STEALS] = get_number_of_member(times, "steals");
        runner->wall_ns = get_number_of_member(times, "wall_ns");
        runner->run_ns = get_number_of_member(times, "run_ns");
        runner->search_ns = get_number_of_member(times, "search_ns");
        runner->park_ns = get_number_of_member(times, "park_ns");
    }
}

static int compare_behaviours_by_name(const void *one_, const void *other_)
{
    const behaviour_sample *one = one_, *other = other_;
    int order = strcmp(one->name, other->name);

    return order != 0 ? order : strcmp(one->pool, other->pool);
}

/* Add up the figures of behaviours with the same name and pool, by which they are sorted. */
static void merge_behaviours_of_same_name_and_pool(sample *to)
{
    uint32_t kept = 0;

    for (uint32_t i = 1; i < to->behaviour_count; i++) {
        behaviour_sample *last = &to->behaviours[kept], *next = &to->behaviours[i];
        if (compare_behaviours_by_name(last, next) != 0) {
            to->behaviours[++kept] = *next;
            continue;
        }
        last->runs += next->runs;
        last->run_ns += next->run_ns;
        last->messages += next->messages;
        last->waits += next->waits;
        last->wait_ns += next->wait_ns;
        last->failures += next->failures;
        last->alive += next->alive;
        last->bytes += next->bytes;
    }
    if (to->behaviour_count > 0)
        to->behaviour_count = kept + 1;
}

static void read_behaviours_of_profile(const json_t *list, sample *to)
{
    to->behaviours =
        allocate_list_of_sample(list, sizeof *to->behaviours, BEHAVIOURS_MAX, &to->behaviour_count);
    for (uint32_t i = 0; i < to->behaviour_count; i++) {
        const json_t *one = json_array_get(list, i);
        behaviour_sample *behaviour = &to->behaviours[i];
        copy_name_of_member(one, "name", behaviour->name);
        copy_name_of_member(one, "pool", behaviour->pool);
        behaviour->runs = get_number_of_member(one, "runs");
        behaviour->run_ns = get_number_of_member(one, "run_ns");
        behaviour->messages = get_number_of_member(one, "messages");
        behaviour->waits = get_number_of_member(one, "waits");
        behaviour->wait_ns = get_number_of_member(one, "wait_ns");
        behaviour->failures = get_number_of_member(one, "failures");
        behaviour->alive = get_number_of_member(one, "alive");
        behaviour->bytes = get_number_of_member(one, "bytes");
    }
    if (to->behaviour_count > 0)
        qsort(to->behaviours, to->behaviour_count, sizeof *to->behaviours,
              compare_behaviours_by_name);
    merge_behaviours_of_same_name_and_pool(to);
}

/* --- the whole -------------------------------------------------------------------------------- */

bool sample_request_from_port(port *from, long ms, sample *ret_sample)
{
    port_text answer;
    json_error_t error;

    if (!port_get_and_collect_answer(from, "/profile", ms, &answer))
        return false;
    uint64_t taken_ns = sample_get_clock_ns();
    json_t *all = json_loadb(answer.at, answer.size, 0, &error);
    free(answer.at);
    if (!json_is_array(json_object_get(all, "threads"))) {
        json_decref(all);
        snprintf(from->error, sizeof from->error,
                 "what answers there is no observation port: /profile is not its JSON");
        return false;
    }
    memset(ret_sample, 0, sizeof *ret_sample);
    ret_sample->taken_ns = get_number_of_member(all, "now_ns");
    if (ret_sample->taken_ns == 0)
        ret_sample->taken_ns = taken_ns;
    ret_sample->uptime_ns = get_number_of_member(all, "uptime_ns");
    ret_sample->pid = (int64_t)get_number_of_member(all, "pid");
    copy_name_of_member(all, "program", ret_sample->program);
    copy_name_of_member(all, "version", ret_sample->version);
    copy_name_of_member(all, "level", ret_sample->level);
    read_threads_of_profile(json_object_get(all, "threads"), ret_sample);
    read_runners_of_profile(json_object_get(all, "runners"), ret_sample);
    read_behaviours_of_profile(json_object_get(all, "behaviours"), ret_sample);
    ret_sample->used_bytes = get_number_of_member(json_object_get(all, "memory"), "used_bytes");
    json_decref(all);
    return true;
}

void sample_free(sample *old)
{
    free(old->threads);
    free(old->runners);
    free(old->behaviours);
    memset(old, 0, sizeof *old);
}
