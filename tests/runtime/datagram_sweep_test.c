/* A small datagram service on three threads, with scripted peers and all faults of the network,
 * over many seeds: each answer goes to the peer that asked, and every datagram is counted.
 * DOMUS_SEED=n runs seed n alone, and prints its trace if a check fails. DOMT_LONG runs 20 times as
 * many. */
#include "tests/runtime/net_sweep.h"
#include "tests/support/kits.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define SEEDS    DOMT_SCALE(2000, 120)
#define DEEDS    80u
#define CHANNELS 3u
#define PEERS    5u
#define SENT_MAX 256u /* datagrams that a peer sends at most */
/* most bytes of a datagram; where sockets have small buffers, some datagrams are too long */
#define BYTES_MAX 200u

static const domus_type wake_type = {.name = "wake"};

/* --- the service ------------------------------------------------------------------------------ */

/* Counters of the service's channels in the running seed. */
static domus_datagram_counters counted[CHANNELS];
static uint32_t opened, closed;
static int way;         /* number that says how the channels answer in the running seed */
static uint32_t failed; /* number of answers that could not be queued */

/* Counters of all seeds together, by which the test checks that each kind of fault has happened in
 * some seed. */
static domus_net_datagrams met;
static domus_datagram_counters met_by_channels;

/* Record the counters of a channel when it closes. */
static int on_close_record_counters(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    return domus_datagram_counts(event->channel, &counted[closed++]);
}

static int resume_channel_after_sleep(domus_stack *stack, void *self, const void *nothing)
{
    domus_channel *channel = domus_channel_running(stack);

    return channel != NULL ? domus_channel_resume(stack, channel) : 0;
}

/* Answer a datagram with the received buffer (way 0), or by a copy to the endpoint of its sender;
 * with way 2 the channel also pauses for a moment. */
static int answer_datagram_in_random_way(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    size_t size = domus_buffer_size(event->bytes);
    domus_endpoint from;
    domus_buffer *copy;

    if (way == 2) {
        (void)domus_channel_pause(stack, event->channel);
        if (domus_after(stack, DOMT_SWEEP_MS, &wake_type, NULL, NULL) != 0)
            (void)domus_channel_resume(stack, event->channel);
    }
    if (way == 0 || size == 0 || domus_buffer_peer(event->bytes, &from) != 0 ||
        domus_buffer_new(stack, size, &copy) != 0) {
        failed += domus_channel_send_to(stack, event->channel, NULL, event->bytes) != 0;
        return 0;
    }
    memcpy(domus_buffer_data(copy), domus_buffer_data(event->bytes), size);
    failed += domus_channel_send_to(stack, event->channel, &from, copy) != 0;
    domus_buffer_free(event->bytes);
    return 0;
}

static const domus_behaviour answering = {
    .name = "answering",
    .kind = DOMUS_CHANNELS,
    .on_read = {answer_datagram_in_random_way, 0},
    .on_close = {on_close_record_counters, 0},
    .on = (const domus_on[]){{&wake_type, resume_channel_after_sleep, 0}, {0}}};

static int open_datagram_channel_in_mount(domus_stack *stack, void *self)
{
    const domus_endpoint *at = self;
    const domus_datagram_options options = {.behaviour = &answering, .shares_port = true};

    opened += domus_datagram_open(stack, at, &options, NULL, NULL) == 0;
    return 0;
}

static const domus_behaviour opener = {.name = "opener",
                                       .kind = DOMUS_CHANNELS,
                                       .state_size = sizeof(domus_endpoint),
                                       .on_mount = open_datagram_channel_in_mount};

/* --- the peers -------------------------------------------------------------------------------- */

typedef struct client {
    domus_datagram_peer *peer;
    /* number by which the datagrams of this peer differ from those of others */
    uint64_t key;
    uint32_t got;                /* number of datagrams that this peer has received */
    uint32_t sent;               /* number of datagrams that the peer's socket has accepted */
    uint32_t sizes[SENT_MAX];    /* size of each datagram that the peer has sent */
    uint32_t answered[SENT_MAX]; /* number of answers to each datagram that the peer has sent */
    bool is_paused;
    bool is_closed;
} client;

static client clients[PEERS];
static domus_endpoint places[CHANNELS]; /* endpoints to which the service's channels are bound */
static uint32_t place_count;

/* Returns byte `i` of a peer's datagram: the first 8 bytes are the number of the datagram, and the
 * others follow from this number and the peer's key. */
static char byte_of_numbered_datagram(const client *one, uint64_t number, uint32_t i)
{
    if (i < sizeof number)
        return (char)(number >> 8 * i);
    return (char)((one->key + number * 1000 + i) * UINT64_C(0x9E3779B97F4A7C15) >> 56);
}

