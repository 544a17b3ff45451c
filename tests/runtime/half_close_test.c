/* Services over real sockets whose answers come from actors on other threads. A peer that sends a
 * request and then FIN gets its answer. While a shard blocks its thread or never answers, requests
 * to other shards are answered, requests to that shard end with a time-out, and answers keep their
 * order on each connection. The same tests run on both backends. */
#include "tests/runtime/running.h"
#include "tests/support/crowd.h"

#include <domus/pipeline.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS   16u
#define REQUEST   "requests"
#define ANSWER_NS (20 * DOMT_MS)

static domus_address worker; /* the actor that answers requests; set before the system serves */
static _Atomic unsigned begun;
static _Atomic unsigned closes_with_error;

/* --- the worker: answers later ---------------------------------------------------------------- */

typedef struct job {
    domus_channel *channel;
    uint32_t size;
    char bytes[sizeof REQUEST];
} job;

static const domus_type job_type = {.name = "job", .size = sizeof(job)};
static const domus_type done_type = {.name = "done", .size = sizeof(job)};

static int reply_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error != 0 ? answer->error : domus_reply(stack, &done_type, domus_frame(stack));
}

static int sleep_and_reply_job(domus_stack *stack, void *self, const void *payload)
{
    memcpy(domus_frame(stack), payload, sizeof(job));
    return domus_sleep(stack, ANSWER_NS, reply_after_sleep);
}

static const domus_behaviour working = {
    .name = "working",
    .on = (const domus_on[]){{&job_type, sleep_and_reply_job, sizeof(job)}, {0}}};

/* --- the service ------------------------------------------------------------------------------ */

static int write_answer_to_channel(domus_stack *stack, void *self, const domus_answer *answer)
{
    const job *done = answer->payload;
    domus_buffer *buffer = NULL;

    if (answer->error != 0)
        return answer->error;
    int error = domus_buffer_new(stack, done->size, &buffer);
    if (error != 0)
        return error;
    memcpy(domus_buffer_data(buffer), done->bytes, done->size);
    return domus_channel_write(stack, done->channel, buffer);
}

static int ask_worker_for_read_bytes(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    job work = {.channel = event->channel, .size = (uint32_t)domus_buffer_size(event->bytes)};

    if (work.size < sizeof work.bytes)
        memcpy(work.bytes, domus_buffer_data(event->bytes), work.size);
    domus_buffer_free(event->bytes);
    atomic_fetch_add(&begun, 1);
    return work.size < sizeof work.bytes
               ? domus_ask(stack, worker, &job_type, &work, write_answer_to_channel)
               : -EMSGSIZE;
}

static int count_close_with_error(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    atomic_fetch_add(&closes_with_error, event->error != 0);
    return 0;
}

static const domus_behaviour serving = {.name = "serving",
                                        .kind = DOMUS_CHANNELS,
                                        .on_read = {ask_worker_for_read_bytes, 0},
                                        .on_close = {count_close_with_error, 0}};

static const domus_listener_config listeners[] = {
    {.name = "half", .address = "127.0.0.1:0", .backlog = 64}};

/* --- the clients ------------------------------------------------------------------------------ */

/* Send half of the request, and a little later the other half and FIN, so that the service may need
 * a second conversation. */
static void send_request_and_fin(int fd)
{
    size_t half = strlen(REQUEST) / 2;

    ck_assert_int_eq(send(fd, REQUEST, half, MSG_NOSIGNAL), (ssize_t)half);
    domt_pause_ns(DOMT_MS);
    ck_assert_int_eq(send(fd, &REQUEST[half], half, MSG_NOSIGNAL), (ssize_t)half);
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
}

/* Read until the service closes the connection, and check that exactly the answer has come. */
static void check_whole_answer_and_close(int fd)
{
    char answer[64] = "";
    size_t length = 0;
    ssize_t size;

    while ((size = recv(fd, answer + length, sizeof answer - 1 - length, 0)) > 0)
        length += (size_t)size;
    /* recv(2) returns 0, because the service has closed by FIN and not by a reset */
    ck_assert_int_eq(size, 0);
    ck_assert_str_eq(answer, REQUEST);
    close(fd);
}

