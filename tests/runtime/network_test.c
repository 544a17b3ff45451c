/* runtime/network/ and runtime/testkit/peer.c: services in a test kit, and scripted peers in its
 * simulated network. network_sweep_test.c checks the faults that are drawn by seed. */
#include "tests/runtime/network.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

DOMT_TEST(bytes_come_back_in_order)
{
    domus_testkit *kit = domt_net_new_echo_kit("127.0.0.1:7000", 1);
    domus_peer *peer = domt_net_connect_peer(kit, "127.0.0.1:7000");

    domt_net_check_ok(kit, domus_peer_expect_connected(peer, DOMT_NET_SECOND));
    domt_net_check_ok(kit, domus_peer_send(peer, "hello", 5));
    domt_net_check_ok(kit, domus_peer_expect(peer, "hello", 5, DOMT_NET_SECOND));
    /* the clock has not moved since the kit was made */
    ck_assert_uint_eq(domus_testkit_now_ns(kit), DOMUS_TESTKIT_START_NS);
    domus_peer_finish(peer);
    domt_net_check_ok(kit, domus_peer_expect_end(peer, DOMT_NET_SECOND));
    domus_peer_close(peer);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    domus_net_totals totals = domus_testkit_net_totals(kit);
    ck_assert_uint_eq(totals.sent, 10);
    ck_assert_uint_eq(totals.received, 10);
    ck_assert_uint_eq(totals.lost + totals.in_flight, 0);
    ck_assert_int_eq(domus_testkit_stop(kit), 0);
    domus_testkit_free(kit);
}

DOMT_TEST(kit_network_serves_each_address_family)
{
    static const char *const places[] = {"127.0.0.1:80", "[::1]:80", "unix:/run/a", "unix:@a"};

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        domus_testkit *kit = domt_net_new_echo_kit(places[i], 7);
        domus_peer *peer = domt_net_connect_peer(kit, places[i]);

        domt_net_check_ok(kit, domus_peer_send(peer, "abc", 3));
        domt_net_check_ok(kit, domus_peer_expect(peer, "abc", 3, DOMT_NET_SECOND));
        domus_endpoint at = domus_peer_remote(peer);
        domus_endpoint wanted;
        ck_assert_int_eq(domus_endpoint_parse(places[i], &wanted), 0);
        ck_assert(domus_endpoint_is_same(&at, &wanted));
        domus_testkit_free(kit);
    }
}

DOMT_TEST(connect_without_listener_is_refused_in_kit)
{
    domus_testkit *kit = domt_net_new_echo_kit("127.0.0.1:80", 7);
    domus_peer *peer = domt_net_connect_peer(kit, "127.0.0.1:81");

    ck_assert_int_eq(domus_peer_expect_connected(peer, DOMT_NET_SECOND), -ECONNREFUSED);
    ck_assert_ptr_nonnull(strstr(domus_testkit_error(kit), "Connection refused"));
    peer = domt_net_connect_peer(kit, "unix:@nobody");
    ck_assert_int_eq(domus_peer_expect_connected(peer, DOMT_NET_SECOND), -ECONNREFUSED);
    peer = domt_net_connect_peer(kit, "unix:/nobody");
    ck_assert_int_eq(domus_peer_expect_connected(peer, DOMT_NET_SECOND), -ENOENT);
    domus_testkit_free(kit);
}

DOMT_TEST(a_peer_that_resets_or_closes_with_bytes_unread_is_told)
{
    domus_testkit *kit = domt_net_new_echo_kit("127.0.0.1:80", 7);
    domus_peer *one = domt_net_connect_peer(kit, "127.0.0.1:80");
    domus_peer *other = domt_net_connect_peer(kit, "127.0.0.1:80");

    domt_net_check_ok(kit, domus_peer_send(one, "abc", 3));
    domus_peer_pause(one);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    domus_peer_close(one); /* this peer has not read the echo that was sent to it */
    domt_net_check_ok(kit, domus_peer_expect_connected(other, DOMT_NET_SECOND));
    domus_peer_reset(other);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    domus_profile profile;
    ck_assert_int_eq(domus_system_profile(domus_testkit_system(kit), 1, &profile), 0);
    ck_assert_uint_eq(profile.channels_reset, 2);
    ck_assert_uint_eq(profile.channels_opened, 2);
    ck_assert_uint_eq(domus_peer_count(one).missed, 3);
    ck_assert_uint_eq(domus_peer_count(one).delivered, 3);
    domus_testkit_free(kit);
}

DOMT_TEST(a_peer_that_does_not_read_stops_the_service)
{
    static char bytes[1 << 20];
    domus_testkit *kit = domt_net_new_echo_kit("127.0.0.1:80", 7);
    domus_peer *peer = domt_net_connect_peer(kit, "127.0.0.1:80");

    domus_peer_pause(peer);
    domt_net_check_ok(kit, domus_peer_send(peer, bytes, sizeof bytes));
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_uint_ne(domus_peer_count(peer).unsent, 0);
    domus_peer_resume(peer);
    domt_net_check_ok(kit, domus_peer_expect(peer, bytes, sizeof bytes, DOMT_NET_SECOND));
    ck_assert_uint_eq(domus_peer_count(peer).unsent, 0);
    domus_testkit_free(kit);
}

