/* Clients of examples/kv and examples/lines that send one request after another without waiting:
 * they never read, or they still send when the service ends. */
#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/system/talks.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MIB         (UINT64_C(1) << 20)
#define CLIENTS_MAX 100

static domt_service service;

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
    ck_assert_uint_eq(domt_service_profile_count(&service, "channels reset"), 0);
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
    uint64_t before = domt_protocol_count_start_bytes(with);
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
    uint64_t read = domt_service_profile_count(&service, "received bytes") - before;
    fprintf(stderr, "%s: %llu answers, %llu bytes read, and %llu thrown away behind them\n",
            with->name, (unsigned long long)answered, (unsigned long long)read,
            (unsigned long long)domt_service_profile_count(&service, "discarded bytes"));
    ck_assert_uint_ge(read, answered * size);
    /* the service read the answered requests, and at most a part of one more from each client */
    ck_assert_uint_lt(read, (answered + (uint64_t)count) * size);
    ck_assert_uint_eq(domt_service_profile_count(&service, "channels cut"), 0);
}

DOMT_TEST(at_its_end_the_service_answers_all_that_it_has_read)
{
    check_stop_while_clients_send(&domt_kv);
    check_stop_while_clients_send(&domt_lines);
    check_stop_while_clients_send(&domt_web);
}

DOMT_SUITE(120)
