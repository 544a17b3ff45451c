/* Answers of the observation port: each handler of a request ends with one of these. */
#ifndef DOMI_PROTOCOLS_OBSERVE_ANSWER_H
#define DOMI_PROTOCOLS_OBSERVE_ANSWER_H

#include <domus/http.h>

#include <stdbool.h>

#define DOMI_OBSERVE_PLAIN "text/plain; charset=utf-8"

/* Answer with a line of text, which has to be constant. Returns 0 or a negative errno. */
int domi_observe_say(domus_stack *stack, uint16_t status, const char *line);

/* Answer with a response. Returns 0 or a negative errno. Ownership: this consumes it. */
int domi_observe_reply(domus_stack *stack, domus_http_response *response);

/* Answer with status 200 and bytes of a media type. Returns 0 or a negative errno.
 * Ownership: this consumes the body. */
int domi_observe_answer(domus_stack *stack, const char *media, domus_slice body);

/* Likewise, but a browser saves the bytes as a file, named by the program, its pid and `suffix`. */
int domi_observe_answer_file(domus_stack *stack, const char *media, const char *suffix,
                             domus_slice body);

/* Begin an answer with status 200 that goes on, as domus_reply_begin() does. `encoding` is its
 * Content-Encoding, or NULL. */
int domi_observe_begin(domus_stack *stack, const char *media, const char *encoding,
                       domus_resumed *then);

/* Returns whether a request that changes something may do so: it is not sent by the page of another
 * site in somebody's browser. A browser tells of whose page it is by Origin, and by Sec-Fetch-Site;
 * a program that is no browser tells neither. The answer to a refused one is 403. */
bool domi_observe_is_own_page(const domus_http_request *request);

#endif
