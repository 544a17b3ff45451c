/* protocols/sqlite: the tests that each kind of database has to pass, a database with one
 * connection, and a service with a database in a test kit. */
#include "tests/sqlite/place.h"
#include "tests/support/kits.h"
#include "tests/support/service.h"
#include "tests/support/sql_cases.h"
#include "tests/support/sql_desk.h"
#include "tests/support/suite.h"

#include <domus/sqlite.h>
#include <domus/testkit.h>
#include <errno.h>
#include <string.h>

/* protocols/sqlite: the tests that each kind of database has to pass, with a database in memory, in
 * a file, and in a file with one connection. */

typedef void run_cases(const domus_sql_driver *driver, const char *url);

static void run_common_tests_with_sqlite(run_cases *cases)
{
    domt_place place;

    cases(&domus_sqlite_driver, "sqlite::memory:");
    domt_place_make_directory_and_url(&place, "");
    cases(&domus_sqlite_driver, place.url);
    domt_place_remove_directory(&place);
}

DOMT_TEST(statements_return_results_and_errors)
{
    run_common_tests_with_sqlite(domt_sql_check_statements);
}

DOMT_TEST(values_are_read_back_unchanged)
{
    run_common_tests_with_sqlite(domt_sql_check_values_return);
}

DOMT_TEST(transactions_commit_or_roll_back_as_a_whole)
{
    run_common_tests_with_sqlite(domt_sql_check_transactions);
}

DOMT_TEST(late_ends_of_transactions_roll_back)
{
    run_common_tests_with_sqlite(domt_sql_check_ends_after_deadline);
}

DOMT_TEST(failures_of_library_fail_the_transaction)
{
    run_common_tests_with_sqlite(domt_sql_check_failures);
}

DOMT_TEST(rows_of_cursors_come_in_pieces)
{
    run_common_tests_with_sqlite(domt_sql_check_cursors);
}

DOMT_TEST(limits_of_database_hold)
{
    run_common_tests_with_sqlite(domt_sql_check_limits);
}

/* --- one -------------------------------------------------------------------------------------- */

/* protocols/sqlite: a database with a single connection. A cursor that was opened outside of a
 * transaction waits for the end of the transaction, so that it never shows uncommitted rows. */

#define ROWS 200
#define MS   UINT64_C(1000000)

static const domus_sql_statement every_word = {.text = "SELECT word FROM t ORDER BY id"};

static void open_database_and_fill_table(domt_desk *desk, const char *url, uint64_t wait_ns)
{
    const domus_sql_options options = {
        .connections_max = 1, .piece_size = 1024, .wait_ns = wait_ns};

    domt_desk_open(desk, &domus_sqlite_driver, url, &options);
    domt_desk_must_succeed(desk, desk->sql, "CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT)");
    domt_desk_must_succeed(
        desk, desk->sql,
        "INSERT INTO t WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r "
        "WHERE n < 200) SELECT n, 'clean' FROM r");
}

/* Count the rows of a piece whose word is not `word`. */
static uint32_t count_rows_with_other_word(const domus_sql_result *piece, const char *word)
{
    uint32_t others = 0;
    char text[16];

    for (uint32_t row = 0; row < piece->rows; row++) {
        ck_assert_int_eq(domus_sql_get_text(piece, row, 0, text, sizeof text), 0);
        others += strcmp(text, word) != 0;
    }
    return others;
}

/* Read the remaining rows of a cursor. Returns their number, and checks that each has this word. */
static uint32_t read_remaining_rows(domt_desk *desk, domus_sql_cursor cursor, const char *word)
{
    uint32_t rows = 0;

    for (bool last = false; !last;) {
        ck_assert_int_eq(domt_desk_fetch_rows(desk, cursor), 0);
        ck_assert_uint_eq(count_rows_with_other_word(&desk->payload.result, word), 0);
        rows += desk->payload.result.rows;
        last = desk->payload.result.last;
    }
    return rows;
}

/* Send a fetch of a cursor, and wait until the database counts it as waiting. */
static void send_fetch_that_waits(domt_desk *desk, domus_sql_cursor cursor)
{
    ck_assert_int_eq(
        domus_outsider_ask_add(desk->outsider, cursor.at, &domus_sql_fetch_type, &cursor, 0, 1), 0);
    while (domt_desk_database_status(desk).waiting != 1)
        domt_sleep_ms(1);
}

