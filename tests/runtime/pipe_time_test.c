/* io/pipelines/time.c: the time that stages may use in one phase 2 is bounded, on a virtual clock
 * that the stage of this test moves. Beside many channels whose messages take a millisecond each,
 * state actors and timers get their time, and each channel gets its turn. */
#include "runtime/system/system.h"

#include "tests/runtime/pipes.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND
/* A gap that counts as long: each of the three threads may take 2 ms and one more message, and all
 * of them move the same clock. */
#define LONG_GAP (3 * 3 * MS)
#define PEERS    DOMT_SCALE(1000, 200)

/* --- a stage that takes its time -------------------------------------------------------------- */

static domus_system *running;
static uint64_t cost_ns;     /* time on the clock that the stage takes for a message */
static uint32_t decoded;     /* number of messages of all channels */
static uint32_t most_of_one; /* number of messages of the channel that has had most */
/* number of channels that have had no message yet */
static uint32_t first_unserved;

typedef struct slow_state {
    uint32_t messages;
} slow_state;

static int count_unserved_at_open(domus_wire *wire, void *state, const void *options)
{
    first_unserved++;
    return 0;
}

static uint32_t served_twice_too_early;

static int decode_line_slowly(domus_wire *wire, void *state_, const char *bytes, size_t size)
{
    slow_state *state = state_;
    const char *end = memchr(bytes, '\n', size);

    if (end == NULL)
        return 0;
    domi_clock_advance_virtual(&running->clock, cost_ns);
    decoded++;
    if (state->messages++ == 0)
        first_unserved--;
    else if (state->messages == 2 && first_unserved > 20)
        served_twice_too_early++;
    if (state->messages > most_of_one)
        most_of_one = state->messages;
    domus_packet *packet = domus_wire_request(wire, &domus_packet_type, DOMUS_NO_ID);
    if (packet == NULL)
        return -ENOMEM;
    packet->bytes = domus_wire_slice(wire, bytes, (size_t)(end - bytes));
    return (int)(end - bytes) + 1;
}

static int encode_packet_as_line(domus_wire *wire, void *state, uint64_t id, const domus_type *type,
                                 const void *payload)
{
    int error = domus_wire_append_slice(wire, ((const domus_packet *)payload)->bytes);
    return error != 0 ? error : domus_wire_append(wire, "\n", 1);
}

static const domus_stage slow_stage = {.name = "slow",
                                       .state_size = sizeof(slow_state),
                                       .open = count_unserved_at_open,
                                       .decode = decode_line_slowly,
                                       .encode = encode_packet_as_line};

static int reply_same_packet(domus_stack *stack, void *self, const void *payload)
{
    domus_packet packet;
    int error = domus_slice_keep(((const domus_packet *)payload)->bytes, &packet.bytes);
    return error != 0 ? error : domus_reply(stack, &domus_packet_type, &packet);
}

static const domus_pipeline slow = {
    .stages = (const domus_pipeline_stage[]){{&slow_stage, NULL}, {NULL, NULL}}};
static const domus_behaviour service = {
    .name = "slow",
    .kind = DOMUS_CHANNELS,
    .pipeline = &slow,
    .on_peer = (const domus_on_peer[]){{.type = &domus_packet_type, .handle = reply_same_packet},
                                       {.type = NULL}}};

/* --- a state actor with a timer --------------------------------------------------------------- */

static const domus_type tick_type = {.name = "tick"};
static uint64_t last_ns, longest_ns;
static uint32_t long_gaps; /* number of gaps between two ticks that were longer than LONG_GAP */

static int record_gap_between_ticks(domus_stack *stack, void *self, const void *payload)
{
    uint64_t now_ns = domi_clock_now(&running->clock);
    if (last_ns != 0 && now_ns - last_ns > longest_ns)
        longest_ns = now_ns - last_ns;
    long_gaps += last_ns != 0 && now_ns - last_ns > LONG_GAP;
    last_ns = now_ns;
    return 0;
}

static int arm_timer_in_mount(domus_stack *stack, void *self)
{
    return domus_every(stack, MS, &tick_type, NULL, NULL);
}

static const domus_behaviour clock_actor = {
    .name = "clock",
    .on_mount = arm_timer_in_mount,
    .on = (const domus_on[]){{&tick_type, record_gap_between_ticks, 0}, {0}}};

/* --- kits ------------------------------------------------------------------------------------- */

