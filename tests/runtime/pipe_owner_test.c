/* The owner of channels with pipelines: its restarts and stops while requests are open, and the
 * bound on the time of its stages in one phase 2. */
#include "base/memory.h"
#include "runtime/system/system.h"
#include "runtime/testkit/kit.h"
#include "tests/runtime/pipes.h"
#include "tests/runtime/streams.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The actor that owns channels with pipelines restarts or is stopped while their requests, bodies
 * and streams are open: each connection ends, nothing of it is left, and the next connection is
 * served. */

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

static domus_address owner;
static uint32_t mounts; /* number of times that the owner was mounted */

static const domus_type fail_type = {.name = "fail"};

static int fail_with_eio(domus_stack *stack, void *self, const void *payload)
{
    return -EIO;
}

static int listen_in_mount(domus_stack *stack, void *self)
{
    domus_endpoint at;
    owner = domus_self(stack);
    mounts++;
    ck_assert_int_eq(domus_endpoint_parse("127.0.0.1:90", &at), 0);
    return domus_listen(stack, &at, NULL, NULL, NULL);
}

static domus_behaviour owning = {.name = "owning",
                                 .kind = DOMUS_CHANNELS,
                                 .on = (const domus_on[]){{&fail_type, fail_with_eio, 0}, {0}},
                                 .on_mount = listen_in_mount};

static int spawn_owner_on_thread_1(domus_stack *stack, void *self)
{
    const domus_spawn_options options = {.placement = DOMUS_ON_THREAD, .thread = 1};
    domus_address address;
    return domus_spawn_with(stack, &owning, NULL, &options, &address);
}

static const domus_supervision restarting = {.otherwise = DOMUS_RESTART};
static const domus_behaviour top = {
    .name = "top", .on_mount = spawn_owner_on_thread_1, .supervision = &restarting};

/* Make a kit, and in it an owner whose channels have this behaviour, beside the channels of the kit
 * itself. */
static void make_kit_with_owner(const domus_behaviour *behaviour, bool streams)
{
    domus_address address;
    (void)(streams ? domt_streams_new_kit(NULL, behaviour)
                   : domt_pipes_new_kit(NULL, behaviour, 3));

    owning.channel = behaviour;
    mounts = 0;
    ck_assert_int_eq(domus_outside_spawn_on(domt_pipe_system_of_kit(), 0, &top, NULL, &address), 0);
    domt_pipe_run_kit();
    ck_assert_uint_eq(mounts, 1);
}

static domus_peer *connect_peer_to_owner(void)
{
    domus_peer *peer;
    ck_assert_int_eq(domus_peer_connect(domt_pipe_kit, "127.0.0.1:90", NULL, &peer), 0);
    ck_assert_int_eq(domus_peer_expect_connected(peer, SECOND), 0);
    return peer;
}

/* Bytes that the peers send, each on its own connection, before the owner restarts or is
 * stopped. */
static const char *const requests[] = {"hang 0 a\n",
                                       "sleep 5000 a\nnow 0 b\nslice 0 c\n",
                                       "far 5000 a\nffar 5000 b\nkeep 5000 c\nkffar 5000 d\n",
                                       "+sleep 20 a\n+ffar 20 b\n+kffar 20 c\n",
                                       "hang 0 a\n!now 0 b\nnow 0 c\n",
                                       "fhang 0 a\n%note\nnow 0 b\nnow"};
static const char *const streams[] = {
    "Q give 5000000\n", "L1000 echo 0\n1234567", "C echo 0\n10:123456789",    "X count 0\n",
    "Q part 100000\n",  "C count 50\n5:12345",   "Q give 100000\nQ hang 0\n", "L500 hang 0\n123",
    "fC echo 0\n5:12"};

#define PEERS_MAX 16

/* Let peers send requests, and `after_ns` later let the owner be stopped, or fail and restart.
 * Check that all connections end. */
