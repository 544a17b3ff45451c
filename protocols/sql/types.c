/* The types of the messages to and from a database, and what their payloads own. */
#include <domus/sql_driver.h>

static void release_request(void *payload)
{
    domus_sql_request *request = payload;

    domus_slice_free(request->text);
    domus_slice_free(request->more);
}

static void release_result(void *payload)
{
    domus_sql_result *result = payload;

    domus_slice_free(result->cells);
    domus_slice_free(result->bytes);
}

const domus_type domus_sql_query_type = {
    .name = "sql_query", .size = sizeof(domus_sql_request), .release = release_request};
const domus_type domus_sql_rows_type = {
    .name = "sql_rows", .size = sizeof(domus_sql_request), .release = release_request};
const domus_type domus_sql_script_type = {
    .name = "sql_script", .size = sizeof(domus_sql_request), .release = release_request};
const domus_type domus_sql_fetch_type = {.name = "sql_fetch", .size = sizeof(domus_sql_cursor)};
const domus_type domus_sql_close_type = {.name = "sql_close", .size = sizeof(domus_sql_cursor)};
const domus_type domus_sql_begin_type = {.name = "sql_begin",
                                         .size = sizeof(domus_sql_begin_options)};
const domus_type domus_sql_begun_type = {.name = "sql_begun", .size = sizeof(domus_sql)};
const domus_type domus_sql_end_type = {.name = "sql_end", .size = sizeof(domus_sql_end)};
const domus_type domus_sql_abandon_type = {.name = "sql_abandon", .size = sizeof(domus_sql)};
const domus_type domus_sql_who_type = {.name = "sql_who"};
const domus_type domus_sql_driver_type = {.name = "sql_driver",
                                          .size = sizeof(const domus_sql_driver *)};
const domus_type domus_sql_look_type = {.name = "sql_look"};

const domus_type domus_sql_result_type = {
    .name = "sql_result", .size = sizeof(domus_sql_result), .release = release_result};
const domus_type domus_sql_cursor_type = {.name = "sql_cursor", .size = sizeof(domus_sql_cursor)};
const domus_type domus_sql_error_type = {.name = "sql_error", .size = sizeof(domus_sql_error)};
const domus_type domus_sql_status_type = {.name = "sql_status", .size = sizeof(domus_sql_status)};
