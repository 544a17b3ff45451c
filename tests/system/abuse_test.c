/* Hostile clients of examples/kv and examples/lines beside a crowd of normal ones, which must not
 * notice; among them clients that send one request after another without waiting. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/system/talks.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Hostile clients beside a crowd of normal clients, which must not notice. */

#define MIB (UINT64_C(1) << 20)

static domt_service service;
static domt_crowd crowd;

static uint64_t count_bytes_sent_by_deaf_clients(void)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < crowd.count; i++)
        sum += crowd.clients[i].deaf ? crowd.clients[i].sent : 0;
    return sum;
}

static uint64_t flood_until_ns;
static uint64_t stalled_at;
static uint64_t stalled_since_ns;

/* The flood is over when the flooding clients have sent nothing for 400 ms, or at flood_until_ns:
 * with small pieces the first condition would take too long. */
static bool is_flood_over(const domt_crowd *unused)
{
    uint64_t sent = count_bytes_sent_by_deaf_clients();

    if (domt_monotonic_ns() > flood_until_ns)
        return true;
    if (sent != stalled_at) {
        stalled_at = sent;
        stalled_since_ns = domt_monotonic_ns();
    }
    return domt_monotonic_ns() - stalled_since_ns > UINT64_C(400000000);
}

/* Returns the longest round trip of each normal client, in ms. */
static double longest_round_trip_ms(int fd, int count)
{
    uint64_t worst_ns = 0;

    for (int i = 0; i < count; i++) {
        uint64_t start_ns = domt_monotonic_ns();
        ck_assert(domt_send_and_get_echo(fd, "are you there?"));
        uint64_t took_ns = domt_monotonic_ns() - start_ns;
        if (took_ns > worst_ns)
            worst_ns = took_ns;
    }
    return (double)worst_ns / 1e6;
}

/* Many clients send all they can and never read: more clients than the buffers suffice for, if each
 * held its share. Their sends stop, memory stays bounded, and normal clients are served; when the
 * flooding clients read at last, they get every byte. */
static void check_crowd_that_never_reads(uint32_t count, uint32_t piece_max, uint64_t flood_ms,
                                         uint64_t rss_max)
{
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS());
    int good = domt_connect_to_port(service.port);
    ck_assert(domt_send_and_get_echo(good, "hello"));
    uint64_t rss_before = domt_service_rss_bytes(&service);
    domt_crowd_init(&crowd, service.port, count);
    crowd.socket_bytes = 131072; /* with small socket buffers, bytes wait in the service */
    for (uint32_t i = 0; i < count; i++) {
        crowd.clients[i].deaf = true;
        crowd.clients[i].bytes = 64 * MIB;
        crowd.clients[i].piece_max = piece_max;
    }
    domt_crowd_connect_clients(&crowd, 0, count);
    stalled_at = 0;
    stalled_since_ns = domt_monotonic_ns();
    flood_until_ns = stalled_since_ns + flood_ms * 1000000;
    ck_assert(domt_crowd_run_until(&crowd, is_flood_over, 30000));
    uint64_t grown = domt_service_rss_bytes(&service) - rss_before;
    if (!DOMT_SANITIZED)
        ck_assert_msg(grown < rss_max, "%llu KiB more", (unsigned long long)grown / 1024);
    double worst_ms = longest_round_trip_ms(good, 200);
    ck_assert_msg(worst_ms < 500, "a round trip took %.0f ms", worst_ms);
    int late = domt_connect_to_port(service.port);
    ck_assert(domt_send_and_get_echo(late, "a new one is served too"));
    for (uint32_t i = 0; i < count; i++) {
        crowd.clients[i].bytes = crowd.clients[i].sent;
        crowd.clients[i].deaf = false;
    }
    ck_assert(domt_crowd_run_until(&crowd, domt_crowd_all_are_closed, 30000));
    domt_crowd_check_echoes(&crowd);
    domt_crowd_fini(&crowd);
    close(good);
    close(late);
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels reset"), 0);
}

