/* Server-sent events: an answer of the media type "text/event-stream" that leaves in pieces
 * (domus_reply_begin()), each of which is one or more events.
 *
 * Thread-safety: any thread. */
#ifndef DOMUS_HTTP_EVENT_H
#define DOMUS_HTTP_EVENT_H

#include <domus/slice.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOMUS_HTTP_EVENTS "text/event-stream" /* media type of an answer of server-sent events */

/* An event for a browser. A field that is NULL is left away. An event without data changes what the
 * browser knows of the stream, and is not shown to the page. */
typedef struct domus_http_event {
    const char *name; /* type of the event, which the page listens for; NULL: "message" */
    /* id of the event; the browser sends the last one as Last-Event-ID when it connects again */
    const char *id;
    const char *data; /* text of the event; the page gets it with LF for each end of a line */
    /* time in ms after which the browser connects again; 0: the event does not say it */
    uint32_t retry_ms;
} domus_http_event;

/* Append an event to an answer. Returns as domus_append(); -EINVAL for a name or an id with an end
 * of a line in it. */
DOMUS_API int domus_http_add_event(domus_appender *piece, const domus_http_event *event);

/* Append a comment, which no page sees, so that proxies see that the connection lives. */
DOMUS_API int domus_http_add_heartbeat(domus_appender *piece);

#ifdef __cplusplus
}
#endif

#endif
