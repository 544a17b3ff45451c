/* Makes the span between two looks (span.h). */
#include "protocols/observe/doctor/span.h"

#include <stdlib.h>
#include <string.h>

#define SECOND_NS    1e9
#define PLACES_TRIED 256u /* an upper bound of the behaviours at one place */
#define STARTS_APART 1e7  /* ns over which the figures of one look are read */

/* Subtract groups of `size` bytes, field by field. */
static void subtract_groups(const void *after, const void *before, void *ret_group, size_t size)
{
    const uint64_t *a = after, *b = before;
    uint64_t *to = ret_group;

    for (size_t i = 0; i < size / sizeof *to; i++)
        to[i] = domi_span_less(a[i], b[i]);
}

static void subtract_counters(const domi_look_counters *after, const domi_look_counters *before,
                              domi_look_counters *ret_counters)
{
    subtract_groups(after, before, ret_counters, sizeof *ret_counters);
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

/* Returns a share from 0 to 1. Clocks that are read one after the other may give slightly more,
 * which is cut. */
static double share_of_whole(uint64_t part, uint64_t whole)
{
    double ratio = domi_span_ratio(part, whole);

    return ratio < 1 ? ratio : 1;
}

/* --- threads ---------------------------------------------------------------------------------- */

static void set_phases(const domi_look_thread *after, const domi_look_thread *before,
                       domi_span_thread *to)
{
    uint64_t wall_ns = to->counters.wall_ns;
    domi_look_phases spent = {0};

    subtract_groups(&after->phases, &before->phases, &spent, sizeof spent);
    to->submit = share_of_whole(spent.submit, wall_ns);
    to->sleep = share_of_whole(spent.sleep, wall_ns);
    to->completions = share_of_whole(spent.completions, wall_ns);
    to->channels = share_of_whole(spent.channels, wall_ns);
    to->events = share_of_whole(spent.events, wall_ns);
    to->state = share_of_whole(spent.state, wall_ns);
    to->other = share_of_whole(spent.other, wall_ns);
    to->ready = domi_span_ratio(to->counters.ready_ns, spent.state);
}

static void set_times(const domi_look_thread *after, const domi_look_thread *before,
                      uint64_t span_ns, domi_span_thread *to)
{
    to->asleep = share_of_whole(domi_span_less(after->phases.sleep, before->phases.sleep), span_ns);
    to->busy = 1 - to->asleep;
    to->open = 1 - share_of_whole(to->counters.wall_ns, span_ns);
    to->had_cpu = 1;
    to->cpu = -1;
    if (after->times.cpu_ns == 0 || before->times.cpu_ns == 0)
        return;
    to->cpu = share_of_whole(domi_span_less(after->times.cpu_ns, before->times.cpu_ns), span_ns);
    to->tells_denied = after->times.waiting_ns != 0;
    to->denied =
        share_of_whole(domi_span_less(after->times.waiting_ns, before->times.waiting_ns), span_ns);
    if (to->cpu > 0)
        to->had_cpu = to->cpu / (to->cpu + to->denied);
}

static void set_threads(domi_span *span)
{
    for (uint32_t i = 0; i < span->thread_count; i++) {
        const domi_look_thread *after = &span->after->threads[i];
        const domi_look_thread *before = &span->before->threads[i];
        domi_span_thread *to = &span->threads[i];
        subtract_counters(&after->counters, &before->counters, &to->counters);
        set_phases(after, before, to);
        set_times(after, before, span->after->now_ns - span->before->now_ns, to);
        add_counters(&to->counters, &span->all);
        if (to->busy > span->threads[span->busiest].busy)
            span->busiest = i;
        if (to->busy < span->threads[span->idlest].busy)
            span->idlest = i;
    }
}

/* --- behaviours of actors --------------------------------------------------------------------- */

/* Find the behaviour with a name in a span, or add it. Returns NULL if there are too many. */
static domi_span_actors *find_actors(domi_span *span, const domi_look_actors *one)
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

static bool is_same_place(const domi_look_actors *one, const domi_look_actors *other)
{
    return one->thread == other->thread && strcmp(one->pool, other->pool) == 0;
}

/* Move `block` to the first behaviour of a place in the earlier look, if it had any. Places keep
 * their order, and none is removed. */
static void find_place(const domi_look *before, const domi_look_actors *one, uint32_t *block)
{
    for (uint32_t i = *block; i < before->actors_count && i - *block < PLACES_TRIED; i++) {
        if (is_same_place(&before->actors[i], one)) {
            *block = i;
            return;
        }
    }
}

/* Find the counts of a behaviour at the same place in the earlier look, in which the list of a
 * place may have another order. */
static const domi_look_behaviour *
find_behaviour_before(const domi_look *before, const domi_look_actors *one, uint32_t *block)
{
    static const domi_look_behaviour none;

    if (*block >= before->actors_count || !is_same_place(&before->actors[*block], one))
        find_place(before, one, block);
    for (uint32_t i = *block; i < before->actors_count && i - *block < PLACES_TRIED; i++) {
        if (!is_same_place(&before->actors[i], one))
            break;
        if (strcmp(before->actors[i].name, one->name) == 0)
            return &before->actors[i].counts;
    }
    return &none;
}

static void add_actors(domi_span_actors *to, const domi_look_actors *one,
                       const domi_look_behaviour *before)
{
    domi_look_behaviour counts = {0};

    subtract_groups(&one->counts, before, &counts, sizeof counts);
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

static void set_actors(domi_span *span)
{
    uint32_t block = 0;

    for (uint32_t i = 0; i < span->after->actors_count; i++) {
        const domi_look_actors *one = &span->after->actors[i];
        if (one->thread >= (int64_t)span->thread_count)
            continue; /* there is no such thread */
        domi_span_actors *to = find_actors(span, one);
        if (to != NULL)
            add_actors(to, one, find_behaviour_before(span->before, one, &block));
    }
}

/* --- runners, and the whole span -------------------------------------------------------------- */

static void set_runners(domi_span *span)
{
    domi_look_counters counters;

    for (uint32_t i = 0; i < span->after->runner_count; i++) {
        subtract_counters(&span->after->runners[i].counters, &span->before->runners[i].counters,
                          &counters);
        add_counters(&counters, &span->all);
    }
}

/* Returns the time at which the program has begun. */
static double start_time_of(const domi_look *look)
{
    return (double)look->now_ns - (double)look->uptime_ns;
}

/* Returns whether the program was restarted between the looks; in a container it gets the same pid
 * each time. */
static bool has_restarted(const domi_look *before, const domi_look *after)
{
    double apart = start_time_of(after) - start_time_of(before);

    return apart > STARTS_APART || apart < -STARTS_APART;
}

/* Returns NULL, or the reason why two looks make no span. */
static const char *reason_for_no_span(const domi_look *before, const domi_look *after)
{
    double seconds = ((double)after->now_ns - (double)before->now_ns) / SECOND_NS;

    if (before->pid != after->pid || strcmp(before->program, after->program) != 0)
        return "the two looks are of different programs";
    if (before->thread_count != after->thread_count || before->runner_count != after->runner_count)
        return "the two looks are of different programs: their threads are not the same";
    if (seconds < 0)
        return "the second look is older than the first one";
    if (after->uptime_ns < before->uptime_ns)
        return "the program has started anew between the two looks";
    if (!(seconds >= DOMI_SPAN_LEAST))
        return "there are less than 100 ms between the two looks";
    if (seconds > DOMI_SPAN_MOST)
        return "there is more than a year between the two looks";
    if (has_restarted(before, after))
        return "the program has started anew between the two looks";
    if (strcmp(after->level, "off") == 0 || strcmp(before->level, "off") == 0)
        return "the program does not measure its time: set profile.level to counters";
    if (after->machine.cpus == 0 || before->machine.cpus == 0)
        return "the looks do not tell of the machine: take them of /profile?machine=1";
    return NULL;
}

const char *domi_span_init(const domi_look *before, const domi_look *after, domi_span *ret_span)
{
    const char *error = reason_for_no_span(before, after);
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
    set_threads(&span);
    set_runners(&span);
    set_actors(&span);
    domi_look_counters outside;
    subtract_counters(&after->outside, &before->outside, &outside);
    add_counters(&outside, &span.all);
    subtract_groups(&after->machine, &before->machine, &span.machine, sizeof span.machine);
    span.steals =
        domi_span_less(span.all.steals, domi_span_less(after->stand_ins, before->stand_ins));
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
