/* The sampler: an actor of the port that reads all counters at each tick, for all viewers of /live
 * (live.h).
 *
 * For each sample it makes at most two texts: one for viewers that have seen the sample before, and
 * one for all others, each when the first viewer needs it. */
#include "protocols/observe/sampler.h"

#include "protocols/observe/observe.h"
#include "protocols/observe/sample.h"

#include <errno.h>
#include <stdlib.h>

struct sampler {
    domi_sample now, before;
    domus_slice names; /* the event with the names; empty until a viewer needs it */
    /* the event of the sample `now` for viewers that have seen the sample `before` */
    domus_slice in_step;
    domus_slice full; /* the event of the sample `now` for all other viewers */
    /* kept asks of viewers that have seen `now` and wait for the next sample; one place for each
     * stream */
    domus_kept *waiting;
    uint32_t waiting_count;
    bool ticks, is_ending;
};

static void free_events_of_tick_payload(void *payload)
{
    const domi_live_tick *tick = payload;

    domus_slice_free(tick->names);
    domus_slice_free(tick->sample);
}

static const domus_type tick_type = {.name = "sampler ticks"};
const domus_type domi_live_next_type = {.name = "next sample", .size = sizeof(domi_live_next)};
const domus_type domi_live_tick_type = {
    .name = "sample", .size = sizeof(domi_live_tick), .release = free_events_of_tick_payload};
const domus_type domi_live_end_type = {.name = "samples end"};

uint32_t domi_live_max_streams(void)
{
    return (domus_system_config(domi_observed.observed)->observe.viewers_max + 1) / 2;
}

/* --- samples ---------------------------------------------------------------------------------- */

static void free_events_of_sample(struct sampler *sampler)
{
    domus_slice_free(sampler->in_step);
    domus_slice_free(sampler->full);
    sampler->in_step = sampler->full = (domus_slice){0};
}

static int read_counters_into_next_sample(domus_stack *stack, struct sampler *sampler)
{
    domi_sample sample = {.serial = sampler->now.serial};
    int error = domi_sample_read_counters(domi_observed.observed, domus_now_ns(stack), &sample);

    if (error != 0)
        return error;
    free_events_of_sample(sampler);
    domi_sample_free_counters(&sampler->before);
    sampler->before = sampler->now;
    sampler->now = sample;
    return 0;
}

/* Make the events for a viewer whose last sample has the number `seen`. Returns 0; -ENOMEM. */
static int make_tick_for_viewer(struct sampler *sampler, uint64_t seen, domi_live_tick *ret_tick)
{
    bool is_in_step = seen != 0 && seen == sampler->before.serial;
    domus_slice *event = is_in_step ? &sampler->in_step : &sampler->full;
    domi_live_tick tick = {.serial = sampler->now.serial};
    int error = 0;

    if (event->size == 0)
        error = domi_sample_make_event_with_changes(&sampler->now,
                                                    is_in_step ? &sampler->before : NULL, event);
    if (error == 0 && seen == 0 && sampler->names.size == 0)
        error = domi_sample_make_event_with_all_names(domi_observed.observed, &sampler->names);
    if (error == 0 && seen == 0)
        error = domus_slice_keep(sampler->names, &tick.names);
    if (error == 0)
        error = domus_slice_keep(*event, &tick.sample);
    if (error != 0) {
        free_events_of_tick_payload(&tick);
        return error;
    }
    *ret_tick = tick;
    return 0;
}

/* --- viewers that wait for a tick ------------------------------------------------------------- */

static void fail_asks_that_wait_for_tick(domus_stack *stack, struct sampler *sampler, int error)
{
    while (sampler->waiting_count != 0)
        (void)domus_kept_fail(stack, sampler->waiting[--sampler->waiting_count], error);
}

/* Answer the asks of all viewers that wait with the new sample. The last sample that they have seen
 * has the number `seen`. */
static void answer_waiting_asks(domus_stack *stack, struct sampler *sampler, uint64_t seen)
{
    domi_live_tick tick;

    while (sampler->waiting_count != 0) {
        int error = make_tick_for_viewer(sampler, seen, &tick);
        if (error != 0) {
            fail_asks_that_wait_for_tick(stack, sampler, error);
            return;
        }
        if (domus_kept_reply(stack, sampler->waiting[--sampler->waiting_count],
                             &domi_live_tick_type, &tick) != 0)
            /* the viewer is gone, so nobody takes the answer, and it is freed */
            free_events_of_tick_payload(&tick);
    }
}