/* Receive the answer of the fetch that was waiting: a piece of rows, or the error. */
static int receive_piece_of_waiting_fetch(domt_desk *desk, const char *word, uint32_t *ret_rows)
{
    domus_outside_message message;

    ck_assert_int_eq(domus_outside_receive(desk->outsider, NULL, 10000 * MS, &message), 0);
    if (message.type == &domus_outsider_failed_type)
        return *(const int *)message.payload;
    ck_assert_ptr_eq(message.type, &domus_sql_result_type);
    ck_assert_uint_eq(count_rows_with_other_word(message.payload, word), 0);
    *ret_rows = ((const domus_sql_result *)message.payload)->rows;
    return 0;
}

static void check_cursor_waits_for_transaction(const char *url)
{
    domus_sql_cursor cursor, own;
    uint32_t first, second;
    domt_desk desk, guest;
    domus_sql one;

    open_database_and_fill_table(&desk, url, 60000 * MS);
    domt_desk_open_guest(&guest, &desk);
    ck_assert_int_eq(domt_desk_open_cursor(&desk, desk.sql, &every_word, NULL, 0, &cursor), 0);
    ck_assert_int_eq(domt_desk_fetch_rows(&desk, cursor), 0);
    ck_assert_uint_eq(count_rows_with_other_word(&desk.payload.result, "clean"), 0);
    first = desk.payload.result.rows;
    ck_assert_int_eq(domt_desk_begin_transaction(&guest, false, &one), 0);
    domt_desk_must_succeed(&guest, one, "UPDATE t SET word = 'dirty'");
    send_fetch_that_waits(&desk, cursor);
    /* Cursors of the transaction itself do not wait, and show its uncommitted rows. */
    ck_assert_int_eq(domt_desk_open_cursor(&guest, one, &every_word, NULL, 0, &own), 0);
    ck_assert_uint_eq(read_remaining_rows(&guest, own, "dirty"), ROWS);
    ck_assert_uint_eq(domt_desk_database_status(&desk).waiting, 1);
    ck_assert_int_eq(domt_desk_end_transaction(&guest, one, false), 0);
    ck_assert_int_eq(receive_piece_of_waiting_fetch(&desk, "clean", &second), 0);
    ck_assert_uint_eq(first + second + read_remaining_rows(&desk, cursor, "clean"), ROWS);
    domt_desk_close(&guest);
    domt_desk_close(&desk);
}

DOMT_TEST(cursor_shows_no_uncommitted_rows)
{
    domt_place place;

    check_cursor_waits_for_transaction("sqlite::memory:");
    domt_place_make_directory_and_url(&place, "");
    check_cursor_waits_for_transaction(place.url);
    domt_place_remove_directory(&place);
}

DOMT_TEST(timed_out_fetch_leaves_cursor_usable)
{
    domus_sql_cursor cursor;
    domt_desk desk;
    uint32_t rows;
    domus_sql one;

    open_database_and_fill_table(&desk, "sqlite::memory:", 100 * MS);
    ck_assert_int_eq(domt_desk_open_cursor(&desk, desk.sql, &every_word, NULL, 0, &cursor), 0);
    ck_assert_int_eq(domt_desk_begin_transaction(&desk, false, &one), 0);
    domt_desk_must_succeed(&desk, one, "UPDATE t SET word = 'dirty'");
    uint64_t begun = domt_monotonic_ns();
    send_fetch_that_waits(&desk, cursor);
    ck_assert_int_eq(receive_piece_of_waiting_fetch(&desk, "", &rows), -EBUSY);
    ck_assert_uint_ge(domt_monotonic_ns() - begun, 100 * MS);
    ck_assert_int_eq(domt_desk_end_transaction(&desk, one, false), 0);
    ck_assert_uint_eq(read_remaining_rows(&desk, cursor, "clean"), ROWS);
    domt_desk_close(&desk);
}

DOMT_TEST(cursor_with_waiting_fetch_may_be_closed)
{
    domus_sql_cursor cursor;
    domt_desk desk;
    uint32_t rows;
    domus_sql one;

    open_database_and_fill_table(&desk, "sqlite::memory:", 60000 * MS);
    ck_assert_int_eq(domt_desk_open_cursor(&desk, desk.sql, &every_word, NULL, 0, &cursor), 0);
    ck_assert_int_eq(domt_desk_begin_transaction(&desk, false, &one), 0);
    send_fetch_that_waits(&desk, cursor);
    domt_desk_close_cursor(&desk, cursor);
    ck_assert_int_eq(receive_piece_of_waiting_fetch(&desk, "", &rows), -ESTALE);
    domt_desk_query_must_return(&desk, one, "SELECT count(*) FROM t", "200");
    ck_assert_int_eq(domt_desk_end_transaction(&desk, one, true), 0);
    ck_assert_uint_eq(domt_desk_database_status(&desk).waiting, 0);
    domt_desk_close(&desk);
}

