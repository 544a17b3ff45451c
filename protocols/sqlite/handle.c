/* Opens and closes handles of SQLite, and runs the library's own statements. Before a program's
 * first statement a handle is configured: durable as the url says, strict, and without any
 * feature by which a statement could change it for the queries of others. Run by helper threads. */
#include "protocols/sqlite/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* bytes of a value, or of a row with its head, that SQLite allows at most */
#define LENGTH_MAX (DOMUS_SQL_VALUE_MAX + 65536u)

static const char *const own_texts[DOMI_SQLITE_OWN] = {
    [DOMI_SQLITE_BEGIN_READ] = "BEGIN",       [DOMI_SQLITE_BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [DOMI_SQLITE_COMMITS] = "COMMIT",         [DOMI_SQLITE_ROLLS_BACK] = "ROLLBACK",
    [DOMI_SQLITE_SAVES] = "SAVEPOINT domus",  [DOMI_SQLITE_UNDOES] = "ROLLBACK TO domus",
    [DOMI_SQLITE_RELEASES] = "RELEASE domus",
};

/* Create the file, readable by its owner alone; SQLite would let others read it. The descriptor of
 * a file that exists is never closed here, because closing it would end the locks that this process
 * has on it. */
static void make_file_for_owner_only(const domi_sqlite_place *place)
{
    int fd = open(place->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd >= 0)
        (void)close(fd);
}

static int configure_handle_safely(sqlite3 *handle)
{
    static const struct {
        int what;
        int value;
    } settings[] = {
        {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
        {SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0},
        {SQLITE_DBCONFIG_ENABLE_FKEY, 1},
        {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
        {SQLITE_DBCONFIG_DEFENSIVE, 1},
        {SQLITE_DBCONFIG_DQS_DML, 0},
        {SQLITE_DBCONFIG_DQS_DDL, 0},
    };

    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        int result = sqlite3_db_config(handle, settings[i].what, settings[i].value, (int *)NULL);
        if (result != SQLITE_OK)
            return result;
    }
    (void)sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, (int)LENGTH_MAX);
    (void)sqlite3_limit(handle, SQLITE_LIMIT_SQL_LENGTH, (int)DOMUS_SQL_VALUE_MAX);
    (void)sqlite3_limit(handle, SQLITE_LIMIT_VARIABLE_NUMBER, (int)DOMUS_SQL_PARAMETERS_MAX);
    (void)sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0);
    return SQLITE_OK;
}

/* Check the mode of the file that SQLite reports: anything but WAL makes SQLite return an error. */
static int check_that_mode_is_wal(void *context, int count, char **values, char **names)
{
    (void)context;
    (void)names;
    return count == 1 && values[0] != NULL && sqlite3_stricmp(values[0], "wal") == 0 ? 0 : 1;
}

/* Set the modes of a database's file. WAL is a property of the file, so all connections but the
 * first one find it set. */
static int set_wal_and_other_modes_of_file(const domi_sqlite_connection *connection)
{
    const domi_sqlite_place *place = connection->place;
    int result = SQLITE_OK;
    char text[160];

    if (place->is_memory)
        return SQLITE_OK;
    if (!place->reads_only)
        result = sqlite3_exec(connection->handle, "PRAGMA journal_mode=WAL", check_that_mode_is_wal,
                              NULL, NULL);
    if (result != SQLITE_OK)
        return result;
    (void)snprintf(text, sizeof text,
                   "PRAGMA wal_autocheckpoint=0; PRAGMA synchronous=%s; "
                   "PRAGMA journal_size_limit=%d; PRAGMA query_only=%s",
                   place->is_normal ? "NORMAL" : "FULL", DOMI_SQLITE_WAL_BYTES,
                   connection->is_reader ? "ON" : "OFF");
    result = sqlite3_exec(connection->handle, text, NULL, NULL, NULL);
    /* This reads the file, so that opening a file which is no database fails here, on a reading
     * connection, too. */
    if (result == SQLITE_OK)
        result = sqlite3_exec(connection->handle, "PRAGMA schema_version", NULL, NULL, NULL);
    return result;
}

