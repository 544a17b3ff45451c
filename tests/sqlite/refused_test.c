/* protocols/sqlite: statements that would change the connection for other users, or that no other
 * kind of database understands, are refused; and errors of SQLite have the right form. */
#include "tests/support/sql_desk.h"
#include "tests/support/suite.h"

#include <domus/sqlite.h>

#include <errno.h>
#include <string.h>

static const struct refused {
    const char *text;
    int error;
    const char *state;
} refused[] = {
    {"BEGIN", -EACCES, "42501"},
    {"COMMIT", -EACCES, "42501"},
    {"ROLLBACK", -EACCES, "42501"},
    {"SAVEPOINT a", -EACCES, "42501"},
    {"RELEASE domus", -EACCES, "42501"},
    {"ATTACH ':memory:' AS other", -EACCES, "42501"},
    {"DETACH main", -EACCES, "42501"},
    {"VACUUM", -EINVAL, "42000"},
    {"CREATE TEMP TABLE x (a)", -EACCES, "42501"},
    {"CREATE TEMP VIEW x AS SELECT 1", -EACCES, "42501"},
    {"PRAGMA foreign_keys = OFF", -EACCES, "42501"},
    {"PRAGMA journal_mode = DELETE", -EACCES, "42501"},
    {"PRAGMA synchronous = OFF", -EACCES, "42501"},
    {"PRAGMA writable_schema = ON", -EACCES, "42501"},
    {"PRAGMA query_only = OFF", -EACCES, "42501"},
    {"PRAGMA page_count = 1", -EACCES, "42501"},
    {"SELECT load_extension('x')", -EACCES, "42501"},
    {"DELETE FROM sqlite_master", -EINVAL, "42000"},
    {"SELECT ?", -EINVAL, "42601"},
    {"SELECT ?1", -EINVAL, "42601"},
    {"SELECT :a", -EINVAL, "42601"},
    {"SELECT @a", -EINVAL, "42601"},
    {"SELECT $a", -EINVAL, "42601"},
    {"SELECT $0", -EINVAL, "42601"},
    {"SELECT $01", -EINVAL, "42601"},
    {"SELECT $257", -EINVAL, "42601"},
    {"SELECT $1", -EINVAL, "07001"}, /* the statement fails, because its parameter $1 is missing */
    {"", -EINVAL, "42601"},
    {" -- nothing", -EINVAL, "42601"},
    {"SELECT 1; nonsense", -EINVAL, "42601"},
    {"SELECT \"text\"", -EINVAL, "42703"},
    {"SELECT 9223372036854775807 + abs(-9223372036854775807 - 1)", -EINVAL, "22003"},
    {"SELECT json('{')", -EINVAL, "22P02"},
    {"INSERT INTO strict VALUES ('x')", -EINVAL, "22P02"},
};

/* Statements that are accepted, although they resemble refused ones. */
static const char *const taken[] = {
    "PRAGMA table_info(strict)",
    "PRAGMA user_version = 7",
    "PRAGMA integrity_check",
    "SELECT 1 -- and a comment",
    "SELECT 1; ; -- nothing",
    "/* a comment */ SELECT 1",
    "EXPLAIN SELECT 1",
    "VALUES (1), (2)",
    "WITH a AS (SELECT 1) SELECT * FROM a",
    "WITH a AS (SELECT 2) INSERT INTO strict SELECT * FROM a",
    "SELECT '$1 ? :a'",
};

static void open_desk_with_strict_table(domt_desk *desk)
{
    domt_desk_open(desk, &domus_sqlite_driver, "sqlite::memory:", NULL);
    domt_desk_must_succeed(desk, desk->sql, "CREATE TABLE strict (a INTEGER) STRICT");
}

