/* Makes the answers to requests that have failed, and to bytes that are not a request. */
#include "protocols/http/chain.h"
#include "protocols/http/write.h"

#include <errno.h>
#include <stdio.h>

#define REASON_ROOM 64u /* bytes of the longest reason for a failure, with line end and zero */

static unsigned http_status_of_handler_errno(int error)
{
    switch (-error) {
    case EPROTO:
    case EBADMSG:
        return 400; /* the handler has found the body of the request wrong */
    case EACCES:
    case EPERM:
        return 403;
    case ENOENT:
        return 404;
    case ETIME:
        return 408;
    case EEXIST:
        return 409;
    case EMSGSIZE:
        return 413;
    case EMEDIUMTYPE:
        return 415;
    case EOPNOTSUPP:
        return 501;
    case EAGAIN:
    case EBUSY:
    case ENOBUFS:
    case ENOMEM:
    case ECANCELED:
    case ENOTCONN: /* the server that this one has asked for the answer cannot be reached */
        return 503;
    case ETIMEDOUT:
        return 504;
    default:
        return 500;
    }
}

/* Returns whether bytes of a request have come; an empty line before a request does not count. */
static bool has_request_begun(const domi_http_state *state)
{
    return state->phase != DOMI_HTTP_IN_HEAD || state->head.looked != 0;
}

/* Returns the status of the answer to bytes that are not a request; 0 if no answer is expected: the
 * peer has ended (by a FIN, or by a byte stage that was cut off), or has not begun a request. */
static unsigned http_status_of_failed_decoding(const domi_http_state *state, int error)
{
    switch (-error) {
    case EPIPE:
    case ECONNABORTED:
        return 0;
    case ENOMEM:
        return 503;
    case ETIMEDOUT:
        return has_request_begun(state) ? 408 : 0;
    case EMSGSIZE:
        return state->head.wrong != 0 ? state->head.wrong : 431;
    default:
        return state->head.wrong != 0 ? state->head.wrong : 400;
    }
}

static int append_head_and_body_of_failure(domus_wire *wire, const domi_http_state *state,
                                           const domi_http_outgoing *answer, bool is_new,
                                           bool is_head)
{
    const char *body = answer->text != NULL ? answer->text : domus_slice_data(answer->body);
    char *begin = domus_wire_room(wire, DOMI_HTTP_HEAD_ROOM + answer->media_size +
                                            answer->added.size + answer->body_size);

    if (begin == NULL)
        return -ENOMEM;
    char *to = domi_http_put_status_line(begin, answer->status);
    if (!state->options.no_date)
        to = domi_http_put_date_field(to);
    to = DOMI_HTTP_PUT(to, "Content-Length: ");
    to = domi_http_put_decimal_number(to, answer->body_size);
    if (answer->close)
        to = DOMI_HTTP_PUT(to, "\r\nConnection: close");
    else if (!is_new)
        to = DOMI_HTTP_PUT(to, "\r\nConnection: keep-alive");
    to = DOMI_HTTP_PUT(to, "\r\nContent-Type: ");
    to = domi_http_put_bytes(to, answer->media, answer->media_size);
    to = DOMI_HTTP_PUT(to, "\r\n");
    to = domi_http_put_bytes(to, domus_slice_data(answer->added), answer->added.size);
    to = DOMI_HTTP_PUT(to, "\r\n");
    if (!is_head)
        to = domi_http_put_bytes(to, body, answer->body_size);
    domus_wire_written(wire, (size_t)(to - begin));
    return 0;
}

/* Append the answer to a failed request. Its body is the reason, unless a part of the chain makes
 * another one. */
static int append_answer_to_failed_request(domus_wire *wire, domi_http_state *state,
                                           unsigned status, int error, uint64_t id, bool close)
{
    bool is_request = id != DOMUS_NO_ID;
    char reason[REASON_ROOM];
    domi_http_outgoing answer = {
        .status = status, .media = "text/plain", .media_size = 10, .text = reason, .close = close};
    domus_slice made = {NULL, 0, 0};

    answer.body_size = (size_t)snprintf(reason, sizeof reason, "%s\n", domus_http_reason(status));
    if (state->options.chain != NULL)
        domi_http_pass_failure_through_parts(
            wire, &state->chained, state->options.chain,
            is_request ? domi_http_find_exchange_of_request(state->chained, id) : NULL, error,
            &answer, &made);
    int result = append_head_and_body_of_failure(wire, state, &answer,
                                                 !is_request || (id & DOMI_HTTP_ID_NEW) != 0,
                                                 is_request && (id & DOMI_HTTP_ID_HEAD) != 0);
    domus_slice_free(answer.added);
    domus_slice_free(made);
    return result;
}

/* bytes of a request's method and path in the log, at most; longer texts are cut */
#define WHAT_SIZE 256u

/* Log that a handler has answered with nothing but an error of this side, with its route if there
 * is one. Requests that were cancelled, because the peer has left or the system stops, are not
 * logged. */
static void log_failure_of_handler(domus_wire *wire, const domi_http_state *state, uint64_t id,
                                   int error)
{
    const domi_http_exchange *exchange = domi_http_find_exchange_of_request(state->chained, id);
    char what[WHAT_SIZE];

    if (http_status_of_handler_errno(error) < 500 || error == -ECANCELED)
        return;
    if (exchange == NULL || exchange->row == NULL) {
        domus_wire_tell_failure(wire, NULL, error);
        return;
    }
    const char *method = exchange->face.method < DOMUS_HTTP_METHODS
                             ? domus_http_method_name(exchange->face.method)
                             : NULL;
    (void)snprintf(what, sizeof what, "%s %s", method != NULL ? method : "?",
                   exchange->row->on.path);
    domus_wire_tell_failure(wire, what, error);
}

int domi_http_answer_failed_request(domus_wire *wire, domi_http_state *state, uint64_t id,
                                    const domus_type *request, int error)
{
    if (!domi_http_is_server(state))
        return error;
    if (request == NULL) {
        unsigned status = http_status_of_failed_decoding(state, error);
        return status != 0
                   ? append_answer_to_failed_request(wire, state, status, 0, DOMUS_NO_ID, true)
                   : 0;
    }
    bool close = (id & DOMI_HTTP_ID_CLOSE) != 0 ||
                 domi_http_may_refused_body_still_come(state, id) || domus_wire_is_closing(wire);
    if (error == -EPIPE && domus_wire_is_closing(wire))
        /* the handler has read a body in whose midst the peer has ended: that is the peer's
         * error */
        error = -EPROTO;
    log_failure_of_handler(wire, state, id, error);
    int result = append_answer_to_failed_request(wire, state, http_status_of_handler_errno(error),
                                                 error, id, close);
    if (result != 0)
        return result;
    if (close)
        domus_wire_last(wire);
    return domi_http_count_answer_and_send_owed_100(wire, state, id);
}
