/* protocols/pg with a real server: queries with values of each type, and the tests that each kind
 * of database has to pass. */
#include "tests/pg/user.h"
#include "tests/support/postgres.h"
#include "tests/support/sql_cases.h"
#include "tests/support/suite.h"

#include <domus/pg.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Queries to a real server: values of each type are sent and come back, failures have their
 * SQLSTATE, and each statement is prepared once. */

static domt_postgres server;
static domt_pg_user user;

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

/* A parameter of each kind for each type of the server, and its value when it comes back. Each is
 * sent three times: the first time prepares the statement, and the next times use the binary form
 * where there is one. */
static const struct echo {
    domus_sql_statement statement;
    domus_sql_value sent;
    domus_sql_value back;
} echoes[] = {
#define INT(number)                                                                                \
    {                                                                                              \
        .as.integer = (number), .kind = DOMUS_SQL_INTEGER                                          \
    }
#define REAL(number)                                                                               \
    {                                                                                              \
        .as.real = (number), .kind = DOMUS_SQL_REAL                                                \
    }
#define BOOL(is_so)                                                                                \
    {                                                                                              \
        .as.boolean = (is_so), .kind = DOMUS_SQL_BOOL                                              \
    }
#define TEXT(text_)                                                                                \
    {                                                                                              \
        .as.bytes = (text_), .size = sizeof(text_) - 1, .kind = DOMUS_SQL_TEXT                     \
    }
#define BYTES(text_)                                                                               \
    {                                                                                              \
        .as.bytes = (text_), .size = sizeof(text_) - 1, .kind = DOMUS_SQL_BYTES                    \
    }
#define NIL                                                                                        \
    {                                                                                              \
        .kind = DOMUS_SQL_NULL                                                                     \
    }
    {{.text = "SELECT $1::int2"}, INT(-32768), INT(-32768)},
    {{.text = "SELECT $1::int4"}, INT(INT32_MIN), INT(INT32_MIN)},
    {{.text = "SELECT $1::int8"}, INT(INT64_MIN), INT(INT64_MIN)},
    {{.text = "SELECT $1::int8"}, INT(INT64_MAX), INT(INT64_MAX)},
    {{.text = "SELECT $1::numeric"}, INT(7), TEXT("7")},
    {{.text = "SELECT $1::float8"}, REAL(0.1), REAL(0.1)},
    {{.text = "SELECT $1::float8"}, REAL(INFINITY), REAL(INFINITY)},
    {{.text = "SELECT $1::float4"}, REAL(0.5), REAL(0.5)},
    {{.text = "SELECT $1::float8"}, INT(3), REAL(3)},
    {{.text = "SELECT $1::bool"}, BOOL(true), BOOL(true)},
    {{.text = "SELECT $1::bool"}, INT(0), BOOL(false)},
    {{.text = "SELECT $1::text"}, TEXT("grün"), TEXT("grün")},
    {{.text = "SELECT $1::text"}, TEXT(""), TEXT("")},
    {{.text = "SELECT $1::text"}, INT(12), TEXT("12")},
    {{.text = "SELECT $1::varchar(3)"}, TEXT("abcd"), TEXT("abc")},
    {{.text = "SELECT $1::bytea"}, BYTES("a\0\xff"), BYTES("a\0\xff")},
    {{.text = "SELECT $1::bytea, now()"}, BYTES("a\0\xff"), BYTES("a\0\xff")},
    {{.text = "SELECT $1::bytea"}, BYTES(""), BYTES("")},
    {{.text = "SELECT $1::int4"}, TEXT("41"), INT(41)},
    {{.text = "SELECT $1::int4, now()"}, INT(41), INT(41)},
    {{.text = "SELECT $1::float8, now()"}, REAL(-0.25), REAL(-0.25)},
    {{.text = "SELECT $1::bool, now()"}, BOOL(false), BOOL(false)},
    {{.text = "SELECT $1::date"}, TEXT("2026-11-29"), TEXT("2026-11-29")},
    {{.text = "SELECT $1::uuid"},
     TEXT("2e0d9ba4-3c4b-4b4e-8e53-a0b0c0d0e0f0"),
     TEXT("2e0d9ba4-3c4b-4b4e-8e53-a0b0c0d0e0f0")},
    {{.text = "SELECT $1::jsonb"}, TEXT("{\"a\": [1, 2]}"), TEXT("{\"a\": [1, 2]}")},
    {{.text = "SELECT $1::json"}, TEXT("{\"a\":1}"), TEXT("{\"a\":1}")},
    {{.text = "SELECT $1::int4"}, NIL, NIL},
    {{.text = "SELECT $1::text"}, NIL, NIL},
};

