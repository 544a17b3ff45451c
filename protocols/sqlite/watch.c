/* Ends transactions and rows that were not used for long, or whose owner has ended, and closes
 * connections that were not used for long. */
#include "protocols/sqlite/database.h"

static bool was_unused_for_time(uint64_t now_ns, uint64_t used_ns, uint64_t time_ns)
{
    return now_ns >= used_ns && now_ns - used_ns >= time_ns;
}

static void end_unused_rows_and_connection(domus_stack *stack, domi_sqlite_database *database,
                                           domi_sqlite_slot *slot)
{
    const domus_sql_options *options = &database->settings.options;
    uint64_t now_ns = domus_now_ns(stack);

    for (domi_sqlite_cursor *cursor = slot->cursors; cursor != NULL; cursor = cursor->next) {
        if (cursor->fetch == NULL &&
            was_unused_for_time(now_ns, cursor->used_ns, options->transaction_idle_ns))
            domi_sqlite_mark_cursor_as_ending(stack, database, slot, cursor);
    }
    if (slot->is_running || slot->own.count != 0)
        return;
    if (slot->transaction != 0 && !slot->loses &&
        was_unused_for_time(now_ns, slot->used_ns, options->transaction_idle_ns))
        domi_sqlite_plan_rollback_of_transaction(stack, database, slot);
    else if (slot->is_open && !slot->is_idle && slot->transaction == 0 && slot->cursors == NULL &&
             was_unused_for_time(now_ns, slot->used_ns, options->idle_ns) &&
             domi_sqlite_may_unused_connection_be_closed(database))
        slot->is_idle = true;
}

int domi_sqlite_end_unused_at_tick(domus_stack *stack, void *self, const void *payload)
{
    domi_sqlite_database *database = self;

    (void)payload;
    database->is_ticking = false;
    /* The writing connection is in the first slot, so it is closed last. */
    for (uint32_t i = database->slots_count; i > 0; i--)
        end_unused_rows_and_connection(stack, database, &database->slots[i - 1]);
    domi_sqlite_begin_ticks_if_needed(stack, database);
    domi_sqlite_wake_connections_with_work(stack, database);
    return 0;
}

int domi_sqlite_give_up_for_ended_owner(domus_stack *stack, void *self, const void *payload)
{
    domi_sqlite_database *database = self;
    domus_address who = ((const domus_down *)payload)->who;

    for (uint32_t i = 0; i < database->slots_count; i++) {
        domi_sqlite_slot *slot = &database->slots[i];

        if (slot->transaction != 0 && !slot->loses && domus_address_equals(slot->owner, who))
            domi_sqlite_plan_rollback_of_transaction(stack, database, slot);
        for (domi_sqlite_cursor *cursor = slot->cursors; cursor != NULL; cursor = cursor->next) {
            if (domus_address_equals(cursor->owner, who))
                domi_sqlite_mark_cursor_as_ending(stack, database, slot, cursor);
        }
    }
    domi_sqlite_wake_connections_with_work(stack, database);
    return 0;
}

int domi_sqlite_give_up_abandoned(domus_stack *stack, void *self, const void *payload)
{
    domi_sqlite_database *database = self;
    uint64_t number = ((const domus_sql *)payload)->transaction;
    domi_sqlite_slot *slot = domi_sqlite_slot_of_transaction_number(database, number);

    if (number != 0 && slot->transaction == number && !slot->loses)
        domi_sqlite_plan_rollback_of_transaction(stack, database, slot);
    domi_sqlite_wake_connections_with_work(stack, database);
    return 0;
}

int domi_sqlite_end_cursor_that_was_closed(domus_stack *stack, void *self, const void *payload)
{
    domi_sqlite_database *database = self;
    uint64_t number = ((const domus_sql_cursor *)payload)->number;
    domi_sqlite_cursor *cursor = domi_sqlite_find_cursor(database, number);

    if (cursor != NULL)
        domi_sqlite_mark_cursor_as_ending(
            stack, database, domi_sqlite_slot_of_transaction_number(database, number), cursor);
    domi_sqlite_wake_connections_with_work(stack, database);
    return 0;
}
