/* Bodies of JSON, and queries, by tables (domus/json.h), for handlers of HTTP. The functions are
 * inline, so that neither library needs the other one; a program links both.
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

#include <domus/http_form.h>
#include <domus/http_media.h>
#include <domus/http_problem.h>
#include <domus/http_tag.h>
#include <domus/json_writer.h>

#include <errno.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* room for the value of a parameter of a query in bytes, with a zero at its end */
#define DOMUS_HTTP_PARAMETER_MAX 1024u

/* Read the body of the request that is handled into the struct of a table. If the stage has
 * `streams`, bodies have up to `whole_max` bytes (domus/http.h). One whose length was not said is
 * gathered (domus_http_gather()): then this returns false, and the handler is called again when the
 * body is whole. So a handler calls this before it does anything.
 *
 * Returns true, and the memory of the struct is the caller's (domus_json_release()). False: the
 * handler returns `ret_result`, because the body is gathered, or because the request was answered
 * by problem details, whose detail says what is wrong and where: 415 for a Content-Type that is not
 * JSON, or none, because browsers send such bodies from other sites without asking
 * (domus/http_cors.h); 400 for a text that is no JSON; 422 for values that are not those of the
 * table; 413 for a body that is too large; and 411 for one without a length in a handler that is
 * none of a row. */
