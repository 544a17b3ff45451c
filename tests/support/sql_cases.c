/* A table of SQL statements on which all databases have to behave alike, and checks that values
 * come back unchanged; tests/support/sql_cases.h declares these tests. */
#include "tests/support/sql_cases.h"

#include "tests/support/sql_desk.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define VALUES_MAX 3

/* An SQL statement, and the result or error that every database has to give. The statements run in
 * the order of the table, and later rows rely on earlier ones. */
static const struct statement_case {
    const char *text;
    domus_sql_value values[VALUES_MAX];
    uint32_t count;
    int error;
    const char *state; /* SQLSTATE of the statement, if it fails */
    const char *gives; /* result of the statement as text, if it succeeds; NULL: no rows */
    uint64_t affected;
} cases[] = {
    {.text = "CREATE TABLE domt_a (id INTEGER PRIMARY KEY, title TEXT NOT NULL UNIQUE, n INTEGER "
             "CHECK (n >= 0))"},
    {.text = "CREATE TABLE domt_b (a INTEGER NOT NULL REFERENCES domt_a (id), word TEXT)"},
    {.text = "INSERT INTO domt_a (id, title, n) VALUES (1, 'one', 1), (2, 'two', 2)",
     .affected = 2},
    {.text = "SELECT id, title FROM domt_a ORDER BY id", .gives = "1|one;2|two"},
    {.text = "SELECT title FROM domt_a WHERE id = 7", .gives = ""},
    {.text = "SELECT n, NULL FROM domt_a WHERE id = 1", .gives = "1|~"},
    {.text = "UPDATE domt_a SET n = n + 1", .affected = 2},
    {.text = "UPDATE domt_a SET n = 0 WHERE id = 7", .affected = 0},
    {.text = "INSERT INTO domt_a (id, title, n) VALUES (3, 'three', 3) RETURNING id",
     .gives = "3",
     .affected = 1},
    {.text = "DELETE FROM domt_a WHERE id = 3", .affected = 1},
    {.text = "INSERT INTO domt_a (id, title) VALUES (1, 'x')", .error = -EEXIST, .state = "23505"},
    {.text = "INSERT INTO domt_a (id, title) VALUES (4, 'one')",
     .error = -EEXIST,
     .state = "23505"},
    {.text = "INSERT INTO domt_a (id, title) VALUES (4, NULL)", .error = -EPERM, .state = "23502"},
    {.text = "INSERT INTO domt_a (id, title, n) VALUES (4, 'x', -1)",
     .error = -EPERM,
     .state = "23514"},
    {.text = "INSERT INTO domt_b (a) VALUES (99)", .error = -EPERM, .state = "23503"},
    {.text = "SELEC 1", .error = -EINVAL, .state = "42601"},
    {.text = "SELECT 1 FROM domt_none", .error = -EINVAL, .state = "42P01"},
    {.text = "SELECT none FROM domt_a", .error = -EINVAL, .state = "42703"},
    {.text = "SELECT domt_none(1)", .error = -EINVAL, .state = "42883"},
    {.text = "CREATE TABLE domt_a (id INTEGER)", .error = -EINVAL, .state = "42P07"},
    {.text = "SELECT 1; SELECT 2", .error = -EINVAL, .state = "42601"},
    {.text = "SELECT count(*) FROM domt_a", .gives = "2"},
    {.text = "SELECT title FROM domt_a WHERE id = $1",
     .values = {{.kind = DOMUS_SQL_INTEGER, .as.integer = 2}},
     .count = 1,
     .gives = "two"},
    {.text = "SELECT title FROM domt_a WHERE id = $2 OR id = $1 OR id = $2 ORDER BY id",
     .values = {{.kind = DOMUS_SQL_INTEGER, .as.integer = 2},
                {.kind = DOMUS_SQL_INTEGER, .as.integer = 1}},
     .count = 2,
     .gives = "one;two"},
    {.text = "INSERT INTO domt_b (a, word) VALUES ($1, $2)",
     .values = {{.kind = DOMUS_SQL_INTEGER, .as.integer = 1}, {.kind = DOMUS_SQL_NULL}},
     .count = 2,
     .affected = 1},
    {.text = "SELECT a, word FROM domt_b", .gives = "1|~"},
    {.text = "DROP TABLE domt_b"},
    {.text = "DROP TABLE domt_a"},
};

static void check_statement_case(domt_desk *desk, const struct statement_case *row)
{
    char shown[256];
    int error = domt_desk_run_text(desk, desk->sql, row->text, row->values, row->count);

    ck_assert_msg(error == row->error, "%s: %s %s", row->text, strerror(-error),
                  desk->answer.type == &domus_sql_error_type ? desk->payload.error.message : "");
    if (row->error != 0) {
        ck_assert_msg(strcmp(domt_desk_sqlstate(desk), row->state) == 0, "%s: %s", row->text,
                      domt_desk_sqlstate(desk));
        return;
    }
    domt_desk_write_result(desk, shown, sizeof shown);
    ck_assert_msg(strcmp(shown, row->gives != NULL ? row->gives : "") == 0, "%s: %s", row->text,
                  shown);
    ck_assert_msg(desk->payload.result.affected == row->affected, "%s: %llu rows", row->text,
                  (unsigned long long)desk->payload.result.affected);
    ck_assert_msg(desk->payload.result.last, "%s", row->text);
}

