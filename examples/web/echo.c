/* Echo: the body of a POST to /echo, and the bytes that come to the port `echo`.
 *
 * The body goes back piece by piece. Each piece is read when the one before it was taken, so a body
 * of any size takes the memory of one piece, and a peer that does not read its answer is not read
 * from. (Browsers read only when they have sent everything. A body of theirs that does not fit into
 * the buffers on the way back waits until a time-out of the channel ends it.) */
#include "web.h"

struct echo {
    domus_body body;
    uint64_t length;   /* length of the body in bytes; 0: not known */
    domus_slice piece; /* the bytes of the body that are sent back next */
    bool is_last;
};

/* Take the piece of the body that was read. Trailers end the body, and are not sent back. */
static int take_read_piece_of_body(domus_stack *stack, struct echo *echo,
                                   const domus_answer *answer)
{
    echo->is_last = true;
    echo->piece = (domus_slice){0};
    if (answer->error != 0 || answer->type != &domus_piece_type)
        return answer->error;
    const domus_piece *piece = answer->payload;
    int error = domus_take_answer(stack, answer);
    if (error == 0) {
        echo->piece = piece->bytes;
        echo->is_last = piece->last;
    }
    return error;
}

static int begin_answer_of_echo_or_free_piece(domus_stack *stack, struct echo *echo,
                                              domus_resumed *then)
{
    const domus_http_response head = {.status = 200, .media = WEB_BYTES, .length = echo->length};
    int error = domus_reply_begin(stack, &domus_http_response_type, &head, then);

    if (error < 0)
        domus_slice_free(echo->piece);
    return error;
}

/* The first piece is read before the answer begins, so that a wrong body still gets a status. A
 * sequence that fails later cuts the answer. */
DOMUS_SEQUENCE(echo, struct echo)
{
    const domus_http_request *request = message;
    int error;

    DOMUS_BEGIN;
    frame->body = request->stream;
    frame->length = request->length;
    if (frame->body.number == 0)
        return web_answer_200_with_uncached_body(stack, WEB_BYTES, (domus_slice){0});
    DOMUS_AWAIT(domus_body_read(stack, frame->body, then));
    if ((error = take_read_piece_of_body(stack, frame, answer)) != 0)
        return error;
    DOMUS_AWAIT(begin_answer_of_echo_or_free_piece(stack, frame, then));
    if (answer->error != 0) {
        domus_slice_free(frame->piece);
        return answer->error;
    }
    while (!frame->is_last) {
        /* domus_reply_write() owns the piece from here on */
        DOMUS_AWAIT(domus_reply_write(stack, frame->piece, then));
        if (answer->error != 0)
            return answer->error;
        DOMUS_AWAIT(domus_body_read(stack, frame->body, then));
        if ((error = take_read_piece_of_body(stack, frame, answer)) != 0)
            return error;
    }
    DOMUS_AWAIT(domus_reply_write(stack, frame->piece, then));
    return answer->error != 0 ? answer->error : domus_reply_end(stack, NULL, NULL);
    DOMUS_END;
}

const domus_call web_serve_echo = DOMUS_BY(echo);

static int send_packet_back(domus_stack *stack, void *self, const void *payload)
{
    (void)self;
    return domus_channel_send(stack, domus_channel_running(stack), &domus_packet_type, payload);
}

/* The pipeline of the port `echo`, which gives bytes as they come. An on_read would do the same,
 * but could not stand behind TLS. */
static const domus_pipeline bytes = {
    .stages = (const domus_pipeline_stage[]){{&domus_bytes_stage, NULL}, {NULL, NULL}}};

static const domus_behaviour echo_channel = {
    .name = "echo",
    .kind = DOMUS_CHANNELS,
    .pipeline = &bytes,
    .on_peer = (const domus_on_peer[]){{.type = &domus_packet_type, .handle = send_packet_back},
                                       {.type = NULL}},
};

const domus_behaviour web_echo_port = {
    .name = "echo port", .kind = DOMUS_CHANNELS, .channel = &echo_channel};
