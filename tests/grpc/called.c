/* The service of gRPC of called.h, with a handler for each method. */
#include "tests/grpc/called.h"
#include "tests/support/suite.h"

#include <domus/http_chain.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

domt_called domt_called_now;

static int reply_with_text(domus_stack *stack, const char *text, size_t size)
{
    domus_slice made;

    ck_assert_int_eq(domus_slice_copy(text, size, &made), 0);
    return domus_grpc_reply(stack, made);
}

static int reply_with_echoed_metadata(domus_stack *stack, const domus_grpc_call *call)
{
    domus_grpc_answer end = {.status = DOMUS_GRPC_OK};
    domus_appender before = {0};
    domus_appender behind = {0};
    domus_slice value;
    domus_slice bytes;

    ck_assert(domus_http_field(call->fields, "x-echo", &value));
    (void)domus_http_add_bytes(&before, "x-echo", domus_slice_data(value), value.size);
    ck_assert(domus_http_field(call->fields, "x-echo-bin", &value));
    ck_assert_int_eq(domus_grpc_binary(value, &bytes), 0);
    (void)domus_grpc_add_binary(&behind, "x-echo-bin", domus_slice_data(bytes), bytes.size);
    domus_slice_free(bytes);
    ck_assert_int_eq(domus_append_end(&before, &end.metadata), 0);
    ck_assert_int_eq(domus_append_end(&behind, &end.trailers), 0);
    ck_assert_int_eq(domus_slice_copy("e", 1, &end.message), 0);
    return domus_reply(stack, &domus_grpc_answer_type, &end);
}

const char *const domt_called_wrong[DOMT_CALLED_WRONG] = {
    "Grpc-Status: 5\r\n",
    "content-type: text/plain\r\n",
    "TE: trailers\r\n",
    "Connection: close\r\n",
    "content-length: 1\r\n",
    "Transfer-Encoding: chunked\r\n",
    "host: a\r\n",
    "x y: z\r\n",
    ": z\r\n",
    "x\r\n",
    "x: y",
    "x: y\n",
    "x: \x01\r\n",
    "a: b\r\nx: \x7f\r\n",
};

static domus_slice make_wrong_metadata(int number)
{
    domus_slice fields;

    ck_assert_int_lt(number, (int)DOMT_CALLED_WRONG);
    ck_assert_int_eq(
        domus_slice_copy(domt_called_wrong[number], strlen(domt_called_wrong[number]), &fields), 0);
    return fields;
}

static int reply_with_wrong_metadata(domus_stack *stack, int before, int behind)
{
    domus_grpc_answer end = {.status = DOMUS_GRPC_OK};

    if (before >= 0)
        end.metadata = make_wrong_metadata(before);
    if (behind >= 0)
        end.trailers = make_wrong_metadata(behind);
    return domus_reply(stack, &domus_grpc_answer_type, &end);
}

static int reply_with_many_trailers(domus_stack *stack, int count)
{
    domus_grpc_answer end = {.status = DOMUS_GRPC_OK};
    domus_appender fields = {0};

    for (int i = 0; i < count; i++)
        (void)domus_append(&fields, "x: y\r\n", 6);
    ck_assert_int_eq(domus_append_end(&fields, &end.trailers), 0);
    return domus_reply(stack, &domus_grpc_answer_type, &end);
}

static int reply_with_large_message(domus_stack *stack, int size)
{
    domus_appender text = {0};
    domus_slice made;

    for (int i = 0; i < size; i++)
        (void)domus_append(&text, "a", 1);
    ck_assert_int_eq(domus_append_end(&text, &made), 0);
    return domus_grpc_reply(stack, made);
}

/* Answer a call with trailers of `size` bytes. */
static int reply_with_trailers_of_size(domus_stack *stack, int size)
{
    domus_grpc_answer end = {.status = DOMUS_GRPC_OK};
    domus_appender fields = {0};

    (void)domus_append(&fields, "x: ", 3);
    for (int i = 0; i < size - 5; i++)
        (void)domus_append(&fields, "a", 1);
    (void)domus_append(&fields, "\r\n", 2);
    ck_assert_int_eq(domus_append_end(&fields, &end.trailers), 0);
    return domus_reply(stack, &domus_grpc_answer_type, &end);
}

