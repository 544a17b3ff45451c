/* Answers that several handlers give. */
#include "api.h"

#include <domus/log.h>

#include <errno.h>
#include <stdlib.h>

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

int api_fail(domus_stack *stack, int error, const domus_answer *answer)
{
    const domus_sql_error *failure = domus_sql_error_of(answer);

    if (failure != NULL)
        domus_log_write(stack, DOMUS_LOG_ERROR, "the database says: %s %s", failure->sqlstate,
                        failure->message);
    if (error == -ENOBUFS || error == -EBUSY || error == -ENOTCONN || error == -EPIPE ||
        error == -ETIMEDOUT)
        return api_refuse(stack, 503, "the database is busy or away");
    return api_refuse(stack, 500, "the database has refused that");
}

int api_created(domus_stack *stack, const domus_json_table *table, const void *value,
                const char *folder, const char *name)
{
    domus_appender fields = {0};

    (void)domus_append_text(&fields, "Location: /%s/%s\r\n", folder, name);
    return domus_http_reply_json(stack, 201, table, value, &fields);
}
