/* A connection: a handle of SQLite, the job that it does, and what the helper thread knows of it.
 *
 * All here is the helper thread's while a job runs, and the actor's otherwise: the end of the job,
 * by which the actor gets it back, is the hand-over. One helper thread at a time uses a connection,
 * mostly another one than before. */
#ifndef DOMI_SQLITE_CONNECTION_H
#define DOMI_SQLITE_CONNECTION_H

#include "protocols/sqlite/place.h"
#include "protocols/sqlite/task.h"

#include <domus/supervise.h>

#include <sqlite3.h>

#define DOMI_SQLITE_BATCH         256u              /* tasks of a job */
#define DOMI_SQLITE_READS         32u               /* tasks of a job that reads */
#define DOMI_SQLITE_JOB_NS        UINT64_C(5000000) /* ns until a job begins no further task */
#define DOMI_SQLITE_PAGES         1000  /* pages at which the WAL is copied to the file */
#define DOMI_SQLITE_PAGES_FORCED  4000  /* pages at which it is copied even while queries wait */
#define DOMI_SQLITE_PAGES_RESTART 16000 /* pages at which the copy waits for readers */
#define DOMI_SQLITE_RESTART_MS    100   /* ms for which the copy waits for readers */
#define DOMI_SQLITE_WAL_BYTES     (64 * 1024 * 1024) /* bytes that the file of the WAL keeps */
#define DOMI_SQLITE_STEPS         1000 /* steps of SQLite between two looks at the time */

/* Statements of the connection itself. */
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
    struct domi_sqlite_kept *chain; /* in its bucket */
    struct domi_sqlite_kept *newer; /* the neighbour that was used later */
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
    /* --- the actor's -------------------------------------------------------------------------- */
    struct domi_sqlite_cursor *next; /* the next cursor of the connection */
    uint64_t number;
    domus_address owner;
    domus_watch watch;
    bool has_watch;
    bool is_ending;
    uint64_t used_ns;
    domi_sqlite_task *fetch; /* the fetch that waits or runs; NULL: none */
    uint64_t transaction;    /* 0: none */
    uint64_t timeout_ns;
    /* --- as the connection -------------------------------------------------------------------- */
    domus_sql_request request; /* its parameters are read where they lie */
    sqlite3_stmt *prepared;
    bool has_row;   /* one was stepped to, and is not in a piece yet */
    bool is_writer; /* the statement writes, and the last piece commits */
    bool is_read;   /* to its end */
} domi_sqlite_cursor;

typedef struct domi_sqlite_connection {
    const domi_sqlite_place *place;
    const domus_sql_options *options;
    uint32_t slot;
    bool is_reader; /* the connection never writes */
    /* --- the job ------------------------------------------------------------------------------ */
    domi_sqlite_task *tasks[DOMI_SQLITE_BATCH];
    uint32_t count;
    bool has_begun;           /* the job was begun, and by now has ended */
    bool is_shared;           /* the tasks hold nothing, and are run as a group */
    bool rolls_back;          /* first of all */
    bool closes;              /* last of all */
    bool could_open;          /* the job has found or made an open handle */
    domi_sqlite_cursor *over; /* cursors that end first */
    uint64_t began_ns;        /* of the clock of the helper thread */
    /* --- of SQLite ---------------------------------------------------------------------------- */
    sqlite3 *handle; /* NULL: it is closed */
    sqlite3_stmt *own[DOMI_SQLITE_OWN];
    domi_sqlite_statements statements;
    uint64_t prepares;
    int pages;         /* of the WAL after the last commit */
    int checkpoint_at; /* pages */
    bool in_group;     /* the transaction of a group is open */
    bool has_part;     /* the task that runs has a savepoint in it */
    bool reads_only;   /* the transaction that is open only reads */
    bool has_failed;   /* a statement of the transaction has; `failure` says how */
    domus_sql_error failure;
    /* --- guards of the statement that runs ---------------------------------------------------- */
    const domi_sqlite_task *guarded; /* NULL: nothing ends it early */
    uint64_t ends_ns;
    uint32_t busy_ms;   /* how long a lock is waited for */
    uint64_t busy_ns;   /* when the wait for a lock began */
    const char *denied; /* why it may not be prepared; NULL: it may */
    bool is_own;        /* statements of the library itself are prepared */
    bool is_late;       /* the statement was ended because its time was over */
} domi_sqlite_connection;

/* --- handle.c --------------------------------------------------------------------------------- */

/* Open the handle, and make it safe. Returns 0; or a result of SQLite, and `ret_error` says why. */
int domi_sqlite_open(domi_sqlite_connection *connection, domus_sql_error *ret_error);
void domi_sqlite_close(domi_sqlite_connection *connection);

/* Run a statement of the library itself. Returns SQLITE_OK or another result. */
int domi_sqlite_do(domi_sqlite_connection *connection, enum domi_sqlite_own which);

