/* Connections with odd peers: sockets that were made elsewhere become channels of channels actors
 * and of state actors; a connect reaches its own socket; a Unix listener has no room; and the
 * limits of connections. */
#include "tests/runtime/running.h"

#include <domus/connect.h>
#include <domus/listen.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const domus_type adopt_type = {.name = "adopt", .size = sizeof(int)};
static _Atomic int result;
static _Atomic uint32_t done, mounted, opened, closed_;
/* channel of the last adopted socket; the test reads it once `done` is set */
static domus_address channel;

static int on_line_mount_set_state(domus_stack *stack, void *self)
{
    *(uint32_t *)self = 5;
    atomic_fetch_add(&mounted, 1);
    return 0;
}

static int on_line_open_check_and_count(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    ck_assert_uint_eq(*(uint32_t *)self, 5);
    channel = domus_channel_address(event->channel);
    ck_assert_ptr_eq(channel.house, domus_self(stack).house);
    atomic_fetch_add(&opened, 1);
    return 0;
}

static int on_line_close_count(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&closed_, 1);
    return 0;
}

static const domus_behaviour line = {.name = "line",
                                     .kind = DOMUS_CHANNELS,
                                     .state_size = sizeof(uint32_t),
                                     .on_mount = on_line_mount_set_state,
                                     .on_open = {on_line_open_check_and_count, 0},
                                     .on_read = {domt_on_read_echo, 0},
                                     .on_close = {on_line_close_count, 0}};

static int on_adopt_take_over_socket(domus_stack *stack, void *self, const void *payload)
{
    const domus_connect_options options = {.behaviour = &line};
    domus_address address = {NULL, 0};
    int fd;

    memcpy(&fd, payload, sizeof fd);
    atomic_store(&result, domus_channel_adopt_fd(stack, fd, &options, &address));
    ck_assert_int_eq(address.house != NULL, atomic_load(&result) == 0);
    atomic_fetch_add(&done, 1);
    return 0;
}

static const domus_on rows[] = {{&adopt_type, on_adopt_take_over_socket, 0}, {0}};
static const domus_behaviour client = {.name = "client", .kind = DOMUS_CHANNELS, .on = rows};
static const domus_behaviour business = {.name = "business", .on = rows};
static const domus_behaviour *const kinds[] = {&client, &business};

static domus_system *system_;

static int let_actor_adopt_socket(domus_address actor, int fd)
{
    uint32_t before = atomic_load(&done);

    domt_send_notice(system_, actor, &adopt_type, &fd);
    DOMT_WAIT_FOR(10, atomic_load(&done) == before + 1);
    return atomic_load(&result);
}

static void start_system_without_listener(void)
{
    domus_config config = domt_config_of_threads(2);

    config.listener_count = 0;
    system_ = domt_start_system(&config);
}

DOMT_TEST(adopted_sockets_become_channels)
{
    uint32_t before = domt_count_directory_entries("/proc/self/fd");

    start_system_without_listener();
    uint32_t running = domt_count_directory_entries("/proc/self/fd");
    for (uint32_t i = 0; i < 4; i++) {
        int ends[2];
        char byte = 'x';
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK * (i & 1), 0, ends), 0);
        ck_assert_int_eq(fcntl(ends[1], F_SETFL, 0), 0);
        domus_address actor = domt_spawn(system_, i / 2, kinds[i % 2], NULL);
        ck_assert_int_eq(let_actor_adopt_socket(actor, ends[0]), 0);
        DOMT_WAIT_FOR(10, atomic_load(&opened) == i + 1);
        ck_assert_uint_eq(atomic_load(&mounted), i + 1);
        ck_assert_int_eq(fcntl(ends[0], F_GETFL) & O_NONBLOCK, 0);
        ck_assert_int_eq(send(ends[1], &byte, 1, 0), 1);
        ck_assert_int_eq(recv(ends[1], &byte, 1, 0), 1);
        if (i % 2 == 0)
            ck_assert_int_eq(let_actor_adopt_socket(actor, ends[0]), -EALREADY);
        /* the channel of the socket is a child of the actor, so it ends with the actor */
        ck_assert_int_eq(domus_outside_stop(system_, actor), 0);
        ck_assert_int_eq(recv(ends[1], &byte, 1, 0), 0);
        (void)close(ends[1]);
        DOMT_WAIT_FOR(10, atomic_load(&closed_) == i + 1);
        DOMT_WAIT_FOR(10, domt_count_directory_entries("/proc/self/fd") == running);
    }
    domt_end_system(system_);
    ck_assert_uint_eq(domt_count_directory_entries("/proc/self/fd"), before);
}

