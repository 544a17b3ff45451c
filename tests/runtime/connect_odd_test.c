/* Connects that meet odd things: themselves, Unix listeners without room, and limits that are those
 * of strangers. The peers are sockets of the test. */
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

typedef struct order {
    char to[64];
    domus_endpoint local;
    uint64_t first_byte_ns;
} order;

static const domus_type order_type = {.name = "order", .size = sizeof(order)};
static const domus_type touch_type = {.name = "touch"};
static const domus_type listen_type = {.name = "listen"};
static _Atomic int result;
static _Atomic uint32_t done, closed_;
static domus_channel *channel; /* of the last connection; read after `done` */
static domus_endpoint served;

static int line_open(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    channel = event->channel;
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
    .on_open = {line_open, 0},
    .on_read = {line_read, 0},
    .on_close = {line_close, 0},
};

static int on_connected(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_store(&result, answer->error);
    atomic_fetch_add(&done, 1);
    return 0;
}

static int on_order(domus_stack *stack, void *self, const void *payload)
{
    order now;

    memcpy(&now, payload, sizeof now);
    const domus_channel_options settings = {.first_byte_timeout_ns = now.first_byte_ns};
    const domus_connect_options options = {
        .behaviour = &line,
        .local = now.local,
        .channel = now.first_byte_ns != 0 ? &settings : NULL,
    };
    return domus_connect(stack, now.to, &options, on_connected);
}

static int on_touch(domus_stack *stack, void *self, const void *payload)
{
    atomic_store(&result, domus_channel_reset(stack, channel, -EIO));
    atomic_fetch_add(&done, 1);
    return 0;
}

static int on_listen(domus_stack *stack, void *self, const void *payload)
{
    domus_endpoint at;

    ck_assert_int_eq(domus_endpoint_parse("127.0.0.1:0", &at), 0);
    ck_assert_int_eq(domus_listen(stack, &at, NULL, NULL, &served), 0);
    atomic_fetch_add(&done, 1);
    return 0;
}

static const domus_on rows[] = {{&order_type, on_order, 0},
                                {&touch_type, on_touch, 0},
                                {&listen_type, on_listen, 0},
                                {NULL, NULL, 0}};
static const domus_behaviour client = {
    .name = "client", .kind = DOMUS_CHANNELS, .on = rows, .channel = &line};
static const domus_behaviour business = {.name = "business", .on = rows};

static domus_system *system_;

static void tell(domus_address actor, const domus_type *type, const void *payload)
{
    uint32_t before = atomic_load(&done);

    domt_notice(system_, actor, type, payload);
    DOMT_WAIT_FOR(10, atomic_load(&done) == before + 1);
}

static int connect_with(domus_address actor, const order *what)
{
    tell(actor, &order_type, what);
    return atomic_load(&result);
}

/* Returns a listener on loopback; `ret_to` names it. */
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
    domus_config config = domt_config(1);
    order what = {.to = ""};

    (void)close(open_listener(what.to)); /* a port on which no socket listens */
    config.listener_count = 0;
    system_ = domt_start(&config);
    ck_assert_int_eq(domus_endpoint_parse(what.to, &what.local), 0);
    ck_assert_int_eq(connect_with(domt_spawn(system_, 0, &client, NULL), &what), -ECONNREFUSED);
    ck_assert_ptr_null(channel);
    domt_end(system_);
}

DOMT_TEST(unix_listener_without_room_is_waited_for)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, 60, "domus-odd-%d", (int)getpid());
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int filler = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    domus_config config = domt_config(1);
    order what = {.to = ""};

    config.listener_count = 0;
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&name, size), 0);
    ck_assert_int_eq(listen(listener, 0), 0);
    ck_assert_int_eq(connect(filler, (struct sockaddr *)&name, size), 0);
    system_ = domt_start(&config);
    (void)snprintf(what.to, sizeof what.to, "unix:@domus-odd-%d", (int)getpid());
    domt_notice(system_, domt_spawn(system_, 0, &business, NULL), &order_type, &what);
    DOMT_WAIT_FOR(10, domt_profile(system_, 0).connects == 1);
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
    domt_end(system_);
}

/* Returns how many descriptors of this process are O_NONBLOCK. */
static uint32_t count_nonblocking(void)
{
    uint32_t count = 0;

    for (int fd = 3; fd < 256; fd++) {
        int flags = fcntl(fd, F_GETFL);
        count += flags >= 0 && (flags & O_NONBLOCK) != 0;
    }
    return count;
}

DOMT_TEST(connection_is_no_stranger)
{
    domus_config config = domt_config(1);
    order what = {.to = ""};
    int listener = open_listener(what.to);
    int ends[4];

    config.listener_count = 0;
    config.channel.connections_max = 1;
    config.connection.first_byte_timeout_ns = 400 * DOMT_MS;
    system_ = domt_start(&config);
    uint32_t nonblocking = count_nonblocking();
    domus_address actor = domt_spawn(system_, 0, &client, NULL);
    domus_address state = domt_spawn(system_, 0, &business, NULL);
    for (uint32_t i = 0; i < 3; i++) { /* more than strangers may have */
        ck_assert_int_eq(connect_with(i == 0 ? state : actor, &what), 0);
        ends[i] = accept(listener, NULL, NULL);
        if (i == 0) {
            tell(state, &touch_type, NULL);
            ck_assert_int_eq(atomic_load(&result), -EPERM);
        }
    }
    ck_assert_uint_eq(count_nonblocking(), nonblocking);
    domt_pause_ns(500 * DOMT_MS);
    ck_assert_uint_eq(atomic_load(&closed_), 0); /* though no peer has sent a byte */
    what.first_byte_ns = 20 * DOMT_MS;
    ck_assert_int_eq(connect_with(actor, &what), 0);
    ends[3] = accept(listener, NULL, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&closed_) == 1);

    tell(actor, &listen_type, NULL); /* a stranger still finds a place */
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
    domt_end(system_);
}

DOMT_SUITE(60)
