/* The job of a connection: the work of a helper thread between two turns of the actor. Tasks of a
 * transaction are run one by one, and other tasks as a group (group.c). Run by helper threads. */
#include "protocols/sqlite/connection.h"

#include <errno.h>

static void run_begin_of_transaction(domi_sqlite_connection *connection, domi_sqlite_task *task)
{
    int result = domi_sqlite_run_statement_of_library(
        connection, task->reads_only ? DOMI_SQLITE_BEGIN_READ : DOMI_SQLITE_BEGIN_WRITE);

    connection->has_failed = false;
    connection->reads_only = task->reads_only;
    if (result != SQLITE_OK)
        (void)domi_sqlite_fail_task_by_result_code(connection, task, result);
}

static void run_end_of_transaction(domi_sqlite_connection *connection, domi_sqlite_task *task)
{
    int result = SQLITE_OK;

    domi_sqlite_set_task_and_its_time_limit(connection, NULL);
    if (task->verb == DOMI_SQLITE_COMMIT && connection->has_failed)
        (void)domi_sqlite_set_failure_of_task(task, &connection->failure);
    else if (task->verb == DOMI_SQLITE_COMMIT)
        result = domi_sqlite_run_statement_of_library(connection, DOMI_SQLITE_COMMITS);
    if (result != SQLITE_OK)
        (void)domi_sqlite_fail_task_by_result_code(connection, task, result);
    /* after a commit there is nothing to roll back, and this does nothing */
    domi_sqlite_roll_back_transaction(connection);
    if (task->failure == NULL && task->error == 0) {
        task->result.last = true;
        task->has_result = true;
    }
}

/* Record in a connection that a statement of its transaction has failed, so that only the
 * transaction's end is possible. */
static void mark_transaction_of_connection_failed(domi_sqlite_connection *connection,
                                                  const domi_sqlite_task *task)
{
    connection->has_failed = true;
    connection->failure =
        task->failure != NULL
            ? *task->failure
            : domus_sql_error_make(task->error, "25P02", "a statement of the transaction failed");
}

static void run_task_by_its_verb(domi_sqlite_connection *connection, domi_sqlite_task *task)
{
    switch (task->verb) {
    case DOMI_SQLITE_QUERY:
    case DOMI_SQLITE_SCRIPT:
        (void)domi_sqlite_run_query_or_script(connection, task, NULL);
        break;
    case DOMI_SQLITE_ROWS:
        domi_sqlite_begin_to_read_rows(connection, task);
        break;
    case DOMI_SQLITE_FETCH:
        domi_sqlite_read_next_piece_of_rows(connection, task);
        break;
    case DOMI_SQLITE_BEGIN:
        run_begin_of_transaction(connection, task);
        break;
    case DOMI_SQLITE_COMMIT:
    case DOMI_SQLITE_ROLLBACK:
        run_end_of_transaction(connection, task);
        break;
    }
}

/* Run a task that is part of a transaction, or by which a transaction or rows begin to hold the
 * connection. */
static void run_task_that_holds_connection(domi_sqlite_connection *connection,
                                           domi_sqlite_task *task)
{
    bool is_part = domi_sqlite_is_part_of_transaction(task);

    if (is_part && connection->has_failed) {
        if (task->verb == DOMI_SQLITE_FETCH)
            domi_sqlite_end_statement_of_cursor(connection, task->cursor);
        (void)domi_sqlite_fail_task_by_library(task, -EINVAL, "25P02",
                                               "a statement of this transaction has failed before");
        return;
    }
    domi_sqlite_set_task_and_its_time_limit(connection, task);
    run_task_by_its_verb(connection, task);
    domi_sqlite_set_task_and_its_time_limit(connection, NULL);
    if (is_part && (task->failure != NULL || task->error != 0))
        mark_transaction_of_connection_failed(connection, task);
}

/* Record in a connection that a task of its transaction was not run, because its time had passed or
 * its asker is gone. */
static void fail_transaction_of_unrun_task(domi_sqlite_connection *connection,
                                           const domi_sqlite_task *task)
{
    static const domi_sqlite_task gone = {.error = -ECANCELED};
    bool is_ours =
        domi_sqlite_stage_of_task(task) == DOMI_SQLITE_AT(DOMI_SQLITE_RUNS, connection->slot);

    if (domi_sqlite_is_part_of_transaction(task) && !connection->has_failed)
        /* a task whose asker is gone belongs to the actor, so the helper thread does not read it */
        mark_transaction_of_connection_failed(connection, is_ours ? task : &gone);
}

/* Fail all tasks of a job, because the handle could not be opened. */
static void fail_all_tasks_without_handle(domi_sqlite_connection *connection,
                                          const domus_sql_error *error)
{
    for (uint32_t i = 0; i < connection->count; i++) {
        if (domi_sqlite_begin_task_if_still_wanted(connection, connection->tasks[i]))
            (void)domi_sqlite_set_failure_of_task(connection->tasks[i], error);
    }
}

/* End the cursors that nobody reads any more, and roll back a transaction that nobody ends. */
static void end_abandoned_rows_and_transaction(domi_sqlite_connection *connection)
{
    for (domi_sqlite_cursor *cursor = connection->over; cursor != NULL; cursor = cursor->next)
        domi_sqlite_end_statement_of_cursor(connection, cursor);
    if (connection->rolls_back)
        domi_sqlite_roll_back_transaction(connection);
}

int domi_sqlite_run_job_on_helper(void *argument)
{
    domi_sqlite_connection *connection = argument;
    domus_sql_error error;

    connection->has_begun = true;
    connection->began_ns = domi_sqlite_clock_ns();
    end_abandoned_rows_and_transaction(connection);
    connection->could_open = connection->handle != NULL || connection->closes ||
                             domi_sqlite_open_handle(connection, &error) == SQLITE_OK;
    if (!connection->could_open) {
        connection->failure = error;
        fail_all_tasks_without_handle(connection, &error);
        return 0;
    }
    domi_sqlite_checkpoint_wal_if_long(connection, connection->count == 0);
    if (connection->is_shared)
        domi_sqlite_run_tasks_as_group(connection);
    else
        for (uint32_t i = 0; i < connection->count; i++) {
            if (domi_sqlite_begin_task_if_still_wanted(connection, connection->tasks[i]))
                run_task_that_holds_connection(connection, connection->tasks[i]);
            else
                fail_transaction_of_unrun_task(connection, connection->tasks[i]);
        }
    if (connection->closes)
        domi_sqlite_close_handle(connection);
    return 0;
}