DOMT_TEST(descriptors_of_other_kinds_are_refused)
{
    int pipes[2], datagrams[2], ends[2];
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fresh = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    start_system_without_listener();
    ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, datagrams), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    for (uint32_t i = 0; i < 2; i++) {
        domus_address actor = domt_spawn(system_, 0, kinds[i], NULL);
        ck_assert_int_eq(let_actor_adopt_socket(actor, -1), -EBADF);
        ck_assert_int_eq(let_actor_adopt_socket(actor, pipes[0]), -ENOTSOCK);
        ck_assert_int_eq(let_actor_adopt_socket(actor, datagrams[0]), -EINVAL);
        ck_assert_int_eq(let_actor_adopt_socket(actor, listener), -EINVAL);
        ck_assert_int_eq(let_actor_adopt_socket(actor, fresh), -ENOTCONN);
    }
    const int all[] = {pipes[0], pipes[1], datagrams[0], datagrams[1], listener, fresh};
    for (uint32_t i = 0; i < sizeof all / sizeof all[0]; i++)
        ck_assert_int_eq(close(all[i]), 0);
    /* this socket is given to a system that stops at once, and closes it */
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ck_assert_int_eq(let_actor_adopt_socket(domt_spawn(system_, 0, &business, NULL), ends[0]), 0);
    domt_end_system(system_);
    char byte;
    ck_assert_int_eq(recv(ends[1], &byte, 1, 0), 0);
    (void)close(ends[1]);
}

/* With a limit of three connections, the fourth socket is refused. A state actor's socket is closed
 * then, because the actor's call has already returned. */
DOMT_TEST(adopted_sockets_count_as_connections)
{
    domus_config config = domt_config_of_threads(1);
    int ends[8][2];
    char byte;

    config.listener_count = 0;
    config.connect.connections_max = 3;
    system_ = domt_start_system(&config);
    for (uint32_t kind = 0; kind < 2; kind++) {
        domus_address actor = domt_spawn(system_, 0, kinds[kind], NULL);
        for (uint32_t i = 0; i < 4; i++) {
            int *pair = ends[kind * 4 + i];
            ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
            int expected = kind == 0 && i == 3 ? -ENOBUFS : 0;
            ck_assert_int_eq(let_actor_adopt_socket(actor, pair[0]), expected);
            if (i < 3)
                DOMT_WAIT_FOR(10, atomic_load(&opened) == kind * 3 + i + 1);
        }
        int *last = ends[kind * 4 + 3];
        if (kind == 0)
            ck_assert_int_eq(close(last[0]), 0);
        ck_assert_int_eq(recv(last[1], &byte, 1, 0), 0);
        ck_assert_int_eq(domus_outside_stop(system_, actor), 0);
        DOMT_WAIT_FOR(10, atomic_load(&closed_) == (kind + 1) * 3);
        ck_assert_uint_eq(atomic_load(&opened), (kind + 1) * 3);
    }
    for (uint32_t i = 0; i < 8; i++)
        ck_assert_int_eq(close(ends[i][1]), 0);
    domt_end_system(system_);
}

/* --- odd peers -------------------------------------------------------------------------------- */

typedef struct order {
    char to[64];
    domus_endpoint local;
    uint64_t first_byte_ns;
} order;

static const domus_type order_type = {.name = "order", .size = sizeof(order)};
static const domus_type touch_type = {.name = "touch"};
static const domus_type listen_type = {.name = "listen"};
/* channel of the last connection; the test reads it once `done` is set */
static domus_channel *last_channel;
static domus_endpoint served;

static int record_opened_channel(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    last_channel = event->channel;
    return 0;
}

static const domus_behaviour noted = {.name = "line",
                                      .kind = DOMUS_CHANNELS,
                                      .on_open = {record_opened_channel, 0},
                                      .on_read = {domt_on_read_echo, 0},
                                      .on_close = {on_line_close_count, 0}};

static int record_result_of_connect(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_store(&result, answer->error);
    atomic_fetch_add(&done, 1);
    return 0;
}

static int connect_as_ordered(domus_stack *stack, void *self, const void *payload)
{
    order now;

    memcpy(&now, payload, sizeof now);
    const domus_channel_options settings = {.first_byte_timeout_ns = now.first_byte_ns};
    const domus_connect_options options = {.behaviour = &noted,
                                           .local = now.local,
                                           .channel = now.first_byte_ns != 0 ? &settings : NULL};
    return domus_connect(stack, now.to, &options, record_result_of_connect);
}

static int on_touch_reset_last_channel(domus_stack *stack, void *self, const void *payload)
{
    atomic_store(&result, domus_channel_reset(stack, last_channel, -EIO));
    atomic_fetch_add(&done, 1);
    return 0;
}

static int on_listen_listen_at_any_port(domus_stack *stack, void *self, const void *payload)
{
    domus_endpoint at;

    ck_assert_int_eq(domus_endpoint_parse("127.0.0.1:0", &at), 0);
    ck_assert_int_eq(domus_listen(stack, &at, NULL, NULL, &served), 0);
    atomic_fetch_add(&done, 1);
    return 0;
}

static const domus_on order_rows[] = {{&order_type, connect_as_ordered, 0},
                                      {&touch_type, on_touch_reset_last_channel, 0},
                                      {&listen_type, on_listen_listen_at_any_port, 0},
                                      {0}};
static const domus_behaviour order_client = {
    .name = "client", .kind = DOMUS_CHANNELS, .on = order_rows, .channel = &noted};
static const domus_behaviour order_business = {.name = "business", .on = order_rows};