static void check_connections_end_with_owner(const char *const *sent, size_t count, bool is_stream,
                                             bool stops, uint64_t after_ns)
{
    make_kit_with_owner(is_stream ? &domt_stream_service : &domt_pipe_framed, is_stream);
    domus_system *system = domt_pipe_system_of_kit();
    domus_peer *peers[PEERS_MAX];

    for (size_t i = 0; i < count; i++) {
        peers[i] = connect_peer_to_owner();
        if (i % 2 != 0)
            domus_peer_pause(peers[i]);
        domt_pipe_peer_send_text(peers[i], sent[i]);
    }
    domt_pipe_pass_time(after_ns);
    if (stops) {
        ck_assert_int_eq(domus_outside_stop(system, owner), 0);
    } else {
        ck_assert_int_eq(domus_outside_notice(system, owner, &fail_type, NULL), 0);
        domt_pipe_pass_time(10 * MS);
        ck_assert_uint_eq(mounts, 2); /* the owner has restarted without waiting for its peers */
    }
    domt_pipe_pass_time(10 * SECOND);
    for (size_t i = 0; i < count; i++) {
        domus_peer_resume(peers[i]);
        domt_pipe_pass_time(SECOND);
        ck_assert_msg(domus_peer_has_end(peers[i]) || domus_peer_error(peers[i]) != 0, "%s",
                      sent[i]);
        domus_peer_close(peers[i]);
    }
    if (!stops) {
        domus_peer *peer = connect_peer_to_owner();
        domt_pipe_peer_send_text(peer, is_stream ? "Q wait 1\n" : "now 0 text\n");
        if (is_stream)
            domt_pipe_pass_time(SECOND);
        else
            domt_pipe_peer_expect_text(peer, "text\n");
        ck_assert_int_eq(domus_peer_error(peer), 0);
        domus_peer_close(peer);
    }
    domt_pipe_end_kit();
}

static void check_ends_with_owner_at_all_times(bool stops)
{
    static const uint64_t afters[] = {0, 3 * MS, 100 * MS};
    for (size_t i = 0; i < sizeof afters / sizeof afters[0]; i++) {
        check_connections_end_with_owner(requests, sizeof requests / sizeof requests[0], false,
                                         stops, afters[i]);
        check_connections_end_with_owner(streams, sizeof streams / sizeof streams[0], true, stops,
                                         afters[i]);
    }
}

DOMT_TEST(a_restart_ends_requests_and_streams)
{
    check_ends_with_owner_at_all_times(false);
}

DOMT_TEST(a_stop_ends_requests_and_streams)
{
    check_ends_with_owner_at_all_times(true);
}

/* --- without memory --------------------------------------------------------------------------- */

/* Let the owner fail while allocation number `fails_after` fails. Returns whether the owner has
 * restarted all the same. */
static bool has_owner_restarted_without_memory(bool is_stream, int64_t fails_after)
{
    const char *const *sent = is_stream ? streams : requests;
    make_kit_with_owner(is_stream ? &domt_stream_service : &domt_pipe_framed, is_stream);
    domus_system *system = domt_pipe_system_of_kit();
    domus_peer *peers[6];

    for (size_t i = 0; i < 6; i++) {
        peers[i] = connect_peer_to_owner();
        domt_pipe_peer_send_text(peers[i], sent[i]);
        domt_pipe_run_kit();
    }
    ck_assert_int_eq(domus_outside_notice(system, owner, &fail_type, NULL), 0);
    domi_memory_fail_allocation_after(fails_after, 0);
    int result = domus_testkit_advance(domt_pipe_kit, 100 * MS);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_msg(result == 0, "allocation %d: %s", (int)fails_after,
                  domus_testkit_error(domt_pipe_kit));
    domt_pipe_pass_time(10 * SECOND);
    bool has_lost =
        /* true if the simulated network itself has lost something for lack of memory */
        domt_pipe_kit->net->is_out_of_memory;
    for (size_t i = 0; i < 6; i++)
        ck_assert_msg(has_lost || domus_peer_error(peers[i]) != 0 || domus_peer_has_end(peers[i]),
                      "allocation %d: %s", (int)fails_after, sent[i]);
    bool has_restarted = mounts == 2 && !has_lost;
    domt_pipe_end_kit();
    return has_restarted;
}

