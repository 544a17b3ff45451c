/* Several queries of a desk at once: they are sent, and then their answers are awaited. */
#ifndef DOMT_SQLITE_CROWD_H
#define DOMT_SQLITE_CROWD_H

#include "tests/support/sql_desk.h"

/* Send a query; its answer will have this number. */
void domt_crowd_send(domt_desk *desk, domus_sql sql, const char *text, uint64_t number);
void domt_crowd_send_statement(domt_desk *desk, const domus_sql_statement *statement,
                               const domus_sql_value *values, uint32_t count, uint64_t number);

/* Await the next answer. Returns its error, 0 for none. */
int domt_crowd_receive(domt_desk *desk, uint64_t *ret_number);

#endif
