/* A connection: a handle of SQLite, its current job, and what the helper thread knows of both.
 *
 * Everything here belongs to the helper thread while a job runs, and to the actor otherwise: the
 * end of the job hands it back. One helper thread at a time uses a connection, mostly another one
 * than before. */
#ifndef DOMI_SQLITE_CONNECTION_H
#define DOMI_SQLITE_CONNECTION_H

#include "protocols/sqlite/place.h"
#include "protocols/sqlite/task.h"

#include <domus/supervise.h>

#include <sqlite3.h>

#define DOMI_SQLITE_BATCH 256u /* tasks of one job, at most */
#define DOMI_SQLITE_READS 32u  /* tasks of one job that only reads, at most */
/* ns after which a job begins no further task */
#define DOMI_SQLITE_JOB_NS UINT64_C(5000000)
/* pages of the WAL at which it is copied to the database's file, if no query waits */
#define DOMI_SQLITE_PAGES 1000
/* pages of the WAL at which it is copied to the file even while queries wait */
#define DOMI_SQLITE_PAGES_FORCED 4000
/* pages of the WAL at which copying it waits until other connections stop reading it */
#define DOMI_SQLITE_PAGES_RESTART 16000
/* ms for which copying the WAL waits for connections that read it */
#define DOMI_SQLITE_RESTART_MS 100
/* bytes to which the file of the WAL is cut after it was copied */
#define DOMI_SQLITE_WAL_BYTES (64 * 1024 * 1024)
/* steps of SQLite's machine between two checks of a statement's time limit */
#define DOMI_SQLITE_STEPS 1000

/* Statements that the library itself runs on a connection, and not the program. */
enum domi_sqlite_own {
    DOMI_SQLITE_BEGIN_READ,
    DOMI_SQLITE_BEGIN_WRITE,
    DOMI_SQLITE_COMMITS,
    DOMI_SQLITE_ROLLS_BACK,
    DOMI_SQLITE_SAVES,
    DOMI_SQLITE_UNDOES,
    DOMI_SQLITE_RELEASES,
    DOMI_SQLITE_OWN,
};

/* A statement of the program that stays prepared on a connection. */
typedef struct domi_sqlite_kept {
    const domus_sql_statement *statement;
    sqlite3_stmt *prepared;
    struct domi_sqlite_kept *chain; /* the next statement in the same bucket of the hash table */
    /* the statement whose last use came next after that of this one */
    struct domi_sqlite_kept *newer;
    struct domi_sqlite_kept *older;
    uint32_t parameters;
} domi_sqlite_kept;

/* A prepared statement that is about to run. */
typedef struct domi_sqlite_prepared {
    sqlite3_stmt *statement;
    bool is_kept;
} domi_sqlite_prepared;

#define DOMI_SQLITE_BUCKETS 256u

typedef struct domi_sqlite_statements {
    domi_sqlite_kept *buckets[DOMI_SQLITE_BUCKETS];
    domi_sqlite_kept *newest;
    domi_sqlite_kept *oldest;
    uint32_t count;
} domi_sqlite_statements;

/* Rows of a query that are read in pieces. */
typedef struct domi_sqlite_cursor {
    /* --- members of the actor ----------------------------------------------------------------- */
    struct domi_sqlite_cursor *next; /* the next cursor in the list of the connection */
    uint64_t number;
    domus_address owner;
    domus_watch watch;
    bool has_watch;
    bool is_ending;
    uint64_t used_ns;
    domi_sqlite_task *fetch; /* the task that fetches the next piece of rows; NULL: none */
    uint64_t transaction;    /* number of the transaction in which the rows are read; 0: none */
    uint64_t timeout_ns;
    /* --- members that belong to whoever has the connection ------------------------------------ */
    /* the request of the query; its parameters are not copied, so it lives as long as the cursor */
    domus_sql_request request;
    sqlite3_stmt *prepared;
    bool has_row;   /* the statement stands at a row that is in no piece yet */
    bool is_writer; /* the statement writes, so reading the last piece commits */
    bool is_read;   /* the rows were read to their end, so the cursor is over */
} domi_sqlite_cursor;

