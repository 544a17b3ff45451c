/* Datagrams in a kit: channels of the system and scripted peers, over UDP and Unix sockets, with
 * each fault alone. datagram_sweep_test.c draws all faults by seed. */
#include "tests/runtime/network.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define MS     UINT64_C(1000000)
#define SECOND DOMT_NET_SECOND

/* --- the service ------------------------------------------------------------------------------ */

typedef struct service {
    domus_endpoint at;
    domus_endpoint connected;
    bool ends_on_error;
} service;

/* counters of the service's channel at its last datagram or its close */
static domus_datagram_counters counted;
static domus_endpoint opened_at;
static int open_result, last_result, close_error;
static uint32_t closed;

static int echo_datagram_and_count(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    last_result = domus_channel_send_to(stack, event->channel, NULL, event->bytes);
    ck_assert_int_eq(domus_datagram_counts(event->channel, &counted), 0);
    return 0;
}

static int record_close_and_counters(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    close_error = event->error;
    closed++;
    return domus_datagram_counts(event->channel, &counted);
}

/* Types of orders to the channel: record its counters and write a text to the connected peer;
 * record its counters; pause; resume. */
static const domus_type write_type = {.name = "write", .size = sizeof(const char *)};
static const domus_type look_type = {.name = "look"};
static const domus_type pause_type = {.name = "pause"};
static const domus_type resume_type = {.name = "resume"};

static int write_text_in_handler(domus_stack *stack, void *self, const void *payload)
{
    domus_channel *channel = domus_channel_running(stack);
    const char *text;
    domus_buffer *buffer;

    memcpy(&text, payload, sizeof text);
    ck_assert_int_eq(domus_datagram_counts(channel, &counted), 0);
    ck_assert_int_eq(domus_buffer_new(stack, strlen(text), &buffer), 0);
    memcpy(domus_buffer_data(buffer), text, strlen(text));
    last_result = domus_channel_write(stack, channel, buffer);
    return 0;
}

static int record_counters_of_channel(domus_stack *stack, void *self, const void *nothing)
{
    return domus_datagram_counts(domus_channel_running(stack), &counted);
}

static int pause_own_channel(domus_stack *stack, void *self, const void *nothing)
{
    return domus_channel_pause(stack, domus_channel_running(stack));
}

static int resume_own_channel(domus_stack *stack, void *self, const void *nothing)
{
    return domus_channel_resume(stack, domus_channel_running(stack));
}

static const domus_behaviour channel_behaviour = {
    .name = "datagrams",
    .kind = DOMUS_CHANNELS,
    .on_read = {echo_datagram_and_count, 0},
    .on_close = {record_close_and_counters, 0},
    .on = (const domus_on[]){{&write_type, write_text_in_handler, 0},
                             {&look_type, record_counters_of_channel, 0},
                             {&pause_type, pause_own_channel, 0},
                             {&resume_type, resume_own_channel, 0},
                             {0}}};

static domus_address channel; /* address of the service's channel */

static int open_service_channel_in_mount(domus_stack *stack, void *self)
{
    const service *is = self;
    const domus_datagram_options options = {
        .connected = is->connected,
        .behaviour = &channel_behaviour,
        .ends_on_error = is->ends_on_error,
    };

    open_result = domus_datagram_open(stack, is->at.family != 0 ? &is->at : NULL, &options,
                                      &channel, &opened_at);
    return 0;
}

static const domus_behaviour opener = {.name = "opener",
                                       .kind = DOMUS_CHANNELS,
                                       .state_size = sizeof(service),
                                       .on_mount = open_service_channel_in_mount};

static domus_endpoint endpoint_from_text(const char *text)
{
    domus_endpoint at;
    ck_assert_int_eq(domus_endpoint_parse(text, &at), 0);
    return at;
}

