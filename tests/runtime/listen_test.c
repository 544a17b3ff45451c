/* Listeners that actors make and close themselves (domus/listen.h): on TCP and on Unix sockets, at
 * any time, and also closed before they have begun. */
#include "tests/runtime/running.h"

#include <domus/listen.h>

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The order by which a test lets an actor listen; `result` gets the result of its last listen. */
typedef struct order {
    const char *at;
    bool shares_port;
    bool stops_at_once;
    uint32_t times; /* how many times the actor listens at this endpoint */
} order;

static const domus_type order_type = {.name = "order", .size = sizeof(order)};
static const domus_type stop_type = {.name = "stop"};

static _Atomic int result;
static _Atomic uint32_t done;
static _Atomic uint32_t closed;
/* address of the last listener; the test reads it once `done` is set */
static domus_address listener;
static domus_endpoint found;

static int listen_as_ordered(domus_stack *stack, void *self, const void *payload)
{
    order now;
    domus_endpoint at;

    memcpy(&now, payload, sizeof now);
    ck_assert_int_eq(domus_endpoint_parse(now.at, &at), 0);
    const domus_listen_options options = {.shares_port = now.shares_port};
    int last = 0;
    for (uint32_t i = 0; i < now.times && last == 0; i++) {
        last = domus_listen(stack, &at, &options, &listener, &found);
        if (last == 0 && now.stops_at_once)
            ck_assert_int_eq(domus_stop(stack, listener), 0);
    }
    atomic_store(&result, last);
    atomic_fetch_add(&done, 1);
    return 0;
}

static int stop_listening_actor(domus_stack *stack, void *self, const void *payload)
{
    atomic_store(&result, domus_stop(stack, listener));
    atomic_fetch_add(&done, 1);
    return 0;
}

static int echo_with_own_settings(domus_stack *stack, void *self, const void *payload)
{
    static const domus_channel_options own = {.linger_ns = 2 * UINT64_C(1000000000)};
    const domus_channel_event *event = payload;

    /* After it got settings of its own, a channel still belongs to its listener. */
    ck_assert_int_eq(domus_channel_set_options(stack, event->channel, &own), 0);
    return domus_channel_write(stack, event->channel, event->bytes);
}

static int count_closed_channel(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&closed, 1);
    return 0;
}

static const domus_on rows[] = {
    {&order_type, listen_as_ordered, 0}, {&stop_type, stop_listening_actor, 0}, {0}};
static const domus_behaviour echoing = {.name = "echoing",
                                        .kind = DOMUS_CHANNELS,
                                        .on = rows,
                                        .on_read = {echo_with_own_settings, 0},
                                        .on_close = {count_closed_channel, 0}};
static const domus_behaviour business = {.name = "business", .on = rows};

static domus_system *system_;

static domus_address start_system_with_actor(const domus_behaviour *behaviour)
{
    domus_config config = domt_config_of_threads(2);

    config.listener_count = 0;
    system_ = domt_start_system(&config);
    return domt_spawn(system_, 0, behaviour, NULL);
}

static void send_order_and_wait_until_done(domus_address to, const domus_type *type,
                                           const order *what)
{
    uint32_t before = atomic_load(&done);

    domt_send_notice(system_, to, type, what);
    DOMT_WAIT_FOR(10, atomic_load(&done) == before + 1);
}

static int let_actor_listen_at(domus_address actor, const char *at)
{
    send_order_and_wait_until_done(actor, &order_type, &(order){.at = at, .times = 1});
    return atomic_load(&result);
}

