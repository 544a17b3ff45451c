/* A shard that hangs: its handler blocks its thread for a while, or never answers. Requests of
 * other shards are answered, those of the hanging one time out with an error, and the order of each
 * connection holds. The same program is run on both backends.
 *
 * A line is the number of a shard and a word. The answer is the word; "block" takes BLOCK_MS of the
 * thread first, and "forever" is never answered. */
#include "tests/runtime/running.h"

#include <domus/pipeline.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define THREADS    3u
#define SHARDS     3u /* one on each thread */
#define CLIENTS    16
#define BLOCK_MS   4000u
#define TIMEOUT_MS 1000u
#define MS         UINT64_C(1000000)

/* --- the service ------------------------------------------------------------------------------ */

static domus_address shards[SHARDS];
static atomic_bool is_blocked;

static int answer(domus_stack *stack, void *self, const void *payload)
{
    domus_slice line = ((const domus_packet *)payload)->bytes;
    domus_packet packet;
    domus_kept kept;

    if (domus_slice_equals(line, "0 forever", 9))
        return domus_keep(stack, &kept);
    if (domus_slice_equals(line, "0 block", 7)) {
        atomic_store(&is_blocked, true);
        domt_pause_ns(BLOCK_MS * MS);
        atomic_store(&is_blocked, false);
    }
    int error = domus_slice_copy(domus_slice_data(line) + 2, line.size - 2, &packet.bytes);
    return error != 0 ? error : domus_reply(stack, &domus_packet_type, &packet);
}

static const domus_behaviour shard = {
    .name = "shard", .on = (const domus_on[]){{&domus_packet_type, answer, 0}, {NULL, NULL, 0}}};

static int take_line(domus_stack *stack, void *self, const void *payload)
{
    domus_slice line = ((const domus_packet *)payload)->bytes;

    if (line.size < 3)
        return -EINVAL;
    return domus_forward(stack, shards[(unsigned char)domus_slice_data(line)[0] % SHARDS]);
}

static const domus_pipeline by_lines = {
    .stages = (const domus_pipeline_stage[]){{&domus_line_stage, NULL}, {NULL, NULL}},
    .request_timeout_ns = TIMEOUT_MS * MS,
};
static const domus_behaviour lines = {
    .name = "lines",
    .kind = DOMUS_CHANNELS,
    .pipeline = &by_lines,
    .on_peer =
        (const domus_on_peer[]){{.type = &domus_packet_type, .handle = take_line}, {.type = NULL}}};

static domus_system *serve(uint16_t *ret_port)
{
    static const domus_listener_config listener = {
        .name = "lines", .address = "127.0.0.1:0", .backlog = 64};
    domus_config config = domt_config(THREADS);

    config.listeners = &listener;
    config.listener_count = 1;
    domus_system *system = domt_start(&config);
    for (uint32_t i = 0; i < SHARDS; i++)
        ck_assert_int_eq(
            domus_outside_spawn_with(
                system, &shard, NULL,
                &(domus_spawn_options){.placement = DOMUS_ON_THREAD, .thread = i, .pinned = true},
                &shards[i]),
            0);
    ck_assert_int_eq(domus_serve(system, "lines", &lines, NULL, ret_port), 0);
    return system;
}

/* --- clients ---------------------------------------------------------------------------------- */

static int connect_to(uint16_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {.tv_sec = 30};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void say(int fd, const char *text)
{
    ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Read the next line. Returns false if that has to be waited for and `flags` say not to. */
static bool hear(int fd, char line[64], int flags)
{
    size_t size = 0;

    while (size == 0 || line[size - 1] != '\n') {
        ssize_t got = recv(fd, line + size, 1, size == 0 ? flags : 0);
        if (got < 0 && errno == EAGAIN && size == 0 && flags != 0)
            return false;
        if (got < 0 && errno == EINTR)
            continue;
        ck_assert_msg(got == 1, "%s", got == 0 ? "end" : strerror(errno));
        ck_assert_uint_lt(++size, 63);
    }
    line[size - 1] = '\0';
    return true;
}

static void hears(int fd, const char *expected)
{
    char line[64];

    (void)hear(fd, line, 0);
    ck_assert_str_eq(line, expected);
}

#define LATE "error: ETIMEDOUT"

DOMT_TEST(a_shard_that_never_answers_keeps_nobody_else_waiting)
{
    char line[64];
    uint16_t port;
    domus_system *system = serve(&port);
    int one = connect_to(port);
    int other = connect_to(port);

    say(one, "0 forever\n1 one\n0 two\n0 forever\n2 three\n");
    say(other, "1 a\n0 b\n2 c\n");
    hears(other, "a");
    hears(other, "b");
    hears(other, "c");
    ck_assert(!hear(one, line, MSG_DONTWAIT)); /* its first request comes first */
    hears(one, LATE);
    hears(one, "one");
    hears(one, "two");
    hears(one, LATE);
    hears(one, "three");
    say(one, "0 again\n");
    hears(one, "again");
    close(one);
    close(other);
    domt_end(system);
}

DOMT_TEST(a_shard_that_blocks_its_thread_keeps_no_other_thread_waiting)
{
    int fds[CLIENTS];
    char line[64];
    uint16_t port;
    uint32_t at_once = 0;
    uint32_t late = 0;
    domus_system *system = serve(&port);

    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = connect_to(port);
        say(fds[i], "2 here\n");
        hears(fds[i], "here");
    }
    say(fds[0], "0 block\n");
    DOMT_WAIT_FOR(10, atomic_load(&is_blocked));
    for (int i = 1; i < CLIENTS; i++)
        say(fds[i], "1 a\n0 b\n2 c\n");
    bool heard[CLIENTS] = {false};
    while (atomic_load(&is_blocked)) {
        for (int i = 1; i < CLIENTS; i++) {
            if (heard[i] || !hear(fds[i], line, MSG_DONTWAIT))
                continue;
            ck_assert_str_eq(line, "a");
            heard[i] = true;
            at_once++;
        }
        domt_pause_ns(MS);
    }
    for (int i = 1; i < CLIENTS; i++) {
        if (!heard[i])
            hears(fds[i], "a");
        (void)hear(fds[i], line, 0);
        late += strcmp(line, LATE) == 0;
        ck_assert_msg(strcmp(line, "b") == 0 || strcmp(line, LATE) == 0, "%s", line);
        hears(fds[i], "c");
    }
    (void)hear(fds[0], line, 0);
    ck_assert_msg(strcmp(line, "block") == 0 || strcmp(line, LATE) == 0, "%s", line);
    /* a third of the connections lives on the thread that was blocked */
    ck_assert_uint_gt(at_once, 0);
    ck_assert_uint_gt(late, 0);
    ck_assert_uint_lt(at_once, CLIENTS);
    for (int i = 0; i < CLIENTS; i++) {
        say(fds[i], "0 again\n");
        hears(fds[i], "again");
        close(fds[i]);
    }
    domt_end(system);
}

DOMT_SUITE(120)
