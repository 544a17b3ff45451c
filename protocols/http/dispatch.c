/* Passes a request through the chain of its connection to its handler.
 *
 * A part of the chain may answer, and its answer may end the exchange at once, so the exchange is
 * looked up again after each call of a part. The thread of the connection runs this. */
#include "protocols/http/chain.h"
#include "protocols/http/router.h"

#include <errno.h>
#include <string.h>

/* Returns the protocol of a channel's requests, as the access log shows it: "HTTP/1.1" or
 * "HTTP/2.0". The caller finds out which requests are of HTTP/1.0. Requests of HTTP/2 look like
 * those of HTTP/1.1, but come from an inner channel. */
static const char *name_of_peer_protocol(const domus_channel *channel)
{
    const char *carrier = domus_channel_carrier(channel);

    return carrier != NULL && strcmp(carrier, "http2") == 0 ? "HTTP/2.0" : "HTTP/1.1";
}

/* Find the list of exchanges of the connection that runs now, if its stage has a chain; the first
 * call makes the list. Returns 0; -ENOENT when there is no chain; -ENOMEM. */
static int find_exchanges_of_connection(domus_stack *stack, domi_http_chained **ret_chained)
{
    domus_channel *channel = domus_channel_running(stack);
    domi_http_state *state =
        channel != NULL ? domus_channel_stage_state(stack, channel, &domus_http_stage) : NULL;

    if (state == NULL || state->options.chain == NULL)
        return -ENOENT;
    if (state->chained == NULL)
        state->chained = domi_http_exchanges_of_connection_new(state->options.chain);
    if (state->chained == NULL)
        return -ENOMEM;
    if (!state->chained->knows_peer)
        state->chained->knows_peer = domus_channel_peer(channel, &state->chained->peer) == 0;
    state->chained->via = name_of_peer_protocol(channel);
    *ret_chained = state->chained;
    return 0;
}

/* Cast const away from a received request, which is memory of the library, and constant only for
 * handlers. */
static domus_http_request *cast_const_from_request(const domus_http_request *request)
{
    return (domus_http_request *)(uintptr_t)request;
}

static int begin_exchange_of_request(domus_stack *stack, domi_http_chained *chained,
                                     const domus_http_request *request)
{
    domi_http_exchange *exchange = domi_http_begin_exchange(chained, request->exchange);

    if (exchange == NULL)
        return -ENOMEM;
    exchange->face.via = request->minor == 0 ? "HTTP/1.0" : chained->via;
    exchange->face.begun_ns = domus_now_ns(stack);
    exchange->face.thread = domus_channel_thread(domus_channel_running(stack));
    exchange->face.method = request->method;
    return 0;
}

/* Enter the parts of one list that the exchange has not entered yet: those of the chain, or those
 * of the row. Returns 0 when all were entered; or what a part has returned. */
static int enter_remaining_parts_of_list(domus_stack *stack, domi_http_chained *chained,
                                         const domus_http_request *request,
                                         const domus_http_step *steps, bool is_chain)
{
    uint64_t number = request->exchange;
    domi_http_exchange *exchange = domi_http_find_exchange_by_number(chained, number);

    while (exchange != NULL && steps != NULL) {
        uint32_t index = exchange->entered - (is_chain ? 0 : exchange->of_chain);
        const domus_http_step *step = &steps[index];
        if (step->part == NULL)
            return 0;
        exchange->face.word = &exchange->words[exchange->entered++];
        exchange->of_chain += is_chain;
        int result = step->part->enter != NULL
                         ? step->part->enter(stack, &exchange->face,
                                             cast_const_from_request(request), step->options)
                         : 0;
        exchange = domi_http_find_exchange_by_number(chained, number);
        if (exchange != NULL)
            exchange->waits = result == DOMUS_PARKED;
        if (result != 0)
            return result;
    }
    return exchange != NULL ? 0 : DOMUS_HTTP_ANSWERED;
}

static int answer_unrouted_request(domus_stack *stack, const domus_http_match *match)
{
    domus_http_response response;
    int error = domus_http_unrouted(match, &response);

    if (error != 0)
        return error;
    error = domus_reply(stack, &domus_http_response_type, &response);
    if (error != 0)
        domus_http_response_type.release(&response);
    return error;
}

