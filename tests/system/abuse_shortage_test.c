/* Strangers use up the descriptors of the process, its receive buffers, or the connections that it
 * may have, of a service of bytes and of one of HTTP. A good client that was connected before is
 * served meanwhile. Memory stays below a limit, which is printed; the service answers afterwards,
 * and nothing is left. The long form (DOMT_LONG) has more strangers. */
#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/system/attack.h"
#include "tests/system/talks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define KIB UINT64_C(1024)

static domt_service service;

static const domt_protocol echo = {
    .name = "echo",
    .arguments = DOMT_ECHO_ARGUMENTS("--set", "system.threads=2", ),
    .ask = "hello",
    .answer = "hello",
};
static const domt_protocol *const services[] = {&echo, &domt_web};

#define SERVICES (sizeof services / sizeof services[0])

static bool is_long_form(void)
{
    const char *text = getenv("DOMT_LONG");

    return text != NULL && text[0] != '\0';
}

static void check_good_client_is_served(const domt_protocol *with, const char *what, int good)
{
    domt_good seen =
        domt_run_good_client(good, with->ask, with->answer, is_long_form() ? 3000 : 400, 1000);

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
    check_good_client_is_served(with, what, good);
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
    check_good_client_is_served(with, "afterwards", good);
    domt_service_wait_until_left_with(&service, 1, descriptors, 20000);
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
    uint32_t count = is_long_form() ? 3000 : 600;

    ck_assert(domt_raise_descriptor_limit(count + 100));
    service.prepare = limit_descriptors_to_256;
    for (size_t i = 0; i < SERVICES; i++) {
        domt_attack attack = {
            .kind = DOMT_ATTACK_DRIP, .count = count, .rate = count, .is_fast = true};
        check_attack_beside_good_client(services[i], "no descriptors", NULL, &attack, 10240 * KIB);
        ck_assert_uint_gt(domt_service_profile_count(&service, "accept pauses"), 0);
    }
}

/* Each connection may have channel.sendHigh bytes queued, and its share of the buffers, before the
 * service stops reading it. */
DOMT_TEST(strangers_that_take_all_buffers_hurt_nobody)
{
    static const char *const more[] = {
        "--set", "io.buffers.count=16",   "--set", "channel.sendHigh=64KiB",
        "--set", "channel.sendLow=16KiB", NULL};
    uint32_t count = is_long_form() ? 500 : DOMT_SCALE(100, 40);

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
    uint32_t count = is_long_form() ? 8000 : DOMT_SCALE(1000, 200);
    char most[64];

    ck_assert(domt_raise_descriptor_limit(count + 100));
    snprintf(most, sizeof most, "channel.maxConnections=%u", count / 2);
    for (size_t i = 0; i < SERVICES; i++) {
        domt_attack attack = {
            .kind = DOMT_ATTACK_DRIP, .count = count, .rate = count, .is_fast = true};
        check_attack_beside_good_client(services[i], "nobody accepts",
                                        (const char *const[]){"--set", most, NULL}, &attack,
                                        count * 3 * KIB + 10240 * KIB);
        ck_assert_uint_gt(domt_service_profile_count(&service, "spells at most places"), 0);
    }
}

DOMT_SUITE(300)
