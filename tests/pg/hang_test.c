/* A server that hangs: cancels do not use up the helper threads of the process, connections are
 * given up, and their statements do not go on running when the server is back. */
#include "tests/pg/user.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MS   UINT64_C(1000000)
#define DEAD 6u /* number of sessions that hang */

static domt_postgres server;
static domt_pg_user user;

static const domus_sql_statement sleeps = {.text = "SELECT pg_sleep(600)", .timeout_ns = 1000 * MS};
static const domus_sql_statement counts = {
    .text = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = "
            "'active'"};

static int64_t count_sleepers(domt_pg_user *who)
{
    domt_pg_answer answer = domt_pg_query(who, who->sql, &counts, NULL, 0);
    int64_t count = -1;

    if (answer.error == 0)
        ck_assert_int_eq(domus_sql_get_int(&answer.as.result, 0, 0, &count), 0);
    domt_pg_free(&answer);
    return count;
}

/* Returns the number of cancels whose connections the server has not accepted; each uses a helper
 * thread. */
static int count_cancels(void)
{
    char line[256], end[32];
    int count = 0;
    FILE *file = fopen("/proc/net/tcp", "re");

    ck_assert_ptr_nonnull(file);
    /* connections to the server's port that are established */
    snprintf(end, sizeof end, ":%04X 01 ", server.port);
    while (fgets(line, sizeof line, file) != NULL)
        count += strstr(line, end) != NULL;
    fclose(file);
    return count;
}

DOMT_TEST(cancels_at_a_server_that_hangs_are_bounded)
{
    static const domus_sql_options options = {.connections_max = 4, .wait_ns = 20000 * MS};
    domus_outside_message message;
    domus_sql_request request;
    domt_pg_user other;

    domt_postgres_start(&server, NULL);
    domt_pg_user_start(&user, server.url, &options);
    domt_pg_user_start(&other, server.unix_url, NULL);
    for (uint64_t tag = 0; tag < 4; tag++) {
        ck_assert_int_eq(domus_sql_request_make(user.sql, &sleeps, NULL, NULL, 0, &request), 0);
        ck_assert_int_eq(domus_outsider_ask_add(user.outsider, user.sql.at, &domus_sql_query_type,
                                                &request, 60000 * MS, tag),
                         0);
    }
    for (int i = 0; i < 4000 && count_sleepers(&other) != 4; i++)
        nanosleep(&(struct timespec){.tv_nsec = (long)MS}, NULL);
    kill(server.pid, SIGSTOP); /* sessions go on, but the server accepts no new connection */
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(domus_outside_receive(user.outsider, NULL, 60000 * MS, &message), 0);
        ck_assert_ptr_eq(message.type, &domus_sql_error_type);
        ck_assert_int_eq(((const domus_sql_error *)message.payload)->error, -ETIMEDOUT);
    }
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    ck_assert_int_le(count_cancels(), 4 + 1);
    for (int i = 0; i < 4000 && domt_pg_read_status(&user).failures < 4; i++)
        nanosleep(&(struct timespec){.tv_nsec = (long)(5 * MS)}, NULL);
    ck_assert_uint_eq(domt_pg_read_status(&user).failures, 4);
    kill(server.pid, SIGCONT);
    for (int i = 0; i < 4000 && count_sleepers(&other) != 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = (long)(10 * MS)}, NULL);
    ck_assert_int_eq(count_sleepers(&other), 0);
    ck_assert_int_eq(domt_pg_query_number(&user, user.sql, "SELECT 7"), 7);
    domt_pg_user_stop(&other);
    domt_pg_user_stop(&user);
    domt_postgres_stop(&server);
}

/* Suspend the server's processes that run pg_sleep(). */
static void stop_sleepers(domt_pg_user *who)
{
    domt_pg_answer answer = domt_pg_text(
        who, who->sql, "SELECT pid FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'");

    ck_assert_int_eq(answer.error, 0);
    ck_assert_uint_eq(answer.as.result.rows, DEAD);
    for (uint32_t i = 0; i < DEAD; i++) {
        int64_t pid;
        ck_assert_int_eq(domus_sql_get_int(&answer.as.result, i, 0, &pid), 0);
        ck_assert_int_eq(kill((pid_t)pid, SIGSTOP), 0);
    }
    domt_pg_free(&answer);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The server accepts cancels, but its sessions do not react, as if a firewall had forgotten them.
 * Each connection is given up at its own time: the cancels of other connections do not delay
 * that. */
DOMT_TEST(sessions_that_are_dead_are_given_up)
{
    static const domus_sql_options options = {
        .connections_max = DEAD, .connections_min = DEAD, .wait_ns = 20000 * MS};
    domt_pg_received answers[DEAD];
    domt_pg_user other;

    domt_postgres_start(&server, NULL);
    domt_pg_user_start(&user, server.url, &options);
    domt_pg_user_start(&other, server.unix_url, NULL);
    for (int i = 0; i < 4000 && domt_pg_read_status(&user).connections < DEAD; i++)
        nanosleep(&(struct timespec){.tv_nsec = (long)(5 * MS)}, NULL);
    for (uint64_t tag = 0; tag < DEAD; tag++)
        domt_pg_send(&user, user.sql, &sleeps, NULL, 0, tag);
    for (int i = 0; i < 4000 && count_sleepers(&other) != DEAD; i++)
        nanosleep(&(struct timespec){.tv_nsec = (long)MS}, NULL);
    stop_sleepers(&other);
    domt_pg_receive_all(&user, answers, DEAD);
    uint64_t began = now_ns();
    while (domt_pg_read_status(&user).failures < DEAD && now_ns() - began < 20000 * MS)
        nanosleep(&(struct timespec){.tv_nsec = (long)(5 * MS)}, NULL);
    ck_assert_uint_eq(domt_pg_read_status(&user).failures, DEAD);
    ck_assert_uint_lt(now_ns() - began, 9000 * MS); /* all end after 5 s, not one after the other */
    ck_assert_int_eq(domt_pg_query_number(&user, user.sql, "SELECT 7"), 7);
    domt_pg_user_stop(&other);
    domt_pg_user_stop(&user);
    domt_postgres_stop(&server);
}

DOMT_SUITE(120)