DOMT_TEST(latency_is_kept_to_the_nanosecond)
{
    const domus_net_faults slow = {.latency_min_ns = 1000, .latency_max_ns = 1000};
    domus_testkit *kit = domt_net_new_echo_kit("127.0.0.1:80", 7);

    ck_assert_int_eq(domus_testkit_net_set(kit, &slow), 0);
    domus_peer *peer = domt_net_connect_peer(kit, "127.0.0.1:80");
    domt_net_check_ok(kit, domus_peer_expect_connected(peer, DOMT_NET_SECOND));
    ck_assert_uint_eq(domus_testkit_now_ns(kit), DOMUS_TESTKIT_START_NS + 2000);
    domt_net_check_ok(kit, domus_peer_send(peer, "abc", 3));
    domt_net_check_ok(kit, domus_peer_expect(peer, "abc", 3, DOMT_NET_SECOND));
    ck_assert_uint_eq(domus_testkit_now_ns(kit), DOMUS_TESTKIT_START_NS + 4000);
    domus_testkit_free(kit);
}

DOMT_TEST(a_link_that_is_held_goes_on_later)
{
    domus_testkit *kit = domt_net_new_echo_kit("127.0.0.1:80", 7);
    domus_peer *peer = domt_net_connect_peer(kit, "127.0.0.1:80");

    domt_net_check_ok(kit, domus_peer_expect_connected(peer, DOMT_NET_SECOND));
    domus_peer_hold(peer);
    domt_net_check_ok(kit, domus_peer_send(peer, "abc", 3));
    domt_net_check_ok(kit, domus_peer_expect_nothing(peer, DOMT_NET_SECOND));
    domus_peer_release(peer);
    domt_net_check_ok(kit, domus_peer_expect(peer, "abc", 3, 0));
    ck_assert_int_eq(domus_testkit_net_part(kit, NULL, NULL, true), 0);
    domt_net_check_ok(kit, domus_peer_send(peer, "def", 3));
    ck_assert_int_eq(domus_peer_expect(peer, "def", 3, DOMT_NET_SECOND), -ETIMEDOUT);
    ck_assert_ptr_nonnull(strstr(domus_testkit_error(kit), "\"def\""));
    ck_assert_int_eq(domus_testkit_net_part(kit, NULL, NULL, false), 0);
    ck_assert_int_eq(domus_testkit_net_part(kit, NULL, NULL, false), -ENOENT);
    domt_net_check_ok(kit, domus_peer_expect(peer, "def", 3, 0));
    domus_testkit_free(kit);
}

/* A listener of the kernel takes one connection more than its backlog says, and so does the
 * simulated one. */
DOMT_TEST(connect_to_full_backlog_is_tried_again_as_tcp_does)
{
    domus_testkit *kit = domt_net_new_echo_kit("127.0.0.1:80", 7);
    domus_peer_listener *listener;
    domus_peer *clients[3], *accepted;

    domt_net_check_ok(kit, domus_peer_listen(kit, "10.0.0.1:90", 1, &listener));
    for (int i = 0; i < 3; i++)
        clients[i] = domt_net_connect_peer(kit, "10.0.0.1:90");
    domt_net_check_ok(kit, domus_peer_expect_connected(clients[0], DOMT_NET_SECOND));
    domt_net_check_ok(kit, domus_peer_expect_connected(clients[1], DOMT_NET_SECOND));
    ck_assert_int_eq(domus_peer_expect_connected(clients[2], DOMT_NET_SECOND / 2), -ETIMEDOUT);
    domt_net_check_ok(kit, domus_peer_accept(listener, 0, &accepted));
    domt_net_check_ok(kit, domus_peer_expect_connected(clients[2], DOMT_NET_SECOND));
    ck_assert_uint_eq(domus_testkit_now_ns(kit), DOMUS_TESTKIT_START_NS + DOMT_NET_SECOND);
    domus_peer_listener_close(listener);
    domt_net_check_ok(kit, domus_peer_expect_reset(clients[1], 0));
    domt_net_check_ok(kit, domus_peer_send(accepted, "x", 1));
    domt_net_check_ok(kit, domus_peer_expect(clients[0], "x", 1, 0));
    domus_testkit_free(kit);
}

DOMT_TEST(same_seed_gives_same_network_trace)
{
    static char first[1 << 16];

    for (int round = 0; round < 2; round++) {
        domus_testkit *kit = domt_net_new_echo_kit("127.0.0.1:80", 5);
        domus_peer *peer = domt_net_connect_peer(kit, "127.0.0.1:80");
        const char *trace;

        domt_net_check_ok(kit, domus_peer_send(peer, "abc", 3));
        domt_net_check_ok(kit, domus_peer_expect(peer, "abc", 3, DOMT_NET_SECOND));
        domus_peer_reset(peer);
        ck_assert_int_eq(domus_testkit_run(kit), 0);
        trace = domus_testkit_trace(kit);
        ck_assert_ptr_nonnull(strstr(trace, "connection 0 > bytes 3"));
        ck_assert_ptr_nonnull(strstr(trace, "connection 0 < bytes 3"));
        ck_assert_ptr_nonnull(strstr(trace, "connection 0 > reset"));
        ck_assert_uint_lt(strlen(trace), sizeof first);
        if (round == 0)
            memcpy(first, trace, strlen(trace) + 1);
        else
            ck_assert_str_eq(trace, first);
        domus_testkit_free(kit);
    }
}

DOMT_SUITE(60)
