/* Binds parameters to a statement of SQLite, and reads rows from it. Run by helper threads. */
#include "protocols/sqlite/connection.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* --- parameters ------------------------------------------------------------------------------- */

/* Returns how many bytes the character of UTF-8 at `bytes`, before which `size` bytes are left,
 * has; 0 if it is invalid, such as a surrogate, an overlong form, or above U+10FFFF. */
static size_t size_of_utf8_character(const unsigned char *bytes, size_t size)
{
    unsigned char first = bytes[0], low = 0x80, high = 0xbf;
    size_t more = first < 0x80 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;

    if (first == 0 || (first >= 0x80 && (first < 0xc2 || first > 0xf4)) || more >= size)
        return 0;
    if (first == 0xe0)
        low = 0xa0;
    else if (first == 0xed)
        high = 0x9f;
    else if (first == 0xf0)
        low = 0x90;
    else if (first == 0xf4)
        high = 0x8f;
    for (size_t i = 1; i <= more; i++) {
        if (bytes[i] < low || bytes[i] > high)
            return 0;
        low = 0x80;
        high = 0xbf;
    }
    return more + 1;
}

/* Returns whether the bytes may be a value of type text: UTF-8 without zero bytes, as PostgreSQL
 * requires. */
static bool is_valid_text_value(const void *bytes, size_t size)
{
    const unsigned char *at = bytes;

    while (size > 0) {
        size_t step = size_of_utf8_character(at, size);
        if (step == 0)
            return false;
        at += step;
        size -= step;
    }
    return true;
}

/* Bind one value to a parameter of a statement. Its bytes are not copied, so they must stay until
 * the statement is put back. */
static int bind_value_to_parameter(sqlite3_stmt *statement, int at, const domus_sql_value *value)
{
    const void *bytes = value->size != 0 ? value->as.bytes : "";

    switch ((domus_sql_kind)value->kind) {
    case DOMUS_SQL_BOOL:
        return sqlite3_bind_int(statement, at, value->as.boolean);
    case DOMUS_SQL_INTEGER:
        return sqlite3_bind_int64(statement, at, value->as.integer);
    case DOMUS_SQL_REAL:
        return sqlite3_bind_double(statement, at, value->as.real);
    case DOMUS_SQL_TEXT:
        return sqlite3_bind_text(statement, at, bytes, (int)value->size, SQLITE_STATIC);
    case DOMUS_SQL_BYTES:
        return sqlite3_bind_blob(statement, at, bytes, (int)value->size, SQLITE_STATIC);
    case DOMUS_SQL_NULL:
        break;
    }
    return sqlite3_bind_null(statement, at);
}

bool domi_sqlite_bind_parameters(const domi_sqlite_connection *connection, domi_sqlite_task *task,
                                 const domus_sql_request *request, sqlite3_stmt *statement)
{
    char name[8];

    for (uint32_t i = 0; i < request->count; i++) {
        domus_sql_value value = domus_sql_request_value(request, i);

        if (value.kind == DOMUS_SQL_TEXT && !is_valid_text_value(value.as.bytes, value.size))
            return domi_sqlite_fail_task_by_library(
                task, -EINVAL, "22021", "a text parameter is no UTF-8, or has a zero in it");
        if (value.kind == DOMUS_SQL_REAL && isnan(value.as.real))
            return domi_sqlite_fail_task_by_library(task, -EINVAL, "22003", "SQLite has no NaN");
        (void)sqlite3_snprintf((int)sizeof name, name, "$%u", i + 1);
        int at = sqlite3_bind_parameter_index(statement, name);
        int result = at != 0 ? bind_value_to_parameter(statement, at, &value) : SQLITE_OK;
        if (result != SQLITE_OK)
            return domi_sqlite_fail_task_by_result_code(connection, task, result);
    }
    return true;
}

/* --- results ---------------------------------------------------------------------------------- */

static void add_names_of_columns(domus_sql_builder *builder, sqlite3_stmt *statement)
{
    int columns = sqlite3_column_count(statement);

    (void)domus_sql_build_columns(builder, (uint32_t)columns);
    for (int i = 0; i < columns; i++) {
        const char *name = sqlite3_column_name(statement, i);
        (void)domus_sql_build_name(builder, name != NULL ? name : "");
    }
}

