/* Runs queries and scripts on a connection, within its open transaction if there is one. Run by
 * helper threads. */
#include "protocols/sqlite/connection.h"

#include <errno.h>

/* Run a prepared statement for a task. */
static bool run_prepared_for_task(domi_sqlite_connection *connection, domi_sqlite_task *task,
                                  sqlite3_stmt *statement, domi_sqlite_before *before)
{
    if (sqlite3_stmt_readonly(statement) == 0) {
        if (domi_sqlite_may_connection_only_read(connection, task))
            return domi_sqlite_bounce_or_fail_writing_task(connection, task);
        if (before != NULL && !before(connection, task))
            return false;
    }
    return domi_sqlite_bind_parameters(connection, task, &task->request, statement) &&
           domi_sqlite_run_prepared_statement(connection, task, statement);
}

static bool run_query_of_task(domi_sqlite_connection *connection, domi_sqlite_task *task,
                              domi_sqlite_before *before)
{
    domi_sqlite_prepared prepared;

    if (!domi_sqlite_prepare_statement(connection, task, &task->request, true, &prepared))
        return false;
    bool is_done = run_prepared_for_task(connection, task, prepared.statement, before);
    domi_sqlite_reset_or_finalize_statement(&prepared);
    return is_done;
}

/* Run the statements of a task's script, one after the other. Their rows are not kept. */
static bool run_script_of_task(domi_sqlite_connection *connection, domi_sqlite_task *task,
                               domi_sqlite_before *before)
{
    const char *rest = domus_sql_request_text(&task->request);

    if (domi_sqlite_may_connection_only_read(connection, task))
        return domi_sqlite_bounce_or_fail_writing_task(connection, task);
    if (before != NULL && !before(connection, task))
        return false;
    while (*rest != '\0') {
        sqlite3_stmt *statement = NULL;
        connection->denied = NULL;
        int result = sqlite3_prepare_v2(connection->handle, rest, -1, &statement, &rest);

        connection->prepares++;
        if (result != SQLITE_OK)
            return domi_sqlite_fail_task_by_result_code(connection, task, result);
        if (sqlite3_bind_parameter_count(statement) != 0) {
            (void)sqlite3_finalize(statement);
            return domi_sqlite_fail_task_by_library(task, -EINVAL, "07001",
                                                    "a script has no parameters");
        }
        do
            result = statement != NULL ? sqlite3_step(statement) : SQLITE_DONE;
        while (result == SQLITE_ROW);
        if (result != SQLITE_DONE) {
            bool is_done = domi_sqlite_fail_task_by_result_code(connection, task, result);
            (void)sqlite3_finalize(statement);
            return is_done;
        }
        (void)sqlite3_finalize(statement);
    }
    task->result.last = true;
    task->has_result = true;
    return true;
}

bool domi_sqlite_run_query_or_script(domi_sqlite_connection *connection, domi_sqlite_task *task,
                                     domi_sqlite_before *before)
{
    return task->verb == DOMI_SQLITE_SCRIPT ? run_script_of_task(connection, task, before)
                                            : run_query_of_task(connection, task, before);
}
