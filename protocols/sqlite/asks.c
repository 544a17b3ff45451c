/* Handlers of the asks to a database of SQLite: each ask becomes a task in a queue, and its
 * conversation sleeps until the task is done. */
#include "protocols/sqlite/database.h"

#include <errno.h>
#include <string.h>

#define HOUR_NS UINT64_C(3600000000000)

/* --- reads and writes ------------------------------------------------------------------------- */

/* Guess from the first word of a statement whether it writes. A wrong guess only costs time: a
 * connection that only reads notices that the statement writes, and its task is passed on. */
static bool guess_whether_statement_writes(const domi_sqlite_database *database,
                                           const domus_sql_request *request)
{
    static const char *const reading[] = {"SELECT", "WITH", "VALUES", "EXPLAIN"};
    const domus_sql_statement *statement = request->statement;

    if (statement != NULL &&
        database->known[domi_sqlite_place_of_known_statement(statement)] == statement)
        return true;
    const char *text = domus_sql_skip_blanks(domus_sql_request_text(request));
    for (size_t i = 0; i < sizeof reading / sizeof reading[0]; i++) {
        if (sqlite3_strnicmp(text, reading[i], (int)strlen(reading[i])) == 0)
            return false;
    }
    return true;
}

/* --- from an ask to a task -------------------------------------------------------------------- */

/* Find the slot of the connection that the transaction with this number holds. Returns 0; -ESTALE
 * if the transaction is over, or is about to end. */
static int find_slot_of_transaction(domi_sqlite_database *database, uint64_t transaction,
                                    domi_sqlite_slot **ret_slot)
{
    domi_sqlite_slot *slot = domi_sqlite_slot_of_transaction_number(database, transaction);

    if (slot->transaction != transaction || slot->loses || slot->is_ending)
        return -ESTALE;
    *ret_slot = slot;
    return 0;
}

static int count_refused_ask_and_return_error(domi_sqlite_database *database, int error)
{
    database->counted.queries++;
    database->counted.refused += error == -ENOBUFS;
    return error;
}

/* Returns for how many ns the conversation of a task sleeps before it checks whether the task still
 * waits. */
static uint64_t time_until_task_must_be_looked_at(domus_stack *stack,
                                                  const domi_sqlite_database *database,
                                                  const domi_sqlite_task *task)
{
    uint64_t now_ns = domus_now_ns(stack), time_ns = HOUR_NS;

    if (task->transaction == 0)
        time_ns = database->settings.options.wait_ns;
    if (task->deadline_ns != 0 && task->deadline_ns < now_ns + time_ns)
        time_ns = task->deadline_ns > now_ns ? task->deadline_ns - now_ns : 1;
    return time_ns;
}

/* Put a task into its queue, and let the conversation that will answer its ask sleep. */
static int put_task_into_queue_and_sleep(domus_stack *stack, domi_sqlite_database *database,
                                         domi_sqlite_task *task, domi_sqlite_queue *queue)
{
    int result = domus_conversation_of(stack, &task->conversation);

    if (result == 0) {
        *(domi_sqlite_task **)domus_frame(stack) = task;
        task->is_awaited = true;
        domi_sqlite_queue_add_last(queue, task);
        result = domus_sleep(stack, time_until_task_must_be_looked_at(stack, database, task),
                             domi_sqlite_answer_or_withdraw_task);
        if (result == DOMUS_PARKED) {
            domi_sqlite_wake_connections_with_work(stack, database);
            return result;
        }
        (void)domi_sqlite_withdraw_task_if_not_begun(task);
        task->is_awaited = false;
    }
    domi_sqlite_free_task_if_unused(database, task);
    return result;
}

/* Make a task from an ask with a request. `ret_queue` gets the queue in which the task is to wait.
 * Returns 0, and the task owns the request; or a negative errno. */
static int make_task_of_request(domus_stack *stack, domi_sqlite_database *database,
                                domi_sqlite_verb verb, const domus_sql_request *request,
                                domi_sqlite_task **ret_task, domi_sqlite_queue **ret_queue)
{
    const domus_sql_statement *statement = request->statement;
    domi_sqlite_queue *queue;
    domi_sqlite_slot *slot;

    if (request->transaction != 0) {
        int error = find_slot_of_transaction(database, request->transaction, &slot);
        if (error != 0)
            return count_refused_ask_and_return_error(database, error);
        slot->used_ns = domus_now_ns(stack);
        queue = &slot->own;
    } else {
        queue = domi_sqlite_shared_queue(database,
                                         verb == DOMI_SQLITE_SCRIPT ||
                                             guess_whether_statement_writes(database, request));
    }
    uint64_t bytes = (uint64_t)request->text.size + request->more.size;
    if (queue->count >= database->settings.options.queue_max ||
        (bytes != 0 && queue->bytes + bytes > database->settings.options.queue_bytes_max))
        return count_refused_ask_and_return_error(database, -ENOBUFS);
    domi_sqlite_task *task = domi_sqlite_make_task_of_ask(stack, database, verb);
    if (task == NULL)
        return -ENOMEM;
    int error = domus_take(stack);
    if (error != 0) {
        domi_sqlite_free_task_if_unused(database, task);
        return error;
    }
    task->request = *request;
    task->bytes = bytes;
    task->transaction = request->transaction;
    if (statement != NULL && statement->timeout_ns != 0)
        task->timeout_ns = statement->timeout_ns;
    *ret_task = task;
    *ret_queue = queue;
    return 0;
}

