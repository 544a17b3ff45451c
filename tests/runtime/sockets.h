/* An echo of WebSocket, for tests whose services need no other handler. */
#ifndef DOMT_SOCKETS_H
#define DOMT_SOCKETS_H

#include <domus/domus.h>

/* Handle a message of WebSocket: the text "close" ends the connection with 4000 and "bye", and any
 * other message is sent back. */
int domt_on_websocket_message_echo(domus_stack *stack, void *self, const void *payload);

#endif
