/* This file attaches and detaches foreign threads that are actors (domus/outsider.h).
 *
 * The actor has one conversation that lasts as long as it does: a receive that takes nothing. So
 * asks and notices stay in their mailboxes, as the mark RECEIVING says, and only replies,
 * exceptions and events have runs. A receive of the thread takes messages out of the mailboxes
 * itself (domi_receive_take_matching_message()); answers and events have lists of their own
 * (seat.h). */
#include "runtime/outside/outsider.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/conversation/asks.h"
#include "house/conversation/receive.h"
#include "house/conversation/take.h"
#include "house/conversation/turn.h"
#include "house/dispatch/phases.h"
#include "house/family/birth.h"
#include "house/family/watch.h"
#include "house/message/owned.h"
#include "house/message/pool.h"
#include "house/message/stop.h"
#include "runtime/outside/visit.h"

#include <errno.h>
#include <string.h>

/* --- behaviour of the actor ------------------------------------------------------------------- */

static const domus_type *const no_types[] = {NULL};
static const domus_pattern nothing = {.types = no_types};

/* Handle the end of the outsider's receive that takes nothing, which comes only when the actor
 * ends. */
static int on_end_of_receive_do_nothing(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)stack, (void)self, (void)answer;
    return 0;
}

static int on_mount_receive_nothing(domus_stack *stack, void *self)
{
    (void)self;
    return domus_receive(stack, &nothing, on_end_of_receive_do_nothing);
}

/* Returns the place for an event that was allocated together with the watch `watch`; NULL: there
 * is none. */
domi_outside_mail *domi_outsider_find_event_place_of_watch(const domus_outsider *seat,
                                                           const void *watch)
{
    domi_outside_mail *mail = seat->spares.first;

    while (mail != NULL && mail->watch.watch != watch)
        mail = mail->next;
    return mail;
}

/* Allocate a place in the seat for an event that does not come from a watch, as long as the
 * limit on such events allows. Returns 0; -ENOBUFS; -ENOMEM. */
static int make_place_for_event(domus_outsider *seat, uint32_t bytes, domi_outside_mail **ret_mail)
{
    uint32_t own_max = domi_house_own_mail_bound(seat->address.house);

    if (seat->events_count >= (own_max != 0 ? own_max : seat->detached.manager.limits.mailbox_max))
        return -ENOBUFS;
    domi_outside_mail *mail = domi_memory_new(sizeof *mail + bytes);
    if (mail == NULL)
        return -ENOMEM;
    mail->counted = true;
    seat->events_count++;
    *ret_mail = mail;
    return 0;
}

/* Handle an event of the outsider's actor: keep it in the seat's list until the owner receives
 * it. */
static int on_event_store_it_in_seat(domus_stack *stack, void *self, const void *payload)
{
    domus_outsider *seat = domi_outsider_of_stack(stack);
    const domus_type *type = stack->message->type;
    domi_outside_mail *mail = domi_outsider_find_event_place_of_watch(seat, stack->message);
    bool owns = type->release != NULL;

    (void)self;
    if (owns && domus_take(stack) != 0)
        return -EOPNOTSUPP;
    if (mail != NULL) {
        domi_outside_mail_remove_from_list(&seat->spares, mail);
    } else {
        int result = make_place_for_event(seat, type->size, &mail);
        if (result != 0) {
            if (owns)
                type->release((void *)(uintptr_t)payload);
            return result;
        }
    }
    if (type->size != 0)
        memcpy(mail->payload, payload, type->size);
    mail->owned = owns;
    mail->message = (domus_outside_message){
        .kind = DOMUS_OUTSIDE_EVENT,
        .type = type,
        .payload = mail->payload,
    };
    domi_outside_mail_add_to_list(&seat->events, mail);
    return 0;
}

static const domus_behaviour behaviour = {
    .name = "outsider",
    .kind = DOMUS_STATE,
    .state_size = sizeof(void *),
    .on_mount = on_mount_receive_nothing,
    /* the first row is needed, because a link (domus/supervise.h) asks for a row with the type of
     * its event */
    .on = (const domus_on[]){{&domus_down_type, on_event_store_it_in_seat, 0},
                             {NULL, on_event_store_it_in_seat, 0}},
};

/* --- entering a seat -------------------------------------------------------------------------- */

