/* protocols/sqlite/group.c: writes that are committed together fail separately, and no write is
 * executed twice or lost when another one ends the transaction. */
#include "tests/sqlite/crowd.h"
#include "tests/sqlite/place.h"
#include "tests/support/suite.h"

#include <domus/sqlite.h>

#include <errno.h>
#include <stdio.h>

#define WRITES 40u
#define BAD    17u /* index of the write that fails */

/* A write that fails among others, and its error. */
static const struct group_case {
    const char *bad;
    int error;
} cases[] = {
    {"INSERT INTO t (id) VALUES (-1)", -EEXIST},
    {"INSERT OR ROLLBACK INTO t (id) VALUES (-1)", -EEXIST},
    {"INSERT INTO t (id) VALUES ('x')", -EINVAL},
    {"INSERT INTO nothing (id) VALUES (1)", -EINVAL},
    /* a deferred constraint, which fails at the commit */
    {"INSERT INTO child (id, parent) VALUES (1, 12345)", -EPERM},
};

#define CASES (sizeof cases / sizeof cases[0])

static void prepare_tables(domt_desk *desk)
{
    domt_desk_must(desk, desk->sql, "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)");
    domt_desk_must(desk, desk->sql, "INSERT INTO t (id) VALUES (-1)");
    domt_desk_must(desk, desk->sql,
                   "CREATE TABLE child (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES t (id) "
                   "DEFERRABLE INITIALLY DEFERRED)");
    domt_desk_must(desk, desk->sql, "CREATE TABLE counted (n INTEGER)");
    domt_desk_must(desk, desk->sql, "INSERT INTO counted VALUES (0)");
}

/* Send writes while a transaction holds the connection; the writes wait, and then are one group. */
static void run_group(domt_desk *desk, const char *bad, int error)
{
    char text[128], expected[32];
    domus_sql holder;
    uint64_t number;

    domt_desk_must(desk, desk->sql, "UPDATE counted SET n = 0");
    ck_assert_int_eq(domt_desk_begin(desk, false, &holder), 0);
    for (uint32_t i = 0; i < WRITES; i++) {
        (void)snprintf(text, sizeof text, "%s", i == BAD ? bad : "UPDATE counted SET n = n + 1");
        domt_crowd_send(desk, desk->sql, text, i);
    }
    ck_assert_int_eq(domt_desk_end(desk, holder, true), 0);
    for (uint32_t i = 0; i < WRITES; i++) {
        int got = domt_crowd_receive(desk, &number);
        ck_assert_msg(got == (number == BAD ? error : 0), "%s: %d of %u", bad, got,
                      (unsigned)number);
    }
    (void)snprintf(expected, sizeof expected, "%u", WRITES - 1);
    domt_desk_gives(desk, desk->sql, "SELECT n FROM counted", expected);
}

DOMT_TEST(write_that_fails_fails_alone)
{
    domt_place place;
    domt_desk desk;

    domt_place_make(&place, "");
    for (uint32_t k = 0; k < 2; k++) {
        domt_desk_open(&desk, &domus_sqlite_driver, k == 0 ? place.url : "sqlite::memory:", NULL);
        prepare_tables(&desk);
        for (size_t i = 0; i < CASES; i++)
            run_group(&desk, cases[i].bad, cases[i].error);
        domt_desk_close(&desk);
    }
    domt_place_remove(&place);
}

/* The time-out of one write rolls back the whole transaction of SQLite. */
DOMT_TEST(write_that_takes_too_long_is_the_only_one_that_fails)
{
    domus_sql_options options = {.timeout_ns = UINT64_C(200000000)};
    domt_place place;
    domt_desk desk;

    domt_place_make(&place, "");
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, &options);
    prepare_tables(&desk);
    run_group(&desk,
              "INSERT INTO t (id) WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r "
              "WHERE n < 1e12) SELECT max(n) + 100 FROM r",
              -ETIMEDOUT);
    domt_desk_gives(&desk, desk.sql, "SELECT count(*) FROM t", "1");
    domt_desk_close(&desk);
    domt_place_remove(&place);
}

/* Reads that wait for the writing connection see complete commits only. */
DOMT_TEST(reads_beside_writes_see_whole_commits)
{
    domt_place place;
    uint64_t number;
    domt_desk desk;

    domt_place_make(&place, "");
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, NULL);
    domt_desk_must(&desk, desk.sql, "CREATE TABLE pair (a INTEGER, b INTEGER)");
    domt_desk_must(&desk, desk.sql, "INSERT INTO pair VALUES (0, 0)");
    for (uint32_t i = 0; i < 400; i++)
        domt_crowd_send(&desk, desk.sql,
                        i % 2 == 0 ? "UPDATE pair SET a = a + 1, b = b + 1"
                                   : "SELECT 1 / (a = b) FROM pair",
                        i);
    for (uint32_t i = 0; i < 400; i++)
        ck_assert_int_eq(domt_crowd_receive(&desk, &number), 0);
    domt_desk_gives(&desk, desk.sql, "SELECT a, b FROM pair", "200|200");
    domt_desk_close(&desk);
    domt_place_remove(&place);
}

DOMT_SUITE(60)
