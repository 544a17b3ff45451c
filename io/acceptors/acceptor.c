/* The life of an acceptor: accept, hand over or keep waiting, pause, and at the end close the
 * listener. While it serves, a multishot accept is in flight, or the timer of a pause is armed. */
#include "io/acceptors/acceptor.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/conversation/stack.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "io/channels/set.h"
#include "io/resources/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKOFF_FIRST_NS UINT64_C(10000000)
#define BACKOFF_LAST_NS  UINT64_C(1000000000)
#define WAITING_FIRST    64u

/* This is the `release` of the event that carries a connection. It runs if no actor has adopted the
 * connection. */
static void accepted_release(void *payload)
{
    const domi_accepted *accepted = payload;

    /* Relaxed: the number only serves to choose a thread. */
    atomic_fetch_sub_explicit(&accepted->io->connections, 1, memory_order_relaxed);
    domi_connection_turn_away(accepted->io, accepted->fd);
    domi_peers_count_out(accepted->io->peers, accepted->peer);
}

const domus_type domi_accepted_type = {
    .name = "domus.accepted",
    .size = sizeof(domi_accepted),
    .release = accepted_release,
};

/* release: a thread that sees that no listener is open (is_quiet) also sees the connections that
 * were handed over before. */
static void count_listener(domi_io *io, uint64_t by)
{
    atomic_store_explicit(&io->counters.listening, domi_counter_read(&io->counters.listening) + by,
                          memory_order_release);
}

static void arm_accept(domi_acceptor *acceptor)
{
    if (acceptor->armed || acceptor->stopping || acceptor->io->draining)
        return;
    acceptor->armed = true;
    acceptor->io->backend->accept(acceptor->io->ring, acceptor->fd,
                                  domi_op_data(DOMI_OP_ACCEPT, 0, acceptor->slot));
}

static void cancel_accept(domi_acceptor *acceptor)
{
    if (!acceptor->armed || acceptor->cancelling)
        return;
    acceptor->cancelling = true;
    acceptor->io->backend->cancel(acceptor->io->ring,
                                  domi_op_data(DOMI_OP_ACCEPT, 0, acceptor->slot),
                                  domi_op_data(DOMI_OP_CANCEL_ACCEPT, 0, acceptor->slot));
}

static uint32_t connections_of(const domi_io *io)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&io->connections,
                                memory_order_relaxed);
}

static bool is_at_max(const domi_acceptor *acceptor)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < acceptor->target_count; i++)
        sum += connections_of(acceptor->targets[i].io);
    return sum >= acceptor->io->config->channel.connections_max;
}

static bool is_full(const domi_acceptor *acceptor)
{
    return acceptor->io->pressure.pauses || is_at_max(acceptor);
}

/* Pause, and try again later: an accept that is armed again at once would fail at once, for ever.
 */
static void pause_accept(domi_acceptor *acceptor, bool full)
{
    domi_io *io = acceptor->io;

    acceptor->full = full;
    if (full && is_at_max(acceptor))
        domi_shortage_of_connections(acceptor);
    if (domi_wheel_is_armed(&acceptor->timer.node))
        return;
    domi_counter_add(&io->counters.accept_pauses, 1);
    if (full)
        acceptor->backoff_ns = BACKOFF_FIRST_NS;
    domi_wheel_arm(&io->wheel, &acceptor->timer.node, io->manager->now_ns + acceptor->backoff_ns);
    acceptor->backoff_ns *= 2;
    if (acceptor->backoff_ns > BACKOFF_LAST_NS)
        acceptor->backoff_ns = BACKOFF_LAST_NS;
}

/* Returns the target with the fewest connections; NULL when the actors of all targets are gone. */
static domi_acceptor_target *find_target_with_fewest(domi_acceptor *acceptor)
{
    domi_acceptor_target *best = NULL;
    uint32_t best_count = UINT32_MAX;

    for (uint32_t i = 0; i < acceptor->target_count; i++) {
        domi_acceptor_target *target =
            &acceptor->targets[(acceptor->turn + i) % acceptor->target_count];
        uint32_t count = connections_of(target->io);
        if (target->actor.house != NULL && count < best_count) {
            best = target;
            best_count = count;
        }
    }
    acceptor->turn++;
    return best;
}

/* Put the connection to one actor. Returns 0; -ENOMEM; -ESTALE when that actor is gone or was asked
 * to stop. (Such an actor takes events until its children have ended but serves nobody, so it would
 * always have the fewest connections.) The count goes up before the hand-over: if it went up at the
 * arrival, a burst would all go to one thread. */
