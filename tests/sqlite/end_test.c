/* protocols/sqlite: the ends of queries, of databases and of the process: every ask is answered,
 * everything is freed, and a write that was answered is in the file. */
#include "tests/sqlite/crowd.h"
#include "tests/sqlite/place.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <domus/sqlite.h>
#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* protocols/sqlite: queries whose asker gives up do not go on, and when a database or its system
 * ends during work, every ask is answered and everything is freed. */

#define ENDLESS                                                                                    \
    "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r"

static const char *const urls[] = {"", "sqlite::memory:"};

static void wait_until_database_is_idle(domt_desk *desk)
{
    uint64_t begun = domt_monotonic_ns();

    while (domt_desk_database_status(desk).busy != 0) {
        ck_assert_uint_lt(domt_monotonic_ns() - begun, UINT64_C(10000000000));
        domt_sleep_ms(1);
    }
}

DOMT_TEST(query_of_ended_asker_does_not_go_on)
{
    domt_desk desk, guest;
    domt_place place;

    domt_place_make_directory_and_url(&place, "");
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, NULL);
    domt_desk_open_guest(&guest, &desk);
    domt_crowd_send_query_text(&guest, desk.sql, ENDLESS, 1);
    while (domt_desk_database_status(&desk).busy == 0)
        domt_sleep_ms(1);
    domt_sleep_ms(20);
    domt_desk_close(&guest);
    wait_until_database_is_idle(&desk);
    domt_desk_query_must_return(&desk, desk.sql, "SELECT 1", "1");
    domt_desk_close(&desk);
    domt_place_remove_directory(&place);
}

/* A begin whose asker has gone before its turn comes leaves no connection with a transaction. */
DOMT_TEST(begin_of_ended_asker_leaves_no_transaction)
{
    domus_sql_begin_options options = {.reads_only = false};
    domt_desk desk, guest;
    domus_sql one, other;
    domt_place place;

    domt_place_make_directory_and_url(&place, "");
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, NULL);
    for (uint32_t i = 0; i < 20; i++) {
        domt_desk_open_guest(&guest, &desk);
        ck_assert_int_eq(domt_desk_begin_transaction(&desk, false, &one), 0);
        ck_assert_int_eq(domus_outsider_ask_add(guest.outsider, desk.sql.at, &domus_sql_begin_type,
                                                &options, 0, 1),
                         0);
        if (i % 2 == 0)
            domt_sleep_ms(1);
        ck_assert_int_eq(domt_desk_end_transaction(&desk, one, true), 0);
        domt_desk_close(&guest);
        ck_assert_int_eq(domt_desk_begin_transaction(&desk, false, &other), 0);
        ck_assert_int_eq(domt_desk_end_transaction(&desk, other, true), 0);
    }
    domt_desk_close(&desk);
    domt_place_remove_directory(&place);
}

/* The idle time of a transaction is so long that only the end of its owner can end it. */
DOMT_TEST(transaction_of_ended_owner_is_rolled_back)
{
    domus_sql_options options = {.wait_ns = UINT64_C(3000000000),
                                 .transaction_idle_ns = UINT64_C(60000000000)};
    domt_desk desk, guest;
    domt_place place;
    domus_sql held;

    domt_place_make_directory_and_url(&place, "");
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, &options);
    domt_desk_must_succeed(&desk, desk.sql, "CREATE TABLE a (b)");
    domt_desk_open_guest(&guest, &desk);
    ck_assert_int_eq(domt_desk_begin_transaction(&guest, false, &held), 0);
    domt_desk_must_succeed(&guest, held, "INSERT INTO a VALUES (1)");
    domt_desk_close(&guest);
    domt_desk_must_succeed(&desk, desk.sql, "INSERT INTO a VALUES (2)");
    domt_desk_query_must_return(&desk, desk.sql, "SELECT b FROM a", "2");
    domt_desk_close(&desk);
    domt_place_remove_directory(&place);
}

static int stop_database_actor(domus_stack *stack, void *argument)
{
    return domus_stop(stack, *(const domus_address *)argument);
}

/* When a database is stopped, queries that wait and those that run are answered with an error,
 * soon. */
DOMT_TEST(stopped_database_answers_all_queries)
{
    domus_sql_options options = {.connections_max = 2};
    domt_place place;
    uint64_t number;
    domt_desk desk;
    domus_sql held;

    domt_place_make_directory_and_url(&place, "");
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, &options);
    domt_desk_must_succeed(&desk, desk.sql, "CREATE TABLE a (b)");
    ck_assert_int_eq(domt_desk_begin_transaction(&desk, false, &held), 0);
    for (uint32_t i = 0; i < 20; i++)
        domt_crowd_send_query_text(&desk, desk.sql,
                                   i % 2 == 0 ? ENDLESS : "INSERT INTO a VALUES (1)", i);
    domt_sleep_ms(20);
    uint64_t begun = domt_monotonic_ns();
    ck_assert_int_eq(domus_outsider_act(desk.outsider, stop_database_actor, &desk.sql.at), 0);
    for (uint32_t i = 0; i < 20; i++) {
        int error = domt_crowd_receive_answer(&desk, &number);
        ck_assert_msg(error == -ENOTCONN || error == -EPIPE || error == -ESTALE, "%d", error);
    }
    ck_assert_uint_lt(domt_monotonic_ns() - begun, UINT64_C(5000000000));
    ck_assert_int_eq(domt_desk_run_text(&desk, desk.sql, "SELECT 1", NULL, 0), -ESTALE);
    domt_desk_close(&desk);
    domt_place_remove_directory(&place);
}

