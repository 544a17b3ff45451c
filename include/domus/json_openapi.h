/* A description of a service for other programs, as OpenAPI 3.1 has it, made of what the service
 * has anyway: its rows (domus/http_chain.h) and its tables of JSON (domus/json.h).
 *
 *     static const domus_openapi_note notes[] = {
 *         {list_issues, "Pages of issues", .query = &page_query_table, .answer = &page_table},
 *         {create_issue, "A new issue", .body = &draft_table, .answer = &issue_table, .status =
 * 201}, {NULL, NULL},
 *     };
 *     static const domus_openapi_info info = {.title = "tracker", .version = "1"};
 *     ...
 *     int error = domus_openapi_write(&info, rows, notes, &bytes);
 *
 * A note tells what the handler of a row takes and answers. It is about all rows of this handler,
 * and rows whose handler has no note are left out, such as those of a page. Each method of a row is
 * an operation. A segment in braces is a parameter; "{path*}" is told as "{path}", because OpenAPI
 * has nothing for the rest of a path. Every operation may also fail: its answer "default" is
 * problem details (RFC 9457), which domus_http_refuse() and the part domus_http_problems send.
 *
 * The schemas are those of domus_json_put_schema(), with what it says of their limits, and each
 * stands where it is used. The text depends on constants of the program alone, so a service
 * may write it once, or for each request. It is in libdomus-json, which needs nothing of
 * libdomus-http for it.
 *
 * Thread-safety: any thread. */
#ifndef DOMUS_JSON_OPENAPI_H
#define DOMUS_JSON_OPENAPI_H

#include <domus/http_chain.h>
#include <domus/http_tag.h>
#include <domus/json.h>

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Texts of a description about the service as a whole. */
typedef struct domus_openapi_info {
    const char *title;       /* title of the service; not NULL */
    const char *version;     /* the version of the service, such as "1.4"; not NULL */
    const char *description; /* description of the service; NULL: none */
} domus_openapi_info;

/* A note about the rows of a handler. The last note of a list has a NULL handler. */
typedef struct domus_openapi_note {
    domus_http_handler *handle;
    /* the operation in one line: what it does; NULL: the description does not say it */
    const char *summary;
    /* table whose fields are segments in braces; segments without a field are texts. NULL: all
     * are texts */
    const domus_json_table *path;
    /* table whose fields are parameters of the query; NULL: the operation has no parameters */
    const domus_json_table *query;
    /* table of the operation's body of JSON; NULL: the operation takes no body of JSON */
    const domus_json_table *body;
    /* media type of a body that is no JSON; NULL: the operation takes no such body */
    const char *body_media;
    /* table of the answer of JSON; NULL: the answer is no JSON */
    const domus_json_table *answer;
    /* media type of an answer that is no JSON; NULL: if `answer` is NULL, too, the answer has no
     * body */
    const char *answer_media;
    /* status of the answer when the operation has not failed, 200..399; 0 means 200 */
    uint16_t status;
} domus_openapi_note;

/* Append the description to `to`, as one JSON object without spaces.
 *
 * Returns 0; -EINVAL without a title or a version, for a status out of its range, for a field of
 * `path` that is no segment of a row, for braces that are around no segment, for two rows whose
 * paths differ in the names of segments alone, which OpenAPI forbids, and for tables whose schema
 * is nested deeper than DOMUS_JSON_DEPTH_MAX with the nine levels around it; -EILSEQ for a text
 * that is no UTF-8; -EMSGSIZE beyond the appender's bound; -ENOMEM. After an error `to` may hold a
 * part of it. */
DOMUS_API int domus_openapi_write(const domus_openapi_info *info, const domus_http_row *rows,
                                  const domus_openapi_note *notes, domus_appender *to);

/* Answer the request that is handled with the description, as JSON with an ETag (domus/http_tag.h).
 * The function is inline, so that neither library needs the other one.
 * Thread-safety: only from within the handler of a request, with its stack.
 * Returns as domus_openapi_write() and domus_http_reply_tagged(). */
static inline int domus_http_reply_openapi(domus_stack *stack, const domus_openapi_info *info,
                                           const domus_http_row *rows,
                                           const domus_openapi_note *notes)
{
    domus_http_response response;
    domus_appender text;

    memset(&response, 0, sizeof response);
    memset(&text, 0, sizeof text);
    response.status = 200;
    response.media = "application/json";
    int error = domus_openapi_write(info, rows, notes, &text);
    if (error != 0)
        text.error = error; /* domus_append_end() then returns this error, and frees the bytes */
    error = domus_append_end(&text, &response.body);
    return error != 0 ? error : domus_http_reply_tagged(stack, &response);
}

#ifdef __cplusplus
}
#endif

#endif
