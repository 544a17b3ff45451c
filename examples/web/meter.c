/* The meter: an actor that reads the profile of all threads at each tick, for /events and for the
 * live line.
 *
 * A page that gets events asks for the tick behind the last one that it has seen. The meter keeps
 * the ask until there is one. So a page that reads slowly asks late and misses ticks, and nothing
 * piles up for it. There are ticks only while somebody waits for one. */
#include "web.h"

#include <domus/http_event.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define SECOND_NS UINT64_C(1000000000)

/* Counters of a thread at the last tick. */
struct sample {
    uint64_t wall_ns, messages;
    uint64_t phase_ns[DOMUS_PHASES];
};

struct meter {
    struct sample *samples;  /* the samples of each thread */
    struct web_rates *rates; /* of the last tick */
    domus_kept *waiting;     /* web_settings.events_max */
    uint32_t waiting_count;
    bool ticks, is_ending, is_writing;
    uint64_t ticked_ns, requests; /* at the last tick */
    domus_slice event;            /* the event of the last tick */
};

static void release_tick(void *payload)
{
    domus_slice_free(((const struct web_tick *)payload)->event);
}

static const domus_type tick_type = {.name = "meter ticks"};
const domus_type web_next_type = {.name = "next tick", .size = sizeof(struct web_next)};
const domus_type web_tick_type = {
    .name = "tick", .size = sizeof(struct web_tick), .release = release_tick};
const domus_type web_end_type = {.name = "events end"};

/* --- counting --------------------------------------------------------------------------------- */

static uint64_t rate(uint64_t count, uint64_t time_ns)
{
    return time_ns != 0 ? count * SECOND_NS / time_ns : 0;
}

/* Read a thread. Returns the messages that it has handled since the last tick. */
static uint64_t read_thread(struct meter *meter, uint32_t thread)
{
    struct sample *sample = &meter->samples[thread];
    struct web_rates *rates = meter->rates;
    domus_profile profile;

    if (domus_system_profile(web_system, thread, &profile) != 0)
        return 0;
    uint64_t wall_ns = profile.wall_ns - sample->wall_ns;
    uint64_t messages = profile.asks + profile.notices;
    for (int i = 0; i < DOMUS_PHASES; i++) {
        uint64_t now_ns = profile.phase_ns[i], before_ns = sample->phase_ns[i];
        uint64_t spent_ns = now_ns > before_ns ? now_ns - before_ns : 0; /* sleep may go back */
        if (spent_ns > wall_ns)
            spent_ns = wall_ns;
        uint64_t permille = wall_ns != 0 ? spent_ns * 1000 / wall_ns : 0;
        rates->shares[thread].phases[i] = (uint16_t)permille;
        sample->phase_ns[i] = now_ns;
    }
    sample->wall_ns = profile.wall_ns;
    messages -= sample->messages;
    sample->messages += messages;
    rates->connections += profile.channels_opened - profile.channels_closed;
    return messages;
}

static void read_all(domus_stack *stack, struct meter *meter)
{
    uint64_t now_ns = domus_now_ns(stack), time_ns = now_ns - meter->ticked_ns;
    uint64_t requests = web_requests(), messages = 0;

    meter->rates->connections = 0;
    for (uint32_t i = 0; i < meter->rates->threads; i++)
        messages += read_thread(meter, i);
    meter->rates->messages = rate(messages, time_ns);
    meter->rates->requests = rate(requests - meter->requests, time_ns);
    meter->requests = requests;
    meter->ticked_ns = now_ns;
}

/* --- the event -------------------------------------------------------------------------------- */

static void write_thread(domus_appender *json, const uint16_t *phases)
{
    for (int i = 0; i < DOMUS_PHASES; i++)
        (void)domus_append_text(json, "%s%u", i == 0 ? "[" : ",", phases[i]);
    (void)domus_append(json, "]", 1);
}

/* The text ends with a zero, as domus_http_add_event() wants it. */
static int write_json(const struct web_rates *rates, domus_slice *ret_text)
{
    domus_appender json = {0};

    (void)domus_append_text(&json,
                            "{\"requests\":%" PRIu64 ",\"messages\":%" PRIu64
                            ",\"connections\":%" PRIu64 ",\"phases\":",
                            rates->requests, rates->messages, rates->connections);
    for (int i = 0; i < DOMUS_PHASES; i++)
        (void)domus_append_text(&json, "%s\"%s\"", i == 0 ? "[" : ",",
                                domus_phase_name((domus_phase)i));
    (void)domus_append_text(&json, "],\"threads\":");
    for (uint32_t i = 0; i < rates->threads; i++) {
        (void)domus_append(&json, i == 0 ? "[" : ",", 1);
        write_thread(&json, rates->shares[i].phases);
    }
    (void)domus_append(&json, "]}", sizeof "]}");
    return domus_append_end(&json, ret_text);
}

static int write_event(const struct web_rates *rates, domus_slice *ret_event)
{
    domus_appender event = {0};
    domus_slice json;
    int error = write_json(rates, &json);

    if (error != 0)
        return error;
    (void)domus_http_add_event(
        &event, &(domus_http_event){.name = "rates", .data = domus_slice_data(json)});
    domus_slice_free(json);
    return domus_append_end(&event, ret_event);
}

