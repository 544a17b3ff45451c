/* Problem details, and the part of a chain that gives them to errors. Any thread. */
#include "protocols/http/json_text.h"

#include <domus/http_problem.h>

#include <errno.h>
#include <string.h>

#define ESCAPED_MAX 6u /* bytes that one byte becomes at most */

/* Append a member whose value is a text. */
static void append_member(domus_appender *to, const char *name, const char *text)
{
    if (text == NULL)
        return;
    size_t room = strlen(text) * ESCAPED_MAX;
    (void)domus_append_text(to, "\"%s\":\"", name);
    if (room != 0) {
        char *at = domus_append_room(to, room);
        if (at == NULL)
            return;
        domus_append_written(to, domi_http_json_text(text, strlen(text), at, room));
    }
    (void)domus_append(to, "\",", 2);
}

int domus_http_append_problem(domus_appender *to, const domus_http_problem *problem)
{
    const char *reason = domus_http_reason(problem->status);

    if (problem->status < 400 || problem->status > 599)
        return -EINVAL;
    (void)domus_append(to, "{", 1);
    append_member(to, "type", problem->type);
    append_member(to, "title", problem->title != NULL ? problem->title : reason);
    append_member(to, "detail", problem->detail);
    append_member(to, "instance", problem->instance);
    if (problem->members != NULL)
        (void)domus_append_text(to, "%s,", problem->members);
    return domus_append_text(to, "\"status\":%u}\n", problem->status);
}

int domus_http_reply_problem(domus_stack *stack, const domus_http_problem *problem,
                             domus_appender *fields)
{
    domus_http_response response = {.status = problem->status, .media = DOMUS_HTTP_PROBLEM_MEDIA};
    domus_appender body = {0};
    int error = fields != NULL ? domus_append_end(fields, &response.fields) : 0;

    if (error == 0)
        error = domus_http_append_problem(&body, problem);
    if (error == 0)
        error = domus_append_end(&body, &response.body);
    if (error == 0)
        error = domus_reply(stack, &domus_http_response_type, &response);
    if (error == 0)
        return 0;
    domus_append_drop(&body);
    domus_http_response_type.release(&response);
    return error;
}

static void leave(domus_http_exchange *exchange, domus_http_leaving *leaving, const void *options_)
{
    const domus_http_problems_options *options = options_;
    bool names = options != NULL && options->names_request && exchange->trace.id[0] != '\0';
    domus_http_problem problem = {.status = leaving->status};
    domus_appender body = {0};
    domus_appender member = {0};
    domus_slice members = {NULL, 0, 0};

    if (!leaving->wants_body || leaving->body.size != 0)
        return;
    if (names) { /* an id has no characters that JSON escapes */
        (void)domus_append_text(&member, "\"request_id\":\"%s\"", exchange->trace.id);
        (void)domus_append(&member, "", 1);
        if (domus_append_end(&member, &members) == 0)
            problem.members = domus_slice_data(members);
    }
    domus_slice made;
    if (domus_http_append_problem(&body, &problem) == 0 && domus_append_end(&body, &made) == 0) {
        leaving->body = made;
        leaving->media = DOMUS_HTTP_PROBLEM_MEDIA;
    }
    domus_append_drop(&body);
    domus_slice_free(members);
}

const domus_http_part domus_http_problems = {.name = "problems", .leave = leave};
