/* Problem details (RFC 9457): errors as JSON, which programs can read.
 *
 *     return domus_http_reply_problem(
 *         stack, &(domus_http_problem){.status = 403, .type = "https://example.com/no-credit",
 *                                      .title = "You have no credit.", .detail = text}, NULL);
 *
 * The part domus_http_problems of a chain gives every error such a body that has none of its own:
 * requests that fail, bytes that are no request, 404 and 405 of the routes, and whole answers from
 * 400 on without a body. Its title is the reason of the status. With `names_request` these bodies,
 * and those of domus_http_reply_problem(), have the member "request_id", if the part
 * domus_http_request_id stands before it in the chain.
 *
 * Thread-safety: any thread. */
#ifndef DOMUS_HTTP_PROBLEM_H
#define DOMUS_HTTP_PROBLEM_H

#include <domus/http_chain.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The media type of a problem. */
#define DOMUS_HTTP_PROBLEM_MEDIA "application/problem+json"

/* A problem: an error that is told as JSON. Texts may have any bytes: a character that is no ASCII
 * is written as a JSON escape, and bytes that are no UTF-8 as U+FFFD. */
typedef struct domus_http_problem {
    uint16_t status; /* status of the answer, 400..599 */
    /* address that names the kind of problem; NULL: "about:blank", and the member is left away */
    const char *type;
    const char *title; /* title of the kind of problem; NULL: the reason of the status */
    /* text about this occurrence of the problem; NULL: the member is left away */
    const char *detail;
    /* address that names this occurrence of the problem; NULL: the member is left away */
    const char *instance;
    /* Further members, as JSON that the program has made: "\"balance\":30,\"accounts\":[]". They
     * are written as they are. NULL: none */
    const char *members;
} domus_http_problem;

/* Append a problem as JSON. Returns as domus_append(); -EINVAL for a status that is no error. */
DOMUS_API int domus_http_append_problem(domus_appender *to, const domus_http_problem *problem);

/* Answer with a problem, and with fields that are NULL or an appender, which this ends. Returns as
 * domus_reply(); -EINVAL for a status that is no error; -ENOMEM. The id of the request is known in
 * the actor of its connection alone. */
DOMUS_API int domus_http_reply_problem(domus_stack *stack, const domus_http_problem *problem,
                                       domus_appender *fields);

/* Options of the part domus_http_problems; NULL: all fields are zero. */
typedef struct domus_http_problems_options {
    bool names_request;
} domus_http_problems_options;

DOMUS_API extern const domus_http_part domus_http_problems;

#ifdef __cplusplus
}
#endif

#endif
