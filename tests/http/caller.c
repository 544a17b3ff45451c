/* The actor that sends requests, which tests/http/caller.h describes. */
#include "tests/http/caller.h"

#include "tests/http/served.h"
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <domus/await.h>

#include <stdio.h>
#include <string.h>

const domus_type domt_up_type = {.name = "up", .size = sizeof(domt_call_up)};
const domus_type domt_whole_type = {.name = "whole", .size = sizeof(domt_call_up)};
const domus_type domt_outcome_type = {.name = "outcome", .size = sizeof(domt_outcome)};

domus_address domt_caller_to;

static domus_http_request make_head_of_call(const domt_call_up *what)
{
    return (domus_http_request){.method = what->method,
                                .length = what->length,
                                .close = what->close,
                                .expects = what->expects,
                                .target = domt_slice_of_text(what->path),
                                .fields = domt_slice_of_text(what->fields ? what->fields : "")};
}

static void read_head_of_answer(domt_outcome *made, const domus_answer *answer)
{
    made->error = answer->error;
    if (answer->error != 0)
        return;
    ck_assert_ptr_eq(answer->type, &domus_http_response_type);
    const domus_http_response *response = answer->payload;
    made->status = response->status;
    made->close = response->close;
    made->down = response->body.size;
    snprintf(made->body, sizeof made->body, "%.*s", (int)response->body.size,
             response->body.size != 0 ? domus_slice_data(response->body) : "");
}

static void count_part_of_answer(domt_outcome *made, const domus_answer *answer)
{
    if (answer->type == &domus_http_trailers_type)
        made->trailers = ((const domus_http_trailers *)answer->payload)->fields.size;
    else
        made->down += ((const domus_piece *)answer->payload)->bytes.size;
}

typedef struct call_frame {
    domt_call_up what;
    domt_outcome made;
    uint64_t written;
    domus_request request;
    domus_body body;
    domus_http_request head;
    domus_http_trailers trailers;
    bool ended;
} call_frame;

DOMUS_SEQUENCE(send_up, call_frame)
{
    static const char zeros[DOMT_CALLER_PIECE];
    domus_slice piece;

    DOMUS_BEGIN;
    frame->what = *(const domt_call_up *)message;
    frame->head = make_head_of_call(&frame->what);
    DOMUS_AWAIT(domus_request_begin(stack, domt_caller_to, &domus_http_request_type, &frame->head,
                                    20 * DOMT_SERVED_S, then));
    frame->made.error = answer->error;
    if (answer->error != 0)
        return domus_reply(stack, &domt_outcome_type, &frame->made);
    frame->request = *(const domus_request *)answer->payload;
    while (frame->made.write_error == 0 && frame->written < frame->what.up) {
        frame->written += sizeof zeros;
        ck_assert_int_eq(domus_slice_copy(zeros, sizeof zeros, &piece), 0);
        DOMUS_AWAIT(domus_request_write(stack, frame->request, piece, then));
        frame->made.write_error = answer->error;
    }
    if (frame->what.cuts || frame->made.write_error != 0) {
        DOMUS_AWAIT(domus_request_cut(stack, frame->request, then));
    } else if (frame->what.trailers) {
        frame->trailers.fields = domt_slice_of_text("X: y\r\n");
        DOMUS_AWAIT(domus_request_end(stack, frame->request, &domus_http_trailers_type,
                                      &frame->trailers, then));
    } else {
        DOMUS_AWAIT(domus_request_end(stack, frame->request, NULL, NULL, then));
    }
    read_head_of_answer(&frame->made, answer);
    if (answer->error == 0)
        frame->body = ((const domus_http_response *)answer->payload)->stream;
    while (frame->body.number != 0 && !frame->ended) {
        if (frame->what.pause_ms != 0)
            DOMUS_SLEEP(frame->what.pause_ms * DOMT_SERVED_MS);
        DOMUS_AWAIT(domus_body_read(stack, frame->body, then));
        frame->made.read_error = answer->error;
        frame->ended = answer->error != 0 || answer->type != &domus_piece_type ||
                       ((const domus_piece *)answer->payload)->last;
        if (answer->error == 0)
            count_part_of_answer(&frame->made, answer);
    }
    return domus_reply(stack, &domt_outcome_type, &frame->made);
    DOMUS_END;
}

DOMUS_SEQUENCE(ask_whole, call_frame)
{
    DOMUS_BEGIN;
    frame->head = make_head_of_call(message);
    DOMUS_ASK(domt_caller_to, &domus_http_request_type, &frame->head);
    read_head_of_answer(&frame->made, answer);
    return domus_reply(stack, &domt_outcome_type, &frame->made);
    DOMUS_END;
}

static const domus_on rows[] = {
    DOMUS_ON(&domt_up_type, send_up), DOMUS_ON(&domt_whole_type, ask_whole), {NULL, NULL, 0}};

const domus_behaviour domt_caller = {.name = "caller", .on = rows};
const domus_behaviour domt_caller_of_channels = {
    .name = "caller", .kind = DOMUS_CHANNELS, .on = rows};

/* --- types and behaviours --------------------------------------------------------------------- */

static const char *where;
static const domus_behaviour *connects_as;

static int store_address_of_connection(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, 0);
    domt_caller_to = ((const domus_connected *)answer->payload)->channel;
    return 0;
}

static int connect_on_mount(domus_stack *stack, void *self)
{
    return domus_connect(stack, where, &(domus_connect_options){.behaviour = connects_as},
                         store_address_of_connection);
}

static const domus_behaviour connector = {
    .name = "connector", .kind = DOMUS_CHANNELS, .on_mount = connect_on_mount};

void domt_caller_connect_or_open_pool(domus_testkit *kit, const char *at,
                                      const domus_pool_options *pool,
                                      const domus_behaviour *connection)
{
    domus_system *system = domus_testkit_system(kit);
    domus_address made;

    where = at;
    connects_as = connection;
    if (pool != NULL)
        ck_assert_int_eq(domus_outside_pool_open(system, at, pool, &domt_caller_to), 0);
    else
        ck_assert_int_eq(domus_outside_spawn_on(system, 1, &connector, NULL, &made), 0);
}

domt_outcome domt_caller_await_outcome(domus_testkit *kit, domus_probe *probe)
{
    domt_outcome made;

    ck_assert_msg(domus_probe_expect(probe, &domt_outcome_type, 60 * DOMT_SERVED_S, &made) == 0,
                  "%s", domus_testkit_error(kit));
    return made;
}
