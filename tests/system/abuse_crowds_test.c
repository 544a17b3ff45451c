/* Crowds of strangers, and strangers who use up what a service has: descriptors, receive buffers,
 * or places for connections. */
#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/system/attack.h"
#include "tests/system/talks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Crowds of strangers: thousands of idle and of dripping connections, storms of connections that
 * are reset at once, and resets at every byte of a dialogue, each beside a good client. Memory
 * stays below a limit, which is printed; the service answers afterwards, and nothing is left. The
 * long form (DOMT_LONG) has 10,000 connections and 50,000 connects. */

#define KIB UINT64_C(1024)

/* Bytes of the receive buffers of two threads: a service uses that memory when it first writes to
 * the buffers. */
#define BUFFERS (2 * 1024 * 4 * KIB)

static domt_service service;

/* State of a service before an attack. */
typedef struct begin {
    int good; /* the connection of the good client */
    uint32_t descriptors;
    uint64_t rss;
} begin;

static begin record_state_and_begin_good_client(void)
{
    begin before = {.good = domt_connect_to_port(service.port)};

    ck_assert(domt_send_and_get_echo(before.good, "hello"));
    before.descriptors = domt_service_count_descriptors(&service);
    before.rss = domt_service_rss_bytes(&service);
    return before;
}

static void check_memory_below(const char *what, const begin *before, uint64_t ceiling)
{
    uint64_t now = domt_service_rss_bytes(&service);
    uint64_t grown = now > before->rss ? now - before->rss : 0;

    printf("%s: %llu KiB more memory, ceiling %llu KiB\n", what, (unsigned long long)(grown / KIB),
           (unsigned long long)(ceiling / KIB));
    if (!DOMT_SANITIZED)
        ck_assert_msg(grown < ceiling, "%s: %llu KiB more", what, (unsigned long long)grown / KIB);
}

static void check_good_client_is_served(const char *what, const begin *before, uint32_t count)
{
    domt_good good = domt_measure_good_client(before->good, NULL, NULL, count, 1000);

    printf("%s: the good client: p99 %.2f ms, worst %.2f ms\n", what, good.p99_ms, good.worst_ms);
    ck_assert_uint_eq(good.failed, 0);
}

static void check_nothing_left_and_stop(const begin *before)
{
    int late = domt_connect_to_port(service.port);

    ck_assert(domt_send_and_get_echo(late, "a new one is served"));
    close(late);
    ck_assert(domt_send_and_get_echo(before->good, "still here"));
    domt_service_wait_until_counts_fall_to(&service, 1, before->descriptors, 20000);
    close(before->good);
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels opened"),
                      domt_service_count_in_profile(&service, "channels closed"));
}

/* --- connections that stay -------------------------------------------------------------------- */

/* The kernel has accepted the connections, and the service takes them soon. */
static void wait_until_service_counts_connections(uint64_t count)
{
    uint64_t until_ns = domt_monotonic_ns() + UINT64_C(10000000000);

    while (domt_service_count_connections(&service) < count && domt_monotonic_ns() < until_ns)
        domt_sleep_ms(5);
    ck_assert_uint_eq(domt_service_count_connections(&service), count);
}

static void check_attack_of_staying_connections(const char *what, domt_attack_kind kind,
                                                uint64_t bytes_each)
{
    uint32_t count = domt_tests_are_long() ? 10000 : DOMT_SCALE(1000, 200);
    domt_attack attack = {.kind = kind, .count = count, .rate = count};

    ck_assert(domt_raise_descriptor_limit(count + 100));
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS("--set", "system.threads=2", "--set",
                                                     "channel.maxConnections=10100", ));
    begin before = record_state_and_begin_good_client();
    attack.port = service.port;
    domt_attack_begin(&attack);
    ck_assert_uint_eq(atomic_load(&attack.made), count);
    check_good_client_is_served(what, &before, domt_tests_are_long() ? 5000 : 500);
    wait_until_service_counts_connections(count + 1);
    check_memory_below(what, &before, BUFFERS + count * bytes_each + 2048 * KIB);
    domt_attack_end(&attack, kind == DOMT_ATTACK_DRIP);
    check_nothing_left_and_stop(&before);
}

DOMT_TEST(thousands_that_say_nothing_hurt_nobody)
{
    check_attack_of_staying_connections("idle", DOMT_ATTACK_IDLE, 3 * KIB);
}

DOMT_TEST(thousands_that_drip_hurt_nobody)
{
    check_attack_of_staying_connections("drip", DOMT_ATTACK_DRIP, 3 * KIB);
}

/* The service's time-out for the first byte ends all idle and dripping connections, whatever else
 * happens. */
