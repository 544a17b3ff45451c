/* The tests that all databases have to pass: those of queries, of failures, and of late answers. */
#include "tests/support/sql_cases.h"
#include "tests/support/service.h"
#include "tests/support/sql_desk.h"
#include "tests/support/suite.h"

#include <domus/await.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A table of SQL statements on which all databases have to behave alike, and checks that values
 * come back unchanged; tests/support/sql_cases.h declares these tests. */

#define VALUES_MAX 3

/* An SQL statement, and the result or error that every database has to give. The statements run in
 * the order of the table, and later rows rely on earlier ones. */
static const struct statement_case {
    const char *text;
    domus_sql_value values[VALUES_MAX];
    uint32_t count;
    int error;
    const char *state; /* SQLSTATE of the statement, if it fails */
    const char *gives; /* result of the statement as text, if it succeeds; NULL: no rows */
    uint64_t affected;
} cases[] = {
    {.text = "CREATE TABLE domt_a (id INTEGER PRIMARY KEY, title TEXT NOT NULL UNIQUE, n INTEGER "
             "CHECK (n >= 0))"},
    {.text = "CREATE TABLE domt_b (a INTEGER NOT NULL REFERENCES domt_a (id), word TEXT)"},
    {.text = "INSERT INTO domt_a (id, title, n) VALUES (1, 'one', 1), (2, 'two', 2)",
     .affected = 2},
    {.text = "SELECT id, title FROM domt_a ORDER BY id", .gives = "1|one;2|two"},
    {.text = "SELECT title FROM domt_a WHERE id = 7", .gives = ""},
    {.text = "SELECT n, NULL FROM domt_a WHERE id = 1", .gives = "1|~"},
    {.text = "UPDATE domt_a SET n = n + 1", .affected = 2},
    {.text = "UPDATE domt_a SET n = 0 WHERE id = 7", .affected = 0},
    {.text = "INSERT INTO domt_a (id, title, n) VALUES (3, 'three', 3) RETURNING id",
     .gives = "3",
     .affected = 1},
    {.text = "DELETE FROM domt_a WHERE id = 3", .affected = 1},
    {.text = "INSERT INTO domt_a (id, title) VALUES (1, 'x')", .error = -EEXIST, .state = "23505"},
    {.text = "INSERT INTO domt_a (id, title) VALUES (4, 'one')",
     .error = -EEXIST,
     .state = "23505"},
    {.text = "INSERT INTO domt_a (id, title) VALUES (4, NULL)", .error = -EPERM, .state = "23502"},
    {.text = "INSERT INTO domt_a (id, title, n) VALUES (4, 'x', -1)",
     .error = -EPERM,
     .state = "23514"},
    {.text = "INSERT INTO domt_b (a) VALUES (99)", .error = -EPERM, .state = "23503"},
    {.text = "SELEC 1", .error = -EINVAL, .state = "42601"},
    {.text = "SELECT 1 FROM domt_none", .error = -EINVAL, .state = "42P01"},
    {.text = "SELECT none FROM domt_a", .error = -EINVAL, .state = "42703"},
    {.text = "SELECT domt_none(1)", .error = -EINVAL, .state = "42883"},
    {.text = "CREATE TABLE domt_a (id INTEGER)", .error = -EINVAL, .state = "42P07"},
    {.text = "SELECT 1; SELECT 2", .error = -EINVAL, .state = "42601"},
    {.text = "SELECT count(*) FROM domt_a", .gives = "2"},
    {.text = "SELECT title FROM domt_a WHERE id = $1",
     .values = {{.kind = DOMUS_SQL_INTEGER, .as.integer = 2}},
     .count = 1,
     .gives = "two"},
    {.text = "SELECT title FROM domt_a WHERE id = $2 OR id = $1 OR id = $2 ORDER BY id",
     .values = {{.kind = DOMUS_SQL_INTEGER, .as.integer = 2},
                {.kind = DOMUS_SQL_INTEGER, .as.integer = 1}},
     .count = 2,
     .gives = "one;two"},
    {.text = "INSERT INTO domt_b (a, word) VALUES ($1, $2)",
     .values = {{.kind = DOMUS_SQL_INTEGER, .as.integer = 1}, {.kind = DOMUS_SQL_NULL}},
     .count = 2,
     .affected = 1},
    {.text = "SELECT a, word FROM domt_b", .gives = "1|~"},
    {.text = "DROP TABLE domt_b"},
    {.text = "DROP TABLE domt_a"},
};

