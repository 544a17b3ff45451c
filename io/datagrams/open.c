/* Opens channels of datagrams, each with a socket of its own. */
#include "base/memory.h"
#include "house/conversation/ringless.h"
#include "house/conversation/stack.h"
#include "house/family/behaviour.h"
#include "house/family/birth.h"
#include "io/channels/table.h"
#include "io/datagrams/datagrams.h"
#include "io/resources/endpoint.h"
#include "io/resources/options.h"
#include "io/resources/socket.h"

#include <errno.h>
#include <string.h>

static const domi_channel_ways ways = {
    .receive = domi_datagrams_begin_receive,
    .take = domi_datagrams_keep_or_drop_received,
    .receive_failed = domi_datagrams_handle_receive_failure,
    .write = domi_datagrams_write_to_peer,
    .send = domi_datagrams_send_waiting,
    .be_late = domi_datagrams_handle_send_timeout,
    .forget_outbound = domi_datagrams_drop_waiting,
    .note_end = domi_datagrams_count_lost_in_kernel,
};

/* --- the socket ------------------------------------------------------------------------------- */

/* Bind a socket of datagrams to the endpoint `at`. A Unix socket without a name gets one from the
 * kernel. */
static int bind_datagram_socket(const domi_io *io, int fd, const domus_endpoint *at)
{
    struct sockaddr_storage address = {.ss_family = at->family};
    int size = (int)sizeof address.ss_family;

    if (at->family != AF_UNIX || at->size != 0)
        size = domi_endpoint_to_socket_address(at, &address);
    if (size < 0)
        return -EINVAL;
    return io->backend->sockets->bind(io->ring, fd, (struct sockaddr *)&address, (socklen_t)size);
}

static int connect_datagram_socket(const domi_io *io, int fd, const domus_endpoint *to)
{
    struct sockaddr_storage address;
    int size = domi_endpoint_to_socket_address(to, &address);

    if (size < 0)
        return -EINVAL;
    return io->backend->sockets->connect(io->ring, fd, (struct sockaddr *)&address,
                                         (socklen_t)size);
}

/* Returns a socket of datagrams that is bound and connected as the options say; a negative
 * errno. */
static int open_datagram_socket(const domi_io *io, const domus_endpoint *at,
                                const domus_datagram_options *options,
                                const domi_channel_settings *settings)
{
    const domi_socket_option shares_port = {SOL_SOCKET, SO_REUSEPORT, options->shares_port, false};
    const domus_endpoint *peer = options->connected.family != 0 ? &options->connected : NULL;
    uint16_t family = at != NULL ? at->family : options->connected.family;

    if (family != AF_INET && family != AF_INET6 && family != AF_UNIX)
        return -EINVAL;
    if (peer != NULL && peer->family != family && !(peer->family == AF_INET && family == AF_INET6))
        return -EAFNOSUPPORT;
    int fd = io->backend->sockets->socket(io->ring, family, SOCK_DGRAM);
    if (fd < 0)
        return fd;
    int result = domi_socket_set_buffer_sizes(io, fd, settings);
    if (result == 0)
        result = domi_socket_set_int_options(io, fd, &shares_port, 1);
    if (result == 0 && at != NULL)
        result = bind_datagram_socket(io, fd, at);
    if (result == 0 && peer != NULL)
        result = connect_datagram_socket(io, fd, peer);
    if (result == 0)
        return fd;
    domi_socket_close(io, fd);
    return result;
}

/* --- the channel ------------------------------------------------------------------------------ */

static int make_settings_of_channel(domi_io *io, const domus_channel_options *options,
                                    domi_channel_settings **ret_settings)
{
    const domus_channel_options own = domi_options_for_datagrams(options);

    return domi_settings_make_or_share(io->config, &io->settings, &own, NULL, ret_settings);
}

