/* Transactions of a real server: each has a connection of its own, ends once, and is rolled back if
 * its owner does not end it. */
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

static void start_server_with_user(const domus_sql_options *options)
{
    domt_postgres_start(&server, NULL);
    domt_pg_user_start_system(&user, server.url, options);
    domt_pg_run_script(&user, "CREATE TABLE t (id INT UNIQUE DEFERRABLE INITIALLY DEFERRED)");
}

static void stop_server_and_user(void)
{
    domt_pg_user_stop_system(&user);
    domt_postgres_stop(&server);
}

static int run_text_in_transaction(domus_sql sql, const char *text)
{
    domt_pg_answer answer = domt_pg_run_text(&user, sql, text);
    int error = answer.error;

    domt_pg_free_answer(&answer);
    return error;
}

static int64_t count_committed_rows(void)
{
    return domt_pg_run_text_for_number(&user, user.sql, "SELECT count(*) FROM t");
}

DOMT_TEST(commit_keeps_rows_and_rollback_drops_them)
{
    start_server_with_user(NULL);
    for (int i = 0; i < 2; i++) {
        domus_sql sql = domt_pg_begin_transaction(&user);
        ck_assert_int_eq(run_text_in_transaction(sql, i == 0 ? "INSERT INTO t VALUES (1)"
                                                             : "INSERT INTO t VALUES (2), (3)"),
                         0);
        ck_assert_int_eq(domt_pg_run_text_for_number(&user, sql, "SELECT count(*) FROM t"),
                         i == 0 ? 1 : 3);
        /* count_committed_rows() uses another connection, which sees only committed rows */
        ck_assert_int_eq(count_committed_rows(), i == 0 ? 0 : 1);
        ck_assert_int_eq(domt_pg_end_transaction(&user, sql, i == 0).error, 0);
        ck_assert_int_eq(count_committed_rows(), 1);
        ck_assert_int_eq(run_text_in_transaction(sql, "SELECT 1"), -ESTALE);
        ck_assert_int_eq(domt_pg_end_transaction(&user, sql, true).error, -ESTALE);
    }
    domt_pg_await_idle_connections(&user);
    stop_server_and_user();
}

DOMT_TEST(commit_returns_first_failure_of_transaction)
{
    start_server_with_user(NULL);
    domus_sql sql = domt_pg_begin_transaction(&user);
    ck_assert_int_eq(run_text_in_transaction(sql, "SELECT 1 / 0"), -EINVAL);
    domt_pg_answer answer = domt_pg_run_text(&user, sql, "SELECT 1");
    ck_assert_str_eq(answer.as.failure.sqlstate, "25P02");
    answer = domt_pg_end_transaction(&user, sql, true);
    ck_assert_str_eq(answer.as.failure.sqlstate, "22012");
    sql = domt_pg_begin_transaction(&user);
    ck_assert_int_eq(run_text_in_transaction(sql, "INSERT INTO t VALUES (1), (1)"), 0);
    /* The constraint is deferred, so only the commit reports this error. */
    ck_assert_int_eq(domt_pg_end_transaction(&user, sql, true).error, -EEXIST);
    sql = domt_pg_begin_transaction(&user);
    ck_assert_int_eq(run_text_in_transaction(sql, "SELEC"), -EINVAL);
    ck_assert_int_eq(domt_pg_end_transaction(&user, sql, false).error, 0);
    ck_assert_int_eq(count_committed_rows(), 0);
    domt_pg_await_idle_connections(&user);
    stop_server_and_user();
}

