/* Failures of RESP: why the bytes of a peer are refused, and the errors that the peer gets as
 * answers. */
#include "protocols/resp/resp.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int domi_resp_record_why_bytes_are_wrong(domi_resp_state *state, domi_resp_wrong wrong)
{
    state->wrong = (uint8_t)wrong;
    return -EPROTO;
}

static int answer_why_bytes_of_peer_are_wrong(domus_wire *wire, const domi_resp_state *state,
                                              int error)
{
    static const char *const texts[DOMI_RESP_WRONGS] = {
        [DOMI_RESP_COUNT] = "invalid multibulk length",
        [DOMI_RESP_LENGTH] = "invalid bulk length",
        [DOMI_RESP_LINE] = "too big inline request",
        [DOMI_RESP_QUOTES] = "unbalanced quotes in request",
        [DOMI_RESP_SIZE] = "too big request",
        [DOMI_RESP_STRANGERS_COUNT] = "unauthenticated multibulk length",
        [DOMI_RESP_STRANGERS_LENGTH] = "unauthenticated bulk length",
    };
    char got = state->got;

    if (state->wrong == DOMI_RESP_MARK)
        return domus_wire_append_text(wire, "-ERR Protocol error: expected '$', got '%c'\r\n",
                                      got == '\r' || got == '\n' || got == '\0' ? ' ' : got);
    if (texts[state->wrong] != NULL)
        return domus_wire_append_text(wire, "-ERR Protocol error: %s\r\n", texts[state->wrong]);
    if (error == -EPIPE)
        return 0; /* the peer has ended within a command, so it expects no answer */
    return error == -ENOMEM ? domus_wire_append_text(wire, "-OOM out of memory\r\n") : error;
}

int domi_resp_answer_failure(domus_wire *wire, domi_resp_state *state, uint64_t id,
                             const domus_type *request, int error)
{
    if (state->options.role != DOMUS_ROLE_SERVER)
        return error;
    if (request == NULL)
        return state->silence == DOMI_RESP_HEARD
                   ? answer_why_bytes_of_peer_are_wrong(wire, state, error)
                   : 0;
    if (id == DOMI_RESP_UNHEARD)
        return 0;
    switch (-error) {
    case ENOMEM:
        return domus_wire_append_text(
            wire, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    case EBUSY:
    case ENOBUFS:
        return domus_wire_append_text(wire, "-BUSY the server is busy, try again later\r\n");
    case ETIMEDOUT:
        return domus_wire_append_text(wire, "-ERR timed out\r\n");
    case EMSGSIZE:
        return domus_wire_append_text(wire, "-ERR the command or its answer is too large\r\n");
    case EHOSTDOWN: /* the word that Redis' clusters use, after which clients try again */
        return domus_wire_append_text(
            wire, "-CLUSTERDOWN the node that has to answer cannot be reached\r\n");
    case ESTALE:
        return domus_wire_append_text(wire, "-TRYAGAIN the actor that has to answer has ended\r\n");
    case EACCES:
    case EPERM:
        return domus_wire_append_text(wire, "-NOPERM this command is not allowed\r\n");
    default: {
        const char *name = strerrorname_np(-error);
        return domus_wire_append_text(wire, "-ERR internal error (%s)\r\n",
                                      name != NULL ? name : "unknown");
    }
    }
}

domus_resp_error domus_resp_error_text(const char *format, ...)
{
    domus_resp_error error = {{0}};
    char text[sizeof error.text + 1];
    va_list list;

    va_start(list, format);
    int size = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (size > 0)
        memcpy(error.text, text,
               (size_t)size < sizeof error.text ? (size_t)size : sizeof error.text);
    return error;
}