/* Read the next sample, and answer all viewers that wait for it. */
static void read_sample_and_answer_waiting(domus_stack *stack, struct sampler *sampler)
{
    uint64_t seen = sampler->now.serial;
    int error = read_counters_into_next_sample(stack, sampler);

    if (error != 0)
        fail_asks_that_wait_for_tick(stack, sampler, error);
    else
        answer_waiting_asks(stack, sampler, seen);
}

static int set_timer_for_next_tick(domus_stack *stack, struct sampler *sampler)
{
    if (sampler->ticks || sampler->is_ending)
        return 0;
    int error = domus_after(stack, DOMI_LIVE_TICK_NS, &tick_type, NULL, NULL);
    sampler->ticks = error == 0;
    return error;
}

/* Handle a tick of the sampler. If no viewer waits, no further tick follows. */
static int answer_waiting_viewers_at_tick(domus_stack *stack, void *self, const void *payload)
{
    struct sampler *sampler = self;

    (void)payload;
    sampler->ticks = false;
    if (sampler->waiting_count == 0)
        return 0;
    int error = set_timer_for_next_tick(stack, sampler);
    if (error != 0)
        fail_asks_that_wait_for_tick(stack, sampler, error);
    read_sample_and_answer_waiting(stack, sampler);
    return 0;
}

/* --- messages --------------------------------------------------------------------------------- */

/* Keep a viewer's ask until the next tick. A viewer that has gone away leaves its ask behind until
 * then. When such asks have taken all places, all waiting viewers get their sample early. */
static int keep_ask_until_next_tick(domus_stack *stack, struct sampler *sampler)
{
    if (sampler->waiting_count == domi_live_max_streams())
        read_sample_and_answer_waiting(stack, sampler);
    int error = set_timer_for_next_tick(stack, sampler);
    if (error == 0)
        error = domus_keep(stack, &sampler->waiting[sampler->waiting_count]);
    if (error == 0)
        sampler->waiting_count++;
    return error;
}

static int answer_or_keep_ask_for_next_tick(domus_stack *stack, void *self, const void *payload)
{
    uint64_t seen = ((const domi_live_next *)payload)->serial;
    struct sampler *sampler = self;
    domi_live_tick tick;
    int error = 0;

    if (sampler->is_ending)
        return -ESHUTDOWN;
    if (seen != 0 && seen == sampler->now.serial)
        return keep_ask_until_next_tick(stack, sampler);
    if (!sampler->ticks)
        /* while nobody watched, no samples were read, so the last one is too old */
        error = read_counters_into_next_sample(stack, sampler);
    if (error == 0)
        error = make_tick_for_viewer(sampler, seen, &tick);
    if (error != 0)
        return error;
    error = domus_reply(stack, &domi_live_tick_type, &tick);
    if (error != 0)
        free_events_of_tick_payload(&tick);
    return error;
}

static int end_all_streams(domus_stack *stack, void *self, const void *payload)
{
    (void)payload;
    ((struct sampler *)self)->is_ending = true;
    fail_asks_that_wait_for_tick(stack, self, -ESHUTDOWN);
    return 0;
}

static int allocate_waiting_asks_at_mount(domus_stack *stack, void *self)
{
    struct sampler *sampler = self;

    (void)stack;
    sampler->waiting = calloc(domi_live_max_streams(), sizeof *sampler->waiting);
    return sampler->waiting != NULL ? 0 : -ENOMEM;
}

static void free_samples_and_asks_at_stop(domus_stack *stack, void *self)
{
    struct sampler *sampler = self;

    (void)stack;
    free_events_of_sample(sampler);
    domus_slice_free(sampler->names);
    domi_sample_free_counters(&sampler->now);
    domi_sample_free_counters(&sampler->before);
    free(sampler->waiting);
}

const domus_behaviour domi_live_sampler = {
    .name = "sampler",
    .state_size = sizeof(struct sampler),
    .on = (const domus_on[]){{&domi_live_next_type, answer_or_keep_ask_for_next_tick, 0},
                             {&tick_type, answer_waiting_viewers_at_tick, 0},
                             {&domi_live_end_type, end_all_streams, 0},
                             {NULL, NULL, 0}},
    .on_mount = allocate_waiting_asks_at_mount,
    .on_stop = free_samples_and_asks_at_stop,
};