DOMT_TEST(transaction_has_requested_isolation)
{
    static const struct {
        domus_sql_begin_options options;
        const char *level;
        int writes;
    } rows[] = {
        {{.isolation = DOMUS_SQL_ISOLATION_DEFAULT}, "read committed", 0},
        {{.isolation = DOMUS_SQL_REPEATABLE_READ}, "repeatable read", 0},
        {{.isolation = DOMUS_SQL_SERIALIZABLE}, "serializable", 0},
        {{.isolation = DOMUS_SQL_SERIALIZABLE, .reads_only = true}, "serializable", -EROFS},
        {{.reads_only = true}, "read committed", -EROFS},
    };

    start_server_with_user(NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domt_pg_answer answer =
            domt_pg_ask_and_wait(&user, user.sql.at, &domus_sql_begin_type, &rows[i].options, 0);
        ck_assert_int_eq(answer.error, 0);
        domus_sql sql = answer.as.sql;
        answer = domt_pg_run_text(&user, sql, "SHOW transaction_isolation");
        domus_sql_value level = domus_sql_cell(&answer.as.result, 0, 0);
        ck_assert_uint_eq(level.size, strlen(rows[i].level));
        ck_assert_int_eq(memcmp(level.as.bytes, rows[i].level, level.size), 0);
        domt_pg_free_answer(&answer);
        ck_assert_int_eq(run_text_in_transaction(sql, "INSERT INTO t VALUES (1)"), rows[i].writes);
        ck_assert_int_eq(domt_pg_end_transaction(&user, sql, false).error, 0);
    }
    domt_pg_answer answer = domt_pg_ask_and_wait(&user, user.sql.at, &domus_sql_begin_type,
                                                 &(domus_sql_begin_options){.isolation = 3}, 0);
    ck_assert_int_eq(answer.error, -EINVAL);
    stop_server_and_user();
}

DOMT_TEST(idle_transaction_is_rolled_back)
{
    static const domus_sql_options options = {.transaction_idle_ns = 500 * MS};

    start_server_with_user(&options);
    domus_sql sql = domt_pg_begin_transaction(&user);
    ck_assert_int_eq(run_text_in_transaction(sql, "INSERT INTO t VALUES (1)"), 0);
    /* The time in which a statement runs does not count as idle. */
    ck_assert_int_eq(run_text_in_transaction(sql, "SELECT pg_sleep(0.7)"), 0);
    domt_pg_await_idle_connections(&user);
    ck_assert_int_eq(run_text_in_transaction(sql, "SELECT 1"), -ESTALE);
    ck_assert_int_eq(count_committed_rows(), 0);
    stop_server_and_user();
}

/* The owner of a transaction ends between its statements, or during one; the transaction is rolled
 * back. */
DOMT_TEST(transaction_ends_when_owner_ends)
{
    start_server_with_user(NULL);
    for (int i = 0; i < 2; i++) {
        domt_pg_user other = user;
        ck_assert_int_eq(domus_outside_attach(user.system, NULL, &other.outsider), 0);
        domus_sql sql = domt_pg_begin_transaction(&other);
        domt_pg_answer answer = domt_pg_run_text(&other, sql, "INSERT INTO t VALUES (1)");
        ck_assert_int_eq(answer.error, 0);
        domt_pg_free_answer(&answer);
        if (i == 1) {
            domus_sql_request request;
            ck_assert_int_eq(
                domus_sql_request_make(sql, NULL, "SELECT pg_sleep(60)", NULL, 0, &request), 0);
            ck_assert_int_eq(domus_outsider_ask_add(other.outsider, sql.at, &domus_sql_query_type,
                                                    &request, 0, 1),
                             0);
            nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        }
        ck_assert_int_eq(domus_outside_detach(other.outsider), 0);
        domt_pg_await_idle_connections(&user);
        ck_assert_int_eq(count_committed_rows(), 0);
        ck_assert_int_eq(run_text_in_transaction(sql, "SELECT 1"), -ESTALE);
    }
    ck_assert_uint_eq(domt_pg_read_database_status(&user).failures, 0);
    stop_server_and_user();
}

/* A statement is not executed after its owner has ended, also if another prepared statement is
 * removed to make room for it. */
