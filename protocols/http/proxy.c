/* Forwards requests to a server, and its answers back.
 *
 * A request is one conversation of the client's channel. It waits for up to three things at once: a
 * piece of the request's body, the answer, and a piece of the answer's body. Each piece is written
 * on before the next one is asked for, so at most one piece of each body is held. */
#include "protocols/http/proxy_parts.h"

#include "protocols/http/fields.h"

#include <domus/await.h>
#include <domus/channel.h>

#include <errno.h>

#define TIMEOUT_NS UINT64_C(60000000000)

/* Tags of the answers for which the conversation of a forwarded request waits. */
enum { ANSWER, UP = DOMI_HTTP_READ_UP, DOWN = DOMI_HTTP_READ_DOWN };

/* The conversation of a request that the proxy forwards. */
typedef struct pass {
    const domus_http_proxy *proxy;
    const domus_http_request *asked; /* the client's request; valid until it is answered */
    /* the bodies of both directions, and the request to the server once that has begun */
    domi_http_ways ways;
    domus_slice piece; /* the piece of a body that is written on next */
    /* name of the protocol to which the client wants to change; NULL: none */
    const char *upgrade;
    bool uploads;  /* the server has not got the whole body of the request yet */
    bool answered; /* the client has got the head of the answer */
    bool is_again; /* the upgrade was asked of the server for a second time */
    bool is_head;
} pass;

static int reply_with_status_and_text(domus_stack *stack, uint16_t status, const char *text)
{
    return domus_reply(stack, &domus_http_text_type,
                       &(domus_http_text){status, "text/plain", text});
}

/* End a forwarded request whose server could not be reached or has failed, and tell the client if
 * that is still possible. */
static int end_forwarding_with_error(domus_stack *stack, pass *frame, int error)
{
    /* nobody will read the rest of the answer's body, so it is given up */
    if (frame->ways.down.number != 0)
        (void)domus_stop(stack, frame->ways.down.channel);
    domus_slice_free(frame->piece);
    frame->piece = (domus_slice){NULL, 0, 0};
    if (frame->answered || error == -ECANCELED)
        /* the client has got a part of the answer, or has gone: the error cuts the answer off */
        return error;
    if (error == -ETIMEDOUT)
        return reply_with_status_and_text(stack, 504, "Gateway Timeout\n");
    if (error == -ENOBUFS || error == -EBUSY || error == -ENOMEM)
        return error; /* the client is answered by 503 */
    return reply_with_status_and_text(stack, 502, "Bad Gateway\n");
}

/* Make the head of the request to the server, and find out whether a body in pieces follows.
 * Returns 0, or a negative errno. */
static int make_request_to_server(domus_stack *stack, pass *frame,
                                  const domus_http_request *request, domus_http_request *ret_made)
{
    const domus_channel *channel = domus_channel_running(stack);
    domus_endpoint client;
    bool is_known = channel != NULL && domus_channel_peer(channel, &client) == 0;

    if (request == NULL) /* in the first turn of the conversation the request is always there */
        return -EINVAL;
    frame->ways.up = request->stream;
    frame->uploads = request->stream.number != 0;
    frame->is_head = request->method == DOMUS_HTTP_HEAD;
    return domi_http_make_forwarded_request(frame->proxy, request, is_known ? &client : NULL,
                                            frame->upgrade, ret_made);
}

static uint64_t timeout_of_proxy(const domus_http_proxy *proxy)
{
    return proxy->timeout_ns != 0 ? proxy->timeout_ns : TIMEOUT_NS;
}

/* Send the server a request whose body is complete. Returns 0, or a negative errno. */
static int send_complete_request_to_server(domus_stack *stack, pass *frame,
                                           domus_http_request *made)
{
    const domus_http_proxy *proxy = frame->proxy;
    const domus_type *type = domus_http_is_repeatable(made->method) ? &domus_http_repeatable_type
                                                                    : &domus_http_request_type;
    int error = domus_ask_add(stack, proxy->upstream, type, made, timeout_of_proxy(proxy), ANSWER);

    if (error != 0)
        type->release(made);
    return error;
}

/* Returns whether the server gets only the head at first (domus_request_begin()): a body in pieces
 * follows, or the client wants to change the protocol. */
static bool does_server_get_head_first(const pass *frame)
{
    return frame->uploads || frame->upgrade != NULL;
}

/* Returns the pool of connections for the request. Tunnels keep their connections, so they may have
 * a pool of their own. */
