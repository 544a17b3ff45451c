/* Names of requests: an id for people, and a trace for tools (W3C Trace Context, level 1).
 *
 * A service that asks another one lets it know for which request that is, so that the lines of both
 * logs, and the spans of a tracer, can be put together. The part domus_http_request_id of a chain
 * (domus/http_chain.h) gives each request its names:
 *
 *   - A valid field traceparent is continued: the trace and its flags are kept, and this side is a
 *     new span of it. Without one a new trace begins, whose flags are 0 (nobody records it), or
 *     those of `flags`, and a tracestate that came without a valid traceparent is taken away.
 *   - A valid X-Request-Id is kept: 1..64 letters, digits, '-', '_', '.', ':', '+', '/', '=' and
 *     '@'. Without one the id is the trace, 32 hexadecimal digits.
 *
 * The handler finds the names in the request: its fields are changed so that they have exactly one
 * X-Request-Id and one traceparent, these. So they go wherever the request goes: to the actor that
 * it is forwarded to (domus_forward()), and through a proxy (domus/http_proxy.h) to its server.
 * Whoever asks another server with a request of his own adds the names with
 * domus_http_trace_add(); whoever asks an actor copies the domus_http_trace into the message.
 * The answer gets X-Request-Id, unless its handler has set one.
 *
 * Thread-safety: any thread. */
#ifndef DOMUS_HTTP_TRACE_H
#define DOMUS_HTTP_TRACE_H

#include <domus/slice.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOMUS_HTTP_REQUEST_ID_MAX 64u /* most bytes of an id of a request */

/* Bytes of a value of traceparent: "00-", 32 digits, '-', 16 digits, '-', 2 digits. */
#define DOMUS_HTTP_TRACEPARENT_SIZE 55u

/* The ids of a request and of its trace. It is a value without pointers, which may be part of any
 * message. */
typedef struct domus_http_trace {
    uint8_t trace[16]; /* the id of the whole trace; zeros: there is no trace */
    uint8_t span[8];   /* the id of the span: of the work that this side does for the request */
    uint8_t flags;     /* flags of the trace; 1: it is recorded (sampled) */
    bool continued;    /* whether the peer has named the trace that is continued */
    char id[DOMUS_HTTP_REQUEST_ID_MAX + 1]; /* X-Request-Id, the id of the request; "": none */
} domus_http_trace;

/* Read a value of traceparent. Returns 0; -EINVAL, when the value is to be ignored: another form
 * than DOMUS_HTTP_TRACEPARENT_SIZE describes, capitals, the version "ff", zeros alone for the trace
 * or the span, or anything behind a value of version 00. A higher version may have more behind a
 * '-'. `id` and `continued` of the trace are not set. */
DOMUS_API int domus_http_traceparent_read(const char *value, size_t size,
                                          domus_http_trace *ret_trace);

/* Write the value of traceparent, and a NUL behind it. */
DOMUS_API void domus_http_traceparent_write(const domus_http_trace *trace,
                                            char text[DOMUS_HTTP_TRACEPARENT_SIZE + 1]);

/* Read the names of fields: of a request behind the part domus_http_request_id, also in the actor
 * that it was forwarded to. A name that is missing or wrong is left empty. Returns 0; -ENOENT when
 * there is no valid traceparent, and the trace has the id alone. */
DOMUS_API int domus_http_trace_of(domus_slice fields, domus_http_trace *ret_trace);

/* Make the names of work that is done for other work, or, with a `parent` of NULL, of a new trace:
 * the span is new. Its bytes come from getrandom(2), of which each thread keeps some.
 *
 * Returns 0; the error of getrandom(2). */
DOMUS_API int domus_http_trace_begin(const domus_http_trace *parent, domus_http_trace *ret_trace);

/* Add the fields traceparent and X-Request-Id to those of a request for another server. Nothing is
 * added for what is empty. Returns as domus_http_add(). */
DOMUS_API int domus_http_trace_add(domus_appender *fields, const domus_http_trace *trace);

/* Options of the part domus_http_request_id; NULL: all options are zero. */
typedef struct domus_http_request_id_options {
    /* Whether ids of the peer are ignored, and a new trace begins: for a service that strangers
     * reach, whose logs they should not choose. */
    bool distrusts;
    bool silent;   /* whether answers get no X-Request-Id */
    uint8_t flags; /* flags of traces that begin here; 0 or 1 */
} domus_http_request_id_options;

#ifdef __cplusplus
}
#endif

#endif
