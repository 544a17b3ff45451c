/* Checks of transactions, of cursors whose rows come in pieces, and of limits, on which all
 * databases have to behave alike (tests/support/sql_cases.h). */
#include "tests/support/sql_cases.h"

#include "tests/support/service.h"
#include "tests/support/sql_desk.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define MS UINT64_C(1000000)

/* A time-out that no case reaches, even on a busy machine; a case in which a time has to pass makes
 * only that time short. */
#define LONG (60000 * MS)

static void wait_until_database_is_idle(domt_desk *desk)
{
    while (domt_desk_database_status(desk).busy != 0)
        domt_sleep_ms(1);
}

static void open_desk_and_make_table(domt_desk *desk, const domus_sql_driver *driver,
                                     const char *url, const domus_sql_options *options)
{
    domt_desk_open(desk, driver, url, options);
    (void)domt_desk_run_script(desk, desk->sql, "DROP TABLE IF EXISTS domt_t");
    domt_desk_must_succeed(desk, desk->sql,
                           "CREATE TABLE domt_t (id INTEGER PRIMARY KEY, word TEXT)");
}

static void drop_table_and_close_desk(domt_desk *desk)
{
    domt_desk_must_succeed(desk, desk->sql, "DROP TABLE domt_t");
    domt_desk_close(desk);
}

/* --- transactions ----------------------------------------------------------------------------- */

static void check_commit_and_rollback(domt_desk *desk)
{
    domus_sql one;

    ck_assert_int_eq(domt_desk_begin_transaction(desk, false, &one), 0);
    domt_desk_must_succeed(desk, one, "INSERT INTO domt_t (id) VALUES (1)");
    domt_desk_query_must_return(desk, one, "SELECT count(*) FROM domt_t", "1");
    ck_assert_int_eq(domt_desk_end_transaction(desk, one, true), 0);
    domt_desk_query_must_return(desk, desk->sql, "SELECT count(*) FROM domt_t", "1");
    ck_assert_int_eq(domt_desk_run_text(desk, one, "SELECT 1", NULL, 0), -ESTALE);
    ck_assert_int_eq(domt_desk_end_transaction(desk, one, true), -ESTALE);

    ck_assert_int_eq(domt_desk_begin_transaction(desk, false, &one), 0);
    domt_desk_must_succeed(desk, one, "INSERT INTO domt_t (id) VALUES (2)");
    ck_assert_int_eq(domt_desk_end_transaction(desk, one, false), 0);
    domt_desk_query_must_return(desk, desk->sql, "SELECT count(*) FROM domt_t", "1");
}

static void check_failed_transaction(domt_desk *desk)
{
    domus_sql one;

    ck_assert_int_eq(domt_desk_begin_transaction(desk, false, &one), 0);
    domt_desk_must_succeed(desk, one, "INSERT INTO domt_t (id) VALUES (3)");
    ck_assert_int_eq(domt_desk_run_text(desk, one, "INSERT INTO domt_t (id) VALUES (1)", NULL, 0),
                     -EEXIST);
    ck_assert_int_eq(domt_desk_run_text(desk, one, "SELECT 1", NULL, 0), -EINVAL);
    ck_assert_str_eq(domt_desk_sqlstate(desk), "25P02");
    /* the commit returns the error of the statement that failed the transaction */
    ck_assert_int_eq(domt_desk_end_transaction(desk, one, true), -EEXIST);
    domt_desk_query_must_return(desk, desk->sql, "SELECT count(*) FROM domt_t", "1");
}

static void check_read_only_transaction(domt_desk *desk)
{
    domus_sql one;

    ck_assert_int_eq(domt_desk_begin_transaction(desk, true, &one), 0);
    domt_desk_query_must_return(desk, one, "SELECT count(*) FROM domt_t", "1");
    ck_assert_int_eq(domt_desk_run_text(desk, one, "DELETE FROM domt_t", NULL, 0), -EROFS);
    ck_assert_str_eq(domt_desk_sqlstate(desk), "25006");
    ck_assert_int_eq(domt_desk_end_transaction(desk, one, false), 0);
}

