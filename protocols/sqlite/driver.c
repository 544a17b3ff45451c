/* The driver for SQLite: checks the settings before a database is opened, and defines the
 * database's actor: its rows, its begin and its end. */
#include "protocols/sqlite/database.h"

#include <domus/sqlite.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int check_settings_of_database(const domus_sql_settings *settings, char *error,
                                      size_t error_size)
{
    domi_sqlite_place place;

    if (settings->options.queue_max > DOMUS_SQLITE_QUEUE_MAX) {
        (void)snprintf(error, error_size, "queue_max: %u is more than %u, the most with SQLite",
                       settings->options.queue_max, DOMUS_SQLITE_QUEUE_MAX);
        return -EINVAL;
    }
    return domi_sqlite_read_url(settings->url, error, error_size, &place);
}

static int reply_with_status_of_database(domus_stack *stack, void *self, const void *payload)
{
    domi_sqlite_database *database = self;
    domus_sql_status status = database->counted;

    (void)payload;
    status.waiting = database->reads.count + database->writes.count;
    for (uint32_t i = 0; i < database->slots_count; i++) {
        const domi_sqlite_slot *slot = &database->slots[i];
        bool is_held = slot->transaction != 0 || slot->cursors != NULL;

        status.connections += slot->is_open;
        status.busy += slot->is_running || is_held;
        status.waiting += slot->own.count + slot->aside.count;
    }
    return domus_reply(stack, &domus_sql_status_type, &status);
}

static int reply_with_driver_of_database(domus_stack *stack, void *self, const void *payload)
{
    const domi_sqlite_database *database = self;

    (void)payload;
    return domus_reply(stack, &domus_sql_driver_type, &database->settings.driver);
}

/* --- life ------------------------------------------------------------------------------------- */

static int read_url_and_make_slots_at_mount(domus_stack *stack, void *self)
{
    domi_sqlite_database *database = self;
    char words[8];
    int error = domi_sqlite_read_url(database->settings.url, words, sizeof words, &database->place);

    if (error == 0)
        error = domi_sqlite_make_path_absolute(&database->place);
    if (error != 0)
        return error;
    database->self = domus_self(stack);
    database->slots_count =
        database->place.is_memory ? 1 : database->settings.options.connections_max;
    database->was_opened = database->place.reads_only;
    return 0;
}

static void close_connection_of_slot(domi_sqlite_slot *slot)
{
    domi_sqlite_connection *connection = slot->connection;

    while (slot->cursors != NULL) {
        domi_sqlite_cursor *cursor = slot->cursors;
        slot->cursors = cursor->next;
        domi_sqlite_end_statement_of_cursor(connection, cursor);
        domi_sqlite_free_cursor(cursor);
    }
    if (connection == NULL)
        return;
    domi_sqlite_roll_back_transaction(connection);
    domi_sqlite_close_handle(connection);
    free(connection);
    slot->connection = NULL;
}

/* All conversations of the actor have ended by now, so all jobs and tasks have ended, too. */
static void close_connections_and_free_tasks_at_stop(domus_stack *stack, void *self)
{
    domi_sqlite_database *database = self;

    (void)stack;
    for (uint32_t i = database->slots_count; i > 0; i--)
        close_connection_of_slot(&database->slots[i - 1]);
    while (database->free != NULL) {
        domi_sqlite_task *task = database->free;
        database->free = task->next;
        free(task);
    }
}

static const domus_on rows[] = {
    {&domus_sql_query_type, domi_sqlite_queue_query_of_ask, sizeof(domi_sqlite_task *)},
    {&domi_sqlite_wake_type, domi_sqlite_begin_job_of_woken, sizeof(uint32_t)},
    {&domus_sql_rows_type, domi_sqlite_queue_query_for_rows_of_ask, sizeof(domi_sqlite_task *)},
    {&domus_sql_fetch_type, domi_sqlite_queue_fetch_of_rows, sizeof(domi_sqlite_task *)},
    {&domus_sql_close_type, domi_sqlite_end_cursor_that_was_closed, 0},
    {&domus_sql_begin_type, domi_sqlite_queue_begin_of_transaction, sizeof(domi_sqlite_task *)},
    {&domus_sql_end_type, domi_sqlite_queue_end_of_transaction, sizeof(domi_sqlite_task *)},
    {&domus_sql_abandon_type, domi_sqlite_give_up_abandoned, 0},
    {&domus_sql_script_type, domi_sqlite_queue_script_of_ask, sizeof(domi_sqlite_task *)},
    {&domi_sqlite_tick_type, domi_sqlite_end_unused_at_tick, 0},
    {&domus_down_type, domi_sqlite_give_up_for_ended_owner, 0},
    {&domus_sql_look_type, reply_with_status_of_database, 0},
    {&domus_sql_who_type, reply_with_driver_of_database, 0},
    {NULL, NULL, 0},
};

static const domus_behaviour behaviour = {
    .name = "sqlite",
    .kind = DOMUS_STATE,
    .state_size = sizeof(domi_sqlite_database),
    .on = rows,
    .on_mount = read_url_and_make_slots_at_mount,
    .on_stop = close_connections_and_free_tasks_at_stop,
};

static const char *const schemes[] = {"sqlite", NULL};

const domus_sql_driver domus_sqlite_driver = {
    .name = "sqlite",
    .schemes = schemes,
    .check = check_settings_of_database,
    .behaviour = &behaviour,
};

const char *domus_sqlite_version(void)
{
    return sqlite3_libversion();
}
