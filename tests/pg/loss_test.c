/* Connections that break, servers that restart, and wrong servers: each query gets one answer or
 * one error, and the pool connects again. */
#include "tests/pg/user.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MS UINT64_C(1000000)

static domt_postgres server;
static domt_pg_user user;

static const domus_sql_options quick = {.connections_max = 4,
                                        .wait_ns = 20000 * MS,
                                        .backoff_min_ns = 10 * MS,
                                        .backoff_max_ns = 50 * MS};

static void set_up(const domus_sql_options *options)
{
    domt_postgres_start(&server, NULL);
    domt_pg_user_start(&user, server.url, options);
}

static void tear_down(void)
{
    domt_pg_user_stop(&user);
    domt_postgres_stop(&server);
}

static const domus_sql_statement ends_itself = {
    .text = "SELECT pg_terminate_backend(pg_backend_pid())"};
static const domus_sql_statement once = {
    .text = "SELECT CASE WHEN nextval('s') % 2 = 1 THEN pg_terminate_backend(pg_backend_pid()) END",
    .repeatable = true};

/* A query that may have been executed fails with -EPIPE; a query that may be repeated is sent
 * again. */
DOMT_TEST(broken_connection_fails_or_repeats_its_query)
{
    set_up(&quick);
    domt_pg_run_script(&user, "CREATE SEQUENCE s");
    domt_pg_answer answer = domt_pg_query(&user, user.sql, &ends_itself, NULL, 0);
    ck_assert_int_eq(answer.error, -EPIPE);
    ck_assert_int_eq(domt_pg_query_number(&user, user.sql, "SELECT 7"), 7);
    answer = domt_pg_query(&user, user.sql, &once, NULL, 0);
    ck_assert_int_eq(answer.error, 0);
    domt_pg_free(&answer);
    ck_assert_uint_eq(domt_pg_read_status(&user).repeated, 1);
    domus_sql sql = domt_pg_begin(&user);
    ck_assert_int_eq(domt_pg_query(&user, sql, &once, NULL, 0).error, -EPIPE);
    ck_assert_int_eq(domt_pg_query(&user, sql, &once, NULL, 0).error, -ESTALE);
    ck_assert_int_eq(domt_pg_end(&user, sql, true).error, -ESTALE);
    tear_down();
}

DOMT_TEST(restart_is_bridged)
{
    set_up(&quick);
    for (int round = 0; round < 3; round++) {
        ck_assert_int_eq(domt_pg_query_number(&user, user.sql, "SELECT 7"), 7);
        domt_postgres_halt(&server, round % 2 == 0 ? SIGINT : SIGQUIT);
        domus_sql_request request;
        ck_assert_int_eq(domus_sql_request_make(user.sql, NULL, "SELECT 8", NULL, 0, &request), 0);
        ck_assert_int_eq(domus_outsider_ask_add(user.outsider, user.sql.at, &domus_sql_query_type,
                                                &request, 0, 1),
                         0);
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        domt_postgres_again(&server);
        domus_outside_message message;
        ck_assert_int_eq(domus_outside_receive(user.outsider, NULL, 20000 * MS, &message), 0);
        ck_assert_ptr_eq(message.type, &domus_sql_result_type);
    }
    tear_down();
}

/* Without a server queries wait for wait_ns, and later ones fail at once; the words of the error
 * contain no password. */
DOMT_TEST(no_server_is_told)
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
        domt_pg_user_start(&user, rows[i].url, &options);
        for (int round = 0; round < 2; round++) {
            domt_pg_answer answer = domt_pg_text(&user, user.sql, "SELECT 1");
            ck_assert_ptr_eq(answer.type, &domus_sql_error_type);
            ck_assert_msg(answer.error == -ENOTCONN || (round == 0 && answer.error == -EBUSY),
                          "%s: %d", rows[i].url, answer.error);
            ck_assert_msg(answer.error == -EBUSY ||
                              strstr(answer.as.failure.message, rows[i].words) != NULL,
                          "%s", answer.as.failure.message);
            ck_assert_ptr_null(strstr(answer.as.failure.message, "secret"));
        }
        domt_pg_user_stop(&user);
    }
}

DOMT_TEST(refused_login_is_told_and_found_out_again)
{
    set_up(&quick);
    char url[160];
    snprintf(url, sizeof url, "postgresql://nobody:secret@127.0.0.1:%u/postgres", server.port);
    domt_pg_user other;
    domt_pg_user_start(&other, url,
                       &(domus_sql_options){.wait_ns = 2000 * MS,
                                            .backoff_min_ns = 10 * MS,
                                            .backoff_max_ns = 50 * MS});
    domt_pg_answer answer = domt_pg_text(&other, other.sql, "SELECT 1");
    ck_assert_int_eq(answer.error, -ENOTCONN);
    ck_assert_ptr_nonnull(strstr(answer.as.failure.message, "nobody"));
    domt_pg_run_script(&user, "CREATE ROLE nobody LOGIN");
    for (int i = 0; i < 4000 && domt_pg_read_status(&other).connections == 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    answer = domt_pg_text(&other, other.sql, "SELECT 1");
    ck_assert_int_eq(answer.error, 0);
    domt_pg_free(&answer);
    domt_pg_user_stop(&other);
    tear_down();
}

/* Stopping a system during any work leaks nothing and does not take long. */
DOMT_TEST(stop_ends_what_is_under_way)
{
    set_up(&quick);
    domus_sql sql = domt_pg_begin(&user);
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
        /* -EPIPE: the query was sent, and may have been executed */
        int error = *(const int *)message.payload;
        ck_assert(error == -ESTALE || error == -EPIPE);
    }
    tear_down();
}

DOMT_SUITE(120)