void domt_sql_check_statements(const domus_sql_driver *driver, const char *url)
{
    domt_desk desk;

    domt_desk_open(&desk, driver, url, NULL);
    (void)domt_desk_run_script(&desk, desk.sql,
                               "DROP TABLE IF EXISTS domt_b; DROP TABLE IF EXISTS domt_a");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_statement_case(&desk, &cases[i]);
    domt_desk_close(&desk);
}

/* --- values ----------------------------------------------------------------------------------- */

static void check_value_returns(domt_desk *desk, const domus_sql_value *value)
{
    static const domus_sql_statement put = {.text = "INSERT INTO domt_v (t, y) VALUES ($1, $2)"};
    static const domus_sql_statement get = {.text = "SELECT t, y FROM domt_v"};
    domus_sql_value null = domus_sql_null();
    bool is_text = value->kind == DOMUS_SQL_TEXT;
    const domus_sql_value values[] = {is_text ? *value : null, is_text ? null : *value};

    domt_desk_must_succeed(desk, desk->sql, "DELETE FROM domt_v");
    ck_assert_int_eq(domt_desk_run_statement(desk, desk->sql, &put, values, 2), 0);
    ck_assert_int_eq(domt_desk_run_statement(desk, desk->sql, &get, NULL, 0), 0);
    domus_sql_value read = domus_sql_cell(&desk->payload.result, 0, is_text ? 0 : 1);
    ck_assert_uint_eq(read.kind, value->kind);
    ck_assert_uint_eq(read.size, value->size);
    if (value->size != 0)
        ck_assert_mem_eq(read.as.bytes, value->as.bytes, value->size);
}

static void check_numbers_return(domt_desk *desk)
{
    static const int64_t integers[] = {0, 1, -1, INT64_MAX, INT64_MIN, INT32_MAX};
    static const double reals[] = {0.5, -1.25e300, 4.9406564584124654e-324, 1e15};
    static const domus_sql_statement put = {.text = "INSERT INTO domt_n (i, r) VALUES ($1, $2)"};
    int64_t integer;
    double real;

    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++) {
        const domus_sql_value values[] = {domus_sql_int(integers[i]), domus_sql_real(reals[i % 4])};
        domt_desk_must_succeed(desk, desk->sql, "DELETE FROM domt_n");
        ck_assert_int_eq(domt_desk_run_statement(desk, desk->sql, &put, values, 2), 0);
        domt_desk_must_succeed(desk, desk->sql, "SELECT i, r FROM domt_n");
        ck_assert_int_eq(domus_sql_get_int(&desk->payload.result, 0, 0, &integer), 0);
        ck_assert_int_eq(domus_sql_get_real(&desk->payload.result, 0, 1, &real), 0);
        ck_assert_int_eq(integer, integers[i]);
        ck_assert(real == reals[i % 4]);
    }
}

void domt_sql_check_values_return(const domus_sql_driver *driver, const char *url)
{
    static char bytes[100000];
    domt_desk desk;
    bool is_sqlite = strcmp(driver->name, "sqlite") == 0;
    char text[128];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i % 251);
    domt_desk_open(&desk, driver, url, NULL);
    (void)domt_desk_run_script(&desk, desk.sql,
                               "DROP TABLE IF EXISTS domt_v; DROP TABLE IF EXISTS domt_n");
    (void)snprintf(text, sizeof text, "CREATE TABLE domt_v (t TEXT, y %s)",
                   is_sqlite ? "BLOB" : "BYTEA");
    domt_desk_must_succeed(&desk, desk.sql, text);
    domt_desk_must_succeed(&desk, desk.sql, "CREATE TABLE domt_n (i BIGINT, r DOUBLE PRECISION)");
    const domus_sql_value values[] = {
        domus_sql_text(""),
        domus_sql_text("a"),
        domus_sql_text("'; DROP TABLE domt_v; --"),
        domus_sql_text("\xc3\xa4\xe2\x82\xac\xf0\x9f\x8e\x88"),
        domus_sql_bytes("", 0),
        domus_sql_bytes("\0\1\377", 3),
        domus_sql_bytes(bytes, sizeof bytes),
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        check_value_returns(&desk, &values[i]);
    check_numbers_return(&desk);
    /* The database refuses a text with a zero byte, and a text that is not UTF-8. */
    ck_assert_int_eq(domt_desk_run_text(&desk, desk.sql, "INSERT INTO domt_v (t) VALUES ($1)",
                                        DOMUS_SQL_VALUES(domus_sql_text_of("a\0b", 3))),
                     -EINVAL);
    ck_assert_str_eq(domt_desk_sqlstate(&desk), "22021");
    ck_assert_int_eq(domt_desk_run_text(&desk, desk.sql, "INSERT INTO domt_v (t) VALUES ($1)",
                                        DOMUS_SQL_VALUES(domus_sql_text("\xff"))),
                     -EINVAL);
    ck_assert_str_eq(domt_desk_sqlstate(&desk), "22021");
    domt_desk_must_succeed(&desk, desk.sql, "DROP TABLE domt_v");
    domt_desk_must_succeed(&desk, desk.sql, "DROP TABLE domt_n");
    domt_desk_close(&desk);
}