static bool are_values_equal(domus_sql_value one, const domus_sql_value *other)
{
    if (one.kind != other->kind)
        return false;
    switch (one.kind) {
    case DOMUS_SQL_NULL:
        return true;
    case DOMUS_SQL_BOOL:
        return one.as.boolean == other->as.boolean;
    case DOMUS_SQL_INTEGER:
        return one.as.integer == other->as.integer;
    case DOMUS_SQL_REAL:
        return memcmp(&one.as.real, &other->as.real, sizeof one.as.real) == 0;
    default:
        return one.size == other->size && memcmp(one.as.bytes, other->as.bytes, one.size) == 0;
    }
}

DOMT_TEST(values_of_each_type_return_unchanged)
{
    start_server_with_user(NULL);
    for (size_t i = 0; i < sizeof echoes / sizeof echoes[0]; i++) {
        const struct echo *echo = &echoes[i];
        for (int round = 0; round < 3; round++) {
            domt_pg_answer answer =
                domt_pg_run_statement(&user, user.sql, &echo->statement, &echo->sent, 1);
            ck_assert_msg(answer.error == 0, "%s (%zu): %s", echo->statement.text, i,
                          answer.type == &domus_sql_error_type ? answer.as.failure.message : "");
            ck_assert_uint_eq(answer.as.result.rows, 1);
            ck_assert_msg(are_values_equal(domus_sql_cell(&answer.as.result, 0, 0), &echo->back),
                          "%s (%zu), round %d", echo->statement.text, i, round);
            domt_pg_free_answer(&answer);
        }
        /* Without a prepared statement only the server knows the types of the parameters. */
        domt_pg_answer answer = domt_pg_run_request(&user, user.sql, &domus_sql_query_type, NULL,
                                                    echo->statement.text, &echo->sent, 1);
        ck_assert_int_eq(answer.error, 0);
        ck_assert(are_values_equal(domus_sql_cell(&answer.as.result, 0, 0), &echo->back));
        domt_pg_free_answer(&answer);
    }
    domus_sql_status status = domt_pg_read_database_status(&user);
    ck_assert_uint_eq(status.prepares, sizeof echoes / sizeof echoes[0]);
    ck_assert_uint_eq(status.connects, 1);
    ck_assert_uint_eq(status.queries, 4 * sizeof echoes / sizeof echoes[0]);
    stop_server_and_user();
}

static const struct failure {
    domus_sql_statement statement;
    const char *sqlstate;
    int error;
} failures[] = {
    {{.text = "INSERT INTO t VALUES (1, 'again')"}, "23505", -EEXIST},
    {{.text = "INSERT INTO t VALUES (2, NULL)"}, "23502", -EPERM},
    /* The constraint is deferred, so only the commit reports this error. */
    {{.text = "INSERT INTO late VALUES (1), (1)"}, "23505", -EEXIST},
    {{.text = "SELECT nothing FROM t"}, "42703", -EINVAL},
    {{.text = "SELEC 1"}, "42601", -EINVAL},
    {{.text = "SELECT 1 / 0"}, "22012", -EINVAL},
    /* the statement fails, because its parameter $1 is missing */
    {{.text = "SELECT $1::int4 / 0"}, "07001", -EINVAL},
    {{.text = "SELECT 1; SELECT 2"}, "42601", -EINVAL},
    {{.text = "COPY t TO STDOUT"}, "", -EINVAL},
    {{.text = "COPY t FROM STDIN"}, "", -EINVAL},
};