static domus_address choose_pool_for_request_or_tunnel(const pass *frame)
{
    const domus_http_proxy *proxy = frame->proxy;

    return frame->upgrade != NULL && proxy->tunnels.house != NULL ? proxy->tunnels
                                                                  : proxy->upstream;
}

/* Begin the request to the server, and wait for the answer or a piece of the body, whatever comes
 * first. Returns as domus_ask(). */
static int begin_request_to_server(domus_stack *stack, pass *frame,
                                   const domus_http_request *request, domus_resumed *then)
{
    domus_http_request made;
    int result = make_request_to_server(stack, frame, request, &made);

    if (result != 0)
        return result;
    if (!does_server_get_head_first(frame)) {
        result = send_complete_request_to_server(stack, frame, &made);
        return result != 0 ? result : domus_wait_first(stack, then);
    }
    uint64_t timeout_ns = frame->upgrade != NULL ? timeout_of_proxy(frame->proxy) : 0;
    result = domus_request_begin(stack, choose_pool_for_request_or_tunnel(frame),
                                 &domus_http_request_type, &made, timeout_ns, then);
    if (result < 0)
        domus_http_request_type.release(&made);
    return result;
}

/* Returns whether the client gets the answer in pieces: its body comes in pieces, or it is an
 * answer to HEAD without a length. */
static bool is_answer_sent_in_pieces(const pass *frame, const domus_http_response *response)
{
    domus_slice length;
    bool may_have_body = response->status != 204 && response->status != 304;

    return response->stream.number != 0 ||
           (frame->is_head && may_have_body &&
            !domus_http_field(response->fields, "content-length", &length));
}

/* Change the client's connection to the other protocol, as the server has done with its own. Bytes
 * that the client has sent behind its request were not read yet. Returns as domus_reply_begin(). */
static int switch_client_to_protocol_of_server(domus_stack *stack, pass *frame,
                                               const domus_http_response *response,
                                               domus_resumed *then)
{
    domus_channel *channel = domus_channel_running(stack);
    domus_http_response made;
    domus_slice protocol;

    if (!domus_http_field(response->fields, "upgrade", &protocol) ||
        !domi_http_is_slice_word_in_any_case(protocol, frame->upgrade))
        return end_forwarding_with_error(stack, frame, -EPROTO);
    int result = domi_http_forward_response(frame->proxy, frame->asked, response, &made);
    if (result != 0)
        return end_forwarding_with_error(stack, frame, result);
    result = domi_http_open_tunnel(stack, channel, &frame->ways.up);
    if (result == 0)
        result = domus_reply_begin(stack, &domus_http_response_type, &made, then);
    if (result >= 0)
        return result;
    domus_http_response_type.release(&made);
    return end_forwarding_with_error(stack, frame, result);
}

/* Send the client the answer of the server: a complete one, or the begin of one. Returns as
 * domus_ask(). */
static int send_answer_to_client(domus_stack *stack, pass *frame, const domus_answer *answer,
                                 domus_resumed *then)
{
    const domus_http_response *response = answer->payload;
    domus_http_response made;
    int result;

    if (answer->error != 0)
        return end_forwarding_with_error(stack, frame, answer->error);
    frame->ways.down = response->stream;
    if (response->status == 101)
        return switch_client_to_protocol_of_server(stack, frame, response, then);
    /* the server has not changed the protocol, so this is an ordinary answer */
    frame->upgrade = NULL;
    result = domi_http_forward_response(frame->proxy, frame->asked, response, &made);
    if (result != 0)
        return end_forwarding_with_error(stack, frame, result);
    if (!is_answer_sent_in_pieces(frame, response))
        result = domus_reply(stack, &domus_http_response_type, &made);
    else
        result = domus_reply_begin(stack, &domus_http_response_type, &made, then);
    if (result < 0) {
        domus_http_response_type.release(&made);
        return end_forwarding_with_error(stack, frame, result);
    }
    /* the server does not want the rest of the request's body */
    if (frame->uploads && response->status >= 300)
        frame->ways.up = (domus_body){.number = 0};
    return result;
}

/* Ask for the pieces of bodies that are needed and not yet asked for, and wait for whatever comes
 * first. */
static int wait_for_next_piece_of_bodies(domus_stack *stack, pass *frame, domus_resumed *then)
{
    int error = 0;

    if (frame->ways.up.number != 0 && !frame->ways.waits_up) {
        error = domus_body_read_add(stack, frame->ways.up, UP);
        frame->ways.waits_up = error == 0;
    }
    if (error == 0 && frame->ways.down.number != 0 && !frame->ways.waits_down) {
        error = domus_body_read_add(stack, frame->ways.down, DOWN);
        frame->ways.waits_down = error == 0;
    }
    return error != 0 ? end_forwarding_with_error(stack, frame, error)
                      : domus_wait_first(stack, then);
}

