/* Upgrades to another protocol through the reverse proxy in a test kit: which ones it passes on,
 * and how a tunnel ends. */
#include "tests/runtime/proxied.h"
#include "tests/support/suite.h"

#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define WISH(protocol)                                                                             \
    "GET /a HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: " protocol                      \
    "\r\nSec-WebSocket-Key: k\r\n\r\n"
#define WISHED(protocol)                                                                           \
    "GET /a HTTP/1.1\r\nConnection: upgrade\r\nHost: h\r\nSec-WebSocket-Key: k\r\n"                \
    "Upgrade: " protocol "\r\n" ADDED
#define SWITCH                                                                                     \
    "HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: "      \
    "s\r\n\r\n"
#define SWITCHED                                                                                   \
    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nSec-WebSocket-Accept: s\r\n"       \
    "Upgrade: websocket\r\nVia: 1.1 domus\r\n\r\n"
#define NEXT "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"

static void advance_kit(uint64_t ns)
{
    domt_net_check_ok(domt_edge.kit, domus_testkit_advance(domt_edge.kit, ns));
}

/* Let client and server change to WebSocket, so that the proxy makes a tunnel. */
static void begin_tunnel_through_proxy(void)
{
    domt_proxied_begin(&domt_proxied_edge);
    domt_relay_request(WISH("websocket"), WISHED("websocket"));
    domt_relay_answer(SWITCH, SWITCHED);
}

/* Check that the client gets this answer and then the end, and that the server gets no more
 * requests. */
static void expect_answer_and_end(const char *answer)
{
    domt_pipes_peer_expect(domt_edge.kit, domt_edge.client, answer);
    domt_net_check_ok(domt_edge.kit, domus_peer_expect_end(domt_edge.client, SECOND));
    size_t size;
    (void)domus_peer_got(domt_edge.server, &size);
    ck_assert_uint_eq(size, 0);
}

DOMT_TEST(bytes_pass_both_ways_as_they_are)
{
    begin_tunnel_through_proxy();
    domt_relay_request("\x81\x01" NEXT, "\x81\x01" NEXT);
    domt_relay_answer("HTTP/1.1 400 x\r\n\r\n", "HTTP/1.1 400 x\r\n\r\n");
    for (int i = 0; i < 3; i++) {
        domt_relay_request("a", "a");
        domt_relay_answer("b", "b");
    }
    domt_proxied_end();
}

/* Some clients send bytes of the other protocol before the answer 101. If the server changes to
 * that protocol, these bytes are for it. */
DOMT_TEST(early_bytes_wait_for_the_switch)
{
    domt_proxied_begin(&domt_proxied_edge);
    domt_relay_request(WISH("WebSocket, x") "early", WISHED("websocket"));
    domt_pipes_peer_send(domt_edge.kit, domt_edge.client, NEXT);
    domt_net_check_ok(domt_edge.kit, domus_peer_expect_nothing(domt_edge.server, 50 * MS));
    domt_relay_answer(SWITCH "soon", SWITCHED "soon");
    domt_pipes_peer_expect(domt_edge.kit, domt_edge.server, "early" NEXT);
    domt_proxied_end();

    /* `Connection: close` does not matter here, because the connection ends with this request
     * anyway */
    domt_proxied_begin(&domt_proxied_edge);
    domt_relay_request("GET /a HTTP/1.1\r\nHost: h\r\nConnection: close, upgrade\r\n"
                       "Upgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\nearly",
                       WISHED("websocket"));
    domt_relay_answer(SWITCH, SWITCHED);
    domt_pipes_peer_expect(domt_edge.kit, domt_edge.server, "early");
    domt_relay_request("late", "late");
    domt_proxied_end();
}

