/* Prepared statements: those that are constants of the program are kept, found by their address,
 * and the one that was used longest ago makes room for a new one. Run by helper threads. */
#include "protocols/sqlite/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static domi_sqlite_kept **bucket_of_statement(domi_sqlite_statements *statements,
                                              const domus_sql_statement *statement)
{
    uint64_t hash = (uint64_t)(uintptr_t)statement * UINT64_C(0x9e3779b97f4a7c15);

    return &statements->buckets[(hash >> 32) % DOMI_SQLITE_BUCKETS];
}

static void unlink_from_order_of_use(domi_sqlite_statements *statements, domi_sqlite_kept *kept)
{
    if (kept->newer != NULL)
        kept->newer->older = kept->older;
    else
        statements->newest = kept->older;
    if (kept->older != NULL)
        kept->older->newer = kept->newer;
    else
        statements->oldest = kept->newer;
}

static void link_as_last_used(domi_sqlite_statements *statements, domi_sqlite_kept *kept)
{
    kept->newer = NULL;
    kept->older = statements->newest;
    if (statements->newest != NULL)
        statements->newest->newer = kept;
    else
        statements->oldest = kept;
    statements->newest = kept;
}

static domi_sqlite_kept *find_kept_statement(domi_sqlite_statements *statements,
                                             const domus_sql_statement *statement)
{
    domi_sqlite_kept *kept = *bucket_of_statement(statements, statement);

    while (kept != NULL && kept->statement != statement)
        kept = kept->chain;
    return kept;
}

static void free_kept_statement(domi_sqlite_statements *statements, domi_sqlite_kept *kept)
{
    domi_sqlite_kept **at = bucket_of_statement(statements, kept->statement);

    while (*at != kept)
        at = &(*at)->chain;
    *at = kept->chain;
    unlink_from_order_of_use(statements, kept);
    (void)sqlite3_finalize(kept->prepared);
    free(kept);
    statements->count--;
}

void domi_sqlite_free_kept_statements(domi_sqlite_connection *connection)
{
    while (connection->statements.oldest != NULL)
        free_kept_statement(&connection->statements, connection->statements.oldest);
}

/* --- parameters ------------------------------------------------------------------------------- */

/* Returns the number that a parameter's name stands for, such as 2 for $2; 0 if the name has
 * another form. */
static uint32_t parse_number_in_parameter_name(const char *name)
{
    uint32_t number = 0;

    if (name == NULL || name[0] != '$' || name[1] == '0' || name[1] == '\0')
        return 0;
    for (name++; *name != '\0'; name++) {
        if (*name < '0' || *name > '9' || number > DOMUS_SQL_PARAMETERS_MAX)
            return 0;
        number = number * 10 + (uint32_t)(*name - '0');
    }
    return number <= DOMUS_SQL_PARAMETERS_MAX ? number : 0;
}

/* Get the number of a statement's parameters, which is their highest number. Returns false if a
 * name has another form than $1. */
static bool count_parameters(sqlite3_stmt *prepared, uint32_t *ret_count)
{
    uint32_t highest = 0;

    for (int i = 1; i <= sqlite3_bind_parameter_count(prepared); i++) {
        uint32_t number = parse_number_in_parameter_name(sqlite3_bind_parameter_name(prepared, i));
        if (number == 0)
            return false;
        if (number > highest)
            highest = number;
    }
    *ret_count = highest;
    return true;
}

static bool fail_task_unless_parameters_fit(domi_sqlite_task *task,
                                            const domus_sql_request *request, uint32_t count)
{
    if (request->count == count)
        return true;
    domus_sql_error error =
        domus_sql_error_make(-EINVAL, "07001", "the statement has %u parameters, and there are %u",
                             count, request->count);
    return domi_sqlite_set_failure_of_task(task, &error);
}

/* --- preparing -------------------------------------------------------------------------------- */

/* Returns whether nothing but blanks and comments follows the first statement of a text. Anything
 * else is wrong there, as a second statement is. */
