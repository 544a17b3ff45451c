/* How a job claims its tasks, one after the other, until it has taken long enough. Run by helper
 * threads. */
#include "protocols/sqlite/connection.h"

#include <errno.h>

bool domi_sqlite_begin_task_if_still_wanted(domi_sqlite_connection *connection,
                                            domi_sqlite_task *task)
{
    return domi_sqlite_move_task_if_in_stage(task,
                                             DOMI_SQLITE_AT(DOMI_SQLITE_GIVEN, connection->slot),
                                             DOMI_SQLITE_AT(DOMI_SQLITE_RUNS, connection->slot)) &&
           (task->within_ns != 0 ||
            domi_sqlite_fail_task_by_library(task, -ETIMEDOUT, "57014",
                                             "its time had passed before it began"));
}

bool domi_sqlite_has_job_taken_long(const domi_sqlite_connection *connection)
{
    return domi_sqlite_clock_ns() - connection->began_ns >= DOMI_SQLITE_JOB_NS;
}