/* Make the channel of the socket `fd`, which belongs to the channel from then on. */
static int make_channel_of_datagrams(domi_house *owner, int fd,
                                     const domus_datagram_options *options,
                                     domi_channel_settings *settings, domus_channel **ret_channel)
{
    domi_io *io = owner->home->io;
    bool is_connected = options->connected.family != 0;
    domi_connection connection = {.fd = fd, .settings = settings, .is_outbound = is_connected};
    domi_datagrams *datagrams = domi_memory_new(sizeof *datagrams);
    domus_endpoint here;
    int result = -ENOMEM;

    if (datagrams == NULL)
        return result;
    datagrams->special.ways = &ways;
    datagrams->is_connected = is_connected;
    datagrams->ends_on_error = datagrams->is_connected && options->ends_on_error;
    datagrams->looked_ns = io->manager->now_ns;
    result = domi_endpoint_of_socket(io, fd, false, &here);
    datagrams->family = here.family;
    if (result != 0)
        goto fail_name;
    /* Relaxed: the numbers of connections only serve to choose a thread, and to check a bound. */
    atomic_fetch_add_explicit(&io->connections, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&io->outbound, is_connected, memory_order_relaxed);
    result =
        domi_channel_adopt_with_behaviour(io, owner, options->behaviour, &connection, ret_channel);
    if (result != 0)
        goto fail_channel;
    (*ret_channel)->special = &datagrams->special;
    return 0;

fail_channel:
    atomic_fetch_sub_explicit(&io->outbound, is_connected, memory_order_relaxed);
    atomic_fetch_sub_explicit(&io->connections, 1, memory_order_relaxed);
fail_name:
    domi_memory_free(datagrams);
    return result;
}

/* Returns 0 if the running actor may open a channel of datagrams; else a negative errno. */
static int check_actor_may_open_datagrams(domus_stack *stack, const domus_datagram_options *options)
{
    const domi_house *house = domi_stack_get_house(stack);
    const domi_io *io = stack->manager->io;

    if (house->behaviour->kind != DOMUS_CHANNELS)
        return stack->manager->pooled != NULL ? domi_refuse_verb_without_ring(stack) : -EINVAL;
    if (options->behaviour != NULL && options->behaviour->kind != DOMUS_CHANNELS)
        return -EINVAL;
    int error = options->behaviour != NULL ? domi_behaviour_check(options->behaviour) : 0;
    if (error != 0)
        return error;
    const domus_behaviour *usual =
        house->behaviour->channel != NULL ? house->behaviour->channel : house->behaviour;
    const domus_behaviour *behaviour = options->behaviour != NULL ? options->behaviour : usual;
    /* A behaviour with a pipeline is refused, because datagrams have no stream of bytes in which
     * messages could follow each other. */
    if (behaviour->pipeline != NULL)
        return -EOPNOTSUPP;
    if (io == NULL || io->backend->receive_datagrams == NULL)
        return -EOPNOTSUPP;
    if (io->failed != 0)
        return io->failed;
    /* Limits are checked before the file of a Unix socket is made. */
    bool is_connected = options->connected.family != 0;
    if ((is_connected ? io->draining_upstream : io->draining) ||
        !domi_house_may_spawn(stack->manager, house))
        return -ESHUTDOWN;
    return is_connected && domi_io_has_opened_maximum(io) ? -ENOBUFS : 0;
}

int domus_datagram_open(domus_stack *stack, const domus_endpoint *at,
                        const domus_datagram_options *options, domus_address *ret_address,
                        domus_endpoint *ret_at)
{
    static const domus_datagram_options defaults = {0};
    domus_channel *channel;

    if (options == NULL)
        options = &defaults;
    int result = check_actor_may_open_datagrams(stack, options);
    if (result != 0)
        return result;
    domi_io *io = stack->manager->io;
    domi_channel_settings *settings = NULL;
    result = make_settings_of_channel(io, options->channel, &settings);
    if (result != 0)
        return result;
    int fd = open_datagram_socket(io, at, options, settings);
    result = fd >= 0 ? make_channel_of_datagrams(domi_stack_get_house(stack), fd, options, settings,
                                                 &channel)
                     : fd;
    domi_settings_remove_user(settings);
    if (result != 0 && fd >= 0)
        domi_socket_close(io, fd);
    if (result != 0)
        return result;
    if (ret_address != NULL)
        *ret_address = domi_house_get_address(channel->house);
    if (ret_at != NULL)
        (void)domi_endpoint_of_socket(io, fd, false, ret_at);
    return 0;
}

int domus_datagram_counts(const domus_channel *channel, domus_datagram_counters *ret_counters)
{
    if (!domi_channel_is_of_datagrams(channel))
        return -EINVAL;
    *ret_counters = domi_datagrams_of_channel(channel)->counts;
    return 0;
}
