/* The needs that a program's process has: descriptors for its configuration, places for its fronts,
 * and the socket of a service manager. */
#include "config/descriptors.h"
#include "config/environment.h"
#include "config/main_parts.h"
#include "config/notify.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* config/descriptors.c: how many descriptors a configuration needs, and how maxConnections is
 * lowered when the process may have too few. */

static domus_listener_config listeners[2] = {{.backlog = 1000}, {.backlog = 200}};

static void fill_config_with_known_needs(domus_config *config)
{
    domus_config_init(config);
    config->system.threads = 3;
    config->detached.threads_max = 5;
    config->channel.connections_max = 10000;
    config->listeners = listeners;
    config->listener_count = 2;
}

/* Descriptors that the configuration needs beside connections: 7 that are open, 2 for each of 3
 * threads and 5 detached actors, 2 listeners, 1,200 places of their backlogs, and 64 to spare. */
#define NEEDED (7u + 16u + 2u + 1200u + 64u)

DOMT_TEST(connections_get_remaining_descriptors)
{
    domi_descriptors has = {.limit = NEEDED + 5000, .open = 7, .cpus = 50};
    domus_config config;

    fill_config_with_known_needs(&config);
    ck_assert_uint_eq(domi_descriptors_room_for_connections(&has, &config), 5000);
    has.limit = NEEDED + 10000;
    ck_assert_uint_eq(domi_descriptors_room_for_connections(&has, &config), 10000);
    has.limit--;
    ck_assert_uint_eq(domi_descriptors_room_for_connections(&has, &config), 9999);
    has.limit = UINT64_MAX;
    ck_assert_uint_eq(domi_descriptors_room_for_connections(&has, &config), 10000);
    /* 0 means one thread on each of at most 50 CPUs, which are 47 more than before */
    config.system.threads = 0;
    has.limit = NEEDED + 2 * 47 + 5000;
    ck_assert_uint_eq(domi_descriptors_room_for_connections(&has, &config), 5000);
}

DOMT_TEST(connections_get_half_of_few_descriptors)
{
    domi_descriptors has = {.limit = 2 * NEEDED, .open = 7, .cpus = 50};
    domus_config config;

    fill_config_with_known_needs(&config);
    ck_assert_uint_eq(domi_descriptors_room_for_connections(&has, &config), NEEDED);
    has.limit = 64;
    ck_assert_uint_eq(domi_descriptors_room_for_connections(&has, &config), 32);
    has.limit = 1;
    ck_assert_uint_eq(domi_descriptors_room_for_connections(&has, &config), 1);
    has.limit = 0;
    ck_assert_uint_eq(domi_descriptors_room_for_connections(&has, &config), 1);
}

