/* Connections that break, and servers that restart, are wrong, or hang: each query gets one answer
 * or one error, and the pool connects again. */
#include "tests/pg/user.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Connections that break, servers that restart, and wrong servers: each query gets one answer or
 * one error, and the pool connects again. */

#define MS UINT64_C(1000000)

static domt_postgres server;
static domt_pg_user user;

static const domus_sql_options quick = {.connections_max = 4,
                                        .wait_ns = 20000 * MS,
                                        .backoff_min_ns = 10 * MS,
                                        .backoff_max_ns = 50 * MS};

static void start_server_with_user(const domus_sql_options *options)
{
    domt_postgres_start(&server, NULL);
    domt_pg_user_start_system(&user, server.url, options);
}

static void stop_server_and_user(void)
{
    domt_pg_user_stop_system(&user);
    domt_postgres_stop(&server);
}

static const domus_sql_statement ends_itself = {
    .text = "SELECT pg_terminate_backend(pg_backend_pid())"};
static const domus_sql_statement once = {
    .text = "SELECT CASE WHEN nextval('s') % 2 = 1 THEN pg_terminate_backend(pg_backend_pid()) END",
    .repeatable = true};

/* A query that may have been executed when its connection breaks fails with -EPIPE; a query that
 * may be repeated is sent again. */
DOMT_TEST(broken_connection_fails_or_repeats_query)
{
    start_server_with_user(&quick);
    domt_pg_run_script(&user, "CREATE SEQUENCE s");
    domt_pg_answer answer = domt_pg_run_statement(&user, user.sql, &ends_itself, NULL, 0);
    ck_assert_int_eq(answer.error, -EPIPE);
    ck_assert_int_eq(domt_pg_run_text_for_number(&user, user.sql, "SELECT 7"), 7);
    answer = domt_pg_run_statement(&user, user.sql, &once, NULL, 0);
    ck_assert_int_eq(answer.error, 0);
    domt_pg_free_answer(&answer);
    ck_assert_uint_eq(domt_pg_read_database_status(&user).repeated, 1);
    domus_sql sql = domt_pg_begin_transaction(&user);
    ck_assert_int_eq(domt_pg_run_statement(&user, sql, &once, NULL, 0).error, -EPIPE);
    ck_assert_int_eq(domt_pg_run_statement(&user, sql, &once, NULL, 0).error, -ESTALE);
    ck_assert_int_eq(domt_pg_end_transaction(&user, sql, true).error, -ESTALE);
    stop_server_and_user();
}

DOMT_TEST(queries_wait_during_server_restart)
{
    start_server_with_user(&quick);
    for (int round = 0; round < 3; round++) {
        ck_assert_int_eq(domt_pg_run_text_for_number(&user, user.sql, "SELECT 7"), 7);
        domt_postgres_signal_and_wait(&server, round % 2 == 0 ? SIGINT : SIGQUIT);
        domus_sql_request request;
        ck_assert_int_eq(domus_sql_request_make(user.sql, NULL, "SELECT 8", NULL, 0, &request), 0);
        ck_assert_int_eq(domus_outsider_ask_add(user.outsider, user.sql.at, &domus_sql_query_type,
                                                &request, 0, 1),
                         0);
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        domt_postgres_start_again(&server);
        domus_outside_message message;
        ck_assert_int_eq(domus_outside_receive(user.outsider, NULL, 20000 * MS, &message), 0);
        ck_assert_ptr_eq(message.type, &domus_sql_result_type);
    }
    stop_server_and_user();
}

/* Without a server queries wait for wait_ns, and later ones fail at once; the words of the error
 * contain no password. */
