/* The echo service over loopback: every byte comes back, in order, whatever the clients do. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static domt_service service;
static domt_crowd crowd;

/* Some clients send in small pieces, some in large ones, so that reads and writes are cut
 * anywhere. */
static void make_clients_with_streams(uint32_t count, uint64_t bytes)
{
    domt_crowd_init(&crowd, service.port, count);
    for (uint32_t i = 0; i < count; i++) {
        crowd.clients[i].bytes = bytes / 2 + (i * 7919) % (bytes / 2);
        crowd.clients[i].piece_max = i % 3 == 0 ? 7 : (i % 3 == 1 ? 1000 : 16384);
        if (i % 3 == 0)
            crowd.clients[i].bytes /= 50;
    }
    domt_crowd_connect_clients(&crowd, 0, count);
}

static uint64_t count_bytes_of_crowd(void)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < crowd.count; i++)
        sum += crowd.clients[i].bytes;
    return sum;
}

DOMT_TEST(every_byte_of_many_clients_comes_back_in_order)
{
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS());
    make_clients_with_streams(60, 200000);
    ck_assert(domt_crowd_run_until(&crowd, domt_crowd_all_are_closed, 30000));
    domt_crowd_check_echoes(&crowd);
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_profile_count(&service, "received bytes"),
                      count_bytes_of_crowd());
    ck_assert_uint_eq(domt_service_profile_count(&service, "sent bytes"), count_bytes_of_crowd());
    ck_assert_uint_eq(domt_service_profile_count(&service, "accepted"), crowd.count);
    ck_assert_uint_eq(domt_service_profile_count(&service, "channels closed"), crowd.count);
    ck_assert_uint_eq(domt_service_profile_count(&service, "channels reset"), 0);
    domt_crowd_fini(&crowd);
}

/* The service has the smallest number of buffers: the share of a channel is one, and all channels
 * wait for buffers now and then. */
DOMT_TEST(few_buffers_and_small_queues_lose_nothing)
{
    domt_service_start(
        &service,
        DOMT_ECHO_ARGUMENTS("--set", "io.buffers.count=16", "--set", "io.buffers.size=256B",
                            "--set", "io.ringEntries=16", "--set", "io.completionEntries=32",
                            "--set", "io.completionsPerPoll=3", "--set", "channel.sendHigh=1000B",
                            "--set", "channel.sendLow=100B", ));
    make_clients_with_streams(50, 30000);
    ck_assert(domt_crowd_run_until(&crowd, domt_crowd_all_are_closed, 30000));
    domt_crowd_check_echoes(&crowd);
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_profile_count(&service, "sent bytes"), count_bytes_of_crowd());
    domt_crowd_fini(&crowd);
}

DOMT_TEST(a_half_closed_connection_is_answered_to_the_end)
{
    char bytes[100000];
    size_t have = 0;
    ssize_t size;

    domt_service_start(&service, DOMT_ECHO_ARGUMENTS());
    int silent = domt_connect_to_port(service.port);
    ck_assert_int_eq(shutdown(silent, SHUT_WR), 0); /* the client sends no byte before FIN */
    ck_assert_int_eq(recv(silent, bytes, 1, 0), 0);
    for (int i = 0; i < 20; i++) {
        int fd = domt_connect_to_port(service.port);
        for (size_t at = 0; at < sizeof bytes; at++)
            bytes[at] = (char)(at * 7);
        ck_assert_int_eq(send(fd, bytes, sizeof bytes, 0), (ssize_t)sizeof bytes);
        ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
        for (have = 0; (size = recv(fd, bytes, sizeof bytes, 0)) > 0; have += (size_t)size) {
            for (ssize_t at = 0; at < size; at++)
                ck_assert(bytes[at] == (char)((have + (size_t)at) * 7));
        }
        ck_assert_int_eq(size, 0);
        ck_assert_uint_eq(have, sizeof bytes);
        close(fd);
    }
    close(silent);
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_profile_count(&service, "channels reset"), 0);
}

/* Every other client resets its connection somewhere in its stream; the remaining clients notice
 * nothing. */
DOMT_TEST(resets_in_the_middle_hurt_nobody_else)
{
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS());
    for (int round = 0; round < 2; round++) {
        make_clients_with_streams(100, 200000);
        for (uint32_t i = 0; i < crowd.count; i += 2) {
            crowd.clients[i].reset_at = 1 + (i * 2791) % crowd.clients[i].bytes;
            /* deaf clients reset while many bytes wait for them */
            crowd.clients[i].deaf = i % 4 == 0;
        }
        ck_assert(domt_crowd_run_until(&crowd, domt_crowd_all_are_closed, 30000));
        domt_crowd_check_echoes(&crowd);
        domt_crowd_fini(&crowd);
    }
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_profile_count(&service, "channels closed"),
                      domt_service_profile_count(&service, "channels opened"));
}

DOMT_TEST(five_thousand_connections_are_served_at_once)
{
    uint32_t count = domt_tests_are_long() ? DOMT_SCALE(5000, 800) : 800;

    if (!domt_raise_descriptor_limit(count + 100)) {
        fprintf(stderr, "too few descriptors for %u connections: 500 instead\n", count);
        count = 500;
    }
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS());
    domt_crowd_init(&crowd, service.port, count);
    domt_crowd_connect_clients(&crowd, 0, count);
    for (int round = 1; round <= 2; round++) {
        for (uint32_t i = 0; i < count; i++) {
            crowd.clients[i].bytes = (uint64_t)round * 100;
            crowd.clients[i].stays = round < 2;
        }
        ck_assert(domt_crowd_run_until(&crowd, domt_crowd_has_all_back, 30000));
    }
    ck_assert(domt_crowd_run_until(&crowd, domt_crowd_all_are_closed, 30000));
    domt_crowd_check_echoes(&crowd);
    domt_crowd_fini(&crowd);
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_profile_count(&service, "accepted"), count);
    ck_assert_uint_eq(domt_service_profile_count(&service, "received bytes"),
                      200 * (uint64_t)count);
}

DOMT_TEST(connections_that_come_and_go_leave_nothing_behind)
{
    enum { AT_ONCE = 50 };
    uint32_t rounds = 20;
    uint64_t rss_bytes = 0;

    /* With few buffers the service has used all of them by half-time, so memory must not grow in
     * the second half. */
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS("--set", "io.buffers.count=64", ));
    for (uint32_t round = 0; round < rounds; round++) {
        domt_crowd_init(&crowd, service.port, AT_ONCE);
        for (uint32_t i = 0; i < AT_ONCE; i++)
            crowd.clients[i].bytes = 10 + i * 20;
        domt_crowd_connect_clients(&crowd, 0, AT_ONCE);
        ck_assert(domt_crowd_run_until(&crowd, domt_crowd_all_are_closed, 30000));
        domt_crowd_check_echoes(&crowd);
        domt_crowd_fini(&crowd);
        if (round == rounds / 2)
            rss_bytes = domt_service_rss_bytes(&service);
    }
    if (!DOMT_SANITIZED) /* sanitizers keep freed memory to find later uses of it */
        ck_assert_uint_le(domt_service_rss_bytes(&service), rss_bytes + (256 << 10));
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_profile_count(&service, "channels closed"), AT_ONCE * rounds);
}

DOMT_SUITE(60)