static domus_sql_value read_cell_of_row(sqlite3_stmt *statement, int column)
{
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
        return domus_sql_int(sqlite3_column_int64(statement, column));
    case SQLITE_FLOAT:
        return domus_sql_real(sqlite3_column_double(statement, column));
    case SQLITE_TEXT: {
        const char *text = (const char *)sqlite3_column_text(statement, column);
        return domus_sql_text_of(text, (size_t)sqlite3_column_bytes(statement, column));
    }
    case SQLITE_BLOB: {
        const void *bytes = sqlite3_column_blob(statement, column);
        return domus_sql_bytes(bytes, (size_t)sqlite3_column_bytes(statement, column));
    }
    default:
        return domus_sql_null();
    }
}

/* Add the row at which a statement stands to a result. Returns 0, or the error of the builder. */
static int add_current_row(domus_sql_builder *builder, sqlite3_stmt *statement)
{
    int columns = sqlite3_column_count(statement), error = 0;

    for (int i = 0; i < columns && error == 0; i++) {
        domus_sql_value cell = read_cell_of_row(statement, i);
        error = domus_sql_build_cell(builder, &cell);
    }
    return error;
}

static bool fail_task_that_builds_result(domi_sqlite_task *task, int error)
{
    if (error == -EFBIG)
        return domi_sqlite_fail_task_by_library(task, error, "54000",
                                                "the result has more than result_max bytes");
    task->error = error;
    return false;
}

/* End the result of a task, with the number of rows that its statement has changed. */
static bool end_result_of_task(domi_sqlite_task *task, domus_sql_builder *builder,
                               uint64_t affected)
{
    int error = domus_sql_build_end(builder, &task->result);

    if (error != 0)
        return fail_task_that_builds_result(task, error);
    task->result.affected = affected;
    task->result.last = true;
    task->has_result = true;
    return true;
}

/* Returns how many rows the current statement has changed, where `before` was the connection's
 * total before it. SQLite reports the count of the last statement that changed something, so if the
 * total is the same, 0 is returned. */
static uint64_t count_rows_changed_since(const domi_sqlite_connection *connection,
                                         sqlite3_int64 before)
{
    return sqlite3_total_changes64(connection->handle) != before
               ? (uint64_t)sqlite3_changes64(connection->handle)
               : 0;
}

bool domi_sqlite_run_prepared_statement(domi_sqlite_connection *connection, domi_sqlite_task *task,
                                        sqlite3_stmt *statement)
{
    domus_sql_builder builder = {.bytes_max = connection->options->result_max};
    sqlite3_int64 before = sqlite3_total_changes64(connection->handle);
    int error = 0, result;
    bool has_names = false;

    do {
        result = sqlite3_step(statement);
        /* The columns are known only after the first step, because that may prepare the statement
         * again after a change of the schema. */
        if (!has_names && (result == SQLITE_ROW || result == SQLITE_DONE))
            add_names_of_columns(&builder, statement);
        has_names = true;
        if (result == SQLITE_ROW)
            error = add_current_row(&builder, statement);
    } while (result == SQLITE_ROW && error == 0);
    if (error == 0 && result == SQLITE_DONE)
        return end_result_of_task(task, &builder, count_rows_changed_since(connection, before));
    domus_sql_build_drop(&builder);
    return error != 0 ? fail_task_that_builds_result(task, error)
                      : domi_sqlite_fail_task_by_result_code(connection, task, result);
}

/* --- rows in pieces --------------------------------------------------------------------------- */

/* Returns the bytes of the row at which a statement stands, as the builder of results counts
 * them. */
static uint64_t count_bytes_of_current_row(sqlite3_stmt *statement)
{
    uint64_t size = 0;

    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        domus_sql_value cell = read_cell_of_row(statement, i);
        size += sizeof cell + (cell.kind >= DOMUS_SQL_TEXT ? cell.size : 0u);
    }
    return size;
}