/* Enter a seat: lock it for the calling thread, which must be its owner. Returns 0; -ECHILD;
 * -EPERM; -EDEADLK; -ESHUTDOWN. On failure nothing is locked, and domi_outsider_leave_seat() must
 * not be called. */
int domi_outsider_enter_seat(domus_outsider *seat, domi_visit *ret_visit)
{
    domus_system *system = seat->detached.system;

    if (domi_system_is_forked(system))
        return -ECHILD;
    /* Relaxed: only the thread that sits on the seat writes its own mark, so no other thread
     * finds its mark here. */
    if (atomic_load_explicit(&seat->owner, memory_order_relaxed) != &domi_here)
        return -EPERM;
    if (seat->acting)
        return -EDEADLK;
    const domus_allocator *before = domi_memory_set_allocator(system->hooks.allocator);
    domi_meter *counted_before = domi_memory_set_meter(&system->pressure.meter);
    *ret_visit = (domi_visit){before, counted_before};
    if (domi_seat_lock(seat))
        return 0;
    (void)domi_memory_set_meter(counted_before);
    (void)domi_memory_set_allocator(before);
    return -ESHUTDOWN;
}

void domi_outsider_leave_unlocked_seat(const domi_visit *visit)
{
    (void)domi_memory_set_meter(visit->counted_before);
    (void)domi_memory_set_allocator(visit->before);
}

void domi_outsider_leave_seat(domus_outsider *seat, const domi_visit *visit)
{
    domi_pool_push_chains_to_owners(&seat->detached.manager);
    domi_seat_unlock(seat);
    domi_outsider_leave_unlocked_seat(visit);
}

/* Enter a seat as domi_outsider_enter_seat() does, but if its actor has ended, return -ESHUTDOWN
 * when the system stops, otherwise -ESTALE. */
int domi_outsider_enter_seat_if_alive(domus_outsider *seat, domi_visit *ret_visit)
{
    int result = domi_outsider_enter_seat(seat, ret_visit);

    if (result != 0 || !domi_seat_has_actor_ended(seat))
        return result;
    result = domi_seat_must_actor_stop(seat) ? -ESHUTDOWN : -ESTALE;
    domi_outsider_leave_seat(seat, ret_visit);
    return result;
}

/* Enter a seat as domi_outsider_enter_seat_if_alive() does, for a function that sends: while memory
 * is short it returns -EBUSY, as for all foreign threads. */
int domi_outsider_enter_seat_to_send(domus_outsider *seat, domi_visit *ret_visit)
{
    domi_pressure *pressure = &seat->detached.system->pressure;
    int result = domi_outsider_enter_seat_if_alive(seat, ret_visit);

    if (result != 0)
        return result;
    if (atomic_load_explicit(&pressure->own_level, memory_order_relaxed) == DOMUS_MEMORY_NORMAL) {
        seat->detached.manager.now_ns = domi_clock_now(&seat->detached.system->clock);
        return 0;
    }
    atomic_fetch_add_explicit(&pressure->outside_refused, 1, memory_order_relaxed);
    domi_outsider_leave_seat(seat, ret_visit);
    return -EBUSY;
}

/* Make a stack in the caller's frame, for a verb that does not wait. The stack gets the message
 * that the outsider has received last; domi_outsider_end_stack_of_verb() gives the message back to
 * the seat. */
void domi_outsider_begin_stack_of_verb(domus_outsider *seat, domus_stack *stack)
{
    domi_stack_begin_without_message(stack, &seat->detached.manager, seat->address.house);
    stack->received = seat->received;
    stack->answered = seat->answered;
}

void domi_outsider_end_stack_of_verb(domus_outsider *seat, domus_stack *stack)
{
    seat->received = stack->received;
    seat->answered = stack->answered;
    stack->received = NULL;
}

/* End the message that the outsider has received last: an ask that was not answered fails with
 * -ENOMSG. The caller has locked the seat. */
void domi_outsider_end_received_message(domus_outsider *seat)
{
    domi_manager *manager = &seat->detached.manager;
    domi_envelope *received = seat->received;
    domi_outside_mail *shown = seat->shown;

    seat->received = NULL;
    seat->shown = NULL;
    seat->answered = false;
    if (received != NULL && received->node.kind == DOMI_ASK)
        domi_ask_fail(manager, received, -ENOMSG);
    else if (received != NULL)
        domi_envelope_release_and_free(manager, received);
    if (shown != NULL)
        domi_outside_mail_free(manager, shown);
}

