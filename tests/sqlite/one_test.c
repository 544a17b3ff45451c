/* protocols/sqlite: a database with a single connection. A cursor that was opened outside of a
 * transaction waits for the end of the transaction, so that it never shows uncommitted rows. */
#include "tests/sqlite/place.h"
#include "tests/support/service.h"
#include "tests/support/sql_desk.h"
#include "tests/support/suite.h"

#include <domus/sqlite.h>

#include <errno.h>
#include <string.h>

#define ROWS 200
#define MS   UINT64_C(1000000)

static const domus_sql_statement every_word = {.text = "SELECT word FROM t ORDER BY id"};

static void open_and_fill(domt_desk *desk, const char *url, uint64_t wait_ns)
{
    const domus_sql_options options = {
        .connections_max = 1, .piece_size = 1024, .wait_ns = wait_ns};

    domt_desk_open(desk, &domus_sqlite_driver, url, &options);
    domt_desk_must(desk, desk->sql, "CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT)");
    domt_desk_must(desk, desk->sql,
                   "INSERT INTO t WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r "
                   "WHERE n < 200) SELECT n, 'clean' FROM r");
}

/* Count the rows of a piece that have another word. */
static uint32_t count_others(const domus_sql_result *piece, const char *word)
{
    uint32_t others = 0;
    char text[16];

    for (uint32_t row = 0; row < piece->rows; row++) {
        ck_assert_int_eq(domus_sql_get_text(piece, row, 0, text, sizeof text), 0);
        others += strcmp(text, word) != 0;
    }
    return others;
}

/* Read the remaining rows. Returns their number, and checks that each has this word. */
static uint32_t read_rest(domt_desk *desk, domus_sql_cursor cursor, const char *word)
{
    uint32_t rows = 0;

    for (bool last = false; !last;) {
        ck_assert_int_eq(domt_desk_fetch(desk, cursor), 0);
        ck_assert_uint_eq(count_others(&desk->payload.result, word), 0);
        rows += desk->payload.result.rows;
        last = desk->payload.result.last;
    }
    return rows;
}

/* Send a fetch, and wait until the fetch itself waits. */
static void fetch_that_waits(domt_desk *desk, domus_sql_cursor cursor)
{
    ck_assert_int_eq(
        domus_outsider_ask_add(desk->outsider, cursor.at, &domus_sql_fetch_type, &cursor, 0, 1), 0);
    while (domt_desk_look(desk).waiting != 1)
        domt_sleep_ms(1);
}

/* Receive the piece, or the error, of the fetch that was waiting. */
static int receive_piece(domt_desk *desk, const char *word, uint32_t *ret_rows)
{
    domus_outside_message message;

    ck_assert_int_eq(domus_outside_receive(desk->outsider, NULL, 10000 * MS, &message), 0);
    if (message.type == &domus_outsider_failed_type)
        return *(const int *)message.payload;
    ck_assert_ptr_eq(message.type, &domus_sql_result_type);
    ck_assert_uint_eq(count_others(message.payload, word), 0);
    *ret_rows = ((const domus_sql_result *)message.payload)->rows;
    return 0;
}

static void check_isolation(const char *url)
{
    domus_sql_cursor cursor, own;
    uint32_t first, second;
    domt_desk desk, guest;
    domus_sql one;

    open_and_fill(&desk, url, 60000 * MS);
    domt_desk_join(&guest, &desk);
    ck_assert_int_eq(domt_desk_rows(&desk, desk.sql, &every_word, NULL, 0, &cursor), 0);
    ck_assert_int_eq(domt_desk_fetch(&desk, cursor), 0);
    ck_assert_uint_eq(count_others(&desk.payload.result, "clean"), 0);
    first = desk.payload.result.rows;
    ck_assert_int_eq(domt_desk_begin(&guest, false, &one), 0);
    domt_desk_must(&guest, one, "UPDATE t SET word = 'dirty'");
    fetch_that_waits(&desk, cursor);
    /* Cursors of the transaction do not wait, and show uncommitted rows. */
    ck_assert_int_eq(domt_desk_rows(&guest, one, &every_word, NULL, 0, &own), 0);
    ck_assert_uint_eq(read_rest(&guest, own, "dirty"), ROWS);
    ck_assert_uint_eq(domt_desk_look(&desk).waiting, 1);
    ck_assert_int_eq(domt_desk_end(&guest, one, false), 0);
    ck_assert_int_eq(receive_piece(&desk, "clean", &second), 0);
    ck_assert_uint_eq(first + second + read_rest(&desk, cursor, "clean"), ROWS);
    domt_desk_close(&guest);
    domt_desk_close(&desk);
}

