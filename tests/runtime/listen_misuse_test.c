/* Listeners that actors make at odd times, or that restart with their actor: the process does not
 * end, no descriptor leaks, and no connection is lost that could have been served. */
#include "tests/runtime/misuse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Start a system of one thread, and spawn an actor of this behaviour, which listens in its
 * on_mount. */
static void begin_with_listening_actor(const domus_behaviour *behaviour)
{
    domt_misuse_start_system(1);
    (void)domt_spawn(domt_misuse_system, 0, behaviour, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.listening) == 1);
}

/* --- at odd times ----------------------------------------------------------------------------- */

static int count_end_of_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_fetch_add(&domt_misuse_seen.slept, 1);
    return 0;
}

static int listen_and_sleep_in_mount(domus_stack *stack, void *self)
{
    if (domt_misuse_listen_and_record(stack, "127.0.0.1:0") != 0)
        return -EIO;
    return domus_sleep(stack, 200 * DOMT_MS, count_end_of_sleep);
}

static const domus_behaviour sleeps_in_mount = {
    .name = "sleeps in mount",
    .kind = DOMUS_CHANNELS,
    .on_mount = listen_and_sleep_in_mount,
    .on_open = {domt_misuse_on_open_count, 0},
    .on_read = {domt_misuse_on_read_echo, 0},
    .on_close = {domt_misuse_on_close_count, 0},
};

DOMT_TEST(mount_that_listens_and_waits_serves_clients_that_come_meanwhile)
{
    begin_with_listening_actor(&sleeps_in_mount);
    ck_assert_int_eq(atomic_load(&domt_misuse_seen.result), 0);
    int fd = domt_misuse_connect(&domt_misuse_seen.found);
    ck_assert_int_ge(fd, 0);
    ck_assert(domt_misuse_try_echo(fd));
    (void)close(fd);
    domt_end_system(domt_misuse_system);
}

static int listen_and_fail_in_mount(domus_stack *stack, void *self)
{
    (void)domt_misuse_listen_and_record(stack, "127.0.0.1:0");
    return -EIO;
}

static const domus_behaviour fails_in_mount = {.name = "fails in mount",
                                               .kind = DOMUS_CHANNELS,
                                               .on_mount = listen_and_fail_in_mount,
                                               .on_read = {domt_misuse_on_read_echo, 0}};

DOMT_TEST(mount_that_listens_and_fails_leaves_nothing)
{
    domt_misuse_start_system(1);
    uint32_t before = domt_count_directory_entries("/proc/self/fd");
    for (uint32_t i = 1; i <= 100; i++) {
        (void)domt_spawn(domt_misuse_system, 0, &fails_in_mount, NULL);
        DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.listening) == i);
        ck_assert_int_eq(atomic_load(&domt_misuse_seen.result), 0);
    }
    DOMT_WAIT_FOR(10, domt_count_directory_entries("/proc/self/fd") == before);
    domt_end_system(domt_misuse_system);
}

static char at_the_end[64];

static void listen_in_stop(domus_stack *stack, void *self)
{
    (void)domt_misuse_listen_and_record(stack, at_the_end);
}

static const domus_behaviour listens_at_the_end = {.name = "listens at the end",
                                                   .kind = DOMUS_CHANNELS,
                                                   .on_mount = domt_count_mount,
                                                   .on_stop = listen_in_stop};

/* The listen is refused, because the path of a Unix socket would stay in the file system. */
DOMT_TEST(listen_in_on_stop_is_refused_and_leaves_no_path)
{
    domt_misuse_start_system(1);
    uint32_t before = domt_count_directory_entries("/proc/self/fd");
    for (uint32_t i = 1; i <= 2; i++) {
        (void)snprintf(at_the_end, sizeof at_the_end,
                       i == 1 ? "127.0.0.1:0" : "unix:/tmp/domus-misuse-%d", (int)getpid());
        domus_address actor = domt_spawn(domt_misuse_system, 0, &listens_at_the_end, NULL);
        DOMT_WAIT_FOR(10, atomic_load(&domt_mounted) == i);
        ck_assert_int_eq(domus_outside_stop(domt_misuse_system, actor), 0);
        DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.listening) == i);
        ck_assert_msg(atomic_load(&domt_misuse_seen.result) == -ESHUTDOWN, "%s", at_the_end);
        ck_assert_uint_eq(domt_count_directory_entries("/proc/self/fd"), before);
    }
    ck_assert_int_ne(access(at_the_end + strlen("unix:"), F_OK), 0);
    domt_end_system(domt_misuse_system);
}

