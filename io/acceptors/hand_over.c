/* Hands connections over: the thread with the fewest connections gets the next one. Connections for
 * which there is no room wait in the acceptor. */
#include "io/acceptors/acceptors.h"

#include "base/memory.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "io/channels/table.h"
#include "io/resources/socket.h"
#include "io/resources/spells.h"

#include <errno.h>
#include <string.h>

/* number of places in an acceptor's first array of waiting connections, which doubles when it is
 * full */
#define WAITING_FIRST 64u

/* Turn away the connection of an event that no actor has handled; this is the `release` of the
 * event's type. */
static void release_accepted_connection(void *payload)
{
    const domi_accepted *accepted = payload;

    /* Relaxed: the number of connections only serves to choose a thread. */
    atomic_fetch_sub_explicit(&accepted->io->connections, 1, memory_order_relaxed);
    domi_connection_reset_and_count(accepted->io, accepted->connection.settings,
                                    accepted->connection.fd);
    domi_peers_uncount_connection(accepted->io->peers, accepted->connection.peer);
    domi_settings_remove_user(accepted->connection.settings);
}

const domus_type domi_accepted_type = {
    .name = "domus.accepted",
    .size = sizeof(domi_accepted),
    .release = release_accepted_connection,
};

void domi_accepted_make_channel_or_reset(const domi_accepted *accepted, domi_house *owner)
{
    if (domi_channel_adopt_connection(accepted->io, owner, &accepted->connection) == 0)
        domi_settings_remove_user(accepted->connection.settings);
    else
        release_accepted_connection((void *)(uintptr_t)accepted);
}

static uint32_t get_connection_count_of_thread(const domi_io *io)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&io->connections,
                                memory_order_relaxed);
}

bool domi_acceptor_is_at_max_connections(const domi_acceptor *acceptor)
{
    return domi_io_has_accepted_maximum(acceptor->io);
}

bool domi_acceptor_has_no_room_for_arrival(const domi_acceptor *acceptor)
{
    return acceptor->io->pressure.pauses || domi_acceptor_is_at_max_connections(acceptor);
}

/* Returns the target of the acceptor that has the fewest connections; NULL when the actors of all
 * targets are gone. */
static domi_acceptor_target *find_target_with_fewest_connections(domi_acceptor *acceptor)
{
    domi_acceptor_target *best = NULL;
    uint32_t best_count = UINT32_MAX;

    for (uint32_t i = 0; i < acceptor->target_count; i++) {
        domi_acceptor_target *target =
            &acceptor->targets[(acceptor->turn + i) % acceptor->target_count];
        uint32_t count = get_connection_count_of_thread(target->io);
        if (target->actor.house != NULL && count < best_count) {
            best = target;
            best_count = count;
        }
    }
    acceptor->turn++;
    return best;
}

/* Hand the connection to one actor by an event. Returns 0; -ENOMEM; -ESTALE when that actor is gone
 * or was asked to stop. (Such an actor takes events until its children have ended but serves no
 * connection, so it would always have the fewest.) The count of connections is raised before the
 * event is sent: if it were raised at the arrival, all connections of a burst would go to one
 * thread. */
static int hand_connection_to_target(domi_acceptor *acceptor, const domi_acceptor_target *target,
                                     const domi_connection *arrival)
{
    domi_manager *manager = acceptor->io->manager;
    domi_accepted accepted = {.connection = *arrival, .io = target->io};

    if (domi_house_is_asked_to_stop(target->actor.house))
        return -ESTALE;
    domi_envelope *envelope = domi_envelope_new(manager, DOMI_ENVELOPE_HEAD + sizeof accepted);
    if (envelope == NULL)
        return -ENOMEM;
    accepted.connection.settings = domi_settings_add_user(acceptor->settings);
    envelope->type = &domi_accepted_type;
    envelope->sender = NULL;
    envelope->sender_lease = 0;
    memcpy(domi_envelope_payload_by_kind(envelope, DOMI_EVENT), &accepted, sizeof accepted);
    atomic_fetch_add_explicit(&target->io->connections, 1, memory_order_relaxed);
    int result = domi_mailbox_put(manager, target->actor, &envelope->node, DOMI_EVENT);
    if (result != 0) {
        atomic_fetch_sub_explicit(&target->io->connections, 1, memory_order_relaxed);
        domi_settings_remove_user(accepted.connection.settings);
        domi_pool_free_object(manager, &envelope->node);
    }
    return result;
}

