/* 20,000 connects and closes a second leave nothing behind: no descriptor, no connection, and after
 * a first wave no memory. The rate that was reached is printed. In the long form (DOMT_LONG) a wave
 * lasts five seconds. */
#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/system/attack.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define RATE      20000u /* connects in a second of all clients together */
#define CLIENTS   2u
#define GROWN_MAX (UINT64_C(1) << 20) /* bytes by which memory may grow in the second wave */

static domt_service service;

static uint32_t connects_of_a_wave(void)
{
    const char *text = getenv("DOMT_LONG");

    return text != NULL && text[0] != '\0' ? 5 * RATE : DOMT_SCALE(4000, 400);
}

/* Connections are reset as soon as they are there; then other ones get a message echoed and
 * close. */
static void run_wave_of_connects(domt_attack_kind kind, const char *what)
{
    domt_attack attacks[CLIENTS] = {0};
    uint32_t count = connects_of_a_wave();
    uint64_t begin_ns = domt_monotonic_ns();

    for (uint32_t i = 0; i < CLIENTS; i++) {
        attacks[i] = (domt_attack){
            .kind = kind,
            .port = service.port,
            .count = count / CLIENTS,
            .rate = RATE / CLIENTS,
        };
        domt_attack_begin(&attacks[i]);
    }
    for (uint32_t i = 0; i < CLIENTS; i++) {
        while (!domt_attack_is_done(&attacks[i]))
            domt_sleep_ms(1);
    }
    double seconds = (double)(domt_monotonic_ns() - begin_ns) / 1e9;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        domt_attack_end(&attacks[i], false);
        ck_assert_uint_eq(atomic_load(&attacks[i].refused), 0);
        ck_assert_uint_eq(atomic_load(&attacks[i].made), count / CLIENTS);
    }
    printf("%s: %u connects, %.0f a second\n", what, count, count / seconds);
}

static void check_waves_leave_nothing(domt_attack_kind kind, const char *what)
{
    ck_assert(domt_raise_descriptor_limit(4000));
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS("--set", "system.threads=2", ));
    int good = domt_connect_to_port(service.port);
    ck_assert(domt_send_and_get_echo(good, "hello"));
    uint32_t descriptors = domt_service_count_descriptors(&service);

    run_wave_of_connects(kind, what);
    domt_service_wait_until_left_with(&service, 1, descriptors, 20000);
    uint64_t rss = domt_service_rss_bytes(&service);
    run_wave_of_connects(kind, what);
    domt_service_wait_until_left_with(&service, 1, descriptors, 20000);
    if (!DOMT_SANITIZED)
        ck_assert_uint_le(domt_service_rss_bytes(&service), rss + GROWN_MAX);

    ck_assert(domt_send_and_get_echo(good, "still here"));
    close(good);
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_profile_count(&service, "channels opened"),
                      domt_service_profile_count(&service, "channels closed"));
}

DOMT_TEST(connects_that_are_reset_at_once_leave_nothing)
{
    check_waves_leave_nothing(DOMT_ATTACK_DROP, "drop");
}

DOMT_TEST(connects_for_one_message_leave_nothing)
{
    check_waves_leave_nothing(DOMT_ATTACK_VISIT, "visit");
}

DOMT_SUITE(120)