DOMT_TEST(early_bytes_are_no_request_behind_another_answer)
{
    static const char *const answers[][2] = {
        {"HTTP/1.1 403 x\r\nContent-Length: 2\r\n\r\nno",
         "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n"
         "Via: 1.1 domus\r\n\r\nno"},
        {"HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n"
         "Via: 1.1 domus\r\n\r\n0\r\n\r\n"},
    };

    for (int i = 0; i < 5; i++) {
        domt_proxied_begin(&domt_proxied_edge);
        if (i < 4) {
            domt_relay_request(WISH("websocket"), WISHED("websocket"));
            /* the client sends more bytes before the answer in rounds 0 and 1, and after it in
             * rounds 2 and 3 */
            if (i < 2)
                domt_pipes_peer_send(domt_edge.kit, domt_edge.client, NEXT);
            domt_pipes_peer_send(domt_edge.kit, domt_edge.server, answers[i % 2][0]);
            if (i >= 2)
                domt_pipes_peer_send(domt_edge.kit, domt_edge.client, NEXT);
            expect_answer_and_end(answers[i % 2][1]);
            /* The connection to the server is kept, because it has carried an ordinary answer. */
            domus_peer_close(domt_edge.client);
            domt_edge.client = domt_pipes_connect_peer(domt_edge.kit);
            advance_kit(200 * MS);
            domt_relay_request(GET, GOT);
        } else {
            domt_relay_request(WISH("websocket") NEXT, WISHED("websocket"));
            advance_kit(110 * MS); /* so much time passes that the server's answer comes too late */
            domt_expect_answer_status("HTTP/1.1 504 Gateway Timeout\r\n");
            domt_net_check_ok(domt_edge.kit, domus_peer_expect_end(domt_edge.client, SECOND));
        }
        domt_proxied_end();
    }
}

/* Send a request for an upgrade that the proxy does not pass on, and check that the server gets the
 * request without it. */
static void check_upgrade_is_not_passed_on(const char *sent, const char *got)
{
    domt_relay_request(sent, got);
    domt_relay_empty_answer();
}

DOMT_TEST(only_named_upgrade_protocols_pass)
{
    static const char *const own[] = {"chat", "h2c", "H2C", NULL};
    static const char *const none[] = {NULL};

    domt_proxied_begin(&domt_proxied_edge);
    check_upgrade_is_not_passed_on(
        "GET /a HTTP/1.1\r\nHost: h\r\nConnection: upgrade, http2-settings\r\n"
        "Upgrade: h2c\r\nHTTP2-Settings: a\r\n\r\n",
        GOT);
    domt_edge.proxy.upgrades = own;
    check_upgrade_is_not_passed_on(
        "GET /a HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: h2c\r\n"
        "\r\n",
        GOT);
    check_upgrade_is_not_passed_on(
        "POST /a HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: chat\r\n"
        "Content-Length: 1\r\n\r\na",
        "POST /a HTTP/1.1\r\nContent-Length: 1\r\nHost: h\r\n" ADDED "a");
    domt_edge.proxy.upgrades = none;
    domt_pipes_peer_send(domt_edge.kit, domt_edge.client, WISH("websocket"));
    domt_expect_answer_status("HTTP/1.1 501 Not Implemented\r\n");
    domt_edge.proxy.upgrades = own;
    domt_relay_request(WISH("h2c, chat"), WISHED("chat"));
    domt_relay_answer("HTTP/1.1 101 x\r\nUpgrade: Chat\r\n\r\nhi",
                      "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n"
                      "Upgrade: Chat\r\nVia: 1.1 domus\r\n\r\nhi");
    domt_proxied_end();
}

DOMT_TEST(a_switch_to_something_else_is_refused)
{
    static const char *const wrong[] = {
        "HTTP/1.1 101 x\r\nUpgrade: h2c\r\n\r\n", "HTTP/1.1 101 x\r\n\r\n",
        "HTTP/1.1 101 x\r\nUpgrade: websocket, h2c\r\n\r\n",
        "HTTP/1.0 101 x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        domt_proxied_begin(&domt_proxied_edge);
        domt_relay_request(WISH("websocket"), WISHED("websocket"));
        domt_pipes_peer_send(domt_edge.kit, domt_edge.server, wrong[i]);
        /* The bytes of this answer are no HTTP, so the proxy tries once more on another connection.
         */
        if (i == 3) {
            domt_net_check_ok(domt_edge.kit,
                              domus_peer_accept(domt_edge.listener, SECOND, &domt_edge.server));
            domt_pipes_peer_expect(domt_edge.kit, domt_edge.server, WISHED("websocket"));
            domt_pipes_peer_send(domt_edge.kit, domt_edge.server, wrong[i]);
        }
        domt_expect_answer_status("HTTP/1.1 502 Bad Gateway\r\n");
        domt_net_check_ok(domt_edge.kit, domus_peer_expect_end(domt_edge.client, SECOND));
        domt_proxied_end();
    }
}