bool domi_acceptor_check_proxy_source(domi_acceptor *acceptor, domi_connection *arrival)
{
    struct sockaddr_storage address;

    if (acceptor->proxies.count == 0)
        return false;
    domi_socket_find_address_of_peer(acceptor->io, arrival->fd, &address);
    arrival->is_proxied = domi_networks_contain_address(&acceptor->proxies, &address);
    if (!arrival->is_proxied)
        domi_spell_record_proxy_reset(acceptor->io, DOMI_PROXY_ELSEWHERE, acceptor->name, &address);
    return !arrival->is_proxied;
}

void domi_acceptor_refuse_connection(domi_acceptor *acceptor, int fd)
{
    domi_listener_counts *counts = domi_io_counters_of_listener(acceptor->io, acceptor->settings);

    if (counts != NULL)
        domi_counter_add(&counts->refused, 1);
    domi_socket_reset(acceptor->io, fd);
}

void domi_arrival_turn_away(domi_acceptor *acceptor, const domi_connection *arrival)
{
    domi_connection_reset_and_count(acceptor->io, acceptor->settings, arrival->fd);
    domi_peers_uncount_connection(acceptor->io->peers, arrival->peer);
}

/* Hand a connection over to a target. A target whose actor is gone is removed, because it would
 * have the fewest connections for ever. */
void domi_arrival_hand_to_target(domi_acceptor *acceptor, const domi_connection *arrival)
{
    domi_listener_counts *counts = domi_io_counters_of_listener(acceptor->io, acceptor->settings);

    domi_counter_add(&acceptor->io->counters.accepted, 1);
    if (counts != NULL)
        domi_counter_add(&counts->accepted, 1);
    for (domi_acceptor_target *target = find_target_with_fewest_connections(acceptor);
         target != NULL; target = find_target_with_fewest_connections(acceptor)) {
        int result = hand_connection_to_target(acceptor, target, arrival);
        if (result == 0)
            return;
        if (result != -ESTALE)
            break;
        target->actor = (domus_address){NULL, 0};
    }
    domi_arrival_turn_away(acceptor, arrival);
}

/* Keep an accepted connection in the acceptor's array `waiting`, which doubles when it is full;
 * without memory for that, turn the connection away. */
void domi_arrival_keep_until_there_is_room(domi_acceptor *acceptor, const domi_connection *arrival)
{
    if (acceptor->waiting_count == acceptor->waiting_capacity) {
        uint32_t room =
            acceptor->waiting_capacity == 0 ? WAITING_FIRST : acceptor->waiting_capacity * 2;
        domi_connection *waiting = domi_memory_new(room * sizeof *waiting);
        if (waiting == NULL) {
            domi_arrival_turn_away(acceptor, arrival);
            return;
        }
        if (acceptor->waiting_count != 0)
            memcpy(waiting, acceptor->waiting, acceptor->waiting_count * sizeof *waiting);
        domi_memory_free(acceptor->waiting);
        acceptor->waiting = waiting;
        acceptor->waiting_capacity = room;
    }
    acceptor->waiting[acceptor->waiting_count++] = *arrival;
}

void domi_acceptor_hand_over_waiting_arrivals(domi_acceptor *acceptor)
{
    uint32_t served = 0;

    while (served < acceptor->waiting_count && !domi_acceptor_has_no_room_for_arrival(acceptor))
        domi_arrival_hand_to_target(acceptor, &acceptor->waiting[served++]);
    acceptor->waiting_count -= served;
    if (served != 0)
        memmove(acceptor->waiting, acceptor->waiting + served,
                acceptor->waiting_count * sizeof *acceptor->waiting);
}
