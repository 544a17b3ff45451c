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

#define DOMI_SQLITE_BATCH         256u              /* tasks of a job, at most */
#define DOMI_SQLITE_READS         32u               /* tasks of a job that reads, at most */
#define DOMI_SQLITE_JOB_NS        UINT64_C(5000000) /* ns until a job begins no further task */
#define DOMI_SQLITE_PAGES         1000  /* pages at which the WAL is copied to the file */
#define DOMI_SQLITE_PAGES_FORCED  4000  /* pages at which it is copied even while queries wait */
#define DOMI_SQLITE_PAGES_RESTART 16000 /* pages at which the copy waits for readers */
#define DOMI_SQLITE_RESTART_MS    100   /* ms for which the copy waits for readers */
#define DOMI_SQLITE_WAL_BYTES     (64 * 1024 * 1024) /* bytes that the file of the WAL keeps */
#define DOMI_SQLITE_STEPS         1000 /* steps of SQLite between two looks at the time */

/* Statements that the library itself runs on a connection. */
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

/* A statement of the program that is kept prepared. */
typedef struct domi_sqlite_kept {
    const domus_sql_statement *statement;
    sqlite3_stmt *prepared;
    struct domi_sqlite_kept *chain; /* the next statement in the same bucket */
    struct domi_sqlite_kept *newer; /* the statement that was used next after this one */
    struct domi_sqlite_kept *older;
    uint32_t parameters;
} domi_sqlite_kept;

/* A statement that is about to run. */
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

/* Rows that are read in pieces. */
typedef struct domi_sqlite_cursor {
    /* --- members of the actor ----------------------------------------------------------------- */
    struct domi_sqlite_cursor *next; /* the next cursor of the connection */
    uint64_t number;
    domus_address owner;
    domus_watch watch;
    bool has_watch;
    bool is_ending;
    uint64_t used_ns;
    domi_sqlite_task *fetch; /* the fetch that waits or runs; NULL: none */
    uint64_t transaction;    /* transaction in which the rows are read; 0: none */
    uint64_t timeout_ns;
    /* --- members that belong to whoever has the connection ------------------------------------ */
    /* the request; its parameters are not copied, so it lives as long as the rows */
    domus_sql_request request;
    sqlite3_stmt *prepared;
    bool has_row;   /* the statement has a current row that is in no piece yet */
    bool is_writer; /* the statement writes, so the last piece commits */
    bool is_read;   /* the rows were read to their end */
} domi_sqlite_cursor;

typedef struct domi_sqlite_connection {
    const domi_sqlite_place *place;
    const domus_sql_options *options;
    uint32_t slot;
    bool is_reader; /* the connection never writes */
    /* --- the job ------------------------------------------------------------------------------ */
    domi_sqlite_task *tasks[DOMI_SQLITE_BATCH];
    uint32_t count;
    bool has_begun;           /* the job was begun, so it has also ended when the actor looks */
    bool is_shared;           /* the tasks belong to no transaction, and are run as a group */
    bool rolls_back;          /* roll back before any task */
    bool closes;              /* close the handle after all tasks */
    bool could_open;          /* the handle was open, or the job has opened it */
    domi_sqlite_cursor *over; /* cursors that the job ends before any task */
    uint64_t began_ns;        /* time at which the job began, by the clock of the helper thread */
    /* --- members of SQLite -------------------------------------------------------------------- */
    sqlite3 *handle; /* handle of SQLite; NULL: it is closed */
    sqlite3_stmt *own[DOMI_SQLITE_OWN];
    domi_sqlite_statements statements;
    uint64_t prepares;
    int pages;         /* pages of the WAL after the last commit */
    int checkpoint_at; /* pages of the WAL at which it is copied to the file */
    bool in_group;     /* the transaction of a group is open */
    bool has_part;     /* the current task has a savepoint in the group's transaction */
    bool reads_only;   /* the open transaction only reads */
    bool has_failed;   /* a statement of the transaction has failed; `failure` says how */
    domus_sql_error failure;
    /* --- guards of the current statement ------------------------------------------------------ */
    /* task whose limits hold for the statement; NULL: nothing ends it early */
    const domi_sqlite_task *guarded;
    uint64_t ends_ns;
    uint32_t busy_ms;   /* ms for which a lock is waited for */
    uint64_t busy_ns;   /* time at which the wait for a lock began */
    const char *denied; /* reason why a statement may not be prepared; NULL: it may */
    bool is_own;        /* the statement that is prepared is the library's own */
    bool is_late;       /* the statement was ended because its time was over */
} domi_sqlite_connection;

/* --- handle.c --------------------------------------------------------------------------------- */

/* Open the handle, and configure it safely. Returns 0; or a result code of SQLite, and `ret_error`
 * tells why. */
int domi_sqlite_open(domi_sqlite_connection *connection, domus_sql_error *ret_error);
void domi_sqlite_close(domi_sqlite_connection *connection);

/* Run a statement of the library itself. Returns SQLITE_OK or another result code. */
int domi_sqlite_do(domi_sqlite_connection *connection, enum domi_sqlite_own which);