/* Check that the database rolls back a transaction whose owner, an actor, has ended. */
static void check_transaction_of_ended_owner(domt_desk *desk)
{
    domt_desk guest;
    domus_sql one;

    domt_desk_open_guest(&guest, desk);
    ck_assert_int_eq(domt_desk_begin_transaction(&guest, false, &one), 0);
    domt_desk_must_succeed(&guest, one, "INSERT INTO domt_t (id) VALUES (4)");
    domt_desk_close(&guest);
    domt_desk_must_succeed(desk, desk->sql, "INSERT INTO domt_t (id) VALUES (5)");
    domt_desk_query_must_return(desk, desk->sql, "SELECT id FROM domt_t ORDER BY id", "1;5");
}

/* Check that the database rolls back a transaction which is not used for the idle time. On a busy
 * machine the insert in it may come too late and fail with -ESTALE. */
static void check_idle_transaction(domt_desk *desk)
{
    domus_sql one;

    ck_assert_int_eq(domt_desk_begin_transaction(desk, false, &one), 0);
    int error = domt_desk_run_text(desk, one, "INSERT INTO domt_t (id) VALUES (6)", NULL, 0);
    ck_assert(error == 0 || error == -ESTALE);
    wait_until_database_is_idle(desk);
    ck_assert_int_eq(domt_desk_run_text(desk, one, "SELECT 1", NULL, 0), -ESTALE);
    domt_desk_query_must_return(desk, desk->sql, "SELECT count(*) FROM domt_t", "0");
}

void domt_sql_check_transactions(const domus_sql_driver *driver, const char *url)
{
    domus_sql_options options = {.transaction_idle_ns = LONG};
    domt_desk desk;

    open_desk_and_make_table(&desk, driver, url, &options);
    check_commit_and_rollback(&desk);
    check_failed_transaction(&desk);
    check_read_only_transaction(&desk);
    check_transaction_of_ended_owner(&desk);
    drop_table_and_close_desk(&desk);
    options.transaction_idle_ns = 100 * MS;
    open_desk_and_make_table(&desk, driver, url, &options);
    check_idle_transaction(&desk);
    drop_table_and_close_desk(&desk);
}

/* --- pieces ----------------------------------------------------------------------------------- */

static const domus_sql_statement every_row = {.text = "SELECT id, word FROM domt_t ORDER BY id"};

/* Check that a cursor gives all rows in their order, and in several pieces. */
static void check_rows_of_cursor(domt_desk *desk, domus_sql sql, uint32_t count)
{
    domus_sql_cursor cursor;
    uint32_t seen = 0, pieces = 0;
    int64_t id;

    ck_assert_int_eq(domt_desk_open_cursor(desk, sql, &every_row, NULL, 0, &cursor), 0);
    for (bool last = false; !last; pieces++) {
        ck_assert_int_eq(domt_desk_fetch_rows(desk, cursor), 0);
        const domus_sql_result *result = &desk->payload.result;
        last = result->last;
        ck_assert(last || result->rows > 0);
        for (uint32_t row = 0; row < result->rows; row++) {
            ck_assert_int_eq(domus_sql_get_int(result, row, 0, &id), 0);
            ck_assert_int_eq(id, ++seen);
        }
    }
    ck_assert_uint_eq(seen, count);
    ck_assert_uint_gt(pieces, count == 0 ? 0 : 3);
    ck_assert_int_eq(domt_desk_fetch_rows(desk, cursor), -ESTALE);
}

