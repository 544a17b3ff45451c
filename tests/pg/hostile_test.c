/* A wrong server, which misuses the protocol of PostgreSQL: each query gets one error, memory stays
 * bounded, and the thread goes on. */
#include "tests/pg/user.h"
#include "tests/support/process.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

/* Bytes that a hostile server sends after a connection has begun, and after a query. The flood of
 * each of the two is then repeated without end. */
typedef struct part {
    const char *bytes;
    size_t size;
} part;

#define PART(text)                                                                                 \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }
#define WELCOME "R\0\0\0\x08\0\0\0\0K\0\0\0\x0c\0\0\0\x07\0\0\0\x08Z\0\0\0\x05I"
#define NOTICE  "N\0\0\0\x12SNOTICE\0Mwords\0"
#define STATUS  "S\0\0\0\x0bname\0x\0"

static const struct hostile {
    const char *name;
    part at_begin, flood_at_begin;
    part at_query, flood_at_query;
    bool is_slow; /* whether the server sends one byte at a time */
} servers[] = {
    {"garbage for a greeting", PART("\xff\xfe garbage"), {0}, {0}, {0}, false},
    {"a greeting without an end", PART("R\0\0\0\x08\0\0\0\0"), PART(NOTICE), {0}, {0}, false},
    {"a greeting of 2 GiB", PART("N\x7f\xff\xff\xff"), PART("xxxxxxxx"), {0}, {0}, false},
    {"a length below its own", PART(WELCOME), {0}, PART("D\0\0\0\0"), {0}, false},
    {"garbage for an answer", PART(WELCOME), {0}, PART("\x01\x02\x03\x04\x05\x06\x07"), {0}, false},
    {"a row of 2 GiB",
     PART(WELCOME),
     {0},
     PART("D\x7f\xff\xff\xff\0\x01"),
     PART("xxxxxxxx"),
     false},
    {"more cells than columns",
     PART(WELCOME),
     {0},
     PART("1\0\0\0\x04"
          "2\0\0\0\x04"
          "T\0\0\0\x1b\0\x01"
          "a\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0"
          "D\0\0\0\x10\0\x02\0\0\0\x01x\0\0\0\x01x"),
     {0},
     false},
    {"notices without an end", PART(WELCOME), {0}, PART(NOTICE), PART(NOTICE), false},
    {"states without an end", PART(WELCOME), {0}, PART(STATUS), PART(STATUS), false},
    {"notices that nobody has asked for", PART(WELCOME), PART(NOTICE), {0}, {0}, false},
    {"a row of 2 GiB that nobody has asked for",
     PART(WELCOME "D\x7f\xff\xff\xff"),
     PART("xxxxxxxx"),
     {0},
     {0},
     false},
    {"a byte at a time", PART(WELCOME), {0}, PART("1"), PART(NOTICE), true},
};

static const struct hostile *hostile;
static int listener;
static atomic_bool is_over;
static atomic_int sessions;

static bool send_all_bytes(int fd, const char *bytes, size_t size)
{
    while (size > 0 && !atomic_load(&is_over)) {
        ssize_t sent = send(fd, bytes, hostile->is_slow ? 1 : size, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
            return false;
        size -= sent > 0 ? (size_t)sent : 0;
        bytes += sent > 0 ? sent : 0;
        if (hostile->is_slow)
            nanosleep(&(struct timespec){.tv_nsec = (long)(20 * MS)}, NULL);
    }
    return size == 0;
}

/* Send the bytes `first`, and then `flood` without end, in large blocks. */
static bool send_part_and_flood(int fd, const part *first, const part *flood)
{
    static _Thread_local char many[65536];
    size_t size = 0;

    if (!send_all_bytes(fd, first->bytes, first->size))
        return false; /* The client has closed its connection, for instance that of a cancel. */
    if (flood->size == 0)
        return true;
    while (size + flood->size <= sizeof many) {
        memcpy(many + size, flood->bytes, flood->size);
        size += flood->size;
    }
    while (send_all_bytes(fd, many, size))
        ;
    return false;
}

static void *serve_hostile_connection(void *argument)
{
    int fd = (int)(intptr_t)argument;
    const struct timeval patience = {.tv_usec = 100000};
    char bytes[4096];

    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (recv(fd, bytes, sizeof bytes, 0) > 0 &&
        send_part_and_flood(fd, &hostile->at_begin, &hostile->flood_at_begin) &&
        recv(fd, bytes, sizeof bytes, 0) > 0 &&
        send_part_and_flood(fd, &hostile->at_query, &hostile->flood_at_query)) {
        while (recv(fd, bytes, sizeof bytes, 0) > 0)
            ;
    }
    close(fd);
    atomic_fetch_sub(&sessions, 1);
    return NULL;
}

static void *accept_hostile_connections(void *argument)
{
    for (;;) {
        pthread_t thread;
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            return NULL;
        atomic_fetch_add(&sessions, 1);
        ck_assert_int_eq(
            pthread_create(&thread, NULL, serve_hostile_connection, (void *)(intptr_t)fd), 0);
        (void)pthread_detach(thread);
    }
}

static uint16_t listen_on_loopback(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;

    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(listener, 16), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    return ntohs(address.sin_port);
}

static void query_hostile_server(const struct hostile *row)
{
    static const domus_sql_options options = {.connections_max = 2,
                                              .result_max = 1u << 20,
                                              .timeout_ns = 500 * MS,
                                              .connect_timeout_ns = 1000 * MS,
                                              .wait_ns = 2000 * MS};
    static const domus_sql_statement asks = {.text = "SELECT 1"};
    pthread_t acceptor;
    domt_pg_user user;
    char url[100];

    hostile = row;
    atomic_store(&is_over, false);
    snprintf(url, sizeof url, "postgresql://u@127.0.0.1:%u/d?sslmode=disable",
             listen_on_loopback());
    ck_assert_int_eq(pthread_create(&acceptor, NULL, accept_hostile_connections, NULL), 0);
    domt_pg_user_start_system(&user, url, &options);
    uint64_t before = domt_resident_bytes(getpid());
    for (int i = 0; i < 3; i++) {
        domt_pg_answer answer = i == 2 ? domt_pg_run_text(&user, user.sql, "SELECT 1")
                                       : domt_pg_run_statement(&user, user.sql, &asks, NULL, 0);
        ck_assert_msg(answer.error != 0, "%s", row->name);
        ck_assert_msg(answer.type == &domus_sql_error_type, "%s: %d", row->name, answer.error);
        (void)domt_pg_read_database_status(
            &user); /* The status comes from the database's actor, so the thread goes on. */
    }
    uint64_t after = domt_resident_bytes(getpid());
    ck_assert_msg(DOMT_SANITIZED || after < before + (32u << 20), "%s: %llu MiB", row->name,
                  (unsigned long long)(after - before) >> 20);
    atomic_store(&is_over, true);
    domt_pg_user_stop_system(&user);
    shutdown(listener, SHUT_RDWR);
    ck_assert_int_eq(pthread_join(acceptor, NULL), 0);
    close(listener);
    for (int i = 0; i < 4000 && atomic_load(&sessions) != 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = (long)(5 * MS)}, NULL);
    ck_assert_msg(atomic_load(&sessions) == 0, "%s", row->name);
}

DOMT_TEST(hostile_server_only_fails_its_queries)
{
    for (size_t i = 0; i < sizeof servers / sizeof servers[0]; i++)
        query_hostile_server(&servers[i]);
}

DOMT_SUITE(240)
