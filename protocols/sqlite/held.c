/* Transactions and cursors, which hold a connection or one of its statements over several asks.
 * Each has an owner, the actor that began it, which is watched. */
#include "protocols/sqlite/database.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_address_of_actor(domus_address address)
{
    return address.house != NULL;
}

/* Watch the owner of a transaction or cursor. If there is no memory for the watch, the idle time
 * still ends what the owner has left. */
static bool watch_owner_of_transaction(domus_stack *stack, domus_address owner,
                                       domus_watch *ret_watch)
{
    return is_address_of_actor(owner) && domus_watch_actor(stack, owner, ret_watch) == 0;
}

static uint64_t make_next_number_with_slot(domi_sqlite_database *database,
                                           const domi_sqlite_slot *slot)
{
    return ++database->serial * DOMI_SQLITE_SLOTS + (uint64_t)(slot - database->slots);
}

/* --- transactions ----------------------------------------------------------------------------- */

static void move_all_tasks_of_queue(domi_sqlite_queue *from, domi_sqlite_queue *to)
{
    while (from->first != NULL) {
        domi_sqlite_task *task = from->first;
        domi_sqlite_queue_remove_task(task);
        domi_sqlite_queue_add_last(to, task);
    }
}

/* The connection is free, so the only tasks that can be waiting for it are fetches of rows. */
void domi_sqlite_hold_slot_for_transaction(domus_stack *stack, domi_sqlite_database *database,
                                           domi_sqlite_slot *slot, domi_sqlite_task *task)
{
    slot->transaction = task->transaction = make_next_number_with_slot(database, slot);
    slot->owner = task->owner;
    slot->is_ending = false;
    slot->failed = 0;
    slot->has_watch = watch_owner_of_transaction(stack, slot->owner, &slot->watch);
    move_all_tasks_of_queue(&slot->own, &slot->aside);
}

/* Fail the tasks that wait in a connection's own queue for a transaction, or for rows, that has
 * ended. */
static void fail_tasks_of_ended_transaction(domus_stack *stack, domi_sqlite_database *database,
                                            domi_sqlite_slot *slot, uint64_t transaction)
{
    domi_sqlite_task *next;

    for (domi_sqlite_task *task = slot->own.first; task != NULL; task = next) {
        next = task->next;
        if (task->transaction != transaction)
            continue;
        (void)domi_sqlite_withdraw_task_if_not_begun(task);
        if (task->verb == DOMI_SQLITE_FETCH)
            task->cursor->fetch = NULL;
        else if (task->verb == DOMI_SQLITE_ROWS)
            domi_sqlite_free_cursor(task->cursor);
        domi_sqlite_fail_task_and_wake_asker(stack, database, task, -ESTALE);
    }
}

void domi_sqlite_release_slot_of_transaction(domus_stack *stack, domi_sqlite_database *database,
                                             domi_sqlite_slot *slot)
{
    uint64_t transaction = slot->transaction;

    if (slot->has_watch)
        (void)domus_unwatch(stack, slot->watch);
    slot->has_watch = slot->is_ending = slot->loses = false;
    slot->transaction = 0;
    if (transaction != 0)
        fail_tasks_of_ended_transaction(stack, database, slot, transaction);
    move_all_tasks_of_queue(&slot->aside, &slot->own);
}

void domi_sqlite_end_rows_of_transaction(domus_stack *stack, domi_sqlite_database *database,
                                         domi_sqlite_slot *slot)
{
    for (domi_sqlite_cursor *cursor = slot->cursors; cursor != NULL; cursor = cursor->next) {
        if (cursor->transaction != 0 && cursor->transaction == slot->transaction)
            domi_sqlite_mark_cursor_as_ending(stack, database, slot, cursor);
    }
}