DOMT_TEST(owner_may_end_while_statement_is_prepared)
{
    static const domus_sql_options options[] = {{.statements_max = 256}, {.statements_max = 1}};
    static const domus_sql_statement first = {.text = "SELECT 1"};
    static const domus_sql_statement inserts_late = {
        .text = "INSERT INTO t SELECT 1 FROM (SELECT pg_sleep(20)) s"};

    for (int i = 0; i < 2; i++) {
        start_server_with_user(&options[i]);
        domt_pg_user other = user;
        ck_assert_int_eq(domus_outside_attach(user.system, NULL, &other.outsider), 0);
        domus_sql sql = domt_pg_begin_transaction(&other);
        pid_t session = (pid_t)domt_pg_run_text_for_number(&other, sql, "SELECT pg_backend_pid()");
        domt_pg_answer answer = domt_pg_run_statement(&other, sql, &first, NULL, 0);
        ck_assert_int_eq(answer.error, 0);
        domt_pg_free_answer(&answer);
        kill(session, SIGSTOP);
        domt_pg_send_query(&other, sql, &inserts_late, NULL, 0, 0);
        /* The statement is on its way to the session, which is suspended. */
        uint64_t prepares = domt_pg_read_database_status(&user).prepares;
        ck_assert_int_eq(domus_outside_detach(other.outsider), 0);
        ck_assert_int_eq(run_text_in_transaction(sql, "SELECT 1"), -ESTALE);
        ck_assert_uint_eq(domt_pg_read_database_status(&user).prepares, prepares);
        uint64_t began = domt_pg_monotonic_ns();
        kill(session, SIGCONT);
        domt_pg_await_idle_connections(&user);
        ck_assert_uint_lt(domt_pg_monotonic_ns() - began, 4000 * MS);
        ck_assert_uint_eq(domt_pg_read_database_status(&user).failures, 0);
        stop_server_and_user();
    }
}

/* If a statement outside of a transaction begins one, no other query may use that: it is rolled
 * back. */
DOMT_TEST(begin_outside_transaction_is_rolled_back)
{
    static const domus_sql_options options = {.connections_max = 1};

    start_server_with_user(&options);
    ck_assert_int_eq(run_text_in_transaction(user.sql, "BEGIN"), -EINVAL);
    ck_assert_int_eq(run_text_in_transaction(user.sql, "INSERT INTO t VALUES (1)"), 0);
    ck_assert_int_eq(count_committed_rows(), 1);
    domt_pg_answer answer = domt_pg_run_request(&user, user.sql, &domus_sql_script_type, NULL,
                                                "BEGIN; INSERT INTO t VALUES (2)", NULL, 0);
    ck_assert_int_eq(answer.error, -EINVAL);
    ck_assert_str_eq(answer.as.failure.sqlstate, "25001");
    ck_assert_int_eq(count_committed_rows(), 1);
    domt_pg_run_script(&user, "BEGIN; INSERT INTO t VALUES (3); COMMIT");
    ck_assert_int_eq(count_committed_rows(), 2);
    ck_assert_uint_eq(domt_pg_read_database_status(&user).connects, 1);
    stop_server_and_user();
}

/* A statement that ends its transaction fails the transaction: later statements would be committed
 * at once. A statement that then begins another transaction, and a script that fails after it has
 * ended the transaction, fail it, too. */
DOMT_TEST(statement_ending_transaction_fails_it)
{
    static const struct {
        const char *text;
        bool is_script, may_go_on, keeps;
        const char *sqlstate; /* the SQLSTATE of the statement, and also of the commit */
    } rows[] = {
        {"COMMIT", false, false, true, "2D000"},
        {"ROLLBACK", false, false, false, "2D000"},
        {"COMMIT AND CHAIN", false, false, true, "2D000"},
        {"rollback and\n chain", false, false, false, "2D000"},
        {"ROLLBACK AND/**/CHAIN", false, false, false, "2D000"},
        {"ROLLBACK AND -- x\n /* y */ CHAIN", false, false, false, "2D000"},
        {"COMMIT; BEGIN", true, false, true, "2D000"},
        {"ROLLBACK; START TRANSACTION", true, false, false, "2D000"},
        {"COMMIT; SELECT 1 / 0", true, false, true, "22012"},
        {"COMMIT; BEGIN; SELECT 1 / 0", true, false, true, "22012"},
        {"SAVEPOINT a; ROLLBACK TO a", true, true, true, ""},
        {"SAVEPOINT andchain; ROLLBACK TO andchain", true, true, true, ""},
    };

    start_server_with_user(NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domus_sql sql = domt_pg_begin_transaction(&user);
        int failure = rows[i].may_go_on ? 0 : -EINVAL;
        ck_assert_int_eq(run_text_in_transaction(sql, "INSERT INTO t VALUES (1)"), 0);
        domt_pg_answer answer = domt_pg_run_request(
            &user, sql, rows[i].is_script ? &domus_sql_script_type : &domus_sql_query_type, NULL,
            rows[i].text, NULL, 0);
        ck_assert_msg(answer.error == failure, "%s", rows[i].text);
        if (failure != 0)
            ck_assert_str_eq(answer.as.failure.sqlstate, rows[i].sqlstate);
        domt_pg_free_answer(&answer);
        ck_assert_msg(run_text_in_transaction(sql, "INSERT INTO t VALUES (2)") == failure, "%s",
                      rows[i].text);
        answer = domt_pg_end_transaction(&user, sql, true);
        ck_assert_msg(answer.error == failure, "%s", rows[i].text);
        if (failure != 0)
            ck_assert_str_eq(answer.as.failure.sqlstate, rows[i].sqlstate);
        domt_pg_free_answer(&answer);
        ck_assert_msg(count_committed_rows() == rows[i].keeps + rows[i].may_go_on, "%s",
                      rows[i].text);
        domt_pg_run_script(&user, "DELETE FROM t");
    }
    domt_pg_await_idle_connections(&user);
    ck_assert_uint_eq(domt_pg_read_database_status(&user).failures, 0);
    stop_server_and_user();
}