/* Connect to the endpoint `found`. Returns the socket, or -1 with errno. */
static int connect_to_found_endpoint(void)
{
    struct sockaddr_storage storage = {0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&storage;
    struct sockaddr_un *name = (struct sockaddr_un *)&storage;
    socklen_t size = sizeof *v4;
    int fd = socket(found.family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    storage.ss_family = found.family;
    if (found.family == AF_INET) {
        v4->sin_port = htons(found.port);
        memcpy(&v4->sin_addr, found.bytes, 4);
    } else {
        memcpy(name->sun_path, found.bytes, found.size);
        size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + found.size);
    }
    if (connect(fd, (struct sockaddr *)&storage, size) == 0)
        return fd;
    int error = errno;
    (void)close(fd);
    errno = error;
    return -1;
}

static void check_byte_is_echoed(int fd)
{
    char byte = 'x';

    ck_assert_int_eq(send(fd, &byte, 1, 0), 1);
    byte = 0;
    ck_assert_int_eq(recv(fd, &byte, 1, 0), 1);
    ck_assert_int_eq(byte, 'x');
}

/* Connect to the endpoint `found`, and check that a byte is echoed. Returns the connection. */
static int connect_and_check_echo(void)
{
    int fd = connect_to_found_endpoint();

    ck_assert_int_ge(fd, 0);
    check_byte_is_echoed(fd);
    return fd;
}

DOMT_TEST(listener_is_opened_and_closed_while_its_channels_stay)
{
    domus_address actor = start_system_with_actor(&echoing);

    ck_assert_int_eq(let_actor_listen_at(actor, "127.0.0.1:0"), 0);
    ck_assert_uint_ne(found.port, 0);
    int fd = connect_and_check_echo();
    send_order_and_wait_until_done(actor, &stop_type, NULL);
    ck_assert_int_eq(atomic_load(&result), 0);
    int again = 0;
    DOMT_WAIT_FOR(10, (again = connect_to_found_endpoint()) < 0 || close(again) != 0);
    ck_assert_int_eq(errno, ECONNREFUSED);
    check_byte_is_echoed(fd);
    /* the same actor listens a second time */
    ck_assert_int_eq(let_actor_listen_at(actor, "127.0.0.1:0"), 0);
    again = connect_and_check_echo();
    check_byte_is_echoed(fd);
    (void)close(fd);
    (void)close(again);
    domt_end_system(system_);
}

static domus_listener_profile profile_of_own_listener(void)
{
    domus_listener_profile profile;

    /* The configuration has no listener, so listener number 0 is the one of the actor. */
    ck_assert_int_eq(domus_system_listener(system_, 0, &profile), 0);
    return profile;
}

DOMT_TEST(listeners_of_actors_are_counted_together)
{
    domus_listener_profile profile;
    domus_address actor = start_system_with_actor(&echoing);
    int fds[2];

    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(let_actor_listen_at(actor, "127.0.0.1:0"), 0);
        fds[i] = connect_to_found_endpoint();
        check_byte_is_echoed(fds[i]);
    }
    profile = profile_of_own_listener();
    ck_assert_str_eq(profile.name, "");
    ck_assert_uint_eq(profile.accepted, 2);
    ck_assert_uint_eq(profile.open, 2);
    close(fds[0]);
    DOMT_WAIT_FOR(10, profile_of_own_listener().open == 1);
    profile = profile_of_own_listener();
    ck_assert_uint_eq(profile.closed, 1);
    ck_assert_uint_eq(profile.reset, 0);
    ck_assert_uint_eq(profile.refused, 0);
    ck_assert_int_eq(domus_system_listener(system_, 1, &profile), -EINVAL);
    close(fds[1]);
    domt_end_system(system_);
}

DOMT_TEST(unix_sockets_are_listened_at_by_path_and_by_name)
{
    char at[2][64];

    (void)snprintf(at[0], sizeof at[0], "unix:@domus-listen-%d", (int)getpid());
    (void)snprintf(at[1], sizeof at[1], "unix:/tmp/domus-listen-%d", (int)getpid());
    domus_address actor = start_system_with_actor(&echoing);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(let_actor_listen_at(actor, at[i]), 0);
        int fd = connect_and_check_echo();
        (void)close(fd);
        ck_assert_int_eq(let_actor_listen_at(actor, at[i]), -EADDRINUSE);
    }
    DOMT_WAIT_FOR(10, atomic_load(&closed) == 2);
    domt_end_system(system_);
    /* remove the path of the Unix socket, which stays when the listener ends (domus/listen.h) */
    ck_assert_int_eq(unlink(at[1] + strlen("unix:")), 0);
}

