/* protocols/sqlite: a write that was answered is in the file after kill -9, at whatever time that
 * comes, also if it was committed together with others. SQLite itself checks the file. */
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

#define ASKERS 24u /* number of writes under way at a time */

/* Write rows without end, and report on a pipe which ones were answered. Every tenth write
 * conflicts. */
static void write_rows(const char *url, int said, int64_t first)
{
    static const domus_sql_statement put = {.text = "INSERT INTO t (id, word) VALUES ($1, $2)"};
    domt_desk desk;
    int64_t next = first;
    uint64_t number;

    domt_desk_open(&desk, &domus_sqlite_driver, url, NULL);
    domt_desk_must(&desk, desk.sql,
                   "CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, word TEXT NOT NULL)");
    for (uint32_t i = 0; i < ASKERS; i++, next++)
        domt_crowd_send_statement(&desk, &put,
                                  DOMUS_SQL_VALUES(domus_sql_int(next), domus_sql_text("a word")),
                                  (uint64_t)next);
    for (;; next++) {
        int error = domt_crowd_receive(&desk, &number);
        if (error == 0 && write(said, &number, sizeof number) != sizeof number)
            _exit(1);
        domt_crowd_send_statement(
            &desk, &put,
            DOMUS_SQL_VALUES(domus_sql_int(next),
                             next % 10 == 0 ? domus_sql_null() : domus_sql_text("a word")),
            (uint64_t)next);
    }
}

/* Returns how many rows were answered, and checks that each of them is in the file. */
static uint32_t count_answered(sqlite3 *judge, int said, int64_t *last)
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

static uint32_t run_round(const domt_place *place, uint32_t ms, int64_t *last)
{
    sqlite3 *judge;
    int pipes[2];

    ck_assert_int_eq(pipe(pipes), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        (void)close(pipes[0]);
        write_rows(place->url, pipes[1], *last + 1000);
        _exit(1);
    }
    (void)close(pipes[1]);
    domt_sleep_ms(ms);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_int_eq(sqlite3_open(place->path, &judge), SQLITE_OK);
    (void)sqlite3_exec(judge, "CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, word TEXT)",
                       NULL, NULL, NULL);
    uint32_t answered = count_answered(judge, pipes[0], last);
    (void)sqlite3_close(judge);
    (void)close(pipes[0]);
    return answered;
}

DOMT_TEST(answered_rows_survive_a_kill)
{
    uint32_t answered = 0, rounds = domt_more_if_long(12);
    domt_place place;
    int64_t last = 0;

    domt_place_make(&place, "");
    for (uint32_t i = 0; i < rounds; i++)
        answered += run_round(&place, 60 + i * 37 % 200, &last);
    ck_assert_uint_gt(answered, rounds);
    domt_place_remove(&place);
}

DOMT_SUITE(120)
