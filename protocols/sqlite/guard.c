/* The guards of a connection, which SQLite calls while it works: whether a statement may be
 * prepared, has run too long, and may go on waiting for a lock. Run by helper threads. */
#include "protocols/sqlite/connection.h"

#include <string.h>
#include <time.h>

#define MS UINT64_C(1000000)

uint64_t domi_sqlite_clock_ns(void)
{
    struct timespec now = {0, 0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void domi_sqlite_set_task_and_its_time_limit(domi_sqlite_connection *connection,
                                             const domi_sqlite_task *task)
{
    connection->guarded = task;
    connection->is_late = false;
    if (task != NULL)
        connection->ends_ns = domi_sqlite_clock_ns() + task->within_ns;
}

/* Returns whether the statement that runs has to end early. */
static bool must_statement_end_early(domi_sqlite_connection *connection)
{
    const domi_sqlite_task *task = connection->guarded;

    if (task == NULL)
        return false;
    /* relaxed: is_unwanted orders no other access */
    if (atomic_load_explicit(&task->is_unwanted, memory_order_relaxed))
        return true;
    if (domi_sqlite_clock_ns() < connection->ends_ns)
        return false;
    connection->is_late = true;
    return true;
}

static int must_sqlite_stop_statement_now(void *context)
{
    return must_statement_end_early(context);
}

/* Wait a moment for a lock that another process has; it cannot tell when the lock is free. SQLite
 * calls this before it tries again. */
static int wait_a_moment_for_lock_of_others(void *context, int count)
{
    domi_sqlite_connection *connection = context;
    uint64_t now_ns = domi_sqlite_clock_ns();

    if (count == 0)
        connection->busy_ns = now_ns;
    if (now_ns - connection->busy_ns >= connection->busy_ms * MS ||
        must_statement_end_early(connection))
        return 0;
    (void)sqlite3_sleep(count < 8 ? 1 : count < 32 ? 5 : 25);
    return 1;
}

/* PRAGMAs that only report something, and change nothing that other queries rely on. A PRAGMA here
 * that may be set is a property of the file. */
static const struct {
    const char *name;
    bool may_set;
} pragmas[] = {
    {"application_id", true},     {"compile_options", false},  {"data_version", false},
    {"defer_foreign_keys", true}, {"foreign_key_check", true}, {"foreign_key_list", true},
    {"freelist_count", false},    {"index_info", true},        {"index_list", true},
    {"index_xinfo", true},        {"integrity_check", true},   {"page_count", false},
    {"page_size", false},         {"quick_check", true},       {"schema_version", false},
    {"table_info", true},         {"table_list", true},        {"table_xinfo", true},
    {"user_version", true},
};

static bool may_user_use_pragma(const char *name, const char *value)
{
    for (size_t i = 0; name != NULL && i < sizeof pragmas / sizeof pragmas[0]; i++) {
        if (sqlite3_stricmp(name, pragmas[i].name) == 0)
            return value == NULL || pragmas[i].may_set;
    }
    return false;
}

static int deny_action_with_reason(domi_sqlite_connection *connection, const char *words)
{
    connection->denied = words;
    return SQLITE_DENY;
}

/* Allow or deny one action of a statement. SQLite asks for each action when the statement is
 * prepared. */
static int allow_or_deny_action_of_statement(void *context, int action, const char *one,
                                             const char *other, const char *database,
                                             const char *trigger)
{
    domi_sqlite_connection *connection = context;

    (void)database;
    (void)trigger;
    if (connection->is_own)
        return SQLITE_OK;
    switch (action) {
    case SQLITE_TRANSACTION:
        return deny_action_with_reason(connection, "transactions begin with domus_sql_begin()");
    case SQLITE_SAVEPOINT:
        return deny_action_with_reason(connection, "savepoints are not for queries");
    case SQLITE_ATTACH:
    case SQLITE_DETACH:
        return deny_action_with_reason(connection, "ATTACH and DETACH are not for queries");
    case SQLITE_CREATE_TEMP_INDEX:
    case SQLITE_CREATE_TEMP_TABLE:
    case SQLITE_CREATE_TEMP_TRIGGER:
    case SQLITE_CREATE_TEMP_VIEW:
        return deny_action_with_reason(
            connection, "what is temporary belongs to a connection, which queries share");
    case SQLITE_PRAGMA:
        return may_user_use_pragma(one, other)
                   ? SQLITE_OK
                   : deny_action_with_reason(
                         connection, "this PRAGMA would change a connection, which queries share");
    default:
        return SQLITE_OK;
    }
}

void domi_sqlite_install_guards(domi_sqlite_connection *connection)
{
    sqlite3_progress_handler(connection->handle, DOMI_SQLITE_STEPS, must_sqlite_stop_statement_now,
                             connection);
    (void)sqlite3_busy_handler(connection->handle, wait_a_moment_for_lock_of_others, connection);
    (void)sqlite3_set_authorizer(connection->handle, allow_or_deny_action_of_statement, connection);
}