DOMT_TEST(system_stop_during_work_frees_everything)
{
    static const domus_sql_statement every = {.text = "SELECT b FROM a"};
    domus_sql_cursor cursor;
    domt_place place;
    domt_desk desk;
    domus_sql held;

    for (size_t k = 0; k < sizeof urls / sizeof urls[0]; k++) {
        domt_place_make_directory_and_url(&place, "");
        domt_desk_open(&desk, &domus_sqlite_driver, k == 0 ? place.url : urls[k], NULL);
        domt_desk_must_succeed(&desk, desk.sql, "CREATE TABLE a (b)");
        domt_desk_must_succeed(&desk, desk.sql, "INSERT INTO a VALUES (1), (2)");
        ck_assert_int_eq(domt_desk_open_cursor(&desk, desk.sql, &every, NULL, 0, &cursor), 0);
        ck_assert_int_eq(domt_desk_begin_transaction(&desk, false, &held), 0);
        domt_desk_must_succeed(&desk, held, "DELETE FROM a");
        for (uint32_t i = 0; i < 8; i++)
            domt_crowd_send_query_text(&desk, desk.sql,
                                       i % 2 == 0 && k == 0 ? ENDLESS : "DELETE FROM a", i);
        domt_sleep_ms(20);
        domt_desk_close(&desk);
        domt_place_remove_directory(&place);
    }
}

/* --- kill ------------------------------------------------------------------------------------- */

/* protocols/sqlite: a write that was answered is in the file after kill -9 of the process, at
 * whatever time that comes, also if it was committed together with others. SQLite itself checks the
 * file. */

#define ASKERS 24u /* number of writes that are under way at a time */

/* Write rows without end, and report on a pipe which of them were answered. Every tenth write
 * conflicts. */
static void write_rows_until_killed(const char *url, int said, int64_t first)
{
    static const domus_sql_statement put = {.text = "INSERT INTO t (id, word) VALUES ($1, $2)"};
    domt_desk desk;
    int64_t next = first;
    uint64_t number;

    domt_desk_open(&desk, &domus_sqlite_driver, url, NULL);
    domt_desk_must_succeed(
        &desk, desk.sql,
        "CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, word TEXT NOT NULL)");
    for (uint32_t i = 0; i < ASKERS; i++, next++)
        domt_crowd_send_statement(&desk, &put,
                                  DOMUS_SQL_VALUES(domus_sql_int(next), domus_sql_text("a word")),
                                  (uint64_t)next);
    for (;; next++) {
        int error = domt_crowd_receive_answer(&desk, &number);
        if (error == 0 && write(said, &number, sizeof number) != sizeof number)
            _exit(1);
        domt_crowd_send_statement(
            &desk, &put,
            DOMUS_SQL_VALUES(domus_sql_int(next),
                             next % 10 == 0 ? domus_sql_null() : domus_sql_text("a word")),
            (uint64_t)next);
    }
}

/* Returns how many writes of rows were answered, and checks that each of these rows is in the
 * file. */
static uint32_t count_answered_writes_in_file(sqlite3 *judge, int said, int64_t *last)
{
    sqlite3_stmt *find;
    uint32_t count = 0;
    int64_t id;

    ck_assert_int_eq(sqlite3_prepare_v2(judge, "SELECT 1 FROM t WHERE id = ?1", -1, &find, NULL),
                     SQLITE_OK);
    while (read(said, &id, sizeof id) == sizeof id) {
        ck_assert_int_eq(sqlite3_bind_int64(find, 1, id), SQLITE_OK);
        ck_assert_msg(sqlite3_step(find) == SQLITE_ROW, "row %lld is lost", (long long)id);
        (void)sqlite3_reset(find);
        if (id > *last)
            *last = id;
        count++;
    }
    (void)sqlite3_finalize(find);
    return count;
}

static uint32_t run_round_with_kill(const domt_place *place, uint32_t ms, int64_t *last)
{
    sqlite3 *judge;
    int pipes[2];

    ck_assert_int_eq(pipe(pipes), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        (void)close(pipes[0]);
        write_rows_until_killed(place->url, pipes[1], *last + 1000);
        _exit(1);
    }
    (void)close(pipes[1]);
    domt_sleep_ms(ms);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_int_eq(sqlite3_open(place->path, &judge), SQLITE_OK);
    (void)sqlite3_exec(judge, "CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, word TEXT)",
                       NULL, NULL, NULL);
    uint32_t answered = count_answered_writes_in_file(judge, pipes[0], last);
    (void)sqlite3_close(judge);
    (void)close(pipes[0]);
    return answered;
}

DOMT_TEST(answered_writes_survive_a_kill)
{
    uint32_t answered = 0, rounds = domt_tenfold_if_tests_are_long(12);
    domt_place place;
    int64_t last = 0;

    domt_place_make_directory_and_url(&place, "");
    for (uint32_t i = 0; i < rounds; i++)
        answered += run_round_with_kill(&place, 60 + i * 37 % 200, &last);
    ck_assert_uint_gt(answered, rounds);
    domt_place_remove_directory(&place);
}

DOMT_SUITE(120)
