/* Entity tags of answers that a handler makes: a client that asks again gets 304 and no body, if
 * the answer is the same.
 *
 *     domus_http_response response = {.status = 200, .media = "application/json", .body = made};
 *     return domus_http_reply_tagged(stack, &response);
 *
 * The tag is made of the body, so the answer has to be made each time: this spares the bytes on the
 * way, and the client the work, but not the server. A server that knows a version of what it
 * answers says it in a field ETag of its own, which is used then; or it calls
 * domus_http_check_conditions() (domus/http_condition.h) before it makes anything, as it has to for
 * PUT and DELETE.
 *
 * The tag is 128 bits of SHA-256. That takes about 1 us for each KiB with the instructions of newer
 * processors, and 3 us without. */
#ifndef DOMUS_HTTP_TAG_H
#define DOMUS_HTTP_TAG_H

#include <domus/conversation.h>
#include <domus/http.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOMUS_HTTP_TAG_SIZE 24u /* characters of an entity tag, with its quotes */

/* Write the strong tag of these bytes, with its quotes and a zero, to `to`, which has room for
 * DOMUS_HTTP_TAG_SIZE + 1 bytes. Thread-safety: any thread. */
DOMUS_API void domus_http_tag(const void *bytes, size_t size, char *to);

/* Answer the request that is handled, which is a domus_http_request of a peer, with a whole
 * response and its tag. Only 200 to GET and HEAD is tagged; any other response is sent without a
 * tag.
 *
 * 304, if If-None-Match names the tag, or If-Modified-Since fits a field Last-Modified of the
 * response: without the body and the fields that are about it, but with all others, such as
 * Cache-Control, Vary and Set-Cookie. 412, if If-Match or If-Unmodified-Since does not fit. HEAD
 * gets what GET would get; give it the body all the same. If the stage compresses the answer
 * (domus/http_gzip.h), the tag becomes a weak one ("W/"), and a client that comes back with that
 * gets 304 with the weak one.
 *
 * Ownership: this takes what the response owns, in every case.
 * Thread-safety: only from within a handler, with the stack that the handler was given.
 * Returns as domus_reply(); -EINVAL when this conversation answers no domus_http_request, or the
 * response comes in pieces; -ENOMEM. */
DOMUS_API int domus_http_reply_tagged(domus_stack *stack, const domus_http_response *response);

#ifdef __cplusplus
}
#endif

#endif
