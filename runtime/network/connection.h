/* The life of connections: connects, what goes to and fro, ends, resets. */
#ifndef DOMI_RUNTIME_NETWORK_CONNECTION_H
#define DOMI_RUNTIME_NETWORK_CONNECTION_H

#include "runtime/network/network.h"

/* Begin a connect from `socket`, whose `local` is set, to `to`. Returns 0; -ENOMEM. */
int domi_net_connect(domi_net_socket *socket, const domus_endpoint *to);

/* Do the same as domi_net_connect() for a Unix socket, which is answered at once. Returns 0;
 * -ECONNREFUSED; -EAGAIN when the queue of the listener is full; -ENOMEM. */
int domi_net_connect_unix(domi_net_socket *socket, const domus_endpoint *to);

/* Let bytes that wait leave for `side`, as far as there is room, and the end behind them. */
void domi_net_push(domi_net_connection *connection, uint8_t side);

/* `side` sends no more: the end follows behind all bytes. */
void domi_net_finish(domi_net_connection *connection, uint8_t side);

/* `side` resets the connection. Bytes that it has not sent are thrown away. */
void domi_net_reset(domi_net_connection *connection, uint8_t side);

/* The socket of `side` is closed in order, and is freed by the caller. Bytes that wait are sent. */
void domi_net_leave(domi_net_connection *connection, uint8_t side);

/* Do what an event that is due says about its connection. */
void domi_net_connection_carry_out(const domi_net_event *event);

/* Free the connection if both sides are closed and nothing is on its way. */
void domi_net_connection_free_if_over(domi_net_connection *connection);
void domi_net_connection_free(domi_net_connection *connection);

#endif