/* In the worst case each client has channel.sendHigh bytes and its share of the buffers waiting. */
DOMT_TEST(readers_that_never_read_stop_being_read_and_hurt_nobody)
{
    check_crowd_that_never_reads(DOMT_SCALE(100, 40), 0, 60000, DOMT_SCALE(100, 40) * MIB * 3 / 4);
}

/* Small pieces take more memory in the service than their bytes, because each has its own
 * bookkeeping. */
DOMT_TEST(floods_of_small_messages_stop_being_read_and_hurt_nobody)
{
    check_crowd_that_never_reads(20, 3, 1000, 20 * MIB * 3 / 4);
}

DOMT_TEST(slow_clients_are_served_byte_by_byte)
{
    enum { COUNT = 50, BYTES = 40 };
    static int fds[COUNT];

    domt_service_start(&service, DOMT_ECHO_ARGUMENTS());
    for (int i = 0; i < COUNT; i++)
        fds[i] = domt_connect_to_port(service.port);
    for (int at = 0; at < BYTES; at++) {
        for (int i = 0; i < COUNT; i++) {
            char byte = (char)(at * 3 + i);
            char back = 0;
            ck_assert_int_eq(send(fds[i], &byte, 1, 0), 1);
            ck_assert_int_eq(recv(fds[i], &back, 1, 0), 1);
            ck_assert_int_eq(back, byte);
        }
        domt_sleep_ms(1);
    }
    for (int i = 0; i < COUNT; i++)
        close(fds[i]);
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "received bytes"), COUNT * BYTES);
}

DOMT_TEST(storms_of_connects_and_closes_leave_nothing_behind)
{
    uint32_t count = DOMT_SCALE(3000, 500);

    domt_service_start(&service, DOMT_ECHO_ARGUMENTS());
    int good = domt_connect_to_port(service.port);
    for (uint32_t i = 0; i < count; i++) {
        domt_client client = {.fd = domt_connect_to_port(service.port)};
        if (i % 3 == 2)
            ck_assert_int_eq(send(client.fd, "x", 1, MSG_NOSIGNAL), 1);
        domt_client_close(&client, i % 2 == 1);
        if (i % 100 == 0)
            ck_assert(domt_send_and_get_echo(good, "still here"));
    }
    ck_assert(domt_send_and_get_echo(good, "still here"));
    close(good);
    domt_service_stop(&service);
    ck_assert_uint_ge(domt_service_count_in_profile(&service, "accepted"), count / 2);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels closed"),
                      domt_service_count_in_profile(&service, "accepted"));
}

DOMT_TEST(who_says_nothing_is_closed_after_the_idle_time_out)
{
    enum { COUNT = 20 };
    int fds[COUNT];
    char byte;

    domt_service_start(&service, DOMT_ECHO_ARGUMENTS("--set", "channel.idleTimeout=500ms", ));
    int busy = domt_connect_to_port(service.port);
    for (int i = 0; i < COUNT; i++)
        fds[i] = domt_connect_to_port(service.port);
    for (int i = 0; i < 20; i++) {
        ck_assert(domt_send_and_get_echo(busy, "not idle"));
        domt_sleep_ms(30);
    }
    for (int i = 0; i < COUNT; i++) {
        ck_assert(domt_send_and_get_echo(busy, "not idle"));
        ck_assert_int_eq(recv(fds[i], &byte, 1, 0), 0);
        close(fds[i]);
    }
    ck_assert(domt_send_and_get_echo(busy, "not idle"));
    close(busy);
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels reset"), COUNT);
}

/* --- abuse pipelining ------------------------------------------------------------------------- */

/* Clients of examples/kv and examples/lines that send one request after another without waiting:
 * they never read, or they still send when the service ends. */

#define CLIENTS_MAX 100

/* --- clients that never read ------------------------------------------------------------------ */

/* A client that sends the same request again and again. */
typedef struct pipeliner {
    int fd;
    uint64_t bytes; /* bytes that the client has sent */
    uint64_t heard; /* line ends that the client has received */
    bool has_ended; /* the service has closed the client's connection */
} pipeliner;

