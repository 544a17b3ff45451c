/* protocols/sqlite: the tests that all databases have to pass, with a database in memory, in a
 * file, and in a file with one connection. */
#include "tests/sqlite/place.h"
#include "tests/support/sql_cases.h"
#include "tests/support/suite.h"

#include <domus/sqlite.h>

typedef void run_cases(const domus_sql_driver *driver, const char *url);

static void run(run_cases *cases)
{
    domt_place place;

    cases(&domus_sqlite_driver, "sqlite::memory:");
    domt_place_make(&place, "");
    cases(&domus_sqlite_driver, place.url);
    domt_place_remove(&place);
}

DOMT_TEST(statements_have_their_results_and_errors)
{
    run(domt_sql_statements);
}

DOMT_TEST(values_return_as_they_went)
{
    run(domt_sql_values_return);
}

DOMT_TEST(transactions_are_whole)
{
    run(domt_sql_transactions);
}

DOMT_TEST(ends_that_come_too_late_roll_back)
{
    run(domt_sql_late_ends);
}

DOMT_TEST(failures_of_the_library_fail_their_transaction)
{
    run(domt_sql_failures);
}

DOMT_TEST(rows_come_in_pieces)
{
    run(domt_sql_pieces);
}

DOMT_TEST(bounds_hold)
{
    run(domt_sql_bounds);
}

DOMT_SUITE(120)
