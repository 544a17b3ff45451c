/* config/descriptors.c: how many descriptors a configuration needs, and how maxConnections is
 * lowered when the process may have too few. */
#include "config/descriptors.h"

#include "tests/support/suite.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

static domus_listener_config listeners[2] = {{.backlog = 1000}, {.backlog = 200}};

static void fill_config(domus_config *config)
{
    domus_config_init(config);
    config->system.threads = 3;
    config->detached.threads_max = 5;
    config->channel.connections_max = 10000;
    config->listeners = listeners;
    config->listener_count = 2;
}

/* Descriptors needed: 7 that are open, 2 for each of 3 threads and 5 detached actors, 2 listeners,
 * 1,200 places of their backlogs, and 64 to spare. */
#define NEEDED (7u + 16u + 2u + 1200u + 64u)

DOMT_TEST(connections_get_what_nobody_else_needs)
{
    domi_descriptors has = {.limit = NEEDED + 5000, .open = 7, .cpus = 50};
    domus_config config;

    fill_config(&config);
    ck_assert_uint_eq(domi_descriptors_room(&has, &config), 5000);
    has.limit = NEEDED + 10000;
    ck_assert_uint_eq(domi_descriptors_room(&has, &config), 10000);
    has.limit--;
    ck_assert_uint_eq(domi_descriptors_room(&has, &config), 9999);
    has.limit = UINT64_MAX;
    ck_assert_uint_eq(domi_descriptors_room(&has, &config), 10000);
    config.system.threads = 0; /* 0 means one thread per CPU, which is at most */
    has.limit = NEEDED + 2 * 47 + 5000;
    ck_assert_uint_eq(domi_descriptors_room(&has, &config), 5000);
}

DOMT_TEST(half_of_few_is_for_connections)
{
    domi_descriptors has = {.limit = 2 * NEEDED, .open = 7, .cpus = 50};
    domus_config config;

    fill_config(&config);
    ck_assert_uint_eq(domi_descriptors_room(&has, &config), NEEDED);
    has.limit = 64;
    ck_assert_uint_eq(domi_descriptors_room(&has, &config), 32);
    has.limit = 1;
    ck_assert_uint_eq(domi_descriptors_room(&has, &config), 1);
    has.limit = 0;
    ck_assert_uint_eq(domi_descriptors_room(&has, &config), 1);
}

static void limit_to(rlim_t soft, rlim_t hard)
{
    const struct rlimit limit = {soft, hard};

    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

DOMT_TEST(the_limit_is_raised_and_too_few_lower_the_connections)
{
    struct rlimit limit;
    char warning[256] = "?";
    domus_config config;

    fill_config(&config);
    limit_to(400, 2000);
    domi_descriptors_raise_limit(&config, warning, sizeof warning);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_eq(limit.rlim_cur, 2000);
    ck_assert_uint_eq(limit.rlim_max, 2000);
    ck_assert_uint_eq(config.channel.connections_max, 1000);
    ck_assert_str_eq(warning, "at most 1000 connections are accepted, not the 10000 of "
                              "channel.maxConnections, because this process may have 2000 "
                              "descriptors: raise the limit (ulimit -n, LimitNOFILE=)");
    config.channel.connections_max = 100;
    domi_descriptors_raise_limit(&config, warning, sizeof warning);
    ck_assert_str_eq(warning, "");
    ck_assert_uint_eq(config.channel.connections_max, 100);
}

static uint32_t count_open(void)
{
    uint32_t count = 0;

    for (int fd = 0; fd < 4000; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* Descriptors that the process already has open are subtracted, too. */
DOMT_TEST(open_descriptors_are_not_for_connections)
{
    char warning[256];
    domus_config config;
    uint32_t before;

    fill_config(&config);
    config.listener_count = 0;
    config.channel.connections_max = 10000;
    limit_to(4000, 4000);
    domi_descriptors_raise_limit(&config, warning, sizeof warning);
    before = config.channel.connections_max;
    ck_assert_uint_eq(before, 4000 - 16 - 64 - count_open());
    for (int i = 0; i < 20; i++)
        ck_assert_int_ge(dup(STDERR_FILENO), 0);
    config.channel.connections_max = 10000;
    domi_descriptors_raise_limit(&config, warning, sizeof warning);
    ck_assert_uint_eq(config.channel.connections_max, before - 20);
}

DOMT_SUITE(20)
