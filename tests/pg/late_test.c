/* Time and limits: a query that reaches its time-out does not go on at the server, a query beyond
 * the limit of waiting ones is refused, and neighbours of a cancelled query still get their
 * answers. */
#include "tests/pg/user.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MS UINT64_C(1000000)

static domt_postgres server;
static domt_pg_user user, other;

static void set_up(const domus_sql_options *options)
{
    domt_postgres_start(&server, NULL);
    domt_pg_user_start_system(&user, server.url, options);
    /* Wait for one connection. On a busy machine that may take longer than wait_ns. */
    for (int i = 0; i < 200; i++) {
        domt_pg_answer answer = domt_pg_run_text(&user, user.sql, "SELECT 1");
        domt_pg_free_answer(&answer);
        if (answer.error == 0)
            return;
        ck_assert_int_eq(answer.error, -EBUSY);
    }
    ck_abort_msg("no connection");
}

/* Begin with a second user, which holds the lock. */
static void set_up_locked(const domus_sql_options *options)
{
    set_up(options);
    domt_pg_user_start_system(&other, server.unix_url, &(domus_sql_options){.connections_max = 1});
    domt_pg_take_server_lock(&other);
}

static void tear_down(void)
{
    domt_pg_user_stop_system(&user);
    domt_postgres_stop(&server);
}

static int64_t count_sleepers(void)
{
    return domt_pg_run_text_for_number(
        &user, user.sql,
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query "
        "LIKE 'SELECT pg_sleep%'");
}

static void wait_for_no_sleepers(void)
{
    for (int i = 0; i < 4000 && count_sleepers() != 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = (long)(5 * MS)}, NULL);
    ck_assert_int_eq(count_sleepers(), 0);
}

static void send_query(const domus_sql_statement *statement, uint64_t tag)
{
    domt_pg_send_query(&user, user.sql, statement, NULL, 0, tag);
}

/* Check that the next answer has this tag and error. */
static void expect_answer(uint64_t tag, int error)
{
    domt_pg_received answer = domt_pg_receive_answer(&user);

    ck_assert_uint_eq(answer.tag, tag);
    ck_assert_int_eq(answer.error, error);
}

static const domus_sql_statement sleeps = {.text = "SELECT pg_sleep(60)", .timeout_ns = 100 * MS};
static const domus_sql_statement sleeps_long = {.text = "SELECT pg_sleep(60) AS x"};
static const domus_sql_statement quick = {.text = "SELECT 1"};

DOMT_TEST(query_ends_at_its_time_here_and_at_the_server)
{
    static const domus_sql_options options = {.connections_max = 2};

    set_up(&options);
    for (int i = 0; i < 3; i++) {
        uint64_t began = domt_pg_monotonic_ns();
        domt_pg_answer answer = domt_pg_run_statement(&user, user.sql, &sleeps, NULL, 0);
        uint64_t took = domt_pg_monotonic_ns() - began;
        ck_assert_int_eq(answer.error, -ETIMEDOUT);
        ck_assert(took >= 100 * MS && took < 20000 * MS);
        wait_for_no_sleepers();
    }
    domus_sql_status status = domt_pg_read_database_status(&user);
    ck_assert_uint_eq(status.timeouts, 3);
    ck_assert_uint_eq(status.failures, 0); /* the connection was not closed */
    tear_down();
}

/* The deadline of an ask ends its query as a time-out does. */
DOMT_TEST(query_ends_with_the_deadline_of_its_asker)
{
    set_up(NULL);
    domus_sql_request request;
    ck_assert_int_eq(domus_sql_request_make(user.sql, &sleeps_long, NULL, NULL, 0, &request), 0);
    ck_assert_int_eq(
        domt_pg_ask_and_wait(&user, user.sql.at, &domus_sql_query_type, &request, 100 * MS).error,
        -ETIMEDOUT);
    wait_for_no_sleepers();
    tear_down();
}