DOMT_TEST(port_is_shared_only_if_both_listeners_want_that)
{
    domus_address first = start_system_with_actor(&echoing);
    domus_address second = domt_spawn(system_, 1, &echoing, NULL);
    char at[32];

    send_order_and_wait_until_done(first, &order_type,
                                   &(order){.at = "127.0.0.1:0", .shares_port = true, .times = 1});
    ck_assert_int_eq(atomic_load(&result), 0);
    (void)snprintf(at, sizeof at, "127.0.0.1:%u", found.port);
    ck_assert_int_eq(let_actor_listen_at(second, at), -EADDRINUSE);
    send_order_and_wait_until_done(second, &order_type,
                                   &(order){.at = at, .shares_port = true, .times = 1});
    ck_assert_int_eq(atomic_load(&result), 0);
    for (int i = 0; i < 64; i++) {
        int fd = connect_and_check_echo();
        (void)close(fd);
    }
    for (uint32_t i = 0; i < 2; i++) /* both listeners must have got connections from the kernel */
        ck_assert_uint_ne(domt_profile_of_thread(system_, i).received_bytes, 0);
    domt_end_system(system_);
}

/* The listener's actor is stopped before it was mounted, so only the stop can close its socket and
 * free the listener. */
DOMT_TEST(listener_that_is_stopped_at_once_leaves_nothing)
{
    uint32_t before = domt_count_directory_entries("/proc/self/fd");

    domus_address actor = start_system_with_actor(&echoing);
    uint32_t running = domt_count_directory_entries("/proc/self/fd");
    /* in all rounds together, more listeners are made than a thread has places for */
    for (int i = 0; i < 20; i++) {
        send_order_and_wait_until_done(
            actor, &order_type, &(order){.at = "127.0.0.1:0", .stops_at_once = true, .times = 10});
        ck_assert_int_eq(atomic_load(&result), 0);
        DOMT_WAIT_FOR(10, domt_count_directory_entries("/proc/self/fd") == running);
    }
    domt_end_system(system_);
    ck_assert_uint_eq(domt_count_directory_entries("/proc/self/fd"), before);
}

DOMT_TEST(thread_has_at_most_64_listeners_and_frees_places)
{
    domus_address actor = start_system_with_actor(&echoing);

    send_order_and_wait_until_done(actor, &order_type, &(order){.at = "127.0.0.1:0", .times = 64});
    ck_assert_int_eq(atomic_load(&result), 0);
    /* the last listener for which there is room serves connections */
    int fd = connect_and_check_echo();
    ck_assert_int_eq(let_actor_listen_at(actor, "127.0.0.1:0"), -EMFILE);
    send_order_and_wait_until_done(actor, &stop_type, NULL);
    DOMT_WAIT_FOR(10, let_actor_listen_at(actor, "127.0.0.1:0") == 0);
    (void)close(fd);
    domt_end_system(system_); /* the stop of the system must close all listeners */
}

DOMT_TEST(actor_that_may_not_listen_gets_an_error)
{
    domus_address actor = start_system_with_actor(&business);

    ck_assert_int_eq(let_actor_listen_at(actor, "127.0.0.1:0"), -EINVAL);
    domus_address other = domt_spawn(system_, 1, &echoing, NULL);
    ck_assert_int_eq(let_actor_listen_at(other, "192.0.2.1:0"), -EADDRNOTAVAIL);
    ck_assert_int_eq(let_actor_listen_at(other, "unix:/nowhere/at/all"), -ENOENT);
    domt_end_system(system_);
}

/* A listener is a child of the actor that has made it: it ends with its owner, and its channels
 * end, too. */
DOMT_TEST(listener_ends_with_its_owner)
{
    domus_address actor = start_system_with_actor(&echoing);

    ck_assert_int_eq(let_actor_listen_at(actor, "127.0.0.1:0"), 0);
    int fd = connect_and_check_echo();
    ck_assert_int_eq(domus_outside_stop(system_, actor), 0);
    char byte;
    ck_assert_int_eq(recv(fd, &byte, 1, 0), 0);
    (void)close(fd);
    DOMT_WAIT_FOR(10, atomic_load(&closed) == 1);
    int again = 0;
    DOMT_WAIT_FOR(10, (again = connect_to_found_endpoint()) < 0 || close(again) != 0);
    domt_end_system(system_);
}

DOMT_SUITE(60)
