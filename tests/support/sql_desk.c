/* A desk: a thread of a test that asks a database and waits for the answers;
 * tests/support/sql_desk.h has the contract. */
#include "tests/support/sql_desk.h"

#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ASK_NS UINT64_C(60000000000)

static void free_last_answer(domt_desk *desk)
{
    if (desk->answer.error == 0 && desk->answer.type != NULL && desk->answer.type->release != NULL)
        desk->answer.type->release(&desk->payload);
    desk->answer = (domus_answer){.error = -ENODATA};
}

static void attach_outsider_of_desk(domt_desk *desk)
{
    desk->answer.error = -ENODATA;
    ck_assert_int_eq(domus_outside_attach(desk->system, NULL, &desk->outsider), 0);
}

void domt_desk_open(domt_desk *desk, const domus_sql_driver *driver, const char *url,
                    const domus_sql_options *options)
{
    const domus_sql_driver *const drivers[] = {driver, NULL};
    domus_sql_options own = options != NULL ? *options : (domus_sql_options){.drivers = NULL};
    char error[256] = "";
    domus_config config;

    domus_config_init(&config);
    /* if each thread has its own pool, the limits count per thread, so the system gets one thread
     */
    config.system.threads = driver->per_thread ? 1 : 2;
    config.system.cpus = "none";
    *desk = (domt_desk){.is_guest = false};
    own.drivers = drivers;
    ck_assert_msg(domus_system_new(&config, error, sizeof error, &desk->system) == 0, "%s", error);
    ck_assert_msg(domus_system_start(desk->system) == 0, "%s", domus_system_error(desk->system));
    attach_outsider_of_desk(desk);
    ck_assert_msg(domus_sql_check(url, &own, error, sizeof error) == 0, "%s", error);
    ck_assert_int_eq(domus_outside_sql_open(desk->system, url, &own, &desk->sql), 0);
}

void domt_desk_open_guest(domt_desk *guest, const domt_desk *desk)
{
    *guest = (domt_desk){.system = desk->system, .sql = desk->sql, .is_guest = true};
    attach_outsider_of_desk(guest);
}

void domt_desk_close(domt_desk *desk)
{
    free_last_answer(desk);
    ck_assert_int_eq(domus_outside_detach(desk->outsider), 0);
    if (desk->is_guest)
        return;
    ck_assert_int_eq(domus_system_stop(desk->system), 0);
    ck_assert_str_eq(domus_system_left(desk->system), "");
    domus_system_free(desk->system);
}

int domt_desk_ask(domt_desk *desk, domus_address to, const domus_type *type, const void *payload)
{
    domus_outside_reply reply = {.buffer = &desk->payload, .size = sizeof desk->payload};

    free_last_answer(desk);
    desk->answer.error = domus_outsider_ask(desk->outsider, to, type, payload, ASK_NS, &reply);
    if (desk->answer.error != 0)
        return desk->answer.error;
    desk->answer.type = reply.type;
    desk->answer.payload = &desk->payload;
    return reply.type == &domus_sql_error_type ? desk->payload.error.error : 0;
}

static int ask_and_get_error(domt_desk *desk, const domus_type *type, domus_sql sql,
                             const domus_sql_statement *statement, const char *text,
                             const domus_sql_value *values, uint32_t count)
{
    domus_sql_request request;
    int error = domus_sql_request_make(sql, statement, text, values, count, &request);

    return error != 0 ? error : domt_desk_ask(desk, sql.at, type, &request);
}

int domt_desk_run_text(domt_desk *desk, domus_sql sql, const char *text,
                       const domus_sql_value *values, uint32_t count)
{
    return ask_and_get_error(desk, &domus_sql_query_type, sql, NULL, text, values, count);
}

int domt_desk_run_statement(domt_desk *desk, domus_sql sql, const domus_sql_statement *statement,
                            const domus_sql_value *values, uint32_t count)
{
    return ask_and_get_error(desk, &domus_sql_query_type, sql, statement, NULL, values, count);
}

int domt_desk_run_script(domt_desk *desk, domus_sql sql, const char *text)
{
    return ask_and_get_error(desk, &domus_sql_script_type, sql, NULL, text, NULL, 0);
}