static void check_statement_case(domt_desk *desk, const struct statement_case *row)
{
    char shown[256];
    int error = domt_desk_run_text(desk, desk->sql, row->text, row->values, row->count);

    ck_assert_msg(error == row->error, "%s: %s %s", row->text, strerror(-error),
                  desk->answer.type == &domus_sql_error_type ? desk->payload.error.message : "");
    if (row->error != 0) {
        ck_assert_msg(strcmp(domt_desk_sqlstate(desk), row->state) == 0, "%s: %s", row->text,
                      domt_desk_sqlstate(desk));
        return;
    }
    domt_desk_write_result(desk, shown, sizeof shown);
    ck_assert_msg(strcmp(shown, row->gives != NULL ? row->gives : "") == 0, "%s: %s", row->text,
                  shown);
    ck_assert_msg(desk->payload.result.affected == row->affected, "%s: %llu rows", row->text,
                  (unsigned long long)desk->payload.result.affected);
    ck_assert_msg(desk->payload.result.last, "%s", row->text);
}

void domt_sql_check_statements(const domus_sql_driver *driver, const char *url)
{
    domt_desk desk;

    domt_desk_open(&desk, driver, url, NULL);
    (void)domt_desk_run_script(&desk, desk.sql,
                               "DROP TABLE IF EXISTS domt_b; DROP TABLE IF EXISTS domt_a");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_statement_case(&desk, &cases[i]);
    domt_desk_close(&desk);
}

/* --- values ----------------------------------------------------------------------------------- */

static void check_value_comes_back(domt_desk *desk, const domus_sql_value *value)
{
    static const domus_sql_statement put = {.text = "INSERT INTO domt_v (t, y) VALUES ($1, $2)"};
    static const domus_sql_statement get = {.text = "SELECT t, y FROM domt_v"};
    domus_sql_value null = domus_sql_null();
    bool is_text = value->kind == DOMUS_SQL_TEXT;
    const domus_sql_value values[] = {is_text ? *value : null, is_text ? null : *value};

    domt_desk_must_succeed(desk, desk->sql, "DELETE FROM domt_v");
    ck_assert_int_eq(domt_desk_run_statement(desk, desk->sql, &put, values, 2), 0);
    ck_assert_int_eq(domt_desk_run_statement(desk, desk->sql, &get, NULL, 0), 0);
    domus_sql_value read = domus_sql_cell(&desk->payload.result, 0, is_text ? 0 : 1);
    ck_assert_uint_eq(read.kind, value->kind);
    ck_assert_uint_eq(read.size, value->size);
    if (value->size != 0)
        ck_assert_mem_eq(read.as.bytes, value->as.bytes, value->size);
}

static void check_numbers_return(domt_desk *desk)
{
    static const int64_t integers[] = {0, 1, -1, INT64_MAX, INT64_MIN, INT32_MAX};
    static const double reals[] = {0.5, -1.25e300, 4.9406564584124654e-324, 1e15};
    static const domus_sql_statement put = {.text = "INSERT INTO domt_n (i, r) VALUES ($1, $2)"};
    int64_t integer;
    double real;

    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++) {
        const domus_sql_value values[] = {domus_sql_int(integers[i]), domus_sql_real(reals[i % 4])};
        domt_desk_must_succeed(desk, desk->sql, "DELETE FROM domt_n");
        ck_assert_int_eq(domt_desk_run_statement(desk, desk->sql, &put, values, 2), 0);
        domt_desk_must_succeed(desk, desk->sql, "SELECT i, r FROM domt_n");
        ck_assert_int_eq(domus_sql_get_int(&desk->payload.result, 0, 0, &integer), 0);
        ck_assert_int_eq(domus_sql_get_real(&desk->payload.result, 0, 1, &real), 0);
        ck_assert_int_eq(integer, integers[i]);
        ck_assert(real == reals[i % 4]);
    }
}