DOMUS_SEQUENCE(unary, char)
{
    const domus_grpc_call *call = message;
    char text[DOMT_CALLED_MAX + 1];
    char words[DOMT_CALLED_MAX + 1] = "";
    int number = 0;

    DOMUS_BEGIN;
    domt_called_now.begun++;
    domt_called_now.deadline_ns = domus_deadline_ns(stack);
    snprintf(text, sizeof text, "%.*s", (int)call->message.size, domus_slice_data(call->message));
    if (sscanf(text, "fail %d %[^\n]", &number, words) >= 1)
        return domus_grpc_fail(stack, (domus_grpc_status)number, words);
    if (sscanf(text, "error %d", &number) == 1)
        return -number;
    if (strcmp(text, "none") == 0)
        return 0;
    if (sscanf(text, "fields %d", &number) == 1)
        return reply_with_trailers_of_size(stack, number);
    if (sscanf(text, "large %d", &number) == 1)
        return reply_with_large_message(stack, number);
    if (sscanf(text, "before %d", &number) == 1)
        return reply_with_wrong_metadata(stack, number, -1);
    if (sscanf(text, "behind %d", &number) == 1)
        return reply_with_wrong_metadata(stack, -1, number);
    if (sscanf(text, "many %d", &number) == 1)
        return reply_with_many_trailers(stack, number);
    if (strcmp(text, "echo") == 0)
        return reply_with_echoed_metadata(stack, call);
    if (sscanf(text, "sleep %d", &number) == 1) {
        DOMUS_SLEEP((uint64_t)number * DOMT_CALLED_MS);
        domt_called_now.cancelled += answer->error == -ECANCELED;
        return answer->error != 0 ? answer->error : reply_with_text(stack, "slept", 5);
    }
    return reply_with_text(stack, domus_slice_data(call->message), call->message.size);
    DOMUS_END;
}

typedef struct streaming {
    uint32_t count;
    uint32_t bytes;
} streaming;

/* Returns a slice of the message that the call has sent; the caller frees it. */
static domus_slice keep_message_of_call(domus_stack *stack)
{
    const domus_grpc_call *call = domus_asked(stack, &domus_grpc_call_type);
    domus_slice kept = {NULL, 0, 0};

    ck_assert_ptr_nonnull(call);
    ck_assert_int_eq(domus_slice_keep(call->message, &kept), 0);
    return kept;
}

static const domus_slice nothing = {NULL, 0, 0};

DOMUS_SEQUENCE(down, streaming)
{
    domus_slice text;

    DOMUS_BEGIN;
    domt_called_now.begun++;
    text = ((const domus_grpc_call *)message)->message;
    frame->count = (uint32_t)(domus_slice_data(text)[0] - '0');
    frame->bytes = text.size > 1 ? (unsigned char)domus_slice_data(text)[1] : 0;
    if (frame->bytes == '-')
        return domus_grpc_reply(stack, nothing);
    ck_assert_int_eq(domus_grpc_write(stack, nothing, then), -EINVAL);
    DOMUS_AWAIT(domus_grpc_begin(stack, nothing, then));
    while (answer->error == 0 && frame->count != 0) {
        frame->count--;
        DOMUS_AWAIT(domus_grpc_write(stack, keep_message_of_call(stack), then));
    }
    if (answer->error != 0 || frame->bytes == '!')
        return answer->error != 0 ? answer->error : -ENOENT;
    return domus_grpc_reply(stack, nothing);
    DOMUS_END;
}

DOMUS_SEQUENCE(up, streaming)
{
    domus_slice got;
    char text[64];
    int error;

    DOMUS_BEGIN;
    domt_called_now.begun++;
    for (;;) {
        DOMUS_GRPC_READ();
        error = domus_grpc_message(stack, &got);
        if (error != 0)
            break;
        frame->count++;
        frame->bytes += got.size;
    }
    domt_called_now.cancelled += error == -ECANCELED;
    if (error != -ENODATA)
        return error;
    /* A read after the end of the messages does not wait for more. */
    ck_assert(!domus_grpc_read_goes_on(stack, answer, then));
    snprintf(text, sizeof text, "%u %u", frame->count, frame->bytes);
    return reply_with_text(stack, text, strlen(text));
    DOMUS_END;
}