static inline bool domus_http_read_json(domus_stack *stack, const domus_http_request *request,
                                        const domus_json_table *table, void *ret_value,
                                        domus_json_memory *ret_memory, int *ret_result)
{
    char words[DOMUS_JSON_EXPLAIN_MAX];
    domus_http_problem problem;
    domus_json_error error;
    domus_slice field;
    int result = 0;

    memset(&problem, 0, sizeof problem);
    if (!domus_http_field(request->fields, "content-type", &field) || !domus_http_is_json(field)) {
        problem.status = 415;
        problem.detail = "the Content-Type of the body has to be application/json";
    } else if (request->stream.number != 0 &&
               (result = domus_http_gather(stack, request, 0)) != 0) {
        bool is_large = result == -EMSGSIZE || request->length != 0;
        *ret_result = result;
        if (result != -EMSGSIZE && result != -EOPNOTSUPP)
            return false;
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

/* Make JSON of one parameter of a query: a text becomes a string; a value that is JSON already,
 * such as a number, stays as it is. */
static inline void domi_http_write_parameter_as_json(domus_json_writer *writer,
                                                     const domus_json_field *field,
                                                     const char *text, size_t size)
{
    bool is_text = field->kind == DOMUS_JSON_KIND_TEXT || field->kind == DOMUS_JSON_KIND_STRING ||
                   field->kind == DOMUS_JSON_KIND_WORD;

    domus_json_put_key(writer, field->name);
    if (!is_text && domus_json_check(NULL, text, size, NULL) == 0)
        domus_json_put_raw(writer, text, size);
    else
        domus_json_put_bytes(writer, text, size);
}

/* Read the parameters of the query of the request that is handled into the struct of a table: those
 * that the table has; others are passed over. Texts and words are as they are; values of all other
 * fields are JSON, as numbers are. A value has less than DOMUS_HTTP_PARAMETER_MAX bytes.
 *
 * Returns true, and the memory of the struct is the caller's. False: the request was answered by
 * problem details, and the handler returns `ret_result`: 400 for a wrong escape, 422 for values
 * that are not those of the table, and for a parameter that is there twice, too long, or no text.
 * Without memory `ret_result` is -ENOMEM (503). */
static inline bool domus_http_read_query(domus_stack *stack, const domus_http_request *request,
                                         const domus_json_table *table, void *ret_value,
                                         domus_json_memory *ret_memory, int *ret_result)
{
    char words[DOMUS_JSON_EXPLAIN_MAX] = "a parameter is there twice, too long, or no text";
    char text[DOMUS_HTTP_PARAMETER_MAX];
    domus_json_writer writer;
    domus_http_problem problem;
    domus_json_error wrong;
    domus_http_form form;
    domus_appender bytes;
    domus_slice json;
    int64_t size;

    memset(&writer, 0, sizeof writer);
    memset(&problem, 0, sizeof problem);
    memset(&bytes, 0, sizeof bytes);
    writer.to = &bytes;
    problem.detail = words;
    int error = domus_http_form_read(domus_http_query(request), NULL, &form, NULL);
    domus_json_put_object(&writer);
    for (uint32_t i = 0; i < table->count && error == 0; i++) {
        size = domus_http_form_text(&form, table->fields[i].name, text, sizeof text);
        if (size >= 0)
            domi_http_write_parameter_as_json(&writer, &table->fields[i], text, (size_t)size);
        else if (size != -ENOENT)
            error = (int)size;
    }
    domus_json_put_end(&writer);
    problem.status = error == -EPROTO ? 400 : 422;
    int other = domus_append_end(&bytes, &json);
    if (error == 0)
        error = other;
    if (error == 0) {
        error = domus_json_read_slice(table, NULL, json, ret_value, ret_memory, &wrong);
        if (error != 0) {
            problem.status = (uint16_t)domus_json_status(&wrong);
            /* no line and column: this text was made from the query, and the client has not seen
             * it */
            wrong.line = 0;
            (void)domus_json_explain(&wrong, words, sizeof words);
        }
    }
    if (other == 0)
        domus_slice_free(json);
    if (error == -ENOMEM)
        *ret_result = error;
    else if (error != 0)
        *ret_result = domus_http_reply_problem(stack, &problem, NULL);
    return error == 0;
}

/* Make a response of a struct, as JSON, and of fields that are NULL or an appender, which this
 * ends. Without a table it has no body, as one of 204. Returns 0, and the response is the caller's,
 * until it is sent; what domus_json_write() and domus_append_end() have said. */
static inline int domus_http_make_json(uint16_t status, const domus_json_table *table,
                                       const void *value, domus_appender *fields,
                                       domus_http_response *ret_response)
{
    domus_http_response response;
    domus_appender body;

    memset(&response, 0, sizeof response);
    memset(&body, 0, sizeof body);
    response.status = status;
    response.media = table != NULL ? "application/json" : NULL;
    int error = table != NULL ? domus_json_write(table, value, &body, NULL) : 0;
    if (error != 0)
        body.error = error; /* domus_append_end() then returns this error, and frees the bytes */
    error = domus_append_end(&body, &response.body);
    if (fields != NULL) {
        int other = domus_append_end(fields, &response.fields);

        error = error != 0 ? error : other;
    }
    if (error == 0)
        *ret_response = response;
    else
        domus_http_response_type.release(&response);
    return error;
}

/* Answer the request that is handled with a struct as JSON, and with fields that are NULL or an
 * appender, which this ends. Returns as domus_http_make_json() and domus_reply(). */
static inline int domus_http_reply_json(domus_stack *stack, uint16_t status,
                                        const domus_json_table *table, const void *value,
                                        domus_appender *fields)
{
    domus_http_response response;
    int error = domus_http_make_json(status, table, value, fields, &response);

    if (error != 0)
        return error;
    error = domus_reply(stack, &domus_http_response_type, &response);
    if (error != 0)
        domus_http_response_type.release(&response);
    return error;
}

/* Answer a GET with a value as JSON, as domus_http_reply_json() does, with status 200, an ETag, and
 * 304 if the client has the answer already (domus/http_tag.h). This is not for requests that
 * change anything, because their conditions have to be checked before. */
static inline int domus_http_reply_json_tagged(domus_stack *stack, const domus_json_table *table,
                                               const void *value)
{
    domus_http_response response;
    int error = domus_http_make_json(200, table, value, NULL, &response);

    return error != 0 ? error : domus_http_reply_tagged(stack, &response);
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