DOMT_TEST(proxy_on_a_row_that_is_not_alone_passes_no_upgrade)
{
    domt_proxied_begin(&domt_proxied_plain_edge);
    domt_pipes_peer_send(domt_edge.kit, domt_edge.client, WISH("websocket"));
    domt_expect_answer_status("HTTP/1.1 501 Not Implemented\r\n");
    domt_proxied_end();
}

/* The client is gone when the server changes to the other protocol. The bytes of that protocol have
 * no end, so the proxy cannot keep the connection to the server. */
DOMT_TEST(a_switch_for_a_client_that_is_gone_ends_the_connection)
{
    for (uint64_t wait_ns = 0; wait_ns <= 150 * MS; wait_ns += 10 * MS) {
        domt_proxied_begin(&domt_proxied_edge);
        domt_edge.proxy.timeout_ns = 60 * SECOND;
        domt_relay_request(WISH("websocket"), WISHED("websocket"));
        domus_peer_reset(domt_edge.client);
        advance_kit(wait_ns);
        (void)domus_peer_send(domt_edge.server, SWITCH "soon", strlen(SWITCH "soon"));
        ck_assert_msg(domus_peer_expect_reset(domt_edge.server, SECOND) == 0, "after %llu ms",
                      (unsigned long long)(wait_ns / MS));
        domt_edge.client = domt_pipes_connect_peer(domt_edge.kit);
        domt_proxied_end();
    }
}

/* If tunnels have a pool of their own, they leave all connections of the other pool to requests. */
DOMT_TEST(tunnels_take_no_connection_from_other_requests)
{
    const domus_pool_options options = {.behaviour = &domus_http_streaming_connection,
                                        .connections_max = 1,
                                        .queue_max = 1,
                                        .on_demand = true};
    domus_peer *servers[2];

    domt_proxied_begin(&domt_proxied_edge);
    ck_assert_int_eq(domus_outside_pool_open(domus_testkit_system(domt_edge.kit), "10.0.0.9:80",
                                             &options, &domt_edge.proxy.tunnels),
                     0);
    domt_relay_request(WISH("websocket"), WISHED("websocket"));
    domt_relay_answer(SWITCH, SWITCHED);
    servers[0] = domt_edge.server;
    domt_edge.client = domt_pipes_connect_peer(domt_edge.kit);
    domt_pipes_peer_send(domt_edge.kit, domt_edge.client, WISH("websocket"));
    /* the request fails after its time-out, because the only connection for tunnels is in use */
    advance_kit(101 * MS);
    domt_expect_answer_status("HTTP/1.1 504 Gateway Timeout\r\n");
    domt_edge.client = domt_pipes_connect_peer(domt_edge.kit);
    domt_edge.server = NULL;
    domt_relay_request(GET, GOT);
    servers[1] = domt_edge.server;
    domt_relay_empty_answer();
    ck_assert_ptr_ne(servers[0], servers[1]);
    domt_proxied_end();
}