DOMT_TEST(owner_restart_without_memory_ends_requests)
{
    for (int is_stream = 0; is_stream < 2; is_stream++) {
        uint32_t clean = 0;
        for (int64_t n = 0; clean < 10; n++)
            clean = has_owner_restarted_without_memory(is_stream != 0, n) ? clean + 1 : 0;
    }
}

/* --- pipe time -------------------------------------------------------------------------------- */

/* io/pipelines/time.c: the time that stages may use in one phase 2 is bounded, on a virtual clock
 * that the stage of this test moves. Beside many channels whose messages take a millisecond each,
 * state actors and timers get their time, and each channel gets its turn. */

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

static int count_unserved_channel_at_open(domus_wire *wire, void *state, const void *options)
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
                                       .open = count_unserved_channel_at_open,
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
        domt_pipe_peer_send_text(peers[i], "a\nb\nc\n");
    while (decoded < 3 * PEERS)
        domt_pipe_pass_time(MS);
    /* A thread looks at the time only after 16 messages, and may then take 2 ms and one more
     * message. All three threads move the same clock. */
    ck_assert_uint_le(longest_ns, 3 * 17 * MS);
    ck_assert_uint_le(long_gaps, 2 * 3);
    ck_assert_uint_ge(count_late_channels(), PEERS);
    for (uint32_t i = 0; i < PEERS; i++) {
        domt_pipe_peer_expect_text(peers[i], "a\nb\nc\n");
        domus_peer_close(peers[i]);
    }
    domt_pipe_free_kit();
}

DOMT_TEST(each_channel_with_expensive_stages_gets_its_turn)
{
    begin_kit_with_slow_stages(MS, 2 * MS);

    connect_peers_and_reset_gaps(PEERS);
    for (uint32_t i = 0; i < PEERS; i++)
        domt_pipe_peer_send_text(peers[i], "a\nb\nc\n");
    while (first_unserved != 0)
        domt_pipe_pass_time(MS);
    /* A few channels get a second message early: those that ran before the thread looked at the
     * time, and some more because the three threads do not go round together. */
    ck_assert_uint_le(served_twice_too_early, PEERS / 4);
    ck_assert_uint_le(most_of_one, 3);
    domt_pipe_free_kit();
}

DOMT_TEST(one_message_is_handled_however_long_its_stages_take)
{
    begin_kit_with_slow_stages(100 * MS, 1000);

    connect_peers_and_reset_gaps(10);
    for (uint32_t i = 0; i < 10; i++)
        domt_pipe_peer_send_text(peers[i], "a\nb\n");
    for (uint32_t i = 0; i < 10; i++)
        domt_pipe_peer_expect_text(peers[i], "a\nb\n");
    ck_assert_uint_eq(decoded, 20);
    domt_pipe_free_kit();
}

DOMT_TEST(channels_that_end_while_they_wait_hold_nobody_up)
{
    begin_kit_with_slow_stages(MS, 2 * MS);

    connect_peers_and_reset_gaps(100);
    for (uint32_t i = 0; i < 100; i++)
        domt_pipe_peer_send_text(peers[i], "a\nb\nc\n");
    while (decoded < 60)
        (void)domus_testkit_step(domt_pipe_kit);
    for (uint32_t i = 0; i < 100; i += 2)
        domus_peer_reset(peers[i]);
    for (uint32_t i = 1; i < 100; i += 2)
        domt_pipe_peer_expect_text(peers[i], "a\nb\nc\n");
    domt_pipe_free_kit();
}

DOMT_TEST(channels_with_cheap_stages_are_not_put_off)
{
    begin_kit_with_slow_stages(1000, 2 * MS);

    connect_peers_and_reset_gaps(100);
    for (uint32_t i = 0; i < 100; i++)
        domt_pipe_peer_send_text(peers[i], "a\nb\nc\n");
    for (uint32_t i = 0; i < 100; i++)
        domt_pipe_peer_expect_text(peers[i], "a\nb\nc\n");
    ck_assert_uint_eq(count_late_channels(), 0);
    domt_pipe_free_kit();
}

DOMT_SUITE(120)
