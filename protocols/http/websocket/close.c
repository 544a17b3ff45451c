/* Closes a WebSocket channel with a code and a reason for its peer. */
#include <domus/websocket.h>

#include <errno.h>
#include <string.h>

int domus_websocket_close_channel(domus_stack *stack, domus_channel *channel, uint16_t code,
                                  const char *reason)
{
    domus_websocket_close close = {.code = code};
    int error = reason != NULL ? domus_slice_copy(reason, strlen(reason), &close.reason) : 0;

    if (error != 0)
        return error;
    error = domus_channel_send(stack, channel, &domus_websocket_close_type, &close);
    domus_slice_free(close.reason);
    return error;
}
