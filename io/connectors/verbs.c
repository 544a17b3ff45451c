/* Implements the verbs of domus/connect.h. They run on whatever thread runs the actor, so they read
 * only constant fields of its home; the connecting actor does all else. */
#include "io/connectors/connect.h"

#include "base/memory.h"
#include "base/pipeline.h"
#include "house/conversation/ringless.h"
#include "house/conversation/stack.h"
#include "house/family/birth.h"
#include "house/message/stop.h"
#include "io/channels/channel.h"
#include "io/channels/table.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static const domus_connect_options defaults = {0};

/* A place to connect to, as it was read from a text: an endpoint, or a host's name and a port. */
typedef struct place {
    domus_endpoint endpoint;      /* the endpoint to connect to, if `name` is "" */
    uint16_t port;                /* port to connect to at the addresses of the name */
    char name[DOMI_HOST_MAX + 1]; /* name of the host to look up and connect to */
} place;

static int read_place_to_connect(const char *text, place *ret_place)
{
    ret_place->name[0] = '\0';
    int result = domus_endpoint_parse(text, &ret_place->endpoint);

    /* a text that is no endpoint may be a host's name, but a number never is a name */
    return result == -EINVAL
               ? domi_name_parse_host_and_port(text, ret_place->name, &ret_place->port)
               : result;
}

int domi_connect_check_text_of_place(const char *text)
{
    place at;

    return read_place_to_connect(text, &at);
}

/* Make the record of a connect. `io` is the io of the actor's home, of which only constant fields
 * are read. Returns 0; -EINVAL for wrong settings; -ENOMEM. */
static int make_connect_record(domi_io *io, const place *to, const domus_connect_options *options,
                               domi_connect **ret_connect)
{
    size_t length = strlen(to->name);
    domi_connect *connect = domi_memory_new(sizeof *connect + length + 1);
    const domus_channel_options *given = options->channel;
    domus_channel_options own;

    if (connect == NULL)
        return -ENOMEM;
    if (given != NULL || options->front != NULL) {
        own = domi_options_for_connected_peer(given);
        given = &own;
    }
    int result = domi_settings_make_or_share(io->config, &io->settings, given, options->front,
                                             &connect->settings);
    if (result != 0) {
        domi_memory_free(connect);
        return result;
    }
    connect->home = io;
    connect->timeout_ns = options->timeout_ns;
    connect->wanted = options->local;
    connect->fd = -1;
    connect->count = 1;
    connect->attempts = &connect->only;
    connect->only = (domi_attempt){.of = connect, .to = to->endpoint, .fd = -1};
    connect->port = to->port;
    memcpy(connect->name, to->name, length + 1);
    *ret_connect = connect;
    return 0;
}

/* Spawn the connecting actor. With `fd` (else -1) there is nothing to connect to: the socket is
 * adopted, and stays the caller's on failure. Returns 0; a negative errno. */
static int spawn_connecting_actor(domus_stack *stack, const place *to, int fd,
                                  const domus_connect_options *options, domus_address *ret_address)
{
    domi_house *owner = domi_stack_get_house(stack);
    const domus_behaviour *usual =
        owner->behaviour->channel != NULL ? owner->behaviour->channel : owner->behaviour;
    const domus_behaviour *behaviour = options->behaviour != NULL ? options->behaviour : usual;
    bool shares = behaviour->shares_state ||
                  (options->behaviour == NULL && owner->behaviour->channel == NULL);
    domi_connect *connect;
    int result = domi_front_check_stages(options->front, behaviour);
    if (result != 0)
        return result;
    result = make_connect_record(owner->home->io, to, options, &connect);

    if (result != 0)
        return result;
    connect->behaviour = behaviour;
    connect->fd = fd;
    result = domi_house_spawn_connecting_actor(stack->manager, owner, &domi_connecting_behaviour,
                                               behaviour, shares, connect, ret_address);
    if (result != 0) {
        connect->fd = -1;
        (void)domi_connect_give_up(connect);
    }
    return result;
}

/* Check everything about a connect that can be checked on this thread, and spawn the connecting
 * actor. */
static int check_and_spawn_connecting_actor(domus_stack *stack, const char *to,
                                            const domus_connect_options *options,
                                            domus_address *ret_address)
{
    /* the field home->io is constant while threads run */
    const domi_io *io = domi_stack_get_house(stack)->home->io;
    place at;
    int result = read_place_to_connect(to, &at);

    if (result != 0)
        return result;
    if (io == NULL || io->backend->poll_once == NULL)
        return domi_refuse_verb_without_ring(stack);
    result = domi_stack_check_may_wait(stack);
    if (result != 0)
        return result;
    return spawn_connecting_actor(stack, &at, -1, options != NULL ? options : &defaults,
                                  ret_address);
}

