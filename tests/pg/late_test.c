/* Time-outs and limits of queries: a query that reaches its time-out does not go on at the server,
 * a query beyond the limit of waiting ones is refused, and neighbours of a cancelled query still
 * get their answers. */
#include "tests/pg/user.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MS UINT64_C(1000000)

static domt_postgres server;
static domt_pg_user user, other;

static void start_server_with_user(const domus_sql_options *options)
{
    domt_postgres_start(&server, NULL);
    domt_pg_user_start_system(&user, server.url, options);
    /* Wait until the pool has one connection. On a busy machine that may take longer than
     * wait_ns. */
    for (int i = 0; i < 200; i++) {
        domt_pg_answer answer = domt_pg_run_text(&user, user.sql, "SELECT 1");
        domt_pg_free_answer(&answer);
        if (answer.error == 0)
            return;
        ck_assert_int_eq(answer.error, -EBUSY);
    }
    ck_abort_msg("no connection");
}

/* Start a server and two users, of which the second one holds the lock domt_pg_waits waits for. */
static void start_server_with_lock_held(const domus_sql_options *options)
{
    start_server_with_user(options);
    domt_pg_user_start_system(&other, server.unix_url, &(domus_sql_options){.connections_max = 1});
    domt_pg_take_server_lock(&other);
}

static void stop_server_and_users(void)
{
    domt_pg_user_stop_system(&user);
    domt_postgres_stop(&server);
}

static int64_t count_sleeping_statements(void)
{
    return domt_pg_run_text_for_number(
        &user, user.sql,
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query "
        "LIKE 'SELECT pg_sleep%'");
}

static void await_end_of_sleeping_statements(void)
{
    for (int i = 0; i < 4000 && count_sleeping_statements() != 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = (long)(5 * MS)}, NULL);
    ck_assert_int_eq(count_sleeping_statements(), 0);
}

static void send_query_with_tag(const domus_sql_statement *statement, uint64_t tag)
{
    domt_pg_send_query(&user, user.sql, statement, NULL, 0, tag);
}

/* Check that the next answer has this tag and this error. */
static void expect_result_of_ask_with_tag(uint64_t tag, int error)
{
    domt_pg_received answer = domt_pg_receive_answer(&user);

    ck_assert_uint_eq(answer.tag, tag);
    ck_assert_int_eq(answer.error, error);
}

static const domus_sql_statement sleeps = {.text = "SELECT pg_sleep(60)", .timeout_ns = 100 * MS};
static const domus_sql_statement sleeps_long = {.text = "SELECT pg_sleep(60) AS x"};
static const domus_sql_statement quick = {.text = "SELECT 1"};

DOMT_TEST(query_timeout_ends_query_at_server_too)
{
    static const domus_sql_options options = {.connections_max = 2};

    start_server_with_user(&options);
    for (int i = 0; i < 3; i++) {
        uint64_t began = domt_pg_monotonic_ns();
        domt_pg_answer answer = domt_pg_run_statement(&user, user.sql, &sleeps, NULL, 0);
        uint64_t took = domt_pg_monotonic_ns() - began;
        ck_assert_int_eq(answer.error, -ETIMEDOUT);
        ck_assert(took >= 100 * MS && took < 20000 * MS);
        await_end_of_sleeping_statements();
    }
    domus_sql_status status = domt_pg_read_database_status(&user);
    ck_assert_uint_eq(status.timeouts, 3);
    ck_assert_uint_eq(status.failures, 0); /* no connection was closed for a cancel */
    stop_server_and_users();
}

/* The deadline of an ask ends its query as the time-out of a statement does. */
DOMT_TEST(query_ends_at_deadline_of_its_ask)
{
    start_server_with_user(NULL);
    domus_sql_request request;
    ck_assert_int_eq(domus_sql_request_make(user.sql, &sleeps_long, NULL, NULL, 0, &request), 0);
    ck_assert_int_eq(
        domt_pg_ask_and_wait(&user, user.sql.at, &domus_sql_query_type, &request, 100 * MS).error,
        -ETIMEDOUT);
    await_end_of_sleeping_statements();
    stop_server_and_users();
}

