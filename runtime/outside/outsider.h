/* Helpers for the functions of outsiders (domus/outsider.h): how a thread enters and leaves its
 * seat (seat.h). Only the thread that sits on the seat can enter. */
#ifndef DOMI_RUNTIME_OUTSIDE_OUTSIDER_H
#define DOMI_RUNTIME_OUTSIDE_OUTSIDER_H

#include "house/conversation/stack.h"
#include "runtime/outside/seat.h"
#include "runtime/outside/visit.h"

/* Returns the seat of the outsider whose conversation this is. */
static inline domus_outsider *domi_outsider_of_stack(const domus_stack *stack)
{
    return (domus_outsider *)(void *)stack->manager;
}

/* Enter a seat: lock it for the calling thread, which must be its owner. Returns 0; -ECHILD;
 * -EPERM; -EDEADLK; -ESHUTDOWN. On failure nothing is locked, and domi_outsider_leave_seat() must
 * not be called. */
int domi_outsider_enter_seat(domus_outsider *seat, domi_visit *ret_visit);

/* Enter a seat as domi_outsider_enter_seat() does, but if its actor has ended, return -ESHUTDOWN
 * when the system stops, otherwise -ESTALE. */
int domi_outsider_enter_seat_if_alive(domus_outsider *seat, domi_visit *ret_visit);

/* Enter a seat as domi_outsider_enter_seat_if_alive() does, for a function that sends: while memory
 * is short it returns -EBUSY, as for all foreign threads. */
int domi_outsider_enter_seat_to_send(domus_outsider *seat, domi_visit *ret_visit);

/* Leave a seat, and unlock it. domi_outsider_leave_unlocked_seat() is for a seat that was closed
 * meanwhile, which is not locked any more. */
void domi_outsider_leave_seat(domus_outsider *seat, const domi_visit *visit);
void domi_outsider_leave_unlocked_seat(const domi_visit *visit);

/* Make a stack in the caller's frame, for a verb that does not wait. The stack gets the message
 * that the outsider has received last; domi_outsider_end_stack_of_verb() gives the message back to
 * the seat. The caller has locked the seat. */
void domi_outsider_begin_stack_of_verb(domus_outsider *seat, domus_stack *stack);
void domi_outsider_end_stack_of_verb(domus_outsider *seat, domus_stack *stack);

/* End the message that the outsider has received last: an ask that was not answered fails with
 * -ENOMSG. The caller has locked the seat. */
void domi_outsider_end_received_message(domus_outsider *seat);

/* Returns the place for an event that was allocated together with the watch `watch`; NULL: there
 * is none. The caller has locked the seat. */
domi_outside_mail *domi_outsider_find_event_place_of_watch(const domus_outsider *seat,
                                                           const void *watch);

/* Detach the calling thread, which stops the system, from all seats of the system on which it
 * sits. */
void domi_outsiders_detach_calling_thread(domus_system *system);

#endif
