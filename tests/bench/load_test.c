/* The load generator runs against an echo service of one thread that can be told to make one
 * mistake. A bench that does not notice a wrong answer measures nothing, so most tests are about
 * faults: each is one that a broken server could make, at a chosen byte of the whole traffic. */
#include "bench/load.h"
#include "bench/support/histogram.h"
#include "bench/support/measure.h"
#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS_MAX 16
#define CHUNK       65536
#define PAUSE_MS    50
/* The fault happens at this received byte, which each run receives in its first round. */
#define AT_BYTE 300

enum fault { NONE, CORRUPT, SWALLOW, SURPLUS, SWAP, CLOSE, SURPLUS_AT_END, NEVER_END, LATE, PAUSE };

struct echo {
    enum fault fault;
    /* fds[0] becomes readable when the thread has to stop, fds[1] is the listener, the others are
     * clients. */
    int fds[2 + CLIENTS_MAX];
    int count;
    int stop;
    uint16_t port;
    uint64_t bytes;
    size_t largest; /* size in bytes of the largest chunk that the service has received at once */
    pthread_t thread;
};

static void send_all_bytes(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);

        if (sent <= 0)
            return; /* the load has closed its connection, as it may after a fault */
        bytes += sent;
        length -= (size_t)sent;
    }
}

/* Apply the fault to a chunk: change one byte, drop the last byte, append a byte, or exchange the
 * halves. Returns the new length. */
static size_t apply_fault_to_chunk(enum fault fault, char *bytes, size_t length)
{
    char half[CHUNK / 2];

    if (fault == CORRUPT)
        bytes[length / 2] ^= 1;
    if (fault == SWALLOW)
        return length - 1;
    if (fault == SURPLUS) {
        bytes[length] = bytes[0];
        return length + 1;
    }
    if (fault == SWAP) {
        memcpy(half, bytes, length / 2);
        memmove(bytes, bytes + length / 2, length / 2);
        memcpy(bytes + length / 2, half, length / 2);
    }
    return length;
}

/* LATE is no fault but a hard case for a load: the service receives a whole large message before it
 * sends the first byte back. */
static void answer_after_whole_message(struct echo *echo, int fd, const char *bytes, size_t length)
{
    static char held[LOAD_IN_FLIGHT_MAX];
    size_t at = (echo->bytes - length) % sizeof held;

    memcpy(held + at, bytes, length);
    if (at + length == sizeof held)
        send_all_bytes(fd, held, sizeof held);
}

/* Answer one chunk of a client. Returns false when the connection has ended. */
static bool answer_chunk_with_fault(struct echo *echo, int fd)
{
    char bytes[CHUNK + 1];
    ssize_t got = recv(fd, bytes, CHUNK, 0);

    if (got <= 0) {
        if (echo->fault == SURPLUS_AT_END)
            send_all_bytes(fd, "x", 1);
        return false;
    }

    size_t length = (size_t)got;
    bool strikes = echo->bytes < AT_BYTE && echo->bytes + length >= AT_BYTE;
    echo->bytes += length;
    if (length > echo->largest)
        echo->largest = length;
    if (strikes && echo->fault == CLOSE)
        return false;
    if (echo->fault == LATE) {
        answer_after_whole_message(echo, fd, bytes, length);
        return true;
    }
    if (strikes && echo->fault == PAUSE)
        measure_sleep_seconds(PAUSE_MS / 1e3);
    if (strikes)
        length = apply_fault_to_chunk(echo->fault, bytes, length);
    send_all_bytes(fd, bytes, length);
    return true;
}

static void release_client_of_echo(struct echo *echo, int i)
{
    if (echo->fault == NEVER_END)
        /* shut down only receiving, so the client sees no end of the stream */
        shutdown(echo->fds[i], SHUT_RD);
    else
        close(echo->fds[i]);
    echo->fds[i] = echo->fds[--echo->count];
}

static void *run_echo_service(void *echo_)
{
    struct echo *echo = echo_;

    for (;;) {
        struct pollfd polls[2 + CLIENTS_MAX];
        int count = echo->count;

        for (int i = 0; i < count; i++)
            polls[i] = (struct pollfd){.fd = echo->fds[i], .events = POLLIN};
        poll(polls, (nfds_t)count, -1);
        if (polls[0].revents != 0)
            return NULL;
        /* The loop goes downwards, because releasing a client moves the last client, which was
         * examined already, into its place. */
        for (int i = count - 1; i >= 2; i--)
            if (polls[i].revents != 0 && !answer_chunk_with_fault(echo, echo->fds[i]))
                release_client_of_echo(echo, i);
        if (polls[1].revents != 0 && echo->count < 2 + CLIENTS_MAX)
            echo->fds[echo->count++] = accept(echo->fds[1], NULL, NULL);
    }
}