DOMT_TEST(statement_timeout_fails_its_transaction)
{
    start_server_with_user(NULL);
    domus_sql sql = domt_pg_begin_transaction(&user);
    ck_assert_int_eq(domt_pg_run_statement(&user, sql, &sleeps, NULL, 0).error, -ETIMEDOUT);
    await_end_of_sleeping_statements();
    /* The transaction has failed by the time-out (SQLSTATE 25P02), so its next statement fails. */
    ck_assert_int_eq(domt_pg_run_statement(&user, sql, &quick, NULL, 0).error, -EINVAL);
    ck_assert_int_eq(domt_pg_end_transaction(&user, sql, false).error, 0);
    stop_server_and_users();
}

/* There is one connection, which is busy, and room for two waiting queries: the third one is
 * refused. */
DOMT_TEST(number_of_waiting_queries_is_limited)
{
    static const domus_sql_options options = {.connections_max = 1, .queue_max = 2};
    domt_pg_received answers[5];

    start_server_with_lock_held(&options);
    send_query_with_tag(&domt_pg_waits, 0);
    for (uint64_t tag = 1; tag <= 4; tag++)
        send_query_with_tag(&quick, tag);
    domt_pg_await_waiting_queries(&user, 2);
    domt_pg_release_server_lock(&other);
    domt_pg_receive_answers(&user, answers, 5);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(answers[i].error, i < 3 ? 0 : -ENOBUFS);
    ck_assert_uint_eq(domt_pg_read_database_status(&user).refused, 2);
    domt_pg_user_stop_system(&other);
    stop_server_and_users();
}

/* Waiting queries may have exactly so many bytes in all as the configured limit. */
DOMT_TEST(bytes_of_waiting_queries_are_limited)
{
    static const domus_sql_options options = {.connections_max = 1, .queue_bytes_max = 8192};
    static char text[4096] = "SELECT 1 --";
    domt_pg_received answers[5];

    memset(text + strlen(text), 'x', sizeof text - 1 - strlen(text));
    start_server_with_lock_held(&options);
    send_query_with_tag(&domt_pg_waits, 0);
    /* Two queries with a long text and one without a text fit into the queue; the third with a text
     * does not. */
    for (uint64_t tag = 1; tag <= 4; tag++) {
        domus_sql_request request;
        ck_assert_int_eq(domus_sql_request_make(user.sql, tag < 4 ? NULL : &quick,
                                                tag < 4 ? text : NULL, NULL, 0, &request),
                         0);
        domt_pg_send_request(&user, &request, tag);
    }
    domt_pg_await_waiting_queries(&user, 3);
    domt_pg_release_server_lock(&other);
    domt_pg_receive_answers(&user, answers, 5);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(answers[i].error, i == 3 ? -ENOBUFS : 0);
    domt_pg_user_stop_system(&other);
    stop_server_and_users();
}

DOMT_TEST(query_waits_for_connection_up_to_wait_ns)
{
    static const domus_sql_options options = {.connections_max = 1, .wait_ns = 200 * MS};

    start_server_with_lock_held(&options);
    send_query_with_tag(&domt_pg_waits, 0);
    uint64_t began = domt_pg_monotonic_ns();
    send_query_with_tag(&quick, 1);
    expect_result_of_ask_with_tag(1, -EBUSY);
    ck_assert_uint_ge(domt_pg_monotonic_ns() - began, 200 * MS);
    domt_pg_release_server_lock(&other);
    expect_result_of_ask_with_tag(0, 0);
    domt_pg_user_stop_system(&other);
    stop_server_and_users();
}

/* Queries wait on one connection behind others. One of them is cancelled, which ends no other one.
 * The server gets a cancel as two signals, and the second signal may hit a neighbour; that query is
 * sent again, behind the others, so the order of the answers may change. */
DOMT_TEST(neighbours_of_cancelled_query_are_answered)
{
    static const domus_sql_options options = {.connections_max = 1, .pipeline_max = 4};
    domt_pg_received answers[4];

    start_server_with_user(&options);
    for (int round = 0; round < 20; round++) {
        for (uint64_t tag = 0; tag <= 3; tag++)
            send_query_with_tag(tag == 0 ? &sleeps : &quick, tag);
        domt_pg_receive_answers(&user, answers, 4);
        for (int tag = 0; tag <= 3; tag++)
            ck_assert_int_eq(answers[tag].error, tag == 0 ? -ETIMEDOUT : 0);
    }
    domus_sql_status status = domt_pg_read_database_status(&user);
    ck_assert_uint_eq(status.failures, 0);
    ck_assert_uint_eq(status.connects, 1);
    stop_server_and_users();
}

