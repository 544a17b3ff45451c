/* Tests of a url, which check what domus/sql.h promises for every database; the tests of each
 * driver run all of them. The tables that they make begin with "domt_", and are dropped first. */
#ifndef DOMT_SQL_CASES_H
#define DOMT_SQL_CASES_H

#include <domus/sql_driver.h>

/* Statements have the right results and errors. */
void domt_sql_statements(const domus_sql_driver *driver, const char *url);

/* Values of all kinds come back as they were sent; texts and bytes keep every byte. */
void domt_sql_values_return(const domus_sql_driver *driver, const char *url);

/* Transactions: their commit, rollback, failure, owners and idle time. */
void domt_sql_transactions(const domus_sql_driver *driver, const char *url);

/* Transactions are ended also behind the deadline of a conversation, and in a conversation that was
 * cancelled. */
void domt_sql_late_ends(const domus_sql_driver *driver, const char *url);

/* Failures in a transaction that the database does not see. */
void domt_sql_failures(const domus_sql_driver *driver, const char *url);

/* Rows that come in pieces, and what ends them. */
void domt_sql_pieces(const domus_sql_driver *driver, const char *url);

/* Bounds of results, queues and time. */
void domt_sql_bounds(const domus_sql_driver *driver, const char *url);

#endif
