/* See the header. */
#include "io/acceptor.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/mailbox.h"
#include "house/pool.h"
#include "house/stack.h"
#include "io/channel.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define BACKOFF_FIRST_NS UINT64_C(10000000)
#define BACKOFF_LAST_NS  UINT64_C(1000000000)
#define WAITING_FIRST    64u

static void accepted_drop(void *payload)
{
    const domi_accepted *accepted = payload;

    /* Relaxed: a number for choosing a thread. */
    atomic_fetch_sub_explicit(&accepted->io->connections, 1, memory_order_relaxed);
    (void)close(accepted->fd);
}

const domus_type domi_accepted_type = {
    .name = "domus.accepted",
    .size = sizeof(domi_accepted),
    .drop = accepted_drop,
};

static void set_armed(domi_acceptor *acceptor, bool armed)
{
    acceptor->armed = armed;
    domi_counter_add(&acceptor->io->counters.listening, armed ? 1 : UINT64_MAX);
}

static void arm(domi_acceptor *acceptor)
{
    if (acceptor->armed || acceptor->stopping || acceptor->io->draining)
        return;
    set_armed(acceptor, true);
    acceptor->io->backend->accept(acceptor->io->ring, acceptor->fd,
                                  domi_op_data(DOMI_OP_ACCEPT, 0, acceptor->slot));
}

static void cancel(domi_acceptor *acceptor)
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

static bool is_full(const domi_acceptor *acceptor)
{
    uint64_t sum = 0;

    if (acceptor->io->pressed)
        return true;
    for (uint32_t i = 0; i < acceptor->target_count; i++)
        sum += connections_of(acceptor->targets[i].io);
    return sum >= acceptor->io->config->channel.connections_max;
}

/* Try again later: re-arming at once would fail at once, for ever. */
static void pause_accept(domi_acceptor *acceptor, bool full)
{
    domi_io *io = acceptor->io;

    acceptor->full = full;
    if (domi_wheel_armed(&acceptor->timer.node))
        return;
    domi_counter_add(&io->counters.accept_pauses, 1);
    if (full)
        acceptor->backoff_ns = BACKOFF_FIRST_NS;
    domi_wheel_arm(&io->wheel, &acceptor->timer.node, io->manager->now_ns + acceptor->backoff_ns);
    acceptor->backoff_ns *= 2;
    if (acceptor->backoff_ns > BACKOFF_LAST_NS)
        acceptor->backoff_ns = BACKOFF_LAST_NS;
}

/* NULL when no thread has its actor any more. */
static domi_acceptor_target *fewest(domi_acceptor *acceptor)
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

/* Put the connection to one actor. Returns 0; -ESTALE when that actor is gone; -ENOMEM. The count
 * goes up before the hand-over: counted at arrival, a burst would all go to one thread. */
