/* What all databases do, by PostgreSQL. */
#include "tests/support/postgres.h"
#include "tests/support/sql_cases.h"
#include "tests/support/suite.h"

#include <domus/pg.h>

static void run(void (*cases)(const domus_sql_driver *driver, const char *url))
{
    domt_postgres server;

    domt_postgres_start(&server, NULL);
    cases(&domus_pg_driver, server.url);
    domt_postgres_stop(&server);
}

START_TEST(statements)
{
    run(domt_sql_statements);
}
END_TEST

START_TEST(values_return)
{
    run(domt_sql_values_return);
}
END_TEST

START_TEST(transactions)
{
    run(domt_sql_transactions);
}
END_TEST

START_TEST(late_ends)
{
    run(domt_sql_late_ends);
}
END_TEST

START_TEST(pieces)
{
    run(domt_sql_pieces);
}
END_TEST

START_TEST(bounds)
{
    run(domt_sql_bounds);
}
END_TEST

DOMT_MAIN("pg_common", 120, statements, values_return, transactions, late_ends, pieces, bounds)