/* Enter the parts that the exchange has not entered yet, and then call the handler of the row. */
static int enter_parts_and_call_handler(domus_stack *stack, void *self, domi_http_chained *chained,
                                        const domus_http_request *request)
{
    static const domus_http_row none = {{0, NULL, 0}, NULL, NULL};
    domi_http_exchange *exchange = domi_http_find_exchange_by_number(chained, request->exchange);
    const domus_http_chain *chain = chained->chain;
    int result = 0;

    if (exchange->row == NULL)
        result = enter_remaining_parts_of_list(stack, chained, request, chain->parts, true);
    if (result != 0)
        return result != DOMUS_HTTP_ANSWERED ? result : 0;
    const domus_http_row *rows = chain->rows != NULL ? chain->rows : &none;
    domus_http_match match = domi_http_find_route(&rows->on, sizeof *rows, request);
    /* a part of the row has changed the target, so another row matches now, whose parts the
     * exchange has not entered */
    if (exchange->row != NULL && match.route != &exchange->row->on)
        return -EINVAL;
    if (match.route == NULL)
        return answer_unrouted_request(stack, &match);
    /* the route is the first member of its row, so the cast finds the row */
    exchange->row = (const domus_http_row *)(const void *)match.route;
    const domus_http_row *row = exchange->row;
    result = enter_remaining_parts_of_list(stack, chained, request, row->parts, false);
    if (result != 0)
        return result != DOMUS_HTTP_ANSWERED ? result : 0;
    return row->handle(stack, self, request, &match);
}

int domus_http_dispatch(domus_stack *stack, void *self, const void *payload)
{
    domi_http_chained *chained;
    int error = find_exchanges_of_connection(stack, &chained);

    if (error == 0)
        error = begin_exchange_of_request(stack, chained, payload);
    if (error != 0)
        return error == -ENOENT ? -EINVAL : error;
    return enter_parts_and_call_handler(stack, self, chained, payload);
}

int domus_http_go_on(domus_stack *stack, void *self)
{
    const domus_http_request *request = domus_asked(stack, &domus_http_request_type);
    domi_http_chained *chained;

    if (request == NULL || find_exchanges_of_connection(stack, &chained) != 0)
        return -EINVAL;
    domi_http_exchange *exchange = domi_http_find_exchange_by_number(chained, request->exchange);
    if (exchange == NULL || !exchange->waits)
        return -EINVAL;
    exchange->waits = false;
    return enter_parts_and_call_handler(stack, self, chained, request);
}

bool domus_http_enter(domus_stack *stack, const domus_http_request *request, int *ret_result)
{
    domi_http_chained *chained;
    int error = find_exchanges_of_connection(stack, &chained);

    if (error == -ENOENT)
        return true;
    if (error == 0 && domi_http_find_exchange_by_number(chained, request->exchange) != NULL)
        return true; /* the request has entered the chain already, so it must not enter again */
    if (error == 0)
        error = begin_exchange_of_request(stack, chained, request);
    if (error == 0)
        error = enter_remaining_parts_of_list(stack, chained, request, chained->chain->parts, true);
    if (error == 0)
        return true;
    *ret_result = error == DOMUS_HTTP_ANSWERED ? 0 : error == DOMUS_PARKED ? -EOPNOTSUPP : error;
    return false;
}

domi_http_exchange *domi_http_find_exchange_of_channel(domus_stack *stack,
                                                       const domus_http_request *request,
                                                       const domi_http_state **ret_state)
{
    domus_channel *channel = domus_channel_running(stack);
    const domi_http_state *state =
        channel != NULL ? domus_channel_stage_state(stack, channel, &domus_http_stage) : NULL;

    *ret_state = state;
    return request != NULL && state != NULL && state->chained != NULL
               ? domi_http_find_exchange_by_number(state->chained, request->exchange)
               : NULL;
}

domus_http_exchange *domus_http_exchange_of(domus_stack *stack, const domus_http_request *request)
{
    const domi_http_state *state;
    domi_http_exchange *exchange = domi_http_find_exchange_of_channel(stack, request, &state);

    return exchange != NULL ? &exchange->face : NULL;
}

int domus_http_set_user(domus_http_exchange *exchange, const char *name, size_t size)
{
    if (size > DOMUS_HTTP_USER_MAX)
        return -EMSGSIZE;
    if (memchr(name, '\0', size) != NULL)
        return -EINVAL;
    memcpy(exchange->user, name, size);
    exchange->user[size] = '\0';
    return 0;
}

int domus_http_answer(domus_stack *stack, uint16_t status, domus_appender *fields,
                      const char *media, const char *text)
{
    domus_http_response response = {.status = status, .media = media};
    int error = fields != NULL ? domus_append_end(fields, &response.fields) : 0;

    if (error == 0 && text != NULL)
        error = domus_slice_copy(text, strlen(text), &response.body);
    if (error == 0)
        error = domus_reply(stack, &domus_http_response_type, &response);
    if (error == 0)
        return DOMUS_HTTP_ANSWERED;
    domus_http_response_type.release(&response);
    return error;
}