DOMT_TEST(failed_query_has_sqlstate_and_keeps_connection)
{
    start_server_with_user(NULL);
    domt_pg_run_script(&user, "CREATE TABLE t (id INT PRIMARY KEY, name TEXT NOT NULL);"
                              "CREATE TABLE late (id INT UNIQUE DEFERRABLE INITIALLY DEFERRED);"
                              "INSERT INTO t VALUES (1, 'one')");
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        const struct failure *row = &failures[i];
        domt_pg_answer answer = domt_pg_run_statement(&user, user.sql, &row->statement, NULL, 0);
        ck_assert_msg(answer.type == &domus_sql_error_type, "%s: %d", row->statement.text,
                      answer.error);
        ck_assert_msg(answer.error == row->error, "%s: %s", row->statement.text,
                      strerrorname_np(-answer.error));
        ck_assert_str_eq(answer.as.failure.sqlstate, row->sqlstate);
        ck_assert_int_eq(domt_pg_run_text_for_number(&user, user.sql, "SELECT 7"), 7);
    }
    domt_pg_answer answer = domt_pg_run_statement(&user, user.sql, &failures[0].statement, NULL, 0);
    ck_assert_str_eq(answer.as.failure.constraint, "t_pkey");
    ck_assert_str_eq(answer.as.failure.table, "t");
    /* each refused COPY has ended its connection */
    ck_assert_uint_eq(domt_pg_read_database_status(&user).connects, 3);
    stop_server_and_user();
}

/* Parameters that the server or the driver refuses; each is sent with a prepared statement. */
static const struct wrong {
    domus_sql_statement statement;
    domus_sql_value sent;
    const char *sqlstate;
} wrongs[] = {
    {{.text = "SELECT $1::int4"}, INT(INT64_C(1) << 31), "22003"},
    {{.text = "SELECT $1::int2"}, INT(32768), "22003"},
    {{.text = "SELECT $1::date"}, TEXT("no date"), "22007"},
    {{.text = "SELECT $1::date"}, TEXT("2026\0-11-29"), "22021"},
    {{.text = "SELECT $1::text"}, TEXT("a\0b"), "22021"},
    {{.text = "SELECT $1::text"}, TEXT("\xff"), "22021"},
};

DOMT_TEST(wrong_query_parameters_are_refused)
{
    start_server_with_user(NULL);
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        domt_pg_answer answer =
            domt_pg_run_statement(&user, user.sql, &wrongs[i].statement, &wrongs[i].sent, 1);
        ck_assert_msg(answer.error == -EINVAL, "%zu: %d", i, answer.error);
        ck_assert_str_eq(answer.as.failure.sqlstate, wrongs[i].sqlstate);
    }
    ck_assert_uint_eq(domt_pg_read_database_status(&user).failures, 0);
    stop_server_and_user();
}

DOMT_TEST(results_count_changes_and_name_columns)
{
    static const domus_sql_statement insert = {
        .text = "INSERT INTO t SELECT generate_series(1, 10) RETURNING id AS number"};
    static const domus_sql_statement change = {.text = "UPDATE t SET id = id WHERE id <= 4"};
    static const domus_sql_statement none = {.text = "SELECT id, id AS two FROM t WHERE false"};

    start_server_with_user(NULL);
    domt_pg_run_script(&user, "CREATE TABLE t (id INT)");
    domt_pg_answer answer = domt_pg_run_statement(&user, user.sql, &insert, NULL, 0);
    ck_assert_int_eq(answer.error, 0);
    ck_assert_uint_eq(answer.as.result.affected, 10);
    ck_assert_uint_eq(answer.as.result.rows, 10);
    ck_assert_int_eq(domus_sql_column(&answer.as.result, "number"), 0);
    domt_pg_free_answer(&answer);
    answer = domt_pg_run_statement(&user, user.sql, &change, NULL, 0);
    ck_assert_uint_eq(answer.as.result.affected, 4);
    ck_assert_uint_eq(answer.as.result.columns, 0);
    domt_pg_free_answer(&answer);
    for (int i = 0; i < 2; i++) {
        answer = domt_pg_run_statement(&user, user.sql, &none, NULL, 0);
        ck_assert_uint_eq(answer.as.result.rows + answer.as.result.affected, 0);
        ck_assert_uint_eq(answer.as.result.columns, 2);
        ck_assert_int_eq(domus_sql_column(&answer.as.result, "two"), 1);
        domt_pg_free_answer(&answer);
    }
    stop_server_and_user();
}

