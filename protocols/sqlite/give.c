/* Makes the next job of a connection from waiting tasks. Tasks of a transaction that holds the
 * connection come first; a free connection takes tasks from the queue that it shares with
 * others. */
#include "protocols/sqlite/database.h"

#include <errno.h>
#include <stdlib.h>

domi_sqlite_queue *domi_sqlite_shared_queue(domi_sqlite_database *database, bool writes)
{
    if (domi_sqlite_has_one_connection(database))
        return &database->writes;
    return writes && !database->place.reads_only ? &database->writes : &database->reads;
}

static domi_sqlite_queue *shared_queue_of_connection(domi_sqlite_database *database, uint32_t index)
{
    return domi_sqlite_shared_queue(database, index == 0);
}

static bool is_connection_of_slot_held(const domi_sqlite_slot *slot)
{
    return slot->transaction != 0 || slot->held_by != 0;
}

bool domi_sqlite_is_connection_free(domi_sqlite_database *database, uint32_t index)
{
    const domi_sqlite_slot *slot = &database->slots[index];

    return !slot->is_running && !is_connection_of_slot_held(slot) && slot->own.count == 0 &&
           (database->was_opened || index == 0);
}

bool domi_sqlite_has_connection_own_work(const domi_sqlite_database *database, uint32_t index)
{
    const domi_sqlite_slot *slot = &database->slots[index];

    if (slot->is_running)
        return false;
    return slot->own.count != 0 || slot->loses || slot->ends_rows || slot->is_idle ||
           (slot->is_open && !is_connection_of_slot_held(slot) &&
            slot->connection->pages >= slot->connection->checkpoint_at);
}

bool domi_sqlite_has_connection_work(domi_sqlite_database *database, uint32_t index)
{
    if (database->slots[index].is_running)
        return false;
    if (domi_sqlite_has_connection_own_work(database, index) ||
        (domi_sqlite_is_connection_free(database, index) &&
         shared_queue_of_connection(database, index)->count != 0))
        return true;
    return !database->was_opened && index == 0 && database->reads.count != 0;
}

static domi_sqlite_connection *make_connection_of_slot(const domi_sqlite_database *database,
                                                       uint32_t index)
{
    domi_sqlite_connection *connection = calloc(1, sizeof *connection);

    if (connection == NULL)
        return NULL;
    connection->place = &database->place;
    connection->options = &database->settings.options;
    connection->slot = index;
    connection->is_reader = index != 0;
    return connection;
}

/* Add a task to the job of a connection. A task whose time has passed is failed instead. */
static void move_task_from_queue_into_job(domus_stack *stack, domi_sqlite_connection *connection,
                                          domi_sqlite_task *task)
{
    uint64_t now_ns = domus_now_ns(stack);

    task->home = task->queue;
    domi_sqlite_queue_remove_task(task);
    task->within_ns = task->timeout_ns;
    if (task->deadline_ns != 0 && task->deadline_ns < now_ns + task->within_ns)
        task->within_ns = task->deadline_ns > now_ns ? task->deadline_ns - now_ns : 0;
    task->jobs++;
    connection->tasks[connection->count++] = task;
    /* Relaxed: a helper thread begins the job after this, so it sees the value. */
    atomic_store_explicit(&task->stage, DOMI_SQLITE_AT(DOMI_SQLITE_GIVEN, connection->slot),
                          memory_order_relaxed);
}

static bool does_task_end_transaction(const domi_sqlite_task *task)
{
    return task->verb == DOMI_SQLITE_COMMIT || task->verb == DOMI_SQLITE_ROLLBACK;
}

/* Move tasks that only this connection can do into its job. The end of a transaction is a job of
 * its own, which first ends the rows that are read in it. */
static void move_own_tasks_to_job(domus_stack *stack, domi_sqlite_database *database,
                                  domi_sqlite_slot *slot)
{
    while (slot->own.first != NULL && slot->connection->count < DOMI_SQLITE_BATCH) {
        domi_sqlite_task *task = slot->own.first;
        bool ends = does_task_end_transaction(task);

        if (ends && slot->connection->count != 0)
            break;
        if (ends)
            domi_sqlite_end_rows_of_transaction(stack, database, slot);
        move_task_from_queue_into_job(stack, slot->connection, task);
        if (ends)
            break;
    }
}

static bool does_task_begin_to_hold_connection(const domi_sqlite_task *task)
{
    return task->verb == DOMI_SQLITE_BEGIN || task->verb == DOMI_SQLITE_ROWS;
}