/* --- attaching and detaching ------------------------------------------------------------------ */

/* Check whether the calling thread may attach itself as an outsider. Returns 0; a negative errno
 * of domus_outside_attach(). */
static int check_thread_may_attach(domus_system *system, const domus_outsider_options *options)
{
    domi_visit visit;

    if (options != NULL && options->mailbox_max > UINT16_MAX)
        return -EINVAL;
    if (system->simulator != NULL)
        /* in a simulation nobody would serve the thread, because no step is taken while it waits */
        return -EOPNOTSUPP;
    if (domi_thread_manager != NULL && domi_thread_manager->system == system)
        return -EDEADLK;
    int result = domi_outside_enter(system, DOMI_LAST_TO_SPAWN, &visit);
    if (result == 0)
        domi_outside_leave(system, &visit);
    return result;
}

/* Spawn the outsider's actor on the seat, which the caller has locked. */
static int spawn_actor_of_outsider(domus_outsider *seat, const domus_outsider_options *options)
{
    domi_manager *manager = &seat->detached.manager;
    const domus_spawn_options spawn = {
        .mailbox_max = options != NULL ? options->mailbox_max : 0,
        .name = options != NULL ? options->name : NULL,
    };
    void *context = options != NULL ? options->context : NULL;

    int result = domi_house_spawn_child(manager, NULL, manager, &behaviour, &context, &spawn,
                                        &seat->address);
    if (result != 0)
        return result;
    /* Late mail of an earlier life may be in the slot, and the new actor is mounted only behind
     * that, so the seat is served until it is. */
    const domi_house *house = seat->address.house;
    do
        domi_seat_serve_once(seat, NULL);
    while (!domi_seat_has_actor_ended(seat) &&
           (house->state == DOMI_CREATED || house->state == DOMI_MOUNTING));
    return (house->marks & DOMI_MARK_RECEIVING) != 0 ? 0 : -ENOMEM;
}

int domus_outside_attach(domus_system *system, const domus_outsider_options *options,
                         domus_outsider **ret_outsider)
{
    int result = check_thread_may_attach(system, options);
    domus_outsider *seat;

    if (result != 0)
        return result;
    const domi_visit visit = {domi_memory_set_allocator(system->hooks.allocator),
                              domi_memory_set_meter(&system->pressure.meter)};
    result = domi_seat_attach_thread(system, &seat);
    if (result != 0) {
        domi_outsider_leave_unlocked_seat(&visit);
        return result;
    }
    result = spawn_actor_of_outsider(seat, options);
    if (result == 0)
        *ret_outsider = seat;
    else
        domi_seat_leave_to_caretaker(seat);
    domi_outsider_leave_seat(seat, &visit);
    return result;
}

int domus_outside_detach(domus_outsider *outsider)
{
    domi_visit visit;

    if (outsider == NULL)
        return 0;
    int result = domi_outsider_enter_seat(outsider, &visit);
    if (result == -ESHUTDOWN) {
        /* the seat is closed already, so domi_seats_fini() ends the message that was received
         * last */
        atomic_store_explicit(&outsider->owner, NULL, memory_order_relaxed);
        return 0;
    }
    if (result != 0)
        return result;
    domi_outsider_end_received_message(outsider);
    domi_seat_leave_to_caretaker(outsider);
    domi_outsider_leave_seat(outsider, &visit);
    return 0;
}

domus_address domus_outsider_address(const domus_outsider *outsider)
{
    return outsider->address;
}

void domi_outsiders_detach_calling_thread(domus_system *system)
{
    pthread_mutex_lock(&system->mutex);
    /* the number is read only once, because the list of detached actors and seats only grows */
    uint32_t count = system->detached_count;
    pthread_mutex_unlock(&system->mutex);

    for (uint32_t i = 0; i < count; i++) {
        domus_outsider *seat =
            system->detached[i]->foreign ? (domus_outsider *)(void *)system->detached[i] : NULL;
        /* Relaxed: only this thread writes its own mark into `owner`. */
        if (seat != NULL && atomic_load_explicit(&seat->owner, memory_order_relaxed) == &domi_here)
            (void)domus_outside_detach(seat);
    }
}
