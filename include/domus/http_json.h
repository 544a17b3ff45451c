/* Bodies of JSON by tables (domus/json.h), for handlers of HTTP. The functions are inline, so that
 * neither library needs the other one; a program links both.
 *
 *     struct draft draft;
 *     int result;
 *     if (!domus_http_read_json(stack, request, &draft_table, &draft, &draft.memory, &result))
 *         return result;
 *     ...
 *     return domus_http_reply_json(stack, 201, &issue_table, &issue, NULL);
 *
 * Thread-safety: only from within the handler of a request, with its stack. */
#ifndef DOMUS_HTTP_JSON_H
#define DOMUS_HTTP_JSON_H

#include <domus/http_media.h>
#include <domus/http_problem.h>
#include <domus/json.h>

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Read the body of the request that is handled into the struct of a table. The body has come whole
 * (`whole_max` of domus/http.h, if the stage has `streams`).
 *
 * Returns true, and the memory of the struct is the caller's (domus_json_release()). False: the
 * request was answered by problem details, whose detail says what is wrong and where, and the
 * handler returns `ret_result`: 415 for a Content-Type that is not JSON, or none, because browsers
 * send such bodies from other sites without asking (domus/http_cors.h); 400 for a text that is no
 * JSON; 422 for values that are not those of the table; and for a body that comes in pieces 411 if
 * its length was not said, otherwise 413. */
static inline bool domus_http_read_json(domus_stack *stack, const domus_http_request *request,
                                        const domus_json_table *table, void *ret_value,
                                        domus_json_memory *ret_memory, int *ret_result)
{
    char words[DOMUS_JSON_EXPLAIN_MAX];
    domus_http_problem problem;
    domus_json_error error;
    domus_slice field;

    memset(&problem, 0, sizeof problem);
    if (!domus_http_field(request->fields, "content-type", &field) || !domus_http_is_json(field)) {
        problem.status = 415;
        problem.detail = "the Content-Type of the body has to be application/json";
    } else if (request->stream.number != 0) {
        bool is_large = domus_http_field(request->fields, "content-length", &field);
        problem.status = is_large ? 413 : 411;
        problem.detail = is_large ? "the body is too large" : "the body has no Content-Length";
    } else {
        if (domus_json_read_slice(table, NULL, request->body, ret_value, ret_memory, &error) == 0)
            return true;
        problem.status = (uint16_t)domus_json_status(&error);
        problem.detail = words;
        (void)domus_json_explain(&error, words, sizeof words);
    }
    *ret_result = domus_http_reply_problem(stack, &problem, NULL);
    return false;
}

/* Answer the request that is handled with a struct as JSON, and with fields that are NULL or an
 * appender, which this ends. Returns as domus_reply(); what domus_json_write() and
 * domus_append_end() have said. */
static inline int domus_http_reply_json(domus_stack *stack, uint16_t status,
                                        const domus_json_table *table, const void *value,
                                        domus_appender *fields)
{
    domus_http_response response;
    domus_appender body;

    memset(&response, 0, sizeof response);
    memset(&body, 0, sizeof body);
    response.status = status;
    response.media = "application/json";
    int error = domus_json_write(table, value, &body, NULL);
    if (error != 0)
        body.error = error; /* the end says it, and frees the bytes */
    error = domus_append_end(&body, &response.body);
    if (fields != NULL) {
        int other = domus_append_end(fields, &response.fields);

        error = error != 0 ? error : other;
    }
    if (error == 0)
        error = domus_reply(stack, &domus_http_response_type, &response);
    if (error != 0)
        domus_http_response_type.release(&response);
    return error;
}

/* Answer the request that is handled with problem details of a status from 400 on, and words for
 * it. Returns as domus_http_reply_problem(). */
static inline int domus_http_refuse(domus_stack *stack, uint16_t status, const char *words)
{
    domus_http_problem problem;

    memset(&problem, 0, sizeof problem);
    problem.status = status;
    problem.detail = words;
    return domus_http_reply_problem(stack, &problem, NULL);
}

#ifdef __cplusplus
}
#endif

#endif