DOMT_TEST(each_side_may_finish_before_the_other)
{
    begin_tunnel_through_proxy();
    domt_relay_request("a", "a");
    domus_peer_finish(domt_edge.client);
    domt_net_check_ok(domt_edge.kit, domus_peer_expect_end(domt_edge.server, SECOND));
    advance_kit(SECOND);
    domt_relay_answer("b", "b");
    domus_peer_finish(domt_edge.server);
    domt_net_check_ok(domt_edge.kit, domus_peer_expect_end(domt_edge.client, SECOND));
    ck_assert_int_eq(domus_peer_error(domt_edge.client), 0);
    domt_proxied_end();

    begin_tunnel_through_proxy();
    domt_relay_answer("b", "b");
    domus_peer_finish(domt_edge.server);
    domt_net_check_ok(domt_edge.kit, domus_peer_expect_end(domt_edge.client, SECOND));
    advance_kit(3 * SECOND);
    domt_relay_request("a", "a");
    domus_peer_finish(domt_edge.client);
    domt_net_check_ok(domt_edge.kit, domus_peer_expect_end(domt_edge.server, SECOND));
    ck_assert_int_eq(domus_peer_error(domt_edge.server), 0);
    domt_proxied_end();
}

DOMT_TEST(a_reset_of_one_side_resets_the_other)
{
    begin_tunnel_through_proxy();
    domus_peer_reset(domt_edge.client);
    domt_net_check_ok(domt_edge.kit, domus_peer_expect_reset(domt_edge.server, 2 * SECOND));
    domt_edge.client = domt_pipes_connect_peer(domt_edge.kit);
    domt_proxied_end();

    begin_tunnel_through_proxy();
    domus_peer_reset(domt_edge.server);
    domt_net_check_ok(domt_edge.kit, domus_peer_expect_reset(domt_edge.client, SECOND));
    domt_proxied_end();
}

/* A silent tunnel is ended only by the idle time-out, and by no time-out for a body or an
 * answer. */
DOMT_TEST(a_silent_tunnel_ends_when_it_was_idle_for_too_long)
{
    domus_config config;

    domt_pipes_make_config(&config);
    config.channel.idle_timeout_ns = 300 * SECOND;
    config.channel.answer_timeout_ns = 60 * SECOND;
    domt_edge.config = &config;
    begin_tunnel_through_proxy();
    advance_kit(200 * SECOND);
    domt_relay_answer("b", "b");
    advance_kit(200 * SECOND);
    domt_relay_request("a", "a");
    advance_kit(299 * SECOND);
    ck_assert_int_eq(domus_peer_error(domt_edge.client), 0);
    domt_net_check_ok(domt_edge.kit, domus_peer_expect_reset(domt_edge.client, 2 * SECOND));
    domt_net_check_ok(domt_edge.kit, domus_peer_expect_reset(domt_edge.server, 2 * SECOND));
    domt_proxied_end();
    domt_edge.config = NULL;
}

#define MUCH 900000u

static const char much[MUCH];

/* If the server reads nothing, the client cannot send more after a bound, but bytes from the server
 * still reach the client. */
DOMT_TEST(a_side_that_does_not_read_slows_its_sender_alone)
{
    begin_tunnel_through_proxy();
    for (int i = 0; i < 2; i++) {
        domus_peer *deaf = i == 0 ? domt_edge.server : domt_edge.client;
        domus_peer *other = i == 0 ? domt_edge.client : domt_edge.server;
        domus_peer_pause(deaf);
        uint64_t before = domus_peer_count(other).sent;
        ck_assert_int_eq(domus_peer_send(other, much, MUCH), 0);
        advance_kit(5 * SECOND);
        ck_assert_uint_lt(domus_peer_count(other).sent - before, 700000);
        ck_assert_int_eq(domus_peer_send(deaf, much, 100000), 0);
        domt_net_check_ok(domt_edge.kit, domus_peer_expect(other, much, 100000, SECOND));
        domus_peer_resume(deaf);
        domt_net_check_ok(domt_edge.kit, domus_peer_expect(deaf, much, MUCH, 10 * SECOND));
    }
    domt_proxied_end();
}

/* Check that exactly `text` is what a peer has received. */
static void expect_peer_got_text(const domus_peer *peer, const char *text)
{
    size_t size;
    const char *got = domus_peer_got(peer, &size);

    ck_assert(size == strlen(text) && memcmp(got, text, size) == 0);
}

