/* Transactions, rows in pieces, and bounds, as all databases have them; see the header. */
#include "tests/support/sql_cases.h"

#include "tests/support/service.h"
#include "tests/support/sql_desk.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define MS UINT64_C(1000000)

static void open_with(domt_desk *desk, const domus_sql_driver *driver, const char *url,
                      const domus_sql_options *options)
{
    domt_desk_open(desk, driver, url, options);
    (void)domt_desk_script(desk, desk->sql, "DROP TABLE IF EXISTS domt_t");
    domt_desk_must(desk, desk->sql, "CREATE TABLE domt_t (id INTEGER PRIMARY KEY, word TEXT)");
}

static void close_and_drop(domt_desk *desk)
{
    domt_desk_must(desk, desk->sql, "DROP TABLE domt_t");
    domt_desk_close(desk);
}

/* --- transactions ----------------------------------------------------------------------------- */

static void check_ends(domt_desk *desk)
{
    domus_sql one;

    ck_assert_int_eq(domt_desk_begin(desk, false, &one), 0);
    domt_desk_must(desk, one, "INSERT INTO domt_t (id) VALUES (1)");
    domt_desk_gives(desk, one, "SELECT count(*) FROM domt_t", "1");
    ck_assert_int_eq(domt_desk_end(desk, one, true), 0);
    domt_desk_gives(desk, desk->sql, "SELECT count(*) FROM domt_t", "1");
    ck_assert_int_eq(domt_desk_run(desk, one, "SELECT 1", NULL, 0), -ESTALE);
    ck_assert_int_eq(domt_desk_end(desk, one, true), -ESTALE);

    ck_assert_int_eq(domt_desk_begin(desk, false, &one), 0);
    domt_desk_must(desk, one, "INSERT INTO domt_t (id) VALUES (2)");
    ck_assert_int_eq(domt_desk_end(desk, one, false), 0);
    domt_desk_gives(desk, desk->sql, "SELECT count(*) FROM domt_t", "1");
}

static void check_failure(domt_desk *desk)
{
    domus_sql one;

    ck_assert_int_eq(domt_desk_begin(desk, false, &one), 0);
    domt_desk_must(desk, one, "INSERT INTO domt_t (id) VALUES (3)");
    ck_assert_int_eq(domt_desk_run(desk, one, "INSERT INTO domt_t (id) VALUES (1)", NULL, 0),
                     -EEXIST);
    ck_assert_int_eq(domt_desk_run(desk, one, "SELECT 1", NULL, 0), -EINVAL);
    ck_assert_str_eq(domt_desk_state(desk), "25P02");
    ck_assert_int_eq(domt_desk_end(desk, one, true), -EEXIST); /* the error of the statement */
    domt_desk_gives(desk, desk->sql, "SELECT count(*) FROM domt_t", "1");
}

static void check_reads_only(domt_desk *desk)
{
    domus_sql one;

    ck_assert_int_eq(domt_desk_begin(desk, true, &one), 0);
    domt_desk_gives(desk, one, "SELECT count(*) FROM domt_t", "1");
    ck_assert_int_eq(domt_desk_run(desk, one, "DELETE FROM domt_t", NULL, 0), -EROFS);
    ck_assert_str_eq(domt_desk_state(desk), "25006");
    ck_assert_int_eq(domt_desk_end(desk, one, false), 0);
}

/* The transaction of an actor that has ended, and one that nobody uses, are rolled back. */
static void check_lost(domt_desk *desk)
{
    domt_desk guest;
    domus_sql one, other;

    domt_desk_join(&guest, desk);
    ck_assert_int_eq(domt_desk_begin(&guest, false, &one), 0);
    domt_desk_must(&guest, one, "INSERT INTO domt_t (id) VALUES (4)");
    domt_desk_close(&guest);
    domt_desk_must(desk, desk->sql, "INSERT INTO domt_t (id) VALUES (5)");
    domt_desk_gives(desk, desk->sql, "SELECT id FROM domt_t ORDER BY id", "1;5");

    ck_assert_int_eq(domt_desk_begin(desk, false, &other), 0);
    domt_desk_must(desk, other, "INSERT INTO domt_t (id) VALUES (6)");
    domt_sleep_ms(700);
    ck_assert_int_eq(domt_desk_run(desk, other, "SELECT 1", NULL, 0), -ESTALE);
    domt_desk_gives(desk, desk->sql, "SELECT id FROM domt_t ORDER BY id", "1;5");
}

void domt_sql_transactions(const domus_sql_driver *driver, const char *url)
{
    domus_sql_options options = {.transaction_idle_ns = 300 * MS};
    domt_desk desk;

    open_with(&desk, driver, url, &options);
    check_ends(&desk);
    check_failure(&desk);
    check_reads_only(&desk);
    check_lost(&desk);
    close_and_drop(&desk);
}

/* --- pieces ----------------------------------------------------------------------------------- */

static const domus_sql_statement every_row = {.text = "SELECT id, word FROM domt_t ORDER BY id"};

