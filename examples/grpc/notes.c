/* The service of notes.proto: one method of each kind, and the health check. */
#include "notes.h"

#include "pack.h"

#include <domus/http2.h>

#include <errno.h>

#define MS UINT64_C(1000000)

/* --- messages --------------------------------------------------------------------------------- */

static int encode_note(domus_slice text, uint64_t place, domus_slice *ret_note)
{
    domus_appender note = {0};

    pack_append_text(&note, 1, text);
    pack_append_number(&note, 3, place);
    return domus_append_end(&note, ret_note);
}

static int encode_number(uint64_t number, domus_slice *ret_number)
{
    domus_appender made = {0};

    pack_append_number(&made, 1, number);
    return domus_append_end(&made, ret_number);
}

/* --- methods ---------------------------------------------------------------------------------- */

/* Answer with the note that the call has sent, and send its metadata "x-echo" back in the head, and
 * "x-echo-bin" in the trailers. */
static int answer_with_note_and_metadata_of_call(domus_stack *stack)
{
    const domus_grpc_call *call = domus_asked(stack, &domus_grpc_call_type);
    domus_grpc_answer end = {.status = DOMUS_GRPC_OK};
    domus_appender before = {0};
    domus_appender behind = {0};
    domus_slice text = {0};
    domus_slice echo;

    if (call == NULL || !pack_find_last_value_of_field(call->message, 1, NULL, &text))
        return -EINVAL;
    if (domus_http_field(call->fields, "x-echo", &echo))
        (void)domus_http_add_bytes(&before, "x-echo", domus_slice_data(echo), echo.size);
    if (domus_http_field(call->fields, "x-echo-bin", &echo))
        (void)domus_http_add_bytes(&behind, "x-echo-bin", domus_slice_data(echo), echo.size);
    int error = domus_append_end(&before, &end.metadata);
    int error_behind = domus_append_end(&behind, &end.trailers);
    if (error == 0)
        error = error_behind != 0 ? error_behind : encode_note(text, 0, &end.message);
    if (error == 0)
        error = domus_reply(stack, &domus_grpc_answer_type, &end);
    if (error != 0)
        domus_grpc_answer_type.release(&end);
    return error;
}

DOMUS_SEQUENCE(say, char)
{
    const domus_grpc_call *call = message;
    domus_slice text = {0};
    uint64_t delay_ms = 0;

    DOMUS_BEGIN;
    if (!pack_find_last_value_of_field(call->message, 1, NULL, &text) ||
        !pack_find_last_value_of_field(call->message, 2, &delay_ms, NULL))
        return -EINVAL;
    if (text.size == 0)
        return domus_grpc_fail(stack, DOMUS_GRPC_INVALID_ARGUMENT, "Say something: 100% \xc3\xbc");
    if (delay_ms != 0) {
        DOMUS_SLEEP(delay_ms * MS);
        if (answer->error != 0) /* the client of the call has gone away */
            return answer->error;
    }
    return answer_with_note_and_metadata_of_call(stack);
    DOMUS_END;
}

typedef struct counting {
    uint64_t number;
    uint64_t most;
    uint64_t delay_ms;
} counting;

DOMUS_SEQUENCE(count, counting)
{
    domus_slice made = {NULL, 0, 0};
    int error;

    DOMUS_BEGIN;
    if (!pack_find_last_value_of_field(((const domus_grpc_call *)message)->message, 1, &frame->most,
                                       NULL) ||
        !pack_find_last_value_of_field(((const domus_grpc_call *)message)->message, 2,
                                       &frame->delay_ms, NULL))
        return -EINVAL;
    DOMUS_AWAIT(domus_grpc_begin(stack, (domus_slice){NULL, 0, 0}, then));
    while (answer->error == 0 && frame->number < frame->most) {
        if (frame->delay_ms != 0)
            DOMUS_SLEEP(frame->delay_ms * MS);
        error = answer->error != 0 ? answer->error : encode_number(++frame->number, &made);
        if (error != 0)
            return error;
        DOMUS_AWAIT(domus_grpc_write(stack, made, then));
    }
    return answer->error != 0 ? answer->error : domus_grpc_reply(stack, (domus_slice){NULL, 0, 0});
    DOMUS_END;
}

DOMUS_SEQUENCE(sum, counting)
{
    domus_slice got;
    domus_slice made = {NULL, 0, 0};
    int error;

    DOMUS_BEGIN;
    for (;;) {
        DOMUS_GRPC_READ();
        error = domus_grpc_message(stack, &got);
        if (error != 0)
            break;
        frame->most = 0;
        if (!pack_find_last_value_of_field(got, 1, &frame->most, NULL))
            return -EINVAL;
        frame->number += frame->most;
    }
    if (error == -ENODATA)
        error = encode_number(frame->number, &made);
    return error != 0 ? error : domus_grpc_reply(stack, made);
    DOMUS_END;
}

DOMUS_SEQUENCE(chat, counting)
{
    domus_slice got;
    domus_slice made = {NULL, 0, 0};
    domus_slice text = {0};
    int error;

    DOMUS_BEGIN;
    DOMUS_AWAIT(domus_grpc_begin(stack, (domus_slice){NULL, 0, 0}, then));
    while (answer->error == 0) {
        DOMUS_GRPC_READ();
        error = domus_grpc_message(stack, &got);
        if (error == -ENODATA)
            return domus_grpc_reply(stack, (domus_slice){NULL, 0, 0});
        if (error == 0)
            error = pack_find_last_value_of_field(got, 1, NULL, &text)
                        ? encode_note(text, ++frame->number, &made)
                        : -EINVAL;
        if (error != 0)
            return error;
        DOMUS_AWAIT(domus_grpc_write(stack, made, then));
    }
    return answer->error;
    DOMUS_END;
}

/* --- the service ------------------------------------------------------------------------------ */

static const domus_grpc_service service = {
    .methods =
        (const domus_grpc_method[]){
            {"/notes.Notes/Say", DOMUS_GRPC_UNARY, domi_say_begin},
            {"/notes.Notes/Count", DOMUS_GRPC_SERVER_STREAMING, domi_count_begin},
            {"/notes.Notes/Sum", DOMUS_GRPC_CLIENT_STREAMING, domi_sum_begin},
            {"/notes.Notes/Chat", DOMUS_GRPC_BIDIRECTIONAL, domi_chat_begin},
            {"/grpc.health.v1.Health/Check", DOMUS_GRPC_UNARY, domus_grpc_check_health},
            {NULL, DOMUS_GRPC_UNARY, NULL}},
    .pack_least = 1024,
};

static int serve_call_of_note_service(domus_stack *stack, void *self, const void *payload)
{
    return domus_grpc_serve(stack, self, payload, &service);
}

static const domus_http_options http = {DOMUS_GRPC_HTTP};
static const domus_pipeline pipeline = {
    .stages = (const domus_pipeline_stage[]){
        {&domus_http2_stage, NULL}, {&domus_http_stage, &http}, {NULL, NULL}}};

const domus_behaviour notes_behaviour = {
    .name = "notes",
    .kind = DOMUS_CHANNELS,
    .pipeline = &pipeline,
    .on_peer = (const domus_on_peer[]){{.type = &domus_http_request_type,
                                        .handle = serve_call_of_note_service,
                                        .peer_frame_size = DOMUS_GRPC_FRAME},
                                       {.type = NULL}},
    .on = (const domus_on[]){{&domus_grpc_call_type, domus_grpc_dispatch,
                              sizeof(struct domi_count_frame)},
                             {NULL, NULL, 0}},
};