DOMT_TEST(queue_max_has_an_upper_limit)
{
    static const domus_sql_driver *const drivers[] = {&domus_sqlite_driver, NULL};
    domus_sql_options options = {.drivers = drivers, .queue_max = DOMUS_SQLITE_QUEUE_MAX};
    char words[128];

    ck_assert_int_eq(domus_sql_check("sqlite::memory:", &options, words, sizeof words), 0);
    options.queue_max++;
    ck_assert_int_eq(domus_sql_check("sqlite::memory:", &options, words, sizeof words), -EINVAL);
    ck_assert_str_eq(words, "queue_max: 16385 is more than 16384, the most with SQLite");
}

/* A query's result wakes the conversation that answers the query, and must count neither as a
 * cancel nor as a failure. */
DOMT_TEST(query_counts_neither_as_cancel_nor_failure)
{
    domus_profile all = {0};
    domt_desk desk;

    open_database_and_fill_table(&desk, "sqlite::memory:", 0);
    for (int i = 0; i < 20; i++)
        domt_desk_must_succeed(&desk, desk.sql, "INSERT INTO t (word) VALUES ('more')");
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

/* --- kit -------------------------------------------------------------------------------------- */

/* protocols/sqlite in a test kit: a service with a database in memory is tested with its real
 * statements, in virtual time. */

#define SECOND UINT64_C(1000000000)

/* --- a service: a list of things to do -------------------------------------------------------- */

struct todo {
    domus_sql database;
};

static const domus_type add_type = {.name = "add", .size = sizeof(int64_t)};
static const domus_type count_type = {.name = "count"};
static const domus_type number_type = {.name = "number", .size = sizeof(int64_t)};

static const domus_sql_migration steps[] = {
    {.name = "todo", .text = "CREATE TABLE todo (id INTEGER PRIMARY KEY, n INTEGER UNIQUE)"},
    {.name = "done", .text = "ALTER TABLE todo ADD COLUMN done INTEGER NOT NULL DEFAULT 0"},
    {.name = NULL},
};
static const domus_sql_statement put = {.text = "INSERT INTO todo (n) VALUES ($1) RETURNING id"};
static const domus_sql_statement count = {.text = "SELECT count(*) FROM todo WHERE done = $1"};

static int resume_when_migrated(domus_stack *stack, void *self, const domus_answer *answer)
{
    const domus_sql_result *result;
    int error = domus_sql_result_of(answer, &result);

    ck_assert_int_eq(error, 0);
    ck_assert_uint_eq(result->affected, 2);
    return 0;
}

static int mount_todo_service(domus_stack *stack, void *self)
{
    static const domus_sql_driver *const drivers[] = {&domus_sqlite_driver, NULL};
    const domus_sql_options options = {.drivers = drivers, .transaction_idle_ns = 5 * SECOND};
    struct todo *todo = self;
    int error = domus_sql_open(stack, "sqlite::memory:", &options, &todo->database);

    return error != 0 ? error
                      : domus_sql_migrate(stack, todo->database, steps, resume_when_migrated);
}

static int resume_and_answer_with_number(domus_stack *stack, void *self, const domus_answer *answer)
{
    const domus_sql_result *result;
    int error = domus_sql_result_of(answer, &result);
    int64_t number = 0;

    if (error == 0)
        error = domus_sql_get_int(result, 0, 0, &number);
    return error != 0 ? error : domus_reply(stack, &number_type, &number);
}

static int handle_add_of_item(domus_stack *stack, void *self, const void *payload)
{
    return domus_sql_query(stack, ((struct todo *)self)->database, &put,
                           DOMUS_SQL_VALUES(domus_sql_int(*(const int64_t *)payload)),
                           resume_and_answer_with_number);
}

static int handle_count_of_items(domus_stack *stack, void *self, const void *payload)
{
    return domus_sql_query(stack, ((struct todo *)self)->database, &count,
                           DOMUS_SQL_VALUES(domus_sql_bool(false)), resume_and_answer_with_number);
}

static const domus_behaviour todo_behaviour = {
    .name = "todo",
    .state_size = sizeof(struct todo),
    .on = (const domus_on[]){{&add_type, handle_add_of_item, 0},
                             {&count_type, handle_count_of_items, 0},
                             {NULL, NULL, 0}},
    .on_mount = mount_todo_service,
};

/* --- tests ------------------------------------------------------------------------------------ */

static int run_service_in_kit(uint64_t seed, void *context)
{
    domus_testkit *kit = domt_kit_new(NULL, seed);
    domus_address todo;
    domus_probe *probe;
    int64_t number, seven = 7;

    ck_assert_int_eq(domus_outside_spawn(domus_testkit_system(kit), &todo_behaviour, NULL, &todo),
                     0);
    ck_assert_int_eq(domus_probe_new(kit, &probe), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    for (int64_t i = 1; i <= 3; i++) {
        ck_assert_int_eq(domus_probe_ask(probe, todo, &add_type, &i), 0);
        ck_assert_int_eq(domus_probe_expect(probe, &number_type, SECOND, &number), 0);
        ck_assert_int_eq(number, i);
    }
    /* Two items with the same number are added, of which the second one conflicts. */
    ck_assert_int_eq(domus_probe_ask(probe, todo, &add_type, &seven), 0);
    ck_assert_int_eq(domus_probe_expect(probe, &number_type, SECOND, &number), 0);
    ck_assert_int_eq(domus_probe_ask(probe, todo, &add_type, &seven), 0);
    ck_assert_int_eq(domus_probe_expect_error(probe, -EEXIST, SECOND), 0);
    ck_assert_int_eq(domus_probe_ask(probe, todo, &count_type, NULL), 0);
    ck_assert_int_eq(domus_probe_expect(probe, &number_type, SECOND, &number), 0);
    ck_assert_int_eq(number, 4);
    ck_assert_int_eq(domus_testkit_stop(kit), 0);
    domus_testkit_free(kit);
    return 0;
}

DOMT_TEST(service_with_database_runs_in_test_kit)
{
    uint64_t seed;

    ck_assert_int_eq(
        domus_testkit_sweep(1, domt_tenfold_if_tests_are_long(50), run_service_in_kit, NULL, &seed),
        0);
}

/* A transaction that is not ended is over at its time-out, which is virtual time in a kit. */
DOMT_TEST(transaction_timeout_is_virtual_in_kit)
{
    static const domus_sql_driver *const drivers[] = {&domus_sqlite_driver, NULL};
    const domus_sql_options options = {
        .drivers = drivers, .wait_ns = 60 * SECOND, .transaction_idle_ns = 3600 * SECOND};
    domus_sql_begin_options begin = {.reads_only = false};
    domus_testkit *kit = domt_kit_new(NULL, 1);
    domus_sql database, one;
    domus_probe *probe;

    ck_assert_int_eq(
        domus_outside_sql_open(domus_testkit_system(kit), "sqlite::memory:", &options, &database),
        0);
    ck_assert_int_eq(domus_probe_new(kit, &probe), 0);
    ck_assert_int_eq(domus_probe_ask(probe, database.at, &domus_sql_begin_type, &begin), 0);
    ck_assert_int_eq(domus_probe_expect(probe, &domus_sql_begun_type, SECOND, &one), 0);
    ck_assert_int_eq(domus_probe_ask(probe, database.at, &domus_sql_begin_type, &begin), 0);
    ck_assert_int_eq(domus_probe_expect_nothing(probe, 59 * SECOND), 0);
    ck_assert_int_eq(domus_probe_expect_error(probe, -EBUSY, 2 * SECOND), 0);
    ck_assert_int_eq(domus_testkit_advance(kit, 3601 * SECOND), 0);
    ck_assert_int_eq(domus_probe_ask(probe, database.at, &domus_sql_begin_type, &begin), 0);
    ck_assert_int_eq(domus_probe_expect(probe, &domus_sql_begun_type, SECOND, &one), 0);
    domus_testkit_free(kit);
}

/* A database in a file needs helper threads, which a kit does not have. */
DOMT_TEST(database_file_in_test_kit_is_refused)
{
    static const domus_sql_driver *const drivers[] = {&domus_sqlite_driver, NULL};
    const domus_sql_options options = {.drivers = drivers};
    domus_sql_begin_options begin = {.reads_only = false};
    domus_testkit *kit = domt_kit_new(NULL, 1);
    domus_sql database;
    domus_probe *probe;

    ck_assert_int_eq(domus_outside_sql_open(domus_testkit_system(kit), "sqlite:/tmp/never.db",
                                            &options, &database),
                     0);
    ck_assert_int_eq(domus_probe_new(kit, &probe), 0);
    ck_assert_int_eq(domus_probe_ask(probe, database.at, &domus_sql_begin_type, &begin), 0);
    ck_assert_int_eq(domus_probe_expect_error(probe, -EOPNOTSUPP, SECOND), 0);
    domus_testkit_free(kit);
}

DOMT_SUITE(120)
