/* Answers of the observation port: each handler of a request ends with one of these functions. */
#ifndef DOMI_PROTOCOLS_OBSERVE_ANSWER_H
#define DOMI_PROTOCOLS_OBSERVE_ANSWER_H

#include <domus/http.h>

#include <stdbool.h>

#define DOMI_OBSERVE_PLAIN "text/plain; charset=utf-8"

/* Answer a request of a viewer with one line of text, which must be constant. Returns 0 or a
 * negative errno. */
int domi_observe_answer_with_line(domus_stack *stack, uint16_t status, const char *line);

/* Answer a request of a viewer with this response. Returns 0 or a negative errno. Ownership: this
 * consumes the response. */
int domi_observe_reply_or_release_response(domus_stack *stack, domus_http_response *response);

/* Answer with status 200 and bytes of a media type. Returns 0 or a negative errno.
 * Ownership: this consumes the body. */
int domi_observe_answer_with_bytes(domus_stack *stack, const char *media, domus_slice body);

/* Answer with status 200 and a file that a browser saves, named by the program, its pid and
 * `suffix`. Returns 0 or a negative errno. Ownership: this consumes the body. */
int domi_observe_answer_with_file(domus_stack *stack, const char *media, const char *suffix,
                                  domus_slice body);

/* Begin an answer with status 200 whose body comes in pieces, as domus_reply_begin() does.
 * `encoding` is the value of Content-Encoding, or NULL. */
int domi_observe_begin_body_in_pieces(domus_stack *stack, const char *media, const char *encoding,
                                      domus_resumed *then);

/* Returns whether a request may change something, because no page of another site has made
 * somebody's browser send it. A browser names the site of its page by Origin and Sec-Fetch-Site;
 * other programs send neither. A request that is refused here is answered by 403. */
bool domi_observe_may_request_change(const domus_http_request *request);

#endif
