/* An echo of WebSocket, for tests whose services need no more. */
#ifndef DOMT_SOCKETS_H
#define DOMT_SOCKETS_H

#include <domus/domus.h>

/* Handle a message of WebSocket: "close" ends the connection with 4000 and "bye", others are sent
 * back. */
int domt_socket_echo(domus_stack *stack, void *self, const void *payload);

#endif