int domus_connect(domus_stack *stack, const char *to, const domus_connect_options *options,
                  domus_resumed *then)
{
    domus_address connecting;
    int result = check_and_spawn_connecting_actor(stack, to, options, &connecting);

    if (result != 0)
        return result;
    result = domus_ask(stack, connecting, &domi_connect_type, NULL, then);
    if (result < 0)
        (void)domi_house_ask_to_stop(stack->manager, connecting);
    return result;
}

int domus_connect_add(domus_stack *stack, const char *to, const domus_connect_options *options,
                      uint64_t tag)
{
    domus_address connecting;
    int result = check_and_spawn_connecting_actor(stack, to, options, &connecting);

    if (result != 0)
        return result;
    result = domus_ask_add(stack, connecting, &domi_connect_type, NULL, 0, tag);
    if (result < 0)
        (void)domi_house_ask_to_stop(stack->manager, connecting);
    return result;
}

/* --- sockets from elsewhere ------------------------------------------------------------------- */

static int read_socket_option(const domi_io *io, int fd, int name, int *ret_value)
{
    socklen_t size = sizeof *ret_value;

    return io->backend->sockets->option_get(io->ring, fd, SOL_SOCKET, name, ret_value, &size);
}

/* Returns 0 if `fd` is a connected stream socket; otherwise a negative errno that says what is
 * wrong. */
static int check_is_connected_stream(const domi_io *io, int fd)
{
    struct sockaddr_storage peer;
    socklen_t size = sizeof peer;
    int type = 0;
    int family = 0;
    int listens = 0;
    int result = read_socket_option(io, fd, SO_TYPE, &type);

    if (result != 0)
        return result;
    if (type != SOCK_STREAM || read_socket_option(io, fd, SO_ACCEPTCONN, &listens) != 0 ||
        listens != 0)
        return -EINVAL;
    if (read_socket_option(io, fd, SO_DOMAIN, &family) != 0 ||
        (family != AF_INET && family != AF_INET6 && family != AF_UNIX))
        return -EAFNOSUPPORT;
    return io->backend->sockets->address(io->ring, fd, true, (struct sockaddr *)&peer, &size);
}

/* True if a channel of this thread has the descriptor already. */
static bool has_channel_descriptor(const domi_io *io, int fd)
{
    for (uint32_t i = 0; i < io->slots_used; i++) {
        if (io->slots[i].channel != NULL && io->slots[i].channel->fd == fd)
            return true;
    }
    return false;
}

/* Make the channel of an adopted socket at once, before its actor is mounted, because the caller
 * runs on the thread of the channel. On failure the connecting actor stops, and the socket stays
 * the caller's. */
static int make_channel_of_adopted_socket(domus_stack *stack, domi_house *house)
{
    domi_connect *connect = house->channels.owned;
    const domi_connection connection = {
        .fd = connect->fd, .settings = connect->settings, .is_outbound = true};
    int result =
        domi_channel_make_for_outgoing(stack->manager->io, house, connect->behaviour, &connection);

    connect->fd = -1;
    if (result == 0)
        (void)domi_connect_give_up(connect);
    else
        (void)domi_house_ask_to_stop(stack->manager, domi_house_get_address(house));
    return result;
}

int domus_channel_adopt_fd(domus_stack *stack, int fd, const domus_connect_options *options,
                           domus_address *ret_channel)
{
    const domi_house *house = domi_stack_get_house(stack);
    const domi_io *io = house->home->io; /* the field home->io is constant while threads run */
    bool is_here = house->behaviour->kind == DOMUS_CHANNELS;
    const place nowhere = {.name = ""};
    domus_address channel;
    int nonblocking = 0;

    if (io == NULL || io->backend->sockets != &domi_kernel_sockets)
        return domi_refuse_verb_without_ring(stack);
    int result = check_is_connected_stream(io, fd);
    if (result == 0 && is_here)
        result = has_channel_descriptor(io, fd) ? -EALREADY : domi_connect_check_may_open(io);
    /* set the options that accepted sockets get before home gets the socket, because home may close
     * it at any time */
    if (result == 0)
        result = io->backend->sockets->ioctl(io->ring, fd, FIONBIO, &nonblocking);
    if (result == 0)
        result = spawn_connecting_actor(stack, &nowhere, fd, options != NULL ? options : &defaults,
                                        &channel);
    if (result == 0 && is_here)
        result = make_channel_of_adopted_socket(stack, channel.house);
    if (result == 0 && ret_channel != NULL)
        *ret_channel = channel;
    return result;
}
