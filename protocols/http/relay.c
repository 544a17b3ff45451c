/* Relays the bytes of a tunnel (proxy_parts.h), in the conversation of the request on the client's
 * channel.
 *
 * When a peer ends its side, this direction ends and the other peer gets a FIN (half close); the
 * other direction continues. A direction ends early if its receiver accepts no more bytes, while
 * the other one continues, because its bytes may tell why. Any other error ends both directions. */
#include "protocols/http/proxy_parts.h"

#include <domus/channel.h>
#include <domus/spawn.h>

#include <errno.h>

/* Begin the reads of both directions that are not under way, and wait for whatever comes first. */
static int wait_for_piece_of_either_side(domus_stack *stack, domi_http_ways *ways,
                                         domus_resumed *then)
{
    int error = 0;

    if (ways->up.number == 0 && ways->down.number == 0)
        return domus_reply_end(stack, NULL, NULL);
    if (ways->up.number != 0 && !ways->waits_up) {
        error = domus_body_read_add(stack, ways->up, DOMI_HTTP_READ_UP);
        ways->waits_up = error == 0;
    }
    if (error == 0 && ways->down.number != 0 && !ways->waits_down) {
        error = domus_body_read_add(stack, ways->down, DOMI_HTTP_READ_DOWN);
        ways->waits_down = error == 0;
    }
    return error != 0 ? error : domus_wait_first(stack, then);
}

/* Take the piece that was read from `body`, and write it to the other peer. Returns 0; 1 at the end
 * of the body; or a negative errno. */
static int write_piece_to_other_side(domus_stack *stack, domus_body *body,
                                     const domus_answer *answer, domus_stream to, uint64_t tag)
{
    const domus_piece *piece = answer->payload;

    if (answer->error != 0)
        return answer->error;
    /* the last piece has no bytes: the end of a tunnel comes behind all its bytes */
    if (piece->last) {
        *body = (domus_body){.number = 0};
        return 1;
    }
    int error = domus_take_answer(stack, answer);
    return error != 0 ? error : domus_stream_write_add(stack, to, piece->bytes, tag);
}

static int relay_piece_to_server(domus_stack *stack, domi_http_ways *ways,
                                 const domus_answer *answer, domus_resumed *then)
{
    int result = write_piece_to_other_side(stack, &ways->up, answer, ways->request.stream,
                                           DOMI_HTTP_WRITTEN_UP);

    ways->waits_up = result == 0;
    if (result == 1)
        return domus_request_end(stack, ways->request, NULL, NULL, then);
    return result < 0 ? result : wait_for_piece_of_either_side(stack, ways, then);
}

static int relay_piece_to_client(domus_stack *stack, domi_http_ways *ways,
                                 const domus_answer *answer, domus_resumed *then)
{
    int result =
        write_piece_to_other_side(stack, &ways->down, answer, ways->answer, DOMI_HTTP_WRITTEN_DOWN);

    ways->waits_down = result == 0;
    if (result == 1 && ways->up.number != 0)
        (void)domus_channel_finish(stack, domus_channel_running(stack));
    return result < 0 ? result : wait_for_piece_of_either_side(stack, ways, then);
}

/* Continue after a piece was written, or after the direction to the server has ended. */
static int continue_relay_after_write(domus_stack *stack, domi_http_ways *ways,
                                      const domus_answer *answer, domus_resumed *then)
{
    bool is_taken = answer->error == 0 || answer->error == -EALREADY;

    if (answer->tag == DOMI_HTTP_WRITTEN_DOWN) {
        ways->waits_down = false;
        if (answer->error != 0)
            return answer->error;
    } else if (answer->tag == DOMI_HTTP_WRITTEN_UP) {
        ways->waits_up = false;
        if (!is_taken)
            ways->up = (domus_body){.number = 0};
    }
    return wait_for_piece_of_either_side(stack, ways, then);
}

int domi_http_begin_relay(domus_stack *stack, domi_http_ways *ways, domus_resumed *then)
{
    int error = domus_reply_stream(stack, &ways->answer);

    return error != 0 ? error : wait_for_piece_of_either_side(stack, ways, then);
}

int domi_http_continue_relay(domus_stack *stack, domi_http_ways *ways, const domus_answer *answer,
                             domus_resumed *then)
{
    int result = answer->tag == DOMI_HTTP_READ_UP ? relay_piece_to_server(stack, ways, answer, then)
                 : answer->tag == DOMI_HTTP_READ_DOWN
                     ? relay_piece_to_client(stack, ways, answer, then)
                     : continue_relay_after_write(stack, ways, answer, then);

    /* nobody will read the rest of the server's answer, so it is given up */
    if (result < 0 && ways->down.number != 0)
        (void)domus_stop(stack, ways->down.channel);
    return result;
}
