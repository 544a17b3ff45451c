/* Connections that get no channel: those that still wait to be accepted when a listener is closed,
 * and those that are turned away. Owner thread, unless a function says any thread. */
#ifndef DOMI_IO_ACCEPTORS_BACKLOG_H
#define DOMI_IO_ACCEPTORS_BACKLOG_H

#include "io/acceptors/acceptor.h"

/* Reset a connection that gets no channel. Count it and the bytes that its peer had sent, also at
 * the listener that has these settings (NULL: none). Any thread. */
void domi_connection_turn_away(domi_io *io, const domi_channel_settings *settings, int fd);

/* Set the backlog of the listener to 0, so that hardly any further connection can wait. */
void domi_backlog_shrink(domi_acceptor *acceptor);

/* Accept waiting connections without blocking, at most io.completionEntries of them, and give each
 * to `take`. No operation may be in flight on the listener. Returns 0 when no connection waits any
 * more, or when so many were taken in all (131,072) that this must be a flood; -EAGAIN when there
 * may be more, for the next iteration; -EMFILE when descriptors or memory have run out. */
int domi_backlog_take(domi_acceptor *acceptor, void (*take)(domi_acceptor *acceptor, int fd));

/* Count the connections that still wait as turned away, before the listener is closed. */
void domi_backlog_count_turned_away(domi_acceptor *acceptor);

#endif
