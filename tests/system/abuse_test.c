/* Hostile clients beside a crowd of normal clients, which must not notice. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

static domt_service service;
static domt_crowd crowd;

static uint64_t count_sent_by_deaf(void)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < crowd.count; i++)
        sum += crowd.clients[i].deaf ? crowd.clients[i].sent : 0;
    return sum;
}

static uint64_t flood_until_ns;
static uint64_t stalled_at;
static uint64_t stalled_since_ns;

/* The flood is over when the flooding clients have sent nothing for 400 ms, or at flood_until_ns:
 * with small pieces the first condition would take too long. */
static bool is_flood_over(const domt_crowd *unused)
{
    uint64_t sent = count_sent_by_deaf();

    if (domt_monotonic_ns() > flood_until_ns)
        return true;
    if (sent != stalled_at) {
        stalled_at = sent;
        stalled_since_ns = domt_monotonic_ns();
    }
    return domt_monotonic_ns() - stalled_since_ns > UINT64_C(400000000);
}

/* Returns the longest round trip of each normal client, in ms. */
static double longest_round_trip_ms(int fd, int count)
{
    uint64_t worst_ns = 0;

    for (int i = 0; i < count; i++) {
        uint64_t start_ns = domt_monotonic_ns();
        ck_assert(domt_send_and_get_echo(fd, "are you there?"));
        uint64_t took_ns = domt_monotonic_ns() - start_ns;
        if (took_ns > worst_ns)
            worst_ns = took_ns;
    }
    return (double)worst_ns / 1e6;
}

/* Many clients send all they can and never read: more clients than the buffers suffice for, if each
 * held its share. Their sends stop, memory stays bounded, and normal clients are served; when the
 * flooding clients read at last, they get every byte. */
static void check_crowd_that_never_reads(uint32_t count, uint32_t piece_max, uint64_t flood_ms,
                                         uint64_t rss_max)
{
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS());
    int good = domt_connect_to_port(service.port);
    ck_assert(domt_send_and_get_echo(good, "hello"));
    uint64_t rss_before = domt_service_rss_bytes(&service);
    domt_crowd_init(&crowd, service.port, count);
    crowd.socket_bytes = 131072; /* with small socket buffers, bytes wait in the service */
    for (uint32_t i = 0; i < count; i++) {
        crowd.clients[i].deaf = true;
        crowd.clients[i].bytes = 64 * MIB;
        crowd.clients[i].piece_max = piece_max;
    }
    domt_crowd_connect_clients(&crowd, 0, count);
    stalled_at = 0;
    stalled_since_ns = domt_monotonic_ns();
    flood_until_ns = stalled_since_ns + flood_ms * 1000000;
    ck_assert(domt_crowd_run_until(&crowd, is_flood_over, 30000));
    uint64_t grown = domt_service_rss_bytes(&service) - rss_before;
    if (!DOMT_SANITIZED)
        ck_assert_msg(grown < rss_max, "%llu KiB more", (unsigned long long)grown / 1024);
    double worst_ms = longest_round_trip_ms(good, 200);
    ck_assert_msg(worst_ms < 500, "a round trip took %.0f ms", worst_ms);
    int late = domt_connect_to_port(service.port);
    ck_assert(domt_send_and_get_echo(late, "a new one is served too"));
    for (uint32_t i = 0; i < count; i++) {
        crowd.clients[i].bytes = crowd.clients[i].sent;
        crowd.clients[i].deaf = false;
    }
    ck_assert(domt_crowd_run_until(&crowd, domt_crowd_all_are_closed, 30000));
    domt_crowd_check_echoes(&crowd);
    domt_crowd_fini(&crowd);
    close(good);
    close(late);
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_profile_count(&service, "channels reset"), 0);
}

/* In the worst case each client has channel.sendHigh bytes and its share of the buffers waiting. */
DOMT_TEST(readers_that_never_read_stop_being_read_and_hurt_nobody)
{
    check_crowd_that_never_reads(DOMT_SCALE(100, 40), 0, 60000, DOMT_SCALE(100, 40) * MIB * 3 / 4);
}

/* Small pieces take more memory in the service than their bytes, because each has its own
 * bookkeeping. */
DOMT_TEST(floods_of_small_messages_stop_being_read_and_hurt_nobody)
{
    check_crowd_that_never_reads(20, 3, 1000, 20 * MIB * 3 / 4);
}

DOMT_TEST(slow_clients_are_served_byte_by_byte)
{
    enum { COUNT = 50, BYTES = 40 };
    static int fds[COUNT];

    domt_service_start(&service, DOMT_ECHO_ARGUMENTS());
    for (int i = 0; i < COUNT; i++)
        fds[i] = domt_connect_to_port(service.port);
    for (int at = 0; at < BYTES; at++) {
        for (int i = 0; i < COUNT; i++) {
            char byte = (char)(at * 3 + i);
            char back = 0;
            ck_assert_int_eq(send(fds[i], &byte, 1, 0), 1);
            ck_assert_int_eq(recv(fds[i], &back, 1, 0), 1);
            ck_assert_int_eq(back, byte);
        }
        domt_sleep_ms(1);
    }
    for (int i = 0; i < COUNT; i++)
        close(fds[i]);
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_profile_count(&service, "received bytes"), COUNT * BYTES);
}

DOMT_TEST(storms_of_connects_and_closes_leave_nothing_behind)
{
    uint32_t count = DOMT_SCALE(3000, 500);

    domt_service_start(&service, DOMT_ECHO_ARGUMENTS());
    int good = domt_connect_to_port(service.port);
    for (uint32_t i = 0; i < count; i++) {
        domt_client client = {.fd = domt_connect_to_port(service.port)};
        if (i % 3 == 2)
            ck_assert_int_eq(send(client.fd, "x", 1, MSG_NOSIGNAL), 1);
        domt_client_close(&client, i % 2 == 1);
        if (i % 100 == 0)
            ck_assert(domt_send_and_get_echo(good, "still here"));
    }
    ck_assert(domt_send_and_get_echo(good, "still here"));
    close(good);
    domt_service_stop(&service);
    ck_assert_uint_ge(domt_service_profile_count(&service, "accepted"), count / 2);
    ck_assert_uint_eq(domt_service_profile_count(&service, "channels closed"),
                      domt_service_profile_count(&service, "accepted"));
}

DOMT_TEST(who_says_nothing_is_closed_after_the_idle_time_out)
{
    enum { COUNT = 20 };
    int fds[COUNT];
    char byte;

    domt_service_start(&service, DOMT_ECHO_ARGUMENTS("--set", "channel.idleTimeout=500ms", ));
    int busy = domt_connect_to_port(service.port);
    for (int i = 0; i < COUNT; i++)
        fds[i] = domt_connect_to_port(service.port);
    for (int i = 0; i < 20; i++) {
        ck_assert(domt_send_and_get_echo(busy, "not idle"));
        domt_sleep_ms(30);
    }
    for (int i = 0; i < COUNT; i++) {
        ck_assert(domt_send_and_get_echo(busy, "not idle"));
        ck_assert_int_eq(recv(fds[i], &byte, 1, 0), 0);
        close(fds[i]);
    }
    ck_assert(domt_send_and_get_echo(busy, "not idle"));
    close(busy);
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_profile_count(&service, "channels reset"), COUNT);
}

DOMT_SUITE(60)
