/* Failures of statements that the library finds and the database does not see: each fails the
 * transaction in which it happens. All databases have to behave alike
 * (tests/support/sql_cases.h). */
#include "tests/support/sql_cases.h"

#include "tests/support/service.h"
#include "tests/support/sql_desk.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

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
    domt_desk_must_give(desk, desk->sql, "SELECT count(*) FROM domt_t", "0");
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
        domt_desk_must_give(desk, desk->sql, "SELECT count(*) FROM domt_t", "0");
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
static void await_error(domt_desk *desk, int error)
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
        await_error(desk, errors[i]);
        int ended = domt_desk_end_transaction(desk, one, true);
        ck_assert_msg(ended == errors[i], "%zu: %d, %s", i, ended,
                      desk->answer.type == &domus_sql_error_type ? desk->payload.error.message
                                                                 : "no words");
        domt_desk_must_give(desk, desk->sql, "SELECT count(*) FROM domt_t", "0");
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
