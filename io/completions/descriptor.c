/* Implements the verbs of domus/descriptor.h. The event of a watch is embedded in its record, so it
 * never fails for lack of memory. If the actor changes the events of a watch, its poll is cancelled
 * and then armed again. */
#include "io/completions/descriptor.h"

#include "base/check.h"
#include "house/conversation/notes.h"
#include "house/conversation/ringless.h"
#include "house/conversation/stack.h"
#include "house/message/link.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"

#include <domus/descriptor.h>

#include <errno.h>
#include <string.h>

const domus_type domus_ready_type = {.name = "ready", .size = sizeof(domus_ready)};

struct domi_descriptor {
    /* the watch's event, which tells the actor what the descriptor is ready for */
    domi_envelope event;
    domi_descriptor *next; /* next watch in the list of the io's watches whose poll is armed */
    DOMI_KEEP_PLACE(8) domi_house *house; /* the house of the actor that watches the descriptor */
    int fd;                               /* the watched descriptor, which belongs to the user */
    uint32_t events;                      /* events for which the watch waits, bits of poll(2) */
    /* generation of the watch, which grows when it is freed, so that old handles are stale */
    _Atomic uint32_t generation;
    bool armed;      /* a poll of the watch is in the ring */
    bool cancelling; /* the watch's poll in the ring is being cancelled */
    bool under_way;  /* the watch's event is in the mailbox or is being handled */
    /* the watch was taken back; it is freed when neither its poll nor its event is under way */
    bool cancelled;
    bool failed; /* the watch's event carries an error: when it was handled, the watch is freed */
    bool noted; /* the watch was begun by a lent actor: home arms its poll when the house is back */
    /* address of the pointer to this watch in the list of armed ones, while it is armed */
    DOMI_KEEP_PLACE(8) domi_descriptor **place;
    DOMI_AT_LINK domi_link link; /* link of the watch in its house's list `attached` */
};

static_assert(sizeof(domi_descriptor) == 128, "two cache lines");
static_assert(offsetof(domi_descriptor, link) == DOMI_LINK_OFFSET, "as a timer's");
static_assert(sizeof(domus_ready) <= sizeof(((domi_envelope *)NULL)->payload), "inline");

/* Returns the user_data of the poll of a descriptor watch. */
static uint64_t make_user_data_of_watch(const domi_descriptor *descriptor)
{
    return (uint64_t)DOMI_OP_DESCRIPTOR << 56 | (uintptr_t)descriptor;
}

static domi_io *get_io_of_watch(const domi_descriptor *descriptor)
{
    return descriptor->house->home->io; /* the field home->io is constant while threads run */
}

static void send_ready_event(domi_descriptor *descriptor, uint32_t events, int error)
{
    const domus_ready ready = {.fd = descriptor->fd, .events = events, .error = error};
    domus_address address = domi_house_get_address(descriptor->house);

    memcpy(descriptor->event.payload, &ready, sizeof ready);
    descriptor->under_way = true;
    descriptor->failed = error != 0;
    int result = domi_mailbox_put(get_io_of_watch(descriptor)->manager, address,
                                  &descriptor->event.node, DOMI_EVENT);
    /* the put of the watch's event cannot fail, because a house takes its watches back before it
     * ends */
    DOMI_CHECK(result == 0);
}

static void add_watch_to_armed_list(domi_io *io, domi_descriptor *descriptor)
{
    descriptor->armed = true;
    descriptor->place = &io->watched;
    descriptor->next = io->watched;
    if (descriptor->next != NULL)
        descriptor->next->place = &descriptor->next;
    io->watched = descriptor;
}

static void remove_watch_from_armed_list(domi_descriptor *descriptor)
{
    *descriptor->place = descriptor->next;
    if (descriptor->next != NULL)
        descriptor->next->place = descriptor->place;
    descriptor->armed = descriptor->cancelling = false;
}

/* Arm the poll of a watch. If the ring has failed, the poll would never complete, so the actor is
 * told at once. */
static void arm_poll_of_watch(domi_descriptor *descriptor)
{
    domi_io *io = get_io_of_watch(descriptor);

    if (io->failed != 0) {
        send_ready_event(descriptor, 0, io->failed);
        return;
    }
    add_watch_to_armed_list(io, descriptor);
    io->backend->poll_once(io->ring, descriptor->fd, descriptor->events,
                           make_user_data_of_watch(descriptor));
}

static void cancel_poll_of_watch(domi_descriptor *descriptor)
{
    domi_io *io = get_io_of_watch(descriptor);

    if (!descriptor->armed || descriptor->cancelling)
        return;
    descriptor->cancelling = true;
    io->backend->cancel(io->ring, descriptor->fd, make_user_data_of_watch(descriptor),
                        DOMI_OP_IGNORED);
}

static void take_watch_back(domi_descriptor *descriptor)
{
    descriptor->cancelled = true;
    domi_link_detach_from_house(descriptor->house, &descriptor->link);
    cancel_poll_of_watch(descriptor);
}

/* Returns the generation of a watch. Relaxed, as is the store of it: an actor's own watches end in
 * its own runs, so it sees their generations in order. With a stale handle it may read a record
 * that belongs to another thread by now, and then finds another generation. */