static void limit_descriptors_to(rlim_t soft, rlim_t hard)
{
    const struct rlimit limit = {soft, hard};

    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

DOMT_TEST(too_few_descriptors_lower_max_connections)
{
    struct rlimit limit;
    char warning[256] = "?";
    domus_config config;

    fill_config_with_known_needs(&config);
    limit_descriptors_to(400, 2000);
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

static uint32_t count_open_descriptors(void)
{
    uint32_t count = 0;

    for (int fd = 0; fd < 4000; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* Descriptors that the process already has open are subtracted from those for connections. */
DOMT_TEST(descriptors_already_open_are_subtracted)
{
    char warning[256];
    domus_config config;
    uint32_t before;

    fill_config_with_known_needs(&config);
    config.listener_count = 0;
    config.channel.connections_max = 10000;
    limit_descriptors_to(4000, 4000);
    domi_descriptors_raise_limit(&config, warning, sizeof warning);
    before = config.channel.connections_max;
    ck_assert_uint_eq(before, 4000 - 16 - 64 - count_open_descriptors());
    for (int i = 0; i < 20; i++)
        ck_assert_int_ge(dup(STDERR_FILENO), 0);
    config.channel.connections_max = 10000;
    domi_descriptors_raise_limit(&config, warning, sizeof warning);
    ck_assert_uint_eq(config.channel.connections_max, before - 20);
}

/* --- fronts ----------------------------------------------------------------------------------- */

/* config/main_front.c: the table of fronts has a place for each listener that a configuration may
 * have and for the servers of a cluster, and keeps nothing of a closed front. */

static domus_config config;
static domus_listener_config listeners_fronts[DOMUS_LISTENERS_MAX];
static char names[DOMUS_LISTENERS_MAX][32];
static const domus_pipeline_stage stages[DOMUS_LISTENERS_MAX];
static size_t opened;
static size_t closed;

/* Open a front whose stages differ from those of each other listener's front. */
static int open_front_of_listener(const domus_listener_config *listener, char *error,
                                  size_t error_size, void **ret_state,
                                  const domus_pipeline_stage **ret_stages)
{
    size_t number = (size_t)(listener - listeners_fronts);

    *ret_state = NULL;
    *ret_stages = strncmp(listener->name, "plain", 5) == 0 ? NULL : &stages[number];
    opened += *ret_stages != NULL;
    return 0;
}

static void close_front_and_count(void *state)
{
    closed++;
}

static const domus_pipeline_stage servers_stages[1];

static int open_front_of_cluster_servers(const domus_servers_tls_config *settings, char *error,
                                         size_t error_size, void **ret_state,
                                         const domus_pipeline_stage **ret_stages)
{
    *ret_state = NULL;
    *ret_stages = settings->enabled ? servers_stages : NULL;
    opened++;
    return 0;
}

static const domus_front front = {.open = open_front_of_listener,
                                  .close = close_front_and_count,
                                  .open_servers = open_front_of_cluster_servers};
static const domus_cluster_member member;
static const domus_program program = {.name = "fronts", .front = &front, .cluster = &member};
static bool has_servers;

/* Make a configuration with `count` listeners, of which the last has no front if `has_plain` is
 * set, and open their fronts. */
static void open_fronts_of_listeners(size_t count, bool has_plain)
{
    domus_config_init(&config);
    config.cluster.tls.enabled = has_servers;
    config.listeners = listeners_fronts;
    config.listener_count = count;
    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "%s%zu",
                 has_plain && i + 1 == count ? "plain" : "front", i);
        listeners_fronts[i] = (domus_listener_config){.name = names[i]};
    }
    opened = closed = 0;
    ck_assert(domi_fronts_open(&program, &config));
}

DOMT_TEST(table_of_fronts_holds_one_for_each_listener)
{
    open_fronts_of_listeners(DOMUS_LISTENERS_MAX, false);
    ck_assert_uint_eq(opened, DOMUS_LISTENERS_MAX);
    for (size_t i = 0; i < DOMUS_LISTENERS_MAX; i++)
        ck_assert_ptr_eq(domi_fronts_find_stages_of_listener(config.listeners[i].name), &stages[i]);
    ck_assert_ptr_null(domi_fronts_find_stages_of_listener("other"));
    ck_assert_ptr_null(domi_fronts_find_stages_of_servers());
    domi_fronts_close(false);
    ck_assert_uint_eq(closed, DOMUS_LISTENERS_MAX);
}

DOMT_TEST(full_table_of_fronts_has_room_for_cluster_servers)
{
    has_servers = true;
    open_fronts_of_listeners(DOMUS_LISTENERS_MAX, false);
    ck_assert_uint_eq(opened, DOMUS_LISTENERS_MAX + 1);
    ck_assert_ptr_eq(domi_fronts_find_stages_of_servers(), servers_stages);
    for (size_t i = 0; i < DOMUS_LISTENERS_MAX; i++)
        ck_assert_ptr_eq(domi_fronts_find_stages_of_listener(config.listeners[i].name), &stages[i]);
    domi_fronts_close(false);
    ck_assert_uint_eq(closed, DOMUS_LISTENERS_MAX + 1);
    ck_assert_ptr_null(domi_fronts_find_stages_of_servers());
    has_servers = false;
}

DOMT_TEST(closed_fronts_are_not_found)
{
    open_fronts_of_listeners(2, false);
    domi_fronts_close(false);
    ck_assert_ptr_null(domi_fronts_find_stages_of_listener("front0"));
    open_fronts_of_listeners(2, true);
    ck_assert_ptr_eq(domi_fronts_find_stages_of_listener("front0"), &stages[0]);
    /* "front1" was the name of a front that was closed before */
    ck_assert_ptr_null(domi_fronts_find_stages_of_listener("front1"));
    ck_assert_ptr_null(domi_fronts_find_stages_of_listener("plain1"));
    domi_fronts_close(false);
    ck_assert_uint_eq(closed, 1);
}

/* --- notify ----------------------------------------------------------------------------------- */

/* config/notify.c: messages reach a socket at a path or an abstract name, and other values of
 * NOTIFY_SOCKET are refused. config/environment.c: a number in the environment consists of digits
 * only. */

static int bind_datagram_socket(const char *address)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t length = strlen(address);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    memcpy(at.sun_path, address, length);
    if (address[0] == '@')
        at.sun_path[0] = '\0';
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, size), 0);
    return fd;
}