static pipeliner clients[CLIENTS_MAX];

/* Send what the kernel accepts of the client's requests, at most 100 requests. Returns the number
 * of bytes. */
static size_t send_requests_until_full(pipeliner *client, const domt_protocol *with)
{
    char bytes[100 * 64];
    size_t size = strlen(with->request);
    size_t at = client->bytes % size;

    for (size_t i = 0; i < 100; i++)
        memcpy(bytes + i * size, with->request, size);
    ssize_t sent = send(client->fd, bytes + at, 100 * size - at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0)
        return 0;
    client->bytes += (uint64_t)sent;
    return (size_t)sent;
}

/* Read the bytes of answers that have come, and count their line ends. */
static void read_answers_that_have_come(pipeliner *client, int flags)
{
    static char bytes[65536];
    ssize_t got = recv(client->fd, bytes, sizeof bytes, flags);

    for (ssize_t i = 0; i < got; i++)
        client->heard += bytes[i] == '\n';
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        client->has_ended = true;
}

/* Send until the service has accepted nothing for 300 ms, or for at most 30 s. */
static void flood_until_service_is_full(const domt_protocol *with, int count)
{
    uint64_t now_ns = domt_monotonic_ns();
    uint64_t end_ns = now_ns + UINT64_C(30000000000);
    uint64_t last_ns = now_ns;

    for (; now_ns < end_ns && now_ns - last_ns < 300000000u; now_ns = domt_monotonic_ns()) {
        size_t sent = 0;
        for (int i = 0; i < count; i++)
            sent += send_requests_until_full(&clients[i], with);
        if (sent != 0)
            last_ns = now_ns;
        else
            domt_sleep_ms(1);
    }
    ck_assert_msg(now_ns < end_ns, "the service still reads");
}

