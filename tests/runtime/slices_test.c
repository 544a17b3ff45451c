/* One slice for many channels, over real sockets. A message is encoded once and published to a
 * group of connections; each peer gets exactly its bytes, which lie in memory only once. Messages
 * to a peer that does not read are refused, on every thread, because its mailbox is full, and all
 * others get theirs; when it reads, a conversation that waits for room goes on. */
#include "tests/runtime/running.h"
#include "tests/support/crowd.h"

#include <domus/await.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- a publication ---------------------------------------------------------------------------- */

#define PEERS 100u
#define BYTES 150000u

static domus_group news; /* group of the connections; set before the system serves */
static _Atomic unsigned joined;
static _Atomic unsigned refused;
static domus_address stranger;

static int join_group(domus_stack *stack, void *self, const void *payload)
{
    int error = domus_group_join(stack, news);
    atomic_fetch_add(&joined, error == 0);
    return error;
}

static int write_published_slice(domus_stack *stack, void *self, const void *payload)
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
    .on = (const domus_on[]){{&domus_slice_type, write_published_slice, 0}, {0}},
    .on_open = {join_group, 0}};

/* An actor that tries calls on a channel of which it is neither the actor nor the owner. */
static const domus_type try_type = {.name = "try", .size = sizeof(domus_channel *)};

static int try_to_write_to_channel_of_other(domus_stack *stack, void *self, const void *payload)
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
    .on = (const domus_on[]){{&try_type, try_to_write_to_channel_of_other, 0}, {0}}};

static int on_open_tell_channel_to_stranger(domus_stack *stack, void *self, const void *payload)
{
    domus_channel *channel = ((const domus_channel_event *)payload)->channel;
    return domus_notice(stack, stranger, &try_type, &channel);
}

static const domus_behaviour open_peer = {
    .name = "open peer", .kind = DOMUS_CHANNELS, .on_open = {on_open_tell_channel_to_stranger, 0}};

static const domus_listener_config listeners[] = {
    {.name = "slices", .address = "127.0.0.1:0", .backlog = 256}};

static domus_system *start_system(uint32_t threads)
{
    domus_config config = domt_config_of_threads(threads);
    config.listeners = listeners;
    config.listener_count = 1;
    return domt_start_system(&config);
}

static uint16_t serve_at_any_port(domus_system *system, const domus_behaviour *behaviour)
{
    uint16_t port = 0;
    ck_assert_int_eq(domus_serve(system, "slices", behaviour, NULL, &port), 0);
    return port;
}

static char byte_of_slice_at(uint32_t place)
{
    return (char)(place * 7919u >> 5);
}

static void read_and_check_copies(int fd, uint32_t times)
{
    static char bytes[65536];
    uint32_t wrong = 0;

    for (uint32_t at = 0; at < times * BYTES;) {
        ssize_t got = recv(fd, bytes, sizeof bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        ck_assert_int_gt(got, 0);
        for (ssize_t i = 0; i < got; i++, at++)
            wrong += bytes[i] != byte_of_slice_at(at % BYTES);
    }
    ck_assert_uint_eq(wrong, 0);
}

DOMT_TEST(a_publication_of_one_slice_reaches_all_connections_whole)
{
    domus_system *system = start_system(2);
    int fds[PEERS];
    domus_appender appender = {0};
    domus_slice slice;

    ck_assert_int_eq(domus_outside_group_open(system, "news", &news), 0);
    uint16_t port = serve_at_any_port(system, &peer);
    for (uint32_t i = 0; i < PEERS; i++)
        fds[i] = domt_connect_to_port(port);
    DOMT_WAIT_FOR(10, atomic_load(&joined) == PEERS);
    for (uint32_t i = 0; i < BYTES; i++) {
        char byte = byte_of_slice_at(i);
        /* the error of this call is returned by domus_append_end() */
        (void)domus_append(&appender, &byte, 1);
    }
    ck_assert_int_eq(domus_append_end(&appender, &slice), 0);
    ck_assert_int_eq(domus_outside_publish(system, news, &domus_slice_type, &slice), 0);
    for (uint32_t i = 0; i < PEERS; i++) {
        read_and_check_copies(fds[i], 1);
        (void)close(fds[i]);
    }
    domt_end_system(
        system); /* the sanitizer would report here that the page of the slice was not freed */
}

DOMT_TEST(write_of_a_slice_to_another_ones_channel_is_refused)
{
    domus_system *system = start_system(1);
    stranger = domt_spawn(system, 0, &strange, NULL);
    int fd = domt_connect_to_port(serve_at_any_port(system, &open_peer));
    DOMT_WAIT_FOR(10, atomic_load(&refused) == 1);
    (void)close(fd);
    domt_end_system(system);
}

/* --- slow readers of a publication ------------------------------------------------------------ */

#define PIECE  16384u
#define ROUNDS 400u
#define KIB    1024u

/* addresses of the slow and the good client's channel; set before `known` grows */
static domus_address slow, good;
static _Atomic unsigned known;
static _Atomic uint64_t lines; /* number of lines that the two channels have handled */
static _Atomic unsigned rooms;
/* result of the notice that an actor on another thread has sent to the slow channel */
static _Atomic int refused_with;
/* 1 + the error with which the flush of the slow channel has ended; 0: it has not */
static _Atomic int flushed;

static const domus_type line_type = {.name = "line"};
static const domus_type publish_type = {.name = "publish"};
static const domus_type try_slow_type = {.name = "try"};
static const domus_type flush_type = {.name = "flush"};

/* --- the connections -------------------------------------------------------------------------- */

static int on_open_join_readers(domus_stack *stack, void *self, const void *payload)
{
    domus_group group;
    int error = domus_group_open(stack, "readers", &group);
    return error != 0 ? error : domus_group_join(stack, group);
}

/* Handle the first byte of a client, which says whether it is the slow one or the good one. */
static int record_kind_of_client(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    bool is_slow = *(const char *)domus_buffer_data(event->bytes) == 's';
    domus_buffer_free(event->bytes);
    *(is_slow ? &slow : &good) = domus_channel_address(event->channel);
    atomic_fetch_add(&known, 1);
    return 0;
}

static int append_line_to_channel(domus_stack *stack, void *self, const void *payload)
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
    .on_open = {on_open_join_readers, 0},
    .on_read = {record_kind_of_client, 0},
    .on = (const domus_on[]){
        {&line_type, append_line_to_channel, 0}, DOMUS_ON(&flush_type, wait_sent), {0}}};

