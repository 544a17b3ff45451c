/* The life of an acceptor: it accepts, hands over or keeps connections waiting, pauses, and at the
 * end closes the listener. While it serves, a multishot accept is in flight, or the timer of a
 * pause is armed. */
#include "io/acceptors/acceptors.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/conversation/stack.h"
#include "io/resources/socket.h"

#include <errno.h>

/* Count a connection on the address of its peer. The connection of a proxy is counted later, on the
 * address of its client. Returns 0; -EDQUOT or -ENOMEM when the connection may not stay. */
static int count_connection_on_peer_address(domi_acceptor *acceptor, domi_connection *arrival)
{
    domi_peers *peers = acceptor->io->peers;
    struct sockaddr_storage address;
    domi_peer_key key;

    if (arrival->is_proxied || peers == NULL || !domi_peers_is_any_address_bounded(peers))
        return 0;
    domi_socket_find_address_of_peer(acceptor->io, arrival->fd, &address);
    domi_peer_get_key_of_address(&address, &key);
    int result = domi_peers_count_connection(peers, &key, &arrival->peer);
    if (result == -EDQUOT)
        domi_shortage_record_full_address(acceptor, &key,
                                          domi_peers_max_connections_of_address(peers, &key));
    return result;
}

/* Handle a connection that the acceptor has accepted: hand it over, keep it, or turn it away. */
static void hand_over_keep_or_turn_away_accepted(domi_acceptor *acceptor, int fd)
{
    domi_connection arrival = {.fd = fd};

    if (acceptor->stopping) {
        domi_acceptor_handle_late_connection(acceptor, fd);
        return;
    }
    domi_acceptor_reset_backoff(acceptor);
    bool is_foreign = domi_acceptor_check_proxy_source(acceptor, &arrival);
    int result = is_foreign ? -EPERM : count_connection_on_peer_address(acceptor, &arrival);
    if (result == -EDQUOT || is_foreign)
        domi_acceptor_refuse_connection(acceptor, fd);
    else if (result != 0)
        domi_connection_reset_and_count(acceptor->io, acceptor->settings, fd);
    else if (domi_acceptor_has_no_room_for_arrival(acceptor))
        domi_arrival_keep_until_there_is_room(acceptor, &arrival);
    else
        domi_arrival_hand_to_target(acceptor, &arrival);
    if (acceptor->waiting_count != 0 || domi_acceptor_has_no_room_for_arrival(acceptor)) {
        domi_acceptor_cancel_accept(acceptor);
        domi_acceptor_pause_accept(acceptor, true);
    }
}

static void handle_accept_completion(domi_acceptor *acceptor, const domi_completion *completion)
{
    int result = completion->result;

    if ((completion->flags & DOMI_MORE) == 0)
        acceptor->armed = false;
    if (result >= 0) {
        hand_over_keep_or_turn_away_accepted(acceptor, result);
    } else if (result == -EMFILE || result == -ENFILE || result == -ENOBUFS || result == -ENOMEM ||
               result == -EPERM || result == -EACCES || result == -ENOSYS) {
        domi_shortage_record_failed_accept(acceptor, result);
        domi_acceptor_pause_accept(acceptor, false);
    }
    if (acceptor->stopping)
        domi_acceptor_continue_stop(acceptor);
    else if (!acceptor->armed && !domi_wheel_is_armed(&acceptor->timer.node))
        /* the accept failed for one connection only (ECONNABORTED), or the operation ended by
         * itself */
        domi_acceptor_arm_accept(acceptor);
}