void domt_sql_check_values_return(const domus_sql_driver *driver, const char *url)
{
    static char bytes[100000];
    domt_desk desk;
    bool is_sqlite = strcmp(driver->name, "sqlite") == 0;
    char text[128];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i % 251);
    domt_desk_open(&desk, driver, url, NULL);
    (void)domt_desk_run_script(&desk, desk.sql,
                               "DROP TABLE IF EXISTS domt_v; DROP TABLE IF EXISTS domt_n");
    (void)snprintf(text, sizeof text, "CREATE TABLE domt_v (t TEXT, y %s)",
                   is_sqlite ? "BLOB" : "BYTEA");
    domt_desk_must_succeed(&desk, desk.sql, text);
    domt_desk_must_succeed(&desk, desk.sql, "CREATE TABLE domt_n (i BIGINT, r DOUBLE PRECISION)");
    const domus_sql_value values[] = {
        domus_sql_text(""),
        domus_sql_text("a"),
        domus_sql_text("'; DROP TABLE domt_v; --"),
        domus_sql_text("\xc3\xa4\xe2\x82\xac\xf0\x9f\x8e\x88"),
        domus_sql_bytes("", 0),
        domus_sql_bytes("\0\1\377", 3),
        domus_sql_bytes(bytes, sizeof bytes),
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        check_value_comes_back(&desk, &values[i]);
    check_numbers_return(&desk);
    /* The database refuses a text with a zero byte, and a text that is not UTF-8. */
    ck_assert_int_eq(domt_desk_run_text(&desk, desk.sql, "INSERT INTO domt_v (t) VALUES ($1)",
                                        DOMUS_SQL_VALUES(domus_sql_text_of("a\0b", 3))),
                     -EINVAL);
    ck_assert_str_eq(domt_desk_sqlstate(&desk), "22021");
    ck_assert_int_eq(domt_desk_run_text(&desk, desk.sql, "INSERT INTO domt_v (t) VALUES ($1)",
                                        DOMUS_SQL_VALUES(domus_sql_text("\xff"))),
                     -EINVAL);
    ck_assert_str_eq(domt_desk_sqlstate(&desk), "22021");
    domt_desk_must_succeed(&desk, desk.sql, "DROP TABLE domt_v");
    domt_desk_must_succeed(&desk, desk.sql, "DROP TABLE domt_n");
    domt_desk_close(&desk);
}

/* --- sql failed cases ------------------------------------------------------------------------- */

/* Failures of statements that the library finds and the database does not see: each fails the
 * transaction in which it happens. All databases have to behave alike (tests/support/sql_cases.h).
 */

#define MS UINT64_C(1000000)

/* SQL statements that the library fails: by the size of the result, by a missing value, and by a
 * time-out. */
static const struct failing {
    domus_sql_statement statement;
    int error;
} failing[] = {
    {{.text = "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 1000) "
              "SELECT n, 'more than two bytes' FROM r"},
     -EFBIG},
    {{.text = "SELECT word FROM domt_t WHERE id = $1 AND word = $2"}, -EINVAL},
    {{.text = "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) "
              "SELECT count(*) FROM r",
      .timeout_ns = 50 * MS},
     -ETIMEDOUT},
};

/* Check that a transaction in which a statement has failed with `error` refuses further statements,
 * and that its commit returns `error` and stores nothing. */
static void check_transaction_has_failed(domt_desk *desk, domus_sql one, int error)
{
    ck_assert_int_eq(domt_desk_run_text(desk, one, "INSERT INTO domt_t (id) VALUES (9)", NULL, 0),
                     -EINVAL);
    ck_assert_str_eq(domt_desk_sqlstate(desk), "25P02");
    ck_assert_int_eq(domt_desk_end_transaction(desk, one, true), error);
    domt_desk_query_must_return(desk, desk->sql, "SELECT count(*) FROM domt_t", "0");
}