/* A drain lets a tunnel go on until one side ends it, or until the time for the drain is over. */
DOMT_TEST(a_drain_waits_for_tunnels)
{
    begin_tunnel_through_proxy();
    domt_pipes_peer_send(domt_edge.kit, domt_edge.server, "b");
    domt_pipes_peer_send(domt_edge.kit, domt_edge.client, "a");
    domus_peer_finish(domt_edge.server);
    domus_peer_finish(domt_edge.client);
    ck_assert_int_eq(domus_testkit_stop(domt_edge.kit), 0);
    expect_peer_got_text(domt_edge.client, "b");
    expect_peer_got_text(domt_edge.server, "a");
    ck_assert(domus_peer_has_end(domt_edge.client) && domus_peer_has_end(domt_edge.server));
    ck_assert_int_eq(domus_peer_error(domt_edge.client), 0);
    domt_proxied_end();

    begin_tunnel_through_proxy();
    domt_pipes_peer_send(domt_edge.kit, domt_edge.client, "a");
    uint64_t before_ns = domus_testkit_now_ns(domt_edge.kit);
    ck_assert_int_gt(domus_testkit_stop(domt_edge.kit), 0);
    expect_peer_got_text(domt_edge.server, "a");
    ck_assert_uint_ge(domus_testkit_now_ns(domt_edge.kit) - before_ns, SECOND);
    domt_proxied_end();
}

DOMT_TEST(upgrade_is_sent_again_if_the_kept_connection_is_gone)
{
    domt_proxied_begin(&domt_proxied_edge);
    check_upgrade_is_not_passed_on(GET, GOT);
    domt_relay_request(WISH("websocket"), WISHED("websocket"));
    /* the server closes the kept connection before a request has come on it */
    domus_peer_finish(domt_edge.server);
    domt_edge.server = NULL;
    domt_relay_request("", WISHED("websocket"));
    domus_peer_finish(domt_edge.server);
    domt_expect_answer_status("HTTP/1.1 502 Bad Gateway\r\n");
    domt_proxied_end();
}

/* Let time pass on the clock of the kit while `count` more allocations succeed and the next one
 * fails; -1: none fails. */
static void advance_kit_while_allocation_fails(int64_t count)
{
    domi_memory_fail_allocation_after(count, 0);
    (void)domus_testkit_advance(domt_edge.kit, 10 * MS);
    domi_memory_fail_allocation_after(-1, 0);
}

/* Make a tunnel while allocation number `count` fails: before the server's answer, or with `way` 1
 * after it. Returns whether a tunnel was made. */
static bool is_tunnel_made_without_allocation(int64_t count, int way)
{
    size_t got = 0, early = 0;

    domt_proxied_begin(&domt_proxied_edge);
    domt_pipes_peer_send(domt_edge.kit, domt_edge.client, WISH("websocket") "early");
    advance_kit_while_allocation_fails(way == 0 ? count : -1);
    bool is_asked = domus_peer_accept(domt_edge.listener, 10 * MS, &domt_edge.server) == 0;
    if (is_asked && domus_peer_send(domt_edge.server, SWITCH "x", sizeof SWITCH) == 0) {
        advance_kit_while_allocation_fails(way == 1 ? count : -1);
        (void)domus_peer_got(domt_edge.server, &early);
    }
    (void)domus_peer_got(domt_edge.client, &got);
    bool is_there = got == sizeof SWITCHED && early == sizeof WISHED("websocket") - 1 + 5;
    if (is_asked)
        domus_peer_reset(domt_edge.server);
    domt_proxied_end();
    return is_there;
}

DOMT_TEST(tunnels_survive_failed_allocations)
{
    for (int way = 0; way < 2; way++) {
        /* number of rounds without a failed allocation that followed each other */
        uint32_t clean = 0;
        for (int64_t count = 0; clean < 4; count++) {
            clean = is_tunnel_made_without_allocation(count, way) ? clean + 1 : 0;
            ck_assert_int_lt(count, 300);
        }
    }
}

DOMT_SUITE(60)
