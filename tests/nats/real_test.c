/* A client and Debian's nats-server: publications arrive, requests are answered, and the client
 * goes on after its server was killed. */
#include "tests/nats/user.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)

static domt_nats_server server;
static domt_nats_user user;

static void set_up(const char *config, const domus_nats_options *options)
{
    domus_nats_options filled = options != NULL ? *options : (domus_nats_options){0};

    domt_nats_server_start(&server, config, 0);
    filled.servers = server.url;
    domt_nats_user_start(&user, &filled);
}

static void tear_down(void)
{
    domt_nats_user_stop(&user);
    domt_nats_server_stop(&server);
}

DOMT_TEST(messages_of_each_size_come_back)
{
    static const size_t sizes[] = {0, 1, 185, 512, 513, 16384, 65536, 300000, 1048576};
    static char bytes[1048576 + 1];

    set_up(NULL, NULL);
    uint64_t number = domt_nats_user_subscribe(&user, "a.*", NULL, 9);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7 + i / 251);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        domt_nats_user_publish(&user, "a.b", bytes, sizes[i]);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const domus_nats_message *message = domt_nats_user_message(&user);
        ck_assert(domt_slice_has_text(domus_nats_subject(message), "a.b"));
        ck_assert_uint_eq(message->subscription, number);
        ck_assert_uint_eq(message->tag, 9);
        ck_assert(domus_slice_equals(domus_nats_payload(message), bytes, sizes[i]));
    }
    domus_nats_status status = domt_nats_user_read_status(&user);
    ck_assert(status.connected && status.has_headers);
    ck_assert_uint_eq(status.max_payload, 1048576);
    ck_assert_uint_eq(status.in_messages, 9);
    ck_assert_uint_eq(status.in_bytes, status.out_bytes);
    /* larger than the server allows: it would end the connection */
    domt_nats_user_publish(&user, "a.b", bytes, 1048577);
    domt_nats_user_ask_well(&user, &domus_nats_flush_type, NULL);
    status = domt_nats_user_read_status(&user);
    ck_assert_uint_eq(status.refused, 1);
    ck_assert_uint_eq(status.connects, 1);
    tear_down();
}

DOMT_TEST(order_is_kept_and_a_flush_is_behind)
{
    set_up(NULL, NULL);
    (void)domt_nats_user_subscribe(&user, "n", NULL, 0);
    for (uint32_t i = 0; i < 20000; i++)
        domt_nats_user_publish(&user, "n", &i, sizeof i);
    domt_nats_user_ask_well(&user, &domus_nats_flush_type, NULL);
    ck_assert_uint_eq(domt_nats_user_read_status(&user).out_messages, 20000);
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t got;
        domus_slice payload = domus_nats_payload(domt_nats_user_message(&user));
        ck_assert_uint_eq(payload.size, sizeof got);
        memcpy(&got, domus_slice_data(payload), sizeof got);
        ck_assert_uint_eq(got, i);
    }
    ck_assert_uint_eq(domt_nats_user_read_status(&user).lost, 0);
    tear_down();
}

DOMT_TEST(nobody_responds_at_once)
{
    domus_nats_message answer;

    set_up(NULL, NULL);
    domt_nats_user_await_connected(&user);
    ck_assert_int_eq(domt_nats_user_request(&user, "nobody", "x", 5 * SECOND, &answer),
                     -ECONNREFUSED);
    (void)domt_nats_user_subscribe(&user, "silent", NULL, 0);
    ck_assert_int_eq(domt_nats_user_request(&user, "silent", "x", 100 * MS, &answer), -ETIMEDOUT);
    ck_assert(domt_slice_has_text(domus_nats_payload(domt_nats_user_message(&user)), "x"));
    tear_down();
}

DOMT_TEST(no_echo_is_none)
{
    set_up(NULL, &(domus_nats_options){.no_echo = true});
    (void)domt_nats_user_subscribe(&user, "a", NULL, 0);
    domt_nats_user_publish(&user, "a", "own", 3);
    domt_nats_user_ask_well(&user, &domus_nats_flush_type, NULL);
    ck_assert_uint_eq(domt_nats_user_read_status(&user).in_messages, 0);
    tear_down();
}

/* The server is killed, and started again at the same address: messages published meanwhile
 * arrive. */