/* When statements_max statements are prepared, the one that was used longest ago is removed, also
 * at the server. */
DOMT_TEST(prepared_statements_are_limited)
{
    static const domus_sql_statement statements[3] = {
        {.text = "SELECT 0"}, {.text = "SELECT 1"}, {.text = "SELECT 2"}};
    static const int order[] = {0, 1, 0, 2, 0, 1, 0, 2};
    static const domus_sql_options options = {.statements_max = 2, .connections_max = 1};

    start_server_with_user(&options);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        domt_pg_answer answer =
            domt_pg_run_statement(&user, user.sql, &statements[order[i]], NULL, 0);
        ck_assert_int_eq(answer.error, 0);
        ck_assert_int_eq(domus_sql_cell(&answer.as.result, 0, 0).as.integer, order[i]);
        domt_pg_free_answer(&answer);
        ck_assert_int_le(domt_pg_run_text_for_number(&user, user.sql,
                                                     "SELECT count(*) FROM pg_prepared_statements"),
                         2);
    }
    ck_assert_uint_eq(domt_pg_read_database_status(&user).prepares,
                      5); /* statement 0 is not prepared again, because it is used in between */
    stop_server_and_user();
}

/* A statement that the server no longer has, or whose result has changed, is prepared again,
 * once. */
DOMT_TEST(lost_statements_are_prepared_again)
{
    static const domus_sql_statement all = {.text = "SELECT * FROM t"};
    static const domus_sql_options options = {.connections_max = 1};

    start_server_with_user(&options);
    domt_pg_run_script(&user, "CREATE TABLE t AS SELECT 1 AS id");
    for (int i = 0; i < 4; i++) {
        domt_pg_answer answer = domt_pg_run_statement(&user, user.sql, &all, NULL, 0);
        ck_assert_msg(answer.error == 0, "%d", i);
        ck_assert_uint_eq(answer.as.result.columns, i < 2 ? 1 : 2);
        domt_pg_free_answer(&answer);
        domt_pg_run_script(&user, i == 0   ? "DEALLOCATE ALL"
                                  : i == 1 ? "ALTER TABLE t ADD COLUMN more TEXT"
                                           : "SELECT 1");
    }
    domus_sql_status status = domt_pg_read_database_status(&user);
    ck_assert_uint_eq(status.prepares, 3);
    ck_assert_uint_eq(status.errors, 0);
    ck_assert_uint_eq(status.connects, 1);
    stop_server_and_user();
}

/* A result of exactly result_max bytes comes, and one with a byte more fails, whether earlier
 * results of the statement were small or not. */
