/* A server that is far away, behind a proxy that delays each new connection: cancels, each of which
 * needs a connection, come one after the other, and no connection is given up as long as its cancel
 * comes. */
#include "tests/pg/user.h"
#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MS        UINT64_C(1000000)
#define SLEEPERS  3
#define WAIT_MS   1800 /* delay in ms; three delays are longer than the time-out of a cancel */
#define LINES_MAX 32

static domt_postgres server;
static domt_pg_user user;

static int listener;
static atomic_uint wait_ms; /* delay of a new connection in ms */
static pthread_t lines[LINES_MAX];

static struct sockaddr_in at_port(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void pause_ms(uint32_t ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000 * MS)}, NULL);
}

/* Forward the bytes that have come at one end. Returns whether more bytes may come. */
static bool forward_bytes(int from, int to)
{
    char bytes[4096];
    ssize_t size = recv(from, bytes, sizeof bytes, 0);

    return size > 0 && send(to, bytes, (size_t)size, MSG_NOSIGNAL) == size;
}

static void *delay_and_forward(void *argument)
{
    int near = (int)(intptr_t)argument;
    int far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = at_port(server.port);

    pause_ms(atomic_load(&wait_ms));
    bool is_there = connect(far, (struct sockaddr *)&address, sizeof address) == 0;
    while (is_there) {
        struct pollfd ends[2] = {{.fd = near, .events = POLLIN}, {.fd = far, .events = POLLIN}};
        (void)poll(ends, 2, -1);
        is_there = (ends[0].revents == 0 || forward_bytes(near, far)) &&
                   (ends[1].revents == 0 || forward_bytes(far, near));
    }
    close(near);
    close(far);
    return NULL;
}

/* Accept connections until the listener is shut down, and join their threads. */
static void *run_proxy(void *argument)
{
    int count = 0, fd;

    while (count < LINES_MAX && (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        ck_assert_int_eq(
            pthread_create(&lines[count++], NULL, delay_and_forward, (void *)(intptr_t)fd), 0);
    for (int i = 0; i < count; i++)
        pthread_join(lines[i], NULL);
    return NULL;
}

static uint16_t listen_near(void)
{
    struct sockaddr_in address = at_port(0);
    socklen_t size = sizeof address;

    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(listener, 16), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    return ntohs(address.sin_port);
}

DOMT_TEST(slow_cancels_lose_no_connection)
{
    static const domus_sql_statement nap = {.text = "SELECT pg_sleep(0.5)"};
    static const domus_sql_statement sleeps = {.text = "SELECT pg_sleep(60)",
                                               .timeout_ns = 300 * MS};
    domt_pg_received answers[SLEEPERS];
    pthread_t proxy;
    char url[128];

    domt_postgres_start(&server, NULL);
    snprintf(url, sizeof url, "postgresql://postgres@127.0.0.1:%u/postgres?sslmode=disable",
             listen_near());
    ck_assert_int_eq(pthread_create(&proxy, NULL, run_proxy, NULL), 0);
    domt_pg_user_start(&user, url, &(domus_sql_options){.connections_max = SLEEPERS});
    while (domt_pg_read_status(&user).connections != SLEEPERS) {
        for (uint64_t tag = 0; tag < SLEEPERS; tag++)
            domt_pg_send(&user, user.sql, &nap, NULL, 0, tag);
        domt_pg_receive_all(&user, answers, SLEEPERS);
    }
    atomic_store(&wait_ms, WAIT_MS);
    for (uint64_t tag = 0; tag < SLEEPERS; tag++)
        domt_pg_send(&user, user.sql, &sleeps, NULL, 0, tag);
    domt_pg_receive_all(&user, answers, SLEEPERS);
    for (uint32_t i = 0; i < SLEEPERS; i++)
        ck_assert_int_eq(answers[i].error, -ETIMEDOUT);
    domt_pg_await_idle(&user);
    domus_sql_status status = domt_pg_read_status(&user);
    ck_assert_uint_eq(status.failures, 0);
    ck_assert_uint_eq(status.connects, SLEEPERS);
    domt_pg_user_stop(&user);
    (void)shutdown(listener, SHUT_RDWR);
    pthread_join(proxy, NULL);
    close(listener);
    domt_postgres_stop(&server);
}

DOMT_SUITE(120)
