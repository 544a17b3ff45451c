/* One slice for many channels: what is encoded once is published to a group of connections, and
 * every peer gets exactly its bytes, while they lie in memory once. */
#include "tests/runtime/running.h"
#include "tests/support/crowd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PEERS 100u
#define BYTES 150000u

static domus_group news; /* written before the system serves */
static _Atomic unsigned joined;
static _Atomic unsigned refused;
static domus_address stranger;

static int come(domus_stack *stack, void *self, const void *payload)
{
    int error = domus_group_join(stack, news);
    atomic_fetch_add(&joined, error == 0);
    return error;
}

static int tell(domus_stack *stack, void *self, const void *payload)
{
    domus_slice slice;

    int error = domus_slice_keep(*(const domus_slice *)payload, &slice);
    if (error != 0)
        return error;
    return domus_channel_write_slice(stack, domus_channel_running(stack), slice);
}

static const domus_behaviour peer = {
    .name = "peer",
    .kind = DOMUS_CHANNELS,
    .on = (const domus_on[]){{&domus_slice_type, tell, 0}, {NULL, NULL, 0}},
    .on_open = {come, 0},
};

/* An actor that is neither the channel nor its owner. */
static const domus_type try_type = {.name = "try", .size = sizeof(domus_channel *)};

static int try_it(domus_stack *stack, void *self, const void *payload)
{
    domus_slice slice;

    ck_assert_int_eq(domus_slice_copy("x", 1, &slice), 0);
    atomic_fetch_add(&refused, domus_channel_write_slice(stack, *(domus_channel *const *)payload,
                                                         slice) == -EPERM);
    return 0;
}

static const domus_behaviour strange = {
    .name = "strange",
    .kind = DOMUS_CHANNELS,
    .on = (const domus_on[]){{&try_type, try_it, 0}, {NULL, NULL, 0}},
};

static int come_and_tell(domus_stack *stack, void *self, const void *payload)
{
    domus_channel *channel = ((const domus_channel_event *)payload)->channel;

    return domus_notice(stack, stranger, &try_type, &channel);
}

static const domus_behaviour open_peer = {
    .name = "open peer", .kind = DOMUS_CHANNELS, .on_open = {come_and_tell, 0}};

static const domus_listener_config listeners[] = {
    {.name = "slices", .address = "127.0.0.1:0", .backlog = 256},
};

static domus_system *start(uint32_t threads)
{
    domus_config config = domt_config(threads);

    config.listeners = listeners;
    config.listener_count = 1;
    return domt_start(&config);
}

static uint16_t serve(domus_system *system, const domus_behaviour *behaviour)
{
    uint16_t port = 0;

    ck_assert_int_eq(domus_serve(system, "slices", behaviour, NULL, &port), 0);
    return port;
}

static char byte_at(uint32_t place)
{
    return (char)(place * 7919u >> 5);
}

static void read_all(int fd, uint32_t times)
{
    static char bytes[65536];
    uint32_t wrong = 0;

    for (uint32_t at = 0; at < times * BYTES;) {
        ssize_t got = recv(fd, bytes, sizeof bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        ck_assert_int_gt(got, 0);
        for (ssize_t i = 0; i < got; i++, at++)
            wrong += bytes[i] != byte_at(at % BYTES);
    }
    ck_assert_uint_eq(wrong, 0);
}

DOMT_TEST(a_publication_of_one_slice_reaches_all_connections_whole)
{
    domus_system *system = start(2);
    int fds[PEERS];
    domus_appender appender = {0};
    domus_slice slice;

    ck_assert_int_eq(domus_outside_group_open(system, "news", &news), 0);
    uint16_t port = serve(system, &peer);
    for (uint32_t i = 0; i < PEERS; i++)
        fds[i] = domt_connect(port);
    DOMT_WAIT_FOR(10, atomic_load(&joined) == PEERS);
    for (uint32_t i = 0; i < BYTES; i++) {
        char byte = byte_at(i);
        (void)domus_append(&appender, &byte, 1); /* an error is told at the end */
    }
    ck_assert_int_eq(domus_append_end(&appender, &slice), 0);
    ck_assert_int_eq(domus_outside_publish(system, news, &domus_slice_type, &slice), 0);
    for (uint32_t i = 0; i < PEERS; i++) {
        read_all(fds[i], 1);
        (void)close(fds[i]);
    }
    domt_end(system); /* asan holds that the page is freed */
}

DOMT_TEST(a_stranger_may_not_write_and_the_slice_is_freed)
{
    domus_system *system = start(1);

    stranger = domt_spawn(system, 0, &strange, NULL);
    int fd = domt_connect(serve(system, &open_peer));
    DOMT_WAIT_FOR(10, atomic_load(&refused) == 1);
    (void)close(fd);
    domt_end(system);
}

DOMT_SUITE(120)