/* Send the rest of the client's last request, then FIN. Returns whether everything was sent. */
static bool finish_last_request_and_send_fin(pipeliner *client, const domt_protocol *with)
{
    size_t size = strlen(with->request);
    size_t at = client->bytes % size;
    ssize_t sent = 0;

    if (at != 0) {
        sent = send(client->fd, with->request + at, size - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        client->bytes += sent > 0 ? (uint64_t)sent : 0;
    }
    if (client->bytes % size != 0)
        return false;
    ck_assert_msg(shutdown(client->fd, SHUT_WR) == 0, "reset: %s", strerror(errno));
    return true;
}

/* Let all clients finish sending and read to the end, and check that each request was answered. */
static void read_all_answers_and_check(const domt_protocol *with, int count)
{
    bool finished[CLIENTS_MAX] = {false};

    for (int left = count; left != 0;) {
        left = 0;
        for (int i = 0; i < count; i++) {
            if (clients[i].has_ended)
                continue;
            read_answers_that_have_come(&clients[i], MSG_DONTWAIT);
            if (!finished[i])
                finished[i] = finish_last_request_and_send_fin(&clients[i], with);
            left++;
        }
    }
    for (int i = 0; i < count; i++) {
        ck_assert_uint_eq(clients[i].heard, clients[i].bytes / strlen(with->request) * with->lines);
        close(clients[i].fd);
    }
}

static void check_clients_that_never_read(const domt_protocol *with)
{
    int count = domt_tests_are_long() ? DOMT_SCALE(40, 10) : DOMT_SCALE(10, 2);
    int good = domt_protocol_start_and_connect(&service, with, NULL);
    uint64_t before = domt_service_rss_bytes(&service);

    for (int i = 0; i < count; i++)
        clients[i] = (pipeliner){.fd = domt_connect_with_small_buffers(&service)};
    flood_until_service_is_full(with, count);
    uint64_t grown = domt_service_rss_bytes(&service) - before;
    double worst_ms = domt_measure_worst_trip_ms(good, with, 200);
    int late = domt_connect_to_port(service.port);
    ck_assert(domt_is_good_client_answered(late, with));
    fprintf(stderr, "%s: %d that never read: %llu KiB more, worst round trip %.1f ms\n", with->name,
            count, (unsigned long long)grown / 1024, worst_ms);
    if (!DOMT_SANITIZED)
        ck_assert_uint_lt(grown, (uint64_t)count * MIB * 3 / 4);
    ck_assert_msg(worst_ms < 500, "a round trip took %.0f ms", worst_ms);
    read_all_answers_and_check(with, count);
    close(good);
    close(late);
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels reset"), 0);
}

DOMT_TEST(pipelining_clients_that_never_read_hurt_nobody)
{
    check_clients_that_never_read(&domt_kv);
    check_clients_that_never_read(&domt_lines);
    check_clients_that_never_read(&domt_web);
}

/* --- the end under load ----------------------------------------------------------------------- */

/* Clients send until they see that the service ends. The service answers all that it has read: the
 * bytes that it counts are those of the answered requests, and of a part of one request of each
 * client. Its end takes less than the whole time of a drain. */
static void check_stop_while_clients_send(const domt_protocol *with)
{
    int count = domt_tests_are_long() ? DOMT_SCALE(16, 8) : DOMT_SCALE(8, 2);
    size_t size = strlen(with->request);
    uint64_t before = domt_protocol_bytes_sent_at_start(with);
    /* Clients that read more slowly than the service lingers would lose the end of their answers.
     * With a sanitizer on a busy machine the remaining answers take longer than a drain lasts. */
    static const char *const slow[] = {
        "--set", "channel.linger=15s", "--set",
        DOMT_SCALE("shutdown.drainTimeout=10s", "shutdown.drainTimeout=40s"), NULL};
    int good = domt_protocol_start_and_connect(&service, with, slow);
    close(good);
    for (int i = 0; i < count; i++)
        clients[i] = (pipeliner){.fd = domt_connect_with_small_buffers(&service)};
    uint64_t end_ns = domt_monotonic_ns() + UINT64_C(200000000);
    while (domt_monotonic_ns() < end_ns) {
        for (int i = 0; i < count; i++) {
            (void)send_requests_until_full(&clients[i], with);
            read_answers_that_have_come(&clients[i], MSG_DONTWAIT);
        }
    }
    domt_service_signal(&service, SIGTERM);
    for (int left = count; left != 0;) {
        left = 0;
        for (int i = 0; i < count; i++) {
            if (clients[i].has_ended)
                continue;
            /* the client goes on sending, and has not seen the end */
            (void)send_requests_until_full(&clients[i], with);
            read_answers_that_have_come(&clients[i], MSG_DONTWAIT);
            if (clients[i].has_ended)
                close(clients[i].fd);
            left++;
        }
    }
    ck_assert_int_eq(domt_service_wait(&service, DOMT_SCALE(20000, 60000)), 0);
    uint64_t answered = 0;
    for (int i = 0; i < count; i++) {
        uint64_t more = clients[i].heard % with->lines; /* lines of an answer that is incomplete */
        ck_assert_uint_le(more, with->last_lines);
        ck_assert_uint_le(clients[i].heard / with->lines, clients[i].bytes / size);
        answered += clients[i].heard / with->lines;
    }
    uint64_t read = domt_service_count_in_profile(&service, "received bytes") - before;
    fprintf(stderr, "%s: %llu answers, %llu bytes read, and %llu thrown away behind them\n",
            with->name, (unsigned long long)answered, (unsigned long long)read,
            (unsigned long long)domt_service_count_in_profile(&service, "discarded bytes"));
    ck_assert_uint_ge(read, answered * size);
    /* the service read the answered requests, and at most a part of one more from each client */
    ck_assert_uint_lt(read, (answered + (uint64_t)count) * size);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels cut"), 0);
}

DOMT_TEST(at_its_end_the_service_answers_all_that_it_has_read)
{
    check_stop_while_clients_send(&domt_kv);
    check_stop_while_clients_send(&domt_lines);
    check_stop_while_clients_send(&domt_web);
}

DOMT_SUITE(120)