/* --- restarts --------------------------------------------------------------------------------- */

static domus_endpoint fixed;
static domus_address restarting;

static int listen_at_fixed_port_in_mount(domus_stack *stack, void *self)
{
    int now = domus_listen(stack, &fixed, NULL, NULL, &fixed);
    atomic_store(&domt_misuse_seen.result, now);
    atomic_fetch_add(&domt_misuse_seen.listening, 1);
    return now;
}

static const domus_behaviour worker = {
    .name = "worker",
    .kind = DOMUS_CHANNELS,
    .state_size = 16,
    .on = domt_misuse_rows,
    .on_mount = listen_at_fixed_port_in_mount,
    .on_open = {domt_misuse_on_open_count, 0},
    .on_read = {domt_misuse_on_read_echo, 0},
    .on_close = {domt_misuse_on_close_count, 0},
};
static const domus_supervision restarts = {.intensity = 1000, .otherwise = DOMUS_RESTART};

static int spawn_restarting_worker_in_mount(domus_stack *stack, void *self)
{
    return domus_spawn(stack, &worker, NULL, &restarting);
}

static const domus_behaviour parent = {.name = "parent",
                                       .kind = DOMUS_CHANNELS,
                                       .on_mount = spawn_restarting_worker_in_mount,
                                       .supervision = &restarts};

DOMT_TEST(restart_closes_listener_and_channels_before_the_next_mount)
{
    fixed = (domus_endpoint){.family = AF_INET, .size = 4, .bytes = {127, 0, 0, 1}};
    begin_with_listening_actor(&parent);
    for (uint32_t i = 1; i <= 30; i++) {
        int fds[4];
        for (int k = 0; k < 4; k++) {
            fds[k] = domt_misuse_connect(&fixed);
            ck_assert_int_ge(fds[k], 0);
            if (k < 2)
                ck_assert(domt_misuse_try_echo(fds[k]));
        }
        domt_send_notice(domt_misuse_system, restarting, &domt_misuse_fail_type, NULL);
        DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.listening) == i + 1);
        ck_assert_int_eq(atomic_load(&domt_misuse_seen.result), 0);
        for (int k = 0; k < 4; k++) {
            char byte;
            ck_assert_int_le(domt_misuse_receive(fds[k], &byte, 1), 0);
            (void)close(fds[k]);
        }
    }
    int fd = domt_misuse_connect(&fixed);
    ck_assert(domt_misuse_try_echo(fd));
    (void)close(fd);
    domt_end_system(domt_misuse_system);
}

/* --- a channel that listens ------------------------------------------------------------------- */

static _Atomic uint32_t inner_opened;

static int count_open_of_accepted_channel(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&inner_opened, 1);
    return 0;
}

static const domus_behaviour inner = {.name = "inner",
                                      .kind = DOMUS_CHANNELS,
                                      .on_open = {count_open_of_accepted_channel, 0},
                                      .on_read = {domt_misuse_on_read_echo, 0},
                                      .on_close = {domt_misuse_on_close_count, 0}};

static domus_endpoint outer_at;

static int listen_in_open(domus_stack *stack, void *self, const void *payload)
{
    (void)domt_misuse_on_open_count(stack, self, payload);
    return domt_misuse_listen_and_record(stack, "127.0.0.1:0");
}

static int listen_in_close(domus_stack *stack, void *self, const void *payload)
{
    domt_misuse_on_close_count(stack, self, payload);
    (void)domt_misuse_listen_and_record(stack, "127.0.0.1:0");
    return 0;
}

static const domus_behaviour outer = {.name = "outer",
                                      .kind = DOMUS_CHANNELS,
                                      .on_open = {listen_in_open, 0},
                                      .on_read = {domt_misuse_on_read_echo, 0},
                                      .on_close = {listen_in_close, 0},
                                      .channel = &inner};

static const domus_behaviour of_outer = {.name = "of outer",
                                         .kind = DOMUS_CHANNELS,
                                         .on_mount = domt_misuse_on_mount_listen,
                                         .channel = &outer};