static uint32_t get_generation_of_watch(const domi_descriptor *descriptor)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&descriptor->generation,
                                memory_order_relaxed);
}

/* Free a watch that was taken back, or arm it again, unless its poll or its event is still under
 * way. */
static void free_or_rearm_watch(domi_descriptor *descriptor)
{
    if (descriptor->armed || descriptor->under_way || descriptor->noted)
        return;
    if (!descriptor->cancelled && !descriptor->failed) {
        arm_poll_of_watch(descriptor);
        return;
    }
    if (!descriptor->cancelled)
        take_watch_back(descriptor);
    atomic_fetch_add_explicit(&descriptor->generation, 1, memory_order_relaxed);
    domi_pool_free_object(get_io_of_watch(descriptor)->manager, &descriptor->event.node);
}

void domi_descriptor_handle_poll_result(domi_io *io, domi_descriptor *descriptor, int result)
{
    bool again = descriptor->cancelling;

    DOMI_CHECK(get_io_of_watch(descriptor) == io && descriptor->armed);
    remove_watch_from_armed_list(descriptor);
    if (!descriptor->cancelled && !(result == -ECANCELED && again))
        send_ready_event(descriptor, result >= 0 ? (uint32_t)result : 0, result < 0 ? result : 0);
    free_or_rearm_watch(descriptor);
}

void domi_descriptors_tell_ring_failed(domi_io *io)
{
    while (io->watched != NULL)
        domi_descriptor_handle_poll_result(io, io->watched, io->failed);
}

void domi_descriptor_free_or_rearm_watch(domi_manager *manager, domi_node *node)
{
    domi_descriptor *descriptor = (domi_descriptor *)(void *)node;

    (void)manager;
    descriptor->under_way = false;
    free_or_rearm_watch(descriptor);
}

void domi_descriptor_cancel_watch(domi_manager *manager, domi_node *node)
{
    domi_descriptor *descriptor = (domi_descriptor *)(void *)node;

    (void)manager;
    /* if the watch's event is in the mailbox, it is not handled when it comes */
    descriptor->event.error = -ECANCELED;
    take_watch_back(descriptor);
    free_or_rearm_watch(descriptor);
}

void domi_descriptor_arm_noted_watch(domi_manager *home, domi_node *node)
{
    domi_descriptor *descriptor = (domi_descriptor *)(void *)node;

    (void)home;
    descriptor->noted = false;
    free_or_rearm_watch(descriptor);
}

int domus_watch_fd(domus_stack *stack, int fd, uint32_t events, domus_fd_watch *ret_watch)
{
    domi_manager *manager = stack->manager;
    domi_house *house = domi_stack_get_house(stack);
    domi_io *io = house->home->io; /* the field home->io is constant while threads run */
    bool is_lent = domi_house_is_run_by_thief(manager, house);

    if (fd < 0)
        return -EBADF;
    if (io == NULL || io->backend->poll_once == NULL || io->backend->is_simulated)
        return domi_refuse_verb_without_ring(stack);
    /* a thief may not read the io of home: home tells the actor later that the ring has failed */
    if (!is_lent && io->failed != 0)
        return io->failed;
    domi_descriptor *descriptor = domi_pool_take_object(manager, DOMI_SLAB_DESCRIPTOR);
    if (descriptor == NULL)
        return -ENOMEM;
    descriptor->event.type = &domus_ready_type;
    descriptor->event.sender = NULL;
    descriptor->event.error = 0;
    descriptor->house = house;
    descriptor->fd = fd;
    descriptor->events = events;
    descriptor->armed = descriptor->cancelling = false;
    descriptor->under_way = descriptor->cancelled = descriptor->failed = false;
    domi_link_attach_to_house(house, &descriptor->link);
    /* a house with a watch is not lent, because the poll is in the ring of its home */
    house->marks |= DOMI_MARK_PINNED;
    descriptor->noted = is_lent;
    if (descriptor->noted)
        domi_note_leave_for_home(manager, &descriptor->event.node);
    else
        arm_poll_of_watch(descriptor);
    if (ret_watch != NULL)
        *ret_watch = (domus_fd_watch){descriptor, get_generation_of_watch(descriptor)};
    return 0;
}

static domi_descriptor *find_watch_by_handle(const domus_stack *stack, domus_fd_watch watch)
{
    domi_descriptor *descriptor = watch.descriptor;

    if (descriptor == NULL || get_generation_of_watch(descriptor) != watch.generation ||
        descriptor->house != domi_stack_get_house(stack) || descriptor->cancelled)
        return NULL;
    return descriptor;
}

int domus_fd_change(domus_stack *stack, domus_fd_watch watch, uint32_t events)
{
    domi_descriptor *descriptor = find_watch_by_handle(stack, watch);

    if (descriptor == NULL || descriptor->failed)
        return -ENOENT;
    descriptor->events = events;
    /* the watch's poll is armed again when its cancel has come back */
    cancel_poll_of_watch(descriptor);
    return 0;
}

int domus_unwatch_fd(domus_stack *stack, domus_fd_watch watch)
{
    domi_descriptor *descriptor = find_watch_by_handle(stack, watch);

    if (descriptor == NULL)
        return -ENOENT;
    descriptor->event.error = -ECANCELED;
    take_watch_back(descriptor);
    free_or_rearm_watch(descriptor);
    return 0;
}
