/* Tests of a url, which hold what domus/sql.h says of every database: the tests of each driver run
 * all of them. The tables that they make begin with "domt_", and are dropped first. */
#ifndef DOMT_SQL_CASES_H
#define DOMT_SQL_CASES_H

#include <domus/sql_driver.h>

/* Statements, their results and their errors. */
void domt_sql_statements(const domus_sql_driver *driver, const char *url);

/* Kinds of values come back as they went; texts and bytes with every byte. */
void domt_sql_values_return(const domus_sql_driver *driver, const char *url);

/* Transactions: commit, rollback, failure, owners, idle time. */
void domt_sql_transactions(const domus_sql_driver *driver, const char *url);

/* Ends of transactions behind the deadline of a conversation, and in one that was cancelled. */
void domt_sql_late_ends(const domus_sql_driver *driver, const char *url);

/* Failures in a transaction of which the database does not know. */
void domt_sql_failures(const domus_sql_driver *driver, const char *url);

/* Rows in pieces, and what ends them. */
void domt_sql_pieces(const domus_sql_driver *driver, const char *url);

/* Bounds: results, queues, time. */
void domt_sql_bounds(const domus_sql_driver *driver, const char *url);

#endif
