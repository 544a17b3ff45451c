/* The client's side of an observation port: requests over a Unix socket or TCP, by libcurl.
 *
 * An answer that is read as a whole is bounded in bytes, and each request has a time-out, unless
 * its answer has no end. A request ends when a signal is noted (say_begin_to_note_signals()). */
#ifndef DOMUS_TOOL_PORT_H
#define DOMUS_TOOL_PORT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define PORT_TEXT_MAX (16u << 20) /* most bytes of an answer that is read as a whole */

typedef struct port {
    void *curl;
    char endpoint[PATH_MAX + 8];
    /* reason why the last request to the port has failed: one line of printable ASCII */
    char error[512];
    long status; /* HTTP status of the port's last answer; 0: there was none */
} port;

/* The text of an answer; `at` ends with a zero. */
typedef struct port_text {
    char *at;
    size_t size;
} port_text;

/* Type of a sink, which receives bytes of an answer with a status of 2xx. Returns whether to
 * continue. */
typedef bool port_sink(void *context, const char *bytes, size_t size);

/* Prepare requests to the endpoint of an observation port: unix:PATH, unix:@NAME or HOST:PORT.
 * Nothing is sent. Returns whether the endpoint is valid; otherwise `error` is set. port_close()
 * must follow in both cases. */
bool port_prepare_for_endpoint(port *to, const char *endpoint);
void port_close(port *to);

/* Get the port's whole answer for a path, within `ms`. Returns whether it was answered with 2xx;
 * otherwise `error` is set. Ownership: the text is the caller's. */
bool port_get_and_collect_answer(port *to, const char *path, long ms, port_text *ret_text);

/* Get the port's answer for a path piece by piece, within `ms` (0: without an end). Returns as
 * port_get_and_collect_answer(). */
bool port_get_and_pass_answer_to_sink(port *to, const char *path, long ms, port_sink *sink,
                                      void *context);

/* Send a POST without a body to a path of the port. Returns as port_get_and_collect_answer(). */
bool port_post_and_collect_answer(port *to, const char *path, port_text *ret_text);

/* Escape a value for the query of a URL. Returns whether it fits. */
bool port_escape_query_value(const char *value, char *ret_text, size_t size);

#endif