static void expect_notification_delivery(const char *address)
{
    char text[DOMI_NOTIFY_MAX + 1], big[2 * DOMI_NOTIFY_MAX];
    int fd = bind_datagram_socket(address);
    domi_notify to;

    ck_assert_int_eq(domi_notify_open_socket(address, &to), 0);
    ck_assert_int_eq(domi_notify_send_message(&to, true, "READY=%d\nSTATUS=%s", 1, "up"), 0);
    ck_assert_int_eq((int)recv(fd, text, sizeof text, 0), 17);
    ck_assert_int_eq(memcmp(text, "READY=1\nSTATUS=up", 17), 0);
    memset(big, 'x', sizeof big);
    ck_assert_int_eq(domi_notify_send_message(&to, true, "%.*s", (int)sizeof big, big), 0);
    ck_assert_int_eq((int)recv(fd, text, sizeof text, 0), (int)DOMI_NOTIFY_MAX - 1);
    int result = 0;
    for (int i = 0; result == 0 && i < 10000; i++)
        result = domi_notify_send_message(&to, false, "WATCHDOG=1");
    ck_assert_int_eq(result, -EAGAIN); /* the test does not read the socket, so it fills */
    close(fd);
    ck_assert_int_eq(domi_notify_send_message(&to, true, "STOPPING=1"), -ECONNREFUSED);
    domi_notify_close(&to);
    domi_notify_close(&to);
}

DOMT_TEST(notifications_reach_path_and_abstract_name)
{
    char address[64];

    snprintf(address, sizeof address, "@domus-notify-%d", (int)getpid());
    expect_notification_delivery(address);
    snprintf(address, sizeof address, "/tmp/domus-notify-%d", (int)getpid());
    expect_notification_delivery(address);
    unlink(address);
}

DOMT_TEST(other_notify_socket_addresses_are_refused)
{
    static const char *const wrong[] = {"",           "/",         "@",
                                        "run/notify", "vsock:2:1", "unix:/run/notify"};
    char longest[sizeof((struct sockaddr_un *)NULL)->sun_path + 1];
    domi_notify to;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_int_eq(domi_notify_open_socket(wrong[i], &to), -EINVAL);
        ck_assert_int_eq(to.fd, -1);
    }
    memset(longest, 'x', sizeof longest);
    longest[0] = '/';
    longest[sizeof longest - 1] = '\0';
    ck_assert_int_eq(domi_notify_open_socket(longest, &to), -ENAMETOOLONG);
    longest[sizeof longest - 2] = '\0';
    ck_assert_int_eq(domi_notify_open_socket(longest, &to), 0);
    domi_notify_close(&to);
}

DOMT_TEST(numbers_in_environment_consist_of_digits)
{
    static const char *const wrong[] = {
        "", " 5", "5 ", "+5", "-5", "0x5", "5s", "11", "99999999999999999999"};
    static const char *const variables[] = {"DOMT_A", "DOMT_B", NULL};
    uint64_t number = 77;

    ck_assert_int_eq(domi_environment_read_number("DOMT_A", 10, &number), -ENOENT);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        setenv("DOMT_A", wrong[i], 1);
        ck_assert_int_eq(domi_environment_read_number("DOMT_A", 10, &number), -EINVAL);
    }
    ck_assert_uint_eq(number, 77);
    setenv("DOMT_A", "10", 1);
    ck_assert_int_eq(domi_environment_read_number("DOMT_A", 10, &number), 0);
    ck_assert_uint_eq(number, 10);
    ck_assert_int_eq(domi_environment_names_this_process("DOMT_A"), 0);
    ck_assert_int_eq(domi_environment_names_this_process("DOMT_B"), -ENOENT);
    domi_environment_remove_variables(variables);
    ck_assert_ptr_null(getenv("DOMT_A"));
}

DOMT_SUITE(20)
