/* Tests which hold that a database does as include/domus/sql.h promises; the tests of each driver
 * run all of them with the url of their database. The tables that they make have names with
 * "domt_", and are dropped first. */
#ifndef DOMT_SQL_CASES_H
#define DOMT_SQL_CASES_H

#include <domus/sql_driver.h>

/* Hold that SQL statements give the right results and errors. */
void domt_sql_check_statements(const domus_sql_driver *driver, const char *url);

/* Hold that values of all kinds come back as they were sent; texts and bytes keep every byte. */
void domt_sql_check_values_return(const domus_sql_driver *driver, const char *url);

/* Hold the rules of transactions: commit, rollback, failure, owner and idle time. */
void domt_sql_check_transactions(const domus_sql_driver *driver, const char *url);

/* Hold that a transaction can be ended even when the deadline of its conversation has passed, or
 * its conversation was cancelled. */
void domt_sql_check_ends_after_deadline(const domus_sql_driver *driver, const char *url);

/* Hold that an error which the library finds, and the database does not see, fails the transaction,
 * too. */
void domt_sql_check_failures(const domus_sql_driver *driver, const char *url);

/* Hold the rules of cursors: rows come in pieces, and a cursor ends by its close, its owner's end
 * or its idle time. */
void domt_sql_check_cursors(const domus_sql_driver *driver, const char *url);

/* Hold the limits of a database: the size of a result, the queue for connections, waiting time and
 * time-outs. */
void domt_sql_check_limits(const domus_sql_driver *driver, const char *url);

#endif
