/* Problem details (RFC 9457) as bodies of answers, and the part of a chain that makes them the
 * bodies of errors. Any thread. */
#include "protocols/http/chain.h"
#include "protocols/http/texts.h"

#include <domus/http_problem.h>

#include <errno.h>
#include <string.h>

/* bytes that one byte of a text becomes in JSON when it is escaped, at most */
#define ESCAPED_MAX 6u

/* Append a member of a JSON object whose value is a text. */
static void append_json_member(domus_appender *to, const char *name, const char *text)
{
    if (text == NULL)
        return;
    size_t room = strlen(text) * ESCAPED_MAX;
    (void)domus_append_text(to, "\"%s\":\"", name);
    if (room != 0) {
        char *at = domus_append_room(to, room);
        if (at == NULL)
            return;
        domus_append_written(to, domi_http_escape_text_for_json(text, strlen(text), at, room));
    }
    (void)domus_append(to, "\",", 2);
}

/* Append a problem as JSON, with the id of its request, which has no characters that JSON must
 * escape; "" leaves the id out. */
static int append_problem_as_json(domus_appender *to, const domus_http_problem *problem,
                                  const char *id)
{
    const char *reason = domus_http_reason(problem->status);

    if (problem->status < 400 || problem->status > 599)
        return -EINVAL;
    (void)domus_append(to, "{", 1);
    append_json_member(to, "type", problem->type);
    append_json_member(to, "title", problem->title != NULL ? problem->title : reason);
    append_json_member(to, "detail", problem->detail);
    append_json_member(to, "instance", problem->instance);
    if (problem->members != NULL)
        (void)domus_append_text(to, "%s,", problem->members);
    if (id[0] != '\0')
        append_json_member(to, "request_id", id);
    return domus_append_text(to, "\"status\":%u}\n", problem->status);
}

int domus_http_append_problem(domus_appender *to, const domus_http_problem *problem)
{
    return append_problem_as_json(to, problem, "");
}

static bool must_problem_have_id_of_request(const domus_http_problems_options *options)
{
    return options != NULL && options->names_request;
}

/* Returns the id of the request that is being handled, if its chain's part for problems is set to
 * show it; otherwise "". */
static const char *find_id_of_current_request(domus_stack *stack)
{
    const domi_http_state *state;
    const domi_http_exchange *exchange = domi_http_find_exchange_of_channel(
        stack, domus_asked(stack, &domus_http_request_type), &state);

    for (uint32_t i = 0; exchange != NULL && i < exchange->entered; i++) {
        const domus_http_step *step = domi_http_step_at_place_of_exchange(exchange, i);
        if (step->part == &domus_http_problems && must_problem_have_id_of_request(step->options))
            return exchange->face.trace.id;
    }
    return "";
}

int domus_http_reply_problem(domus_stack *stack, const domus_http_problem *problem,
                             domus_appender *fields)
{
    domus_http_response response = {.status = problem->status, .media = DOMUS_HTTP_PROBLEM_MEDIA};
    domus_appender body = {0};
    int error = fields != NULL ? domus_append_end(fields, &response.fields) : 0;

    if (error == 0)
        error = append_problem_as_json(&body, problem, find_id_of_current_request(stack));
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

static void make_body_of_problem_if_wanted(domus_http_exchange *exchange,
                                           domus_http_leaving *leaving, const void *options)
{
    const domus_http_problem problem = {.status = leaving->status};
    domus_appender body = {0};
    domus_slice made;

    if (!leaving->wants_body || leaving->body.size != 0)
        return;
    if (append_problem_as_json(&body, &problem,
                               must_problem_have_id_of_request(options) ? exchange->trace.id
                                                                        : "") == 0 &&
        domus_append_end(&body, &made) == 0) {
        leaving->body = made;
        leaving->media = DOMUS_HTTP_PROBLEM_MEDIA;
    }
    domus_append_drop(&body);
}

const domus_http_part domus_http_problems = {.name = "problems",
                                             .leave = make_body_of_problem_if_wanted};