DOMUS_SEQUENCE(both, streaming)
{
    domus_slice got;
    domus_slice kept = {NULL, 0, 0};
    int error;

    DOMUS_BEGIN;
    domt_called_now.begun++;
    DOMUS_AWAIT(domus_grpc_begin(stack, nothing, then));
    while (answer->error == 0) {
        DOMUS_GRPC_READ();
        error = domus_grpc_message(stack, &got);
        if (error == 0)
            error = domus_slice_keep(got, &kept);
        domt_called_now.cancelled += error == -ECANCELED;
        if (error != 0)
            return error == -ENODATA ? domus_grpc_reply(stack, nothing) : error;
        DOMUS_AWAIT(domus_grpc_write(stack, kept, then));
    }
    return answer->error;
    DOMUS_END;
}

domus_address domt_called_far[DOMT_CALLED_THREADS], domt_called_late[DOMT_CALLED_THREADS];

const domus_behaviour domt_called_far_behaviour = {
    .name = "far",
    .on = (const domus_on[]){DOMUS_ON(&domus_grpc_call_type, both), {NULL, NULL, 0}},
};

static int forward_call_to_other_thread(domus_stack *stack, void *self, const void *payload)
{
    return domus_forward(stack, domt_called_far[domt_called_now.begun % DOMT_CALLED_THREADS]);
}

DOMUS_SEQUENCE(late, streaming)
{
    DOMUS_BEGIN;
    domt_called_now.begun++;
    DOMUS_SLEEP(3 * DOMT_CALLED_MS);
    if (answer->error != 0)
        return answer->error;
    DOMUS_AWAIT(domus_grpc_begin(stack, nothing, then));
    return answer->error != 0 ? answer->error : domus_grpc_reply(stack, nothing);
    DOMUS_END;
}

const domus_behaviour domt_called_late_behaviour = {
    .name = "late",
    .on = (const domus_on[]){DOMUS_ON(&domus_grpc_call_type, late), {NULL, NULL, 0}},
};

static int forward_call_to_late_actor(domus_stack *stack, void *self, const void *payload)
{
    const domus_grpc_call *call = payload;
    char thread = *domus_slice_data(call->message);

    if (thread == 'h') /* 'h' means that this thread begins the stream itself */
        return domi_late_begin(stack, self, payload);
    return domus_forward(stack, domt_called_late[thread - '0']);
}

DOMUS_SEQUENCE(begin, streaming)
{
    char text[8];

    DOMUS_BEGIN;
    snprintf(text, sizeof text, "%.*s", (int)((const domus_grpc_call *)message)->message.size,
             domus_slice_data(((const domus_grpc_call *)message)->message));
    ck_assert_int_eq(
        domus_grpc_begin(stack, make_wrong_metadata((int)strtol(text, NULL, 10)), then), -EINVAL);
    ck_assert_int_eq(domus_grpc_write(stack, nothing, then), -EINVAL);
    return -ENOENT;
    DOMUS_END;
}

DOMUS_SEQUENCE(twice, streaming)
{
    DOMUS_BEGIN;
    DOMUS_AWAIT(domus_grpc_begin(stack, nothing, then));
    ck_assert_int_eq(answer->error, 0);
    ck_assert_int_eq(domus_grpc_begin(stack, make_wrong_metadata(0), then), -EINVAL);
    DOMUS_AWAIT(domus_grpc_begin(stack, nothing, then));
    ck_assert_int_eq(answer->error, -EALREADY);
    return -ENOENT;
    DOMUS_END;
}

static int begin_stream_in_unary_call(domus_stack *stack, void *self, const void *payload)
{
    ck_assert_int_eq(domus_grpc_begin(stack, nothing, NULL), -EOPNOTSUPP);
    return domus_grpc_write(stack, nothing, NULL);
}

static bool is_service_healthy(const char *name, size_t size)
{
    return size != 3 || memcmp(name, "t.T", 3) != 0;
}

