/* protocols/sqlite: statements and their results, on a file and in memory. */
#include "tests/sqlite/place.h"
#include "tests/support/sql_desk.h"
#include "tests/support/suite.h"

#include <domus/sqlite.h>

#include <errno.h>

START_TEST(written_rows_are_read)
{
    domt_place place;
    domt_desk desk;

    domt_place_make(&place, "");
    domt_desk_open(&desk, &domus_sqlite_driver, _i == 0 ? "sqlite::memory:" : place.url, NULL);
    domt_desk_must(&desk, desk.sql, "CREATE TABLE t (id INTEGER PRIMARY KEY, title TEXT)");
    domt_desk_must(&desk, desk.sql, "INSERT INTO t (title) VALUES ('one'), ('two'), (NULL)");
    ck_assert_uint_eq(desk.payload.result.affected, 3);
    domt_desk_gives(&desk, desk.sql, "SELECT id, title FROM t ORDER BY id", "1|one;2|two;3|~");
    domt_desk_close(&desk);
    domt_place_remove(&place);
}
END_TEST

DOMT_MAIN("sqlite", 20, written_rows_are_read)
