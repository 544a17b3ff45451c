/* Reads that wait for a connection are sent together, in one transaction of the server, and each
 * still has its own answer. */
#include "tests/pg/user.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#define MS       UINT64_C(1000000)
#define TOGETHER 4u

/* Selects the time at which the server's transaction has begun, in microseconds, and a number that
 * is an error if the parameter is 0. */
static const domus_sql_statement divide = {
    .text = "SELECT (extract(epoch FROM now()) * 1000000)::int8, 100 / $1::int8", .reads = true};
static const domus_sql_statement also_divide = {
    .text = "SELECT (extract(epoch FROM now()) * 1000000)::int8, 100 / $1::int8 ",
    .repeatable = true};
static const domus_sql_statement doze = {
    .text = "SELECT 0::int8, 1 FROM pg_sleep($1::int8)", .reads = true, .timeout_ns = 150 * MS};
static const domus_sql_statement doze_long = {.text = "SELECT 0::int8, 1 FROM pg_sleep($1::int8)",
                                              .reads = true};
static domt_postgres server;
static domt_pg_user user, other;

/* The answers by their tags. Tag 0 is the query that holds the only connection while the others
 * wait. */
static domt_pg_received answers[16];

static void send_query_with_number(const domus_sql_statement *statement, int64_t number,
                                   uint64_t tag)
{
    const domus_sql_value value = domus_sql_int(number);

    domt_pg_send_query(&user, user.sql, statement, &value, 1, tag);
}

/* Start a user with one connection, which has prepared the statements and is blocked by a lock
 * until remove_lock_and_receive_answers(). */
static void start_user_with_blocked_connection(void)
{
    static const domus_sql_options options = {.connections_max = 1, .together_max = TOGETHER};
    const domus_sql_statement *const statements[] = {&divide, &also_divide, &doze, &doze_long};
    const domus_sql_value value = domus_sql_int(1), none = domus_sql_int(0);

    domt_postgres_start(&server, NULL);
    domt_pg_user_start_system(&user, server.url, &options);
    domt_pg_user_start_system(&other, server.unix_url, &(domus_sql_options){.connections_max = 1});
    for (uint64_t i = 0; i < 4; i++)
        domt_pg_send_query(&user, user.sql, statements[i], i < 2 ? &value : &none, 1, i);
    domt_pg_receive_answers(&user, answers, 4);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_int_eq(answers[i].error, 0);
    domt_pg_take_server_lock(&other);
    domt_pg_send_query(&user, user.sql, &domt_pg_waits, NULL, 0, 0);
}

/* Wait until `waiting` queries wait, remove the lock, and receive all answers. */
static void remove_lock_and_receive_answers(uint32_t count, uint32_t waiting)
{
    domt_pg_await_waiting_queries(&user, waiting);
    domt_pg_release_server_lock(&other);
    domt_pg_receive_answers(&user, answers, count);
}

static void stop_server_and_users(void)
{
    domus_sql_status status = domt_pg_read_database_status(&user);

    ck_assert_uint_eq(status.connects, 1);
    ck_assert_uint_eq(status.failures, 0);
    domt_pg_user_stop_system(&other);
    domt_pg_user_stop_system(&user);
    domt_postgres_stop(&server);
}

static void check_answer_of_division(uint64_t tag, int64_t number)
{
    ck_assert_int_eq(answers[tag].error, 0);
    ck_assert_int_eq(answers[tag].numbers[1], number);
}

static int64_t read_begin_time_of_transaction(uint64_t tag)
{
    return answers[tag].numbers[0];
}

DOMT_TEST(waiting_reads_share_a_transaction_up_to_limit)
{
    start_user_with_blocked_connection();
    for (uint64_t tag = 1; tag <= TOGETHER + 2; tag++)
        send_query_with_number(&divide, (int64_t)tag, tag);
    remove_lock_and_receive_answers(TOGETHER + 3, TOGETHER + 2);
    for (uint64_t tag = 1; tag <= TOGETHER + 2; tag++) {
        check_answer_of_division(tag, 100 / (int64_t)tag);
        ck_assert_int_eq(read_begin_time_of_transaction(tag) == read_begin_time_of_transaction(1),
                         tag <= TOGETHER);
    }
    ck_assert_int_eq(read_begin_time_of_transaction(TOGETHER + 1),
                     read_begin_time_of_transaction(TOGETHER + 2));
    ck_assert_uint_eq(domt_pg_read_database_status(&user).repeated, 0);
    stop_server_and_users();
}

/* After a failed query of a group the server skips those behind it, which are sent again. */
DOMT_TEST(failed_read_lets_rest_of_group_be_answered)
{
    start_user_with_blocked_connection();
    send_query_with_number(&divide, 1, 1);
    send_query_with_number(&divide, 0, 2);
    send_query_with_number(&divide, 2, 3);
    send_query_with_number(&divide, 0, 4);
    remove_lock_and_receive_answers(5, 4);
    check_answer_of_division(1, 100);
    check_answer_of_division(3, 50);
    ck_assert_int_eq(answers[2].error, -EINVAL); /* the query divides by zero (SQLSTATE 22012) */
    ck_assert_int_eq(answers[4].error, -EINVAL);
    ck_assert_uint_eq(domt_pg_read_database_status(&user).repeated, 2);
    stop_server_and_users();
}

