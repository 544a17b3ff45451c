/* Pools in a test kit, whose services are scripts of the test: which connection gets an ask, what
 * becomes of asks when connections end, back-offs, addresses that are left out, and the end of a
 * pool. */
#include "tests/runtime/pools.h"
#include "tests/support/suite.h"

#include <domus/pool.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS (DOMT_NET_SECOND / 1000)

static const domus_behaviour line = {
    .name = "line", .kind = DOMUS_CHANNELS, .pipeline = &domt_line_pipeline};

DOMT_TEST(asks_go_where_the_fewest_are_under_way)
{
    static const domus_pool_options options = {.behaviour = &line, .connections_min = 2};

    domus_peer_listener *listener = domt_pool_begin_with_service(&options);
    domus_peer *one = domt_pool_accept_connection(listener),
               *two = domt_pool_accept_connection(listener);
    for (uint32_t i = 0; i < 4; i++) /* all these asks reach the pool within one run */
        domt_ask_line(domt_pool_probe, domt_pool, "a");
    domt_pool_expect_service_got(one, "a\na\n");
    domt_pool_expect_service_got(two, "a\na\n");
    domt_pool_service_send(two, "1\n2\n");
    domt_pool_expect_answer("1");
    domt_pool_expect_answer("2");
    for (uint32_t i = 0; i < 4; i++)
        domt_ask_line(domt_pool_probe, domt_pool, "b");
    domt_pool_expect_service_got(one,
                                 "b\n"); /* the asks are spread so that each connection has three */
    domt_pool_expect_service_got(two, "b\nb\nb\n");
    ck_assert_uint_eq(domt_pool_ask_status().under_way, 6);
    domt_pool_service_send(one, "n\nn\nn\n");
    domt_pool_service_send(two, "n\nn\nn\n");
    for (uint32_t i = 0; i < 6; i++)
        domt_pool_expect_answer("n");
    domt_pool_end_kit();
}

DOMT_TEST(asks_wait_for_the_first_connection_within_bounds)
{
    static const domus_pool_options options = {
        .behaviour = &line, .queue_max = 2, .wait_ns = 300 * MS, .backoff_min_ns = 50 * MS};

    domt_pool_begin_kit();
    domt_pool_open("10.0.0.9:1", &options); /* no service listens at this address */
    domt_pool_ask_line("a");
    domt_pool_ask_line("b");
    domt_pool_ask_line("c");
    domt_pool_expect_error(-ENOBUFS);
    ck_assert_uint_eq(domt_pool_ask_status().waiting, 2);
    domt_net_check_ok(domt_pool_kit, domus_probe_expect_nothing(domt_pool_probe, 250 * MS));
    domt_pool_expect_error(-ENOTCONN);
    domt_pool_expect_error(-ENOTCONN);
    domt_pool_ask_line("d");
    domt_pool_expect_error(-ENOTCONN); /* after the first failures, later asks fail at once */
    ck_assert_uint_eq(domt_pool_ask_status().refused, 4);
    domus_peer_listener *listener = domt_pool_listen_as_service("10.0.0.9:1");
    domus_peer *peer = domt_pool_accept_connection(listener);
    domt_pool_ask_line("e");
    domt_pool_serve_ask(peer, "e", "5");
    domt_pool_end_kit();
}

DOMT_TEST(a_back_off_doubles_up_to_its_bound)
{
    static const domus_pool_options options = {
        .behaviour = &line, .backoff_min_ns = 100 * MS, .backoff_max_ns = 800 * MS};
    static const uint64_t most_ms[] = {100, 200, 400, 800, 800};

    domt_pool_begin_kit();
    domt_pool_open("10.0.0.9:1", &options);
    ck_assert_uint_eq(domt_pool_ask_status().failures, 1);
    for (uint32_t i = 0; i < 5; i++) {
        domt_pool_pass_time(most_ms[i] / 2 * MS - 2 * MS);
        ck_assert_uint_eq(domt_pool_ask_status().failures, 1 + i);
        while (domt_pool_ask_status().failures == 1 + i)
            domt_pool_pass_time(MS);
    }
    domt_pool_end_kit();
}