DOMT_TEST(killed_server_comes_back)
{
    static const domus_nats_options options = {.backoff_min_ns = 10 * MS,
                                               .backoff_max_ns = 50 * MS};
    set_up(NULL, &options);
    (void)domt_nats_user_subscribe(&user, "a", NULL, 0);
    domt_nats_user_ask_well(&user, &domus_nats_flush_type, NULL);
    uint16_t port = server.port;
    domt_nats_server_stop(&server);
    while (domt_nats_user_read_status(&user).connected)
        ;
    for (int i = 0; i < 100; i++)
        domt_nats_user_publish(&user, "a", "meanwhile", 9);
    domt_nats_server_start(&server, NULL, port);
    for (int i = 0; i < 100; i++)
        ck_assert(
            domt_slice_has_text(domus_nats_payload(domt_nats_user_message(&user)), "meanwhile"));
    domus_nats_status status = domt_nats_user_read_status(&user);
    ck_assert_uint_eq(status.reconnects, 1);
    ck_assert_uint_eq(status.refused + status.waiting, 0);
    tear_down();
}

/* The server is suspended: pings notice that, and the request that was under way fails. */
DOMT_TEST(stopped_server_is_left)
{
    static const domus_nats_options options = {.ping_interval_ns = 150 * MS,
                                               .connect_timeout_ns = 500 * MS,
                                               .backoff_min_ns = 10 * MS,
                                               .backoff_max_ns = 20 * MS};
    domus_nats_message answer;

    set_up(NULL, &options);
    (void)domt_nats_user_subscribe(&user, "a", NULL, 0);
    domt_nats_user_ask_well(&user, &domus_nats_flush_type, NULL);
    domt_nats_server_kill(&server, SIGSTOP);
    ck_assert_int_eq(domt_nats_user_request(&user, "a", "x", 10 * SECOND, &answer), -EPIPE);
    ck_assert_uint_ge(domt_nats_user_read_status(&user).stale, 1);
    domt_nats_server_kill(&server, SIGCONT);
    domt_nats_user_await_connected(&user);
    domt_nats_user_ask_well(&user, &domus_nats_flush_type, NULL);
    tear_down();
}

/* A server names the other servers of its cluster, and the client connects to one of them when the
 * first server is gone. */
DOMT_TEST(cluster_goes_on)
{
    static domt_nats_server other;
    char config[300];
    static const domus_nats_options options = {.backoff_min_ns = 10 * MS,
                                               .backoff_max_ns = 50 * MS};

    domt_nats_server_start(&other, "cluster { name: c, listen: \"127.0.0.1:-1\" }", 0);
    snprintf(config, sizeof config,
             "cluster { name: c, listen: \"127.0.0.1:-1\", routes: [\"nats://127.0.0.1:%u\"] }",
             domt_nats_server_cluster(&other));
    set_up(config, &options);
    (void)domt_nats_user_subscribe(&user, "a", NULL, 0);
    domt_nats_user_ask_well(&user, &domus_nats_flush_type, NULL);
    while (domt_nats_user_read_status(&user).servers < 2)
        ;
    domt_nats_server_kill(&server, SIGKILL);
    while (domt_nats_user_read_status(&user).reconnects == 0)
        ;
    domt_nats_user_publish(&user, "a", "there", 5);
    ck_assert(domt_slice_has_text(domus_nats_payload(domt_nats_user_message(&user)), "there"));
    ck_assert_str_eq(domt_nats_user_read_status(&user).server, other.url);
    domt_nats_server_stop(&other);
    tear_down();
}

/* A drain finishes everything: publications arrive, and received messages are delivered. */
DOMT_TEST(drain_loses_nothing)
{
    domt_nats_user other;

    set_up(NULL, NULL);
    other = user;
    other.client = domt_nats_user_open(&user, &(domus_nats_options){.servers = server.url});
    (void)domt_nats_user_subscribe(&other, "a", NULL, 1);
    domt_nats_user_ask_well(&other, &domus_nats_flush_type, NULL);
    (void)domt_nats_user_subscribe(&user, "b", NULL, 2);
    domt_nats_user_ask_well(&user, &domus_nats_flush_type, NULL);
    for (int i = 0; i < 1000; i++) {
        domt_nats_user_publish(&other, "b", "to the one that drains", 22);
        domt_nats_user_publish(&user, "a", "of the one that drains", 22);
    }
    domt_nats_user_ask_well(&other, &domus_nats_flush_type, NULL);
    domt_nats_user_ask_well(&user, &domus_nats_drain_type, NULL);
    uint32_t counts[3] = {0};
    for (int i = 0; i < 2000; i++)
        counts[domt_nats_user_message(&user)->tag]++;
    ck_assert_uint_eq(counts[1], 1000);
    ck_assert_uint_eq(counts[2], 1000);
    ck_assert_int_eq(domus_outsider_ask(user.outsider, user.client, &domus_nats_flush_type, NULL,
                                        5 * SECOND, NULL),
                     -ESTALE);
    tear_down();
}

DOMT_SUITE(60)
