/* Channels whose connections come from a proxy: the header that the proxy sends first (PROXY
 * protocol) is read before the actor gets the channel.
 *
 * Until the header is complete the channel is OPEN and receives, but its actor is not mounted:
 * messages to it wait, and if no valid header comes, no function of its behaviour is ever called.
 * Then the connection is counted on the address of the client, or on its own one if the header
 * names none, and is reset if that address has all the connections that it may have. A header has
 * to be complete within channel.firstByteTimeout (10 s if that is 0). Owner thread. */
#ifndef DOMI_IO_CHANNELS_PROXY_H
#define DOMI_IO_CHANNELS_PROXY_H

#include "io/channels/channel.h"

/* Read the bytes of a received piece that belong to the proxy's header. Returns true if bytes of
 * the client are left in the buffer; otherwise the buffer is given back, and the channel may have
 * ended. */
bool domi_channel_read_proxy_header(domus_channel *channel, domus_buffer *buffer);

/* Free everything that the channel has stored about a proxy: its header and the client that it has
 * named. */
void domi_channel_free_proxy_data(domus_channel *channel);

#endif