DOMT_TEST(an_ask_that_was_perhaps_done_fails)
{
    static const domus_pool_options options = {.behaviour = &line};

    domus_peer_listener *listener = domt_pool_begin_with_service(&options);
    domus_peer *peer = domt_pool_accept_connection(listener);
    domt_pool_ask_line("a");
    domt_pool_expect_service_got(peer, "a\n");
    domus_peer_reset(peer);
    domt_pool_expect_error(-EPIPE);
    domt_pool_ask_line("b"); /* this ask waits until there is a connection again */
    peer = domt_pool_accept_connection(listener);
    domt_pool_serve_ask(peer, "b", "2");
    domt_pool_end_kit();
}

DOMT_TEST(an_ask_that_was_not_sent_goes_to_the_next_connection)
{
    static const domus_pool_options options = {.behaviour = &domt_pool_narrow};

    domus_peer_listener *listener = domt_pool_begin_with_service(&options);
    domus_peer *peer = domt_pool_accept_connection(listener);
    domt_pool_ask_line("a");
    domt_pool_ask_line("b");
    domt_pool_expect_service_got(peer, "a\n");
    domus_peer_reset(peer);
    domt_pool_expect_error(-EPIPE);
    peer = domt_pool_accept_connection(listener);
    domt_pool_serve_ask(peer, "b", "2");
    domt_pool_end_kit();
}

/* Types and data of an actor beside the pool, by which the first connection can close while an ask
 * still lies in its mailbox. */
static const domus_type turn_type = {.name = "turn"}, go_type = {.name = "go"};
static domus_address beside;
static domus_kept held;
static uint32_t connections;
static int outcome;

static int close_own_channel(domus_stack *stack, void *self, const domus_answer *answer)
{
    return domus_channel_close(stack, domus_channel_running(stack));
}

static int on_open_ask_pools_owner(domus_stack *stack, void *self, const void *payload)
{
    return connections++ == 0 ? domus_ask(stack, beside, &turn_type, NULL, close_own_channel) : 0;
}

static const domus_behaviour closing_line = {.name = "line",
                                             .kind = DOMUS_CHANNELS,
                                             .pipeline = &domt_line_pipeline,
                                             .on_open = {on_open_ask_pools_owner, 0}};

static int keep_ask_of_first_channel(domus_stack *stack, void *self, const void *payload)
{
    return domus_keep(stack, &held);
}

static int record_outcome_of_ask(domus_stack *stack, void *self, const domus_answer *answer)
{
    outcome = answer->error;
    return 0;
}

static int ask_pool_and_let_channel_close(domus_stack *stack, void *self, const void *payload)
{
    domus_packet packet;
    ck_assert_int_eq(domus_slice_copy("a", 1, &packet.bytes), 0);
    int result = domus_ask(stack, domt_pool, &domus_packet_type, &packet, record_outcome_of_ask);
    ck_assert_int_eq(domus_kept_reply(stack, held, &turn_type, NULL), 0);
    return result;
}

static int open_pool_as_its_owner_in_mount(domus_stack *stack, void *self)
{
    static const domus_pool_options options = {.behaviour = &closing_line, .connections_min = 2};
    beside = domus_self(stack);
    return domus_pool_open(stack, "10.0.0.9:1", &options, &domt_pool);
}

static const domus_behaviour neighbour = {
    .name = "neighbour",
    .kind = DOMUS_CHANNELS,
    .on_mount = open_pool_as_its_owner_in_mount,
    .on = (const domus_on[]){{&turn_type, keep_ask_of_first_channel, 0},
                             {&go_type, ask_pool_and_let_channel_close, 0},
                             {0}}};

DOMT_TEST(an_ask_that_meets_a_close_goes_to_the_next_connection)
{
    domt_pool_begin_kit();
    connections = 0;
    outcome = 1;
    domus_peer_listener *listener = domt_pool_listen_as_service("10.0.0.9:1");
    domus_system *system = domus_testkit_system(domt_pool_kit);
    domus_address address;
    ck_assert_int_eq(domus_outside_spawn(system, &neighbour, NULL, &address), 0);
    domus_peer *one = domt_pool_accept_connection(listener),
               *two = domt_pool_accept_connection(listener);
    ck_assert_uint_eq(connections, 2);
    ck_assert_int_eq(domus_outside_notice(system, address, &go_type, NULL), 0);
    domt_pool_expect_service_got(two, "a\n");
    domt_pool_service_send(two, "1\n");
    domt_pool_run_kit();
    ck_assert_int_eq(outcome, 0);
    domt_net_check_ok(domt_pool_kit, domus_peer_expect_end(one, DOMT_NET_SECOND));
    domt_pool_end_kit();
}

