/* A desk: a thread of a test that asks a database and waits for each answer. It is an outsider, so
 * it owns its transactions as an actor does. It works with any driver, and the tests that all
 * databases have to pass (tests/support/sql_cases.h) are written with it. */
#ifndef DOMT_SQL_DESK_H
#define DOMT_SQL_DESK_H

#include <domus/domus.h>
#include <domus/outsider.h>
#include <domus/sql_driver.h>

typedef struct domt_desk {
    domus_system *system;
    domus_outsider *outsider;
    domus_sql sql;
    /* the last answer that the desk received; its payload lies in `payload` below */
    domus_answer answer;
    union {
        domus_sql_result result;
        domus_sql_error error;
        domus_sql_cursor cursor;
        domus_sql sql;
        domus_sql_status status;
    } payload;
    bool is_guest; /* true: the desk uses the system of another desk */
} domt_desk;

/* Open a desk: start a system, and open a database in it. `options` may be NULL; the list of
 * drivers in them is ignored. */
void domt_desk_open(domt_desk *desk, const domus_sql_driver *driver, const char *url,
                    const domus_sql_options *options);

/* Make `guest` another desk at the system and database of `desk`, which must be closed after the
 * guest. */
void domt_desk_open_guest(domt_desk *guest, const domt_desk *desk);
void domt_desk_close(domt_desk *desk);

/* Free the desk's last answer, send an ask, and wait for its answer. Returns the error of the
 * answer, or 0. */
int domt_desk_ask(domt_desk *desk, domus_address to, const domus_type *type, const void *payload);

/* Run an SQL text, a prepared statement, or a script of several statements. Return 0, or an error;
 * desk->payload.result then has the result. */
int domt_desk_run_text(domt_desk *desk, domus_sql sql, const char *text,
                       const domus_sql_value *values, uint32_t count);
int domt_desk_run_statement(domt_desk *desk, domus_sql sql, const domus_sql_statement *statement,
                            const domus_sql_value *values, uint32_t count);
int domt_desk_run_script(domt_desk *desk, domus_sql sql, const char *text);

int domt_desk_begin_transaction(domt_desk *desk, bool reads_only, domus_sql *ret_sql);
int domt_desk_end_transaction(domt_desk *desk, domus_sql sql, bool commits);

int domt_desk_open_cursor(domt_desk *desk, domus_sql sql, const domus_sql_statement *statement,
                          const domus_sql_value *values, uint32_t count,
                          domus_sql_cursor *ret_cursor);
int domt_desk_fetch_rows(domt_desk *desk, domus_sql_cursor cursor);
void domt_desk_close_cursor(domt_desk *desk, domus_sql_cursor cursor);

domus_sql_status domt_desk_database_status(domt_desk *desk);

/* Returns the SQLSTATE of the desk's last answer; "" if the answer has none. */
const char *domt_desk_sqlstate(const domt_desk *desk);

/* Run an SQL text, and check that it succeeds (must), or that its result written as text is
 * `expected` (gives): "|" stands between cells, ";" between rows, and "~" for NULL. */
void domt_desk_must_succeed(domt_desk *desk, domus_sql sql, const char *text);
void domt_desk_query_must_return(domt_desk *desk, domus_sql sql, const char *text,
                                 const char *expected);

/* Write the last result of the desk as text, in the form that domt_desk_query_must_return()
 * compares. */
void domt_desk_write_result(const domt_desk *desk, char *text, size_t size);

#endif