/* A query for rows that has failed fails its transaction, even if no piece of the rows was read. */
DOMT_TEST(failed_unread_rows_fail_their_transaction)
{
    static const domus_sql_options options = {.result_max = 2048, .piece_size = 1024};
    static const domus_sql_statement large = {
        .text = "INSERT INTO t VALUES (1) RETURNING repeat('x', 5000)"};
    static const domus_sql_statement wrong = {.text = "SELECT 1 / (SELECT count(*) FROM t)"};

    start_server_with_user(&options);
    for (int i = 0; i < 2; i++) {
        domus_sql sql = domt_pg_begin_transaction(&user);
        domt_pg_answer answer = domt_pg_run_request(&user, sql, &domus_sql_rows_type,
                                                    i == 0 ? &large : &wrong, NULL, NULL, 0);
        ck_assert(answer.error == 0 || i != 0);
        domt_pg_free_answer(&answer);
        /* All rows come to the pool during this pause. */
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
        answer = domt_pg_end_transaction(&user, sql, true);
        ck_assert_int_eq(answer.error, i == 0 ? -EFBIG : -EINVAL);
        domt_pg_free_answer(&answer);
        ck_assert_int_eq(count_committed_rows(), 0);
    }
    stop_server_and_user();
}

static const domus_sql_statement naps = {.text = "SELECT pg_sleep(0.1)"};
static const domus_sql_statement strays = {.text = "BEGIN"};
static const domus_sql_statement inserts = {.text = "INSERT INTO t SELECT 1 + count(*) FROM t"};

/* Queries behind a BEGIN in a pipeline are rolled back with it, so none of them is answered as
 * done. */
DOMT_TEST(stray_begin_does_not_capture_its_neighbours)
{
    static const domus_sql_options options = {.connections_max = 1, .pipeline_max = 8};
    domt_pg_received answers[4];

    start_server_with_user(&options);
    ck_assert_int_eq(domt_pg_run_statement(&user, user.sql, &strays, NULL, 0).error, -EINVAL);
    domt_pg_run_script(&user, "DELETE FROM t");
    /* the first round prepares the statements at the server */
    for (int round = 0; round < 3; round++) {
        domt_pg_answer answer = domt_pg_run_statement(&user, user.sql, &inserts, NULL, 0);
        ck_assert(answer.error == 0 || round == 0);
        domt_pg_free_answer(&answer);
        answer = domt_pg_run_statement(&user, user.sql, &naps, NULL, 0);
        domt_pg_free_answer(&answer);
        domt_pg_run_script(&user, "DELETE FROM t");
        for (uint64_t tag = 0; tag < 4; tag++)
            domt_pg_send_query(&user, user.sql,
                               tag == 0   ? &naps
                               : tag == 1 ? &strays
                                          : &inserts,
                               NULL, 0, tag);
        domt_pg_receive_answers(&user, answers, 4);
        ck_assert_int_eq(answers[0].error, 0);
        ck_assert_int_eq(answers[1].error, -EINVAL);
        ck_assert_int_eq(count_committed_rows(), (answers[2].error == 0) + (answers[3].error == 0));
    }
    stop_server_and_user();
}

DOMT_SUITE(120)