DOMT_TEST(a_repeatable_ask_is_sent_up_to_tries_max_times)
{
    static const domus_pool_options options = {
        .behaviour = &line, .repeatable = domt_packets, .tries_max = 3};

    domus_peer_listener *listener = domt_pool_begin_with_service(&options);
    domt_pool_ask_line("a");
    for (uint32_t i = 0; i < 3; i++) {
        domus_peer *peer = domt_pool_accept_connection(listener);
        domt_pool_expect_service_got(peer, "a\n");
        domus_peer_reset(peer);
    }
    domt_pool_expect_error(-EPIPE);
    ck_assert_uint_eq(domt_pool_ask_status().repeated, 2);
    domt_pool_end_kit();
}

DOMT_TEST(perhaps_done_ask_fails_so_when_no_connection_comes)
{
    static const domus_pool_options options = {.behaviour = &line,
                                               .repeatable = domt_packets,
                                               .tries_max = 3,
                                               .wait_ns = 300 * MS,
                                               .backoff_min_ns = 1000 * MS};

    domt_pool_begin_kit();
    domus_peer_listener *listener = domt_pool_listen_as_service("10.0.0.9:1");
    domt_pool_open("10.0.0.9:1", &options);
    domus_peer *peer = domt_pool_accept_connection(listener);
    domt_pool_ask_line("a");
    domt_pool_expect_service_got(peer, "a\n");
    domus_peer_reset(peer);
    domt_pool_run_kit();
    domt_pool_ask_line("b");
    domt_pool_expect_error(-EPIPE);
    domt_pool_expect_error(-ENOTCONN); /* the ask "b" was never sent */
    domt_pool_end_kit();
}

DOMT_TEST(address_that_fails_gets_no_connections)
{
    static const domus_pool_options options = {.behaviour = &line, .connections_min = 2};

    domt_pool_begin_kit();
    domus_peer_listener *good = domt_pool_listen_as_service("10.0.0.9:1");
    /* no service listens at the first of the two addresses */
    domt_pool_open("10.0.0.8:1, 10.0.0.9:1", &options);
    (void)domt_pool_accept_connection(good);
    (void)domt_pool_accept_connection(good);
    domus_pool_status status = domt_pool_ask_status();
    ck_assert_uint_eq(status.addresses, 2);
    ck_assert_uint_eq(status.left_out, 1);
    ck_assert_uint_eq(status.connected, 2);
    domt_pool_end_kit();
}

DOMT_TEST(a_pool_grows_while_all_connections_are_busy)
{
    static const domus_pool_options options = {.behaviour = &domt_pool_narrow,
                                               .connections_max = 2};

    domus_peer_listener *listener = domt_pool_begin_with_service(&options);
    domus_peer *one = domt_pool_accept_connection(listener);
    domt_pool_ask_line("a");
    domt_pool_expect_service_got(one, "a\n");
    /* this ask waits behind the ask "a", and makes the pool open a second connection */
    domt_pool_ask_line("b");
    domus_peer *two = domt_pool_accept_connection(listener);
    domt_pool_ask_line("c");
    domt_pool_expect_service_got(two, "c\n");
    domt_pool_ask_line("d");
    domt_pool_ask_line("e");
    ck_assert_uint_eq(domt_pool_ask_status().connected, 2);
    ck_assert_uint_eq(domt_pool_ask_status().connecting, 0);
    domus_testkit_free(domt_pool_kit);
}

DOMT_TEST(cancel_of_an_ask_to_a_pool_reaches_it_in_the_channel)
{
    static const domus_pool_options options = {.behaviour = &domt_pool_narrow};

    domus_peer *peer = domt_pool_accept_connection(domt_pool_begin_with_service(&options));
    domus_probe *other = domt_new_probe(domt_pool_kit);
    domt_pool_ask_line("a");
    domt_ask_line(other, domt_pool, "b");
    domt_pool_run_kit();
    domt_pool_ask_line("c");
    ck_assert_uint_eq(domt_pool_ask_status().under_way, 3);
    ck_assert_int_eq(
        domus_outside_stop(domus_testkit_system(domt_pool_kit), domus_probe_address(other)), 0);
    domt_pool_run_kit();
    ck_assert_uint_eq(domt_pool_ask_status().under_way, 2);
    domt_pool_answer_and_expect(peer, "1");
    domt_pool_expect_service_got(peer, "a\nc\n");
    domt_pool_answer_and_expect(peer, "3");
    domt_pool_end_kit();
}

