/* The group commit: writes that wait for the connection are run in one transaction, each within a
 * savepoint, and share the commit and its wait for the disk. A write that fails is rolled back
 * alone.
 *
 * Some failures roll back the whole transaction: a time-out, a full disk, ON CONFLICT ROLLBACK,
 * a commit that fails. Nothing of the group has happened then, so each other task of it is run
 * again in its own transaction. Run by helper threads. */
#include "protocols/sqlite/connection.h"

#include <errno.h>

/* Returns whether a foreign key has no target after the current task, which SQLite itself would
 * report only at the commit of the whole group. */
static bool has_broken_foreign_keys(const domi_sqlite_connection *connection)
{
    int now = 0, most = 0;

    return sqlite3_db_status(connection->handle, SQLITE_DBSTATUS_DEFERRED_FKS, &now, &most, 0) ==
               SQLITE_OK &&
           now != 0;
}

/* Begin the transaction of the group if there is none, and the savepoint of this task in it. */
static bool begin_savepoint_of_task(domi_sqlite_connection *connection, domi_sqlite_task *task)
{
    int result = SQLITE_OK;

    if (!connection->in_group)
        result = domi_sqlite_run_statement_of_library(connection, DOMI_SQLITE_BEGIN_WRITE);
    if (result != SQLITE_OK)
        return domi_sqlite_fail_task_by_result_code(connection, task, result);
    connection->in_group = true;
    result = domi_sqlite_run_statement_of_library(connection, DOMI_SQLITE_SAVES);
    if (result != SQLITE_OK)
        return domi_sqlite_fail_task_by_result_code(connection, task, result);
    connection->has_part = true;
    return true;
}

/* End the savepoint of a task in its group: keep the task's changes if `is_done`, otherwise undo
 * them. If the transaction of the group is lost, the task has failed. Returns whether the group's
 * transaction goes on. */
static bool end_savepoint_of_task(domi_sqlite_connection *connection, domi_sqlite_task *task,
                                  bool is_done)
{
    int result = SQLITE_ABORT;

    if (domi_sqlite_is_in_transaction(connection)) {
        domi_sqlite_set_task_and_its_time_limit(connection, NULL);
        result = is_done ? SQLITE_OK
                         : domi_sqlite_run_statement_of_library(connection, DOMI_SQLITE_UNDOES);
        if (result == SQLITE_OK)
            result = domi_sqlite_run_statement_of_library(connection, DOMI_SQLITE_RELEASES);
    }
    if (result != SQLITE_OK && is_done)
        (void)domi_sqlite_fail_task_by_result_code(connection, task, result);
    domi_sqlite_set_task_and_its_time_limit(connection, NULL);
    return result == SQLITE_OK;
}

/* Run one task of the group within a savepoint. Returns false if the group's transaction is lost by
 * it. */
static bool run_task_within_savepoint(domi_sqlite_connection *connection, domi_sqlite_task *task)
{
    domi_sqlite_set_task_and_its_time_limit(connection, task);
    bool is_done = domi_sqlite_run_query_or_script(connection, task, begin_savepoint_of_task);
    bool is_part = connection->has_part;

    connection->has_part = false;
    /* in a group a result holds only after the commit, even if the task has only read */
    task->is_grouped = connection->in_group;
    if (is_done && is_part && has_broken_foreign_keys(connection))
        is_done = domi_sqlite_fail_task_by_library(task, domus_sql_errno("23503"), "23503",
                                                   "FOREIGN KEY constraint failed");
    if (is_part)
        return end_savepoint_of_task(connection, task, is_done);
    /* a task that only reads, or that could not begin to write, has no savepoint to end */
    domi_sqlite_set_task_and_its_time_limit(connection, NULL);
    return !connection->in_group || domi_sqlite_is_in_transaction(connection);
}

/* Commit the transaction of the group. Returns false if that fails; then the transaction is rolled
 * back, and `task`, unless that is NULL, has failed. */
static bool commit_transaction_of_group(domi_sqlite_connection *connection, domi_sqlite_task *task)
{
    if (!connection->in_group)
        return true;
    connection->in_group = false;
    int result = domi_sqlite_run_statement_of_library(connection, DOMI_SQLITE_COMMITS);
    if (result == SQLITE_OK)
        return true;
    if (task != NULL)
        (void)domi_sqlite_fail_task_by_result_code(connection, task, result);
    domi_sqlite_roll_back_transaction(connection);
    return false;
}

/* Run a task of the group in a transaction of its own. */
static void run_task_in_own_transaction(domi_sqlite_connection *connection, domi_sqlite_task *task)
{
    if (!run_task_within_savepoint(connection, task)) {
        connection->in_group = false;
        domi_sqlite_roll_back_transaction(connection);
        return;
    }
    (void)commit_transaction_of_group(connection, task);
}

/* Run the tasks of a group whose transaction was lost again: the first `count` tasks of the job
 * have lost their changes. `cause`, which has failed, is not run again. */
static void roll_back_and_run_group_tasks_again(domi_sqlite_connection *connection, uint32_t count,
                                                const domi_sqlite_task *cause)
{
    connection->in_group = false;
    domi_sqlite_roll_back_transaction(connection);
    for (uint32_t i = 0; i < count; i++) {
        domi_sqlite_task *task = connection->tasks[i];

        if (!task->is_grouped || task == cause ||
            domi_sqlite_stage_of_task(task) != DOMI_SQLITE_AT(DOMI_SQLITE_RUNS, connection->slot))
            continue;
        domi_sqlite_clear_outcome_of_task(task);
        run_task_in_own_transaction(connection, task);
    }
}

/* Run the tasks of a job that only reads. All were asked before the job began, so they may see the
 * same state of the file in one transaction, which takes the file's locks only once. */
static void run_reading_tasks_together(domi_sqlite_connection *connection)
{
    if (connection->count > 1)
        (void)domi_sqlite_run_statement_of_library(connection,
                                                   /* if this transaction cannot be begun, each task
                                                    * reads in its own one */
                                                   DOMI_SQLITE_BEGIN_READ);
    for (uint32_t i = 0; i < connection->count; i++) {
        if (i != 0 && domi_sqlite_has_job_taken_long(connection))
            break;
        if (domi_sqlite_begin_task_if_still_wanted(connection, connection->tasks[i]))
            (void)run_task_within_savepoint(connection, connection->tasks[i]);
    }
    domi_sqlite_roll_back_transaction(connection);
}

void domi_sqlite_run_tasks_as_group(domi_sqlite_connection *connection)
{
    uint32_t count = 0;

    if (connection->is_reader) {
        run_reading_tasks_together(connection);
        return;
    }
    for (; count < connection->count; count++) {
        domi_sqlite_task *task = connection->tasks[count];

        if (count != 0 && domi_sqlite_has_job_taken_long(connection))
            break;
        if (!domi_sqlite_begin_task_if_still_wanted(connection, task))
            continue;
        if (!run_task_within_savepoint(connection, task)) {
            roll_back_and_run_group_tasks_again(connection, count, task);
            return;
        }
    }
    domi_sqlite_task *only = count == 1 ? connection->tasks[0] : NULL;
    if (!commit_transaction_of_group(connection, only) && only == NULL)
        roll_back_and_run_group_tasks_again(connection, count, NULL);
}