DOMT_TEST(thousands_that_say_nothing_are_closed_in_time)
{
    uint32_t count = domt_tests_are_long() ? 10000 : DOMT_SCALE(1000, 200);
    domt_attack attack = {.kind = DOMT_ATTACK_IDLE, .count = count, .rate = 1};

    ck_assert(domt_raise_descriptor_limit(count + 100));
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS("--set", "system.threads=2", "--set",
                                                     "channel.maxConnections=10100", "--set",
                                                     "channel.firstByteTimeout=1s", "--set",
                                                     "channel.linger=500ms", ));
    begin before = record_state_and_begin_good_client();
    attack.port = service.port;
    domt_attack_begin(&attack);
    check_good_client_is_served("idle, and closed", &before, 1000);
    domt_service_wait_until_counts_fall_to(&service, 1, before.descriptors, 20000);
    domt_attack_end(&attack, false);
    check_nothing_left_and_stop(&before);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels silent"), count);
}

/* --- connections that come and go ------------------------------------------------------------- */

static void check_storm_of_connections(const char *what, domt_attack_kind kind)
{
    uint32_t count = domt_tests_are_long() ? 50000 : DOMT_SCALE(5000, 500);
    domt_attack attack = {
        .kind = kind, .count = count, .rate = domt_tests_are_long() ? 10000 : 8000};

    ck_assert(domt_raise_descriptor_limit(2000));
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS("--set", "system.threads=2", ));
    begin before = record_state_and_begin_good_client();
    attack.port = service.port;
    domt_attack_begin(&attack);
    while (!domt_attack_is_done(&attack))
        check_good_client_is_served(what, &before, domt_tests_are_long() ? 1000 : 200);
    domt_attack_end(&attack, false);
    ck_assert_uint_eq(atomic_load(&attack.refused), 0);
    check_memory_below(what, &before, BUFFERS + 4096 * KIB);
    check_nothing_left_and_stop(&before);
}

DOMT_TEST(storms_of_connects_that_drop_leave_nothing)
{
    check_storm_of_connections("drop", DOMT_ATTACK_DROP);
}

DOMT_TEST(storms_of_resets_within_a_message_leave_nothing)
{
    check_storm_of_connections("half", DOMT_ATTACK_HALF);
}

/* A dialogue of single bytes, each of which the service echoes; the client ends it after `bytes`
 * bytes in both directions together, by a reset or by FIN. */
static void end_dialogue_after_bytes(uint32_t bytes, bool reset)
{
    domt_client client = {.fd = domt_connect_to_port(service.port)};
    char byte = 'a';

    for (uint32_t i = 0; i < bytes; i++) {
        ssize_t size =
            i % 2 == 0 ? send(client.fd, &byte, 1, MSG_NOSIGNAL) : recv(client.fd, &byte, 1, 0);
        ck_assert_int_eq(size, 1);
    }
    domt_client_close(&client, reset);
}