/* Take over a piece of the body `body`, which ends with its last piece. Returns 0, or a negative
 * errno. */
static int take_over_piece_of_body(domus_stack *stack, pass *frame, domus_body *body,
                                   const domus_answer *answer)
{
    const domus_piece *piece = answer->payload;
    int error = answer->error != 0 ? answer->error : domus_take_answer(stack, answer);

    if (error != 0)
        return error;
    frame->piece = piece->bytes;
    if (piece->last)
        *body = (domus_body){.number = 0};
    return 0;
}

/* Returns whether an answer to a read is the trailers, which end a body. */
static bool is_answer_trailers(const domus_answer *answer)
{
    return answer->error == 0 && answer->type == &domus_http_trailers_type;
}

/* Make the trailers that are sent on from the trailers that have come. Returns 0, or a negative
 * errno. */
static int make_trailers_to_forward(const pass *frame, const domus_answer *answer,
                                    domus_http_trailers *ret)
{
    const domus_http_trailers *trailers = answer->payload;

    return domi_http_forward_trailers(frame->proxy, trailers->fields, ret);
}

/* End the request to the server with the trailers that the client has sent. Returns as
 * domus_request_end(). */
static int end_request_to_server(domus_stack *stack, pass *frame, const domus_answer *answer,
                                 domus_resumed *then)
{
    domus_http_trailers made;
    int result = make_trailers_to_forward(frame, answer, &made);

    frame->ways.waits_up = false;
    frame->ways.up = (domus_body){.number = 0};
    if (result != 0)
        return end_forwarding_with_error(stack, frame, result);
    result = domus_request_end(stack, frame->ways.request, &domus_http_trailers_type, &made, then);
    if (result < 0)
        domus_slice_free(made.fields);
    return result;
}

/* End the answer with the trailers that the server has sent, if the client accepts any. Returns as
 * domus_reply_end(). */
static int end_answer_to_client(domus_stack *stack, pass *frame, const domus_answer *answer)
{
    domus_http_trailers made;

    if (!domi_http_do_fields_list_word(frame->asked->fields, "te", "trailers"))
        return domus_reply_end(stack, NULL, NULL);
    int error = make_trailers_to_forward(frame, answer, &made);
    if (error == 0)
        error = domus_reply_end(stack, &domus_http_trailers_type, &made);
    else
        return end_forwarding_with_error(stack, frame, error);
    if (error != 0)
        domus_slice_free(made.fields);
    return error;
}

/* Write the current piece to the server; write it to the client. The functions consume the piece,
 * and return as the functions that they call. */
static int write_piece_of_body_to_server(domus_stack *stack, pass *frame, domus_resumed *then)
{
    domus_slice piece = frame->piece;

    frame->piece = (domus_slice){NULL, 0, 0};
    return domus_request_write(stack, frame->ways.request, piece, then);
}

static int write_piece_of_body_to_client(domus_stack *stack, pass *frame, domus_resumed *then)
{
    domus_slice piece = frame->piece;

    frame->piece = (domus_slice){NULL, 0, 0};
    return domus_reply_write(stack, piece, then);
}

/* Take a piece of the request's body that the client has sent, and write it to the server. Returns
 * as domus_request_write(). */
static int forward_piece_of_request(domus_stack *stack, pass *frame, const domus_answer *answer,
                                    domus_resumed *then)
{
    frame->ways.waits_up = false;
    int error = take_over_piece_of_body(stack, frame, &frame->ways.up, answer);
    if (error != 0)
        /* the request's body is wrong or too large, so the client is answered by 400 or 413 */
        return frame->answered ? end_forwarding_with_error(stack, frame, error) : error;
    return write_piece_of_body_to_server(stack, frame, then);
}

/* Continue after a piece was written to the server, or could not be, as `answer` tells. After the
 * end of the body the server's answer resumes the conversation, unless it has come before. */
static int continue_body_to_server_after_write(domus_stack *stack, pass *frame,
                                               const domus_answer *answer, domus_resumed *then)
{
    bool is_taken = answer->error == 0 || answer->error == -EALREADY;

    if (is_taken && frame->ways.up.number == 0)
        return domus_request_end(stack, frame->ways.request, NULL, NULL, then);
    if (!is_taken)
        frame->ways.up = (domus_body){.number = 0};
    return wait_for_next_piece_of_bodies(stack, frame, then);
}