int domi_acceptor_attach_to_io(domi_acceptor *acceptor, domi_io *io, domi_house *house)
{
    uint32_t slot = 0;

    while (slot < DOMI_ACCEPTORS_MAX && io->acceptors[slot] != NULL)
        slot++;
    if (slot == DOMI_ACCEPTORS_MAX)
        return -EMFILE;
    acceptor->io = io;
    acceptor->house = house;
    acceptor->slot = slot;
    domi_acceptor_reset_backoff(acceptor);
    acceptor->timer.kind = DOMI_TIMER_ACCEPTOR;
    domi_wheel_node_init(&acceptor->timer.node);
    io->acceptors[slot] = acceptor;
    /* the settings of the listener may be written, because no channel exists yet that reads them */
    if (acceptor->settings != NULL) {
        acceptor->settings->listener = domi_house_get_address(house);
        if (acceptor->settings->listener_name[0] != '\0')
            acceptor->name = acceptor->settings->listener_name;
    }
    house->channels.owned = acceptor;
    house->channels.owns = DOMI_OWNS_ACCEPTOR;
    domi_io_count_open_listener(io, 1);
    return 0;
}

static int mount_acceptor(domus_stack *stack, void *self)
{
    domi_acceptor *acceptor = *(domi_acceptor **)self;
    domi_io *io = stack->manager->io;

    if (acceptor->held != NULL)
        *acceptor->held = NULL;
    /* an acceptor that an actor has made for itself is attached already (own.c) */
    if (acceptor->house == NULL &&
        domi_acceptor_attach_to_io(acceptor, io, domi_stack_get_house(stack)) != 0) {
        domi_socket_close(io, acceptor->fd);
        domi_memory_free(acceptor);
        return -ENOMEM;
    }
    if (io->failed != 0) {
        domi_acceptor_stop_after_ring_failure(
            acceptor); /* a ring that has failed would complete no accept */
        return 0;
    }
    if (!acceptor->stopping)
        domi_acceptor_arm_accept(acceptor);
    if (io->draining)
        domi_acceptor_begin_drain(acceptor);
    return 0;
}

void domi_acceptor_close_and_free(domi_acceptor *acceptor)
{
    domi_io *io = acceptor->io;

    domi_wheel_disarm_node(&io->wheel, &acceptor->timer.node);
    io->acceptors[acceptor->slot] = NULL;
    domi_acceptor_close_listener(acceptor);
    domi_settings_remove_user(acceptor->settings);
    domi_memory_free(acceptor);
}

static void on_stop_close_and_free_acceptor(domus_stack *stack, void *self)
{
    (void)stack;
    domi_acceptor_close_and_free(*(domi_acceptor **)self);
}

const domus_behaviour domi_acceptor_behaviour = {
    .name = "domus.acceptor",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(domi_acceptor *),
    .on_mount = mount_acceptor,
    .on_stop = on_stop_close_and_free_acceptor,
};

void domi_acceptor_free_unmounted(domi_acceptor *acceptor)
{
    if (acceptor == NULL)
        return;
    acceptor->io = acceptor->targets[0].io;
    domi_backlog_count_as_turned_away(acceptor);
    domi_socket_close(acceptor->io, acceptor->fd);
    domi_memory_free(acceptor);
}

void domi_acceptor_handle_completion(domi_io *io, enum domi_op op,
                                     const domi_completion *completion)
{
    uint32_t slot = (uint32_t)completion->user_data;

    if (slot >= DOMI_ACCEPTORS_MAX)
        return; /* this completion belongs to an operation of the kind DOMI_OP_IGNORED */
    DOMI_CHECK(io->acceptors[slot] != NULL);
    if (op == DOMI_OP_ACCEPT) {
        handle_accept_completion(io->acceptors[slot], completion);
    } else {
        io->acceptors[slot]->cancelling = false;
        if (io->acceptors[slot]->stopping)
            domi_acceptor_continue_stop(io->acceptors[slot]);
    }
}

void domi_acceptor_end_pause_or_continue_stop(domi_acceptor *acceptor)
{
    if (acceptor->stopping) {
        domi_acceptor_continue_stop(acceptor);
        return;
    }
    domi_acceptor_hand_over_waiting_arrivals(acceptor);
    if (acceptor->waiting_count != 0 ||
        (acceptor->full && domi_acceptor_has_no_room_for_arrival(acceptor)))
        domi_acceptor_pause_accept(acceptor, true);
    else
        domi_acceptor_arm_accept(acceptor);
}