typedef struct domi_sqlite_connection {
    const domi_sqlite_place *place;
    const domus_sql_options *options;
    uint32_t slot;
    bool is_reader; /* the connection only reads */
    /* --- the job ------------------------------------------------------------------------------ */
    domi_sqlite_task *tasks[DOMI_SQLITE_BATCH];
    uint32_t count;
    /* a helper thread has begun the job; when the actor sees this, the job has also ended */
    bool has_begun;
    /* the tasks of the job belong to no transaction, and are run as a group (group.c) */
    bool is_shared;
    bool rolls_back;          /* the job rolls back the open transaction before any task */
    bool closes;              /* the job closes the handle after all tasks */
    bool could_open;          /* the handle was open before the job, or the job could open it */
    domi_sqlite_cursor *over; /* cursors that are over, which the job ends before any task */
    uint64_t began_ns;        /* time at which the job began, by the clock of the helper thread */
    /* --- members of SQLite -------------------------------------------------------------------- */
    sqlite3 *handle; /* SQLite's handle of the connection; NULL: it is closed */
    sqlite3_stmt *own[DOMI_SQLITE_OWN];
    domi_sqlite_statements statements;
    uint64_t prepares;
    int pages; /* number of pages in the WAL after the last commit of this connection */
    /* number of pages in the WAL at which this connection copies it to the file */
    int checkpoint_at;
    bool in_group;   /* a transaction is open that the tasks of a group share */
    bool has_part;   /* the current task of the group has a savepoint in the group's transaction */
    bool reads_only; /* the open transaction may only read */
    bool has_failed; /* a statement of the open transaction has failed; `failure` says how */
    domus_sql_error failure;
    /* --- guards of the current statement ------------------------------------------------------ */
    /* the task whose time limits hold for the statement that runs; NULL: nothing ends it early */
    const domi_sqlite_task *guarded;
    uint64_t ends_ns;
    uint32_t busy_ms; /* ms for which a statement waits for a lock of another process */
    uint64_t busy_ns; /* time at which a statement's wait for a lock began */
    /* why the guards have refused to prepare the statement; NULL: they have not */
    const char *denied;
    /* the statement that is being prepared is one of the library, which may do anything */
    bool is_own;
    bool is_late; /* the statement was ended early because its time was over */
} domi_sqlite_connection;

/* --- handle.c --------------------------------------------------------------------------------- */

/* Open the handle of a connection, and configure it safely. Returns 0; or a result code of SQLite,
 * and `ret_error` tells why. */
int domi_sqlite_open_handle(domi_sqlite_connection *connection, domus_sql_error *ret_error);
void domi_sqlite_close_handle(domi_sqlite_connection *connection);

/* Run a statement of the library itself on a connection. Returns SQLITE_OK or another result
 * code. */
int domi_sqlite_run_statement_of_library(domi_sqlite_connection *connection,
                                         enum domi_sqlite_own which);

static inline bool domi_sqlite_is_in_transaction(const domi_sqlite_connection *connection)
{
    return sqlite3_get_autocommit(connection->handle) == 0;
}

/* Roll back the open transaction of a connection, if there is one. */
void domi_sqlite_roll_back_transaction(domi_sqlite_connection *connection);

/* Copy the WAL into the database's file if the WAL is long enough: `checkpoint_at` pages if the
 * connection is idle, otherwise DOMI_SQLITE_PAGES_FORCED pages. */
void domi_sqlite_checkpoint_wal_if_long(domi_sqlite_connection *connection, bool is_idle);

/* --- guard.c ---------------------------------------------------------------------------------- */

uint64_t domi_sqlite_clock_ns(void);

/* Install the functions that SQLite calls to check each statement: what it may do, and for how long
 * it may run. */
void domi_sqlite_install_guards(domi_sqlite_connection *connection);

/* Set the task whose time limits hold for all statements until the next call; NULL: no limits. */
void domi_sqlite_set_task_and_its_time_limit(domi_sqlite_connection *connection,
                                             const domi_sqlite_task *task);

/* --- failure.c -------------------------------------------------------------------------------- */

/* Describe the result of SQLite's last call on this connection as an error. `text` is the
 * statement, or NULL. */
domus_sql_error domi_sqlite_describe_failure(const domi_sqlite_connection *connection, int result,
                                             const char *text);

/* Fail a task with this error. Returns false, for callers that return it. */
bool domi_sqlite_set_failure_of_task(domi_sqlite_task *task, const domus_sql_error *error);