/* --- askers that wait ------------------------------------------------------------------------- */

static void fail_waiting(domus_stack *stack, struct meter *meter, int error)
{
    while (meter->waiting_count != 0)
        (void)domus_kept_fail(stack, meter->waiting[--meter->waiting_count], error);
}

static void answer_waiting(domus_stack *stack, struct meter *meter)
{
    struct web_tick tick = {.serial = meter->rates->serial};

    while (meter->waiting_count != 0) {
        int error = domus_slice_keep(meter->event, &tick.event);
        if (error != 0) {
            fail_waiting(stack, meter, error);
            return;
        }
        if (domus_kept_reply(stack, meter->waiting[--meter->waiting_count], &web_tick_type,
                             &tick) != 0)
            domus_slice_free(tick.event); /* its asker is gone */
    }
}

/* --- ticks ------------------------------------------------------------------------------------ */

static int begin_tick(domus_stack *stack, struct meter *meter)
{
    if (meter->ticks || meter->is_ending || (meter->waiting_count == 0 && !web_settings.is_live))
        return 0;
    int error = domus_after(stack, web_settings.tick_ns, &tick_type, NULL, NULL);
    meter->ticks = error == 0;
    return error;
}

static int wrote_line(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)stack, (void)answer; /* a line that cannot be written is left away */
    ((struct meter *)self)->is_writing = false;
    return 0;
}

static int write_line(void *argument)
{
    web_live_write(argument);
    return 0;
}

/* Make an event of the rates, and answer all asks that wait with it. */
static void tell_waiting(domus_stack *stack, struct meter *meter)
{
    domus_slice event;
    int error = write_event(meter->rates, &event);

    if (error != 0) {
        fail_waiting(stack, meter, error);
        return;
    }
    meter->rates->serial++;
    domus_slice_free(meter->event);
    meter->event = event;
    answer_waiting(stack, meter);
}

static int take_tick(domus_stack *stack, void *self, const void *payload)
{
    struct meter *meter = self;

    (void)payload;
    meter->ticks = false;
    if (meter->is_ending)
        return 0;
    if (!meter->is_writing)
        read_all(stack, meter);
    tell_waiting(stack, meter);
    int error = begin_tick(stack, meter);
    if (error != 0 || !web_settings.is_live || meter->is_writing)
        return error;
    meter->is_writing = true;
    return domus_blocking(stack, write_line, meter->rates, wrote_line);
}

/* --- messages --------------------------------------------------------------------------------- */

static int wait_for_tick(domus_stack *stack, void *self, const void *payload)
{
    const struct web_next *next = payload;
    struct meter *meter = self;
    struct web_tick tick = {.serial = meter->rates->serial};

    if (meter->is_ending)
        return -ESHUTDOWN;
    if (meter->event.size != 0 && next->serial != 0 && next->serial != tick.serial) {
        int error = domus_slice_keep(meter->event, &tick.event);
        return error != 0 ? error : domus_reply(stack, &web_tick_type, &tick);
    }
    /* A page that has gone leaves its ask behind until the tick. When such asks have taken all
     * places, the others hear of the same rates once more, and early. */
    if (meter->waiting_count == web_settings.events_max)
        tell_waiting(stack, meter);
    int error = domus_keep(stack, &meter->waiting[meter->waiting_count]);
    if (error != 0)
        return error;
    meter->waiting_count++;
    if (!meter->ticks && !meter->is_writing)
        read_all(stack, meter); /* the rates are those from now on */
    return begin_tick(stack, meter);
}

static int end_events(domus_stack *stack, void *self, const void *payload)
{
    struct meter *meter = self;

    (void)payload;
    meter->is_ending = true;
    fail_waiting(stack, meter, -ESHUTDOWN);
    return 0;
}

static void stop(domus_stack *stack, void *self)
{
    struct meter *meter = self;

    (void)stack;
    if (web_settings.is_live)
        web_live_end();
    domus_slice_free(meter->event);
    free(meter->samples);
    free(meter->rates);
    free(meter->waiting);
}

static int mount(domus_stack *stack, void *self)
{
    struct meter *meter = self;
    uint32_t threads = domus_system_threads(web_system);

    meter->samples = calloc(threads, sizeof *meter->samples);
    meter->rates = calloc(1, sizeof *meter->rates + threads * sizeof meter->rates->shares[0]);
    meter->waiting = calloc(web_settings.events_max, sizeof *meter->waiting);
    if (meter->samples == NULL || meter->rates == NULL || meter->waiting == NULL) {
        stop(stack, self); /* it has not mounted, so nobody else does */
        return -ENOMEM;
    }
    meter->rates->threads = threads;
    read_all(stack, meter);
    return begin_tick(stack, meter);
}

const domus_behaviour web_meter_behaviour = {
    .name = "meter",
    .state_size = sizeof(struct meter),
    .on = (const domus_on[]){{&web_next_type, wait_for_tick, 0},
                             {&tick_type, take_tick, 0},
                             {&web_end_type, end_events, 0},
                             {NULL, NULL, 0}},
    .on_mount = mount,
    .on_stop = stop,
};
