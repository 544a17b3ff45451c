/* Pools that connect on demand, in a test kit: when they connect, where asks wait, and what becomes
 * of them when there is no connection. */
#include "tests/runtime/pools.h"

#include <errno.h>

#define MS (DOMT_NET_SECOND / 1000)

static const domus_pool_options on_demand = {
    .behaviour = &domt_pool_narrow, .connections_max = 2, .queue_max = 3, .on_demand = true};

static void answer_and_hear(domus_peer *peer, const char *text)
{
    domt_pool_answer(peer, text);
    domt_net_ok(domt_pool_kit, domus_testkit_run(domt_pool_kit));
}

/* Begin with two connections, one for the ask "a" and one for the ask "b". */
static domus_peer_listener *begin_with_two(domus_peer **ret_one, domus_peer **ret_two)
{
    domus_peer_listener *listener = domt_pool_begin_listening(&on_demand);

    domt_pool_ask("a");
    *ret_one = domt_pool_peer(listener);
    domt_pool_ask("b");
    *ret_two = domt_pool_peer(listener);
    return listener;
}

DOMT_TEST(a_connection_is_made_when_it_is_needed)
{
    domus_peer_listener *listener = domt_pool_begin_listening(&on_demand);

    domt_net_ok(domt_pool_kit, domus_testkit_advance(domt_pool_kit, 20 * DOMT_NET_SECOND));
    ck_assert_uint_eq(domt_pool_look().connects, 0);
    for (uint64_t i = 0; i < 3; i++) { /* a peer that closes is asked again, with no back-off */
        domt_pool_ask("a");
        domus_peer *peer = domt_pool_peer(listener);
        domt_pool_sent(peer, "a\n");
        domt_pool_answer(peer, "1\n");
        domus_peer_finish(peer);
        domt_expect_line(domt_pool_kit, domt_pool_probe, "1");
        domt_net_ok(domt_pool_kit, domus_testkit_advance(domt_pool_kit, MS));
        ck_assert_uint_eq(domt_pool_look().connected, 0);
        ck_assert_uint_eq(domt_pool_look().connects, i + 1);
        ck_assert_uint_eq(domt_pool_look().failures, 0);
    }
    domt_pool_end();
}

DOMT_TEST(an_ask_waits_for_whatever_connection_has_room)
{
    domus_peer_listener *listener = domt_pool_begin_listening(&on_demand);
    static const char *const texts[] = {"a", "b", "c", "d", "e"};

    for (uint32_t i = 0; i < 5; i++) /* in one run of the pool */
        domt_ask_line(domt_pool_probe, domt_pool, texts[i]);
    ck_assert_uint_eq(domt_pool_look().connecting, 2);
    domt_pool_error(-ENOBUFS); /* d */
    domt_pool_error(-ENOBUFS);
    domus_peer *one = domt_pool_peer(listener), *two = domt_pool_peer(listener);
    domt_pool_sent(one, "a\n");
    domt_pool_sent(two, "b\n");
    ck_assert_uint_eq(domt_pool_look().waiting, 1);
    domt_pool_answer(two, "2\n"); /* the first one is slow */
    domt_expect_line(domt_pool_kit, domt_pool_probe, "2");
    domt_pool_sent(two, "c\n");
    ck_assert_uint_eq(domt_pool_look().waiting, 0);
    domt_pool_ask("f");
    ck_assert_uint_eq(domt_pool_look().waiting, 1);
    ck_assert_uint_eq(domt_pool_look().under_way, 2);
    domt_pool_answer(one, "1\n");
    domt_expect_line(domt_pool_kit, domt_pool_probe, "1");
    domt_pool_sent(one, "f\n");
    domt_pool_answer(two, "3\n");
    domt_pool_answer(one, "6\n");
    domt_expect_line(domt_pool_kit, domt_pool_probe, "3");
    domt_expect_line(domt_pool_kit, domt_pool_probe, "6");
    domt_pool_end();
}

DOMT_TEST(an_ask_that_waits_goes_to_a_new_connection_when_one_ends)
{
    domus_peer *one, *two;
    domus_peer_listener *listener = begin_with_two(&one, &two);

    domt_pool_sent(one, "a\n");
    domt_pool_sent(two, "b\n");
    answer_and_hear(one, "1\n");
    domt_expect_line(domt_pool_kit, domt_pool_probe, "1");
    domt_pool_ask("c");
    domt_pool_sent(one, "c\n");
    domt_pool_ask("d");
    ck_assert_uint_eq(domt_pool_look().waiting, 1);
    domus_peer_reset(one);
    domt_pool_error(-EPIPE); /* c may have been done */
    one = domt_pool_peer(listener);
    domt_pool_sent(one, "d\n");
    domt_pool_answer(one, "4\n");
    domt_expect_line(domt_pool_kit, domt_pool_probe, "4");
    domt_pool_answer(two, "2\n");
    domt_expect_line(domt_pool_kit, domt_pool_probe, "2");
    domt_pool_end();
}

DOMT_TEST(asks_fail_with_the_error_of_the_connect)
{
    static const domus_pool_options options = {.behaviour = &domt_pool_narrow,
                                               .on_demand = true,
                                               .backoff_min_ns = 100 * MS,
                                               .backoff_max_ns = 100 * MS};

    domt_pool_begin();
    domt_pool_open("10.0.0.9:1", &options); /* nobody listens */
    domt_ask_line(domt_pool_probe, domt_pool, "a");
    domt_ask_line(domt_pool_probe, domt_pool, "b");
    domt_pool_error(-ECONNREFUSED);
    domt_pool_error(-ECONNREFUSED);
    domt_pool_ask("c");
    domt_pool_error(-ECONNREFUSED); /* at once: nobody connects within the back-off */
    ck_assert_uint_eq(domt_pool_look().failures, 1);
    domt_net_ok(domt_pool_kit, domus_testkit_advance(domt_pool_kit, 100 * MS));
    domus_peer_listener *listener = domt_pool_listen("10.0.0.9:1");
    domt_pool_ask("d");
    domus_peer *peer = domt_pool_peer(listener);
    domt_pool_sent(peer, "d\n");
    domt_pool_answer(peer, "4\n");
    domt_expect_line(domt_pool_kit, domt_pool_probe, "4");
    domt_pool_end();
}