/* Take a piece of the answer's body that the server has sent, and write it to the client. Returns
 * as domus_reply_write(). */
static int forward_piece_of_answer(domus_stack *stack, pass *frame, const domus_answer *answer,
                                   domus_resumed *then)
{
    frame->ways.waits_down = false;
    int error = take_over_piece_of_body(stack, frame, &frame->ways.down, answer);
    return error != 0 ? end_forwarding_with_error(stack, frame, error)
                      : write_piece_of_body_to_client(stack, frame, then);
}

/* Returns whether the upgrade may be asked for a second time: the server may have closed an idle
 * connection just when the request was sent, and a GET without a body may be done twice. */
static bool may_ask_upgrade_again(const pass *frame, const domus_answer *answer)
{
    return answer->error == -EPIPE && frame->upgrade != NULL && !frame->answered &&
           !frame->is_again && frame->asked->method == DOMUS_HTTP_GET;
}

/* Forward pieces of both bodies until the answer has ended. If the server answers before it has the
 * request's whole body, the end of the conversation cuts off the rest. */
DOMUS_SEQUENCE(forward_request_and_answer, pass)
{
    DOMUS_BEGIN;
    frame->asked = message;
ask_server:
    DOMUS_AWAIT(begin_request_to_server(stack, frame, frame->asked, then));
    if (does_server_get_head_first(frame)) {
        if (answer->error != 0)
            return end_forwarding_with_error(stack, frame, answer->error);
        frame->ways.request = *(const domus_request *)answer->payload;
        DOMUS_AWAIT(wait_for_next_piece_of_bodies(stack, frame, then));
    }
    for (;;) {
        if (answer->tag == UP && frame->ways.up.number != 0 && is_answer_trailers(answer)) {
            DOMUS_AWAIT(end_request_to_server(stack, frame, answer, then));
            continue;
        }
        if (answer->tag == UP && frame->ways.up.number != 0) {
            DOMUS_AWAIT(forward_piece_of_request(stack, frame, answer, then));
            DOMUS_AWAIT(continue_body_to_server_after_write(stack, frame, answer, then));
            continue;
        }
        if (answer->tag == DOWN && is_answer_trailers(answer))
            return end_answer_to_client(stack, frame, answer);
        if (answer->tag == DOWN) {
            DOMUS_AWAIT(forward_piece_of_answer(stack, frame, answer, then));
            if (answer->error != 0)
                return end_forwarding_with_error(stack, frame, answer->error);
            if (frame->ways.down.number == 0)
                return domus_reply_end(stack, NULL, NULL);
        } else if (answer->tag == ANSWER && may_ask_upgrade_again(frame, answer)) {
            frame->is_again = true;
            goto ask_server;
        } else if (answer->tag == ANSWER && !frame->answered) {
            DOMUS_AWAIT(send_answer_to_client(stack, frame, answer, then));
            if (answer->error != 0)
                return end_forwarding_with_error(stack, frame, answer->error);
            frame->answered = true;
            if (frame->upgrade != NULL)
                break;
            if (frame->ways.down.number == 0)
                return domus_reply_end(stack, NULL, NULL);
        }
        DOMUS_AWAIT(wait_for_next_piece_of_bodies(stack, frame, then));
    }
    DOMUS_AWAIT(domi_http_begin_relay(stack, &frame->ways, then));
    for (;;)
        DOMUS_AWAIT(domi_http_continue_relay(stack, &frame->ways, answer, then));
    DOMUS_END;
}

static_assert(sizeof(struct domi_forward_request_and_answer_frame) <= DOMUS_HTTP_PROXY_FRAME,
              "the frame of the row");

int domus_http_pass(domus_stack *stack, const domus_http_request *request,
                    const domus_http_proxy *proxy)
{
    struct domi_forward_request_and_answer_frame *frame = domus_frame(stack);
    const char *upgrade = domi_http_find_allowed_upgrade(proxy->upgrades, request);

    if (frame == NULL)
        return -EINVAL;
    if (upgrade != NULL &&
        domi_http_mark_that_tunnel_was_asked(stack, domus_channel_running(stack)) != 0)
        upgrade = NULL;
    if (upgrade == NULL && request->upgrade &&
        domi_http_do_fields_list_word(request->fields, "upgrade", "websocket"))
        return reply_with_status_and_text(stack, 501, "WebSocket does not pass this proxy.\n");
    *frame = (struct domi_forward_request_and_answer_frame){
        .frame = {.proxy = proxy, .upgrade = upgrade}};
    return domi_forward_request_and_answer_begin(stack, NULL, request);
}