static void open_service_channel(domus_testkit *kit, const char *at, const char *to,
                                 bool ends_on_error)
{
    service is = {.ends_on_error = ends_on_error};
    domus_address address;

    if (at != NULL)
        is.at = endpoint_from_text(at);
    if (to != NULL)
        is.connected = endpoint_from_text(to);
    ck_assert_int_eq(domus_outside_spawn_on(domus_testkit_system(kit), 1, &opener, &is, &address),
                     0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
}

static domus_testkit *make_kit_with_seed(uint64_t seed, const domus_config *config)
{
    closed = 0;
    return domt_kit_new(config, seed);
}

/* Make a kit with one channel of datagrams, bound to `at` and connected to `to` (NULL: to nothing);
 * its open must succeed. */
static domus_testkit *make_kit_with_service(const char *at, const char *to)
{
    domus_testkit *kit = make_kit_with_seed(7, NULL);
    open_service_channel(kit, at, to, false);
    ck_assert_int_eq(open_result, 0);
    return kit;
}

static domus_datagram_peer *open_datagram_peer(domus_testkit *kit, const char *at, const char *to)
{
    domus_datagram_peer *peer;
    domt_net_check_ok(kit, domus_datagram_peer_open(kit, at, to, &peer));
    return peer;
}

static void send_datagram_of_peer(domus_testkit *kit, domus_datagram_peer *peer, const char *to,
                                  const char *text)
{
    domus_endpoint at = {0};
    if (to != NULL)
        at = endpoint_from_text(to);
    domt_net_check_ok(kit,
                      domus_datagram_peer_send(peer, to != NULL ? &at : NULL, text, strlen(text)));
}

static void send_order_to_channel(domus_testkit *kit, const domus_type *type, const char *text)
{
    ck_assert_int_eq(domus_outside_notice(domus_testkit_system(kit), channel, type, &text), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
}

/* Stop the kit, and check that the network's counts of datagrams add up and that nothing is
 * left. */
static domus_net_datagrams stop_kit_and_check_counts(domus_testkit *kit)
{
    ck_assert_int_eq(domus_testkit_stop(kit), 0);
    domus_net_datagrams all = domus_testkit_net_datagrams(kit);
    ck_assert_uint_eq(all.sent + all.doubled,
                      all.received + all.lost + all.overflowed + all.unclaimed + all.in_flight);
    ck_assert_uint_eq(domus_testkit_net_totals(kit).descriptors,
                      domus_system_threads(domus_testkit_system(kit)));
    domus_testkit_free(kit);
    return all;
}

/* --- without faults --------------------------------------------------------------------------- */

DOMT_TEST(each_peer_gets_its_own_answers)
{
    static const char *const places[][3] = {
        {"127.0.0.1:53", "10.0.0.1:0", "10.0.0.2:0"}, {"0.0.0.0:53", "127.0.0.1:0", "127.0.0.1:0"},
        {"[::1]:53", "[::1]:0", "[::1]:0"},           {"[::]:53", "[::1]:0", "127.0.0.1:0"},
        {"unix:/run/d", "unix:/run/a", "unix:@b"},    {"unix:@d", "unix:@a", "unix:@b"},
    };

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        domus_testkit *kit = make_kit_with_service(places[i][0], NULL);
        domus_datagram_peer *one = open_datagram_peer(kit, places[i][1], NULL);
        domus_datagram_peer *other = open_datagram_peer(kit, places[i][2], NULL);
        domus_endpoint at = domus_datagram_peer_endpoint(other);
        const char *to = i == 1 || i == 3 ? "127.0.0.1:53" : places[i][0];

        send_datagram_of_peer(kit, one, i == 3 ? "[::1]:53" : to, "one");
        send_datagram_of_peer(kit, other, to, "other");
        send_datagram_of_peer(kit, other, to, "");
        domt_net_check_ok(kit, domus_datagram_peer_expect(one, "one", 3, SECOND));
        domt_net_check_ok(kit, domus_datagram_peer_expect(other, "other", 5, SECOND));
        domt_net_check_ok(kit, domus_datagram_peer_expect(other, "", 0, SECOND));
        domt_net_check_ok(kit, domus_datagram_peer_send(one, &at, "direct", 6));
        domus_endpoint from, own = domus_datagram_peer_endpoint(one);
        size_t size;
        ck_assert_ptr_nonnull(strstr(domus_testkit_trace(kit), "datagram 0 arrives 3"));
        ck_assert_int_eq(domus_testkit_run(kit), 0);
        if (own.family == at.family) {
            ck_assert_ptr_nonnull(domus_datagram_peer_got(other, &size, &from));
            ck_assert(domus_endpoint_is_same(&from, &own));
        }
        ck_assert_uint_eq(counted.received, 3);
        ck_assert_uint_eq(stop_kit_and_check_counts(kit).sent, 7);
    }
}

DOMT_TEST(connected_channel_hears_its_peer_alone)
{
    domus_testkit *kit = make_kit_with_seed(7, NULL);
    domus_datagram_peer *peer = open_datagram_peer(kit, "127.0.0.1:53", NULL);
    domus_datagram_peer *stranger = open_datagram_peer(kit, "127.0.0.1:0", NULL);
    domus_endpoint from;
    size_t size;

    open_service_channel(kit, NULL, "127.0.0.1:53", false);
    ck_assert_int_eq(open_result, 0);
    send_order_to_channel(kit, &write_type, "hello");
    ck_assert_int_eq(last_result, 0);
    ck_assert_ptr_nonnull(domus_datagram_peer_got(peer, &size, &from));
    ck_assert(domus_endpoint_is_same(&from, &opened_at));
    domt_net_check_ok(kit, domus_datagram_peer_expect(peer, "hello", 5, 0));
    domt_net_check_ok(kit, domus_datagram_peer_send(stranger, &from, "x", 1));
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    send_order_to_channel(kit, &look_type, NULL);
    ck_assert_uint_eq(counted.received, 0);
    ck_assert_uint_eq(stop_kit_and_check_counts(kit).unclaimed, 1);
}

DOMT_TEST(refusals_are_counted_or_end_a_connected_channel)
{
    domus_testkit *kit = make_kit_with_service(NULL, "127.0.0.1:53");

    for (uint64_t i = 0; i < 3; i++) {
        send_order_to_channel(kit, &write_type, "hello");
        ck_assert_uint_eq(counted.errors + counted.unsent, i);
    }
    ck_assert_int_eq(counted.last_error, -ECONNREFUSED);
    ck_assert_uint_eq(closed, 0);
    open_service_channel(kit, NULL, "127.0.0.1:53", true);
    send_order_to_channel(kit, &write_type, "hello");
    ck_assert_uint_eq(closed, 1);
    ck_assert_int_eq(close_error, -ECONNREFUSED);
    domus_datagram_peer *one = open_datagram_peer(kit, NULL, "127.0.0.1:53");
    send_datagram_of_peer(kit, one, NULL, "x");
    ck_assert_int_eq(domus_datagram_peer_expect(one, "x", 1, SECOND), -ECONNREFUSED);
    domt_net_check_ok(kit, domus_datagram_peer_expect_nothing(one, SECOND));
    ck_assert_uint_eq(stop_kit_and_check_counts(kit).unclaimed, 5);
}

/* A connected Unix socket waits until its peer has room; an unconnected one drops the datagram. */
DOMT_TEST(unix_datagrams_wait_for_room_and_keep_their_order)
{
    domus_testkit *kit = make_kit_with_seed(7, NULL);
    domus_datagram_peer *peer = open_datagram_peer(kit, "unix:@peer", NULL);
    char text[30][12];

    open_service_channel(kit, NULL, "unix:@peer", false);
    domus_datagram_peer_pause(peer);
    for (int i = 0; i < 30; i++) {
        (void)snprintf(text[i], sizeof text[i], "%d", i);
        send_order_to_channel(kit, &write_type, text[i]);
    }
    ck_assert_uint_eq(counted.sent, 10);
    domus_datagram_peer_resume(peer);
    for (int i = 0; i < 30; i++)
        domt_net_check_ok(kit, domus_datagram_peer_expect(peer, text[i], strlen(text[i]), SECOND));
    /* to the closed peer the socket gets one error, and then it has no peer any more */
    domus_datagram_peer_close(peer);
    send_order_to_channel(kit, &write_type, "x");
    send_order_to_channel(kit, &write_type, "x");
    ck_assert_int_eq(counted.last_error, -ECONNREFUSED);
    send_order_to_channel(kit, &write_type, "x");
    ck_assert_int_eq(counted.last_error, -ENOTCONN);
    ck_assert_uint_eq(stop_kit_and_check_counts(kit).received, 30);
}

DOMT_TEST(unix_stranger_without_room_loses_its_answers)
{
    domus_testkit *kit = make_kit_with_service("unix:@d", NULL);
    domus_datagram_peer *deaf = open_datagram_peer(kit, "unix:@deaf", NULL);
    domus_datagram_peer *good = open_datagram_peer(kit, "unix:@good", NULL);
    domus_datagram_peer *nameless = open_datagram_peer(kit, NULL, "unix:@d");

    domus_datagram_peer_pause(deaf);
    for (int i = 0; i < 15; i++) {
        send_datagram_of_peer(kit, deaf, "unix:@d", "x");
        ck_assert_int_eq(domus_testkit_run(kit), 0);
    }
    send_datagram_of_peer(kit, good, "unix:@d", "good");
    domt_net_check_ok(kit, domus_datagram_peer_expect(good, "good", 4, 0));
    send_datagram_of_peer(kit, nameless, NULL, "who");
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_int_eq(last_result, -EDESTADDRREQ);
    ck_assert_uint_eq(counted.unsent, 5);
    (void)stop_kit_and_check_counts(kit);
}

/* Each datagram takes 300 bytes of the buffer, so the fourth one does not fit. */
DOMT_TEST(receive_buffer_that_is_full_overflows_and_that_is_counted)
{
    const domus_net_faults small = {.receive_buffer_bytes = 1000};
    static const char bytes[44];
    domus_testkit *kit = make_kit_with_seed(7, NULL);
    domus_datagram_peer *peer = open_datagram_peer(kit, "127.0.0.1:0", NULL);
    domus_endpoint at = endpoint_from_text("127.0.0.1:53");

    ck_assert_int_eq(domus_testkit_net_set(kit, &small), 0);
    open_service_channel(kit, "127.0.0.1:53", NULL, false);
    send_order_to_channel(kit, &pause_type, NULL);
    for (int i = 0; i < 10; i++)
        domt_net_check_ok(kit, domus_datagram_peer_send(peer, &at, bytes, sizeof bytes));
    ck_assert_int_eq(domus_testkit_advance(kit, 2 * SECOND), 0);
    ck_assert_uint_eq(domus_testkit_net_datagrams(kit).overflowed, 6);
    send_order_to_channel(kit, &resume_type, NULL);
    ck_assert_uint_eq(counted.received, 4);
    ck_assert_uint_eq(counted.lost, 6);
    (void)stop_kit_and_check_counts(kit);
}

/* A buffer of the kit has 256 bytes, of which the head of a datagram takes 128. */
DOMT_TEST(long_datagrams_are_cut_or_refused)
{
    static char bytes[65508];
    domus_testkit *kit = make_kit_with_service("127.0.0.1:53", NULL);
    const domus_net_faults narrow = {.datagram_bytes_max = 100};
    domus_datagram_peer *peer = open_datagram_peer(kit, "127.0.0.1:0", NULL);
    domus_endpoint at = endpoint_from_text("127.0.0.1:53");

    ck_assert_int_eq(domus_datagram_peer_send(peer, &at, bytes, 65508), -EMSGSIZE);
    domt_net_check_ok(kit, domus_datagram_peer_send(peer, &at, bytes, 65507));
    /* run the kit, because the receive buffer is full until the channel has read it */
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    domt_net_check_ok(kit, domus_datagram_peer_send(peer, &at, bytes, 128));
    domt_net_check_ok(kit, domus_datagram_peer_expect(peer, bytes, 128, SECOND));
    ck_assert_uint_eq(counted.received, 2);
    ck_assert_uint_eq(counted.too_long, 1);
    domt_net_check_ok(kit, domus_datagram_peer_send(peer, &at, bytes, 101));
    ck_assert_int_eq(domus_testkit_net_set(kit, &narrow), 0);
    ck_assert_int_eq(domus_datagram_peer_send(peer, &at, bytes, 101), -EMSGSIZE);
    domt_net_check_ok(kit, domus_datagram_peer_expect_nothing(peer, SECOND));
    ck_assert_int_eq(domus_testkit_stop(kit), 0);
    ck_assert_uint_eq(counted.unsent, 1);
    ck_assert_int_eq(counted.last_error, -EMSGSIZE);
    domus_testkit_free(kit);
}

DOMT_TEST(datagram_names_do_not_clash_with_streams)
{
    domus_testkit *kit = make_kit_with_service("127.0.0.1:53", NULL);
    domus_peer_listener *listener;
    domus_datagram_peer *peer;
    domus_endpoint nowhere = endpoint_from_text("127.0.0.1:0");

    domt_net_check_ok(kit, domus_peer_listen(kit, "127.0.0.1:53", 0, &listener));
    open_service_channel(kit, "127.0.0.1:53", NULL, false);
    ck_assert_int_eq(open_result, -EADDRINUSE);
    ck_assert_int_eq(domus_datagram_peer_open(kit, "0.0.0.0:53", NULL, &peer), -EADDRINUSE);
    ck_assert_int_eq(domus_datagram_peer_open(kit, NULL, NULL, &peer), -EINVAL);
    ck_assert_int_eq(domus_datagram_peer_open(kit, "x", NULL, &peer), -EINVAL);
    ck_assert_int_eq(domus_datagram_peer_open(kit, "unix:@a", "127.0.0.1:1", &peer), -EAFNOSUPPORT);
    ck_assert_int_eq(domus_datagram_peer_open(kit, NULL, "unix:@nobody", &peer), -ECONNREFUSED);
    ck_assert_int_eq(domus_datagram_peer_open(kit, NULL, "unix:/nobody", &peer), -ENOENT);
    peer = open_datagram_peer(kit, "127.0.0.1:0", NULL);
    ck_assert_int_eq(domus_datagram_peer_send(peer, NULL, "x", 1), -EDESTADDRREQ);
    ck_assert_int_eq(domus_datagram_peer_send(peer, &nowhere, "x", 1), -EINVAL);
    domus_datagram_peer_close(peer);
    ck_assert_int_eq(domus_datagram_peer_send(peer, &nowhere, "x", 1), -EPIPE);
    ck_assert_int_eq(domus_datagram_peer_expect(peer, "x", 1, SECOND), -EPIPE);
    ck_assert_uint_eq(stop_kit_and_check_counts(kit).sent, 0);
}

/* Peers have bound the names that are made of the next numbers of sockets. */
DOMT_TEST(chosen_abstract_name_is_free)
{
    domus_testkit *kit = make_kit_with_seed(7, NULL);
    const service is = {.at.family = AF_UNIX};
    domus_address address;
    char name[16];

    for (uint32_t i = 0x20; i < 0x60; i++) {
        snprintf(name, sizeof name, "unix:@%05" PRIx32, i);
        open_datagram_peer(kit, name, NULL);
    }
    ck_assert_int_eq(domus_outside_spawn_on(domus_testkit_system(kit), 1, &opener, &is, &address),
                     0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_int_eq(open_result, 0);
    ck_assert_uint_eq(opened_at.size, 1 + 5);
    ck_assert_int_ge(memcmp(opened_at.bytes + 1, "00060", 5), 0);
    domus_testkit_free(kit);
}

/* --- faults ----------------------------------------------------------------------------------- */

DOMT_TEST(each_fault_of_datagrams_has_its_effect_and_its_counter)
{
    const domus_net_faults losing = {.datagram_losses = DOMUS_NET_ALWAYS};
    const domus_net_faults doubling = {.datagram_doubles = DOMUS_NET_ALWAYS};
    const domus_net_faults refusing = {.datagram_refusals = DOMUS_NET_ALWAYS};
    const domus_net_faults impossible = {.datagram_doubles = DOMUS_NET_ALWAYS + 1};
    domus_testkit *kit = make_kit_with_seed(7, NULL);
    domus_datagram_peer *one = open_datagram_peer(kit, "127.0.0.1:53", NULL);
    domus_datagram_peer *other = open_datagram_peer(kit, NULL, "127.0.0.1:53");

    ck_assert_int_eq(domus_testkit_net_set(kit, &impossible), -EINVAL);
    ck_assert_int_eq(domus_testkit_net_set(kit, &losing), 0);
    send_datagram_of_peer(kit, other, NULL, "a");
    domt_net_check_ok(kit, domus_datagram_peer_expect_nothing(one, SECOND));
    ck_assert_int_eq(domus_testkit_net_set(kit, &doubling), 0);
    send_datagram_of_peer(kit, other, NULL, "b");
    domt_net_check_ok(kit, domus_datagram_peer_expect(one, "b", 1, SECOND));
    domt_net_check_ok(kit, domus_datagram_peer_expect(one, "b", 1, SECOND));
    ck_assert_int_eq(domus_testkit_net_set(kit, &refusing), 0);
    send_datagram_of_peer(kit, other, NULL, "c");
    ck_assert_int_eq(domus_datagram_peer_expect(other, "c", 1, SECOND), -ECONNREFUSED);
    ck_assert_int_eq(domus_testkit_net_set(kit, NULL), 0);
    ck_assert_int_eq(domus_testkit_net_part(kit, NULL, NULL, true), 0);
    send_datagram_of_peer(kit, other, NULL, "d");
    domt_net_check_ok(kit, domus_datagram_peer_expect_nothing(one, SECOND));
    ck_assert_int_eq(domus_testkit_net_part(kit, NULL, NULL, false), 0);
    /* the datagram that was sent to the cut-off peer does not come later */
    domt_net_check_ok(kit, domus_datagram_peer_expect_nothing(one, SECOND));
    domus_net_datagrams all = stop_kit_and_check_counts(kit);
    ck_assert_uint_eq(all.sent, 4);
    ck_assert_uint_eq(all.doubled, 1);
    ck_assert_uint_eq(all.received, 2);
    ck_assert_uint_eq(all.lost, 2);
    ck_assert_uint_eq(all.unclaimed, 1);
}

DOMT_TEST(datagrams_that_are_held_up_overtake_each_other)
{
    const domus_net_faults mixing = {.datagram_reorders = DOMUS_NET_ALWAYS / 2};
    domus_testkit *kit = make_kit_with_seed(7, NULL);
    domus_datagram_peer *one = open_datagram_peer(kit, "127.0.0.1:53", NULL);
    domus_datagram_peer *other = open_datagram_peer(kit, NULL, "127.0.0.1:53");
    uint32_t late = 0, seen = 0, last = 0;

    ck_assert_int_eq(domus_testkit_net_set(kit, &mixing), 0);
    for (uint32_t i = 1; i <= 50; i++)
        domt_net_check_ok(kit, domus_datagram_peer_send(other, NULL, &i, sizeof i));
    ck_assert_int_eq(domus_testkit_advance(kit, 2 * MS), 0);
    for (size_t size; domus_datagram_peer_got(one, &size, NULL) != NULL; seen++) {
        uint32_t number;

        memcpy(&number, domus_datagram_peer_got(one, &size, NULL), sizeof number);
        late += number < last;
        last = number;
        domus_datagram_peer_take(one);
    }
    ck_assert_uint_eq(seen, 50);
    ck_assert_uint_gt(late, 5);
    (void)stop_kit_and_check_counts(kit);
}

/* With a bandwidth of 1 KB/s a datagram of 43 bytes leaves in 43 ms, and three datagrams fill a
 * buffer of 100 bytes. */
DOMT_TEST(send_buffer_fills_where_there_is_a_bandwidth)
{
    const domus_net_faults slow = {.bandwidth_bytes = 1000, .send_buffer_bytes = 100};
    static const char text[] = "0123456789012345678901234567890123456789xyz";
    domus_testkit *kit = make_kit_with_seed(7, NULL);
    domus_datagram_peer *peer = open_datagram_peer(kit, "127.0.0.1:53", NULL);

    ck_assert_int_eq(domus_testkit_net_set(kit, &slow), 0);
    open_service_channel(kit, NULL, "127.0.0.1:53", false);
    for (int i = 0; i < 5; i++)
        send_order_to_channel(kit, &write_type, text);
    uint64_t start_ns = domus_testkit_now_ns(kit);
    send_order_to_channel(kit, &look_type, NULL);
    ck_assert_uint_eq(counted.sent, 3);
    for (int i = 0; i < 5; i++)
        domt_net_check_ok(kit, domus_datagram_peer_expect(peer, text, sizeof text - 1, SECOND));
    /* from the first datagram to the last, 215 ms have passed */
    ck_assert_uint_eq((domus_testkit_now_ns(kit) - start_ns) / (3 * MS), 71);
    send_order_to_channel(kit, &look_type, NULL);
    ck_assert_uint_eq(counted.sent, 5);
    ck_assert_uint_eq(counted.unsent + stop_kit_and_check_counts(kit).received, 5);
}

DOMT_SUITE(60)