DOMT_TEST(missing_server_fails_queries)
{
    static const domus_sql_options options = {
        .wait_ns = 200 * MS, .backoff_min_ns = 10 * MS, .backoff_max_ns = 50 * MS};
    static const struct {
        const char *url;
        const char *words;
    } rows[] = {
        {"postgresql://u:secret@127.0.0.1:1/d", "refused"},
        {"postgresql://u:secret@no.such.host.invalid/d", "translate"},
        {"postgresql://u:secret@/d?host=/nonexistent", "No such file"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domt_pg_user_start_system(&user, rows[i].url, &options);
        for (int round = 0; round < 2; round++) {
            domt_pg_answer answer = domt_pg_run_text(&user, user.sql, "SELECT 1");
            ck_assert_ptr_eq(answer.type, &domus_sql_error_type);
            ck_assert_msg(answer.error == -ENOTCONN || (round == 0 && answer.error == -EBUSY),
                          "%s: %d", rows[i].url, answer.error);
            ck_assert_msg(answer.error == -EBUSY ||
                              strstr(answer.as.failure.message, rows[i].words) != NULL,
                          "%s", answer.as.failure.message);
            ck_assert_ptr_null(strstr(answer.as.failure.message, "secret"));
        }
        domt_pg_user_stop_system(&user);
    }
}

DOMT_TEST(refused_login_is_reported_and_retried)
{
    start_server_with_user(&quick);
    char url[160];
    snprintf(url, sizeof url, "postgresql://nobody:secret@127.0.0.1:%u/postgres", server.port);
    domt_pg_user other;
    domt_pg_user_start_system(&other, url,
                              &(domus_sql_options){.wait_ns = 2000 * MS,
                                                   .backoff_min_ns = 10 * MS,
                                                   .backoff_max_ns = 50 * MS});
    domt_pg_answer answer = domt_pg_run_text(&other, other.sql, "SELECT 1");
    ck_assert_int_eq(answer.error, -ENOTCONN);
    ck_assert_ptr_nonnull(strstr(answer.as.failure.message, "nobody"));
    domt_pg_run_script(&user, "CREATE ROLE nobody LOGIN");
    for (int i = 0; i < 4000 && domt_pg_read_database_status(&other).connections == 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    answer = domt_pg_run_text(&other, other.sql, "SELECT 1");
    ck_assert_int_eq(answer.error, 0);
    domt_pg_free_answer(&answer);
    domt_pg_user_stop_system(&other);
    stop_server_and_user();
}

/* Stopping a system while any work on a database is under way leaks nothing and does not take
 * long. */
DOMT_TEST(stop_of_system_ends_work_under_way)
{
    start_server_with_user(&quick);
    domus_sql sql = domt_pg_begin_transaction(&user);
    ck_assert_uint_ne(sql.transaction, 0);
    for (uint64_t tag = 1; tag <= 10; tag++) {
        domus_sql_request request;
        ck_assert_int_eq(
            domus_sql_request_make(user.sql, NULL, "SELECT pg_sleep(60)", NULL, 0, &request), 0);
        ck_assert_int_eq(domus_outsider_ask_add(user.outsider, user.sql.at, &domus_sql_query_type,
                                                &request, 0, tag),
                         0);
    }
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    ck_assert_int_eq(domus_outside_stop(user.system, user.sql.at), 0);
    for (int i = 0; i < 10; i++) {
        domus_outside_message message;
        ck_assert_int_eq(domus_outside_receive(user.outsider, NULL, 20000 * MS, &message), 0);
        ck_assert_ptr_eq(message.type, &domus_outsider_failed_type);
        /* -EPIPE: the query had been sent, and may have been executed */
        int error = *(const int *)message.payload;
        ck_assert(error == -ESTALE || error == -EPIPE);
    }
    stop_server_and_user();
}

/* --- hang ------------------------------------------------------------------------------------- */

/* A server that hangs: cancels do not use up the helper threads of the process, connections are
 * given up, and their statements do not go on running when the server is back. */

#define DEAD 6u /* number of sessions of the server that hang */

static const domus_sql_statement sleeps = {.text = "SELECT pg_sleep(600)", .timeout_ns = 1000 * MS};
static const domus_sql_statement counts = {
    .text = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = "
            "'active'"};

static int64_t count_sleeping_statements(domt_pg_user *who)
{
    domt_pg_answer answer = domt_pg_run_statement(who, who->sql, &counts, NULL, 0);
    int64_t count = -1;

    if (answer.error == 0)
        ck_assert_int_eq(domus_sql_get_int(&answer.as.result, 0, 0, &count), 0);
    domt_pg_free_answer(&answer);
    return count;
}

/* Returns the number of cancels whose connections the server has not accepted; each of them uses a
 * helper thread. */
static int count_unaccepted_cancels(void)
{
    char line[256], end[32];
    int count = 0;
    FILE *file = fopen("/proc/net/tcp", "re");

    ck_assert_ptr_nonnull(file);
    /* /proc/net/tcp shows established connections to the server's port with this end of the address
     * and state. */
    snprintf(end, sizeof end, ":%04X 01 ", server.port);
    while (fgets(line, sizeof line, file) != NULL)
        count += strstr(line, end) != NULL;
    fclose(file);
    return count;
}

DOMT_TEST(cancels_to_hanging_server_are_limited)
{
    static const domus_sql_options options = {.connections_max = 4, .wait_ns = 20000 * MS};
    domus_outside_message message;
    domus_sql_request request;
    domt_pg_user other;

    domt_postgres_start(&server, NULL);
    domt_pg_user_start_system(&user, server.url, &options);
    domt_pg_user_start_system(&other, server.unix_url, NULL);
    for (uint64_t tag = 0; tag < 4; tag++) {
        ck_assert_int_eq(domus_sql_request_make(user.sql, &sleeps, NULL, NULL, 0, &request), 0);
        ck_assert_int_eq(domus_outsider_ask_add(user.outsider, user.sql.at, &domus_sql_query_type,
                                                &request, 60000 * MS, tag),
                         0);
    }
    for (int i = 0; i < 4000 && count_sleeping_statements(&other) != 4; i++)
        nanosleep(&(struct timespec){.tv_nsec = (long)MS}, NULL);
    /* the stopped postmaster accepts no new connection, while the sessions of the server go on */
    kill(server.pid, SIGSTOP);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(domus_outside_receive(user.outsider, NULL, 60000 * MS, &message), 0);
        ck_assert_ptr_eq(message.type, &domus_sql_error_type);
        ck_assert_int_eq(((const domus_sql_error *)message.payload)->error, -ETIMEDOUT);
    }
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    ck_assert_int_le(count_unaccepted_cancels(), 4 + 1);
    for (int i = 0; i < 4000 && domt_pg_read_database_status(&user).failures < 4; i++)
        nanosleep(&(struct timespec){.tv_nsec = (long)(5 * MS)}, NULL);
    ck_assert_uint_eq(domt_pg_read_database_status(&user).failures, 4);
    kill(server.pid, SIGCONT);
    for (int i = 0; i < 4000 && count_sleeping_statements(&other) != 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = (long)(10 * MS)}, NULL);
    ck_assert_int_eq(count_sleeping_statements(&other), 0);
    ck_assert_int_eq(domt_pg_run_text_for_number(&user, user.sql, "SELECT 7"), 7);
    domt_pg_user_stop_system(&other);
    domt_pg_user_stop_system(&user);
    domt_postgres_stop(&server);
}

