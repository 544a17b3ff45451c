/* The clock: an actor that counts the requests of the site at each tick, for /events.
 *
 * A page that gets events asks for the tick behind the last one that it has seen. The clock keeps
 * the ask until there is one. So a page that reads slowly asks late and misses ticks, and nothing
 * piles up for it. There are ticks only while somebody waits for one. */
#include "web.h"

#include <domus/http_event.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SECOND_NS UINT64_C(1000000000)

struct clock {
    domus_kept *waiting; /* asks that wait for the next tick, at most web_settings.events_max */
    uint32_t waiting_count;
    bool ticks, is_ending;
    uint64_t serial; /* number of the last tick; 0: there was none */
    /* time of the last tick, and number of requests counted until then */
    uint64_t ticked_ns, requests;
    domus_slice event; /* bytes of the event that tells the last tick */
};

static void release_tick(void *payload)
{
    domus_slice_free(((const struct web_tick *)payload)->event);
}

static const domus_type tick_type = {.name = "clock ticks"};
const domus_type web_next_type = {.name = "next tick", .size = sizeof(struct web_next)};
const domus_type web_tick_type = {
    .name = "tick", .size = sizeof(struct web_tick), .release = release_tick};
const domus_type web_end_type = {.name = "events end"};

/* --- the event -------------------------------------------------------------------------------- */

static void begin_counting_requests_of_tick(domus_stack *stack, struct clock *clock)
{
    clock->requests = web_count_of_requests();
    clock->ticked_ns = domus_now_ns(stack);
}

/* Write the event of a tick: how many requests there were in a second, since the last tick. */
static int write_event_of_request_rate(domus_stack *stack, const struct clock *clock,
                                       domus_slice *ret_event)
{
    uint64_t time_ns = domus_now_ns(stack) - clock->ticked_ns;
    uint64_t requests = web_count_of_requests() - clock->requests;
    domus_appender event = {0};
    char json[64];

    snprintf(json, sizeof json, "{\"requests\":%" PRIu64 "}",
             time_ns != 0 ? requests * SECOND_NS / time_ns : 0);
    (void)domus_http_add_event(&event, &(domus_http_event){.name = "rate", .data = json});
    return domus_append_end(&event, ret_event);
}

/* --- askers that wait ------------------------------------------------------------------------- */

static void fail_waiting_pages(domus_stack *stack, struct clock *clock, int error)
{
    while (clock->waiting_count != 0)
        (void)domus_kept_fail(stack, clock->waiting[--clock->waiting_count], error);
}

static void answer_waiting_pages(domus_stack *stack, struct clock *clock)
{
    struct web_tick tick = {.serial = clock->serial};

    while (clock->waiting_count != 0) {
        int error = domus_slice_keep(clock->event, &tick.event);
        if (error != 0) {
            fail_waiting_pages(stack, clock, error);
            return;
        }
        if (domus_kept_reply(stack, clock->waiting[--clock->waiting_count], &web_tick_type,
                             &tick) != 0)
            domus_slice_free(tick.event); /* the asker is gone, so the event is freed here */
    }
}

/* --- ticks ------------------------------------------------------------------------------------ */

static int arm_tick_timer(domus_stack *stack, struct clock *clock)
{
    if (clock->ticks)
        return 0;
    int error = domus_after(stack, web_settings.tick_ns, &tick_type, NULL, NULL);
    clock->ticks = error == 0;
    return error;
}

/* Make the event of a new tick, and answer all asks that wait with it. */
static void answer_pages_with_event_of_new_tick(domus_stack *stack, struct clock *clock)
{
    domus_slice event;
    int error = write_event_of_request_rate(stack, clock, &event);

    if (error != 0) {
        fail_waiting_pages(stack, clock, error);
        return;
    }
    begin_counting_requests_of_tick(stack, clock);
    clock->serial++;
    domus_slice_free(clock->event);
    clock->event = event;
    answer_waiting_pages(stack, clock);
}

static int tell_tick_to_pages_at_timer(domus_stack *stack, void *self, const void *payload)
{
    struct clock *clock = self;

    (void)payload;
    clock->ticks = false;
    if (clock->is_ending)
        return 0;
    answer_pages_with_event_of_new_tick(stack, clock);
    return 0;
}

/* --- messages --------------------------------------------------------------------------------- */

static int answer_or_keep_ask_for_tick(domus_stack *stack, void *self, const void *payload)
{
    const struct web_next *next = payload;
    struct clock *clock = self;
    struct web_tick tick = {.serial = clock->serial};

    if (clock->is_ending)
        return -ESHUTDOWN;
    if (clock->event.size != 0 && next->serial != 0 && next->serial != tick.serial) {
        int error = domus_slice_keep(clock->event, &tick.event);
        return error != 0 ? error : domus_reply(stack, &web_tick_type, &tick);
    }
    /* A page that has gone leaves its ask behind until the tick. When such asks have taken all
     * places, the others hear of a tick early. */
    if (clock->waiting_count == web_settings.events_max)
        answer_pages_with_event_of_new_tick(stack, clock);
    int error = domus_keep(stack, &clock->waiting[clock->waiting_count]);
    if (error != 0)
        return error;
    clock->waiting_count++;
    if (!clock->ticks)
        /* begin to count anew, because nobody has waited for the time before */
        begin_counting_requests_of_tick(stack, clock);
    return arm_tick_timer(stack, clock);
}

static int end_all_events(domus_stack *stack, void *self, const void *payload)
{
    struct clock *clock = self;

    (void)payload;
    clock->is_ending = true;
    fail_waiting_pages(stack, clock, -ESHUTDOWN);
    return 0;
}

static void stop_clock(domus_stack *stack, void *self)
{
    struct clock *clock = self;

    (void)stack;
    domus_slice_free(clock->event);
    free(clock->waiting);
}

static int mount_clock(domus_stack *stack, void *self)
{
    struct clock *clock = self;

    (void)stack;
    clock->waiting = calloc(web_settings.events_max, sizeof *clock->waiting);
    return clock->waiting != NULL ? 0 : -ENOMEM;
}

const domus_behaviour web_clock_behaviour = {
    .name = "clock",
    .state_size = sizeof(struct clock),
    .on = (const domus_on[]){{&web_next_type, answer_or_keep_ask_for_tick, 0},
                             {&tick_type, tell_tick_to_pages_at_timer, 0},
                             {&web_end_type, end_all_events, 0},
                             {NULL, NULL, 0}},
    .on_mount = mount_clock,
    .on_stop = stop_clock,
};
