/* A database of PostgreSQL in a real system, used by the thread of a test as an outsider. */
#ifndef DOMT_PG_USER_H
#define DOMT_PG_USER_H

#include "tests/support/postgres.h"

#include <domus/outsider.h>
#include <domus/pg.h>
#include <domus/sql_driver.h>

typedef struct domt_pg_user {
    domus_system *system;
    domus_outsider *outsider;
    domus_sql sql;
} domt_pg_user;

/* The answer to an ask. The caller frees its result by domt_pg_free_answer(). */
typedef struct domt_pg_answer {
    int error; /* error of the answer, as domus_sql_result_of() returns it */
    const domus_type *type;
    union {
        domus_sql_result result;
        domus_sql_error failure;
        domus_sql sql;
        domus_sql_cursor cursor;
        domus_pg_piece piece;
    } as;
} domt_pg_answer;

/* Start a system with one thread, and open the database of this url. `options` may be NULL. */
void domt_pg_user_start_system(domt_pg_user *user, const char *url,
                               const domus_sql_options *options);
/* Start a system with `threads` threads, each of which has a pool of connections to the database of
 * this url. */
void domt_pg_user_start_with_threads(domt_pg_user *user, const char *url,
                                     const domus_sql_options *options, uint32_t threads);
void domt_pg_user_stop_system(domt_pg_user *user);

/* Send an ask to an actor, and wait for the answer for up to `timeout_ns`; 0: 20 s. */
domt_pg_answer domt_pg_ask_and_wait(domt_pg_user *user, domus_address to, const domus_type *type,
                                    const void *payload, uint64_t timeout_ns);
domt_pg_answer domt_pg_run_request(domt_pg_user *user, domus_sql sql, const domus_type *type,
                                   const domus_sql_statement *statement, const char *text,
                                   const domus_sql_value *values, uint32_t count);

/* Run a statement, in the database or in a transaction, and wait for its answer. */
domt_pg_answer domt_pg_run_statement(domt_pg_user *user, domus_sql sql,
                                     const domus_sql_statement *statement,
                                     const domus_sql_value *values, uint32_t count);
domt_pg_answer domt_pg_run_text(domt_pg_user *user, domus_sql sql, const char *text);
/* Run a script in the database, and check that it succeeds. */
void domt_pg_run_script(domt_pg_user *user, const char *text);
/* Run a query's text, and return the one integer of its result. */
int64_t domt_pg_run_text_for_number(domt_pg_user *user, domus_sql sql, const char *text);

/* The answer of a query that was sent without waiting, with the first two integers of its first
 * row. */
typedef struct domt_pg_received {
    uint64_t tag;
    int error; /* error of the answer, as domus_sql_result_of() returns it */
    int64_t numbers[2];
} domt_pg_received;

/* Send a query without waiting for its answer, which will have this tag. A request names its
 * transaction itself. */
void domt_pg_send_request(domt_pg_user *user, const domus_sql_request *request, uint64_t tag);
void domt_pg_send_query(domt_pg_user *user, domus_sql sql, const domus_sql_statement *statement,
                        const domus_sql_value *values, uint32_t count, uint64_t tag);
/* Receive the next answer of a query that was sent. */
domt_pg_received domt_pg_receive_answer(domt_pg_user *user);
/* Receive `count` answers, whose tags are 0 to `count` - 1, and store each by its tag. */
void domt_pg_receive_answers(domt_pg_user *user, domt_pg_received *answers, uint32_t count);

/* A lock of the server, which another user with one connection takes and releases. The statement
 * waits for the lock. */
extern const domus_sql_statement domt_pg_waits;
void domt_pg_take_server_lock(domt_pg_user *other);
void domt_pg_release_server_lock(domt_pg_user *other);

domus_sql domt_pg_begin_transaction(domt_pg_user *user);
domt_pg_answer domt_pg_end_transaction(domt_pg_user *user, domus_sql sql, bool commits);

domus_sql_status domt_pg_read_database_status(domt_pg_user *user);
/* Wait until `count` queries wait for a connection, or until no connection is busy. */
void domt_pg_await_waiting_queries(domt_pg_user *user, uint32_t count);
void domt_pg_await_idle_connections(domt_pg_user *user);
uint64_t domt_pg_monotonic_ns(void); /* Returns the time of the monotonic clock in nanoseconds. */
void domt_pg_free_answer(domt_pg_answer *answer);

#endif
