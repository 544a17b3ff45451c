/* /events: what happened at each tick of the clock, as server-sent events (docs/http.md).
 *
 * The stream has no end of its own. It is cut when its page goes away, when the page takes nothing
 * for channel.sendTimeout, and it ends when the program does. */
#include "web.h"

#include <domus/http_event.h>

#include <errno.h>
#include <stdatomic.h>

/* Pages that get events. Relaxed: a count that orders nothing. */
static _Atomic uint32_t pages;

/* Count the page of a visitor, which gives its place back when its connection ends. */
static bool count_visitor(struct web_visitor *visitor)
{
    if (visitor->gets_events)
        return false; /* its other requests wait behind the first stream */
    if (atomic_fetch_add_explicit(&pages, 1, memory_order_relaxed) >= web_settings.events_max) {
        atomic_fetch_sub_explicit(&pages, 1, memory_order_relaxed);
        return false;
    }
    visitor->gets_events = true;
    return true;
}

void web_events_leave(struct web_visitor *visitor)
{
    if (visitor->gets_events)
        atomic_fetch_sub_explicit(&pages, 1, memory_order_relaxed);
    visitor->gets_events = false;
}

struct events {
    struct web_next seen;
    domus_slice event;
};

static int take_tick(domus_stack *stack, struct events *events, const domus_answer *answer)
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

/* A page that has lost its stream comes back after some seconds. */
static int write_greeting(domus_slice *ret_bytes)
{
    domus_appender bytes = {0};

    (void)domus_http_add_event(&bytes, &(domus_http_event){.retry_ms = 3000});
    return domus_append_end(&bytes, ret_bytes);
}

static int begin_stream(domus_stack *stack, domus_resumed *then)
{
    domus_http_response head = {.status = 200, .media = DOMUS_HTTP_EVENTS};
    domus_appender fields = {0};

    (void)domus_http_add(&fields, "Cache-Control", "no-store");
    (void)domus_http_add(&fields, "Content-Encoding", "identity"); /* they are small */
    int error = domus_append_end(&fields, &head.fields);
    if (error != 0)
        return error;
    error = domus_reply_begin(stack, &domus_http_response_type, &head, then);
    if (error < 0)
        domus_slice_free(head.fields);
    return error;
}

/* The place of the page is free again, also when its connection goes on, as it does after HEAD. */
static int end_events(struct web_visitor *visitor, int error)
{
    web_events_leave(visitor);
    return error;
}

DOMUS_SEQUENCE(events, struct events)
{
    int error;

    DOMUS_BEGIN;
    if (!count_visitor(self))
        return web_say(stack, 503, "too many pages get events\n");
    DOMUS_AWAIT(begin_stream(stack, then));
    if (answer->error != 0)
        return end_events(self, answer->error);
    if ((error = write_greeting(&frame->event)) != 0)
        return end_events(self, error);
    for (;;) {
        DOMUS_AWAIT(domus_reply_write(stack, frame->event, then));
        if (answer->error != 0)
            return end_events(self, answer->error);
        DOMUS_ASK(web_clock, &web_next_type, &frame->seen);
        error = take_tick(stack, frame, answer);
        if (error != 0)
            break;
    }
    (void)end_events(self, error);
    return error == -ESHUTDOWN || error == -ESTALE /* the clock has ended */
               ? domus_reply_end(stack, NULL, NULL)
               : error;
    DOMUS_END;
}

const domus_call web_serve_events = DOMUS_BY(events);