static const domus_grpc_service service = {
    .methods =
        (const domus_grpc_method[]){
            {"/t.T/Unary", DOMUS_GRPC_UNARY, domi_unary_begin},
            {"/t.T/Down", DOMUS_GRPC_SERVER_STREAMING, domi_down_begin},
            {"/t.T/Up", DOMUS_GRPC_CLIENT_STREAMING, domi_up_begin},
            {"/t.T/Both", DOMUS_GRPC_BIDIRECTIONAL, domi_both_begin},
            {"/t.T/Far", DOMUS_GRPC_BIDIRECTIONAL, forward_call_to_other_thread},
            {"/t.T/Late", DOMUS_GRPC_SERVER_STREAMING, forward_call_to_late_actor},
            {"/t.T/Begin", DOMUS_GRPC_SERVER_STREAMING, domi_begin_begin},
            {"/t.T/Twice", DOMUS_GRPC_SERVER_STREAMING, domi_twice_begin},
            {"/t.T/Wrong", DOMUS_GRPC_UNARY, begin_stream_in_unary_call},
            {"/t.I/Ill", DOMUS_GRPC_UNARY, begin_stream_in_unary_call},
            {"/grpc.health.v1.Health/Check", DOMUS_GRPC_UNARY, domus_grpc_check_health},
            {NULL, DOMUS_GRPC_UNARY, NULL}},
    .message_max = DOMT_CALLED_MAX,
    .pack_least = 100,
    .timeout_ns = 10000 * DOMT_CALLED_MS,
    .is_serving = is_service_healthy,
};

static int serve_call_of_channel(domus_stack *stack, void *self, const void *payload)
{
    return domus_grpc_serve(stack, self, payload, &service);
}

static const domus_http_options http = {DOMUS_GRPC_HTTP, .no_date = true, .whole_max = 100};
static const domus_pipeline pipeline = {
    .stages = (const domus_pipeline_stage[]){
        {&domus_http2_stage, NULL}, {&domus_http_stage, &http}, {NULL, NULL}}};

const domus_behaviour domt_called_behaviour = {
    .name = "called",
    .kind = DOMUS_CHANNELS,
    .pipeline = &pipeline,
    .on_peer = (const domus_on_peer[]){{.type = &domus_http_request_type,
                                        .handle = serve_call_of_channel,
                                        .peer_frame_size = DOMUS_GRPC_FRAME},
                                       {.type = NULL}},
    .on = (const domus_on[]){{&domus_grpc_call_type, domus_grpc_dispatch,
                              sizeof(struct domi_down_frame)},
                             {NULL, NULL, 0}},
};

/* The same service of gRPC behind a chain of HTTP. */
static int serve_call_behind_chain(domus_stack *stack, void *self,
                                   const domus_http_request *request, const domus_http_match *match)
{
    ck_assert_ptr_nonnull(match->route);
    return domus_grpc_serve(stack, self, request, &service);
}

static const domus_http_row rows[] = {
    {{DOMUS_HTTP_ON(POST), "/{service}/{method}", 0}, serve_call_behind_chain, NULL},
    {{0, NULL, 0}, NULL, NULL}};
static const domus_http_chain chain = {
    .parts = (const domus_http_step[]){{&domus_http_request_id, NULL}, {NULL, NULL}}, .rows = rows};
static const domus_http_options chained_http = {DOMUS_GRPC_HTTP, .chain = &chain};
static const domus_pipeline chained_pipeline = {
    .stages = (const domus_pipeline_stage[]){
        {&domus_http2_stage, NULL}, {&domus_http_stage, &chained_http}, {NULL, NULL}}};

const domus_behaviour domt_called_chained_behaviour = {
    .name = "chained",
    .kind = DOMUS_CHANNELS,
    .pipeline = &chained_pipeline,
    .on_peer = (const domus_on_peer[]){{.type = &domus_http_request_type,
                                        .handle = domus_http_dispatch,
                                        .peer_frame_size = DOMUS_GRPC_FRAME},
                                       {.type = NULL}},
    .on = (const domus_on[]){{&domus_grpc_call_type, domus_grpc_dispatch,
                              sizeof(struct domi_down_frame)},
                             {NULL, NULL, 0}},
};
