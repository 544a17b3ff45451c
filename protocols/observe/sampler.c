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
    domus_slice names;   /* event with the names; empty until a viewer needs it */
    domus_slice in_step; /* event of `now` for viewers that have seen `before` */
    domus_slice full;    /* event of `now` for all other viewers */
    /* asks of viewers that have seen `now`; there is room for one for each stream */
    domus_kept *waiting;
    uint32_t waiting_count;
    bool ticks, is_ending;
};

static void release_tick(void *payload)
{
    const domi_live_tick *tick = payload;

    domus_slice_free(tick->names);
    domus_slice_free(tick->sample);
}

static const domus_type tick_type = {.name = "sampler ticks"};
const domus_type domi_live_next_type = {.name = "next sample", .size = sizeof(domi_live_next)};
const domus_type domi_live_tick_type = {
    .name = "sample", .size = sizeof(domi_live_tick), .release = release_tick};
const domus_type domi_live_end_type = {.name = "samples end"};

uint32_t domi_live_streams_max(void)
{
    return (domus_system_config(domi_observed.observed)->observe.viewers_max + 1) / 2;
}

/* --- samples ---------------------------------------------------------------------------------- */

static void drop_texts(struct sampler *sampler)
{
    domus_slice_free(sampler->in_step);
    domus_slice_free(sampler->full);
    sampler->in_step = sampler->full = (domus_slice){0};
}

static int read_sample(domus_stack *stack, struct sampler *sampler)
{
    domi_sample sample = {.serial = sampler->now.serial};
    int error = domi_sample_read(domi_observed.observed, domus_now_ns(stack), &sample);

    if (error != 0)
        return error;
    drop_texts(sampler);
    domi_sample_fini(&sampler->before);
    sampler->before = sampler->now;
    sampler->now = sample;
    return 0;
}

/* Make the events for a viewer that has seen the sample with a serial number. Returns 0;
 * -ENOMEM. */
static int make_tick(struct sampler *sampler, uint64_t seen, domi_live_tick *ret_tick)
{
    bool is_in_step = seen != 0 && seen == sampler->before.serial;
    domus_slice *event = is_in_step ? &sampler->in_step : &sampler->full;
    domi_live_tick tick = {.serial = sampler->now.serial};
    int error = 0;

    if (event->size == 0)
        error = domi_sample_event(&sampler->now, is_in_step ? &sampler->before : NULL, event);
    if (error == 0 && seen == 0 && sampler->names.size == 0)
        error = domi_sample_names(domi_observed.observed, &sampler->names);
    if (error == 0 && seen == 0)
        error = domus_slice_keep(sampler->names, &tick.names);
    if (error == 0)
        error = domus_slice_keep(*event, &tick.sample);
    if (error != 0) {
        release_tick(&tick);
        return error;
    }
    *ret_tick = tick;
    return 0;
}

/* --- viewers that wait for a tick ------------------------------------------------------------- */

static void fail_waiting(domus_stack *stack, struct sampler *sampler, int error)
{
    while (sampler->waiting_count != 0)
        (void)domus_kept_fail(stack, sampler->waiting[--sampler->waiting_count], error);
}

/* Answer all viewers that wait; they have seen the sample with the number `seen`. */
static void answer_waiting(domus_stack *stack, struct sampler *sampler, uint64_t seen)
{
    domi_live_tick tick;

    while (sampler->waiting_count != 0) {
        int error = make_tick(sampler, seen, &tick);
        if (error != 0) {
            fail_waiting(stack, sampler, error);
            return;
        }
        if (domus_kept_reply(stack, sampler->waiting[--sampler->waiting_count],
                             &domi_live_tick_type, &tick) != 0)
            release_tick(&tick); /* the viewer is gone, so its tick is freed */
    }
}

/* Read a sample, and answer all viewers that wait. */
static void serve_waiting(domus_stack *stack, struct sampler *sampler)
{
    uint64_t seen = sampler->now.serial;
    int error = read_sample(stack, sampler);

    if (error != 0)
        fail_waiting(stack, sampler, error);
    else
        answer_waiting(stack, sampler, seen);
}

static int begin_tick(domus_stack *stack, struct sampler *sampler)
{
    if (sampler->ticks || sampler->is_ending)
        return 0;
    int error = domus_after(stack, DOMI_LIVE_TICK_NS, &tick_type, NULL, NULL);
    sampler->ticks = error == 0;
    return error;
}

/* Handle a tick: without waiting viewers it is the last one. */
static int handle_tick(domus_stack *stack, void *self, const void *payload)
{
    struct sampler *sampler = self;

    (void)payload;
    sampler->ticks = false;
    if (sampler->waiting_count == 0)
        return 0;
    int error = begin_tick(stack, sampler);
    if (error != 0)
        fail_waiting(stack, sampler, error);
    serve_waiting(stack, sampler);
    return 0;
}

/* --- messages --------------------------------------------------------------------------------- */

/* Keep the ask of a viewer until the next tick. A viewer that has gone away leaves its ask behind
 * until then. When such asks have taken all places, all viewers get their sample early. */
static int wait_for_tick(domus_stack *stack, struct sampler *sampler)
{
    if (sampler->waiting_count == domi_live_streams_max())
        serve_waiting(stack, sampler);
    int error = begin_tick(stack, sampler);
    if (error == 0)
        error = domus_keep(stack, &sampler->waiting[sampler->waiting_count]);
    if (error == 0)
        sampler->waiting_count++;
    return error;
}

static int handle_next_request(domus_stack *stack, void *self, const void *payload)
{
    uint64_t seen = ((const domi_live_next *)payload)->serial;
    struct sampler *sampler = self;
    domi_live_tick tick;
    int error = 0;

    if (sampler->is_ending)
        return -ESHUTDOWN;
    if (seen != 0 && seen == sampler->now.serial)
        return wait_for_tick(stack, sampler);
    if (!sampler->ticks)
        error = read_sample(stack, sampler); /* the last sample is too old */
    if (error == 0)
        error = make_tick(sampler, seen, &tick);
    if (error != 0)
        return error;
    error = domus_reply(stack, &domi_live_tick_type, &tick);
    if (error != 0)
        release_tick(&tick);
    return error;
}

static int end_streams(domus_stack *stack, void *self, const void *payload)
{
    (void)payload;
    ((struct sampler *)self)->is_ending = true;
    fail_waiting(stack, self, -ESHUTDOWN);
    return 0;
}

static int mount_sampler(domus_stack *stack, void *self)
{
    struct sampler *sampler = self;

    (void)stack;
    sampler->waiting = calloc(domi_live_streams_max(), sizeof *sampler->waiting);
    return sampler->waiting != NULL ? 0 : -ENOMEM;
}

static void stop_sampler(domus_stack *stack, void *self)
{
    struct sampler *sampler = self;

    (void)stack;
    drop_texts(sampler);
    domus_slice_free(sampler->names);
    domi_sample_fini(&sampler->now);
    domi_sample_fini(&sampler->before);
    free(sampler->waiting);
}

const domus_behaviour domi_live_sampler = {
    .name = "sampler",
    .state_size = sizeof(struct sampler),
    .on = (const domus_on[]){{&domi_live_next_type, handle_next_request, 0},
                             {&tick_type, handle_tick, 0},
                             {&domi_live_end_type, end_streams, 0},
                             {NULL, NULL, 0}},
    .on_mount = mount_sampler,
    .on_stop = stop_sampler,
};
