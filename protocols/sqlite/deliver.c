/* Tasks and their conversations: how a task is made, waits, is given up, and is answered. */
#include "protocols/sqlite/database.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HOUR_NS UINT64_C(3600000000000)

domi_sqlite_task *domi_sqlite_make_task_of_ask(domus_stack *stack, domi_sqlite_database *database,
                                               domi_sqlite_verb verb)
{
    domi_sqlite_task *task = database->free;

    if (task != NULL) {
        database->free = task->next;
        database->free_count--;
    } else {
        task = malloc(sizeof *task);
    }
    if (task == NULL)
        return NULL;
    memset(task, 0, sizeof *task);
    task->verb = verb;
    task->owner = domus_sender(stack);
    task->deadline_ns = domus_deadline_ns(stack);
    task->timeout_ns = database->settings.options.timeout_ns;
    return task;
}

void domi_sqlite_free_task_if_unused(domi_sqlite_database *database, domi_sqlite_task *task)
{
    if (task->queue != NULL || task->jobs != 0 || task->is_awaited)
        return;
    domi_sqlite_clear_outcome_of_task(task);
    domi_sqlite_free_texts_of_request(&task->request);
    if (database->free_count == DOMI_SQLITE_FREE) {
        free(task);
        return;
    }
    task->next = database->free;
    database->free = task;
    database->free_count++;
}

void domi_sqlite_free_cursor(domi_sqlite_cursor *cursor)
{
    domi_sqlite_free_texts_of_request(&cursor->request);
    free(cursor);
}

bool domi_sqlite_withdraw_task_if_not_begun(domi_sqlite_task *task)
{
    uint32_t stage = domi_sqlite_stage_of_task(task);

    if (stage == DOMI_SQLITE_WAITS) {
        domi_sqlite_queue_remove_task(task);
        /* Relaxed: a task that waits in a queue is used by the actor alone. */
        atomic_store_explicit(&task->stage, DOMI_SQLITE_GONE, memory_order_relaxed);
        return true;
    }
    return (stage & 0xff) == DOMI_SQLITE_GIVEN &&
           domi_sqlite_move_task_if_in_stage(task, stage, DOMI_SQLITE_GONE);
}

bool domi_sqlite_finish_task_and_wake_asker(domus_stack *stack, domi_sqlite_database *database,
                                            domi_sqlite_task *task)
{
    bool is_heard = task->is_awaited;
    bool is_late = task->deadline_ns != 0 && task->deadline_ns <= domus_now_ns(stack);

    /* the asker was told that the task took too long, so its transaction must fail, whatever the
     * task's outcome is */
    if (is_late && domi_sqlite_is_part_of_transaction(task))
        domi_sqlite_mark_transaction_as_failed(database, task->transaction, -ETIMEDOUT);
    /* Relaxed: a task that is delivered is used by the actor alone. */
    atomic_store_explicit(&task->stage, DOMI_SQLITE_DONE, memory_order_relaxed);
    database->counted.queries++;
    database->counted.errors += task->failure != NULL;
    database->counted.timeouts += task->error == -ETIMEDOUT;
    database->counted.refused += task->error == -EBUSY || task->error == -ENOBUFS;
    /* wake the task's conversation; if the asker has cancelled before this, the conversation is
     * awake already */
    if (is_heard)
        is_heard = domus_wake(stack, task->conversation) == 0;
    domi_sqlite_free_task_if_unused(database, task);
    return is_heard;
}

void domi_sqlite_fail_task_and_wake_asker(domus_stack *stack, domi_sqlite_database *database,
                                          domi_sqlite_task *task, int error)
{
    domi_sqlite_clear_outcome_of_task(task);
    task->error = error;
    (void)domi_sqlite_finish_task_and_wake_asker(stack, database, task);
}

/* Answer the ask of a task's conversation with the outcome of the task. */
static int answer_ask_with_outcome(domus_stack *stack, domi_sqlite_database *database,
                                   domi_sqlite_task *task)
{
    int error = 0;

    if (task->failure != NULL)
        error = domus_reply(stack, &domus_sql_error_type, task->failure);
    else if (task->error != 0)
        error = task->error;
    else if (task->verb == DOMI_SQLITE_BEGIN)
        error = domus_reply(stack, &domus_sql_begun_type,
                            &(domus_sql){database->self, task->transaction});
    else if (task->verb == DOMI_SQLITE_ROWS)
        error = domus_reply(stack, &domus_sql_cursor_type,
                            &(domus_sql_cursor){database->self, task->number});
    else if ((error = domus_reply(stack, &domus_sql_result_type, &task->result)) == 0)
        /* the answer owns the result from now on, and the task does not */
        task->has_result = false;
    task->is_awaited = false;
    domi_sqlite_free_task_if_unused(database, task);
    return error;
}

/* Undo what was prepared for a task that will not be run, because nobody waits for it. */
static void undo_preparation_of_withdrawn_task(domus_stack *stack, domi_sqlite_database *database,
                                               domi_sqlite_task *task)
{
    const domus_sql left = {database->self, task->transaction};

    /* The asker that wanted to end a transaction is gone, so the transaction is abandoned. */
    if (task->verb == DOMI_SQLITE_COMMIT || task->verb == DOMI_SQLITE_ROLLBACK)
        domi_sqlite_slot_of_transaction_number(database, task->transaction)->is_ending =
            domus_notice(stack, database->self, &domus_sql_abandon_type, &left) == 0;
    else if (task->verb == DOMI_SQLITE_FETCH)
        task->cursor->fetch = NULL;
    else if (task->verb == DOMI_SQLITE_ROWS)
        /* a job may still name this task but does not run it, so the cursor may be freed */
        domi_sqlite_free_cursor(task->cursor);
    task->is_awaited = false;
    domi_sqlite_free_task_if_unused(database, task);
}

int domi_sqlite_answer_or_withdraw_task(domus_stack *stack, void *self, const domus_answer *woken)
{
    domi_sqlite_database *database = self;
    domi_sqlite_task *task = *(domi_sqlite_task **)domus_frame(stack);
    bool is_late = task->deadline_ns != 0 && task->deadline_ns <= domus_now_ns(stack);

    if (domi_sqlite_stage_of_task(task) == DOMI_SQLITE_DONE)
        return answer_ask_with_outcome(stack, database, task);
    if (domi_sqlite_withdraw_task_if_not_begun(task)) {
        if (domi_sqlite_is_part_of_transaction(task))
            domi_sqlite_mark_transaction_as_failed(database, task->transaction,
                                                   is_late ? -ETIMEDOUT : -ECANCELED);
        undo_preparation_of_withdrawn_task(stack, database, task);
        if (woken->error != 0)
            return -ENOTCONN;
        database->counted.queries++;
        database->counted.refused += !is_late;
        database->counted.timeouts += is_late;
        return is_late ? -ETIMEDOUT : -EBUSY;
    }
    if (woken->error == 0) /* a job runs the task, which ends in time by its own limits */
        return domus_sleep(stack, HOUR_NS, domi_sqlite_answer_or_withdraw_task);
    /* relaxed: is_unwanted orders no other access */
    atomic_store_explicit(&task->is_unwanted, true, memory_order_relaxed);
    task->is_awaited = false;
    return -EPIPE;
}