static void send_notice_and_wait_until_done(domus_address actor, const domus_type *type,
                                            const void *payload)
{
    uint32_t before = atomic_load(&done);

    domt_send_notice(system_, actor, type, payload);
    DOMT_WAIT_FOR(10, atomic_load(&done) == before + 1);
}

static int let_actor_connect_as_ordered(domus_address actor, const order *what)
{
    send_notice_and_wait_until_done(actor, &order_type, what);
    return atomic_load(&result);
}

/* Returns a socket that listens on loopback, and writes its address as text to `ret_to`. */
static int open_listener(char ret_to[64])
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(fd, 64), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(ret_to, 64, "127.0.0.1:%u", ntohs(address.sin_port));
    return fd;
}

DOMT_TEST(connect_to_oneself_is_refused)
{
    domus_config config = domt_config_of_threads(1);
    order what = {.to = ""};

    /* the listener is closed, so no socket listens at its port */
    (void)close(open_listener(what.to));
    config.listener_count = 0;
    system_ = domt_start_system(&config);
    ck_assert_int_eq(domus_endpoint_parse(what.to, &what.local), 0);
    ck_assert_int_eq(
        let_actor_connect_as_ordered(domt_spawn(system_, 0, &order_client, NULL), &what),
        -ECONNREFUSED);
    ck_assert_ptr_null(last_channel);
    domt_end_system(system_);
}

DOMT_TEST(unix_listener_without_room_is_waited_for)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, 60, "domus-odd-%d", (int)getpid());
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int filler = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    domus_config config = domt_config_of_threads(1);
    order what = {.to = ""};

    config.listener_count = 0;
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&name, size), 0);
    ck_assert_int_eq(listen(listener, 0), 0);
    ck_assert_int_eq(connect(filler, (struct sockaddr *)&name, size), 0);
    system_ = domt_start_system(&config);
    (void)snprintf(what.to, sizeof what.to, "unix:@domus-odd-%d", (int)getpid());
    domt_send_notice(system_, domt_spawn(system_, 0, &order_business, NULL), &order_type, &what);
    DOMT_WAIT_FOR(10, domt_profile_of_thread(system_, 0).connects == 1);
    domt_pause_ns(40 * DOMT_MS);
    ck_assert_uint_eq(atomic_load(&done), 0);
    int first = accept(listener, NULL, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&done) == 1);
    ck_assert_int_eq(atomic_load(&result), 0);
    int second = accept(listener, NULL, NULL);
    ck_assert_int_ge(second, 0);
    (void)close(first);
    (void)close(second);
    (void)close(filler);
    (void)close(listener);
    domt_end_system(system_);
}

/* Returns how many of the descriptors 3 to 255 have the flag O_NONBLOCK. */
static uint32_t count_nonblocking_descriptors(void)
{
    uint32_t count = 0;

    for (int fd = 3; fd < 256; fd++) {
        int flags = fcntl(fd, F_GETFL);
        count += flags >= 0 && (flags & O_NONBLOCK) != 0;
    }
    return count;
}

DOMT_TEST(connections_made_by_this_side_escape_limits_of_peers)
{
    domus_config config = domt_config_of_threads(1);
    order what = {.to = ""};
    int listener = open_listener(what.to);
    int ends[4];

    config.listener_count = 0;
    config.channel.connections_max = 1;
    config.connection.first_byte_timeout_ns = 400 * DOMT_MS;
    system_ = domt_start_system(&config);
    uint32_t nonblocking = count_nonblocking_descriptors();
    domus_address actor = domt_spawn(system_, 0, &order_client, NULL);
    domus_address state = domt_spawn(system_, 0, &order_business, NULL);
    /* connections of this side may be more than the limit for peers */
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(let_actor_connect_as_ordered(i == 0 ? state : actor, &what), 0);
        ends[i] = accept(listener, NULL, NULL);
        if (i == 0) {
            send_notice_and_wait_until_done(state, &touch_type, NULL);
            ck_assert_int_eq(atomic_load(&result), -EPERM);
        }
    }
    ck_assert_uint_eq(count_nonblocking_descriptors(), nonblocking);
    domt_pause_ns(500 * DOMT_MS);
    /* no channel was closed, though no peer has sent a byte within the time for a first byte */
    ck_assert_uint_eq(atomic_load(&closed_), 0);
    what.first_byte_ns = 20 * DOMT_MS;
    ck_assert_int_eq(let_actor_connect_as_ordered(actor, &what), 0);
    ends[3] = accept(listener, NULL, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&closed_) == 1);

    /* a peer can still connect, because connections of this side do not count as its own */
    send_notice_and_wait_until_done(actor, &listen_type, NULL);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(served.port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int stranger = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char byte = 'x';
    ck_assert_int_eq(connect(stranger, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(send(stranger, &byte, 1, 0), 1);
    ck_assert_int_eq(recv(stranger, &byte, 1, 0), 1);
    (void)close(stranger);
    for (int i = 0; i < 4; i++)
        (void)close(ends[i]);
    (void)close(listener);
    DOMT_WAIT_FOR(10, atomic_load(&closed_) == 5);
    domt_end_system(system_);
}

DOMT_SUITE(60)