DOMT_TEST(rows_show_nothing_that_is_not_committed)
{
    domt_place place;

    check_isolation("sqlite::memory:");
    domt_place_make(&place, "");
    check_isolation(place.url);
    domt_place_remove(&place);
}

DOMT_TEST(rows_that_have_waited_for_too_long_go_on_later)
{
    domus_sql_cursor cursor;
    domt_desk desk;
    uint32_t rows;
    domus_sql one;

    open_and_fill(&desk, "sqlite::memory:", 100 * MS);
    ck_assert_int_eq(domt_desk_rows(&desk, desk.sql, &every_word, NULL, 0, &cursor), 0);
    ck_assert_int_eq(domt_desk_begin(&desk, false, &one), 0);
    domt_desk_must(&desk, one, "UPDATE t SET word = 'dirty'");
    uint64_t begun = domt_monotonic_ns();
    fetch_that_waits(&desk, cursor);
    ck_assert_int_eq(receive_piece(&desk, "", &rows), -EBUSY);
    ck_assert_uint_ge(domt_monotonic_ns() - begun, 100 * MS);
    ck_assert_int_eq(domt_desk_end(&desk, one, false), 0);
    ck_assert_uint_eq(read_rest(&desk, cursor, "clean"), ROWS);
    domt_desk_close(&desk);
}

DOMT_TEST(rows_that_wait_may_be_closed)
{
    domus_sql_cursor cursor;
    domt_desk desk;
    uint32_t rows;
    domus_sql one;

    open_and_fill(&desk, "sqlite::memory:", 60000 * MS);
    ck_assert_int_eq(domt_desk_rows(&desk, desk.sql, &every_word, NULL, 0, &cursor), 0);
    ck_assert_int_eq(domt_desk_begin(&desk, false, &one), 0);
    fetch_that_waits(&desk, cursor);
    domt_desk_close_rows(&desk, cursor);
    ck_assert_int_eq(receive_piece(&desk, "", &rows), -ESTALE);
    domt_desk_gives(&desk, one, "SELECT count(*) FROM t", "200");
    ck_assert_int_eq(domt_desk_end(&desk, one, true), 0);
    ck_assert_uint_eq(domt_desk_look(&desk).waiting, 0);
    domt_desk_close(&desk);
}

DOMT_TEST(queue_is_bounded_by_what_an_actor_holds)
{
    static const domus_sql_driver *const drivers[] = {&domus_sqlite_driver, NULL};
    domus_sql_options options = {.drivers = drivers, .queue_max = DOMUS_SQLITE_QUEUE_MAX};
    char words[128];

    ck_assert_int_eq(domus_sql_check("sqlite::memory:", &options, words, sizeof words), 0);
    options.queue_max++;
    ck_assert_int_eq(domus_sql_check("sqlite::memory:", &options, words, sizeof words), -EINVAL);
    ck_assert_str_eq(words, "queue_max: 16385 is more than 16384, the most with SQLite");
}

/* The result of a query wakes the conversation that answers it, and is counted neither as a cancel
 * nor as a failure. */
DOMT_TEST(a_query_counts_as_no_cancel_and_no_failure)
{
    domus_profile all = {0};
    domt_desk desk;

    open_and_fill(&desk, "sqlite::memory:", 0);
    for (int i = 0; i < 20; i++)
        domt_desk_must(&desk, desk.sql, "INSERT INTO t (word) VALUES ('more')");
    for (uint32_t i = 0; i < domus_system_threads(desk.system); i++) {
        domus_profile profile;
        ck_assert_int_eq(domus_system_profile(desk.system, i, &profile), 0);
        all.cancels += profile.cancels;
        all.exceptions += profile.exceptions;
        all.replies += profile.replies;
    }
    ck_assert_uint_eq(all.cancels, 0);
    ck_assert_uint_eq(all.exceptions, 0);
    ck_assert_uint_ge(all.replies, 20);
    domt_desk_close(&desk);
}

DOMT_SUITE(60)