static void insert_rows(domt_desk *desk, uint32_t count)
{
    static const domus_sql_statement put = {.text = "INSERT INTO domt_t VALUES ($1, $2)"};
    domus_sql one;

    ck_assert_int_eq(domt_desk_begin_transaction(desk, false, &one), 0);
    for (uint32_t i = 1; i <= count; i++)
        ck_assert_int_eq(
            domt_desk_run_statement(
                desk, one, &put,
                DOMUS_SQL_VALUES(domus_sql_int(i), domus_sql_text("twenty bytes of text"))),
            0);
    ck_assert_int_eq(domt_desk_end_transaction(desk, one, true), 0);
}

static void check_ended_cursors(domt_desk *desk)
{
    domus_sql_cursor cursor, others;
    domt_desk guest;

    /* A cursor that was closed gives no more rows. */
    ck_assert_int_eq(domt_desk_open_cursor(desk, desk->sql, &every_row, NULL, 0, &cursor), 0);
    ck_assert_int_eq(domt_desk_fetch_rows(desk, cursor), 0);
    domt_desk_close_cursor(desk, cursor);
    /* wait, because an ask to fetch rows may overtake the notice that closes the cursor */
    wait_until_database_is_idle(desk);
    ck_assert_int_eq(domt_desk_fetch_rows(desk, cursor), -ESTALE);
    /* A cursor ends with its owner. */
    domt_desk_open_guest(&guest, desk);
    ck_assert_int_eq(domt_desk_open_cursor(&guest, desk->sql, &every_row, NULL, 0, &others), 0);
    domt_desk_close(&guest);
    wait_until_database_is_idle(desk);
    ck_assert_int_eq(domt_desk_fetch_rows(desk, others), -ESTALE);
}

/* Check that a cursor from which nobody fetches ends after the idle time of transactions. */
static void check_idle_cursor(domt_desk *desk)
{
    domus_sql_cursor cursor;

    ck_assert_int_eq(domt_desk_open_cursor(desk, desk->sql, &every_row, NULL, 0, &cursor), 0);
    wait_until_database_is_idle(desk);
    ck_assert_int_eq(domt_desk_fetch_rows(desk, cursor), -ESTALE);
}

void domt_sql_check_cursors(const domus_sql_driver *driver, const char *url)
{
    domus_sql_options options = {.transaction_idle_ns = LONG, .piece_size = 1024};
    domus_sql one;
    domt_desk desk;

    open_desk_and_make_table(&desk, driver, url, &options);
    check_rows_of_cursor(&desk, desk.sql, 0);
    insert_rows(&desk, 500);
    check_rows_of_cursor(&desk, desk.sql, 500);
    ck_assert_int_eq(domt_desk_begin_transaction(&desk, false, &one), 0);
    check_rows_of_cursor(&desk, one, 500);
    ck_assert_int_eq(domt_desk_end_transaction(&desk, one, true), 0);
    check_ended_cursors(&desk);
    drop_table_and_close_desk(&desk);
    options.transaction_idle_ns = 100 * MS;
    open_desk_and_make_table(&desk, driver, url, &options);
    check_idle_cursor(&desk);
    drop_table_and_close_desk(&desk);
}

/* --- bounds ----------------------------------------------------------------------------------- */

static void check_result_limit(domt_desk *desk)
{
    static char text[4096];

    memset(text, 'x', sizeof text);
    ck_assert_int_eq(domt_desk_run_text(desk, desk->sql, "INSERT INTO domt_t VALUES (1, $1)",
                                        DOMUS_SQL_VALUES(domus_sql_text_of(text, sizeof text))),
                     0);
    ck_assert_int_eq(domt_desk_run_text(desk, desk->sql, "SELECT word FROM domt_t", NULL, 0),
                     -EFBIG);
    ck_assert_int_eq(domt_desk_run_text(desk, desk->sql, "UPDATE domt_t SET word = 'y'", NULL, 0),
                     0);
    domt_desk_query_must_return(desk, desk->sql, "SELECT word FROM domt_t", "y");
}