static int hand_to(domi_acceptor *acceptor, const domi_acceptor_target *target, int fd)
{
    domi_manager *manager = acceptor->io->manager;
    domi_accepted accepted = {.fd = fd, .io = target->io};
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

/* An actor that is gone is struck out: it would have the fewest connections for ever. */
static void hand_over(domi_acceptor *acceptor, int fd)
{
    domi_counter_add(&acceptor->io->counters.accepted, 1);
    for (domi_acceptor_target *target = fewest(acceptor); target != NULL;
         target = fewest(acceptor)) {
        int result = hand_to(acceptor, target, fd);
        if (result == 0)
            return;
        if (result != -ESTALE)
            break;
        target->actor = (domus_address){NULL, 0};
    }
    (void)close(fd);
}

/* One accept brings all that wait in the backlog, also when there is room for one. Turned away they
 * would have to come again; so they wait here as they did there. As many as the backlog holds. */
static void keep_waiting(domi_acceptor *acceptor, int fd)
{
    if (acceptor->waiting_count == acceptor->waiting_room) {
        uint32_t room = acceptor->waiting_room == 0 ? WAITING_FIRST : acceptor->waiting_room * 2;
        int *waiting = domi_memory_new(room * sizeof *waiting);
        if (waiting == NULL) {
            (void)close(fd);
            return;
        }
        if (acceptor->waiting_count != 0)
            memcpy(waiting, acceptor->waiting, acceptor->waiting_count * sizeof *waiting);
        domi_memory_free(acceptor->waiting);
        acceptor->waiting = waiting;
        acceptor->waiting_room = room;
    }
    acceptor->waiting[acceptor->waiting_count++] = fd;
}

/* Those that there is room for. */
static void serve_waiting(domi_acceptor *acceptor)
{
    uint32_t served = 0;

    while (served < acceptor->waiting_count && !is_full(acceptor))
        hand_over(acceptor, acceptor->waiting[served++]);
    acceptor->waiting_count -= served;
    if (served != 0)
        memmove(acceptor->waiting, acceptor->waiting + served,
                acceptor->waiting_count * sizeof *acceptor->waiting);
}

void domi_acceptor_press(domi_acceptor *acceptor)
{
    if (!acceptor->io->pressed || acceptor->stopping)
        return;
    cancel(acceptor);
    pause_accept(acceptor, true);
}

void domi_acceptor_timer(domi_acceptor *acceptor)
{
    serve_waiting(acceptor);
    if (acceptor->waiting_count != 0 || (acceptor->full && is_full(acceptor)))
        pause_accept(acceptor, true);
    else
        arm(acceptor);
}

void domi_acceptor_completed(domi_acceptor *acceptor, const domi_completion *completion)
{
    int result = completion->result;

    if ((completion->flags & DOMI_MORE) == 0)
        set_armed(acceptor, false);
    if (result >= 0) {
        if (acceptor->stopping) {
            (void)close(result);
        } else if (is_full(acceptor)) {
            keep_waiting(acceptor, result);
        } else {
            acceptor->backoff_ns = BACKOFF_FIRST_NS;
            hand_over(acceptor, result);
        }
        if (!acceptor->stopping && (acceptor->waiting_count != 0 || is_full(acceptor))) {
            cancel(acceptor);
            pause_accept(acceptor, true);
        }
    } else if (result == -EMFILE || result == -ENFILE || result == -ENOBUFS || result == -ENOMEM) {
        pause_accept(acceptor, false);
    }
    if (acceptor->stopping)
        domi_acceptor_cancelled(acceptor);
    else if (!acceptor->armed && !domi_wheel_armed(&acceptor->timer.node))
        arm(acceptor); /* ECONNABORTED and the like, or a multishot that ended by itself */
}

/* Nothing is in flight: who comes now is refused, and does not wait for a drain to end. */
static void close_listener(domi_acceptor *acceptor)
{
    while (acceptor->waiting_count != 0)
        (void)close(acceptor->waiting[--acceptor->waiting_count]);
    domi_memory_free(acceptor->waiting);
    acceptor->waiting = NULL;
    acceptor->waiting_room = 0;
    if (acceptor->fd >= 0)
        (void)close(acceptor->fd);
    acceptor->fd = -1;
}

/* The accept or its cancel has come back: a stopping acceptor may have nothing in flight now. */
void domi_acceptor_cancelled(domi_acceptor *acceptor)
{
    domi_house *house = acceptor->house;

    if (!acceptor->stopping || acceptor->armed || acceptor->cancelling)
        return;
    close_listener(acceptor);
    if (house->state == DOMI_WAITING)
        domi_house_ready(acceptor->io->manager, house);
}

uint32_t domi_acceptor_stop(domi_acceptor *acceptor)
{
    acceptor->stopping = true;
    domi_wheel_cancel(&acceptor->io->wheel, &acceptor->timer.node);
    cancel(acceptor);
    if (acceptor->armed || acceptor->cancelling)
        return 1;
    close_listener(acceptor);
    return 0;
}

static int mount(domus_stack *stack, void *self)
{
    domi_acceptor *acceptor = *(domi_acceptor **)self;
    domi_io *io = stack->manager->io;
    domi_channels *set = domi_memory_new(sizeof *set);
    uint32_t slot = 0;

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
    acceptor->timer.of_acceptor = true;
    domi_wheel_node_init(&acceptor->timer.node);
    io->acceptors[slot] = acceptor;
    set->acceptor = acceptor;
    acceptor->house->channels.set = set;
    arm(acceptor);
    return 0;
}

static void stop(domus_stack *stack, void *self)
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
    .on_stop = stop,
};