/* Read all, and hold that they come in their order, and in pieces. */
static void check_order(domt_desk *desk, domus_sql sql, uint32_t count)
{
    domus_sql_cursor cursor;
    uint32_t seen = 0, pieces = 0;
    int64_t id;

    ck_assert_int_eq(domt_desk_rows(desk, sql, &every_row, NULL, 0, &cursor), 0);
    for (bool last = false; !last; pieces++) {
        ck_assert_int_eq(domt_desk_fetch(desk, cursor), 0);
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
    ck_assert_int_eq(domt_desk_fetch(desk, cursor), -ESTALE);
}

static void put_rows(domt_desk *desk, uint32_t count)
{
    static const domus_sql_statement put = {.text = "INSERT INTO domt_t VALUES ($1, $2)"};
    domus_sql one;

    ck_assert_int_eq(domt_desk_begin(desk, false, &one), 0);
    for (uint32_t i = 1; i <= count; i++)
        ck_assert_int_eq(domt_desk_query(desk, one, &put,
                                         DOMUS_SQL_VALUES(domus_sql_int(i),
                                                          domus_sql_text("twenty bytes of text"))),
                         0);
    ck_assert_int_eq(domt_desk_end(desk, one, true), 0);
}

static void check_left_rows(domt_desk *desk)
{
    domus_sql_cursor cursor, others;
    domt_desk guest;

    /* one that is closed */
    ck_assert_int_eq(domt_desk_rows(desk, desk->sql, &every_row, NULL, 0, &cursor), 0);
    ck_assert_int_eq(domt_desk_fetch(desk, cursor), 0);
    domt_desk_close_rows(desk, cursor);
    while (domt_desk_look(desk).busy != 0) /* asks may overtake the notice */
        domt_sleep_ms(1);
    ck_assert_int_eq(domt_desk_fetch(desk, cursor), -ESTALE);
    /* one whose owner ends, and one that is not read */
    domt_desk_join(&guest, desk);
    ck_assert_int_eq(domt_desk_rows(&guest, desk->sql, &every_row, NULL, 0, &others), 0);
    domt_desk_close(&guest);
    ck_assert_int_eq(domt_desk_rows(desk, desk->sql, &every_row, NULL, 0, &cursor), 0);
    domt_sleep_ms(700);
    ck_assert_int_eq(domt_desk_fetch(desk, others), -ESTALE);
    ck_assert_int_eq(domt_desk_fetch(desk, cursor), -ESTALE);
    ck_assert_uint_eq(domt_desk_look(desk).busy, 0);
}

void domt_sql_pieces(const domus_sql_driver *driver, const char *url)
{
    domus_sql_options options = {.transaction_idle_ns = 300 * MS, .piece_size = 1024};
    domus_sql one;
    domt_desk desk;

    open_with(&desk, driver, url, &options);
    check_order(&desk, desk.sql, 0);
    put_rows(&desk, 500);
    check_order(&desk, desk.sql, 500);
    ck_assert_int_eq(domt_desk_begin(&desk, false, &one), 0);
    check_order(&desk, one, 500);
    ck_assert_int_eq(domt_desk_end(&desk, one, true), 0);
    check_left_rows(&desk);
    close_and_drop(&desk);
}

/* --- bounds ----------------------------------------------------------------------------------- */

static void check_result_max(domt_desk *desk)
{
    static char text[4096];

    memset(text, 'x', sizeof text);
    ck_assert_int_eq(domt_desk_run(desk, desk->sql, "INSERT INTO domt_t VALUES (1, $1)",
                                   DOMUS_SQL_VALUES(domus_sql_text_of(text, sizeof text))),
                     0);
    ck_assert_int_eq(domt_desk_run(desk, desk->sql, "SELECT word FROM domt_t", NULL, 0), -EMSGSIZE);
    ck_assert_int_eq(domt_desk_run(desk, desk->sql, "UPDATE domt_t SET word = 'y'", NULL, 0), 0);
    domt_desk_gives(desk, desk->sql, "SELECT word FROM domt_t", "y");
}

/* With one connection that a transaction holds, as many queries wait as may. */
static void check_waiting(domt_desk *desk)
{
    domus_outside_message message;
    domus_sql_request request;
    domus_sql one;

    ck_assert_int_eq(domt_desk_begin(desk, false, &one), 0);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(domus_sql_request_make(desk->sql, NULL, "SELECT 1", NULL, 0, &request), 0);
        ck_assert_int_eq(domus_outsider_ask_add(desk->outsider, desk->sql.at, &domus_sql_query_type,
                                                &request, 0, i),
                         0);
    }
    /* The third is refused at once, and the first two when they have waited for too long. */
    static const int errors[] = {-ENOBUFS, -EBUSY, -EBUSY};
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(domus_outside_receive(desk->outsider, NULL, 10000 * MS, &message), 0);
        ck_assert_ptr_eq(message.type, &domus_outsider_failed_type);
        ck_assert_int_eq(*(const int *)message.payload, errors[i]);
    }
    ck_assert_int_eq(domt_desk_end(desk, one, false), 0);
    ck_assert_uint_eq(domt_desk_look(desk).refused, 3);
}

static void check_time(domt_desk *desk)
{
    static const domus_sql_statement endless = {
        .text = "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) "
                "SELECT count(*) FROM r",
        .timeout_ns = 50 * MS,
    };
    uint64_t begun = domt_monotonic_ns();

    ck_assert_int_eq(domt_desk_query(desk, desk->sql, &endless, NULL, 0), -ETIMEDOUT);
    uint64_t took = domt_monotonic_ns() - begun;
    ck_assert_uint_ge(took, 50 * MS);
    ck_assert_uint_lt(took, 5000 * MS);
    /* The connection is as it was before. */
    domt_desk_gives(desk, desk->sql, "SELECT 7", "7");
    ck_assert_uint_eq(domt_desk_look(desk).timeouts, 1);
}

void domt_sql_bounds(const domus_sql_driver *driver, const char *url)
{
    domus_sql_options options = {
        .connections_max = 1, .queue_max = 2, .wait_ns = 200 * MS, .result_max = 2048};
    domt_desk desk;

    open_with(&desk, driver, url, &options);
    check_result_max(&desk);
    check_waiting(&desk);
    check_time(&desk);
    close_and_drop(&desk);
}