static int hand_to(domi_acceptor *acceptor, const domi_acceptor_target *target,
                   const domi_arrival *arrival)
{
    domi_manager *manager = acceptor->io->manager;
    domi_accepted accepted = {.fd = arrival->fd, .io = target->io, .peer = arrival->peer};

    if (domi_house_is_asked_to_stop(target->actor.house))
        return -ESTALE;
    domi_envelope *envelope = domi_envelope_new(manager, sizeof *envelope);
    if (envelope == NULL)
        return -ENOMEM;
    envelope->type = &domi_accepted_type;
    envelope->sender = NULL;
    envelope->sender_lease = 0;
    memcpy(envelope->payload, &accepted, sizeof accepted);
    atomic_fetch_add_explicit(&target->io->connections, 1, memory_order_relaxed);
    int result = domi_mailbox_put(manager, target->actor, &envelope->node, DOMI_EVENT);
    if (result != 0) {
        atomic_fetch_sub_explicit(&target->io->connections, 1, memory_order_relaxed);
        domi_pool_free(manager, &envelope->node);
    }
    return result;
}

static void drop_arrival(domi_acceptor *acceptor, const domi_arrival *arrival)
{
    domi_connection_turn_away(acceptor->io, arrival->fd);
    domi_peers_count_out(acceptor->io->peers, arrival->peer);
}

/* Hand a connection over. A target whose actor is gone is struck out, because it would have the
 * fewest connections for ever. */
static void hand_over(domi_acceptor *acceptor, const domi_arrival *arrival)
{
    domi_counter_add(&acceptor->io->counters.accepted, 1);
    for (domi_acceptor_target *target = find_target_with_fewest(acceptor); target != NULL;
         target = find_target_with_fewest(acceptor)) {
        int result = hand_to(acceptor, target, arrival);
        if (result == 0)
            return;
        if (result != -ESTALE)
            break;
        target->actor = (domus_address){NULL, 0};
    }
    drop_arrival(acceptor, arrival);
}

/* Keep a connection that was accepted although there was no room. One multishot accept brings all
 * connections that wait in the backlog. If they were turned away, their peers would have to come
 * again; so they wait here instead. The array doubles when it is full. */