/* The client sends a part of a message, and ends the connection at once. */
static void send_part_of_message_and_end(uint32_t bytes, bool reset)
{
    static const char text[256];
    domt_client client = {.fd = domt_connect_to_port(service.port)};

    ck_assert_int_eq(send(client.fd, text, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
    domt_client_close(&client, reset);
}

DOMT_TEST(ends_at_every_byte_of_a_dialogue_leave_nothing)
{
    uint32_t bytes = domt_tests_are_long() ? 256 : 64;
    uint32_t rounds = domt_tests_are_long() ? DOMT_SCALE(20, 5) : 1;

    domt_service_start(&service, DOMT_ECHO_ARGUMENTS("--set", "system.threads=2", ));
    begin before = record_state_and_begin_good_client();
    for (uint32_t i = 0; i < 2 * bytes * rounds; i++) {
        end_dialogue_after_bytes(i % bytes, i / bytes % 2 == 0);
        send_part_of_message_and_end(1 + i % bytes, i / bytes % 2 == 0);
        if (i % 16 == 0)
            ck_assert(domt_send_and_get_echo(before.good, "still here"));
    }
    check_memory_below("ends at every byte", &before, BUFFERS + 2048 * KIB);
    check_nothing_left_and_stop(&before);
}

/* --- abuse shortage --------------------------------------------------------------------------- */

/* Strangers use up the descriptors of the process, its receive buffers, or the connections that it
 * may have, of a service of bytes and of one of HTTP. A good client that was connected before is
 * served meanwhile. Memory stays below a limit, which is printed; the service answers afterwards,
 * and nothing is left. The long form (DOMT_LONG) has more strangers. */

static const domt_protocol echo = {
    .name = "echo",
    .arguments = DOMT_ECHO_ARGUMENTS("--set", "system.threads=2", ),
    .ask = "hello",
    .answer = "hello",
};
static const domt_protocol *const services[] = {&echo, &domt_web};

#define SERVICES (sizeof services / sizeof services[0])

static bool is_long_test_wanted(void)
{
    const char *text = getenv("DOMT_LONG");

    return text != NULL && text[0] != '\0';
}

static void expect_no_failure_of_good_client(const domt_protocol *with, const char *what, int good)
{
    domt_good seen = domt_measure_good_client(good, with->ask, with->answer,
                                              is_long_test_wanted() ? 3000 : 400, 1000);

    printf("%s, %s: the good client: p99 %.2f ms, worst %.2f ms\n", with->name, what, seen.p99_ms,
           seen.worst_ms);
    ck_assert_uint_eq(seen.failed, 0);
}

/* Start a service with more arguments, and let `attack` run beside a good client. Afterwards
 * nothing of the attack is left. */
static void check_attack_beside_good_client(const domt_protocol *with, const char *what,
                                            const char *const more[], domt_attack *attack,
                                            uint64_t ceiling)
{
    int good = domt_protocol_start_and_connect(&service, with, more);
    uint32_t descriptors = domt_service_count_descriptors(&service);
    uint64_t before = domt_service_rss_bytes(&service);

    attack->port = service.port;
    attack->says = with != &echo ? with->ask : NULL;
    domt_attack_begin(attack);
    expect_no_failure_of_good_client(with, what, good);
    uint64_t now = domt_service_rss_bytes(&service);
    uint64_t grown = now > before ? now - before : 0;
    printf("%s, %s: %llu KiB more memory, ceiling %llu KiB\n", with->name, what,
           (unsigned long long)(grown / KIB), (unsigned long long)(ceiling / KIB));
    if (!DOMT_SANITIZED)
        ck_assert_uint_lt(grown, ceiling);
    domt_attack_end(attack, true);
    int late = domt_connect_to_port(service.port);
    ck_assert(domt_is_good_client_answered(late, with));
    close(late);
    expect_no_failure_of_good_client(with, "afterwards", good);
    domt_service_wait_until_counts_fall_to(&service, 1, descriptors, 20000);
    close(good);
    domt_service_stop(&service);
}

static void limit_descriptors_to_256(void)
{
    const struct rlimit limit = {256, 256};

    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        _exit(126);
}

DOMT_TEST(strangers_that_take_all_descriptors_hurt_nobody)
{
    uint32_t count = is_long_test_wanted() ? 3000 : 600;

    ck_assert(domt_raise_descriptor_limit(count + 100));
    service.prepare = limit_descriptors_to_256;
    for (size_t i = 0; i < SERVICES; i++) {
        domt_attack attack = {
            .kind = DOMT_ATTACK_DRIP, .count = count, .rate = count, .is_fast = true};
        check_attack_beside_good_client(services[i], "no descriptors", NULL, &attack, 10240 * KIB);
        ck_assert_uint_gt(domt_service_count_in_profile(&service, "accept pauses"), 0);
    }
}

/* Each connection may have channel.sendHigh bytes queued, and its share of the buffers, before the
 * service stops reading it. */
DOMT_TEST(strangers_that_take_all_buffers_hurt_nobody)
{
    static const char *const more[] = {
        "--set", "io.buffers.count=16",   "--set", "channel.sendHigh=64KiB",
        "--set", "channel.sendLow=16KiB", NULL};
    uint32_t count = is_long_test_wanted() ? 500 : DOMT_SCALE(100, 40);

    ck_assert(domt_raise_descriptor_limit(count + 100));
    for (size_t i = 0; i < SERVICES; i++) {
        domt_attack attack = {.kind = DOMT_ATTACK_FLOOD, .count = count, .rate = 4000};
        check_attack_beside_good_client(services[i], "no buffers", more, &attack,
                                        count * 192 * KIB + 4096 * KIB);
    }
}

/* The service is at channel.maxConnections: strangers have all these connections, and as many
 * strangers again wait to be accepted. */
DOMT_TEST(strangers_whom_nobody_accepts_hurt_nobody)
{
    uint32_t count = is_long_test_wanted() ? 8000 : DOMT_SCALE(1000, 200);
    char most[64];

    ck_assert(domt_raise_descriptor_limit(count + 100));
    snprintf(most, sizeof most, "channel.maxConnections=%u", count / 2);
    for (size_t i = 0; i < SERVICES; i++) {
        domt_attack attack = {
            .kind = DOMT_ATTACK_DRIP, .count = count, .rate = count, .is_fast = true};
        check_attack_beside_good_client(services[i], "nobody accepts",
                                        (const char *const[]){"--set", most, NULL}, &attack,
                                        count * 3 * KIB + 10240 * KIB);
        ck_assert_uint_gt(domt_service_count_in_profile(&service, "spells at most places"), 0);
    }
}

DOMT_SUITE(300)