DOMT_TEST(statement_in_a_transaction_ends_at_its_time)
{
    set_up(NULL);
    domus_sql sql = domt_pg_begin_transaction(&user);
    ck_assert_int_eq(domt_pg_run_statement(&user, sql, &sleeps, NULL, 0).error, -ETIMEDOUT);
    wait_for_no_sleepers();
    /* SQLSTATE 25P02: the transaction has failed */
    ck_assert_int_eq(domt_pg_run_statement(&user, sql, &quick, NULL, 0).error, -EINVAL);
    ck_assert_int_eq(domt_pg_end_transaction(&user, sql, false).error, 0);
    tear_down();
}

/* There is one connection and room for two waiting queries: the third one is refused. */
DOMT_TEST(queue_is_bounded)
{
    static const domus_sql_options options = {.connections_max = 1, .queue_max = 2};
    domt_pg_received answers[5];

    set_up_locked(&options);
    send_query(&domt_pg_waits, 0);
    for (uint64_t tag = 1; tag <= 4; tag++)
        send_query(&quick, tag);
    domt_pg_await_waiting_queries(&user, 2);
    domt_pg_release_server_lock(&other);
    domt_pg_receive_answers(&user, answers, 5);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(answers[i].error, i < 3 ? 0 : -ENOBUFS);
    ck_assert_uint_eq(domt_pg_read_database_status(&user).refused, 2);
    domt_pg_user_stop_system(&other);
    tear_down();
}

/* Waiting queries may have exactly this number of bytes in all. */
DOMT_TEST(queue_is_bounded_in_bytes)
{
    static const domus_sql_options options = {.connections_max = 1, .queue_bytes_max = 8192};
    static char text[4096] = "SELECT 1 --";
    domt_pg_received answers[5];

    memset(text + strlen(text), 'x', sizeof text - 1 - strlen(text));
    set_up_locked(&options);
    send_query(&domt_pg_waits, 0);
    /* two queries with a text fit, and one without a text */
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
    tear_down();
}

DOMT_TEST(query_waits_for_a_connection_no_longer_than_wait)
{
    static const domus_sql_options options = {.connections_max = 1, .wait_ns = 200 * MS};

    set_up_locked(&options);
    send_query(&domt_pg_waits, 0);
    uint64_t began = domt_pg_monotonic_ns();
    send_query(&quick, 1);
    expect_answer(1, -EBUSY);
    ck_assert_uint_ge(domt_pg_monotonic_ns() - began, 200 * MS);
    domt_pg_release_server_lock(&other);
    expect_answer(0, 0);
    domt_pg_user_stop_system(&other);
    tear_down();
}

/* Queries wait on one connection behind others. One of them is cancelled, which ends no other one.
 * The server gets a cancel as two signals, and the second signal may hit a neighbour; that query is
 * sent again, behind the others, so the order of the answers may change. */
DOMT_TEST(neighbours_in_a_pipeline_live)
{
    static const domus_sql_options options = {.connections_max = 1, .pipeline_max = 4};
    domt_pg_received answers[4];

    set_up(&options);
    for (int round = 0; round < 20; round++) {
        for (uint64_t tag = 0; tag <= 3; tag++)
            send_query(tag == 0 ? &sleeps : &quick, tag);
        domt_pg_receive_answers(&user, answers, 4);
        for (int tag = 0; tag <= 3; tag++)
            ck_assert_int_eq(answers[tag].error, tag == 0 ? -ETIMEDOUT : 0);
    }
    domus_sql_status status = domt_pg_read_database_status(&user);
    ck_assert_uint_eq(status.failures, 0);
    ck_assert_uint_eq(status.connects, 1);
    tear_down();
}

/* Several queries reach their time-outs at once: each is cancelled as soon as it is its turn. */
DOMT_TEST(late_neighbours_are_cancelled_one_after_the_other)
{
    static const domus_sql_options options = {.connections_max = 1, .pipeline_max = 4};
    domt_pg_received answers[4];

    set_up(&options);
    send_query(&sleeps, 0); /* this run prepares the statement */
    expect_answer(0, -ETIMEDOUT);
    domt_pg_await_idle_connections(&user);
    uint64_t began = domt_pg_monotonic_ns();
    for (uint64_t tag = 0; tag < 4; tag++)
        send_query(tag < 3 ? &sleeps : &quick, tag);
    domt_pg_receive_answers(&user, answers, 4);
    for (int tag = 0; tag < 4; tag++)
        ck_assert_int_eq(answers[tag].error, tag < 3 ? -ETIMEDOUT : 0);
    ck_assert_uint_lt(domt_pg_monotonic_ns() - began,
                      4000 * MS); /* less than the 5 s of a cancel */
    domus_sql_status status = domt_pg_read_database_status(&user);
    ck_assert_uint_eq(status.failures, 0);
    ck_assert_uint_eq(status.connects, 1);
    tear_down();
}

