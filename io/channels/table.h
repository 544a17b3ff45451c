/* The channels of a thread: each has a slot for its life. An operation in the ring names its
 * channel by slot and generation. Owner thread. */
#ifndef DOMI_IO_CHANNELS_TABLE_H
#define DOMI_IO_CHANNELS_TABLE_H

#include "io/channels/channel.h"

/* Make a channel for a connection, with a house of its own, which is a child of `owner`. The
 * channel takes over the descriptor and the count on its address, and becomes one more user of the
 * settings (NULL: those of the thread). Returns 0. On failure everything still belongs to the
 * caller: -ENOMEM; -ESHUTDOWN if the owner ends, restarts or is not mounted; the errno with which
 * the ring has failed. */
int domi_channel_adopt_connection(domi_io *io, domi_house *owner,
                                  const domi_connection *connection);

/* Make a channel for a connection that this side has opened. Its actor is `house`, which
 * domi_house_spawn_connecting_actor() has made, and which behaves as `behaviour` from now on. The
 * channel takes over the same things as by domi_channel_adopt_connection(). Returns 0. On failure
 * everything is as it was: -ENOMEM; -ESHUTDOWN when the thread drains the channels that it has
 * connected; the errno with which the ring has failed. */
int domi_channel_make_for_outgoing(domi_io *io, domi_house *house, const domus_behaviour *behaviour,
                                   const domi_connection *connection);

/* True if the actors of this thread have opened as many connections as they may; connections that
 * are still being made count, too. */
bool domi_io_has_opened_maximum(const domi_io *io);

/* True if all threads together have accepted as many connections as they may
 * (channel.maxConnections). */
bool domi_io_has_accepted_maximum(const domi_io *io);

/* Make a channel for a connection as domi_channel_adopt_connection() does, with this behaviour for
 * the channel (NULL: the behaviour that its owner names). */
int domi_channel_adopt_with_behaviour(domi_io *io, domi_house *owner,
                                      const domus_behaviour *behaviour,
                                      const domi_connection *connection,
                                      domus_channel **ret_channel);

/* Free the channel and its slot, after on_close has returned. Its actor stops at the
 * end of the run. */
void domi_channel_free(domus_channel *channel);

#endif