static void send_query(domt_desk *desk, const char *text, uint64_t number)
{
    domus_sql_request request;

    ck_assert_int_eq(domus_sql_request_make(desk->sql, NULL, text, NULL, 0, &request), 0);
    ck_assert_int_eq(domus_outsider_ask_add(desk->outsider, desk->sql.at, &domus_sql_query_type,
                                            &request, 0, number),
                     0);
}

/* Receive the next answer of the database. Returns its error, or 0. */
static int receive_answer(domt_desk *desk)
{
    domus_outside_message message;

    ck_assert_int_eq(domus_outside_receive(desk->outsider, NULL, LONG, &message), 0);
    /* An error comes as a message with a text, or, if the database gave no text, as a bare
     * failure. */
    if (message.type == &domus_sql_error_type)
        return ((const domus_sql_error *)message.payload)->error;
    return message.type == &domus_outsider_failed_type ? *(const int *)message.payload : 0;
}

/* Check that while a transaction holds the only connection, two queries (the limit of the queue)
 * wait for it, a third one is refused, and the two are answered when the transaction ends. */
static void check_queue_for_connection(domt_desk *desk)
{
    domus_sql one;

    ck_assert_int_eq(domt_desk_begin_transaction(desk, false, &one), 0);
    for (uint32_t i = 0; i < 3; i++)
        send_query(desk, "SELECT 1", i);
    ck_assert_int_eq(receive_answer(desk), -ENOBUFS);
    ck_assert_uint_eq(domt_desk_database_status(desk).waiting, 2);
    ck_assert_int_eq(domt_desk_end_transaction(desk, one, false), 0);
    ck_assert_int_eq(receive_answer(desk), 0);
    ck_assert_int_eq(receive_answer(desk), 0);
    ck_assert_uint_eq(domt_desk_database_status(desk).refused, 1);
}

/* Check that a query which has waited `wait_ns` for a connection is refused with -EBUSY. */
static void check_wait_for_connection(domt_desk *desk, uint64_t wait_ns)
{
    domus_sql one;

    /* begin may fail with -EBUSY at first, because the first connect to the database may take
     * long */
    while (domt_desk_begin_transaction(desk, false, &one) != 0)
        ck_assert_int_eq(desk->answer.error, -EBUSY);
    uint64_t begun = domt_monotonic_ns();
    ck_assert_int_eq(domt_desk_run_text(desk, desk->sql, "SELECT 1", NULL, 0), -EBUSY);
    ck_assert_uint_ge(domt_monotonic_ns() - begun, wait_ns);
    ck_assert_int_eq(domt_desk_end_transaction(desk, one, false), 0);
}

static void check_time_out_of_query(domt_desk *desk)
{
    static const domus_sql_statement endless = {
        .text = "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) "
                "SELECT count(*) FROM r",
        .timeout_ns = 50 * MS,
    };
    uint64_t begun = domt_monotonic_ns();

    ck_assert_int_eq(domt_desk_run_statement(desk, desk->sql, &endless, NULL, 0), -ETIMEDOUT);
    ck_assert_uint_ge(domt_monotonic_ns() - begun, 50 * MS);
    /* After the time-out of a query its connection can be used as before. */
    domt_desk_query_must_return(desk, desk->sql, "SELECT 7", "7");
    ck_assert_uint_eq(domt_desk_database_status(desk).timeouts, 1);
}

void domt_sql_check_limits(const domus_sql_driver *driver, const char *url)
{
    domus_sql_options options = {
        .connections_max = 1, .queue_max = 2, .wait_ns = LONG, .result_max = 2048};
    domt_desk desk;

    open_desk_and_make_table(&desk, driver, url, &options);
    check_result_limit(&desk);
    check_queue_for_connection(&desk);
    check_time_out_of_query(&desk);
    drop_table_and_close_desk(&desk);
    options.wait_ns = 100 * MS;
    domt_desk_open(&desk, driver, url, &options);
    check_wait_for_connection(&desk, options.wait_ns);
    domt_desk_close(&desk);
}
