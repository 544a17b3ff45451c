/* Settings of listeners: wrong options are refused, a channel can read the settings of its
 * listener, and Unix sockets have a name or a path. (settings_kit_test.c tests the effect of the
 * options.) */
#include "tests/runtime/running.h"
#include "tests/support/crowd.h"

#include <domus/listen.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The order by which a test lets an actor listen with options. */
typedef struct order {
    domus_channel_options options;
    bool has_options;
} order;

static const domus_type order_type = {.name = "order", .size = sizeof(order)};

static _Atomic int result;
static _Atomic uint32_t done;
static char complaint[160];
/* address of the last listener; the test reads it once `done` is set */
static domus_address listener;
static domus_endpoint found;
static pthread_mutex_t told = PTHREAD_MUTEX_INITIALIZER; /* guards the three variables below it */
/* address of the listener of the channel that has read last */
static domus_address its_listener;
static char its_listener_name[64];
static uint32_t its_thread;

static int listen_as_ordered(domus_stack *stack, void *self, const void *payload)
{
    order now;
    domus_endpoint at;

    memcpy(&now, payload, sizeof now);
    ck_assert_int_eq(domus_endpoint_parse("127.0.0.1:0", &at), 0);
    const domus_listen_options options = {.name = "front",
                                          .channel = now.has_options ? &now.options : NULL};
    atomic_store(&result, domus_listen(stack, &at, &options, &listener, &found));
    complaint[0] = '\0';
    ck_assert_int_eq(
        domus_channel_options_check(stack, &now.options, complaint, sizeof complaint) == 0,
        complaint[0] == '\0');
    atomic_fetch_add(&done, 1);
    return 0;
}

static int echo_and_record_listener(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    const char *name = "";
    domus_address of;

    ck_assert_int_eq(domus_channel_listener(event->channel, &of, &name), 0);
    pthread_mutex_lock(&told);
    its_listener = of;
    (void)snprintf(its_listener_name, sizeof its_listener_name, "%s", name);
    its_thread = domus_channel_thread(event->channel);
    pthread_mutex_unlock(&told);
    return domus_channel_write(stack, event->channel, event->bytes);
}

static const domus_on rows[] = {{&order_type, listen_as_ordered, 0}, {0}};
static const domus_behaviour echoing = {.name = "echoing",
                                        .kind = DOMUS_CHANNELS,
                                        .on = rows,
                                        .on_read = {echo_and_record_listener, 0}};

static domus_system *system_;

static void send_order_and_wait_until_done(domus_address to, const domus_type *type,
                                           const void *what)
{
    uint32_t before = atomic_load(&done);
    domt_send_notice(system_, to, type, what);
    DOMT_WAIT_FOR(10, atomic_load(&done) == before + 1);
}

static void check_byte_is_echoed(int fd)
{
    char byte = 'x';
    ck_assert_int_eq(send(fd, &byte, 1, 0), 1);
    byte = 0;
    ssize_t got = recv(fd, &byte, 1, 0);
    ck_assert_msg(got == 1, "recv: %zd, %s", got, strerror(errno));
    ck_assert_int_eq(byte, 'x');
}

DOMT_TEST(wrong_listen_option_is_refused_and_named)
{
    static const struct {
        domus_channel_options options;
        const char *complaint;
    } cases[] = {
        {{.idle_timeout_ns = 1}, "channel.idleTimeout: must be 0 or 10ms..8760h, is 1ns"},
        {{.send_max_bytes = 5},
         "channel.sendMax: must be at least channel.sendHigh (256KiB), is 5B"},
        {{.linger_ns = DOMUS_NONE}, "channel.linger: must be 1ms..1h, is 0"},
    };

    system_ = domt_start_system_of_threads(1);
    domus_address actor = domt_spawn(system_, 0, &echoing, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        send_order_and_wait_until_done(actor, &order_type,
                                       &(order){.has_options = true, .options = cases[i].options});
        ck_assert_int_eq(atomic_load(&result), -EINVAL);
        ck_assert_str_eq(complaint, cases[i].complaint);
    }
    domt_end_system(system_);
}

DOMT_TEST(a_channel_tells_its_listener_and_its_thread)
{
    system_ = domt_start_system_of_threads(2);
    domus_address actor = domt_spawn(system_, 1, &echoing, NULL);
    send_order_and_wait_until_done(actor, &order_type, &(order){.has_options = false});
    domus_address other = listener;
    send_order_and_wait_until_done(actor, &order_type, &(order){.has_options = false});
    int fd = domt_connect_to_port(found.port);
    check_byte_is_echoed(fd);
    pthread_mutex_lock(&told);
    ck_assert_ptr_eq(its_listener.house, listener.house);
    ck_assert_uint_eq(its_listener.lease, listener.lease);
    ck_assert(its_listener.house != other.house);
    ck_assert_str_eq(its_listener_name, "front");
    ck_assert_uint_eq(its_thread, 1);
    pthread_mutex_unlock(&told);
    close(fd);
    domt_end_system(system_);
}

/* Serve an echo at a Unix socket, and check it. Returns the result of domus_serve(). */
static int result_of_serving_at(const char *at)
{
    const domus_listener_config one = {.name = "local", .address = at, .backlog = 16};
    domus_config config = domt_config_of_threads(1);
    domus_endpoint endpoint;
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    uint16_t port = 1;

    config.listeners = &one;
    config.listener_count = 1;
    system_ = domt_start_system(&config);
    int served = domus_serve(system_, "local", &echoing, NULL, &port);
    if (served == 0) {
        ck_assert_uint_eq(port, 0);
        ck_assert_int_eq(domus_endpoint_parse(at, &endpoint), 0);
        memcpy(name.sun_path, endpoint.bytes, endpoint.size);
        socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + endpoint.size);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(connect(fd, (struct sockaddr *)&name, size), 0);
        check_byte_is_echoed(fd);
        pthread_mutex_lock(&told);
        ck_assert_str_eq(its_listener_name, "local");
        pthread_mutex_unlock(&told);
        close(fd);
    }
    domt_end_system(system_);
    return served;
}

/* The path of a Unix socket stays when a service ends. The next service takes the path over, but
 * not from a service that still lives. */
DOMT_TEST(configuration_names_unix_sockets)
{
    char at[2][64];

    (void)snprintf(at[0], sizeof at[0], "unix:@domus-settings-%d", (int)getpid());
    (void)snprintf(at[1], sizeof at[1], "unix:/tmp/domus-settings-%d", (int)getpid());
    const char *path = at[1] + strlen("unix:");
    ck_assert_int_eq(result_of_serving_at(at[0]), 0);
    ck_assert_int_eq(result_of_serving_at(at[1]), 0);
    ck_assert_int_eq(access(path, F_OK), 0);
    ck_assert_int_eq(result_of_serving_at(at[1]), 0);
    ck_assert_int_eq(unlink(path), 0);
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    memcpy(name.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    ck_assert_int_eq(result_of_serving_at(at[1]), -EADDRINUSE);
    close(fd);
    ck_assert_int_eq(unlink(path), 0);

    /* at this path there is a file that is no socket */
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(result_of_serving_at(at[1]), -EADDRINUSE);
    ck_assert_int_eq(access(path, F_OK), 0);
    close(fd);
    (void)unlink(path);
}

DOMT_SUITE(60)