static int prepare_statements_of_library(domi_sqlite_connection *connection)
{
    for (int i = 0; i < DOMI_SQLITE_OWN; i++) {
        int result = sqlite3_prepare_v3(connection->handle, own_texts[i], -1,
                                        SQLITE_PREPARE_PERSISTENT, &connection->own[i], NULL);
        if (result != SQLITE_OK)
            return result;
    }
    return SQLITE_OK;
}

static int store_number_of_wal_pages(void *context, sqlite3 *handle, const char *name, int pages)
{
    (void)handle;
    (void)name;
    ((domi_sqlite_connection *)context)->pages = pages;
    return SQLITE_OK;
}

int domi_sqlite_open_handle(domi_sqlite_connection *connection, domus_sql_error *ret_error)
{
    const domi_sqlite_place *place = connection->place;
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE;

    if (place->makes_file)
        make_file_for_owner_only(place);
    flags |= place->reads_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
    int result = sqlite3_open_v2(place->is_memory ? ":memory:" : place->path, &connection->handle,
                                 flags, NULL);
    connection->busy_ms = place->busy_ms;
    connection->checkpoint_at = DOMI_SQLITE_PAGES;
    connection->pages = 0;
    if (result == SQLITE_OK)
        result = configure_handle_safely(connection->handle);
    if (result == SQLITE_OK) {
        connection->is_own = true;
        domi_sqlite_install_guards(connection);
        result = set_wal_and_other_modes_of_file(connection);
    }
    if (result == SQLITE_OK)
        result = prepare_statements_of_library(connection);
    connection->is_own = false;
    if (result != SQLITE_OK) {
        *ret_error = domi_sqlite_describe_failure(connection, result, NULL);
        domi_sqlite_close_handle(connection);
        return result;
    }
    (void)sqlite3_wal_hook(connection->handle, store_number_of_wal_pages, connection);
    return SQLITE_OK;
}

void domi_sqlite_close_handle(domi_sqlite_connection *connection)
{
    domi_sqlite_set_task_and_its_time_limit(connection, NULL);
    domi_sqlite_free_kept_statements(connection);
    for (int i = 0; i < DOMI_SQLITE_OWN; i++) {
        (void)sqlite3_finalize(connection->own[i]);
        connection->own[i] = NULL;
    }
    /* If this is the last handle of the file, SQLite copies the WAL into the file and removes the
     * WAL. */
    (void)sqlite3_close_v2(connection->handle);
    connection->handle = NULL;
    connection->has_failed = false;
}

int domi_sqlite_run_statement_of_library(domi_sqlite_connection *connection,
                                         enum domi_sqlite_own which)
{
    connection->is_own = true;
    int result = sqlite3_step(connection->own[which]);
    (void)sqlite3_reset(connection->own[which]);
    connection->is_own = false;
    return result == SQLITE_DONE ? SQLITE_OK : result;
}

void domi_sqlite_roll_back_transaction(domi_sqlite_connection *connection)
{
    domi_sqlite_set_task_and_its_time_limit(connection, NULL);
    if (connection->handle != NULL && domi_sqlite_is_in_transaction(connection))
        (void)domi_sqlite_run_statement_of_library(connection, DOMI_SQLITE_ROLLS_BACK);
    connection->has_failed = false;
}

void domi_sqlite_checkpoint_wal_if_long(domi_sqlite_connection *connection, bool is_idle)
{
    int pages = 0, copied = 0;

    if (connection->handle == NULL || connection->pages < connection->checkpoint_at ||
        (!is_idle && connection->pages < DOMI_SQLITE_PAGES_FORCED) ||
        domi_sqlite_is_in_transaction(connection))
        return;
    int mode = connection->pages >= DOMI_SQLITE_PAGES_RESTART ? SQLITE_CHECKPOINT_RESTART
                                                              : SQLITE_CHECKPOINT_PASSIVE;
    /* this limit is short, because writes wait while the WAL is copied */
    connection->busy_ms = DOMI_SQLITE_RESTART_MS;
    (void)sqlite3_wal_checkpoint_v2(connection->handle, NULL, mode, &pages, &copied);
    connection->busy_ms = connection->place->busy_ms;
    /* If connections that read have stopped the copy, it is tried again when the WAL has grown by
     * as much again. */
    connection->checkpoint_at =
        pages > copied ? connection->pages + DOMI_SQLITE_PAGES : DOMI_SQLITE_PAGES;
    connection->pages = 0;
}
