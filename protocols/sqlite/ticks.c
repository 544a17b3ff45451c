/* The ticks of a database: a timer event that comes while a transaction or rows are held, or while
 * more connections are open than needed. An unused database has no ticks. */
#include "protocols/sqlite/database.h"

#include <domus/timer.h>

#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

const domus_type domi_sqlite_tick_type = {.name = "sqlite_tick"};

static uint32_t count_open_connections(const domi_sqlite_database *database)
{
    uint32_t open = 0;

    for (uint32_t i = 0; i < database->slots_count; i++)
        open += database->slots[i].is_open && !database->slots[i].is_idle;
    return open;
}

bool domi_sqlite_may_unused_connection_be_closed(const domi_sqlite_database *database)
{
    return !database->place.is_memory &&
           count_open_connections(database) > database->settings.options.connections_min;
}

static bool is_any_slot_held(const domi_sqlite_database *database)
{
    for (uint32_t i = 0; i < database->slots_count; i++) {
        if (database->slots[i].transaction != 0 || database->slots[i].cursors != NULL)
            return true;
    }
    return false;
}

void domi_sqlite_begin_ticks_if_needed(domus_stack *stack, domi_sqlite_database *database)
{
    const domus_sql_options *options = &database->settings.options;
    uint64_t time_ns = options->transaction_idle_ns;

    if (database->is_ticking ||
        (!is_any_slot_held(database) && !domi_sqlite_may_unused_connection_be_closed(database)))
        return;
    if (options->idle_ns < time_ns)
        time_ns = options->idle_ns;
    time_ns = time_ns / 4 < MS ? MS : time_ns / 4 > SECOND ? SECOND : time_ns / 4;
    database->is_ticking = domus_after(stack, time_ns, &domi_sqlite_tick_type, NULL, NULL) == 0;
}
