/* Limits that are reached, and no longer hold when there is room again: descriptors, and
 * channel.maxConnections. No client is lost, and no CPU time is wasted meanwhile. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS         100
#define DESCRIPTORS_MAX 64
#define CONNECTIONS_MAX 20

static domt_service service;
static domt_crowd crowd;
static uint32_t wanted;

static uint32_t count_served_clients(const domt_crowd *of)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < of->count; i++)
        count += of->clients[i].bytes != 0 && domt_client_has_whole_echo(&of->clients[i]);
    return count;
}

static bool are_wanted_clients_served(const domt_crowd *of)
{
    return count_served_clients(of) >= wanted;
}

static bool is_never_over(const domt_crowd *of)
{
    return false;
}

/* Let all clients ask to be served at once, and check that at least `room` of them are. */
static void connect_all_and_check_some_are_served(uint32_t room)
{
    domt_crowd_init(&crowd, service.port, CLIENTS);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        crowd.clients[i].bytes = 100;
        crowd.clients[i].stays = true;
    }
    domt_crowd_connect_clients(&crowd, 0, CLIENTS);
    wanted = room;
    ck_assert(domt_crowd_run_until(&crowd, are_wanted_clients_served, 5000));
    ck_assert(!domt_crowd_run_until(&crowd, is_never_over, 200));
}

/* Let the served clients leave, some at a time, and check that in the end all clients were served,
 * and none was refused. */
static void let_served_clients_leave(void)
{
    while (count_served_clients(&crowd) < CLIENTS) {
        uint32_t closed = 0;
        for (uint32_t i = 0; i < CLIENTS; i++) {
            domt_client *client = &crowd.clients[i];
            if (client->fd >= 0 && domt_client_has_whole_echo(client) && closed < 20) {
                domt_client_close(client, closed % 2 == 0);
                closed++;
            }
        }
        ck_assert_uint_gt(closed, 0);
        wanted = count_served_clients(&crowd) + (CLIENTS - count_served_clients(&crowd) < closed
                                                     ? CLIENTS - count_served_clients(&crowd)
                                                     : closed);
        ck_assert_msg(domt_crowd_run_until(&crowd, are_wanted_clients_served, 10000),
                      "%u were served, not %u", count_served_clients(&crowd), wanted);
    }
    for (uint32_t i = 0; i < CLIENTS; i++)
        ck_assert_int_eq(crowd.clients[i].error, 0);
    domt_crowd_fini(&crowd);
    int fd = domt_connect_to_port(service.port);
    ck_assert(domt_send_and_get_echo(fd, "there is room again"));
    close(fd);
}

/* Check the CPU time that the service uses in `ms` ms in which it can accept nothing. A loop that
 * tried without a pause would use all of it. */
static void check_little_cpu_is_used_while_full(uint32_t ms)
{
    uint64_t before_ns = domt_service_cpu_ns(&service);

    domt_sleep_ms(ms);
    double used_ms = (double)(domt_service_cpu_ns(&service) - before_ns) / 1e6;
    ck_assert_msg(used_ms < ms * (DOMT_SANITIZED ? 0.3 : 0.1), "%.1f ms of CPU in %u ms", used_ms,
                  ms);
}

static uint32_t count_text_in_errors(const char *text)
{
    uint32_t count = 0;

    for (const char *at = service.error; (at = strstr(at, text)) != NULL; at++)
        count++;
    return count;
}

/* Check that the service logs a time without descriptors by one line when it begins and by one when
 * it is over (some seconds later), not for each connection. */
static void check_begin_and_end_logged_once(const char *begins, const char *is_over)
{
    uint64_t until_ns = domt_monotonic_ns() + UINT64_C(20000000000);

    do {
        domt_sleep_ms(20);
        domt_service_read_error(&service);
    } while (count_text_in_errors(is_over) == 0 && domt_monotonic_ns() < until_ns);
    ck_assert_msg(count_text_in_errors(begins) == 1, "not once '%s': %s", begins, service.error);
    ck_assert_msg(count_text_in_errors(is_over) == 1, "not once '%s': %s", is_over, service.error);
}

/* The service raises its soft limit of descriptors to the hard one. */
static void limit_descriptors_hard(void)
{
    const struct rlimit limit = {DESCRIPTORS_MAX / 2, DESCRIPTORS_MAX};

    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        _exit(126);
}

DOMT_TEST(the_descriptor_limit_is_reached_and_recovered_from)
{
    service.prepare = limit_descriptors_hard;
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS("--set", "system.threads=2", ));
    connect_all_and_check_some_are_served(DESCRIPTORS_MAX / 2);
    ck_assert_uint_le(count_served_clients(&crowd), DESCRIPTORS_MAX);
    check_little_cpu_is_used_while_full(DOMT_SCALE(700, 1500));
    let_served_clients_leave();
    check_begin_and_end_logged_once("all 64 descriptors of this process", "there are descriptors");
    domt_service_stop(&service);
    ck_assert_uint_gt(domt_service_count_in_profile(&service, "accept pauses"), 0);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "accepted"), CLIENTS + 1);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "spells no descriptor"), 1);
}

DOMT_TEST(limit_of_connections_is_reached_and_recovered_from)
{
    service.prepare = NULL;
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS("--set", "channel.maxConnections=20", ));
    connect_all_and_check_some_are_served(CONNECTIONS_MAX);
    ck_assert_uint_eq(count_served_clients(&crowd), CONNECTIONS_MAX);
    check_little_cpu_is_used_while_full(DOMT_SCALE(700, 1500));
    let_served_clients_leave();
    check_begin_and_end_logged_once("all 20 connections of channel.maxConnections are taken",
                                    "there is room for new connections again");
    domt_service_stop(&service);
    ck_assert_uint_gt(domt_service_count_in_profile(&service, "accept pauses"), 0);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "spells at most places"), 1);
}

#define SOFT 70
#define HARD 150

static void limit_descriptors_soft_and_hard(void)
{
    const struct rlimit limit = {SOFT, HARD};

    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        _exit(126);
}

/* More connections are requested than the process may have descriptors. It raises its limit, logs
 * both figures, and always keeps some descriptors, so that the program can still open files. */
DOMT_TEST(too_few_descriptors_lower_the_limit_of_connections)
{
    struct rlimit limit;

    service.prepare = limit_descriptors_soft_and_hard;
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS("--set", "system.threads=2", ));
    ck_assert_int_eq(prlimit(service.pid, RLIMIT_NOFILE, NULL, &limit), 0);
    ck_assert_uint_eq(limit.rlim_cur, HARD);
    ck_assert_uint_eq(limit.rlim_max, HARD);
    /* The program writes its log from another thread, so the line may come later. */
    for (uint32_t tries = 0; tries < 500 && strstr(service.error, "descriptors") == NULL; tries++) {
        domt_sleep_ms(20);
        domt_service_read_error(&service);
    }
    ck_assert_msg(strstr(service.error, "warning: at most 75 connections are accepted, not the "
                                        "10000 of channel.maxConnections, because this process may "
                                        "have 150 descriptors") != NULL,
                  "it said: %s", service.error);
    connect_all_and_check_some_are_served(HARD / 2);
    ck_assert_uint_eq(count_served_clients(&crowd), HARD / 2);
    let_served_clients_leave();
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "spells no descriptor"), 0);
}

DOMT_SUITE(60)
