/* A publication to connections over real sockets: a reader that takes nothing is skipped, one that
 * reads gets everything. The slow one has a full mailbox, on every thread, until it reads. Then a
 * conversation waits until bytes have left. */
#include "tests/runtime/running.h"

#include <arpa/inet.h>
#include <domus/await.h>

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE  16384u
#define ROUNDS 400u
#define KIB    1024u

static domus_address slow, good; /* the channels; written before `known` grows */
static _Atomic unsigned known;
static _Atomic uint64_t lines; /* that the two channels have handled */
static _Atomic unsigned rooms;
static _Atomic int refused; /* what the notice from the other thread returned */
static _Atomic int flushed; /* 1 + how the flush ended */

static const domus_type line_type = {.name = "line"};
static const domus_type publish_type = {.name = "publish"};
static const domus_type try_type = {.name = "try"};
static const domus_type flush_type = {.name = "flush"};

/* --- the connections -------------------------------------------------------------------------- */

static int on_open(domus_stack *stack, void *self, const void *payload)
{
    domus_group group;

    int error = domus_group_open(stack, "readers", &group);
    return error != 0 ? error : domus_group_join(stack, group);
}

/* A client says by its first byte which one it is. */
static int on_read(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    bool is_slow = *(const char *)domus_buffer_data(event->bytes) == 's';

    domus_buffer_free(event->bytes);
    *(is_slow ? &slow : &good) = domus_channel_address(event->channel);
    atomic_fetch_add(&known, 1);
    return 0;
}

static int on_line(domus_stack *stack, void *self, const void *payload)
{
    static const char bytes[PIECE];

    atomic_fetch_add(&lines, 1);
    return domus_channel_append(stack, domus_channel_running(stack), bytes, sizeof bytes);
}

DOMUS_SEQUENCE(wait_sent, char)
{
    DOMUS_BEGIN;
    DOMUS_AWAIT(domus_channel_flush(stack, domus_channel_running(stack), then));
    atomic_store(&flushed, 1 + answer->error);
    DOMUS_END;
}

static const domus_behaviour reader = {
    .name = "reader",
    .kind = DOMUS_CHANNELS,
    .on_open = {on_open, 0},
    .on_read = {on_read, 0},
    .on = (const domus_on[]){{&line_type, on_line, 0},
                             DOMUS_ON(&flush_type, wait_sent),
                             {NULL, NULL, 0}},
};

/* --- an actor on the other thread ------------------------------------------------------------- */

static int on_publish(domus_stack *stack, void *self, const void *payload)
{
    domus_group group;

    int error = domus_group_open(stack, "readers", &group);
    return error != 0 ? error : domus_publish(stack, group, &line_type, NULL);
}

static int on_try(domus_stack *stack, void *self, const void *payload)
{
    atomic_store(&refused, domus_notice(stack, slow, &line_type, NULL));
    return domus_watch_room(stack, slow, NULL);
}

static int on_room(domus_stack *stack, void *self, const void *payload)
{
    ck_assert_int_eq(((const domus_down *)payload)->reason, 0);
    atomic_fetch_add(&rooms, 1);
    return 0;
}

static const domus_behaviour publisher = {
    .name = "publisher",
    .on = (const domus_on[]){{&publish_type, on_publish, 0},
                             {&try_type, on_try, 0},
                             {&domus_room_type, on_room, 0},
                             {NULL, NULL, 0}},
};

/* --- the clients ------------------------------------------------------------------------------ */

/* Its window is small, so the kernel does not take much for a client that does not read. */
static int connect_as(char name, uint16_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int window = 16 * KIB;
    unsigned before = atomic_load(&known);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &window, sizeof window), 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(send(fd, &name, 1, 0), 1);
    DOMT_WAIT_FOR(30, atomic_load(&known) == before + 1);
    return fd;
}

static void read_some(int fd, size_t size)
{
    static char bytes[PIECE];

    for (size_t left = size; left != 0;) {
        ssize_t got = recv(fd, bytes, left < sizeof bytes ? left : sizeof bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        ck_assert_msg(got > 0, "%zu bytes are missing: %d, errno %d", left, (int)got, errno);
        left -= (size_t)got;
    }
}

DOMT_TEST(slow_reader_is_skipped_and_holds_up_nobody)
{
    const domus_listener_config listener = {
        .name = "readers", .address = "127.0.0.1:0", .backlog = 16};
    domus_config config = domt_config(2);
    uint16_t port;
    char byte;

    atomic_store(&known, 0);
    atomic_store(&rooms, 0);
    atomic_store(&flushed, 0);
    atomic_store(&lines, 0);
    config.listeners = &listener;
    config.listener_count = 1;
    config.channel.send_high_bytes = 64 * KIB;
    config.channel.send_low_bytes = 16 * KIB;
    domus_system *system = domt_start(&config);
    domus_address other = domt_spawn(system, 1, &publisher, NULL);
    ck_assert_int_eq(domus_serve(system, "readers", &reader, NULL, &port), 0);
    int slow_fd = connect_as('s', port);
    int good_fd = connect_as('g', port);

    for (uint32_t i = 0; i < ROUNDS; i++) {
        domt_notice(system, other, &publish_type, NULL);
        read_some(good_fd, PIECE);
    }
    uint64_t skipped; /* the slow one may be on the other thread, and a bit late */
    DOMT_WAIT_FOR(30, (skipped = domt_profile_all(system).refusals) + atomic_load(&lines) ==
                          2 * (uint64_t)ROUNDS);
    ck_assert_uint_gt(skipped, ROUNDS / 2);
    domt_notice(system, other, &try_type, NULL);
    DOMT_WAIT_FOR(30, atomic_load(&refused) == -ENOBUFS);
    ck_assert_uint_eq(atomic_load(&rooms), 0);

    read_some(slow_fd, (ROUNDS - (size_t)skipped) * PIECE); /* everything that was not refused */
    DOMT_WAIT_FOR(30, atomic_load(&rooms) == 1);
    ck_assert_int_eq(recv(slow_fd, &byte, 1, MSG_DONTWAIT), -1);

    domt_notice(system, slow, &line_type, NULL);
    domt_notice(system, slow, &flush_type, NULL);
    DOMT_WAIT_FOR(30, atomic_load(&flushed) == 1);
    close(slow_fd);
    close(good_fd);
    domt_end(system);
}

DOMT_SUITE(60)
