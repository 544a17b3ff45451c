/* Requests and answers as JSON, and failures as problem details. */
#include "api.h"

#include <domus/http_form.h>
#include <domus/http_problem.h>
#include <domus/log.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t api_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool api_issue_number(const domus_http_match *match, int64_t *ret_id)
{
    domus_slice text = domus_http_route_value(match, "id");
    char digits[20] = "", *end;

    if (text.size >= sizeof digits)
        return false;
    memcpy(digits, domus_slice_data(text), text.size);
    *ret_id = strtoll(digits, &end, 10);
    return *end == '\0' && digits[0] >= '1' && digits[0] <= '9';
}

int api_refuse(domus_stack *stack, uint16_t status, const char *words)
{
    return domus_http_reply_problem(stack, &(domus_http_problem){.status = status, .detail = words},
                                    NULL);
}

bool api_read(domus_stack *stack, const domus_http_request *request, const domus_json_table *table,
              void *ret_value, domus_json_memory *ret_memory, int *ret_result)
{
    char words[DOMUS_JSON_EXPLAIN_MAX];
    domus_json_error error;

    if (request->stream.number != 0) { /* a body whose length is not said, or is too large */
        *ret_result = api_refuse(stack, 413, "a body of up to 64 KiB is wanted");
        return false;
    }
    if (domus_json_read_slice(table, NULL, request->body, ret_value, ret_memory, &error) == 0)
        return true;
    *ret_result = api_refuse(stack, (uint16_t)domus_json_status(&error),
                             domus_json_explain(&error, words, sizeof words));
    return false;
}

int api_answer(domus_stack *stack, uint16_t status, const domus_json_table *table,
               const void *value, const char *location)
{
    domus_http_response response = {.status = status, .media = "application/json"};
    domus_appender body = {0}, fields = {0};
    int error = domus_json_write(table, value, &body, NULL);

    if (error != 0) {
        domus_append_drop(&body);
        return error;
    }
    if (location != NULL)
        (void)domus_http_add(&fields, "Location", location);
    error = domus_append_end(&body, &response.body);
    if (error == 0)
        error = domus_append_end(&fields, &response.fields);
    if (error == 0)
        error = domus_reply(stack, &domus_http_response_type, &response);
    if (error != 0)
        domus_http_response_type.release(&response);
    return error;
}

int api_fail(domus_stack *stack, int error, const domus_answer *answer)
{
    const domus_sql_error *failure = domus_sql_error_of(answer);

    if (failure != NULL)
        domus_log_write(stack, DOMUS_LOG_ERROR, "the database says: %s %s", failure->sqlstate,
                        failure->message);
    switch (error) {
    case -ENOBUFS:
    case -EBUSY:
    case -ENOTCONN:
    case -EPIPE:
    case -ETIMEDOUT:
        return api_refuse(stack, 503, "the database is busy or away");
    default:
        return api_refuse(stack, 500, "the database has refused that");
    }
}