static void start_echo_service(struct echo *echo, enum fault fault)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t length = sizeof address;
    /* Small segments keep the load's send buffer far smaller than a large message. */
    int small_segment = 1000;
    int stop[2];
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_ge(listener, 0);
    if (fault == LATE)
        ck_assert_int_eq(
            setsockopt(listener, IPPROTO_TCP, TCP_MAXSEG, &small_segment, sizeof small_segment), 0);
    ck_assert_int_eq(bind(listener, (const struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(listener, CLIENTS_MAX), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    ck_assert_int_eq(pipe(stop), 0);
    *echo = (struct echo){
        .fault = fault,
        .fds = {stop[0], listener},
        .count = 2,
        .stop = stop[1],
        .port = ntohs(address.sin_port),
    };
    ck_assert_int_eq(pthread_create(&echo->thread, NULL, run_echo_service, echo), 0);
}

static void stop_echo_service(struct echo *echo)
{
    close(echo->stop);
    pthread_join(echo->thread, NULL);
    for (int i = 0; i < echo->count; i++)
        close(echo->fds[i]);
}

static struct load_options make_options_of_load(uint16_t port)
{
    return (struct load_options){
        .port = port,
        .cpu = LOAD_ANY_CPU,
        .connections = 8,
        .size = 64,
        .depth = 1,
        .duration_ns = 30000000,
        .stall_ns = 2000000000,
    };
}

/* Run a load against a service with this fault. Returns the load's error, and checks that a failed
 * load leaves `result` unchanged. */
static int run_load_against_fault(enum fault fault, uint64_t stall_ns)
{
    struct echo echo;
    struct load_result result = {.messages = 12345};

    start_echo_service(&echo, fault);
    struct load_options options = make_options_of_load(echo.port);
    options.stall_ns = stall_ns;
    int error = load_run_to_its_end(&options, &result);
    stop_echo_service(&echo);
    if (error != 0)
        ck_assert_uint_eq(result.messages, 12345);
    return error;
}

DOMT_TEST(load_counts_every_round_trip)
{
    struct echo echo;
    struct load_result result;

    start_echo_service(&echo, NONE);
    struct load_options options = make_options_of_load(echo.port);
    ck_assert_int_eq(load_run_to_its_end(&options, &result), 0);
    stop_echo_service(&echo);
    ck_assert_uint_eq(result.messages * options.size, echo.bytes);
    ck_assert_uint_ge(result.messages, options.connections);
    ck_assert(result.rate > 0);
    /* Each connection may receive one message after the end of the measured time, so more are
     * counted than the rate says. */
    ck_assert(result.rate * 0.030 <= (double)result.messages);
    ck_assert(result.p50_us > 0 && result.p50_us <= result.p99_us);
    ck_assert(result.p99_us <= result.p999_us && result.p999_us < 20e6);
    ck_assert_uint_gt(result.cpu_ns, 0);
}

DOMT_TEST(load_keeps_depth_messages_in_flight)
{
    struct echo echo;
    struct load_result result;

    start_echo_service(&echo, NONE);
    struct load_options options = make_options_of_load(echo.port);
    options.size = 100;
    options.depth = 7;
    ck_assert_int_eq(load_run_to_its_end(&options, &result), 0);
    stop_echo_service(&echo);
    ck_assert_uint_eq(result.messages * options.size, echo.bytes);
    /* At its start each connection sends `depth` messages at once, and no later chunk can be
     * larger. */
    ck_assert_uint_eq(echo.largest, (size_t)options.size * options.depth);
}

DOMT_TEST(load_continues_after_full_socket)
{
    struct echo echo;
    struct load_result result;

    start_echo_service(&echo, LATE);
    struct load_options options = make_options_of_load(echo.port);
    options.connections = 1;
    options.size = LOAD_IN_FLIGHT_MAX;
    ck_assert_int_eq(load_run_to_its_end(&options, &result), 0);
    stop_echo_service(&echo);
    ck_assert_uint_eq(result.messages * options.size, echo.bytes);
}

DOMT_TEST(paced_load_sends_its_rate_in_batches)
{
    struct echo echo;
    struct load_result result;

    start_echo_service(&echo, NONE);
    struct load_options options = make_options_of_load(echo.port);
    options.depth = 5;
    options.rate = 1000;
    options.duration_ns = 200000000;
    options.watched[0] = getpid();
    ck_assert_int_eq(load_run_to_its_end(&options, &result), 0);
    stop_echo_service(&echo);
    ck_assert_uint_eq(result.messages * options.size, echo.bytes);
    ck_assert_uint_eq(result.messages % options.depth, 0);
    ck_assert_uint_eq(echo.largest, (size_t)options.size * options.depth);
    /* The rate gives 40 batches and the first one; fewer come if the machine is busy and the load
     * is late. */
    ck_assert_uint_le(result.messages, 205);
    ck_assert_uint_ge(result.messages, 50);
    ck_assert_uint_ge(result.elapsed_ns, 200000000);
    ck_assert_uint_ge(result.watched_cpu_ns[0], result.cpu_ns);
    ck_assert_uint_eq(result.watched_cpu_ns[1], 0);
    ck_assert(load_share_of_one_cpu_used_by_load(&result) < 1);
}

/* While the service pauses, 50 messages become due and no connection is free for them. */
DOMT_TEST(paced_load_measures_from_due_time)
{
    struct echo echo;
    struct load_result result;

    start_echo_service(&echo, PAUSE);
    struct load_options options = make_options_of_load(echo.port);
    options.connections = 1;
    options.rate = 1000;
    options.duration_ns = 200000000;
    ck_assert_int_eq(load_run_to_its_end(&options, &result), 0);
    stop_echo_service(&echo);
    ck_assert_uint_eq(result.messages * options.size, echo.bytes);
    /* If the load measured from the sending of a message, at most one of 200 would be late. */
    ck_assert(result.p99_us > PAUSE_MS * 1000 / 10);
}

DOMT_TEST(load_runs_as_separate_process)
{
    struct echo echo;
    struct load_result result;

    start_echo_service(&echo, NONE);
    struct load_options options = make_options_of_load(echo.port);
    ck_assert_int_eq(load_run_in_child_process(&options, &result), 0);
    stop_echo_service(&echo);
    ck_assert_uint_eq(result.messages * options.size, echo.bytes);
    options.size = 0;
    ck_assert_int_eq(load_run_in_child_process(&options, &result), -EINVAL);
}

DOMT_TEST(load_detects_one_wrong_byte)
{
    ck_assert_int_eq(run_load_against_fault(NONE, 2000000000), 0);
    ck_assert_int_eq(run_load_against_fault(CORRUPT, 2000000000), -EBADMSG);
}

DOMT_TEST(load_detects_a_missing_byte)
{
    ck_assert_int_eq(run_load_against_fault(SWALLOW, 100000000), -ETIMEDOUT);
}

DOMT_TEST(load_detects_a_surplus_byte)
{
    ck_assert_int_eq(run_load_against_fault(SURPLUS, 2000000000), -EBADMSG);
    ck_assert_int_eq(run_load_against_fault(SURPLUS_AT_END, 2000000000), -EBADMSG);
}

DOMT_TEST(load_detects_reordered_bytes)
{
    ck_assert_int_eq(run_load_against_fault(SWAP, 2000000000), -EBADMSG);
}

DOMT_TEST(load_detects_an_early_close)
{
    ck_assert_int_eq(run_load_against_fault(CLOSE, 2000000000), -ECONNRESET);
}

DOMT_TEST(load_detects_a_stream_that_does_not_end)
{
    ck_assert_int_eq(run_load_against_fault(NEVER_END, 100000000), -ETIMEDOUT);
}

DOMT_TEST(load_fails_when_nobody_listens)
{
    struct echo echo;
    struct load_result result;

    start_echo_service(&echo, NONE);
    stop_echo_service(&echo);
    struct load_options options = make_options_of_load(echo.port);
    ck_assert_int_eq(load_run_to_its_end(&options, &result), -ECONNREFUSED);
}

DOMT_TEST(load_refuses_options_out_of_range)
{
    struct load_options good = make_options_of_load(1);
    struct load_options bad[] = {good, good, good, good, good, good, good, good, good};
    struct load_result result;

    bad[0].connections = 0;
    bad[1].connections = LOAD_CONNECTIONS_MAX + 1;
    bad[2].size = 0;
    bad[3].depth = 0;
    bad[4].size = LOAD_IN_FLIGHT_MAX / 2 + 1;
    bad[4].depth = 2;
    bad[5].duration_ns = 0;
    bad[6].stall_ns = 0;
    bad[7].cpu = 1 << 20;
    bad[8].rate = -1;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_int_eq(load_run_to_its_end(&bad[i], &result), -EINVAL);
}

DOMT_TEST(load_percentiles_are_within_half_a_percent)
{
    static struct histogram histogram;

    ck_assert(histogram_value_at_share(&histogram, 0.5) == 0);
    for (uint64_t i = 1; i <= 1000000; i++)
        histogram_add_value(&histogram, i * 7);
    for (int i = 1; i <= 1000; i++) {
        double exact = 7000.0 * i;
        double found = histogram_value_at_share(&histogram, i / 1000.0);
        ck_assert(found > exact * 0.995 && found < exact * 1.005);
    }
}

DOMT_TEST(load_histogram_accepts_any_value)
{
    static struct histogram histogram;
    uint32_t before = 0;

    for (uint64_t value = 1; value != 0; value <<= 1) {
        ck_assert_uint_ge(histogram_bucket_of_value(value), before);
        before = histogram_bucket_of_value(value);
        ck_assert_uint_lt(before, HISTOGRAM_BUCKETS);
    }
    ck_assert_uint_eq(histogram_bucket_of_value(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
    histogram_add_value(&histogram, UINT64_MAX);
    ck_assert(histogram_value_at_share(&histogram, 1) > 60e9);
    ck_assert(histogram_value_at_share(&histogram, 1) < 70e9);
}

DOMT_SUITE(20)