static void check_failing_statements(domt_desk *desk)
{
    domus_sql one;

    for (size_t i = 0; i < 2 * sizeof failing / sizeof failing[0]; i++) {
        const struct failing *row = &failing[i / 2];
        ck_assert_int_eq(domt_desk_begin_transaction(desk, false, &one), 0);
        domt_desk_must_succeed(desk, one, "INSERT INTO domt_t (id) VALUES (1)");
        ck_assert_int_eq(domt_desk_run_statement(desk, one, &row->statement, NULL, 0), row->error);
        if (i % 2 == 0)
            check_transaction_has_failed(desk, one, row->error);
        else
            ck_assert_int_eq(domt_desk_end_transaction(desk, one, true), row->error);
        domt_desk_query_must_return(desk, desk->sql, "SELECT count(*) FROM domt_t", "0");
    }
}

static void send_query_text(domt_desk *desk, domus_sql sql, const char *text, uint64_t timeout_ns)
{
    domus_sql_request request;

    ck_assert_int_eq(domus_sql_request_make(sql, NULL, text, NULL, 0, &request), 0);
    ck_assert_int_eq(domus_outsider_ask_add(desk->outsider, sql.at, &domus_sql_query_type, &request,
                                            timeout_ns, 0),
                     0);
}

/* Receive answers until an answer has this error. */
static void await_answer_with_error(domt_desk *desk, int error)
{
    domus_outside_message message;
    int found = 0;

    while (found != error) {
        ck_assert_int_eq(domus_outside_receive(desk->outsider, NULL, 60000 * MS, &message), 0);
        if (message.type == &domus_outsider_failed_type)
            found = *(const int *)message.payload;
        else if (message.type == &domus_sql_error_type)
            found = ((const domus_sql_error *)message.payload)->error;
    }
}

static const char slow[] =
    "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3000000) "
    "SELECT count(*) FROM r";

/* Check statements of a transaction that wait behind a slow one: the queue for one statement
 * refuses a second with -ENOBUFS, and a statement that waits too long fails with -ETIMEDOUT. */
static void check_waiting_statements(domt_desk *desk)
{
    static const int errors[] = {-ENOBUFS, -ETIMEDOUT};
    domus_sql one;

    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(domt_desk_begin_transaction(desk, false, &one), 0);
        domt_desk_must_succeed(desk, one, "INSERT INTO domt_t (id) VALUES (1)");
        send_query_text(desk, one, slow, 300000 * MS);
        domt_sleep_ms(100);
        send_query_text(desk, one, "INSERT INTO domt_t (id) VALUES (2)",
                        i == 0 ? 300000 * MS : 100 * MS);
        if (i == 0)
            send_query_text(desk, one, "INSERT INTO domt_t (id) VALUES (3)", 0);
        await_answer_with_error(desk, errors[i]);
        int ended = domt_desk_end_transaction(desk, one, true);
        ck_assert_msg(ended == errors[i], "%zu: %d, %s", i, ended,
                      desk->answer.type == &domus_sql_error_type ? desk->payload.error.message
                                                                 : "no words");
        domt_desk_query_must_return(desk, desk->sql, "SELECT count(*) FROM domt_t", "0");
    }
}

void domt_sql_check_failures(const domus_sql_driver *driver, const char *url)
{
    domus_sql_options options = {.queue_max = 1,
                                 .result_max = 2048,
                                 .wait_ns = 60000 * MS,
                                 .timeout_ns = 300000 * MS,
                                 .connections_max = 2};
    domt_desk desk;

    domt_desk_open(&desk, driver, url, &options);
    (void)domt_desk_run_script(&desk, desk.sql, "DROP TABLE IF EXISTS domt_t");
    domt_desk_must_succeed(&desk, desk.sql,
                           "CREATE TABLE domt_t (id INTEGER PRIMARY KEY, word TEXT)");
    check_failing_statements(&desk);
    /* A database in memory is left out, because a slow statement holds up all its later
     * statements. */
    if (strstr(url, ":memory:") == NULL)
        check_waiting_statements(&desk);
    domt_desk_must_succeed(&desk, desk.sql, "DROP TABLE domt_t");
    domt_desk_close(&desk);
}

/* --- sql late cases --------------------------------------------------------------------------- */

/* Checks that transactions end although their conversation can no longer ask, because its deadline
 * has passed or it was cancelled (tests/support/sql_cases.h). */

static const domus_type work_type = {.name = "work", .size = sizeof(bool)};
static const domus_type stop_type = {.name = "stop"};

struct worker {
    domus_sql sql;
    domus_address silent;
    domus_conversation working;
    bool commits;
};

