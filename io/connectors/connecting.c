/* The connecting actor: one ask, which begins the race, and the end of the race. When a socket is
 * connected, its house becomes that of the channel, and on_mount and on_open have their turns
 * before the asker gets its answer. So a sender that has the address never reaches an actor that
 * does not know its connection yet. If the connection cannot be made, or on_open refuses it, the
 * ask fails and the house stops. */
#include "io/connectors/connect.h"

#include "house/conversation/stack.h"
#include "house/conversation/turn.h"
#include "house/family/life.h"
#include "io/channels/channel.h"
#include "io/channels/table.h"

#include <arpa/inet.h>
#include <errno.h>

const domus_type domi_connect_type = {.name = "domus.connect"};
const domus_type domus_connected_type = {.name = "connected", .size = sizeof(domus_connected)};

/* Returns the connect of the connecting actor in this house; NULL when it was taken back. */
static domi_connect *get_connect_of_house(const domi_house *house)
{
    return house->channels.owns == DOMI_OWNS_CONNECT ? house->channels.owned : NULL;
}

uint32_t domi_connecting_take_back(domi_house *house)
{
    domi_connect *connect = get_connect_of_house(house);
    bool is_left = connect != NULL;

    if (connect != NULL && connect->stopping == NULL)
        is_left = domi_connect_give_up(connect);
    /* when the thread has ended, the close of the ring ends the polls in flight */
    bool waits = is_left && !house->home->ending.has_stopped;
    if (is_left)
        connect->stopping = waits ? house : NULL;
    house->channels.owned = waits ? connect : NULL;
    return waits ? 1 : 0;
}

/* Take back a connect that has failed, and let the connecting actor stop. Returns `error`, which is
 * the answer to the asker. */
static int take_back_failed_connect_and_stop(domi_house *house, int error)
{
    domi_io *io = house->home->io;

    domi_counter_add(&io->counters.connects_failed, 1);
    (void)domi_connecting_take_back(house);
    domi_house_stop_after_run(house);
    return error;
}

int domi_connect_check_may_open(const domi_io *io)
{
    if (io->failed != 0)
        return io->failed;
    if (io->draining_upstream) /* a channel that is made now would only delay the stop */
        return -ESHUTDOWN;
    if (io->pressure.pauses)
        return -EBUSY;
    return io->connecting >= io->config->connect.under_way_max || domi_io_has_opened_maximum(io)
               ? -ENOBUFS
               : 0;
}

/* True if the actor that asked for the connection still waits for the answer. Any thread may read
 * the serial of a promise. */
static bool does_asker_still_wait(const domus_stack *stack)
{
    const domi_return *back =
        stack->ask != NULL ? domi_envelope_get_return_of_ask(stack->ask) : NULL;

    return back != NULL && domi_promise_serial(back->promise) == back->serial;
}

/* Check the result of a race of attempts that has ended, whose time is over, or whose conversation
 * was cancelled. Returns 0 if there is a connected socket that an actor waits for. */
static int check_connect_result(const domus_stack *stack, const domi_connect *connect, int error)
{
    if (error != 0)
        return error;
    if (!connect->has_ended)
        return -ETIMEDOUT;
    if (connect->fd < 0)
        return connect->error;
    return does_asker_still_wait(stack) ? 0 : -ECANCELED;
}

/* Returns the name of the server, as the actor that connects has named it, or its address as text;
 * NULL: a Unix socket. */
static const char *get_server_name(const domi_connect *connect, char text[INET6_ADDRSTRLEN])
{
    int family = connect->peer.family;

    if (connect->name[0] != '\0')
        return connect->name;
    if (family != AF_INET && family != AF_INET6)
        return NULL;
    return inet_ntop(family, connect->peer.bytes, text, INET6_ADDRSTRLEN);
}

/* Make the connecting actor's house the house of a channel, and call on_mount. Returns 0; the
 * error. */
static int make_house_a_channel(domi_manager *manager, domi_house *house, domi_connect *connect)
{
    char text[INET6_ADDRSTRLEN];
    const domi_connection connection = {
        .fd = connect->fd,
        .settings = connect->settings,
        .is_outbound = true,
        .server = get_server_name(connect, text),
        .server_port = connect->peer.port,
    };
    int result =
        domi_channel_make_for_outgoing(house->home->io, house, connect->behaviour, &connection);

    if (result != 0)
        return take_back_failed_connect_and_stop(house, result);
    connect->fd = -1;
    (void)domi_connect_give_up(connect);
    /* from here on the actor behaves as the channel that it becomes */
    domi_run_end(manager);
    domi_run_begin(manager, house);
    result = domi_house_call_on_mount_in_run(manager, house);
    if (result < 0)
        domi_house_record_failed_mount(manager, house, result);
    return result < 0 ? result : 0;
}

