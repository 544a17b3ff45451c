/* Gives received pieces of a proxy's connection to the parser of PROXY headers, and lets the
 * channel begin when the header is complete. */
#include "io/channels/proxy.h"

#include "base/memory.h"
#include "house/message/mailbox.h"
#include "io/channels/ready.h"
#include "io/channels/state.h"
#include "io/resources/endpoint.h"
#include "io/resources/socket.h"
#include "io/resources/spells.h"

#include <errno.h>
#include <string.h>

/* Get the address of the client that the proxy's header has named, or that of the connection's peer
 * if it has named none. */
static void get_address_of_client(const domus_channel *channel,
                                  struct sockaddr_storage *ret_address)
{
    if (channel->client == NULL ||
        domi_endpoint_to_socket_address(channel->client, ret_address) < 0)
        domi_socket_find_address_of_peer(channel->io, channel->fd, ret_address);
}

/* Count a proxy's connection on the address of its client. Returns 0; -EDQUOT if that address has
 * all its connections; -ENOMEM. */
static int count_connection_of_client(domus_channel *channel)
{
    const domi_io *io = channel->io;
    struct sockaddr_storage address;
    domi_peer_key key;

    if (io->peers == NULL || !domi_peers_is_any_address_bounded(io->peers))
        return 0;
    get_address_of_client(channel, &address);
    domi_peer_get_key_of_address(&address, &key);
    return domi_peers_count_connection(io->peers, &key, &channel->peer);
}

/* Store the client that a proxy's header has named in the channel. Returns 0; -ENOMEM. */
static int store_client_in_channel(domus_channel *channel)
{
    if (channel->proxy->client.family == 0)
        return 0;
    channel->client = domi_memory_new(sizeof *channel->client);
    if (channel->client == NULL)
        return -ENOMEM;
    *channel->client = channel->proxy->client;
    return 0;
}

/* Let a channel begin whose proxy header is complete, as if its connection had been accepted now.
 * Returns 0; a negative errno. */
static int begin_channel_after_proxy_header(domus_channel *channel)
{
    int result = store_client_in_channel(channel);

    if (result == 0)
        result = count_connection_of_client(channel);
    if (result != 0)
        return result;
    domi_memory_free(channel->proxy);
    channel->proxy = NULL;
    channel->silent_ns = channel->io->manager->now_ns;
    domi_channel_make_actor_ready(channel);
    domi_house_end_mount_wait_for_channel(channel->io->manager, channel->house);
    return 0;
}

/* Reset a proxy's connection that may not go on, count the reason, and log it. */
static void reset_proxy_connection(domus_channel *channel, int error)
{
    struct sockaddr_storage address;

    if (error == -EDQUOT || error == -EPROTO) {
        get_address_of_client(channel, &address);
        domi_spell_record_proxy_reset(channel->io,
                                      error == -EDQUOT ? DOMI_PROXY_CLIENT : DOMI_PROXY_HEADER,
                                      channel->settings->listener_name, &address);
    }
    domi_channel_end_at_once(channel, error, true);
}

bool domi_channel_read_proxy_header(domus_channel *channel, domus_buffer *buffer)
{
    size_t taken;
    int result = domi_proxy_header_read_bytes(channel->proxy, buffer->data, buffer->size, &taken);

    if (result > 0) {
        int error = begin_channel_after_proxy_header(channel);
        buffer->size -= (uint32_t)taken;
        if (error == 0 && buffer->size != 0) {
            memmove(buffer->data, buffer->data + taken, buffer->size);
            return true;
        }
        result = error;
    }
    domi_buffer_give_to_kernel(channel->io, buffer);
    if (result < 0)
        reset_proxy_connection(channel, result);
    return false;
}

void domi_channel_free_proxy_data(domus_channel *channel)
{
    domi_memory_free(channel->proxy);
    domi_memory_free(channel->client);
    channel->proxy = NULL;
    channel->client = NULL;
}