void domi_sqlite_plan_rollback_of_transaction(domus_stack *stack, domi_sqlite_database *database,
                                              domi_sqlite_slot *slot)
{
    slot->loses = true;
    fail_tasks_of_ended_transaction(stack, database, slot, slot->transaction);
    domi_sqlite_end_rows_of_transaction(stack, database, slot);
    /* A verb of the lost transaction that runs now is not needed any more, and is ended early. */
    for (uint32_t i = 0; slot->is_running && i < slot->connection->count; i++) {
        domi_sqlite_task *task = slot->connection->tasks[i];
        if (task->transaction == slot->transaction)
            atomic_store_explicit(&task->is_unwanted, true,
                                  /* relaxed: is_unwanted orders no other access */
                                  memory_order_relaxed);
    }
}

/* --- cursors ---------------------------------------------------------------------------------- */

domi_sqlite_cursor *domi_sqlite_new_cursor(const domi_sqlite_task *task,
                                           const domus_sql_request *request)
{
    domi_sqlite_cursor *cursor = calloc(1, sizeof *cursor);

    if (cursor == NULL)
        return NULL;
    cursor->owner = task->owner;
    cursor->transaction = request->transaction;
    cursor->timeout_ns = task->timeout_ns;
    cursor->request = *request;
    return cursor;
}

domi_sqlite_queue *domi_sqlite_queue_in_which_fetch_waits(domi_sqlite_slot *slot,
                                                          const domi_sqlite_cursor *cursor)
{
    return cursor->transaction == slot->transaction ? &slot->own : &slot->aside;
}

domi_sqlite_cursor *domi_sqlite_find_cursor(domi_sqlite_database *database, uint64_t number)
{
    domi_sqlite_cursor *cursor = domi_sqlite_slot_of_transaction_number(database, number)->cursors;

    while (cursor != NULL && (cursor->number != number || cursor->is_ending))
        cursor = cursor->next;
    return cursor;
}

void domi_sqlite_add_cursor_to_connection(domus_stack *stack, domi_sqlite_database *database,
                                          domi_sqlite_slot *slot, domi_sqlite_task *task)
{
    domi_sqlite_cursor *cursor = task->cursor;

    cursor->number = make_next_number_with_slot(database, slot);
    cursor->used_ns = domus_now_ns(stack);
    cursor->has_watch = watch_owner_of_transaction(stack, cursor->owner, &cursor->watch);
    cursor->next = slot->cursors;
    slot->cursors = cursor;
    /* If this is the only connection, rows that are only read do not hold it, so that other tasks
     * run between two fetches. */
    if (cursor->transaction == 0 &&
        (cursor->is_writer || !domi_sqlite_has_one_connection(database)))
        slot->held_by = cursor->number;
    task->number = cursor->number;
}

void domi_sqlite_mark_cursor_as_ending(domus_stack *stack, domi_sqlite_database *database,
                                       domi_sqlite_slot *slot, domi_sqlite_cursor *cursor)
{
    domi_sqlite_task *fetch = cursor->fetch;

    if (cursor->is_ending)
        return;
    cursor->is_ending = slot->ends_rows = true;
    if (fetch != NULL && domi_sqlite_withdraw_task_if_not_begun(fetch)) {
        cursor->fetch = NULL;
        domi_sqlite_fail_task_and_wake_asker(stack, database, fetch, -ESTALE);
    } else if (fetch != NULL) {
        atomic_store_explicit(&fetch->is_unwanted, true,
                              /* relaxed: is_unwanted orders no other access */
                              memory_order_relaxed);
    }
}

void domi_sqlite_remove_ended_cursor(domus_stack *stack, domi_sqlite_slot *slot,
                                     domi_sqlite_cursor *cursor)
{
    domi_sqlite_cursor **at = &slot->cursors;

    while (*at != NULL && *at != cursor)
        at = &(*at)->next;
    if (*at != NULL)
        *at = cursor->next;
    if (cursor->has_watch)
        (void)domus_unwatch(stack, cursor->watch);
    if (slot->held_by == cursor->number)
        slot->held_by = 0;
    domi_sqlite_free_cursor(cursor);
}
