/* An echo of WebSocket, for tests whose services need no other handler. */
#include "tests/runtime/sockets.h"

#include <domus/websocket.h>

int domt_on_websocket_message_echo(domus_stack *stack, void *self, const void *payload)
{
    const domus_websocket_message *message = payload;
    domus_channel *channel = domus_channel_running(stack);
    if (domus_slice_equals(message->bytes, "close", 5))
        return domus_websocket_close_channel(stack, channel, 4000, "bye");
    return domus_channel_send(stack, channel, &domus_websocket_message_type, message);
}