static inline bool domi_sqlite_is_in_transaction(const domi_sqlite_connection *connection)
{
    return sqlite3_get_autocommit(connection->handle) == 0;
}

/* Roll back the open transaction, if there is one. */
void domi_sqlite_roll_back(domi_sqlite_connection *connection);

/* Copy the WAL into the file if it has become long; with `is_idle` also if it is short. */
void domi_sqlite_checkpoint(domi_sqlite_connection *connection, bool is_idle);

/* --- guard.c ---------------------------------------------------------------------------------- */

uint64_t domi_sqlite_now_ns(void);

/* Install the callbacks that check each statement: what it may do, and for how long it may run. */
void domi_sqlite_install_guards(domi_sqlite_connection *connection);

/* Set the task whose limits hold from now until the next call; NULL: no limits. */
void domi_sqlite_guard(domi_sqlite_connection *connection, const domi_sqlite_task *task);

/* --- failure.c -------------------------------------------------------------------------------- */

/* Describe SQLite's last result as an error. `text` is the statement, or NULL. */
domus_sql_error domi_sqlite_describe(const domi_sqlite_connection *connection, int result,
                                     const char *text);

/* Fail the task with this error. Returns false, for callers that return it. */
bool domi_sqlite_fail(domi_sqlite_task *task, const domus_sql_error *error);

/* Fail the task with a result code of SQLite, or with an error text of the library. Both return
 * false. */
bool domi_sqlite_fail_as(const domi_sqlite_connection *connection, domi_sqlite_task *task,
                         int result);
bool domi_sqlite_refuse(domi_sqlite_task *task, int error, const char *sqlstate, const char *words);

/* Bounce a task that writes from a connection that only reads: it is done by the connection that
 * writes, or fails. Returns false. */
bool domi_sqlite_bounce(const domi_sqlite_connection *connection, domi_sqlite_task *task);

/* --- claim.c ---------------------------------------------------------------------------------- */

/* Claim the task for this job. Returns false if nobody waits for it any more, or its time has
 * passed. */
bool domi_sqlite_claim(domi_sqlite_connection *connection, domi_sqlite_task *task);

/* Returns whether the job has taken so long that its remaining tasks are left to the next job. */
bool domi_sqlite_is_long(const domi_sqlite_connection *connection);

/* --- statements.c ----------------------------------------------------------------------------- */

/* Prepare the statement of a request; a constant one is kept prepared if `may_keep`. Returns false
 * if the task has failed. */
bool domi_sqlite_prepare(domi_sqlite_connection *connection, domi_sqlite_task *task,
                         const domus_sql_request *request, bool may_keep,
                         domi_sqlite_prepared *ret_prepared);

/* Reset a statement for its next use, or free it if it is not kept. */
void domi_sqlite_put_back(const domi_sqlite_prepared *prepared);

void domi_sqlite_drop_statements(domi_sqlite_connection *connection);

/* --- rows.c ----------------------------------------------------------------------------------- */

/* Bind the parameters of a request. Returns false if the task has failed. */
bool domi_sqlite_bind(const domi_sqlite_connection *connection, domi_sqlite_task *task,
                      const domus_sql_request *request, sqlite3_stmt *prepared);

/* Run a statement to its end, and make the result. Returns false if the task has failed. */
bool domi_sqlite_run(domi_sqlite_connection *connection, domi_sqlite_task *task,
                     sqlite3_stmt *prepared);

/* Begin to read rows, and read the first piece. The task fails, or has the piece as its result. */
void domi_sqlite_begin_rows(domi_sqlite_connection *connection, domi_sqlite_task *task);
void domi_sqlite_fetch(domi_sqlite_connection *connection, domi_sqlite_task *task);

/* End a cursor before all its rows were read. */
void domi_sqlite_end_rows(domi_sqlite_connection *connection, domi_sqlite_cursor *cursor);

/* --- run.c ------------------------------------------------------------------------------------ */

/* A function that is called before a task writes. Returns false if the task has failed. */
typedef bool domi_sqlite_before(domi_sqlite_connection *connection, domi_sqlite_task *task);

/* Run a query or a script. `before` may be NULL. Returns false when the task has failed, or is
 * bounced. */
bool domi_sqlite_run_query(domi_sqlite_connection *connection, domi_sqlite_task *task,
                           domi_sqlite_before *before);

/* Returns whether a task may only read, because of its connection or its transaction. */
static inline bool domi_sqlite_only_reads(const domi_sqlite_connection *connection,
                                          const domi_sqlite_task *task)
{
    return connection->is_reader || connection->place->reads_only ||
           (task->transaction != 0 && connection->reads_only);
}

/* --- group.c ---------------------------------------------------------------------------------- */

/* Run the tasks of a job that belong to no transaction, and commit what they have written. */
void domi_sqlite_run_group(domi_sqlite_connection *connection);

/* --- job.c ------------------------------------------------------------------------------------ */

/* Run the job of a connection, which is `connection`, by domus_blocking(). */
int domi_sqlite_work(void *connection);

#endif