/* Several queries on one connection reach their time-outs at once: each is cancelled as soon as it
 * is its turn. */
DOMT_TEST(late_queries_in_pipeline_are_cancelled_in_turn)
{
    static const domus_sql_options options = {.connections_max = 1, .pipeline_max = 4};
    domt_pg_received answers[4];

    start_server_with_user(&options);
    send_query_with_tag(&sleeps, 0); /* the first run of the sleeping statement prepares it */
    expect_result_of_ask_with_tag(0, -ETIMEDOUT);
    domt_pg_await_idle_connections(&user);
    uint64_t began = domt_pg_monotonic_ns();
    for (uint64_t tag = 0; tag < 4; tag++)
        send_query_with_tag(tag < 3 ? &sleeps : &quick, tag);
    domt_pg_receive_answers(&user, answers, 4);
    for (int tag = 0; tag < 4; tag++)
        ck_assert_int_eq(answers[tag].error, tag < 3 ? -ETIMEDOUT : 0);
    /* the queries end sooner than the 5 s that a cancel may take */
    ck_assert_uint_lt(domt_pg_monotonic_ns() - began, 4000 * MS);
    domus_sql_status status = domt_pg_read_database_status(&user);
    ck_assert_uint_eq(status.failures, 0);
    ck_assert_uint_eq(status.connects, 1);
    stop_server_and_users();
}

/* A query is late while it waits behind one that is not late, and is cancelled when that one ends:
 * no cancel is under way then, and no time is due at which the pool would look. */
DOMT_TEST(late_query_is_cancelled_when_the_query_before_it_ends)
{
    static const domus_sql_options options = {.connections_max = 1, .pipeline_max = 4};

    start_server_with_user(&options);
    send_query_with_tag(&sleeps, 1); /* the first run of the sleeping statement prepares it */
    expect_result_of_ask_with_tag(1, -ETIMEDOUT);
    domt_pg_await_idle_connections(&user);
    domt_pg_user_start_system(&other, server.unix_url, &(domus_sql_options){.connections_max = 1});
    domt_pg_take_server_lock(&other);
    send_query_with_tag(&domt_pg_waits, 0);
    send_query_with_tag(&sleeps, 1);
    send_query_with_tag(&quick, 2);
    expect_result_of_ask_with_tag(1, -ETIMEDOUT);
    domt_pg_await_waiting_queries(&user, 0);
    domt_pg_release_server_lock(&other);
    expect_result_of_ask_with_tag(0, 0);
    /* this query is behind the late one, and would itself be late behind 60 s of sleep */
    expect_result_of_ask_with_tag(2, 0);
    ck_assert_uint_eq(domt_pg_read_database_status(&user).failures, 0);
    domt_pg_user_stop_system(&other);
    stop_server_and_users();
}

static const domus_sql_statement hit = {
    .text = "SELECT CASE WHEN nextval('hits') <= 2 THEN pg_cancel_backend(pg_backend_pid()) END, "
            "pg_sleep(0.02)"};

/* A query that the cancel of a neighbour hits is sent again; in this test the query sends the
 * signal to itself. A query that another program cancels fails. */