/* Suspend the server's processes that run pg_sleep(), as if they hung. */
static void suspend_sleeping_sessions(domt_pg_user *who)
{
    domt_pg_answer answer = domt_pg_run_text(
        who, who->sql, "SELECT pid FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'");

    ck_assert_int_eq(answer.error, 0);
    ck_assert_uint_eq(answer.as.result.rows, DEAD);
    for (uint32_t i = 0; i < DEAD; i++) {
        int64_t pid;
        ck_assert_int_eq(domus_sql_get_int(&answer.as.result, i, 0, &pid), 0);
        ck_assert_int_eq(kill((pid_t)pid, SIGSTOP), 0);
    }
    domt_pg_free_answer(&answer);
}

static uint64_t read_monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The server accepts cancels, but its sessions do not react, as if a firewall had forgotten them.
 * Each connection is given up at its own time: the cancels of other connections do not delay it. */
DOMT_TEST(hanging_sessions_are_given_up)
{
    static const domus_sql_options options = {
        .connections_max = DEAD, .connections_min = DEAD, .wait_ns = 20000 * MS};
    domt_pg_received answers[DEAD];
    domt_pg_user other;

    domt_postgres_start(&server, NULL);
    domt_pg_user_start_system(&user, server.url, &options);
    domt_pg_user_start_system(&other, server.unix_url, NULL);
    for (int i = 0; i < 4000 && domt_pg_read_database_status(&user).connections < DEAD; i++)
        nanosleep(&(struct timespec){.tv_nsec = (long)(5 * MS)}, NULL);
    for (uint64_t tag = 0; tag < DEAD; tag++)
        domt_pg_send_query(&user, user.sql, &sleeps, NULL, 0, tag);
    for (int i = 0; i < 4000 && count_sleeping_statements(&other) != DEAD; i++)
        nanosleep(&(struct timespec){.tv_nsec = (long)MS}, NULL);
    suspend_sleeping_sessions(&other);
    domt_pg_receive_answers(&user, answers, DEAD);
    uint64_t began = read_monotonic_ns();
    while (domt_pg_read_database_status(&user).failures < DEAD &&
           read_monotonic_ns() - began < 20000 * MS)
        nanosleep(&(struct timespec){.tv_nsec = (long)(5 * MS)}, NULL);
    ck_assert_uint_eq(domt_pg_read_database_status(&user).failures, DEAD);
    /* all connections are given up after 5 s, not one after the other */
    ck_assert_uint_lt(read_monotonic_ns() - began, 9000 * MS);
    ck_assert_int_eq(domt_pg_run_text_for_number(&user, user.sql, "SELECT 7"), 7);
    domt_pg_user_stop_system(&other);
    domt_pg_user_stop_system(&user);
    domt_postgres_stop(&server);
}

DOMT_SUITE(120)
