/* /events: what happened at each tick of the clock, as server-sent events (docs/http.md).
 *
 * The stream has no end of its own. It is cut when its page goes away, when the page takes nothing
 * for channel.sendTimeout, and it ends when the program does. */
#include "web.h"

#include <domus/http_event.h>

#include <errno.h>
#include <stdatomic.h>

/* The number of pages that get events. Relaxed: a count that orders nothing. */
static _Atomic uint32_t pages;

/* Count the page of a visitor, whose place is free again when its connection ends. Returns false if
 * the visitor has a stream already, or there is no place. */
static bool take_event_place_for_visitor(struct web_visitor *visitor)
{
    if (visitor->gets_events)
        return false; /* the visitor's other requests wait behind its first stream */
    if (atomic_fetch_add_explicit(&pages, 1, memory_order_relaxed) >= web_settings.events_max) {
        atomic_fetch_sub_explicit(&pages, 1, memory_order_relaxed);
        return false;
    }
    visitor->gets_events = true;
    return true;
}

void web_free_event_place_of_visitor(struct web_visitor *visitor)
{
    if (visitor->gets_events)
        atomic_fetch_sub_explicit(&pages, 1, memory_order_relaxed);
    visitor->gets_events = false;
}

struct events {
    struct web_next seen;
    domus_slice event;
};

static int take_event_of_answered_tick(domus_stack *stack, struct events *events,
                                       const domus_answer *answer)
{
    if (answer->error != 0)
        return answer->error;
    const struct web_tick *tick = answer->payload;
    int error = domus_take_answer(stack, answer);
    if (error == 0) {
        events->seen.serial = tick->serial;
        events->event = tick->event;
    }
    return error;
}

/* Write the greeting of a stream: how long a page that has lost the stream waits before it comes
 * back. */
static int write_retry_time_of_stream(domus_slice *ret_bytes)
{
    domus_appender bytes = {0};

    (void)domus_http_add_event(&bytes, &(domus_http_event){.retry_ms = 3000});
    return domus_append_end(&bytes, ret_bytes);
}

static int begin_event_stream(domus_stack *stack, domus_resumed *then)
{
    domus_http_response head = {.status = 200, .media = DOMUS_HTTP_EVENTS};
    domus_appender fields = {0};

    (void)domus_http_add(&fields, "Cache-Control", "no-store");
    /* events are too small to be compressed */
    (void)domus_http_add(&fields, "Content-Encoding", "identity");
    int error = domus_append_end(&fields, &head.fields);
    if (error != 0)
        return error;
    error = domus_reply_begin(stack, &domus_http_response_type, &head, then);
    if (error < 0)
        domus_slice_free(head.fields);
    return error;
}

/* End the events of a page: its place is free again, also when its connection goes on, as it does
 * after HEAD. */
static int free_event_place_and_return_error(struct web_visitor *visitor, int error)
{
    web_free_event_place_of_visitor(visitor);
    return error;
}

DOMUS_SEQUENCE(events, struct events)
{
    int error;

    DOMUS_BEGIN;
    if (!take_event_place_for_visitor(self))
        return web_answer_with_line(stack, 503, "too many pages get events\n");
    DOMUS_AWAIT(begin_event_stream(stack, then));
    if (answer->error != 0)
        return free_event_place_and_return_error(self, answer->error);
    if ((error = write_retry_time_of_stream(&frame->event)) != 0)
        return free_event_place_and_return_error(self, error);
    for (;;) {
        DOMUS_AWAIT(domus_reply_write(stack, frame->event, then));
        if (answer->error != 0)
            return free_event_place_and_return_error(self, answer->error);
        DOMUS_ASK(web_clock, &web_next_type, &frame->seen);
        error = take_event_of_answered_tick(stack, frame, answer);
        if (error != 0)
            break;
    }
    (void)free_event_place_and_return_error(self, error);
    /* the clock has ended with the program, so the stream ends in order */
    return error == -ESHUTDOWN || error == -ESTALE ? domus_reply_end(stack, NULL, NULL) : error;
    DOMUS_END;
}

const domus_call web_serve_events = DOMUS_BY(events);