static void begin_kit_with_slow_stages(uint64_t cost, uint64_t limit_ns)
{
    domus_address address;

    domus_config config = domt_pipe_default_config();
    config.system.threads = 3;
    config.scheduler.stage_time_ns = limit_ns;
    config.io.buffers.count = 4096;
    cost_ns = 0;
    decoded = most_of_one = first_unserved = served_twice_too_early = long_gaps = 0;
    last_ns = longest_ns = 0;
    (void)domt_pipes_new_kit(&config, &service, 1);
    running = domt_pipe_system_of_kit();
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_int_eq(domus_outside_spawn_on(running, i, &clock_actor, NULL, &address), 0);
    cost_ns = cost;
}

static uint64_t count_late_channels(void)
{
    domus_profile profile;
    uint64_t late = 0;
    for (uint32_t i = 0; domus_system_profile(running, i, &profile) == 0; i++)
        late += profile.channels_late;
    return late;
}

static domus_peer *peers[1000];

static void connect_peers_and_reset_gaps(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        peers[i] = domt_pipe_connect_peer();
    domt_pipe_pass_time(MS);
    last_ns = longest_ns = 0;
    long_gaps = 0;
}

DOMT_TEST(timers_keep_their_time_beside_expensive_stages)
{
    begin_kit_with_slow_stages(MS, 2 * MS);

    connect_peers_and_reset_gaps(PEERS);
    for (uint32_t i = 0; i < PEERS; i++)
        domt_pipe_peer_say(peers[i], "a\nb\nc\n");
    while (decoded < 3 * PEERS)
        domt_pipe_pass_time(MS);
    /* A thread looks at the time only after 16 messages, and may then take 2 ms and one more
     * message. All three threads move the same clock. */
    ck_assert_uint_le(longest_ns, 3 * 17 * MS);
    ck_assert_uint_le(long_gaps, 2 * 3);
    ck_assert_uint_ge(count_late_channels(), PEERS);
    for (uint32_t i = 0; i < PEERS; i++) {
        domt_pipe_peer_hear(peers[i], "a\nb\nc\n");
        domus_peer_close(peers[i]);
    }
    domt_pipe_free_kit();
}

DOMT_TEST(each_channel_gets_its_turn)
{
    begin_kit_with_slow_stages(MS, 2 * MS);

    connect_peers_and_reset_gaps(PEERS);
    for (uint32_t i = 0; i < PEERS; i++)
        domt_pipe_peer_say(peers[i], "a\nb\nc\n");
    while (first_unserved != 0)
        domt_pipe_pass_time(MS);
    /* A few channels get a second message early: those that ran before the thread looked at the
     * time, and some more because the three threads do not go round together. */
    ck_assert_uint_le(served_twice_too_early, PEERS / 4);
    ck_assert_uint_le(most_of_one, 3);
    domt_pipe_free_kit();
}

DOMT_TEST(one_message_is_handled_in_any_case)
{
    begin_kit_with_slow_stages(100 * MS, 1000);

    connect_peers_and_reset_gaps(10);
    for (uint32_t i = 0; i < 10; i++)
        domt_pipe_peer_say(peers[i], "a\nb\n");
    for (uint32_t i = 0; i < 10; i++)
        domt_pipe_peer_hear(peers[i], "a\nb\n");
    ck_assert_uint_eq(decoded, 20);
    domt_pipe_free_kit();
}

DOMT_TEST(channels_that_end_while_they_wait_hold_nobody_up)
{
    begin_kit_with_slow_stages(MS, 2 * MS);

    connect_peers_and_reset_gaps(100);
    for (uint32_t i = 0; i < 100; i++)
        domt_pipe_peer_say(peers[i], "a\nb\nc\n");
    while (decoded < 60)
        (void)domus_testkit_step(domt_pipe_kit);
    for (uint32_t i = 0; i < 100; i += 2)
        domus_peer_reset(peers[i]);
    for (uint32_t i = 1; i < 100; i += 2)
        domt_pipe_peer_hear(peers[i], "a\nb\nc\n");
    domt_pipe_free_kit();
}

DOMT_TEST(cheap_stages_are_not_put_off)
{
    begin_kit_with_slow_stages(1000, 2 * MS);

    connect_peers_and_reset_gaps(100);
    for (uint32_t i = 0; i < 100; i++)
        domt_pipe_peer_say(peers[i], "a\nb\nc\n");
    for (uint32_t i = 0; i < 100; i++)
        domt_pipe_peer_hear(peers[i], "a\nb\nc\n");
    ck_assert_uint_eq(count_late_channels(), 0);
    domt_pipe_free_kit();
}

DOMT_SUITE(120)