DOMT_TEST(connection_changing_statements_are_refused)
{
    domt_desk desk;

    open_desk_with_strict_table(&desk);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const struct refused *row = &refused[i];
        int error = domt_desk_run_text(&desk, desk.sql, row->text, NULL, 0);
        ck_assert_msg(error == row->error && strcmp(domt_desk_sqlstate(&desk), row->state) == 0,
                      "%s: %d %s %s", row->text, error, domt_desk_sqlstate(&desk),
                      desk.payload.error.message);
        ck_assert_str_ne(desk.payload.error.message, "");
        /* A script that contains the refused statement is refused, too. */
        if (row->error == -EACCES)
            ck_assert_msg(domt_desk_run_script(&desk, desk.sql, row->text) == -EACCES, "%s",
                          row->text);
    }
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        domt_desk_must_succeed(&desk, desk.sql, taken[i]);
    domt_desk_query_must_return(&desk, desk.sql, "PRAGMA user_version", "7");
    domt_desk_close(&desk);
}

DOMT_TEST(error_names_table_column_and_constraint)
{
    const domus_sql_error *error;
    domt_desk desk;

    open_desk_with_strict_table(&desk);
    domt_desk_must_succeed(
        &desk, desk.sql,
        "CREATE TABLE a (id INTEGER PRIMARY KEY, n TEXT NOT NULL UNIQUE, m INTEGER "
        "CONSTRAINT m_is_small CHECK (m < 9))");
    domt_desk_must_succeed(&desk, desk.sql, "INSERT INTO a VALUES (1, 'x', 1)");
    error = &desk.payload.error;
    ck_assert_int_eq(
        domt_desk_run_text(&desk, desk.sql, "INSERT INTO a VALUES (2, 'x', 1)", NULL, 0), -EEXIST);
    ck_assert_str_eq(error->table, "a");
    ck_assert_str_eq(error->column, "n");
    ck_assert_int_eq(
        domt_desk_run_text(&desk, desk.sql, "INSERT INTO a VALUES (2, NULL, 1)", NULL, 0), -EPERM);
    ck_assert_str_eq(error->column, "n");
    ck_assert_int_eq(
        domt_desk_run_text(&desk, desk.sql, "INSERT INTO a VALUES (2, 'y', 10)", NULL, 0), -EPERM);
    ck_assert_str_eq(error->constraint, "m_is_small");
    ck_assert_int_eq(domt_desk_run_text(&desk, desk.sql, "SELECT '\xc3\xa4', oops FROM a", NULL, 0),
                     -EINVAL);
    ck_assert_uint_eq(error->position, 13); /* the position counts characters, not bytes */
    domt_desk_close(&desk);
}

DOMT_TEST(script_succeeds_or_fails_as_a_whole)
{
    domt_desk desk;

    open_desk_with_strict_table(&desk);
    ck_assert_int_eq(
        domt_desk_run_script(&desk, desk.sql,
                             "CREATE TABLE a (id INTEGER PRIMARY KEY); INSERT INTO a VALUES "
                             "(1); SELECT * FROM a; -- done\n"),
        0);
    ck_assert_int_eq(domt_desk_run_script(&desk, desk.sql,
                                          "INSERT INTO a VALUES (2); INSERT INTO a VALUES (1);"),
                     -EEXIST);
    domt_desk_query_must_return(&desk, desk.sql, "SELECT count(*) FROM a", "1");
    ck_assert_int_eq(domt_desk_run_script(&desk, desk.sql, "INSERT INTO a VALUES ($1)"), -EINVAL);
    domt_desk_close(&desk);
}

/* A new prepared statement replaces the one that was used longest ago. */
DOMT_TEST(prepared_statements_have_a_limit)
{
    static const domus_sql_statement one = {.text = "SELECT 1"}, two = {.text = "SELECT 2"},
                                     three = {.text = "SELECT 3"};
    domus_sql_options options = {.statements_max = 2};
    domt_desk desk;

    domt_desk_open(&desk, &domus_sqlite_driver, "sqlite::memory:", &options);
    const domus_sql_statement *const order[] = {&one, &two, &one, &two, &one, &three, &one, &two};
    const uint64_t prepares[] = {1, 2, 2, 2, 2, 3, 3, 4};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        ck_assert_int_eq(domt_desk_run_statement(&desk, desk.sql, order[i], NULL, 0), 0);
        ck_assert_uint_eq(domt_desk_database_status(&desk).prepares, prepares[i]);
    }
    domt_desk_close(&desk);
}

DOMT_SUITE(30)