static void send_random_datagram_of_peer(domt_sweep *sweep, client *one)
{
    char bytes[BYTES_MAX];
    uint32_t size = (uint32_t)sizeof(uint64_t) +
                    (uint32_t)domt_sweep_draw_below(sweep, BYTES_MAX + 1 - sizeof(uint64_t));
    bool is_empty = domt_sweep_draw_below(sweep, 16) == 0;
    const domus_endpoint *to = &places[domt_sweep_draw_below(sweep, place_count)];

    if (one->sent == SENT_MAX)
        return;
    for (uint32_t i = 0; i < size; i++)
        bytes[i] = byte_of_numbered_datagram(one, one->sent, i);
    int result = domus_datagram_peer_send(one->peer, to, bytes, is_empty ? 0 : size);
    if (result == 0)
        one->sizes[one->sent++] = is_empty ? 0 : size;
    else
        DOMT_SWEEP_HOLD(sweep, result == -EAGAIN || result == -EMSGSIZE || result == -ECONNREFUSED);
}

/* Check that a received datagram is an answer to one that this peer has sent. */
static void check_answer_belongs_to_peer(domt_sweep *sweep, client *one, const char *bytes,
                                         size_t size)
{
    uint64_t number = 0;

    if (size == 0)
        return;
    DOMT_SWEEP_HOLD(sweep, size >= sizeof number && size <= BYTES_MAX);
    for (uint32_t i = 0; i < sizeof number; i++)
        number |= (uint64_t)(unsigned char)bytes[i] << 8 * i;
    DOMT_SWEEP_HOLD(sweep, number < one->sent && one->sizes[number] == size);
    for (uint32_t i = 0; i < size && !sweep->has_failed; i++)
        DOMT_SWEEP_HOLD(sweep, bytes[i] == byte_of_numbered_datagram(one, number, i));
    if (!sweep->has_failed)
        one->answered[number]++;
}

static void check_answers_of_all_peers(domt_sweep *sweep)
{
    for (uint32_t i = 0; i < PEERS; i++) {
        domus_endpoint from;
        size_t size;

        for (const char *bytes;
             !sweep->has_failed &&
             (bytes = domus_datagram_peer_got(clients[i].peer, &size, &from)) != NULL;) {
            bool is_ours = false;
            for (uint32_t k = 0; k < place_count; k++)
                is_ours |= domus_endpoint_is_same(&from, &places[k]);
            DOMT_SWEEP_HOLD(sweep, is_ours);
            check_answer_belongs_to_peer(sweep, &clients[i], bytes, size);
            domus_datagram_peer_take(clients[i].peer);
            clients[i].got++;
        }
    }
}

static void do_random_action_of_sweep(domt_sweep *sweep)
{
    client *one = &clients[domt_sweep_draw_below(sweep, PEERS)];

    switch (domt_sweep_draw_below(sweep, 40)) {
    case 0:
        domus_datagram_peer_pause(one->peer);
        one->is_paused = true;
        break;
    case 1:
    case 2:
        domus_datagram_peer_resume(one->peer);
        one->is_paused = false;
        break;
    case 3:
        domus_datagram_peer_close(one->peer);
        one->is_closed = true;
        break;
    default:
        for (uint64_t left = 1 + domt_sweep_draw_below(sweep, 8); left != 0 && !one->is_closed;
             left--)
            send_random_datagram_of_peer(sweep, one);
        break;
    }
}

/* --- a seed ----------------------------------------------------------------------------------- */

static const char *const families[][2] = {
    {"127.0.0.1:53", "10.0.0.1:0"}, {"[::1]:53", "[::1]:0"}, {"unix:@service", "unix:@peer-%u"}};

static void begin_sweep_of_seed(domt_sweep *sweep, uint32_t family)
{
    domus_config config;
    char text[32];

    domt_sweep_draw_config(sweep, &config);
    sweep->kit = domt_kit_new(&config, sweep->seed);
    memset(clients, 0, sizeof clients);
    memset(counted, 0, sizeof counted);
    opened = closed = failed = 0;
    way = (int)domt_sweep_draw_below(sweep, 3);
    for (uint32_t i = 0; i < PEERS; i++) {
        (void)snprintf(text, sizeof text, families[family][1], i);
        clients[i].key = domi_random_next_bits(&sweep->random);
        ck_assert_int_eq(domus_datagram_peer_open(sweep->kit, text, NULL, &clients[i].peer), 0);
    }
}

/* Open channels on some threads, one on each; UDP channels may share one port. */
static void open_channels_on_some_threads(domt_sweep *sweep, uint32_t family)
{
    bool shares = domt_sweep_draw_below(sweep, 2) == 0;
    uint32_t count = 1 + (uint32_t)domt_sweep_draw_below(sweep, CHANNELS);
    domus_address address;

    place_count = shares || family == 2 ? 1 : count;
    for (uint32_t i = 0; i < count; i++) {
        domus_endpoint *at = &places[i % place_count];

        ck_assert_int_eq(domus_endpoint_parse(families[family][0], at), 0);
        if (at->family != AF_UNIX)
            at->port += (uint16_t)(i % place_count);
        ck_assert_int_eq(
            domus_outside_spawn_on(domus_testkit_system(sweep->kit), i, &opener, at, &address), 0);
    }
}