/* The slow query of the group is cancelled at its time-out, and the others are answered. */
DOMT_TEST(cancelled_read_lets_rest_of_group_be_answered)
{
    start_user_with_blocked_connection();
    send_query_with_number(&divide, 1, 1);
    send_query_with_number(&doze, 20, 2);
    send_query_with_number(&divide, 2, 3);
    send_query_with_number(&divide, 4, 4);
    remove_lock_and_receive_answers(5, 4);
    check_answer_of_division(1, 100);
    ck_assert_int_eq(answers[2].error, -ETIMEDOUT);
    check_answer_of_division(3, 50);
    check_answer_of_division(4, 25);
    /* A late signal of the cancel may hit a further query, which is then repeated, too. */
    ck_assert_uint_ge(domt_pg_read_database_status(&user).repeated, 2);
    stop_server_and_users();
}

/* A statement that may write is sent alone, not in a group, and one with too few parameters is
 * refused. */
DOMT_TEST(writes_and_wrong_queries_join_no_group)
{
    start_user_with_blocked_connection();
    send_query_with_number(&divide, 1, 1);
    domt_pg_send_query(&user, user.sql, &divide, NULL, 0, 2);
    send_query_with_number(&also_divide, 2, 3);
    send_query_with_number(&divide, 4, 4);
    /* This query is the last one of its group, before the sync. */
    domt_pg_send_query(&user, user.sql, &divide, NULL, 0, 5);
    remove_lock_and_receive_answers(6, 5);
    check_answer_of_division(1, 100);
    check_answer_of_division(3, 50);
    check_answer_of_division(4, 25);
    ck_assert_int_eq(answers[2].error, -EINVAL);
    ck_assert_int_eq(answers[5].error, -EINVAL);
    ck_assert_int_ne(read_begin_time_of_transaction(3), read_begin_time_of_transaction(1));
    ck_assert_int_ne(read_begin_time_of_transaction(4), read_begin_time_of_transaction(3));
    ck_assert_uint_eq(domt_pg_read_database_status(&user).repeated, 0);
    stop_server_and_users();
}

/* Prepare the statements on both connections; a transaction holds one of them meanwhile. */
static void prepare_on_both_connections(const domus_sql_statement *const *statements,
                                        uint32_t count)
{
    domus_sql in = domt_pg_begin_transaction(&user);
    const domus_sql_value none = domus_sql_int(0);

    for (uint32_t i = 0; i < 2 * count; i++) {
        domt_pg_answer answer =
            domt_pg_run_statement(&user, i % 2 == 0 ? in : user.sql, statements[i / 2], &none, 1);
        ck_assert_int_eq(answer.error, 0);
        domt_pg_free_answer(&answer);
    }
    ck_assert_int_eq(domt_pg_end_transaction(&user, in, true).error, 0);
}

/* The first query of a group, and the query behind it, have ended while the cancel for a later
 * query of the group still waits: another cancel is under way, because the server accepts none for
 * a while. */
DOMT_TEST(waiting_cancel_outlives_first_query_of_group)
{
    static const domus_sql_statement sleeps = {.text = "SELECT pg_sleep(60)",
                                               .timeout_ns = 100 * MS};
    static const domus_sql_statement large = {
        .text = "SELECT 0::int8, 1, repeat('x', 20000) FROM pg_sleep($1::int8)", .reads = true};
    static const domus_sql_statement *const group[] = {&doze_long, &large, &doze, &doze_long};

    domt_postgres_start(&server, NULL);
    domt_pg_user_start_system(&user, server.url,
                              &(domus_sql_options){.connections_max = 2, .together_max = TOGETHER});
    domt_pg_user_start_system(&other, server.unix_url, &(domus_sql_options){.connections_max = 1});
    prepare_on_both_connections(group, 3);
    domt_pg_take_server_lock(&other);
    /* the stopped postmaster accepts no new connection, while the sessions of the server go on */
    kill(server.pid, SIGSTOP);
    domt_pg_send_query(&user, user.sql, &sleeps, NULL, 0, 5);
    domt_pg_send_query(&user, user.sql, &domt_pg_waits, NULL, 0, 0);
    for (uint64_t i = 0; i < 4; i++)
        send_query_with_number(group[i], i == 0 ? 1 : i == 2 ? 60 : 0, i + 1);
    ck_assert_uint_eq(domt_pg_receive_answer(&user).tag, 5);
    domt_pg_await_waiting_queries(&user, 4);
    domt_pg_release_server_lock(&other);
    ck_assert_uint_eq(domt_pg_receive_answer(&user).tag, 0);
    uint64_t left_ns = domt_pg_monotonic_ns();
    /* The query with tag 3 has reached its time-out, and its cancel waits. */
    ck_assert_uint_eq(domt_pg_receive_answer(&user).tag, 3);
    ck_assert_uint_eq(domt_pg_receive_answer(&user).tag, 1);
    kill(server.pid, SIGCONT);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(domt_pg_receive_answer(&user).error, 0);
    ck_assert_uint_lt(domt_pg_monotonic_ns() - left_ns, 4000 * MS);
    ck_assert_uint_eq(domt_pg_read_database_status(&user).failures, 0);
    domt_pg_user_stop_system(&other);
    domt_pg_user_stop_system(&user);
    domt_postgres_stop(&server);
}

DOMT_SUITE(60)
