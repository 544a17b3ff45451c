/* Events: each page hears which issue is new or has changed (server-sent events).
 *
 * The board is an actor that knows the last change. A page asks it for what comes behind the change
 * that the page has seen, and the board keeps the ask until there is one. A page that reads slowly
 * asks late and hears of the last change alone, so nothing piles up for it. */
#include "api.h"

#include <domus/await.h>
#include <domus/http_event.h>

#include <stdio.h>

#define PAGES_MAX 1000u

struct change {
    uint64_t serial; /* of changes; 0: none yet */
    int64_t issue;
};

struct board {
    struct change last;
    uint32_t count;
    domus_kept pages[PAGES_MAX];
};

static domus_address board; /* constant once the program has started */
static const domus_type told_type = {.name = "told", .size = sizeof(int64_t)};
static const domus_type next_type = {.name = "next", .size = sizeof(uint64_t)};
static const domus_type change_type = {.name = "change", .size = sizeof(struct change)};

static void answer_waiting(domus_stack *stack, struct board *self)
{
    while (self->count > 0)
        (void)domus_kept_reply(stack, self->pages[--self->count], &change_type, &self->last);
}

static int take_told(domus_stack *stack, void *self_, const void *payload)
{
    struct board *self = self_;

    self->last.serial++;
    self->last.issue = *(const int64_t *)payload;
    answer_waiting(stack, self);
    return 0;
}

static int take_next(domus_stack *stack, void *self_, const void *payload)
{
    struct board *self = self_;

    if (*(const uint64_t *)payload != self->last.serial)
        return domus_reply(stack, &change_type, &self->last);
    if (self->count == PAGES_MAX) /* pages that have gone may have left their asks behind */
        answer_waiting(stack, self);
    int error = domus_keep(stack, &self->pages[self->count]);
    self->count += error == 0;
    return error;
}

static const domus_behaviour behaviour = {
    .name = "board",
    .kind = DOMUS_STATE,
    .state_size = sizeof(struct board),
    .on = (const domus_on[]){{&told_type, take_told, 0}, {&next_type, take_next, 0}, {0}},
};

int api_events_begin(domus_system *system)
{
    return domus_outside_spawn(system, &behaviour, NULL, &board);
}

/* Streams of events have no end of their own, and would hold up a drain. */
void api_events_end(domus_system *system)
{
    (void)domus_outside_stop(system, board);
}

void api_tell(domus_stack *stack, int64_t issue)
{
    (void)domus_notice(stack, board, &told_type, &issue); /* a full board tells of a later one */
}

/* --- a page that listens ---------------------------------------------------------------------- */

struct listener {
    uint64_t seen; /* the serial of the last change */
    domus_slice event;
};

static int make_event(const struct change *change, domus_slice *ret_event)
{
    domus_appender bytes = {0};
    char number[24];

    snprintf(number, sizeof number, "%lld", (long long)change->issue);
    (void)domus_http_add_event(&bytes, &(domus_http_event){.name = "issue", .data = number});
    return domus_append_end(&bytes, ret_event);
}

DOMUS_SEQUENCE(listen, struct listener)
{
    static const domus_http_response head = {.status = 200, .media = DOMUS_HTTP_EVENTS};
    int error;

    DOMUS_BEGIN;
    DOMUS_AWAIT(domus_reply_begin(stack, &domus_http_response_type, &head, then));
    while (answer->error == 0) {
        DOMUS_ASK(board, &next_type, &frame->seen);
        if (answer->error != 0) /* the board has ended, and the program does */
            return domus_reply_end(stack, NULL, NULL);
        frame->seen = ((const struct change *)answer->payload)->serial;
        if ((error = make_event(answer->payload, &frame->event)) != 0)
            return error;
        DOMUS_AWAIT(domus_reply_write(stack, frame->event, then));
    }
    return answer->error;
    DOMUS_END;
}

int api_stream_events(domus_stack *stack, void *self, const domus_http_request *request,
                      const domus_http_match *match)
{
    (void)match;
    return DOMUS_BEGIN_SEQUENCE(listen, API_FRAME_MAX, stack, self, request);
}
