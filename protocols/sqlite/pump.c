/* The pump: wakes connections for the tasks that wait; each does one job after the other as long as
 * there are tasks. A connection is woken by a notice, which comes behind the asks of the same run,
 * so that the job takes all of them. */
#include "protocols/sqlite/database.h"

#include <domus/blocking.h>
#include <domus/timer.h>

const domus_type domi_sqlite_wake_type = {.name = "sqlite_wake", .size = sizeof(uint32_t)};

static void send_wake_notice_for_slot(domus_stack *stack, domi_sqlite_database *database,
                                      uint32_t index)
{
    domi_sqlite_slot *slot = &database->slots[index];

    if (slot->is_waking || slot->is_running)
        return;
    /* If the actor's mailbox is full, the event of a timer wakes the connection instead. */
    slot->is_waking = domus_notice(stack, database->self, &domi_sqlite_wake_type, &index) == 0 ||
                      domus_after(stack, 0, &domi_sqlite_wake_type, &index, NULL) == 0;
}

/* Wake connections that read: as many as there are queries that wait. Connections that are open
 * come first. */
static void wake_reading_connections(domus_stack *stack, domi_sqlite_database *database)
{
    uint32_t left = database->reads.count;

    for (uint32_t i = 0; i < database->slots_count && left > 0; i++) {
        if (database->slots[i].is_waking &&
            domi_sqlite_shared_queue(database, i == 0) == &database->reads)
            left--;
    }
    for (uint32_t pass = 0; pass < 2 && left > 0; pass++) {
        for (uint32_t i = 0; i < database->slots_count && left > 0; i++) {
            domi_sqlite_slot *slot = &database->slots[i];
            if (slot->is_waking || slot->is_open != (pass == 0) ||
                domi_sqlite_shared_queue(database, i == 0) != &database->reads ||
                !domi_sqlite_is_connection_free(database, i))
                continue;
            send_wake_notice_for_slot(stack, database, i);
            left--;
        }
    }
}

void domi_sqlite_wake_connections_with_work(domus_stack *stack, domi_sqlite_database *database)
{
    for (uint32_t i = 0; i < database->slots_count; i++) {
        bool reads = domi_sqlite_shared_queue(database, i == 0) == &database->reads;
        if (domi_sqlite_has_connection_own_work(database, i) ||
            (!reads && domi_sqlite_has_connection_work(database, i)))
            send_wake_notice_for_slot(stack, database, i);
    }
    wake_reading_connections(stack, database);
}

/* Finish the job of a connection that has ended, and begin its next job. */
static domus_resumed finish_job_and_begin_next;

static int begin_next_job_of_connection(domus_stack *stack, domi_sqlite_database *database,
                                        uint32_t index)
{
    domi_sqlite_slot *slot = &database->slots[index];

    if (!domi_sqlite_has_connection_work(database, index) ||
        !domi_sqlite_fill_next_job_of_connection(stack, database, index))
        return 0;
    slot->is_running = true;
    if (!database->place.is_memory) {
        int result = domus_blocking(stack, domi_sqlite_run_job_on_helper, slot->connection,
                                    finish_job_and_begin_next);
        if (result == DOMUS_PARKED)
            return result;
        domi_sqlite_deliver_tasks_of_ended_job(stack, database, index, result);
        return 0;
    }
    (void)domi_sqlite_run_job_on_helper(slot->connection);
    domi_sqlite_deliver_tasks_of_ended_job(stack, database, index, 0);
    domi_sqlite_begin_ticks_if_needed(stack, database);
    domi_sqlite_wake_connections_with_work(stack, database);
    return 0;
}

static int finish_job_and_begin_next(domus_stack *stack, void *self, const domus_answer *answer)
{
    domi_sqlite_database *database = self;
    uint32_t index = *(const uint32_t *)domus_frame(stack);
    int error = answer->error;

    domi_sqlite_deliver_tasks_of_ended_job(stack, database, index, error);
    domi_sqlite_begin_ticks_if_needed(stack, database);
    if (error != 0)
        return 0;
    if (!domi_sqlite_has_connection_work(database, index) && index != 0 &&
        domi_sqlite_is_connection_free(database, index))
        domi_sqlite_take_back_reading_tasks(database);
    domi_sqlite_wake_connections_with_work(stack, database);
    return begin_next_job_of_connection(stack, database, index);
}

int domi_sqlite_begin_job_of_woken(domus_stack *stack, void *self, const void *payload)
{
    domi_sqlite_database *database = self;
    uint32_t index = *(const uint32_t *)payload;

    if (index >= database->slots_count)
        return 0;
    *(uint32_t *)domus_frame(stack) = index;
    database->slots[index].is_waking = false;
    return begin_next_job_of_connection(stack, database, index);
}
