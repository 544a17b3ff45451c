/* Turns failures of SQLite into SQLSTATEs, by the result code, or by the message where a code
 * stands for many things. Run by helper threads. */
#include "protocols/sqlite/connection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A result code of SQLite, extended or not, and the SQLSTATE for it. The first row that fits
 * counts. */
static const struct {
    int result;
    char state[6];
} states[] = {
    {SQLITE_CONSTRAINT_UNIQUE, "23505"},
    {SQLITE_CONSTRAINT_PRIMARYKEY, "23505"},
    {SQLITE_CONSTRAINT_ROWID, "23505"},
    {SQLITE_CONSTRAINT_NOTNULL, "23502"},
    {SQLITE_CONSTRAINT_FOREIGNKEY, "23503"},
    {SQLITE_CONSTRAINT_CHECK, "23514"},
    {SQLITE_CONSTRAINT_DATATYPE, "22P02"},
    {SQLITE_CONSTRAINT, "23000"},
    {SQLITE_BUSY_SNAPSHOT, "40001"},
    {SQLITE_BUSY, "55P03"},
    {SQLITE_LOCKED, "55P03"},
    {SQLITE_READONLY, "25006"},
    {SQLITE_FULL, "53100"},
    {SQLITE_NOMEM, "53200"},
    {SQLITE_IOERR_NOMEM, "53200"},
    {SQLITE_INTERRUPT, "57014"},
    {SQLITE_CORRUPT, "XX001"},
    {SQLITE_NOTADB, "XX001"},
    {SQLITE_TOOBIG, "54000"},
    {SQLITE_AUTH, "42501"},
    {SQLITE_PERM, "42501"},
    {SQLITE_MISMATCH, "22P02"},
    {SQLITE_RANGE, "07001"},
    {SQLITE_CANTOPEN, "58030"},
    {SQLITE_IOERR, "58030"},
};

/* A part of a message of SQLITE_ERROR, and the SQLSTATE for it. */
static const struct {
    const char *words;
    char state[6];
} messages[] = {
    {"no such table", "42P01"},    {"no such view", "42P01"},        {"no such index", "42704"},
    {"no such column", "42703"},   {"has no column named", "42703"}, {"no such function", "42883"},
    {"wrong number of", "42883"},  {"already exists", "42P07"},      {"already another", "42P07"},
    {"duplicate column", "42701"}, {"ambiguous column", "42702"},    {"syntax error", "42601"},
    {"incomplete input", "42601"}, {"unrecognized token", "42601"},  {"integer overflow", "22003"},
    {"malformed JSON", "22P02"},   {"not authorized", "42501"},
};

static const char *find_sqlstate_of_failure(int result, const char *message)
{
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        if (states[i].result == result || states[i].result == (result & 0xff))
            return states[i].state;
    }
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        if (strstr(message, messages[i].words) != NULL)
            return messages[i].state;
    }
    return "42000";
}

/* Returns the place of a byte in the text of a statement, counted in characters from 1; 0 if the
 * byte is not in the text. */
static uint32_t count_characters_up_to_byte(const char *text, int offset)
{
    uint32_t position = 1;

    if (text == NULL || offset < 0 || (size_t)offset > strlen(text))
        return 0;
    for (int i = 0; i < offset; i++)
        position += ((unsigned char)text[i] & 0xc0) != 0x80;
    return position;
}

/* Copy a name from a message of SQLite up to one of the characters `ends`, or up to the message's
 * end. */
static void copy_name_from_message(char field[DOMUS_SQL_NAME_SIZE], const char *name,
                                   const char *ends)
{
    char copy[DOMUS_SQL_NAME_SIZE];
    size_t size = strcspn(name, ends);

    if (size >= sizeof copy)
        size = sizeof copy - 1;
    memcpy(copy, name, size);
    copy[size] = '\0';
    domus_sql_error_text(field, DOMUS_SQL_NAME_SIZE, copy);
}

/* Read the table and columns out of a message such as "UNIQUE constraint failed: todo.title,
 * todo.day". */
static void read_table_and_columns(domus_sql_error *error, const char *message, int result)
{
    static const char failed[] = "constraint failed: ", index[] = "index '";
    const char *names = strstr(message, failed);

    if (names == NULL)
        return;
    names += strlen(failed);
    if (strncmp(names, index, strlen(index)) == 0) {
        copy_name_from_message(error->constraint, names + strlen(index), "'");
    } else if (result == SQLITE_CONSTRAINT_CHECK) {
        copy_name_from_message(error->constraint, names, "");
    } else if (strchr(names, '.') != NULL) {
        copy_name_from_message(error->table, names, ".");
        copy_name_from_message(error->column, strchr(names, '.') + 1, ",");
    }
}

domus_sql_error domi_sqlite_describe_failure(const domi_sqlite_connection *connection, int result,
                                             const char *text)
{
    sqlite3 *handle = connection->handle;
    const char *message = handle != NULL ? sqlite3_errmsg(handle) : sqlite3_errstr(result);
    const char *state = find_sqlstate_of_failure(result, message);
    int error = domus_sql_errno(state);

    if (connection->is_late)
        return domus_sql_error_make(-ETIMEDOUT, "57014", "the query has taken too long");
    if ((result & 0xff) == SQLITE_INTERRUPT)
        error = -ECANCELED;
    else if ((result & 0xff) == SQLITE_TOOBIG)
        error = -EMSGSIZE;
    else if ((result & 0xff) == SQLITE_CANTOPEN)
        error = -ENOTCONN;
    if ((result & 0xff) == SQLITE_AUTH && connection->denied != NULL)
        message = connection->denied;
    domus_sql_error made = domus_sql_error_make(error, state, "%s", "");
    domus_sql_error_text(made.message, sizeof made.message, message);
    if (handle != NULL) {
        made.position = count_characters_up_to_byte(text, sqlite3_error_offset(handle));
        read_table_and_columns(&made, message, result);
    }
    return made;
}

bool domi_sqlite_set_failure_of_task(domi_sqlite_task *task, const domus_sql_error *error)
{
    domi_sqlite_clear_outcome_of_task(task);
    task->error = error->error;
    task->failure = malloc(sizeof *task->failure);
    if (task->failure != NULL)
        *task->failure = *error;
    return false;
}

bool domi_sqlite_fail_task_by_result_code(const domi_sqlite_connection *connection,
                                          domi_sqlite_task *task, int result)
{
    const domus_sql_request *request =
        task->cursor != NULL ? &task->cursor->request : &task->request;
    bool has_text = task->verb == DOMI_SQLITE_QUERY || task->verb == DOMI_SQLITE_ROWS ||
                    task->verb == DOMI_SQLITE_FETCH;
    domus_sql_error error = domi_sqlite_describe_failure(
        connection, result, has_text ? domus_sql_request_text(request) : NULL);

    return domi_sqlite_set_failure_of_task(task, &error);
}

bool domi_sqlite_fail_task_by_library(domi_sqlite_task *task, int error, const char *sqlstate,
                                      const char *words)
{
    domus_sql_error made = domus_sql_error_make(error, sqlstate, "%s", words);

    return domi_sqlite_set_failure_of_task(task, &made);
}

bool domi_sqlite_bounce_or_fail_writing_task(const domi_sqlite_connection *connection,
                                             domi_sqlite_task *task)
{
    if (connection->place->reads_only || task->transaction != 0)
        return domi_sqlite_fail_task_by_library(task, -EROFS, "25006",
                                                "a statement that writes, where is only read");
    domi_sqlite_clear_outcome_of_task(task);
    task->is_bounced = true;
    return false;
}
