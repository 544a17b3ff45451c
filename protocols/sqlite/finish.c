/* The end of a job: its tasks are answered or wait again, and transactions and cursors begin or
 * end. */
#include "protocols/sqlite/database.h"

#include <errno.h>

static bool has_task_failed(const domi_sqlite_task *task)
{
    return task->failure != NULL || task->error != 0;
}

/* Remember that the statement of a task writes, so that the next guess about it is right. */
static void remember_writing_statement(domi_sqlite_database *database, const domi_sqlite_task *task)
{
    const domus_sql_statement *statement =
        task->cursor != NULL ? task->cursor->request.statement : task->request.statement;

    if (statement != NULL)
        database->known[domi_sqlite_place_of_known_statement(statement)] = statement;
}

/* Let a task wait again at the beginning of its queue, before all tasks that came later. */
static void requeue_task_at_begin_of_queue(domi_sqlite_task *task, domi_sqlite_queue *queue)
{
    /* Relaxed: a task whose job has ended is used by the actor alone. */
    atomic_store_explicit(&task->stage, DOMI_SQLITE_WAITS, memory_order_relaxed);
    domi_sqlite_queue_add_first(queue, task);
}

static void hold_connection_and_deliver_begin(domus_stack *stack, domi_sqlite_database *database,
                                              domi_sqlite_slot *slot, domi_sqlite_task *task)
{
    bool has_begun = !has_task_failed(task);

    if (has_begun)
        domi_sqlite_hold_slot_for_transaction(stack, database, slot, task);
    if (!domi_sqlite_finish_task_and_wake_asker(stack, database, task) && has_begun)
        domi_sqlite_plan_rollback_of_transaction(stack, database, slot);
}

/* Handle the outcome of a commit or rollback. It may not have run, because its time was over or
 * there was no job. Then the transaction is still open, and the next job rolls it back. */
static void end_hold_and_deliver_end(domus_stack *stack, domi_sqlite_database *database,
                                     domi_sqlite_slot *slot, domi_sqlite_task *task)
{
    sqlite3 *handle = slot->connection->handle;

    if (has_task_failed(task) && handle != NULL && !sqlite3_get_autocommit(handle))
        domi_sqlite_plan_rollback_of_transaction(stack, database, slot);
    else
        domi_sqlite_release_slot_of_transaction(stack, database, slot);
    (void)domi_sqlite_finish_task_and_wake_asker(stack, database, task);
}

static void add_cursor_and_deliver_first_rows(domus_stack *stack, domi_sqlite_database *database,
                                              domi_sqlite_slot *slot, domi_sqlite_task *task)
{
    domi_sqlite_cursor *cursor = task->cursor;

    if (has_task_failed(task)) {
        task->cursor = NULL;
        domi_sqlite_free_cursor(cursor);
        (void)domi_sqlite_finish_task_and_wake_asker(stack, database, task);
        return;
    }
    domi_sqlite_add_cursor_to_connection(stack, database, slot, task);
    if (!domi_sqlite_finish_task_and_wake_asker(stack, database, task))
        domi_sqlite_mark_cursor_as_ending(stack, database, slot, cursor);
}

static void update_cursor_and_deliver_rows(domus_stack *stack, domi_sqlite_database *database,
                                           domi_sqlite_slot *slot, domi_sqlite_task *task)
{
    domi_sqlite_cursor *cursor = task->cursor;

    cursor->fetch = NULL;
    cursor->used_ns = domus_now_ns(stack);
    /* the job could not begin, and the cursor's statement is still open */
    if (has_task_failed(task) && cursor->prepared != NULL)
        domi_sqlite_mark_cursor_as_ending(stack, database, slot, cursor);
    else if (cursor->prepared == NULL)
        domi_sqlite_remove_ended_cursor(stack, slot, cursor);
    (void)domi_sqlite_finish_task_and_wake_asker(stack, database, task);
}

static void deliver_or_requeue_task_of_job(domus_stack *stack, domi_sqlite_database *database,
                                           domi_sqlite_slot *slot, domi_sqlite_task *task)
{
    /* the asker is gone, so the bounced task is not passed to the connection that writes */
    if (task->is_bounced && !task->is_awaited) {
        domi_sqlite_clear_outcome_of_task(task);
        task->error = -ECANCELED;
    }
    if (task->is_bounced) {
        task->is_bounced = false;
        remember_writing_statement(database, task);
        requeue_task_at_begin_of_queue(task, &database->writes);
        return;
    }
    switch (task->verb) {
    case DOMI_SQLITE_QUERY:
    case DOMI_SQLITE_SCRIPT:
        (void)domi_sqlite_finish_task_and_wake_asker(stack, database, task);
        break;
    case DOMI_SQLITE_BEGIN:
        hold_connection_and_deliver_begin(stack, database, slot, task);
        break;
    case DOMI_SQLITE_COMMIT:
    case DOMI_SQLITE_ROLLBACK:
        end_hold_and_deliver_end(stack, database, slot, task);
        break;
    case DOMI_SQLITE_ROWS:
        add_cursor_and_deliver_first_rows(stack, database, slot, task);
        break;
    case DOMI_SQLITE_FETCH:
        update_cursor_and_deliver_rows(stack, database, slot, task);
        break;
    }
}