DOMT_TEST(another_address_is_tried_before_an_ask_fails)
{
    domt_pool_begin();
    domus_peer_listener *listener = domt_pool_listen("10.0.0.8:1");
    domt_pool_open("10.0.0.9:1, 10.0.0.8:1", &on_demand);
    domt_pool_ask("a");
    domus_peer *peer = domt_pool_peer(listener);
    domt_pool_sent(peer, "a\n");
    domt_pool_answer(peer, "1\n");
    domt_expect_line(domt_pool_kit, domt_pool_probe, "1");
    domt_pool_end();
}

DOMT_TEST(a_connection_that_ends_unused_is_a_failure)
{
    static const domus_net_faults slow = {.latency_min_ns = 5 * MS, .latency_max_ns = 5 * MS};
    domus_peer_listener *listener = domt_pool_begin_listening(&on_demand);

    domt_net_ok(domt_pool_kit, domus_testkit_net_set(domt_pool_kit, &slow));
    domt_ask_line_within(domt_pool_probe, domt_pool, "a", MS);
    domt_pool_error(-ETIMEDOUT); /* before there is a connection */
    domus_peer *peer = domt_pool_peer(listener);
    domt_net_ok(domt_pool_kit, domus_peer_expect_nothing(peer, 10 * MS));
    domus_peer_reset(peer);
    domt_net_ok(domt_pool_kit, domus_testkit_advance(domt_pool_kit, 10 * MS));
    ck_assert_uint_eq(domt_pool_look().left_out, 1);
    domt_pool_ask("b");
    domt_pool_error(-ENOTCONN);
    domt_pool_end();
}

DOMT_TEST(an_ask_that_waits_is_dropped_at_its_deadline)
{
    domus_peer *one, *two;

    (void)begin_with_two(&one, &two);
    domt_ask_line_within(domt_pool_probe, domt_pool, "c", 100 * MS);
    domt_pool_error(-ETIMEDOUT);
    domt_pool_ask("d");
    domt_pool_sent(one, "a\n");
    domt_pool_answer(one, "1\n");
    domt_expect_line(domt_pool_kit, domt_pool_probe, "1");
    domt_pool_sent(one, "d\n");
    domt_pool_sent(two, "b\n");
    domt_pool_answer(one, "4\n");
    domt_pool_answer(two, "2\n");
    domt_expect_line(domt_pool_kit, domt_pool_probe, "4");
    domt_expect_line(domt_pool_kit, domt_pool_probe, "2");
    domt_pool_end();
}

DOMT_TEST(a_connection_is_reset_at_the_deadline_of_its_ask)
{
    domus_peer_listener *listener = domt_pool_begin_listening(&on_demand);

    domt_ask_line_within(domt_pool_probe, domt_pool, "a", 100 * MS);
    domus_peer *peer = domt_pool_peer(listener);
    domt_pool_sent(peer, "a\n");
    domt_pool_error(-ETIMEDOUT);
    domt_net_ok(domt_pool_kit, domus_peer_expect_reset(peer, 10 * MS));
    ck_assert_uint_eq(domt_pool_look().failures, 0);
    domt_pool_ask("b"); /* it has no deadline */
    peer = domt_pool_peer(listener);
    domt_pool_sent(peer, "b\n");
    domt_net_ok(domt_pool_kit, domus_testkit_advance(domt_pool_kit, DOMT_NET_SECOND));
    domt_pool_answer(peer, "2\n");
    domt_expect_line(domt_pool_kit, domt_pool_probe, "2");
    domt_pool_end();
}

DOMT_TEST(a_connection_is_idle_only_without_an_ask)
{
    static const domus_channel_options channel = {.idle_timeout_ns = 100 * MS};
    static const domus_pool_options options = {
        .behaviour = &domt_pool_narrow, .on_demand = true, .channel = &channel};
    domus_peer_listener *listener = domt_pool_begin_listening(&options);

    domt_pool_ask("a");
    domus_peer *peer = domt_pool_peer(listener);
    domt_pool_sent(peer, "a\n");
    domt_net_ok(domt_pool_kit, domus_testkit_advance(domt_pool_kit, 950 * MS));
    domt_pool_answer(peer, "1\n");
    domt_expect_line(domt_pool_kit, domt_pool_probe, "1");
    domt_net_ok(domt_pool_kit, domus_testkit_advance(domt_pool_kit, 90 * MS));
    ck_assert_uint_eq(domt_pool_look().connected, 1);
    domt_net_ok(domt_pool_kit, domus_testkit_advance(domt_pool_kit, 20 * MS));
    ck_assert_uint_eq(domt_pool_look().connected, 0);
    ck_assert_uint_eq(domt_pool_look().failures, 0);
    domt_pool_end();
}

DOMT_TEST(no_connection_is_kept_on_demand)
{
    static const domus_pool_options options = {
        .behaviour = &domt_pool_narrow, .on_demand = true, .connections_min = 1};
    domus_address address;

    domt_pool_begin();
    ck_assert_int_eq(domus_outside_pool_open(domus_testkit_system(domt_pool_kit), "10.0.0.9:1",
                                             &options, &address),
                     -EINVAL);
    domt_pool_end();
}

DOMT_SUITE(20)