/* Fail a task with a result code of SQLite, or with an error of the library that has this text.
 * Both return false. */
bool domi_sqlite_fail_task_by_result_code(const domi_sqlite_connection *connection,
                                          domi_sqlite_task *task, int result);
bool domi_sqlite_fail_task_by_library(domi_sqlite_task *task, int error, const char *sqlstate,
                                      const char *words);

/* Mark a task that writes, on a connection that only reads, as bounced: it is passed to the
 * connection that writes, or fails. Returns false. */
bool domi_sqlite_bounce_or_fail_writing_task(const domi_sqlite_connection *connection,
                                             domi_sqlite_task *task);

/* --- claim.c ---------------------------------------------------------------------------------- */

/* Claim a task for this job. Returns false if nobody waits for the task any more, or its time has
 * passed. */
bool domi_sqlite_begin_task_if_still_wanted(domi_sqlite_connection *connection,
                                            domi_sqlite_task *task);

/* Returns whether the job of a connection has taken so long that its remaining tasks are left to
 * the next job. */
bool domi_sqlite_has_job_taken_long(const domi_sqlite_connection *connection);

/* --- statements.c ----------------------------------------------------------------------------- */

/* Prepare the statement of a request. With `may_keep` a statement that is a constant of the program
 * stays prepared for its next use. Returns false if this has failed the task. */
bool domi_sqlite_prepare_statement(domi_sqlite_connection *connection, domi_sqlite_task *task,
                                   const domus_sql_request *request, bool may_keep,
                                   domi_sqlite_prepared *ret_prepared);

/* Reset a prepared statement for its next use, or free it if it is not kept. */
void domi_sqlite_reset_or_finalize_statement(const domi_sqlite_prepared *prepared);

void domi_sqlite_free_kept_statements(domi_sqlite_connection *connection);

/* --- rows.c ----------------------------------------------------------------------------------- */

/* Bind the parameters of a request to its prepared statement. Returns false if this has failed the
 * task. */
bool domi_sqlite_bind_parameters(const domi_sqlite_connection *connection, domi_sqlite_task *task,
                                 const domus_sql_request *request, sqlite3_stmt *prepared);

/* Run a prepared statement to its end, and make the result. Returns false if this has failed the
 * task. */
bool domi_sqlite_run_prepared_statement(domi_sqlite_connection *connection, domi_sqlite_task *task,
                                        sqlite3_stmt *prepared);

/* Begin to read the rows of a task's cursor, and read the first piece. The task then has failed, or
 * has this piece as its result. */
void domi_sqlite_begin_to_read_rows(domi_sqlite_connection *connection, domi_sqlite_task *task);
void domi_sqlite_read_next_piece_of_rows(domi_sqlite_connection *connection,
                                         domi_sqlite_task *task);

/* End the statement of a cursor before all its rows were read. */
void domi_sqlite_end_statement_of_cursor(domi_sqlite_connection *connection,
                                         domi_sqlite_cursor *cursor);

/* --- run.c ------------------------------------------------------------------------------------ */

/* A function that is called before a task writes for the first time. Returns false if this has
 * failed the task. */
typedef bool domi_sqlite_before(domi_sqlite_connection *connection, domi_sqlite_task *task);

/* Run the query or script of a task. `before` may be NULL. Returns false when the task has failed,
 * or is bounced. */
bool domi_sqlite_run_query_or_script(domi_sqlite_connection *connection, domi_sqlite_task *task,
                                     domi_sqlite_before *before);

/* Returns whether a connection may only read now, because it is made so or because its transaction
 * is. */
static inline bool domi_sqlite_may_connection_only_read(const domi_sqlite_connection *connection,
                                                        const domi_sqlite_task *task)
{
    return connection->is_reader || connection->place->reads_only ||
           (task->transaction != 0 && connection->reads_only);
}

/* --- group.c ---------------------------------------------------------------------------------- */

/* Run the tasks of a job that belong to no transaction, and commit what they have written
 * (group.c). */
void domi_sqlite_run_tasks_as_group(domi_sqlite_connection *connection);

/* --- job.c ------------------------------------------------------------------------------------ */

/* Run the job of `connection`, a domi_sqlite_connection. Helper threads call this by
 * domus_blocking(). */
int domi_sqlite_run_job_on_helper(void *connection);

#endif
