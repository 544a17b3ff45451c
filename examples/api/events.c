/* Events: each page hears which issue is new or has changed, as server-sent events.
 *
 * The board is an actor that knows the last change. A page asks it for what comes behind the change
 * that the page has seen, and the board keeps the ask until there is one. A page that reads slowly
 * asks late and hears of the last change alone, so nothing piles up for it. */
#include "api.h"

#include <domus/await.h>
#include <domus/http_event.h>

#include <errno.h>
#include <stdio.h>

#define PAGES_MAX 1000u

struct change {
    uint64_t serial; /* of changes; 0: none yet */
    int64_t issue;
};

static const domus_type told_type = {.name = "told", .size = sizeof(int64_t)};
static const domus_type next_type = {.name = "next", .size = sizeof(uint64_t)};
static const domus_type change_type = {.name = "change", .size = sizeof(struct change)};

struct board {
    struct change last;
    uint32_t count;
    domus_kept pages[PAGES_MAX];
};

static void answer_waiting(domus_stack *stack, struct board *board)
{
    while (board->count > 0)
        (void)domus_kept_reply(stack, board->pages[--board->count], &change_type, &board->last);
}

static int take_told(domus_stack *stack, void *self, const void *payload)
{
    struct board *board = self;

    board->last.serial++;
    board->last.issue = *(const int64_t *)payload;
    answer_waiting(stack, board);
    return 0;
}

static int take_next(domus_stack *stack, void *self, const void *payload)
{
    struct board *board = self;

    if (*(const uint64_t *)payload != board->last.serial)
        return domus_reply(stack, &change_type, &board->last);
    if (board->count == PAGES_MAX) /* pages that have gone may have left their asks behind */
        answer_waiting(stack, board);
    int error = domus_keep(stack, &board->pages[board->count]);
    if (error == 0)
        board->count++;
    return error;
}

static int take_end(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    return domus_stop(stack, domus_self(stack)); /* fails what waits */
}

const domus_type api_end_type = {.name = "end of events"};

const domus_behaviour api_board_behaviour = {
    .name = "board",
    .kind = DOMUS_STATE,
    .state_size = sizeof(struct board),
    .on = (const domus_on[]){{&told_type, take_told, 0},
                             {&next_type, take_next, 0},
                             {&api_end_type, take_end, 0},
                             {0}},
};

void api_tell(domus_stack *stack, int64_t issue)
{
    (void)domus_notice(stack, api_board, &told_type,
                       &issue); /* a full board tells of a later one */
}

/* --- a page that listens ---------------------------------------------------------------------- */

struct listener {
    uint64_t seen; /* the serial of the last change */
    domus_slice event;
};

static int begin_stream(domus_stack *stack, domus_resumed *then)
{
    domus_http_response head = {.status = 200, .media = DOMUS_HTTP_EVENTS};
    domus_appender fields = {0};

    (void)domus_http_add(&fields, "Cache-Control", "no-store");
    int error = domus_append_end(&fields, &head.fields);
    if (error == 0)
        error = domus_reply_begin(stack, &domus_http_response_type, &head, then);
    if (error < 0)
        domus_slice_free(head.fields);
    return error;
}

/* Make the event of a change. */
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
    int error;

    (void)self;
    DOMUS_BEGIN;
    DOMUS_AWAIT(begin_stream(stack, then));
    while (answer->error == 0) {
        DOMUS_ASK(api_board, &next_type, &frame->seen);
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