int domt_desk_begin_transaction(domt_desk *desk, bool reads_only, domus_sql *ret_sql)
{
    domus_sql_begin_options options = {.reads_only = reads_only};
    int error = domt_desk_ask(desk, desk->sql.at, &domus_sql_begin_type, &options);

    return error != 0 ? error : domus_sql_transaction_of(&desk->answer, ret_sql);
}

int domt_desk_end_transaction(domt_desk *desk, domus_sql sql, bool commits)
{
    domus_sql_end end = {.transaction = sql.transaction, .commits = commits};

    return domt_desk_ask(desk, sql.at, &domus_sql_end_type, &end);
}

int domt_desk_open_cursor(domt_desk *desk, domus_sql sql, const domus_sql_statement *statement,
                          const domus_sql_value *values, uint32_t count,
                          domus_sql_cursor *ret_cursor)
{
    int error = ask_and_get_error(desk, &domus_sql_rows_type, sql, statement, NULL, values, count);

    return error != 0 ? error : domus_sql_cursor_of(&desk->answer, ret_cursor);
}

int domt_desk_fetch_rows(domt_desk *desk, domus_sql_cursor cursor)
{
    return domt_desk_ask(desk, cursor.at, &domus_sql_fetch_type, &cursor);
}

void domt_desk_close_cursor(domt_desk *desk, domus_sql_cursor cursor)
{
    ck_assert_int_eq(
        domus_outsider_notice(desk->outsider, cursor.at, &domus_sql_close_type, &cursor), 0);
}

domus_sql_status domt_desk_database_status(domt_desk *desk)
{
    ck_assert_int_eq(domt_desk_ask(desk, desk->sql.at, &domus_sql_look_type, NULL), 0);
    return desk->payload.status;
}

const char *domt_desk_sqlstate(const domt_desk *desk)
{
    const domus_sql_error *error = domus_sql_error_of(&desk->answer);

    return error != NULL ? error->sqlstate : "";
}

/* Write a cell of a result as text; a cell of bytes is written as these bytes. */
static size_t write_cell_as_text(domus_sql_value cell, char *text, size_t size)
{
    int written = 0;

    switch ((domus_sql_kind)cell.kind) {
    case DOMUS_SQL_NULL:
        written = snprintf(text, size, "~");
        break;
    case DOMUS_SQL_BOOL:
        written = snprintf(text, size, "%d", cell.as.boolean);
        break;
    case DOMUS_SQL_INTEGER:
        written = snprintf(text, size, "%lld", (long long)cell.as.integer);
        break;
    case DOMUS_SQL_REAL:
        written = snprintf(text, size, "%g", cell.as.real);
        break;
    case DOMUS_SQL_TEXT:
    case DOMUS_SQL_BYTES:
        written = snprintf(text, size, "%.*s", (int)cell.size, (const char *)cell.as.bytes);
        break;
    }
    ck_assert_int_ge(written, 0);
    return (size_t)written < size ? (size_t)written : size;
}

void domt_desk_write_result(const domt_desk *desk, char *text, size_t size)
{
    const domus_sql_result *result = &desk->payload.result;
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t row = 0; row < result->rows; row++) {
        for (uint32_t column = 0; column < result->columns && used + 2 < size; column++) {
            if (row + column != 0)
                text[used++] = column == 0 ? ';' : '|';
            used +=
                write_cell_as_text(domus_sql_cell(result, row, column), text + used, size - used);
        }
    }
}

void domt_desk_must_succeed(domt_desk *desk, domus_sql sql, const char *text)
{
    int error = domt_desk_run_text(desk, sql, text, NULL, 0);

    ck_assert_msg(error == 0, "%s: %s %s", text, strerror(-error),
                  desk->answer.type == &domus_sql_error_type ? desk->payload.error.message : "");
}

void domt_desk_query_must_return(domt_desk *desk, domus_sql sql, const char *text,
                                 const char *expected)
{
    char shown[1024];

    domt_desk_must_succeed(desk, sql, text);
    domt_desk_write_result(desk, shown, sizeof shown);
    ck_assert_str_eq(shown, expected);
}