static bool is_text_behind_statement_blank(domi_sqlite_connection *connection, const char *rest)
{
    while (*rest != '\0') {
        sqlite3_stmt *second = NULL;
        const char *before = rest;
        int result = sqlite3_prepare_v2(connection->handle, rest, -1, &second, &rest);

        (void)sqlite3_finalize(second);
        if (result != SQLITE_OK || second != NULL)
            return false;
        if (rest == before)
            break;
    }
    return true;
}

static bool prepare_text_of_statement(domi_sqlite_connection *connection, domi_sqlite_task *task,
                                      const char *text, bool keeps, sqlite3_stmt **ret_prepared)
{
    sqlite3_stmt *prepared = NULL;
    const char *rest = text;

    connection->denied = NULL;
    connection->prepares++;
    int result = sqlite3_prepare_v3(connection->handle, text, -1,
                                    keeps ? SQLITE_PREPARE_PERSISTENT : 0, &prepared, &rest);
    if (result != SQLITE_OK)
        return domi_sqlite_fail_task_by_result_code(connection, task, result);
    if (prepared == NULL)
        return domi_sqlite_fail_task_by_library(task, -EINVAL, "42601",
                                                "there is no statement in the text");
    if (!is_text_behind_statement_blank(connection, rest)) {
        (void)sqlite3_finalize(prepared);
        return domi_sqlite_fail_task_by_library(task, -EINVAL, "42601",
                                                "there is more than one statement in the text");
    }
    *ret_prepared = prepared;
    return true;
}

/* Keep a prepared statement of the program for its next use. Returns false if there is no memory
 * for that. */
static bool keep_prepared_statement(domi_sqlite_connection *connection,
                                    const domus_sql_statement *statement, sqlite3_stmt *prepared,
                                    uint32_t parameters)
{
    domi_sqlite_statements *statements = &connection->statements;
    domi_sqlite_kept *kept = malloc(sizeof *kept);

    if (kept == NULL)
        return false;
    if (statements->count >= connection->options->statements_max)
        free_kept_statement(statements, statements->oldest);
    domi_sqlite_kept **bucket = bucket_of_statement(statements, statement);
    *kept = (domi_sqlite_kept){
        .statement = statement, .prepared = prepared, .chain = *bucket, .parameters = parameters};
    *bucket = kept;
    link_as_last_used(statements, kept);
    statements->count++;
    return true;
}

bool domi_sqlite_prepare_statement(domi_sqlite_connection *connection, domi_sqlite_task *task,
                                   const domus_sql_request *request, bool may_keep,
                                   domi_sqlite_prepared *ret_prepared)
{
    const domus_sql_statement *statement = request->statement;
    bool keeps = may_keep && statement != NULL;
    domi_sqlite_kept *kept = keeps ? find_kept_statement(&connection->statements, statement) : NULL;
    domi_sqlite_prepared made = {NULL, false};
    uint32_t parameters;

    if (kept != NULL) {
        unlink_from_order_of_use(&connection->statements, kept);
        link_as_last_used(&connection->statements, kept);
        *ret_prepared = (domi_sqlite_prepared){kept->prepared, true};
        return fail_task_unless_parameters_fit(task, request, kept->parameters);
    }
    if (!prepare_text_of_statement(connection, task, domus_sql_request_text(request), keeps,
                                   &made.statement))
        return false;
    if (!count_parameters(made.statement, &parameters)) {
        (void)sqlite3_finalize(made.statement);
        return domi_sqlite_fail_task_by_library(task, -EINVAL, "42601",
                                                "parameters are $1, $2 and so on");
    }
    made.is_kept =
        keeps && keep_prepared_statement(connection, statement, made.statement, parameters);
    if (!fail_task_unless_parameters_fit(task, request, parameters)) {
        domi_sqlite_reset_or_finalize_statement(&made);
        return false;
    }
    *ret_prepared = made;
    return true;
}

void domi_sqlite_reset_or_finalize_statement(const domi_sqlite_prepared *prepared)
{
    if (!prepared->is_kept) {
        (void)sqlite3_finalize(prepared->statement);
        return;
    }
    (void)sqlite3_reset(prepared->statement);
    (void)sqlite3_clear_bindings(prepared->statement);
}