DOMT_TEST(a_stop_of_the_pool_ends_what_is_under_way)
{
    static const domus_pool_options options = {.behaviour = &domt_pool_narrow};

    domus_peer *peer = domt_pool_accept_connection(domt_pool_begin_with_service(&options));
    domt_pool_ask_line("a");
    domt_pool_ask_line("b");
    domt_pool_expect_service_got(peer, "a\n");
    ck_assert_int_eq(domus_outside_stop(domus_testkit_system(domt_pool_kit), domt_pool), 0);
    domt_pool_expect_error(-EPIPE);
    domt_pool_expect_error(-ENOTCONN);
    domt_net_check_ok(domt_pool_kit, domus_peer_expect_end(peer, 5 * DOMT_NET_SECOND));
    domt_pool_end_kit();
}

DOMT_TEST(a_drain_of_the_pool_lets_asks_end)
{
    static const domus_pool_options options = {.behaviour = &line};

    domus_peer *peer = domt_pool_accept_connection(domt_pool_begin_with_service(&options));
    domt_pool_ask_line("a");
    domt_pool_expect_service_got(peer, "a\n");
    ck_assert_int_eq(domus_outside_notice(domus_testkit_system(domt_pool_kit), domt_pool,
                                          &domus_pool_drain_type, NULL),
                     0);
    domt_pool_run_kit();
    domt_pool_ask_line("b");
    domt_pool_expect_error(-ESHUTDOWN);
    domt_net_check_ok(domt_pool_kit, domus_probe_expect_nothing(domt_pool_probe, DOMT_NET_SECOND));
    domt_pool_answer_and_expect(peer, "1");
    domt_net_check_ok(domt_pool_kit, domus_peer_expect_end(peer, DOMT_NET_SECOND));
    domt_expect_actor_gone(domt_pool_kit, domt_pool);
    domt_pool_end_kit();
}

DOMT_TEST(wrong_pool_options_and_addresses_are_refused)
{
    static const domus_behaviour bytes = {.name = "bytes", .kind = DOMUS_CHANNELS};
    static const domus_pool_options wrong[] = {
        {.behaviour = NULL},
        {.behaviour = &bytes},
        {.behaviour = &line, .connections_min = 3, .connections_max = 2},
        {.behaviour = &line, .connections_min = DOMUS_POOL_CONNECTIONS_MAX + 1},
        {.behaviour = &line, .backoff_min_ns = 1},
        {.behaviour = &line, .backoff_min_ns = 2 * MS, .backoff_max_ns = MS},
        {.behaviour = &line, .tries_max = 256},
        {.behaviour = &line, .connections_min = 1, .on_demand = true},
    };
    static const domus_pool_options right = {.behaviour = &line};

    domt_pool_begin_kit();
    domus_system *system = domus_testkit_system(domt_pool_kit);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(domus_outside_pool_open(system, "10.0.0.9:1", &wrong[i], &domt_pool),
                         -EINVAL);
    ck_assert_int_eq(domus_outside_pool_open(system, "", &right, &domt_pool), -EINVAL);
    ck_assert_int_eq(domus_outside_pool_open(system, "10.0.0.9:1,", &right, &domt_pool), -EINVAL);
    ck_assert_int_eq(domus_outside_pool_open(system, "10.0.0.9", &right, &domt_pool), -EINVAL);
    char many[512] = "10.0.0.9:1";
    for (uint32_t i = 0; i < DOMUS_POOL_ADDRESSES_MAX; i++) {
        size_t size = strlen(many);
        (void)snprintf(many + size, sizeof many - size, ",10.0.0.9:1");
    }
    ck_assert_int_eq(domus_outside_pool_open(system, many, &right, &domt_pool), -E2BIG);
    domt_pool_end_kit();
}

DOMT_SUITE(60)