static domus_system *start_service(uint16_t *ret_port)
{
    domus_config config = domt_config_of_threads(2);

    config.listeners = listeners;
    config.listener_count = 1;
    atomic_store(&begun, 0);
    atomic_store(&closes_with_error, 0);
    domus_system *system = domt_start_system(&config);
    worker = domt_spawn(system, 1, &working, NULL);
    ck_assert_int_eq(domus_serve(system, "half", &serving, NULL, ret_port), 0);
    return system;
}

DOMT_TEST(answer_by_a_conversation_reaches_a_peer_that_has_finished_sending)
{
    uint16_t port = 0;
    int fds[CLIENTS];
    domus_system *system = start_service(&port);

    for (uint32_t i = 0; i < CLIENTS; i++) {
        fds[i] = domt_connect_to_port(port);
        send_request_and_fin(fds[i]);
    }
    for (uint32_t i = 0; i < CLIENTS; i++)
        check_whole_answer_and_close(fds[i]);
    ck_assert_uint_ge(atomic_load(&begun), CLIENTS);
    DOMT_WAIT_FOR(30, domt_profile_of_all_threads(system).channels_closed == CLIENTS);
    ck_assert_uint_eq(atomic_load(&closes_with_error), 0);
    domt_end_system(system);
}

DOMT_TEST(half_closed_peer_gets_answer_in_a_drain)
{
    uint16_t port = 0;
    domus_system *system = start_service(&port);
    int fd = domt_connect_to_port(port);

    send_request_and_fin(fd);
    DOMT_WAIT_FOR(30, atomic_load(&begun) != 0);
    domt_end_system(system); /* domt_end_system() checks that no channel was cut */
    check_whole_answer_and_close(fd);
}

/* --- a shard that hangs ----------------------------------------------------------------------- */

/* A line is the number of a shard and a word. The answer is the word; "block" blocks the shard's
 * thread for BLOCK_MS first, and "forever" is never answered. */

#define THREADS    3u
#define SHARDS     3u /* number of shards, one of them on each thread */
#define ASKERS     16
#define BLOCK_MS   4000u
#define TIMEOUT_MS 1000u
#define MS         UINT64_C(1000000)

/* --- the service ------------------------------------------------------------------------------ */

static domus_address shards[SHARDS];
static atomic_bool is_blocked;

static int answer_line_as_shard(domus_stack *stack, void *self, const void *payload)
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
    .name = "shard", .on = (const domus_on[]){{&domus_packet_type, answer_line_as_shard, 0}, {0}}};

static int forward_line_to_shard(domus_stack *stack, void *self, const void *payload)
{
    domus_slice line = ((const domus_packet *)payload)->bytes;

    if (line.size < 3)
        return -EINVAL;
    return domus_forward(stack, shards[(unsigned char)domus_slice_data(line)[0] % SHARDS]);
}

static const domus_pipeline by_lines = {
    .stages = (const domus_pipeline_stage[]){{&domus_line_stage, NULL}, {NULL, NULL}},
    .request_timeout_ns = TIMEOUT_MS * MS};
static const domus_behaviour lines = {
    .name = "lines",
    .kind = DOMUS_CHANNELS,
    .pipeline = &by_lines,
    .on_peer = (const domus_on_peer[]){
        {.type = &domus_packet_type, .handle = forward_line_to_shard}, {.type = NULL}}};