struct work {
    domus_sql one;
};

/* A conversation that begins a transaction, writes a row, waits for an answer that never comes, and
 * then commits or rolls back. */
DOMUS_SEQUENCE(work, struct work)
{
    struct worker *worker = self;

    DOMUS_BEGIN;
    worker->commits = *(const bool *)message;
    (void)domus_conversation_of(stack, &worker->working);
    DOMUS_AWAIT(domus_sql_begin(stack, worker->sql, NULL, then));
    if (domus_sql_transaction_of(answer, &frame->one) != 0)
        return -EINVAL;
    DOMUS_AWAIT(domus_sql_query_text(stack, frame->one, "INSERT INTO domt_t (id) VALUES (1)", NULL,
                                     0, then));
    DOMUS_ASK(worker->silent, &stop_type, NULL);
    DOMUS_AWAIT(worker->commits ? domus_sql_commit(stack, frame->one, then)
                                : domus_sql_rollback(stack, frame->one, then));
    return answer->error;
    DOMUS_END;
}

static int on_stop_cancel_work(domus_stack *stack, void *self, const void *payload)
{
    struct worker *worker = self;

    int error = domus_cancel(stack, worker->working);
    return error != 0 ? error : domus_reply(stack, &stop_type, NULL);
}

static const domus_behaviour worker = {
    .name = "worker",
    .state_size = sizeof(struct worker),
    .on = (const domus_on[]){DOMUS_ON(&work_type, work),
                             {&stop_type, on_stop_cancel_work, 0},
                             {NULL, NULL, 0}},
};

static int on_stop_never_answer(domus_stack *stack, void *self, const void *payload)
{
    domus_kept kept;

    return domus_keep(stack, &kept);
}

static const domus_behaviour silent = {
    .name = "silent",
    .on = (const domus_on[]){{&stop_type, on_stop_never_answer, 0}, {NULL, NULL, 0}}};

/* Check that the transaction has been rolled back: the only connection is free again long before
 * the transaction's idle time is over. */
static void check_connection_is_free(domt_desk *desk)
{
    domt_desk_query_must_return(desk, desk->sql, "SELECT count(*) FROM domt_t", "0");
    domt_desk_must_succeed(desk, desk->sql, "INSERT INTO domt_t (id) VALUES (2)");
    domt_desk_must_succeed(desk, desk->sql, "DELETE FROM domt_t");
}

void domt_sql_check_ends_after_deadline(const domus_sql_driver *driver, const char *url)
{
    const domus_sql_options options = {
        .connections_max = 1, .wait_ns = 20000 * MS, .transaction_idle_ns = 600000 * MS};
    struct worker state = {.commits = false};
    domus_address who;
    domt_desk desk;

    domt_desk_open(&desk, driver, url, &options);
    (void)domt_desk_run_script(&desk, desk.sql, "DROP TABLE IF EXISTS domt_t");
    domt_desk_must_succeed(&desk, desk.sql,
                           "CREATE TABLE domt_t (id INTEGER PRIMARY KEY, word TEXT)");
    state.sql = desk.sql;
    ck_assert_int_eq(domus_outside_spawn(desk.system, &silent, NULL, &state.silent), 0);
    ck_assert_int_eq(domus_outside_spawn(desk.system, &worker, &state, &who), 0);
    for (int i = 0; i < 4; i++) {
        const bool commits = i % 2 != 0;
        const uint64_t within_ns = i < 2 ? 300 * MS : 0;
        if (within_ns != 0) {
            ck_assert_int_eq(
                domus_outsider_ask(desk.outsider, who, &work_type, &commits, within_ns, NULL),
                -ETIMEDOUT);
        } else {
            ck_assert_int_eq(domus_outsider_notice(desk.outsider, who, &work_type, &commits), 0);
            while (domt_desk_database_status(&desk).busy == 0)
                domt_sleep_ms(1);
            domt_sleep_ms(50);
            ck_assert_int_eq(domt_desk_ask(&desk, who, &stop_type, NULL), 0);
        }
        check_connection_is_free(&desk);
    }
    domt_desk_must_succeed(&desk, desk.sql, "DROP TABLE domt_t");
    domt_desk_close(&desk);
}
