/* Several queries of a desk (tests/support/sql_desk.h) at the same time: all are sent, and then
 * their answers are awaited. */
#ifndef DOMT_SQLITE_CROWD_H
#define DOMT_SQLITE_CROWD_H

#include "tests/support/sql_desk.h"

/* Send a query, whose answer will have this number, and do not wait for the answer. */
void domt_crowd_send_query_text(domt_desk *desk, domus_sql sql, const char *text, uint64_t number);
void domt_crowd_send_statement(domt_desk *desk, const domus_sql_statement *statement,
                               const domus_sql_value *values, uint32_t count, uint64_t number);

/* Wait for the next answer of a query that was sent. Returns its error, or 0. */
int domt_crowd_receive_answer(domt_desk *desk, uint64_t *ret_number);

#endif