static const domus_sql_statement hit = {
    .text = "SELECT CASE WHEN nextval('hits') <= 2 THEN pg_cancel_backend(pg_backend_pid()) END, "
            "pg_sleep(0.02)"};

/* A query that the cancel of a neighbour hits is sent again; here the query sends the signal to
 * itself. A cancel by another program is reported. */
DOMT_TEST(neighbour_that_a_cancel_hits_is_sent_again)
{
    static const domus_sql_options options = {.connections_max = 1, .pipeline_max = 4};
    domt_pg_received answers[2];

    set_up(&options);
    domt_pg_run_script(&user, "CREATE SEQUENCE hits START 3");
    send_query(&sleeps, 0);
    expect_answer(0, -ETIMEDOUT);
    for (int i = 0; i < 2; i++) { /* afterwards all statements are prepared */
        send_query(&hit, 1);
        expect_answer(1, 0);
    }
    /* On a busy machine the second signal of the real cancel may come so late that it ends the
     * query that was sent again. */
    for (int attempt = 0; attempt == 0 || (answers[1].error != 0 && attempt < 5); attempt++) {
        domt_pg_run_script(&user, "ALTER SEQUENCE hits RESTART WITH 2 MINVALUE 1");
        send_query(&sleeps, 0);
        send_query(&hit, 1);
        domt_pg_receive_answers(&user, answers, 2);
        ck_assert_int_eq(answers[0].error, -ETIMEDOUT);
    }
    ck_assert_int_eq(answers[1].error, 0);
    ck_assert_uint_ge(domt_pg_read_database_status(&user).repeated, 1);
    send_query(&sleeps, 0); /* one of its signals hits no query, and is then forgotten */
    expect_answer(0, -ETIMEDOUT);
    domt_pg_run_script(&user, "ALTER SEQUENCE hits RESTART WITH 2");
    send_query(&hit, 1);
    expect_answer(1, -ECANCELED);
    ck_assert_uint_eq(domt_pg_read_database_status(&user).failures, 0);
    tear_down();
}

/* A procedure may commit a part of its work, so it is never sent again: it waits for a connection
 * without other queries. */
DOMT_TEST(procedures_have_no_neighbours)
{
    static const domus_sql_options options = {.connections_max = 1, .pipeline_max = 4};
    static const domus_sql_statement shares = {.text = "SELECT 1"};
    static const domus_sql_statement apart[] = {{.text = "CALL p()"},
                                                {.text = "\n do $$ BEGIN END $$"}};
    domt_pg_received answers[4];

    set_up_locked(&options);
    domt_pg_run_script(&user, "CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN COMMIT; END $$");
    for (uint64_t tag = 0; tag < 2; tag++) { /* afterwards all statements are prepared */
        send_query(&shares, 0);
        expect_answer(0, 0);
        send_query(&apart[tag], 0);
        expect_answer(0, 0);
    }
    send_query(&domt_pg_waits, 0);
    send_query(&shares, 1);
    send_query(&apart[0], 2);
    send_query(&apart[1], 3);
    domt_pg_await_waiting_queries(&user, 2);
    domt_pg_release_server_lock(&other);
    domt_pg_receive_answers(&user, answers, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(answers[i].error, 0);
    domt_pg_user_stop_system(&other);
    tear_down();
}

/* Connections that are not needed are closed, and connections_min of them stay open when idle. */
DOMT_TEST(pool_grows_and_shrinks)
{
    static const domus_sql_options options = {
        .connections_min = 2, .connections_max = 5, .idle_ns = 100 * MS};
    domt_pg_received answers[8];

    set_up_locked(&options);
    for (uint64_t tag = 0; tag < 8; tag++)
        send_query(&domt_pg_waits, tag);
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
    tear_down();
}

DOMT_SUITE(120)