/* Fail the transaction of an ask that could not even wait in a queue. An ask that comes behind the
 * end of its transaction (-ESTALE) fails nothing. */
static int fail_transaction_if_ask_failed(domi_sqlite_database *database, uint64_t transaction,
                                          int result)
{
    if (result < 0 && result != -ESTALE)
        domi_sqlite_mark_transaction_as_failed(database, transaction, result);
    return result;
}

static int queue_task_of_request_and_sleep(domus_stack *stack, domi_sqlite_database *database,
                                           domi_sqlite_verb verb, const domus_sql_request *request)
{
    uint64_t transaction = request->transaction;
    domi_sqlite_queue *queue;
    domi_sqlite_task *task;
    int error = make_task_of_request(stack, database, verb, request, &task, &queue);

    return fail_transaction_if_ask_failed(
        database, transaction,
        error != 0 ? error : put_task_into_queue_and_sleep(stack, database, task, queue));
}

int domi_sqlite_queue_query_of_ask(domus_stack *stack, void *self, const void *payload)
{
    return queue_task_of_request_and_sleep(stack, self, DOMI_SQLITE_QUERY, payload);
}

int domi_sqlite_queue_script_of_ask(domus_stack *stack, void *self, const void *payload)
{
    return queue_task_of_request_and_sleep(stack, self, DOMI_SQLITE_SCRIPT, payload);
}

int domi_sqlite_queue_query_for_rows_of_ask(domus_stack *stack, void *self, const void *payload)
{
    uint64_t transaction = ((const domus_sql_request *)payload)->transaction;
    domi_sqlite_database *database = self;
    domi_sqlite_queue *queue;
    domi_sqlite_task *task;
    int error = make_task_of_request(stack, database, DOMI_SQLITE_ROWS, payload, &task, &queue);

    if (error != 0)
        return fail_transaction_if_ask_failed(database, transaction, error);
    task->cursor = domi_sqlite_new_cursor(task, &task->request);
    if (task->cursor == NULL) {
        domi_sqlite_free_task_if_unused(database, task);
        return fail_transaction_if_ask_failed(database, transaction, -ENOMEM);
    }
    /* the rows' cursor owns the request from now on, and the task does not */
    memset(&task->request, 0, sizeof task->request);
    domi_sqlite_cursor *cursor = task->cursor;
    int result = put_task_into_queue_and_sleep(stack, database, task, queue);
    if (result != DOMUS_PARKED)
        domi_sqlite_free_cursor(cursor);
    return fail_transaction_if_ask_failed(database, transaction, result);
}

int domi_sqlite_queue_fetch_of_rows(domus_stack *stack, void *self, const void *payload)
{
    domi_sqlite_database *database = self;
    uint64_t number = ((const domus_sql_cursor *)payload)->number;
    domi_sqlite_slot *slot = domi_sqlite_slot_of_transaction_number(database, number);
    domi_sqlite_cursor *cursor = domi_sqlite_find_cursor(database, number);

    if (cursor == NULL)
        return count_refused_ask_and_return_error(database, -ESTALE);
    if (cursor->fetch != NULL)
        return count_refused_ask_and_return_error(database, -EBUSY);
    domi_sqlite_task *task = domi_sqlite_make_task_of_ask(stack, database, DOMI_SQLITE_FETCH);
    if (task == NULL)
        return -ENOMEM;
    task->cursor = cursor;
    task->transaction = cursor->transaction;
    task->timeout_ns = cursor->timeout_ns;
    cursor->used_ns = domus_now_ns(stack);
    cursor->fetch = task;
    int result = put_task_into_queue_and_sleep(
        stack, database, task, domi_sqlite_queue_in_which_fetch_waits(slot, cursor));
    if (result != DOMUS_PARKED)
        cursor->fetch = NULL;
    return result;
}

int domi_sqlite_queue_begin_of_transaction(domus_stack *stack, void *self, const void *payload)
{
    domi_sqlite_database *database = self;
    const domus_sql_begin_options *options = payload;
    domi_sqlite_queue *queue = domi_sqlite_shared_queue(database, !options->reads_only);

    if (queue->count >= database->settings.options.queue_max)
        return count_refused_ask_and_return_error(database, -ENOBUFS);
    domi_sqlite_task *task = domi_sqlite_make_task_of_ask(stack, database, DOMI_SQLITE_BEGIN);
    if (task == NULL)
        return -ENOMEM;
    task->reads_only = options->reads_only || database->place.reads_only;
    return put_task_into_queue_and_sleep(stack, database, task, queue);
}

int domi_sqlite_queue_end_of_transaction(domus_stack *stack, void *self, const void *payload)
{
    domi_sqlite_database *database = self;
    const domus_sql_end *end = payload;
    domi_sqlite_slot *slot;
    int error = find_slot_of_transaction(database, end->transaction, &slot);

    if (error != 0 || end->transaction == 0)
        return count_refused_ask_and_return_error(database, error != 0 ? error : -ESTALE);
    domi_sqlite_task *task = domi_sqlite_make_task_of_ask(
        stack, database, end->commits ? DOMI_SQLITE_COMMIT : DOMI_SQLITE_ROLLBACK);
    if (task == NULL)
        return -ENOMEM;
    task->transaction = end->transaction;
    slot->is_ending = true;
    slot->used_ns = domus_now_ns(stack);
    int result = put_task_into_queue_and_sleep(stack, database, task, &slot->own);
    if (result != DOMUS_PARKED)
        slot->is_ending = false;
    return result;
}
