/* Makes the span between two looks at a program (span.h). */
#include "protocols/observe/doctor/span.h"

#include <stdlib.h>
#include <string.h>

#define SECOND_NS    1e9
#define PLACES_TRIED 256u /* number of behaviours at one place, at most */
#define STARTS_APART 1e7  /* ns over which the figures of one look may be read */

/* Subtract a group of figures of `size` bytes from another, figure by figure. */
static void subtract_earlier_group_of_figures(const void *after, const void *before,
                                              void *ret_group, size_t size)
{
    const uint64_t *a = after, *b = before;
    uint64_t *to = ret_group;

    for (size_t i = 0; i < size / sizeof *to; i++)
        to[i] = domi_span_growth_of_counter(a[i], b[i]);
}

static void subtract_counters(const domi_look_counters *after, const domi_look_counters *before,
                              domi_look_counters *ret_counters)
{
    subtract_earlier_group_of_figures(after, before, ret_counters, sizeof *ret_counters);
    ret_counters->queued_bytes =
        after->queued_bytes < before->queued_bytes ? after->queued_bytes : before->queued_bytes;
}

static void add_counters(const domi_look_counters *counters, domi_look_counters *sum)
{
    const uint64_t *from = (const uint64_t *)counters;
    uint64_t *to = (uint64_t *)sum;

    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
        to[i] += from[i];
}

/* Returns part / whole as a share from 0 to 1. Clocks that are read one after the other may give
 * slightly more than 1, which is cut to 1. */
static double quotient_of_counts_at_most_one(uint64_t part, uint64_t whole)
{
    double ratio = domi_span_quotient_of_counts(part, whole);

    return ratio < 1 ? ratio : 1;
}

/* --- threads ---------------------------------------------------------------------------------- */

static void set_shares_of_phases(const domi_look_thread *after, const domi_look_thread *before,
                                 domi_span_thread *to)
{
    uint64_t wall_ns = to->counters.wall_ns;
    domi_look_phases spent = {0};

    subtract_earlier_group_of_figures(&after->phases, &before->phases, &spent, sizeof spent);
    to->submit = quotient_of_counts_at_most_one(spent.submit, wall_ns);
    to->sleep = quotient_of_counts_at_most_one(spent.sleep, wall_ns);
    to->completions = quotient_of_counts_at_most_one(spent.completions, wall_ns);
    to->channels = quotient_of_counts_at_most_one(spent.channels, wall_ns);
    to->events = quotient_of_counts_at_most_one(spent.events, wall_ns);
    to->state = quotient_of_counts_at_most_one(spent.state, wall_ns);
    to->other = quotient_of_counts_at_most_one(spent.other, wall_ns);
    to->ready = domi_span_quotient_of_counts(to->counters.ready_ns, spent.state);
}

static void set_shares_of_cpu_times(const domi_look_thread *after, const domi_look_thread *before,
                                    uint64_t span_ns, domi_span_thread *to)
{
    to->asleep = quotient_of_counts_at_most_one(
        domi_span_growth_of_counter(after->phases.sleep, before->phases.sleep), span_ns);
    to->busy = 1 - to->asleep;
    to->open = 1 - quotient_of_counts_at_most_one(to->counters.wall_ns, span_ns);
    to->had_cpu = 1;
    to->cpu = -1;
    if (after->times.cpu_ns == 0 || before->times.cpu_ns == 0)
        return;
    to->cpu = quotient_of_counts_at_most_one(
        domi_span_growth_of_counter(after->times.cpu_ns, before->times.cpu_ns), span_ns);
    to->tells_denied = after->times.waiting_ns != 0;
    to->denied = quotient_of_counts_at_most_one(
        domi_span_growth_of_counter(after->times.waiting_ns, before->times.waiting_ns), span_ns);
    if (to->cpu > 0)
        to->had_cpu = to->cpu / (to->cpu + to->denied);
}

