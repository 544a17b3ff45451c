/* An echo service on three threads, with scripted peers and all faults of the network, over many
 * seeds: every byte is accounted for. DOMUS_SEED=n runs seed n alone, and prints its trace if
 * something does not hold. DOMT_LONG runs 50 times as many. */
#include "tests/runtime/net_sweep.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SEEDS DOMT_SCALE(2000, 120)
#define DEEDS 60u /* of the clients of a seed */

static const domus_type wake_type = {.name = "wake"};
static const domus_type ask_type = {.name = "ask"};

/* --- the service ------------------------------------------------------------------------------ */

static int give_back(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    return domus_channel_write(stack, event->channel, event->bytes);
}

/* The bytes go back in buffers of their own, piece by piece. */
static int give_copies(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    const char *data = domus_buffer_data(event->bytes);
    size_t size = domus_buffer_size(event->bytes);
    int result = 0;

    for (size_t at = 0; at < size && result == 0;) {
        size_t part = size - at < 100 ? size - at : 100;
        domus_buffer *copy;

        result = domus_buffer_new(stack, part, &copy);
        if (result == 0) {
            memcpy(domus_buffer_data(copy), data + at, part);
            result = domus_channel_write(stack, event->channel, copy);
        }
        at += part;
    }
    domus_buffer_free(event->bytes);
    return result;
}

/* Each piece goes back, and no more is read for a millisecond. */
static int give_slowly(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    int result = domus_channel_pause(stack, event->channel);

    if (result == 0)
        result = domus_after(stack, DOMT_SWEEP_MS, &wake_type, NULL, NULL);
    if (result != 0) {
        domus_buffer_free(event->bytes);
        return result;
    }
    return domus_channel_write(stack, event->channel, event->bytes);
}

static int go_on(domus_stack *stack, void *self, const void *nothing)
{
    domus_channel *channel = domus_channel_running(stack);

    if (channel != NULL)
        (void)domus_channel_resume(stack, channel);
    return 0;
}

static int answered(domus_stack *stack, void *self, const domus_answer *answer)
{
    domus_channel *channel = domus_channel_running(stack);
    domus_buffer *bytes = *(domus_buffer **)domus_frame(stack);

    if (answer->error != 0 || channel == NULL) {
        domus_buffer_free(bytes);
        return answer->error;
    }
    return domus_channel_write(stack, channel, bytes);
}

static domus_address helper; /* of the seed that runs */

/* Each piece goes back when an actor of another thread has answered. */
static int ask_first(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    int result;

    *(domus_buffer **)domus_frame(stack) = event->bytes;
    result = domus_ask(stack, helper, &ask_type, NULL, answered);
    if (result != DOMUS_PARKED)
        domus_buffer_free(event->bytes);
    return result;
}

static int help(domus_stack *stack, void *self, const void *nothing)
{
    return domus_reply(stack, &wake_type, NULL);
}

static const domus_behaviour helping = {
    .name = "helper",
    .on = (const domus_on[]){{&ask_type, help, 0}, {0}},
};

static int finish(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    return domus_channel_finish(stack, event->channel);
}

/* Every connection of a thread keeps what it has got for 20 milliseconds, beyond its own end. */
typedef struct hoard {
    domus_buffer *kept[64];
    uint32_t count;
} hoard;

static int hoard_read(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    size_t size = domus_buffer_size(event->bytes);
    hoard *kept = self;
    domus_buffer *copy;
    int result = domus_buffer_new(stack, size, &copy);

    if (result == 0) {
        memcpy(domus_buffer_data(copy), domus_buffer_data(event->bytes), size);
        result = domus_channel_write(stack, event->channel, copy);
    }
    if (result != 0 || kept->count == 64) {
        domus_buffer_free(event->bytes);
        return result;
    }
    kept->kept[kept->count++] = event->bytes;
    return 0;
}

static int hoard_free(domus_stack *stack, void *self, const void *nothing)
{
    hoard *kept = self;

    while (kept->count != 0)
        domus_buffer_free(kept->kept[--kept->count]);
    return 0;
}

static int hoard_mount(domus_stack *stack, void *self)
{
    return domus_every(stack, 20 * DOMT_SWEEP_MS, &wake_type, NULL, NULL);
}

static void hoard_stop(domus_stack *stack, void *self)
{
    (void)hoard_free(stack, self, NULL);
}

static const domus_on hoard_rows[] = {{&wake_type, hoard_free, 0}, {0}};

static const domus_on slow_rows[] = {{&wake_type, go_on, 0}, {0}};

static const domus_behaviour services[] = {
    {.name = "echo", .kind = DOMUS_CHANNELS, .on_read = {give_back, 0}},
    {.name = "copies", .kind = DOMUS_CHANNELS, .on_read = {give_copies, 0}},
    {.name = "slow", .kind = DOMUS_CHANNELS, .on_read = {give_slowly, 0}, .on = slow_rows},
    {.name = "asks", .kind = DOMUS_CHANNELS, .on_read = {ask_first, sizeof(domus_buffer *)}},
    {.name = "hoards",
     .kind = DOMUS_CHANNELS,
     .state_size = sizeof(hoard),
     .on_mount = hoard_mount,
     .on_stop = hoard_stop,
     .on_read = {hoard_read, 0},
     .on = hoard_rows},
    {.name = "both", .kind = DOMUS_CHANNELS, .on_read = {give_back, 0}, .on_end = {finish, 0}},
};
#define SERVICES (sizeof services / sizeof services[0])

/* --- a seed ----------------------------------------------------------------------------------- */

static int run_seed(uint64_t seed, void *context)
{
    domt_sweep sweep = {.seed = seed};

    domi_random_init(&sweep.random, seed);
    domt_sweep_listen(&sweep, "echo", "127.0.0.1:80");
    domus_system *system = domus_testkit_system(sweep.kit);
    const domus_behaviour *behaviour = &services[domt_sweep_below(&sweep, SERVICES)];
    ck_assert_int_eq(domus_outside_spawn(system, &helping, NULL, &helper), 0);
    ck_assert_int_eq(domus_serve(system, "echo", behaviour, NULL, NULL), 0);
    domt_sweep_draw_faults(&sweep);
    ck_assert_int_eq(domus_testkit_net_set(sweep.kit, &sweep.faults), 0);
    domt_sweep_play(&sweep, "127.0.0.1:80", DEEDS);
    /* in some seeds the system stops in the midst of it all */
    if (domt_sweep_below(&sweep, 4) != 0)
        domt_sweep_settle(&sweep);
    return domt_sweep_end(&sweep);
}

DOMT_TEST(every_byte_of_an_echo_is_accounted_for)
{
    domt_sweep_seeds(SEEDS, run_seed);
}

DOMT_SUITE(3000)