/* Make the channel of a connected socket, and call on_mount and on_open. Returns 0; the error, also
 * if one of the two refuses the connection. */
static int make_and_open_channel(domi_manager *manager, domi_house *house, domi_connect *connect)
{
    int result = make_house_a_channel(manager, house, connect);

    if (result != 0)
        return result;
    const domus_channel *channel = house->channels.owned;
    if (channel->state == DOMI_CHANNEL_OPEN) /* a channel that on_mount has ended is not opened */
        (void)manager->io_hooks.run_channels(manager, house, 1);
    return channel->state < DOMI_CHANNEL_CLOSING ? 0 : channel->error;
}

static int conclude_connect_after_race(domus_stack *stack, void *self, const domus_answer *answer)
{
    domi_house *house = domi_stack_get_house(stack);
    domi_connect *connect = get_connect_of_house(house);

    (void)self;
    if (connect == NULL || connect->stopping != NULL) /* the connecting actor was stopped */
        return -ECANCELED;
    int error = check_connect_result(stack, connect, answer->error);
    if (error != 0)
        return take_back_failed_connect_and_stop(house, error);
    domus_connected connected = {
        .channel = domi_house_get_address(house),
        .peer = connect->peer,
        .local = connect->local,
    };
    error = make_and_open_channel(stack->manager, house, connect);
    return error == 0 ? domus_reply(stack, &domus_connected_type, &connected) : error;
}

/* Returns the time that the connect may take: its own time-out, or the time until the deadline of
 * the asker, if that is sooner. */
static uint64_t get_time_limit_of_connect(const domus_stack *stack, const domi_connect *connect,
                                          const domi_io *io)
{
    uint64_t timeout_ns =
        connect->timeout_ns != 0 ? connect->timeout_ns : io->config->connect.timeout_ns;
    uint64_t deadline_ns = domus_deadline_ns(stack);
    uint64_t now_ns = io->manager->now_ns;

    if (deadline_ns != 0 && deadline_ns - now_ns < timeout_ns)
        /* this is not negative, because an ask whose deadline has passed was dropped */
        return deadline_ns - now_ns;
    return timeout_ns;
}

static int begin_connect_for_asker(domus_stack *stack, void *self, const void *payload)
{
    domi_house *house = domi_stack_get_house(stack);
    domi_io *io = house->home->io;
    domi_connect *connect = get_connect_of_house(house);

    (void)self, (void)payload;
    if (connect == NULL || connect->io != NULL)
        return -EALREADY;
    domi_counter_add(&io->counters.connects, 1);
    int result = domi_connect_check_may_open(io);
    if (result == 0)
        result = domus_sleep(stack, get_time_limit_of_connect(stack, connect, io),
                             conclude_connect_after_race);
    if (result < 0)
        return take_back_failed_connect_and_stop(house, result);
    connect->house = house;
    domi_connect_begin_race(connect, io, stack->pooled->awaited);
    return result;
}

/* Make the channel of a socket that a state actor has adopted. No ask begins this, so it is done at
 * the mount of the connecting actor. */
static int mount_connecting_actor(domus_stack *stack, void *self)
{
    domi_house *house = domi_stack_get_house(stack);
    domi_connect *connect = get_connect_of_house(house);

    (void)self;
    if (connect == NULL || connect->fd < 0)
        return 0;
    int result = domi_connect_check_may_open(house->home->io);
    if (result == 0)
        (void)make_house_a_channel(stack->manager, house, connect);
    else
        (void)take_back_failed_connect_and_stop(house, result);
    return 0;
}

static int on_resolved_host_name_begin_attempts(domus_stack *stack, void *self, const void *payload)
{
    domi_connect *connect = get_connect_of_house(domi_stack_get_house(stack));

    (void)self, (void)payload;
    if (connect != NULL && connect->stopping == NULL)
        domi_connect_handle_resolved_name(connect);
    return 0;
}

static const domus_on rows[] = {
    {&domi_connect_type, begin_connect_for_asker, 0},
    {&domi_resolved_type, on_resolved_host_name_begin_attempts, 0},
    {NULL, NULL, 0},
};

const domus_behaviour domi_connecting_behaviour = {
    .name = "domus.connecting",
    .kind = DOMUS_CHANNELS,
    .on = rows,
    .on_mount = mount_connecting_actor,
};