static void set_threads_of_span(domi_span *span)
{
    for (uint32_t i = 0; i < span->thread_count; i++) {
        const domi_look_thread *after = &span->after->threads[i];
        const domi_look_thread *before = &span->before->threads[i];
        domi_span_thread *to = &span->threads[i];
        subtract_counters(&after->counters, &before->counters, &to->counters);
        set_shares_of_phases(after, before, to);
        set_shares_of_cpu_times(after, before, span->after->now_ns - span->before->now_ns, to);
        add_counters(&to->counters, &span->all);
        if (to->busy > span->threads[span->busiest].busy)
            span->busiest = i;
        if (to->busy < span->threads[span->idlest].busy)
            span->idlest = i;
    }
}

/* --- behaviours of actors --------------------------------------------------------------------- */

/* Find the entry of a span for a behaviour by its name and pool, or add one. Returns NULL if there
 * are too many. */
static domi_span_actors *find_or_add_behaviour_of_span(domi_span *span, const domi_look_actors *one)
{
    uint32_t i = 0;

    for (; i < span->actors_count; i++) {
        if (strcmp(span->actors[i].name, one->name) == 0 &&
            strcmp(span->actors[i].pool, one->pool) == 0)
            return &span->actors[i];
    }
    if (span->actors_count == DOMI_SPAN_ACTORS_MAX)
        return NULL;
    span->actors_count++;
    span->actors[i] =
        (domi_span_actors){.name = one->name, .pool = one->pool, .is_channels = one->is_channels};
    return &span->actors[i];
}

static bool are_at_same_place(const domi_look_actors *one, const domi_look_actors *other)
{
    return one->thread == other->thread && strcmp(one->pool, other->pool) == 0;
}

/* Move `block` to where the earlier look has the first behaviour of this place, if it has any.
 * Places have the same order in both looks, and none is removed. */
static void find_place_in_earlier_look(const domi_look *before, const domi_look_actors *one,
                                       uint32_t *block)
{
    for (uint32_t i = *block; i < before->actors_count && i - *block < PLACES_TRIED; i++) {
        if (are_at_same_place(&before->actors[i], one)) {
            *block = i;
            return;
        }
    }
}

/* Find the counts of a behaviour at the same place in the earlier look; within a place, that look
 * may have its behaviours in another order. */
static const domi_look_behaviour *find_behaviour_in_earlier_look(const domi_look *before,
                                                                 const domi_look_actors *one,
                                                                 uint32_t *block)
{
    static const domi_look_behaviour none;

    if (*block >= before->actors_count || !are_at_same_place(&before->actors[*block], one))
        find_place_in_earlier_look(before, one, block);
    for (uint32_t i = *block; i < before->actors_count && i - *block < PLACES_TRIED; i++) {
        if (!are_at_same_place(&before->actors[i], one))
            break;
        if (strcmp(before->actors[i].name, one->name) == 0)
            return &before->actors[i].counts;
    }
    return &none;
}

static void add_growth_of_counts_of_behaviour(domi_span_actors *to, const domi_look_actors *one,
                                              const domi_look_behaviour *before)
{
    domi_look_behaviour counts = {0};

    subtract_earlier_group_of_figures(&one->counts, before, &counts, sizeof counts);
    to->alive += one->counts.alive;
    to->runs += counts.runs;
    to->messages += counts.messages;
    to->run_ns += counts.run_ns;
    to->waits += counts.waits;
    to->wait_ns += counts.wait_ns;
    to->failures += counts.failures;
    if (one->thread >= 0 && counts.run_ns > to->busiest_run_ns) {
        to->busiest_run_ns = counts.run_ns;
        to->busiest = (uint32_t)one->thread;
    }
}