static inline bool domi_sqlite_is_in_transaction(const domi_sqlite_connection *connection)
{
    return sqlite3_get_autocommit(connection->handle) == 0;
}

/* Roll back, if there is what can be. */
void domi_sqlite_roll_back(domi_sqlite_connection *connection);

/* Copy the WAL into the file, if it has become long; even now if `is_idle`. */
void domi_sqlite_checkpoint(domi_sqlite_connection *connection, bool is_idle);

/* --- guard.c ---------------------------------------------------------------------------------- */

uint64_t domi_sqlite_now_ns(void);

/* Install what looks at each statement: who may do what, and for how long. */
void domi_sqlite_install_guards(domi_sqlite_connection *connection);

/* From now until the next call a task runs (NULL: none), for no longer than it may. */
void domi_sqlite_guard(domi_sqlite_connection *connection, const domi_sqlite_task *task);

/* --- failure.c -------------------------------------------------------------------------------- */

/* Say what SQLite says of its last result. `text`: the statement, or NULL. */
domus_sql_error domi_sqlite_describe(const domi_sqlite_connection *connection, int result,
                                     const char *text);

/* Give the task this failure. Returns false, for callers that end with it. */
bool domi_sqlite_fail(domi_sqlite_task *task, const domus_sql_error *error);

/* Let the task fail by a result of SQLite, or by words of the library. Return false, too. */
bool domi_sqlite_fail_as(const domi_sqlite_connection *connection, domi_sqlite_task *task,
                         int result);
bool domi_sqlite_refuse(domi_sqlite_task *task, int error, const char *sqlstate, const char *words);

/* The task writes, and this connection does not: it is for the one that does, or fails. Returns
 * false. */
bool domi_sqlite_bounce(const domi_sqlite_connection *connection, domi_sqlite_task *task);

/* --- claim.c -------------------------------------------------------------------------------- */

/* Take the task for this job. Returns false if nobody wants it any more, or its time has passed. */
bool domi_sqlite_claim(domi_sqlite_connection *connection, domi_sqlite_task *task);

/* Whether the job has taken so long that the tasks it has not begun are for another one. */
bool domi_sqlite_is_long(const domi_sqlite_connection *connection);

/* --- statements.c ----------------------------------------------------------------------------- */

/* Get the statement of a request prepared; a constant one is kept, if `may_keep`. Returns false,
 * and the task has failed. */
bool domi_sqlite_prepare(domi_sqlite_connection *connection, domi_sqlite_task *task,
                         const domus_sql_request *request, bool may_keep,
                         domi_sqlite_prepared *ret_prepared);

/* Make it ready for its next use, or free it if it is not kept. */
void domi_sqlite_put_back(const domi_sqlite_prepared *prepared);

void domi_sqlite_drop_statements(domi_sqlite_connection *connection);

/* --- rows.c ----------------------------------------------------------------------------------- */

/* Bind the parameters. Returns false, and the task has failed. */
bool domi_sqlite_bind(const domi_sqlite_connection *connection, domi_sqlite_task *task,
                      const domus_sql_request *request, sqlite3_stmt *prepared);

/* Step to the end, and make the result. Returns false, and the task has failed. */
bool domi_sqlite_run(domi_sqlite_connection *connection, domi_sqlite_task *task,
                     sqlite3_stmt *prepared);

/* Begin to read rows, and read a piece of them. The task fails, or has what it asks for. */
void domi_sqlite_begin_rows(domi_sqlite_connection *connection, domi_sqlite_task *task);
void domi_sqlite_fetch(domi_sqlite_connection *connection, domi_sqlite_task *task);

/* End a cursor before its end. */
void domi_sqlite_end_rows(domi_sqlite_connection *connection, domi_sqlite_cursor *cursor);

/* --- run.c ------------------------------------------------------------------------------------ */

/* A function that is called before a task writes. Returns false, and the task has failed. */
typedef bool domi_sqlite_before(domi_sqlite_connection *connection, domi_sqlite_task *task);

/* Run a query or a script. `before` may be NULL. Returns false when the task has failed, or is
 * bounced. */
bool domi_sqlite_run_query(domi_sqlite_connection *connection, domi_sqlite_task *task,
                           domi_sqlite_before *before);

/* Whether a task may only read here. */
static inline bool domi_sqlite_only_reads(const domi_sqlite_connection *connection,
                                          const domi_sqlite_task *task)
{
    return connection->is_reader || connection->place->reads_only ||
           (task->transaction != 0 && connection->reads_only);
}

/* --- group.c ---------------------------------------------------------------------------------- */

/* Run the tasks of the job, which are no part of a transaction, and commit what they write. */
void domi_sqlite_run_group(domi_sqlite_connection *connection);

/* --- job.c ------------------------------------------------------------------------------------ */

/* The job, for domus_blocking(). */
int domi_sqlite_work(void *connection);

#endif