DOMT_TEST(result_size_is_limited)
{
    static const domus_sql_statement repeat = {.text = "SELECT repeat('x', $1) AS x"};
    static const domus_sql_statement series = {
        .text = "SELECT repeat('x', 100) FROM generate_series(1, $1::int8)"};
    static const domus_sql_options options = {.result_max = 65536, .connections_max = 1};
    /* A text of this size fills a result of 65536 bytes, beside two cells of 16 bytes and a name
     * with its zero. */
    int64_t most = 65536 - 2 * 16 - 2;

    start_server_with_user(&options);
    for (int64_t i = 0; i < 4; i++) {
        domus_sql_value size = domus_sql_int(i % 2 == 0 ? most : most + 1);
        domt_pg_answer answer = domt_pg_run_statement(&user, user.sql, &repeat, &size, 1);
        ck_assert_int_eq(answer.error, i % 2 == 0 ? 0 : -EFBIG);
        domt_pg_free_answer(&answer);
        size = domus_sql_int(1);
        answer = domt_pg_run_statement(&user, user.sql, &repeat, &size, 1);
        ck_assert_int_eq(answer.error, 0);
        domt_pg_free_answer(&answer);
    }
    domt_pg_answer answer = domt_pg_run_text(
        &user, user.sql, "SELECT repeat('x', 100) FROM generate_series(1, 3000000)");
    ck_assert_int_eq(answer.error, -EFBIG);
    /* After small results of a statement libpq reads its next result at once, which has the same
     * limit. */
    for (int64_t i = 0; i < 2; i++) {
        domus_sql_value count = domus_sql_int(i == 0 ? 1 : 3000000);
        answer = domt_pg_run_statement(&user, user.sql, &series, &count, 1);
        ck_assert_int_eq(answer.error, i == 0 ? 0 : -EFBIG);
        domt_pg_free_answer(&answer);
    }
    ck_assert_uint_eq(domt_pg_read_database_status(&user).failures,
                      1); /* the result that was too large has ended its connection */
    ck_assert_int_eq(domt_pg_run_text_for_number(&user, user.sql, "SELECT 7"), 7);
    stop_server_and_user();
}

/* libpq takes the received bytes of a large result in small steps, and no byte is counted twice. */
DOMT_TEST(large_results_after_small_ones_come)
{
    static const domus_sql_statement series = {
        .text = "SELECT repeat('x', 5900) FROM generate_series(1, $1::int8)"};

    domt_postgres_start(&server, NULL);
    for (int way = 0; way < 2; way++) {
        domt_pg_user_start_system(&user, way == 0 ? server.url : server.unix_url, NULL);
        for (int i = 0; i < 8; i++) {
            /* Each second result has 14.8 MiB, of at most 16 MiB. */
            domus_sql_value count = domus_sql_int(i % 2 == 0 ? 1 : 2500);
            domt_pg_answer answer = domt_pg_run_statement(&user, user.sql, &series, &count, 1);
            ck_assert_int_eq(answer.error, 0);
            ck_assert_int_eq(answer.as.result.rows, count.as.integer);
            domt_pg_free_answer(&answer);
        }
        domt_pg_user_stop_system(&user);
    }
    domt_postgres_stop(&server);
}

/* --- common ----------------------------------------------------------------------------------- */

/* protocols/pg with a real server: the tests that each kind of database has to pass. */

typedef void run_cases(const domus_sql_driver *driver, const char *url);

static void run_common_tests_with_server(run_cases *cases)
{
    domt_postgres cluster;

    domt_postgres_start(&cluster, NULL);
    cases(&domus_pg_driver, cluster.url);
    domt_postgres_stop(&cluster);
}

DOMT_TEST(statements_return_results_and_errors)
{
    run_common_tests_with_server(domt_sql_check_statements);
}

DOMT_TEST(values_are_read_back_unchanged)
{
    run_common_tests_with_server(domt_sql_check_values_return);
}

DOMT_TEST(transactions_commit_or_roll_back_as_a_whole)
{
    run_common_tests_with_server(domt_sql_check_transactions);
}

DOMT_TEST(failures_of_library_fail_the_transaction)
{
    run_common_tests_with_server(domt_sql_check_failures);
}

DOMT_TEST(late_ends_of_transactions_roll_back)
{
    run_common_tests_with_server(domt_sql_check_ends_after_deadline);
}

DOMT_TEST(rows_of_cursors_come_in_pieces)
{
    run_common_tests_with_server(domt_sql_check_cursors);
}

DOMT_TEST(limits_of_database_hold)
{
    run_common_tests_with_server(domt_sql_check_limits);
}

DOMT_SUITE(120)