static domus_system *start_service_with_shards(uint16_t *ret_port)
{
    static const domus_listener_config listener = {
        .name = "lines", .address = "127.0.0.1:0", .backlog = 64};
    domus_config config = domt_config_of_threads(THREADS);

    config.listeners = &listener;
    config.listener_count = 1;
    domus_system *system = domt_start_system(&config);
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

static int connect_to_loopback_port(uint16_t port)
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

static void send_text_to_service(int fd, const char *text)
{
    ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Read the next line from the connection. Returns false if no line has come and `flags` say not to
 * wait. */
static bool read_line_from_service(int fd, char line[64], int flags)
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

static void expect_line_from_service(int fd, const char *expected)
{
    char line[64];

    (void)read_line_from_service(fd, line, 0);
    ck_assert_str_eq(line, expected);
}

#define LATE "error: ETIMEDOUT"

DOMT_TEST(a_shard_that_never_answers_keeps_nobody_else_waiting)
{
    char line[64];
    uint16_t port;
    domus_system *system = start_service_with_shards(&port);
    int one = connect_to_loopback_port(port);
    int other = connect_to_loopback_port(port);

    send_text_to_service(one, "0 forever\n1 one\n0 two\n0 forever\n2 three\n");
    send_text_to_service(other, "1 a\n0 b\n2 c\n");
    expect_line_from_service(other, "a");
    expect_line_from_service(other, "b");
    expect_line_from_service(other, "c");
    ck_assert(
        /* no later answer may come before the one to the first request */
        !read_line_from_service(one, line, MSG_DONTWAIT));
    expect_line_from_service(one, LATE);
    expect_line_from_service(one, "one");
    expect_line_from_service(one, "two");
    expect_line_from_service(one, LATE);
    expect_line_from_service(one, "three");
    send_text_to_service(one, "0 again\n");
    expect_line_from_service(one, "again");
    close(one);
    close(other);
    domt_end_system(system);
}

DOMT_TEST(a_shard_that_blocks_its_thread_keeps_no_other_thread_waiting)
{
    int fds[ASKERS];
    char line[64];
    uint16_t port;
    uint32_t at_once = 0;
    uint32_t late = 0;
    domus_system *system = start_service_with_shards(&port);

    for (int i = 0; i < ASKERS; i++) {
        fds[i] = connect_to_loopback_port(port);
        send_text_to_service(fds[i], "2 here\n");
        expect_line_from_service(fds[i], "here");
    }
    send_text_to_service(fds[0], "0 block\n");
    DOMT_WAIT_FOR(10, atomic_load(&is_blocked));
    for (int i = 1; i < ASKERS; i++)
        send_text_to_service(fds[i], "1 a\n0 b\n2 c\n");
    bool heard[ASKERS] = {false};
    while (atomic_load(&is_blocked)) {
        for (int i = 1; i < ASKERS; i++) {
            if (heard[i] || !read_line_from_service(fds[i], line, MSG_DONTWAIT))
                continue;
            ck_assert_str_eq(line, "a");
            heard[i] = true;
            at_once++;
        }
        domt_pause_ns(MS);
    }
    for (int i = 1; i < ASKERS; i++) {
        if (!heard[i])
            expect_line_from_service(fds[i], "a");
        (void)read_line_from_service(fds[i], line, 0);
        late += strcmp(line, LATE) == 0;
        ck_assert_msg(strcmp(line, "b") == 0 || strcmp(line, LATE) == 0, "%s", line);
        expect_line_from_service(fds[i], "c");
    }
    (void)read_line_from_service(fds[0], line, 0);
    ck_assert_msg(strcmp(line, "block") == 0 || strcmp(line, LATE) == 0, "%s", line);
    /* About a third of the connections are on the thread that was blocked, so some answers come
     * late, but not all. */
    ck_assert_uint_gt(at_once, 0);
    ck_assert_uint_gt(late, 0);
    ck_assert_uint_lt(at_once, ASKERS);
    for (int i = 0; i < ASKERS; i++) {
        send_text_to_service(fds[i], "0 again\n");
        expect_line_from_service(fds[i], "again");
        close(fds[i]);
    }
    domt_end_system(system);
}

DOMT_SUITE(120)