/* --- an actor on the other thread ------------------------------------------------------------- */

static int publish_line_to_readers(domus_stack *stack, void *self, const void *payload)
{
    domus_group group;
    int error = domus_group_open(stack, "readers", &group);
    return error != 0 ? error : domus_publish(stack, group, &line_type, NULL);
}

static int notify_slow_channel_and_watch(domus_stack *stack, void *self, const void *payload)
{
    atomic_store(&refused_with, domus_notice(stack, slow, &line_type, NULL));
    return domus_watch_room(stack, slow, NULL);
}

static int count_room_in_mailbox(domus_stack *stack, void *self, const void *payload)
{
    ck_assert_int_eq(((const domus_down *)payload)->reason, 0);
    atomic_fetch_add(&rooms, 1);
    return 0;
}

static const domus_behaviour publisher = {
    .name = "publisher",
    .on = (const domus_on[]){{&publish_type, publish_line_to_readers, 0},
                             {&try_slow_type, notify_slow_channel_and_watch, 0},
                             {&domus_room_type, count_room_in_mailbox, 0},
                             {0}}};

/* --- the clients ------------------------------------------------------------------------------ */

/* Connect with a small receive buffer, so that the kernel keeps few bytes for a client that does
 * not read. */
static int connect_with_small_window(char name, uint16_t port)
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

static void read_so_many_bytes(int fd, size_t size)
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
    domus_config config = domt_config_of_threads(2);
    char byte;

    atomic_store(&known, 0);
    atomic_store(&rooms, 0);
    atomic_store(&flushed, 0);
    atomic_store(&lines, 0);
    domt_add_front_listener(&config);
    config.channel.send_high_bytes = 64 * KIB;
    config.channel.send_low_bytes = 16 * KIB;
    domus_system *system = domt_start_system(&config);
    domus_address other = domt_spawn(system, 1, &publisher, NULL);
    uint16_t port = domt_serve_front_listener(system, &reader, NULL);
    int slow_fd = connect_with_small_window('s', port);
    int good_fd = connect_with_small_window('g', port);

    for (uint32_t i = 0; i < ROUNDS; i++) {
        domt_send_notice(system, other, &publish_type, NULL);
        read_so_many_bytes(good_fd, PIECE);
    }
    /* number of messages to the slow channel that were refused; wait for the last, because that
     * channel may be on another thread */
    uint64_t skipped;
    DOMT_WAIT_FOR(30,
                  (skipped = domt_profile_of_all_threads(system).refusals) + atomic_load(&lines) ==
                      2 * (uint64_t)ROUNDS);
    ck_assert_uint_gt(skipped, ROUNDS / 2);
    domt_send_notice(system, other, &try_slow_type, NULL);
    DOMT_WAIT_FOR(30, atomic_load(&refused_with) == -ENOBUFS);
    ck_assert_uint_eq(atomic_load(&rooms), 0);

    /* the slow client now reads every line that was not refused */
    read_so_many_bytes(slow_fd, (ROUNDS - (size_t)skipped) * PIECE);
    DOMT_WAIT_FOR(30, atomic_load(&rooms) == 1);
    ck_assert_int_eq(recv(slow_fd, &byte, 1, MSG_DONTWAIT), -1);

    domt_send_notice(system, slow, &line_type, NULL);
    domt_send_notice(system, slow, &flush_type, NULL);
    DOMT_WAIT_FOR(30, atomic_load(&flushed) == 1);
    close(slow_fd);
    close(good_fd);
    domt_end_system(system);
}

DOMT_SUITE(120)
