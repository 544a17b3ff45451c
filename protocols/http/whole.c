/* Gathers the body of a request whose handler wants it whole, and then calls the handler again. The
 * pieces are read as by any handler, so the peer sends no faster than they are read, and nothing is
 * gathered for a request that no handler wants. The thread of the connection runs this. */
#include "protocols/http/chain.h"

#include <errno.h>

/* bytes that an appender of a body allocates at first, if the limit allows */
#define ROOM_LEAST 256u

/* Append a piece to the gathered body, if the budget has room for the memory: an appender doubles
 * what it has. */
static int append_piece_to_gathered_body(domi_http_whole *whole, domus_slice bytes)
{
    uint64_t size = (uint64_t)whole->bytes.size + bytes.size;
    uint64_t room = 2 * size > ROOM_LEAST ? 2 * size : ROOM_LEAST;

    if (room > whole->bytes.size_max)
        room = whole->bytes.size_max;
    int error = domus_budget_charge(whole->budget, &whole->charged, room);
    return error != 0 ? error : domus_append(&whole->bytes, domus_slice_data(bytes), bytes.size);
}

/* End a gathered body: the request gets it as if it had come whole. */
static int give_gathered_body_to_request(domi_http_exchange *exchange,
                                         const domus_http_request *asked)
{
    /* const is cast away: received requests are memory of the library, constant only for
     * handlers */
    domus_http_request *request = (domus_http_request *)(uintptr_t)asked;
    int error = domus_append_end(&exchange->whole.bytes, &request->body);

    if (error != 0)
        return error;
    domi_http_free_gathered_body(exchange);
    request->stream.number = 0;
    request->length = request->body.size;
    exchange->waits = true;
    return 0;
}

static int append_piece_and_read_next_or_go_on(domus_stack *stack, void *self,
                                               const domus_answer *answer)
{
    const domus_http_request *request = domus_asked(stack, &domus_http_request_type);
    const domi_http_state *state;
    domi_http_exchange *exchange = domi_http_find_exchange_of_channel(stack, request, &state);
    /* an answer that is no piece is the trailers of the body, which a handler of a whole body does
     * not get */
    bool is_last = answer->type != &domus_piece_type;
    int error = answer->error;

    if (error != 0)
        return error;
    if (exchange == NULL || exchange->whole.bytes.size_max == 0)
        return -EINVAL;
    if (!is_last) {
        const domus_piece *piece = answer->payload;
        is_last = piece->last;
        error = append_piece_to_gathered_body(&exchange->whole, piece->bytes);
    }
    if (error == 0 && !is_last)
        return domus_body_read(stack, request->stream, append_piece_and_read_next_or_go_on);
    if (error == 0)
        error = give_gathered_body_to_request(exchange, request);
    return error != 0 ? error : domus_http_go_on(stack, self);
}

int domus_http_gather(domus_stack *stack, const domus_http_request *request, uint32_t size_max)
{
    const domi_http_state *state;
    domi_http_exchange *exchange = domi_http_find_exchange_of_channel(stack, request, &state);

    if (request->stream.number == 0)
        return size_max != 0 && request->body.size > size_max ? -EMSGSIZE : 0;
    if (exchange == NULL || exchange->row == NULL || exchange->whole.bytes.size_max != 0)
        return -EOPNOTSUPP;
    if (size_max == 0)
        size_max = state->options.whole_max;
    if (size_max > DOMUS_SLICE_MAX)
        size_max = DOMUS_SLICE_MAX;
    if (size_max == 0 || request->length > size_max)
        return -EMSGSIZE;
    int result = domus_body_read(stack, request->stream, append_piece_and_read_next_or_go_on);
    if (result >= 0) {
        exchange->whole.bytes.size_max = size_max;
        exchange->whole.budget = state->options.budget;
    }
    return result;
}