static void set_counts_of_behaviours(domi_span *span)
{
    uint32_t block = 0;

    for (uint32_t i = 0; i < span->after->actors_count; i++) {
        const domi_look_actors *one = &span->after->actors[i];
        if (one->thread >= (int64_t)span->thread_count)
            continue; /* the behaviour belongs to a thread that the span does not have */
        domi_span_actors *to = find_or_add_behaviour_of_span(span, one);
        if (to != NULL)
            add_growth_of_counts_of_behaviour(
                to, one, find_behaviour_in_earlier_look(span->before, one, &block));
    }
}

/* --- runners, and the whole span -------------------------------------------------------------- */

static void add_counters_of_pool_runners(domi_span *span)
{
    domi_look_counters counters;

    for (uint32_t i = 0; i < span->after->runner_count; i++) {
        subtract_counters(&span->after->runners[i].counters, &span->before->runners[i].counters,
                          &counters);
        add_counters(&counters, &span->all);
    }
}

/* Returns the time at which the program of a look has begun. */
static double start_time_of_program(const domi_look *look)
{
    return (double)look->now_ns - (double)look->uptime_ns;
}

/* Returns whether the program was restarted between two looks, by its start time, because a program
 * in a container gets the same pid each time. */
static bool has_program_restarted(const domi_look *before, const domi_look *after)
{
    double apart = start_time_of_program(after) - start_time_of_program(before);

    return apart > STARTS_APART || apart < -STARTS_APART;
}

/* Returns the reason why two looks make no span; NULL if they do. */
static const char *reason_why_looks_make_no_span(const domi_look *before, const domi_look *after)
{
    double seconds = ((double)after->now_ns - (double)before->now_ns) / SECOND_NS;

    if (before->pid != after->pid || strcmp(before->program, after->program) != 0)
        return "the two looks are of different programs";
    if (before->thread_count != after->thread_count || before->runner_count != after->runner_count)
        return "the two looks are of different programs: their threads are not the same";
    if (seconds < 0)
        return "the second look is older than the first one";
    if (!(seconds >= DOMI_SPAN_LEAST))
        return "there are less than 100 ms between the two looks";
    if (seconds > DOMI_SPAN_MOST)
        return "there is more than a year between the two looks";
    if (has_program_restarted(before, after))
        return "the program has started anew between the two looks";
    if (strcmp(after->level, "off") == 0 || strcmp(before->level, "off") == 0)
        return "the program does not measure its time: set profile.level to counters";
    if (after->machine.cpus == 0 || before->machine.cpus == 0)
        return "the looks do not tell of the machine: take them of /profile?machine=1";
    return NULL;
}

const char *domi_span_init(const domi_look *before, const domi_look *after, domi_span *ret_span)
{
    const char *error = reason_why_looks_make_no_span(before, after);
    domi_span span = {.before = before, .after = after, .thread_count = after->thread_count};

    if (error != NULL)
        return error;
    span.seconds = ((double)after->now_ns - (double)before->now_ns) / SECOND_NS;
    span.threads = calloc(span.thread_count + 1u, sizeof *span.threads);
    span.actors = calloc(DOMI_SPAN_ACTORS_MAX, sizeof *span.actors);
    if (span.threads == NULL || span.actors == NULL) {
        domi_span_fini(&span);
        return "there is no memory for it";
    }
    set_threads_of_span(&span);
    add_counters_of_pool_runners(&span);
    set_counts_of_behaviours(&span);
    domi_look_counters outside;
    subtract_counters(&after->outside, &before->outside, &outside);
    add_counters(&outside, &span.all);
    subtract_earlier_group_of_figures(&after->machine, &before->machine, &span.machine,
                                      sizeof span.machine);
    span.steals = domi_span_growth_of_counter(
        span.all.steals, domi_span_growth_of_counter(after->stand_ins, before->stand_ins));
    span.cpus_used = (double)span.machine.cpu_ns / SECOND_NS / span.seconds;
    *ret_span = span;
    return NULL;
}

void domi_span_fini(domi_span *span)
{
    free(span->threads);
    free(span->actors);
    *span = (domi_span){0};
}