DOMT_TEST(channel_may_listen_and_takes_its_channels_along)
{
    begin_with_listening_actor(&of_outer);
    outer_at = domt_misuse_newest_endpoint();
    uint32_t before = domt_count_directory_entries("/proc/self/fd");
    for (uint32_t i = 0; i < 20; i++) {
        int first = domt_misuse_connect(&outer_at);
        ck_assert_int_ge(first, 0);
        DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.opened) == i + 1 &&
                              atomic_load(&domt_misuse_seen.listening) == 2 * i + 2);
        ck_assert_int_eq(atomic_load(&domt_misuse_seen.result), 0);
        domus_endpoint inner_at = domt_misuse_newest_endpoint();
        int second = domt_misuse_connect(&inner_at);
        ck_assert_int_ge(second, 0);
        ck_assert(domt_misuse_try_echo(second));
        ck_assert(domt_misuse_try_echo(first));
        (void)close(first);
        char byte;
        ck_assert_int_le(domt_misuse_receive(second, &byte, 1), 0);
        (void)close(second);
        DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.closed) == 2 * i + 2);
        DOMT_WAIT_FOR(10, domt_count_directory_entries("/proc/self/fd") == before);
    }
    domt_end_system(domt_misuse_system);
}

static const domus_behaviour no_channel = {.name = "no channel", .kind = DOMUS_STATE};
static const domus_behaviour bad_outer = {.name = "bad outer",
                                          .kind = DOMUS_CHANNELS,
                                          .on_open = {listen_in_open, 0},
                                          .on_close = {domt_misuse_on_close_count, 0},
                                          .channel = &no_channel};
static const domus_behaviour of_bad_outer = {.name = "of bad outer",
                                             .kind = DOMUS_CHANNELS,
                                             .on_mount = domt_misuse_on_mount_listen,
                                             .channel = &bad_outer};

DOMT_TEST(channel_with_a_bad_channel_behaviour_may_not_listen)
{
    begin_with_listening_actor(&of_bad_outer);
    outer_at = domt_misuse_seen.found;
    int first = domt_misuse_connect(&outer_at);
    DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.listening) == 2);
    if (atomic_load(&domt_misuse_seen.result) == 0) {
        int second = domt_misuse_connect(&domt_misuse_seen.found);
        char byte;
        (void)domt_misuse_receive(second, &byte, 1);
        (void)close(second);
    }
    ck_assert_int_eq(atomic_load(&domt_misuse_seen.result), -EINVAL);
    (void)close(first);
    domt_end_system(domt_misuse_system);
}

/* --- limits ----------------------------------------------------------------------------------- */

static const domus_behaviour listens = {.name = "listens",
                                        .kind = DOMUS_CHANNELS,
                                        .on_mount = domt_misuse_on_mount_listen,
                                        .on_open = {domt_misuse_on_open_count, 0},
                                        .on_read = {domt_misuse_on_read_echo, 0},
                                        .on_close = {domt_misuse_on_close_count, 0}};

DOMT_TEST(connections_of_all_threads_have_one_limit)
{
    domus_config config = domt_config_of_threads(2);
    domus_endpoint at[2];
    int fds[2][20];

    config.channel.connections_max = 10;
    domt_misuse_system = domt_start_system(&config);
    for (uint32_t i = 0; i < 2; i++) {
        (void)domt_spawn(domt_misuse_system, i, &listens, NULL);
        DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.listening) == i + 1);
        at[i] = domt_misuse_seen.found;
    }
    for (int k = 0; k < 20; k++) {
        for (int i = 0; i < 2; i++) {
            fds[i][k] = domt_misuse_connect(&at[i]);
            ck_assert_int_ge(fds[i][k], 0);
        }
        domt_pause_ns(5 * DOMT_MS);
    }
    DOMT_WAIT_FOR(10, domt_profile_of_all_threads(domt_misuse_system).channels_opened >= 10);
    /* wait for as long as more channels than the limit allows might need to open */
    domt_pause_ns(100 * DOMT_MS);
    ck_assert_uint_le(atomic_load(&domt_misuse_seen.opened), 10);
    ck_assert_uint_eq(domt_profile_of_all_threads(domt_misuse_system).channels_opened, 10);
    for (int k = 0; k < 20; k++) {
        for (int i = 0; i < 2; i++)
            (void)close(fds[i][k]);
    }
    DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.closed) == 40);
    domt_end_system(domt_misuse_system);
}

DOMT_SUITE(60)