DOMT_TEST(query_hit_by_neighbours_cancel_is_sent_again)
{
    static const domus_sql_options options = {.connections_max = 1, .pipeline_max = 4};
    domt_pg_received answers[2];

    start_server_with_user(&options);
    domt_pg_run_script(&user, "CREATE SEQUENCE hits START 3");
    send_query_with_tag(&sleeps, 0);
    expect_result_of_ask_with_tag(0, -ETIMEDOUT);
    for (int i = 0; i < 2; i++) { /* after these two runs all statements are prepared */
        send_query_with_tag(&hit, 1);
        expect_result_of_ask_with_tag(1, 0);
    }
    /* On a busy machine the second signal of the real cancel may come so late that it ends the
     * query that was already sent again. */
    for (int attempt = 0; attempt == 0 || (answers[1].error != 0 && attempt < 5); attempt++) {
        domt_pg_run_script(&user, "ALTER SEQUENCE hits RESTART WITH 2 MINVALUE 1");
        send_query_with_tag(&sleeps, 0);
        send_query_with_tag(&hit, 1);
        domt_pg_receive_answers(&user, answers, 2);
        ck_assert_int_eq(answers[0].error, -ETIMEDOUT);
    }
    ck_assert_int_eq(answers[1].error, 0);
    ck_assert_uint_ge(domt_pg_read_database_status(&user).repeated, 1);
    /* one signal of this query's cancel hits no query, and must not count for a later one */
    send_query_with_tag(&sleeps, 0);
    expect_result_of_ask_with_tag(0, -ETIMEDOUT);
    domt_pg_run_script(&user, "ALTER SEQUENCE hits RESTART WITH 2");
    send_query_with_tag(&hit, 1);
    expect_result_of_ask_with_tag(1, -ECANCELED);
    ck_assert_uint_eq(domt_pg_read_database_status(&user).failures, 0);
    stop_server_and_users();
}

/* A procedure may commit a part of its work, so it is never sent again: it waits for a connection
 * without other queries under way. */
DOMT_TEST(procedure_runs_alone_on_its_connection)
{
    static const domus_sql_options options = {.connections_max = 1, .pipeline_max = 4};
    static const domus_sql_statement shares = {.text = "SELECT 1"};
    static const domus_sql_statement apart[] = {{.text = "CALL p()"},
                                                {.text = "\n do $$ BEGIN END $$"}};
    domt_pg_received answers[4];

    start_server_with_lock_held(&options);
    domt_pg_run_script(&user, "CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN COMMIT; END $$");
    for (uint64_t tag = 0; tag < 2; tag++) { /* after these rounds all statements are prepared */
        send_query_with_tag(&shares, 0);
        expect_result_of_ask_with_tag(0, 0);
        send_query_with_tag(&apart[tag], 0);
        expect_result_of_ask_with_tag(0, 0);
    }
    send_query_with_tag(&domt_pg_waits, 0);
    send_query_with_tag(&shares, 1);
    send_query_with_tag(&apart[0], 2);
    send_query_with_tag(&apart[1], 3);
    domt_pg_await_waiting_queries(&user, 2);
    domt_pg_release_server_lock(&other);
    domt_pg_receive_answers(&user, answers, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(answers[i].error, 0);
    domt_pg_user_stop_system(&other);
    stop_server_and_users();
}

/* Connections that are not needed are closed, but connections_min of them stay open while idle. */
DOMT_TEST(pool_grows_and_shrinks_with_need)
{
    static const domus_sql_options options = {
        .connections_min = 2, .connections_max = 5, .idle_ns = 100 * MS};
    domt_pg_received answers[8];

    start_server_with_lock_held(&options);
    for (uint64_t tag = 0; tag < 8; tag++)
        send_query_with_tag(&domt_pg_waits, tag);
    uint32_t most = 0;
    for (int i = 0; i < 4000 && most < 5; i++) {
        most = domt_pg_read_database_status(&user).connections;
        nanosleep(&(struct timespec){.tv_nsec = (long)(5 * MS)}, NULL);
    }
    ck_assert_uint_eq(most, 5);
    domt_pg_release_server_lock(&other);
    domt_pg_receive_answers(&user, answers, 8);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(answers[i].error, 0);
    for (int i = 0; i < 4000 && domt_pg_read_database_status(&user).connections != 2; i++)
        nanosleep(&(struct timespec){.tv_nsec = (long)(5 * MS)}, NULL);
    ck_assert_uint_eq(domt_pg_read_database_status(&user).connections, 2);
    nanosleep(&(struct timespec){.tv_nsec = (long)(300 * MS)}, NULL);
    ck_assert_uint_eq(domt_pg_read_database_status(&user).connections, 2);
    ck_assert_uint_eq(domt_pg_read_database_status(&user).failures, 0);
    domt_pg_user_stop_system(&other);
    stop_server_and_users();
}

DOMT_SUITE(120)