/* Let time pass until all datagrams have arrived. Without faults that drop datagrams, every one
 * must then be answered. */
static void let_all_datagrams_arrive(domt_sweep *sweep)
{
    for (uint32_t i = 0; i < PEERS; i++)
        domus_datagram_peer_resume(clients[i].peer);
    DOMT_SWEEP_HOLD(sweep, domus_testkit_advance(sweep->kit, 5 * DOMT_SWEEP_SECOND) == 0);
    check_answers_of_all_peers(sweep);
    domus_net_datagrams all = domus_testkit_net_datagrams(sweep->kit);
    DOMT_SWEEP_HOLD(sweep, all.in_flight == 0);
}

/* Check that no answer was made up: no peer gets more answers than the network can make by
 * duplicating. */
static void check_no_answer_was_made_up(domt_sweep *sweep)
{
    domus_net_datagrams all = domus_testkit_net_datagrams(sweep->kit);
    uint64_t further = 0;

    for (uint32_t i = 0; i < PEERS; i++)
        for (uint32_t k = 0; k < clients[i].sent; k++)
            if (clients[i].answered[k] > 1)
                further += clients[i].answered[k] - 1;
    DOMT_SWEEP_HOLD(sweep, further <= all.doubled);
}

static void add_counters_of_channel(domus_datagram_counters *sum,
                                    const domus_datagram_counters *more)
{
    sum->received += more->received;
    sum->sent += more->sent;
    sum->too_long += more->too_long;
    sum->dropped += more->dropped;
    sum->lost += more->lost;
    sum->unsent += more->unsent;
    sum->errors += more->errors;
}

/* After the end of the kit, compare the counters of the channels with those of the network. */
static void compare_counters_with_network(domt_sweep *sweep, domus_net_datagrams all)
{
    domus_datagram_counters sum = {0};
    uint64_t sent = 0, got = 0;

    check_answers_of_all_peers(sweep);
    for (uint32_t i = 0; i < closed; i++)
        add_counters_of_channel(&sum, &counted[i]);
    for (uint32_t i = 0; i < PEERS; i++) {
        sent += clients[i].sent;
        got += clients[i].got;
    }
    DOMT_SWEEP_HOLD(sweep, closed == opened);
    DOMT_SWEEP_HOLD(sweep, all.sent == sent + sum.sent);
    DOMT_SWEEP_HOLD(sweep, all.received >= sum.received + got);
    DOMT_SWEEP_HOLD(sweep, sum.lost <= all.overflowed);
    /* no channel is connected, so no channel gets an error of the network */
    DOMT_SWEEP_HOLD(sweep, sum.errors == 0);
    DOMT_SWEEP_HOLD(sweep,
                    sum.received == sum.sent + sum.unsent + sum.too_long + sum.dropped + failed);
    DOMT_SWEEP_HOLD(sweep, all.sent + all.doubled == all.received + all.lost + all.overflowed +
                                                         all.unclaimed + all.in_flight);
    add_counters_of_channel(&met_by_channels, &sum);
    met.doubled += all.doubled;
    met.received += all.received;
    met.lost += all.lost;
    met.overflowed += all.overflowed;
    met.unclaimed += all.unclaimed;
}

static int run_sweep_of_seed(uint64_t seed, void *context)
{
    domt_sweep sweep = {.seed = seed, .has_datagrams = true};

    domi_random_init(&sweep.random, seed);
    uint32_t family = (uint32_t)domt_sweep_draw_below(&sweep, 3);
    begin_sweep_of_seed(&sweep, family);
    domt_sweep_draw_faults(&sweep);
    domt_sweep_draw_datagram_faults(&sweep);
    ck_assert_int_eq(domus_testkit_net_set(sweep.kit, &sweep.faults), 0);
    open_channels_on_some_threads(&sweep, family);
    for (uint64_t deeds = 1 + domt_sweep_draw_below(&sweep, DEEDS); deeds != 0; deeds--) {
        do_random_action_of_sweep(&sweep);
        domt_sweep_step_randomly(&sweep, 20, 3);
        check_answers_of_all_peers(&sweep);
    }
    if (domt_sweep_draw_below(&sweep, 4) != 0)
        let_all_datagrams_arrive(&sweep);
    check_no_answer_was_made_up(&sweep);
    (void)domus_testkit_stop(sweep.kit);
    compare_counters_with_network(&sweep, domus_testkit_net_datagrams(sweep.kit));
    return domt_sweep_end_and_check_seed(&sweep);
}

DOMT_TEST(every_datagram_is_accounted_for)
{
    domt_sweep_run_seeds(SEEDS, run_sweep_of_seed);
    if (getenv("DOMUS_SEED") != NULL)
        return;
    ck_assert(met.lost != 0 && met.doubled != 0 && met.overflowed != 0 && met.unclaimed != 0);
    ck_assert(met_by_channels.lost != 0 && met_by_channels.unsent != 0);
    ck_assert(met_by_channels.too_long != 0);
}

DOMT_SUITE(3000)
