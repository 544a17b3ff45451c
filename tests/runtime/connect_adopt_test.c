/* Sockets that were made elsewhere become channels of channels actors and of state actors. */
#include "tests/runtime/running.h"

#include <domus/connect.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const domus_type adopt_type = {.name = "adopt", .size = sizeof(int)};
static _Atomic int result;
static _Atomic uint32_t done, mounted, opened, closed_;
static domus_address channel; /* read after `done` */

static int line_mount(domus_stack *stack, void *self)
{
    *(uint32_t *)self = 5;
    atomic_fetch_add(&mounted, 1);
    return 0;
}

static int line_open(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    ck_assert_uint_eq(*(uint32_t *)self, 5);
    channel = domus_channel_address(event->channel);
    ck_assert_ptr_eq(channel.house, domus_self(stack).house);
    atomic_fetch_add(&opened, 1);
    return 0;
}

static int line_read(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    return domus_channel_write(stack, event->channel, event->bytes);
}

static int line_close(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&closed_, 1);
    return 0;
}

static const domus_behaviour line = {
    .name = "line",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(uint32_t),
    .on_mount = line_mount,
    .on_open = {line_open, 0},
    .on_read = {line_read, 0},
    .on_close = {line_close, 0},
};

static int on_adopt(domus_stack *stack, void *self, const void *payload)
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

static const domus_on rows[] = {{&adopt_type, on_adopt, 0}, {NULL, NULL, 0}};
static const domus_behaviour client = {.name = "client", .kind = DOMUS_CHANNELS, .on = rows};
static const domus_behaviour business = {.name = "business", .on = rows};
static const domus_behaviour *const kinds[] = {&client, &business};

static domus_system *system_;

static int adopt(domus_address actor, int fd)
{
    uint32_t before = atomic_load(&done);

    domt_notice(system_, actor, &adopt_type, &fd);
    DOMT_WAIT_FOR(10, atomic_load(&done) == before + 1);
    return atomic_load(&result);
}

static void begin(void)
{
    domus_config config = domt_config(2);

    config.listener_count = 0;
    system_ = domt_start(&config);
}

DOMT_TEST(sockets_become_channels)
{
    uint32_t before = domt_entries("/proc/self/fd");

    begin();
    uint32_t running = domt_entries("/proc/self/fd");
    for (uint32_t i = 0; i < 4; i++) {
        int ends[2];
        char byte = 'x';
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK * (i & 1), 0, ends), 0);
        ck_assert_int_eq(fcntl(ends[1], F_SETFL, 0), 0);
        domus_address actor = domt_spawn(system_, i / 2, kinds[i % 2], NULL);
        ck_assert_int_eq(adopt(actor, ends[0]), 0);
        DOMT_WAIT_FOR(10, atomic_load(&opened) == i + 1);
        ck_assert_uint_eq(atomic_load(&mounted), i + 1);
        ck_assert_int_eq(fcntl(ends[0], F_GETFL) & O_NONBLOCK, 0);
        ck_assert_int_eq(send(ends[1], &byte, 1, 0), 1);
        ck_assert_int_eq(recv(ends[1], &byte, 1, 0), 1);
        if (i % 2 == 0)
            ck_assert_int_eq(adopt(actor, ends[0]), -EALREADY);
        ck_assert_int_eq(domus_outside_stop(system_, actor), 0); /* it is a child */
        ck_assert_int_eq(recv(ends[1], &byte, 1, 0), 0);
        (void)close(ends[1]);
        DOMT_WAIT_FOR(10, atomic_load(&closed_) == i + 1);
        DOMT_WAIT_FOR(10, domt_entries("/proc/self/fd") == running);
    }
    domt_end(system_);
    ck_assert_uint_eq(domt_entries("/proc/self/fd"), before);
}

DOMT_TEST(other_descriptors_are_refused_and_stay_open)
{
    int pipes[2], datagrams[2], ends[2];
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fresh = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    begin();
    ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, datagrams), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    for (uint32_t i = 0; i < 2; i++) {
        domus_address actor = domt_spawn(system_, 0, kinds[i], NULL);
        ck_assert_int_eq(adopt(actor, -1), -EBADF);
        ck_assert_int_eq(adopt(actor, pipes[0]), -ENOTSOCK);
        ck_assert_int_eq(adopt(actor, datagrams[0]), -EINVAL);
        ck_assert_int_eq(adopt(actor, listener), -EINVAL);
        ck_assert_int_eq(adopt(actor, fresh), -ENOTCONN);
    }
    const int all[] = {pipes[0], pipes[1], datagrams[0], datagrams[1], listener, fresh};
    for (uint32_t i = 0; i < sizeof all / sizeof all[0]; i++)
        ck_assert_int_eq(close(all[i]), 0);
    /* one that is left to a system that stops at once */
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ck_assert_int_eq(adopt(domt_spawn(system_, 0, &business, NULL), ends[0]), 0);
    domt_end(system_);
    char byte;
    ck_assert_int_eq(recv(ends[1], &byte, 1, 0), 0);
    (void)close(ends[1]);
}

/* The fourth socket is refused; that of a state actor is closed, because its call has returned. */
DOMT_TEST(sockets_count_as_connections)
{
    domus_config config = domt_config(1);
    int ends[8][2];
    char byte;

    config.listener_count = 0;
    config.connect.connections_max = 3;
    system_ = domt_start(&config);
    for (uint32_t kind = 0; kind < 2; kind++) {
        domus_address actor = domt_spawn(system_, 0, kinds[kind], NULL);
        for (uint32_t i = 0; i < 4; i++) {
            int *pair = ends[kind * 4 + i];
            ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
            int expected = kind == 0 && i == 3 ? -ENOBUFS : 0;
            ck_assert_int_eq(adopt(actor, pair[0]), expected);
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
    domt_end(system_);
}

DOMT_SUITE(60)