/* Step the statement of a cursor to its next row. Returns false if this has failed the task. */
static bool step_cursor_to_next_row(domi_sqlite_connection *connection, domi_sqlite_task *task,
                                    domi_sqlite_cursor *cursor)
{
    int result = sqlite3_step(cursor->prepared);

    cursor->has_row = result == SQLITE_ROW;
    cursor->is_read = result == SQLITE_DONE;
    return result == SQLITE_ROW || result == SQLITE_DONE ||
           domi_sqlite_fail_task_by_result_code(connection, task, result);
}

void domi_sqlite_end_statement_of_cursor(domi_sqlite_connection *connection,
                                         domi_sqlite_cursor *cursor)
{
    (void)sqlite3_finalize(cursor->prepared);
    cursor->prepared = NULL;
    if (cursor->is_writer)
        domi_sqlite_roll_back_transaction(connection);
    cursor->is_writer = false;
}

/* Start the statement of a task's cursor, and step to its first row. */
static bool begin_statement_of_cursor(domi_sqlite_connection *connection, domi_sqlite_task *task)
{
    domi_sqlite_cursor *cursor = task->cursor;
    domi_sqlite_prepared prepared;

    if (!domi_sqlite_prepare_statement(connection, task, &cursor->request, false, &prepared))
        return false;
    cursor->prepared = prepared.statement;
    if (sqlite3_stmt_readonly(prepared.statement) == 0) {
        if (domi_sqlite_may_connection_only_read(connection, task))
            return domi_sqlite_bounce_or_fail_writing_task(connection, task);
        if (cursor->transaction == 0) {
            int result = domi_sqlite_run_statement_of_library(connection, DOMI_SQLITE_BEGIN_WRITE);
            if (result != SQLITE_OK)
                return domi_sqlite_fail_task_by_result_code(connection, task, result);
            cursor->is_writer = true;
        }
    }
    return domi_sqlite_bind_parameters(connection, task, &cursor->request, prepared.statement) &&
           step_cursor_to_next_row(connection, task, cursor);
}

void domi_sqlite_begin_to_read_rows(domi_sqlite_connection *connection, domi_sqlite_task *task)
{
    if (!begin_statement_of_cursor(connection, task))
        domi_sqlite_end_statement_of_cursor(connection, task->cursor);
}

/* Finish the rows of a cursor whose statement has come to its end, and commit its transaction if it
 * has one of its own. */
static bool finish_rows_and_commit(domi_sqlite_connection *connection, domi_sqlite_task *task)
{
    domi_sqlite_cursor *cursor = task->cursor;
    int result = SQLITE_OK;

    (void)sqlite3_finalize(cursor->prepared);
    cursor->prepared = NULL;
    domi_sqlite_set_task_and_its_time_limit(connection, NULL);
    if (cursor->is_writer)
        result = domi_sqlite_run_statement_of_library(connection, DOMI_SQLITE_COMMITS);
    if (result != SQLITE_OK)
        return domi_sqlite_fail_task_by_result_code(connection, task, result);
    cursor->is_writer = false;
    return true;
}

static bool fill_piece_with_rows(domi_sqlite_connection *connection, domi_sqlite_task *task,
                                 domus_sql_builder *builder)
{
    domi_sqlite_cursor *cursor = task->cursor;

    add_names_of_columns(builder, cursor->prepared);
    while (cursor->has_row && domus_sql_built_size(builder) < connection->options->piece_size) {
        if (count_bytes_of_current_row(cursor->prepared) > connection->options->result_max)
            return fail_task_that_builds_result(task, -EFBIG);
        int error = add_current_row(builder, cursor->prepared);
        if (error != 0)
            return fail_task_that_builds_result(task, error);
        if (!step_cursor_to_next_row(connection, task, cursor))
            return false;
    }
    if (cursor->is_read && !finish_rows_and_commit(connection, task))
        return false;
    return end_result_of_task(task, builder, 0);
}

void domi_sqlite_read_next_piece_of_rows(domi_sqlite_connection *connection, domi_sqlite_task *task)
{
    domus_sql_builder builder = {.bytes_max = 0};

    if (fill_piece_with_rows(connection, task, &builder)) {
        task->result.last = task->cursor->is_read;
        return;
    }
    domus_sql_build_drop(&builder);
    domi_sqlite_end_statement_of_cursor(connection, task->cursor);
}