/* Put the tasks that a job did not begin back into their queues, in their order. */
static void requeue_tasks_that_job_did_not_begin(domi_sqlite_connection *connection)
{
    for (uint32_t i = connection->count; i > 0; i--) {
        domi_sqlite_task *task = connection->tasks[i - 1];

        if (domi_sqlite_stage_of_task(task) != DOMI_SQLITE_AT(DOMI_SQLITE_GIVEN, connection->slot))
            continue;
        task->jobs--;
        connection->tasks[i - 1] = NULL;
        requeue_task_at_begin_of_queue(task, task->home);
    }
}

/* Fail all tasks of a job that could not begin. */
static void fail_tasks_of_job(domus_stack *stack, domi_sqlite_database *database,
                              domi_sqlite_slot *slot, int error)
{
    domi_sqlite_connection *connection = slot->connection;

    for (uint32_t i = 0; i < connection->count; i++) {
        domi_sqlite_task *task = connection->tasks[i];

        task->jobs--;
        if (!domi_sqlite_move_task_if_in_stage(
                task, DOMI_SQLITE_AT(DOMI_SQLITE_GIVEN, connection->slot),
                DOMI_SQLITE_AT(DOMI_SQLITE_RUNS, connection->slot))) {
            domi_sqlite_free_task_if_unused(database, task);
            continue;
        }
        task->error = error == -EOPNOTSUPP || error == -ENOMEM ? error : -ENOTCONN;
        if (domi_sqlite_is_part_of_transaction(task))
            domi_sqlite_mark_transaction_as_failed(database, task->transaction, task->error);
        deliver_or_requeue_task_of_job(stack, database, slot, task);
    }
}

static void deliver_or_requeue_tasks_of_job(domus_stack *stack, domi_sqlite_database *database,
                                            domi_sqlite_slot *slot)
{
    domi_sqlite_connection *connection = slot->connection;

    requeue_tasks_that_job_did_not_begin(connection);
    for (uint32_t i = 0; i < connection->count; i++) {
        domi_sqlite_task *task = connection->tasks[i];

        if (task == NULL)
            continue;
        task->jobs--;
        if (domi_sqlite_stage_of_task(task) == DOMI_SQLITE_AT(DOMI_SQLITE_RUNS, connection->slot))
            deliver_or_requeue_task_of_job(stack, database, slot, task);
        else
            domi_sqlite_free_task_if_unused(database, task);
    }
}

/* Fail all tasks that wait for any connection, because the file could not be opened. */
static void fail_all_waiting_tasks(domus_stack *stack, domi_sqlite_database *database,
                                   const domus_sql_error *error)
{
    domi_sqlite_queue *const queues[] = {&database->reads, &database->writes};

    for (size_t i = 0; i < 2; i++) {
        while (queues[i]->first != NULL) {
            domi_sqlite_task *task = queues[i]->first;

            (void)domi_sqlite_withdraw_task_if_not_begun(task);
            (void)domi_sqlite_set_failure_of_task(task, error);
            if (task->verb == DOMI_SQLITE_ROWS)
                domi_sqlite_free_cursor(task->cursor);
            (void)domi_sqlite_finish_task_and_wake_asker(stack, database, task);
        }
    }
}

/* Store in a slot whether its connection is open now, and count what its job has done. */
static void update_slot_after_job(domus_stack *stack, domi_sqlite_database *database,
                                  domi_sqlite_slot *slot)
{
    domi_sqlite_connection *connection = slot->connection;
    bool was_open = slot->is_open;

    slot->is_open = connection->handle != NULL;
    slot->used_ns = domus_now_ns(stack);
    database->counted.prepares += connection->prepares;
    connection->prepares = 0;
    database->counted.connects += !was_open && slot->is_open;
    database->was_opened |= slot->is_open;
    if (!connection->could_open)
        database->counted.failures++;
}

/* Free the cursors that a job has ended. If the job could not begin, they stay, and the next job
 * ends them. */
static void free_cursors_ended_by_job(domus_stack *stack, domi_sqlite_slot *slot)
{
    while (slot->connection->over != NULL) {
        domi_sqlite_cursor *cursor = slot->connection->over;

        slot->connection->over = cursor->next;
        if (slot->connection->has_begun) {
            domi_sqlite_remove_ended_cursor(stack, slot, cursor);
            continue;
        }
        cursor->next = slot->cursors;
        slot->cursors = cursor;
        slot->ends_rows = true;
    }
}

void domi_sqlite_deliver_tasks_of_ended_job(domus_stack *stack, domi_sqlite_database *database,
                                            uint32_t index, int error)
{
    domi_sqlite_slot *slot = &database->slots[index];
    domi_sqlite_connection *connection = slot->connection;

    slot->is_running = false;
    free_cursors_ended_by_job(stack, slot);
    if (!connection->has_begun) {
        fail_tasks_of_job(stack, database, slot, error);
        return;
    }
    if (connection->rolls_back)
        domi_sqlite_release_slot_of_transaction(stack, database, slot);
    if (connection->closes)
        slot->is_idle = false;
    update_slot_after_job(stack, database, slot);
    deliver_or_requeue_tasks_of_job(stack, database, slot);
    if (!connection->could_open && !database->was_opened)
        fail_all_waiting_tasks(stack, database, &connection->failure);
}