/* Returns how many tasks of a queue one connection takes: tasks that read are divided among all
 * free connections. */
static uint32_t count_fair_share_of_tasks(domi_sqlite_database *database,
                                          const domi_sqlite_queue *queue)
{
    uint32_t others = 0;

    if (queue == &database->writes)
        return DOMI_SQLITE_BATCH;
    for (uint32_t i = 0; i < database->slots_count; i++)
        others += shared_queue_of_connection(database, i) == queue &&
                  domi_sqlite_is_connection_free(database, i);
    uint32_t share = (queue->count + others - 1) / (others != 0 ? others : 1);
    return share < DOMI_SQLITE_READS ? share : DOMI_SQLITE_READS;
}

/* Move tasks of the shared queue into a connection's job. A task that begins to hold the connection
 * is a job of its own. */
static void move_shared_tasks_to_job(domus_stack *stack, domi_sqlite_database *database,
                                     uint32_t index)
{
    domi_sqlite_connection *connection = database->slots[index].connection;
    domi_sqlite_queue *queue = shared_queue_of_connection(database, index);
    uint32_t most = count_fair_share_of_tasks(database, queue);

    if (queue->first != NULL && does_task_begin_to_hold_connection(queue->first)) {
        move_task_from_queue_into_job(stack, connection, queue->first);
        return;
    }
    connection->is_shared = true;
    while (queue->first != NULL && !does_task_begin_to_hold_connection(queue->first) &&
           connection->count < most)
        move_task_from_queue_into_job(stack, connection, queue->first);
}

/* Remove the cursors that are over from the list of a connection. Returns them as a list. */
static domi_sqlite_cursor *unlink_ended_cursors_of_slot(domi_sqlite_slot *slot)
{
    domi_sqlite_cursor **at = &slot->cursors, *over = NULL;

    while (*at != NULL) {
        domi_sqlite_cursor *cursor = *at;
        if (!cursor->is_ending) {
            at = &cursor->next;
            continue;
        }
        *at = cursor->next;
        cursor->next = over;
        over = cursor;
    }
    slot->ends_rows = false;
    return over;
}

bool domi_sqlite_fill_next_job_of_connection(domus_stack *stack, domi_sqlite_database *database,
                                             uint32_t index)
{
    domi_sqlite_slot *slot = &database->slots[index];

    if (slot->connection == NULL)
        slot->connection = make_connection_of_slot(database, index);
    domi_sqlite_connection *connection = slot->connection;
    if (connection == NULL)
        return false;
    connection->count = 0;
    connection->has_begun = connection->is_shared = false;
    connection->rolls_back = slot->loses;
    connection->closes = slot->is_idle;
    if (slot->failed != 0 && !connection->has_failed) {
        connection->has_failed = true;
        connection->failure = domus_sql_error_make(
            slot->failed, "", "a statement of the transaction was not run, or too late");
    }
    if (!slot->loses && slot->own.count != 0)
        move_own_tasks_to_job(stack, database, slot);
    else if (!slot->loses && !slot->is_idle && domi_sqlite_is_connection_free(database, index))
        move_shared_tasks_to_job(stack, database, index);
    connection->over = slot->ends_rows ? unlink_ended_cursors_of_slot(slot) : NULL;
    return true;
}

/* Take back tasks that the job of a connection has not begun, up to half of the job's tasks, the
 * last ones first. */
static void take_back_half_of_unbegun_tasks(domi_sqlite_database *database,
                                            const domi_sqlite_connection *connection)
{
    uint32_t left = (connection->count + 1) / 2;

    for (uint32_t i = connection->count; i > 0 && left > 0; i--) {
        domi_sqlite_task *task = connection->tasks[i - 1];

        if (!domi_sqlite_move_task_if_in_stage(
                task, DOMI_SQLITE_AT(DOMI_SQLITE_GIVEN, connection->slot), DOMI_SQLITE_WAITS))
            continue;
        domi_sqlite_queue_add_first(&database->reads, task);
        left--;
    }
}

void domi_sqlite_take_back_reading_tasks(domi_sqlite_database *database)
{
    for (uint32_t i = 0; i < database->slots_count && database->reads.count == 0; i++) {
        const domi_sqlite_slot *slot = &database->slots[i];

        if (slot->is_running && slot->connection->is_shared && slot->connection->count > 1 &&
            shared_queue_of_connection(database, i) == &database->reads)
            take_back_half_of_unbegun_tasks(database, slot->connection);
    }
}