static void keep_waiting(domi_acceptor *acceptor, const domi_arrival *arrival)
{
    if (acceptor->waiting_count == acceptor->waiting_capacity) {
        uint32_t room =
            acceptor->waiting_capacity == 0 ? WAITING_FIRST : acceptor->waiting_capacity * 2;
        domi_arrival *waiting = domi_memory_new(room * sizeof *waiting);
        if (waiting == NULL) {
            drop_arrival(acceptor, arrival);
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

/* Hand over the waiting connections for which there is room now. */
static void serve_waiting(domi_acceptor *acceptor)
{
    uint32_t served = 0;

    while (served < acceptor->waiting_count && !is_full(acceptor))
        hand_over(acceptor, &acceptor->waiting[served++]);
    acceptor->waiting_count -= served;
    if (served != 0)
        memmove(acceptor->waiting, acceptor->waiting + served,
                acceptor->waiting_count * sizeof *acceptor->waiting);
}

void domi_acceptor_look_at_pressure(domi_acceptor *acceptor)
{
    if (!acceptor->io->pressure.pauses || acceptor->stopping)
        return;
    cancel_accept(acceptor);
    pause_accept(acceptor, true);
}

/* Take a connection that is accepted while the listener is being closed. In a drain it is handed
 * over, beyond all limits, because a backlog is bounded and a request that is not answered now
 * never will be. */
static void take_last(domi_acceptor *acceptor, int fd)
{
    const domi_arrival arrival = {.fd = fd};

    if (acceptor->serves_rest)
        hand_over(acceptor, &arrival);
    else
        drop_arrival(acceptor, &arrival);
}

static void close_listener(domi_acceptor *acceptor)
{
    while (acceptor->waiting_count != 0)
        drop_arrival(acceptor, &acceptor->waiting[--acceptor->waiting_count]);
    domi_memory_free(acceptor->waiting);
    acceptor->waiting = NULL;
    acceptor->waiting_capacity = 0;
    if (acceptor->fd < 0)
        return;
    domi_backlog_count_turned_away(acceptor);
    (void)close(acceptor->fd);
    acceptor->fd = -1;
    count_listener(acceptor->io, UINT64_MAX);
}

static void finish_later(domi_acceptor *acceptor, uint64_t delay_ns)
{
    domi_io *io = acceptor->io;

    domi_wheel_arm(&io->wheel, &acceptor->timer.node, io->manager->now_ns + delay_ns);
}

/* If nothing is in flight, accept the connections that wait and close the listener. So a peer that
 * comes now is refused, and does not wait for the end of a drain. One call accepts a bounded
 * number, and the next iteration goes on. In a drain without descriptors it is tried again later,
 * because channels that end give theirs back. */
static void finish_stop(domi_acceptor *acceptor)
{
    domi_io *io = acceptor->io;

    if (acceptor->armed || acceptor->cancelling)
        return;
    /* the last accept may have armed the timer of a pause */
    domi_wheel_cancel(&io->wheel, &acceptor->timer.node);
    int result = acceptor->fd >= 0 ? domi_backlog_take(acceptor, take_last) : 0;
    if (result == -EAGAIN)
        finish_later(acceptor, DOMI_WHEEL_TICK_NS);
    else if (result != 0 && io->draining)
        finish_later(acceptor, BACKOFF_FIRST_NS);
    else
        close_listener(acceptor);
}

/* Go on with the stop, and make the house ready if the listener is closed now, because the stopping
 * actor waits for that. */
static void finish_and_rouse(domi_acceptor *acceptor)
{
    finish_stop(acceptor);
    if (acceptor->fd < 0 && acceptor->house->state == DOMI_WAITING)
        domi_house_make_ready(acceptor->io->manager, acceptor->house);
}

void domi_acceptor_handle_timer(domi_acceptor *acceptor)
{
    if (acceptor->stopping) {
        finish_and_rouse(acceptor);
        return;
    }
    serve_waiting(acceptor);
    if (acceptor->waiting_count != 0 || (acceptor->full && is_full(acceptor)))
        pause_accept(acceptor, true);
    else
        arm_accept(acceptor);
}

static bool ask_peer(int fd, struct sockaddr_storage *address, size_t bytes)
{
    socklen_t size = (socklen_t)bytes;

    return getsockopt(fd, SOL_SOCKET, SO_PEERNAME, address, &size) == 0;
}

/* Find the address of a peer. A multishot accept cannot tell it, and getpeername() fails if the
 * peer has already reset the connection. SO_PEERNAME works then, but only if it is asked for no
 * more bytes than the address has: an IPv4 address has the fewest, and a Unix socket may have no
 * name, only a family. If no address is found, the family stays AF_UNSPEC. */
static void name_peer(int fd, struct sockaddr_storage *ret_address)
{
    *ret_address = (struct sockaddr_storage){.ss_family = AF_UNSPEC};
    if (!ask_peer(fd, ret_address, sizeof(struct sockaddr_in)))
        (void)ask_peer(fd, ret_address, sizeof ret_address->ss_family);
    else if (ret_address->ss_family == AF_INET6)
        (void)ask_peer(fd, ret_address, sizeof(struct sockaddr_in6));
}

/* Count a connection on its address. Returns 0; -EDQUOT or -ENOMEM when it may not stay. */
static int count_peer(domi_acceptor *acceptor, domi_arrival *arrival)
{
    domi_peers *peers = acceptor->io->peers;
    struct sockaddr_storage address;
    domi_peer_key key;

    if (peers == NULL || !domi_peers_are_bounded(peers))
        return 0;
    name_peer(arrival->fd, &address);
    domi_peer_key_of(&address, &key);
    int result = domi_peers_count_in(peers, &key, &arrival->peer);
    if (result == -EDQUOT)
        domi_shortage_of_address(acceptor, &key, domi_peers_max(peers, &key));
    return result;
}

/* Take a connection that was accepted. */
static void take_arrival(domi_acceptor *acceptor, int fd)
{
    domi_arrival arrival = {.fd = fd};

    if (acceptor->stopping) {
        take_last(acceptor, fd);
        return;
    }
    acceptor->backoff_ns = BACKOFF_FIRST_NS;
    int result = count_peer(acceptor, &arrival);
    if (result == -EDQUOT)
        domi_socket_reset(fd);
    else if (result != 0)
        domi_connection_turn_away(acceptor->io, fd);
    else if (is_full(acceptor))
        keep_waiting(acceptor, &arrival);
    else
        hand_over(acceptor, &arrival);
    if (acceptor->waiting_count != 0 || is_full(acceptor)) {
        cancel_accept(acceptor);
        pause_accept(acceptor, true);
    }
}

void domi_acceptor_handle_completion(domi_acceptor *acceptor, const domi_completion *completion)
{
    int result = completion->result;

    if ((completion->flags & DOMI_MORE) == 0)
        acceptor->armed = false;
    if (result >= 0) {
        take_arrival(acceptor, result);
    } else if (result == -EMFILE || result == -ENFILE || result == -ENOBUFS || result == -ENOMEM) {
        domi_shortage_of_accept(acceptor, result);
        pause_accept(acceptor, false);
    }
    if (acceptor->stopping)
        domi_acceptor_handle_cancel(acceptor);
    else if (!acceptor->armed && !domi_wheel_is_armed(&acceptor->timer.node))
        arm_accept(
            acceptor); /* the accept failed for one connection (ECONNABORTED), or ended by itself */
}

/* Called when the accept or its cancel has come back: a stopping acceptor may have nothing in
 * flight now. */
void domi_acceptor_handle_cancel(domi_acceptor *acceptor)
{
    if (acceptor->stopping && !acceptor->armed && !acceptor->cancelling)
        finish_and_rouse(acceptor);
}

static void begin_stop(domi_acceptor *acceptor, bool serves_rest)
{
    acceptor->stopping = true;
    acceptor->serves_rest = serves_rest;
    domi_wheel_cancel(&acceptor->io->wheel, &acceptor->timer.node);
    cancel_accept(acceptor);
}

uint32_t domi_acceptor_stop(domi_acceptor *acceptor)
{
    begin_stop(acceptor, false);
    if (acceptor->armed || acceptor->cancelling)
        return 1;
    /* When its thread has ended there is no next iteration: the connections that are left are
     * counted as the listener closes. */
    if (acceptor->fd >= 0 && domi_backlog_take(acceptor, take_last) == -EAGAIN &&
        !acceptor->io->manager->has_stopped) {
        finish_later(acceptor, DOMI_WHEEL_TICK_NS);
        return 1;
    }
    close_listener(acceptor);
    return 0;
}

void domi_acceptor_drain(domi_acceptor *acceptor)
{
    if (acceptor->fd < 0)
        return;
    begin_stop(acceptor, true);
    for (uint32_t i = 0; i < acceptor->waiting_count; i++)
        hand_over(acceptor, &acceptor->waiting[i]);
    acceptor->waiting_count = 0;
    domi_backlog_shrink(acceptor->fd);
    finish_stop(acceptor);
}

void domi_acceptor_abort_drain(domi_acceptor *acceptor)
{
    if (acceptor->fd < 0)
        return;
    begin_stop(acceptor, false);
    finish_stop(acceptor);
}

void domi_acceptor_fail(domi_acceptor *acceptor)
{
    if (acceptor->fd >= 0)
        (void)shutdown(acceptor->fd, SHUT_RDWR);
    acceptor->armed = acceptor->cancelling = false;
    domi_acceptor_abort_drain(acceptor);
}

static int mount(domus_stack *stack, void *self)
{
    domi_acceptor *acceptor = *(domi_acceptor **)self;
    domi_io *io = stack->manager->io;
    domi_channels *set = domi_memory_new(sizeof *set);
    uint32_t slot = 0;

    if (acceptor->held != NULL)
        *acceptor->held = NULL;
    while (slot < DOMI_ACCEPTORS_MAX && io->acceptors[slot] != NULL)
        slot++;
    if (set == NULL || slot == DOMI_ACCEPTORS_MAX) {
        domi_memory_free(set);
        (void)close(acceptor->fd);
        domi_memory_free(acceptor);
        return -ENOMEM;
    }
    acceptor->io = io;
    acceptor->house = domi_stack_house(stack);
    acceptor->slot = slot;
    acceptor->backoff_ns = BACKOFF_FIRST_NS;
    acceptor->timer.kind = DOMI_TIMER_ACCEPTOR;
    domi_wheel_node_init(&acceptor->timer.node);
    io->acceptors[slot] = acceptor;
    set->acceptor = acceptor;
    acceptor->house->channels.set = set;
    count_listener(io, 1);
    arm_accept(acceptor);
    if (io->draining)
        domi_acceptor_drain(acceptor);
    return 0;
}

void domi_acceptor_free_unmounted(domi_acceptor *acceptor)
{
    if (acceptor == NULL)
        return;
    acceptor->io = acceptor->targets[0].io;
    domi_backlog_count_turned_away(acceptor);
    (void)close(acceptor->fd);
    domi_memory_free(acceptor);
}

static void stop_listening(domus_stack *stack, void *self)
{
    domi_acceptor *acceptor = *(domi_acceptor **)self;
    domi_io *io = stack->manager->io;

    domi_wheel_cancel(&io->wheel, &acceptor->timer.node);
    io->acceptors[acceptor->slot] = NULL;
    close_listener(acceptor);
    domi_memory_free(acceptor);
}

const domus_behaviour domi_acceptor_behaviour = {
    .name = "domus.acceptor",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(domi_acceptor *),
    .on_mount = mount,
    .on_stop = stop_listening,
};
