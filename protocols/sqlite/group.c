/* The group commit: writes that wait for the connection are run in one transaction, each behind a
 * savepoint, and share the commit and its wait for the disk. One that fails is rolled back alone.
 *
 * Some failures take the whole transaction with them: a time-out, a full disk, ON CONFLICT
 * ROLLBACK, a commit that fails. Nothing of the group has happened then, so each of its other tasks
 * is run again, in a transaction of its own. Helper threads. */
#include "protocols/sqlite/connection.h"

#include <errno.h>

/* Whether a foreign key points nowhere, which SQLite would say only at the commit of the group. */
static bool has_broken_keys(const domi_sqlite_connection *connection)
{
    int now = 0, most = 0;

    return sqlite3_db_status(connection->handle, SQLITE_DBSTATUS_DEFERRED_FKS, &now, &most, 0) ==
               SQLITE_OK &&
           now != 0;
}

/* Begin the transaction of the group if there is none, and the part of it that is this task's. */
static bool begin_part(domi_sqlite_connection *connection, domi_sqlite_task *task)
{
    int result = SQLITE_OK;

    if (!connection->in_group)
        result = domi_sqlite_do(connection, DOMI_SQLITE_BEGIN_WRITE);
    if (result != SQLITE_OK)
        return domi_sqlite_fail_as(connection, task, result);
    connection->in_group = true;
    result = domi_sqlite_do(connection, DOMI_SQLITE_SAVES);
    if (result != SQLITE_OK)
        return domi_sqlite_fail_as(connection, task, result);
    connection->has_part = true;
    return true;
}

/* End the part. Returns false if the transaction of the group is lost; then the task has failed. */
static bool end_part(domi_sqlite_connection *connection, domi_sqlite_task *task, bool is_done)
{
    int result = SQLITE_ABORT;

    if (domi_sqlite_is_in_transaction(connection)) {
        domi_sqlite_guard(connection, NULL);
        result = is_done ? SQLITE_OK : domi_sqlite_do(connection, DOMI_SQLITE_UNDOES);
        if (result == SQLITE_OK)
            result = domi_sqlite_do(connection, DOMI_SQLITE_RELEASES);
    }
    if (result != SQLITE_OK && is_done)
        (void)domi_sqlite_fail_as(connection, task, result);
    domi_sqlite_guard(connection, NULL);
    return result == SQLITE_OK;
}

/* Run one task. Returns false if the transaction of the group is lost because of it. */
static bool run_part(domi_sqlite_connection *connection, domi_sqlite_task *task)
{
    domi_sqlite_guard(connection, task);
    bool is_done = domi_sqlite_run_query(connection, task, begin_part);
    bool is_part = connection->has_part;

    connection->has_part = false;
    task->is_grouped = connection->in_group; /* what it has read, too, is so after the commit */
    if (is_done && is_part && has_broken_keys(connection))
        is_done = domi_sqlite_refuse(task, domus_sql_errno("23503"), "23503",
                                     "FOREIGN KEY constraint failed");
    if (is_part)
        return end_part(connection, task, is_done);
    /* A task that only reads, or could not begin to write, has no part. */
    domi_sqlite_guard(connection, NULL);
    return !connection->in_group || domi_sqlite_is_in_transaction(connection);
}

/* Commit what there is. Returns false if it could not be; then it is rolled back, and `task` (NULL:
 * none) has failed. */
static bool commit_group(domi_sqlite_connection *connection, domi_sqlite_task *task)
{
    if (!connection->in_group)
        return true;
    connection->in_group = false;
    int result = domi_sqlite_do(connection, DOMI_SQLITE_COMMITS);
    if (result == SQLITE_OK)
        return true;
    if (task != NULL)
        (void)domi_sqlite_fail_as(connection, task, result);
    domi_sqlite_roll_back(connection);
    return false;
}

/* Run a task in a transaction of its own. */
static void run_alone(domi_sqlite_connection *connection, domi_sqlite_task *task)
{
    if (!run_part(connection, task)) {
        connection->in_group = false;
        domi_sqlite_roll_back(connection);
        return;
    }
    (void)commit_group(connection, task);
}

/* The transaction is lost, and with it what the first `count` tasks have written; `cause` has its
 * failure. */
static void run_tasks_again(domi_sqlite_connection *connection, uint32_t count,
                            const domi_sqlite_task *cause)
{
    connection->in_group = false;
    domi_sqlite_roll_back(connection);
    for (uint32_t i = 0; i < count; i++) {
        domi_sqlite_task *task = connection->tasks[i];

        if (!task->is_grouped || task == cause ||
            domi_sqlite_stage_of(task) != DOMI_SQLITE_AT(DOMI_SQLITE_RUNS, connection->slot))
            continue;
        domi_sqlite_clear_outcome(task);
        run_alone(connection, task);
    }
}

/* Run the tasks of a connection that reads. All were asked before the job began, so they may see
 * one state of the file, and share the locks that a state takes. */
static void run_reads(domi_sqlite_connection *connection)
{
    if (connection->count > 1)
        (void)domi_sqlite_do(
            connection,
            DOMI_SQLITE_BEGIN_READ); /* without a common transaction each read has its own */
    for (uint32_t i = 0; i < connection->count; i++) {
        if (i != 0 && domi_sqlite_is_long(connection))
            break;
        if (domi_sqlite_claim(connection, connection->tasks[i]))
            (void)run_part(connection, connection->tasks[i]);
    }
    domi_sqlite_roll_back(connection);
}

void domi_sqlite_run_group(domi_sqlite_connection *connection)
{
    uint32_t count = 0;

    if (connection->is_reader) {
        run_reads(connection);
        return;
    }
    for (; count < connection->count; count++) {
        domi_sqlite_task *task = connection->tasks[count];

        if (count != 0 && domi_sqlite_is_long(connection))
            break;
        if (!domi_sqlite_claim(connection, task))
            continue;
        if (!run_part(connection, task)) {
            run_tasks_again(connection, count, task);
            return;
        }
    }
    domi_sqlite_task *only = count == 1 ? connection->tasks[0] : NULL;
    if (!commit_group(connection, only) && only == NULL)
        run_tasks_again(connection, count, NULL);
}
