/* A thread of a test that asks a database and waits for each answer. It is an outsider, so it owns
 * its transactions as an actor does. It works with any driver: the tests that all databases have to
 * pass are written with it (sql_cases.h). */
#ifndef DOMT_SQL_DESK_H
#define DOMT_SQL_DESK_H

#include <domus/domus.h>
#include <domus/outsider.h>
#include <domus/sql_driver.h>

typedef struct domt_desk {
    domus_system *system;
    domus_outsider *outsider;
    domus_sql sql;
    domus_answer answer; /* the last answer; its payload is one of the following union */
    union {
        domus_sql_result result;
        domus_sql_error error;
        domus_sql_cursor cursor;
        domus_sql sql;
        domus_sql_status status;
    } payload;
    bool is_guest; /* the system belongs to another desk */
} domt_desk;

/* Start a system, and open a database in it. `options` may be NULL; the drivers in it are
 * ignored. */
void domt_desk_open(domt_desk *desk, const domus_sql_driver *driver, const char *url,
                    const domus_sql_options *options);

/* Become another asker of the database of `desk`, which must live longer than the guest. */
void domt_desk_join(domt_desk *guest, const domt_desk *desk);
void domt_desk_close(domt_desk *desk);

/* Send an ask, and wait for its answer. The answer before is freed. Returns the error of the
 * answer. */
int domt_desk_ask(domt_desk *desk, domus_address to, const domus_type *type, const void *payload);

/* Run an SQL text, a prepared statement, or a script. Return 0 or an error; desk->payload.result
 * has the result. */
int domt_desk_run(domt_desk *desk, domus_sql sql, const char *text, const domus_sql_value *values,
                  uint32_t count);
int domt_desk_query(domt_desk *desk, domus_sql sql, const domus_sql_statement *statement,
                    const domus_sql_value *values, uint32_t count);
int domt_desk_script(domt_desk *desk, domus_sql sql, const char *text);

int domt_desk_begin(domt_desk *desk, bool reads_only, domus_sql *ret_sql);
int domt_desk_end(domt_desk *desk, domus_sql sql, bool commits);

int domt_desk_rows(domt_desk *desk, domus_sql sql, const domus_sql_statement *statement,
                   const domus_sql_value *values, uint32_t count, domus_sql_cursor *ret_cursor);
int domt_desk_fetch(domt_desk *desk, domus_sql_cursor cursor);
void domt_desk_close_rows(domt_desk *desk, domus_sql_cursor cursor);

domus_sql_status domt_desk_look(domt_desk *desk);

/* Returns the SQLSTATE of the last answer; "" if it has none. */
const char *domt_desk_state(const domt_desk *desk);

/* Run a text, and check that it succeeds, or that it gives this text: cells with "|" between them,
 * rows with ";", "~" for NULL. */
void domt_desk_must(domt_desk *desk, domus_sql sql, const char *text);
void domt_desk_gives(domt_desk *desk, domus_sql sql, const char *text, const char *expected);

/* Write the last result as text, in the form that domt_desk_gives() compares. */
void domt_desk_show(const domt_desk *desk, char *text, size_t size);

#endif
