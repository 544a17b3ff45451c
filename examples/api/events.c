/* Events: each open page is told which issue is new or has changed (server-sent events).
 *
 * The board is an actor that knows the last change. A page asks it for the change after the one
 * that it has seen, and the board keeps the ask until there is one, or for BEAT, after which the
 * page gets a heartbeat. A slow page gets only the last change, so nothing queues up. */
#include "api.h"

#include <domus/await.h>
#include <domus/http_event.h>
#include <domus/waiters.h>

#define PAGES_MAX 1000u
#define SHARE_MAX 100u /* most pages of one client that may wait for events at the same time */
#define BEAT      UINT64_C(15000000000)

struct change {
    uint64_t serial; /* number of the last change of an issue; 0: there was none yet */
    int64_t issue;
};

struct board {
    struct change last;
    domus_waiters pages;
    domus_waiter places[PAGES_MAX];
};

/* An open page that listens for changes of issues: the payload of its ask. */
struct listener {
    uint64_t client; /* number of the client, from domus_http_client_number() */
    uint64_t seen;   /* number of the last change that the page has been told */
};

/* address of the board of events, constant once the program has started */
static domus_address board;
static const domus_type next_type = {.name = "next", .size = sizeof(struct listener)};
static const domus_type beat_type = {.name = "beat"};
static const domus_type change_type = {.name = "change", .size = sizeof(struct change)};

static int answer_page_asks_with_last_change(domus_stack *stack, void *self_, const void *payload)
{
    struct board *self = self_;

    (void)payload;
    (void)domus_waiters_reply(stack, &self->pages, &change_type, &self->last);
    return 0;
}

static int store_change_and_tell_waiting_pages(domus_stack *stack, void *self_, const void *payload)
{
    struct board *self = self_;

    self->last = (struct change){self->last.serial + 1, ((const struct change *)payload)->issue};
    return answer_page_asks_with_last_change(stack, self, NULL);
}

static int answer_or_keep_ask_for_change(domus_stack *stack, void *self_, const void *payload)
{
    const struct listener *page = payload;
    struct board *self = self_;

    return page->seen != self->last.serial ? domus_reply(stack, &change_type, &self->last)
                                           : domus_waiters_keep(stack, &self->pages, page->client);
}

static int set_up_waiters_and_beat_at_mount(domus_stack *stack, void *self_)
{
    struct board *self = self_;

    self->pages = (domus_waiters){self->places, PAGES_MAX, SHARE_MAX, 0};
    return domus_every(stack, BEAT, &beat_type, NULL, NULL);
}

static const domus_behaviour behaviour = {
    .name = "board",
    .kind = DOMUS_STATE,
    .state_size = sizeof(struct board),
    .on_mount = set_up_waiters_and_beat_at_mount,
    .on = (const domus_on[]){{&change_type, store_change_and_tell_waiting_pages, 0},
                             {&next_type, answer_or_keep_ask_for_change, 0},
                             {&beat_type, answer_page_asks_with_last_change, 0},
                             {0}},
};

int api_spawn_event_board(domus_system *system)
{
    return domus_outside_spawn(system, &behaviour, NULL, &board);
}

/* Stop the board of events before the drain, which would wait for the streams otherwise: they do
 * not end by themselves. */
void api_stop_event_board(domus_system *system, void *none)
{
    (void)none;
    (void)domus_outside_stop(system, board);
}

/* Tell the board that an issue has changed. If the board's mailbox is full, pages learn of this
 * change with a later one. */
void api_tell_board_that_issue_changed(domus_stack *stack, int64_t issue)
{
    (void)domus_notice(stack, board, &change_type, &(struct change){.issue = issue});
}

DOMUS_SEQUENCE(listen, struct listener)
{
    static const domus_http_response head = {.status = 200, .media = DOMUS_HTTP_EVENTS};
    const struct change *change;
    domus_appender bytes = {0};
    domus_slice event;
    int error;

    DOMUS_BEGIN;
    DOMUS_AWAIT(domus_reply_begin(stack, &domus_http_response_type, &head, then));
    while (answer->error == 0) {
        DOMUS_ASK(board, &next_type, frame);
        /* the board has not taken the ask: too many pages wait, or it has ended with the program */
        if (answer->error != 0)
            return domus_reply_end(stack, NULL, NULL);
        change = answer->payload;
        if (change->serial == frame->seen)
            (void)domus_http_add_heartbeat(&bytes);
        else
            (void)domus_append_text(&bytes, "event: issue\ndata: %lld\n\n",
                                    (long long)change->issue);
        frame->seen = change->serial;
        if ((error = domus_append_end(&bytes, &event)) != 0)
            return error;
        DOMUS_AWAIT(domus_reply_write(stack, event, then));
    }
    return answer->error;
    DOMUS_END;
}

int api_begin_stream_of_issue_changes(domus_stack *stack, void *self,
                                      const domus_http_request *request,
                                      const domus_http_match *match)
{
    struct listener *frame = domus_frame(stack);

    (void)match;
    frame->client = domus_http_client_number(domus_http_exchange_of(stack, request), request,
                                             api_settings.proxies);
    return DOMUS_BEGIN_SEQUENCE(listen, API_FRAME_MAX, stack, self, request);
}
