/* protocols/sqlite: queries whose asker gives up do not go on, and when a database or its system
 * ends during work, every ask is answered and everything is freed. */
#include "tests/sqlite/crowd.h"
#include "tests/sqlite/place.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <domus/sqlite.h>

#include <errno.h>

#define ENDLESS                                                                                    \
    "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r"

static const char *const urls[] = {"", "sqlite::memory:"};

static void wait_until_idle(domt_desk *desk)
{
    uint64_t begun = domt_monotonic_ns();

    while (domt_desk_look(desk).busy != 0) {
        ck_assert_uint_lt(domt_monotonic_ns() - begun, UINT64_C(10000000000));
        domt_sleep_ms(1);
    }
}

DOMT_TEST(query_of_an_asker_that_is_gone_ends)
{
    domt_desk desk, guest;
    domt_place place;

    domt_place_make(&place, "");
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, NULL);
    domt_desk_join(&guest, &desk);
    domt_crowd_send(&guest, desk.sql, ENDLESS, 1);
    while (domt_desk_look(&desk).busy == 0)
        domt_sleep_ms(1);
    domt_sleep_ms(20);
    domt_desk_close(&guest);
    wait_until_idle(&desk);
    domt_desk_gives(&desk, desk.sql, "SELECT 1", "1");
    domt_desk_close(&desk);
    domt_place_remove(&place);
}

/* A begin whose asker has gone before its turn holds no connection. */
DOMT_TEST(transaction_of_an_asker_that_is_gone_is_rolled_back)
{
    domus_sql_begin_options options = {.reads_only = false};
    domt_desk desk, guest;
    domus_sql one, other;
    domt_place place;

    domt_place_make(&place, "");
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, NULL);
    for (uint32_t i = 0; i < 20; i++) {
        domt_desk_join(&guest, &desk);
        ck_assert_int_eq(domt_desk_begin(&desk, false, &one), 0);
        ck_assert_int_eq(domus_outsider_ask_add(guest.outsider, desk.sql.at, &domus_sql_begin_type,
                                                &options, 0, 1),
                         0);
        if (i % 2 == 0)
            domt_sleep_ms(1);
        ck_assert_int_eq(domt_desk_end(&desk, one, true), 0);
        domt_desk_close(&guest);
        ck_assert_int_eq(domt_desk_begin(&desk, false, &other), 0);
        ck_assert_int_eq(domt_desk_end(&desk, other, true), 0);
    }
    domt_desk_close(&desk);
    domt_place_remove(&place);
}

/* The idle time is so long that only the end of the owner can end the transaction. */
DOMT_TEST(transaction_of_an_owner_that_has_ended_is_rolled_back)
{
    domus_sql_options options = {.wait_ns = UINT64_C(3000000000),
                                 .transaction_idle_ns = UINT64_C(60000000000)};
    domt_desk desk, guest;
    domt_place place;
    domus_sql held;

    domt_place_make(&place, "");
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, &options);
    domt_desk_must(&desk, desk.sql, "CREATE TABLE a (b)");
    domt_desk_join(&guest, &desk);
    ck_assert_int_eq(domt_desk_begin(&guest, false, &held), 0);
    domt_desk_must(&guest, held, "INSERT INTO a VALUES (1)");
    domt_desk_close(&guest);
    domt_desk_must(&desk, desk.sql, "INSERT INTO a VALUES (2)");
    domt_desk_gives(&desk, desk.sql, "SELECT b FROM a", "2");
    domt_desk_close(&desk);
    domt_place_remove(&place);
}

static int stop_database(domus_stack *stack, void *argument)
{
    return domus_stop(stack, *(const domus_address *)argument);
}

/* Queries that wait and those that run are answered with an error, soon. */
DOMT_TEST(database_that_is_stopped_answers_all)
{
    domus_sql_options options = {.connections_max = 2};
    domt_place place;
    uint64_t number;
    domt_desk desk;
    domus_sql held;

    domt_place_make(&place, "");
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, &options);
    domt_desk_must(&desk, desk.sql, "CREATE TABLE a (b)");
    ck_assert_int_eq(domt_desk_begin(&desk, false, &held), 0);
    for (uint32_t i = 0; i < 20; i++)
        domt_crowd_send(&desk, desk.sql, i % 2 == 0 ? ENDLESS : "INSERT INTO a VALUES (1)", i);
    domt_sleep_ms(20);
    uint64_t begun = domt_monotonic_ns();
    ck_assert_int_eq(domus_outsider_act(desk.outsider, stop_database, &desk.sql.at), 0);
    for (uint32_t i = 0; i < 20; i++) {
        int error = domt_crowd_receive(&desk, &number);
        ck_assert_msg(error == -ENOTCONN || error == -EPIPE || error == -ESTALE, "%d", error);
    }
    ck_assert_uint_lt(domt_monotonic_ns() - begun, UINT64_C(5000000000));
    ck_assert_int_eq(domt_desk_run(&desk, desk.sql, "SELECT 1", NULL, 0), -ESTALE);
    domt_desk_close(&desk);
    domt_place_remove(&place);
}

DOMT_TEST(system_stops_in_the_midst_of_work)
{
    static const domus_sql_statement every = {.text = "SELECT b FROM a"};
    domus_sql_cursor cursor;
    domt_place place;
    domt_desk desk;
    domus_sql held;

    for (size_t k = 0; k < sizeof urls / sizeof urls[0]; k++) {
        domt_place_make(&place, "");
        domt_desk_open(&desk, &domus_sqlite_driver, k == 0 ? place.url : urls[k], NULL);
        domt_desk_must(&desk, desk.sql, "CREATE TABLE a (b)");
        domt_desk_must(&desk, desk.sql, "INSERT INTO a VALUES (1), (2)");
        ck_assert_int_eq(domt_desk_rows(&desk, desk.sql, &every, NULL, 0, &cursor), 0);
        ck_assert_int_eq(domt_desk_begin(&desk, false, &held), 0);
        domt_desk_must(&desk, held, "DELETE FROM a");
        for (uint32_t i = 0; i < 8; i++)
            domt_crowd_send(&desk, desk.sql, i % 2 == 0 && k == 0 ? ENDLESS : "DELETE FROM a", i);
        domt_sleep_ms(20);
        domt_desk_close(&desk);
        domt_place_remove(&place);
    }
}

DOMT_SUITE(60)
