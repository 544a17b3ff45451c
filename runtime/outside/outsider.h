/* Parts that the verbs of outsiders have in common: how they enter the seat and leave it. Only the
 * thread that sits there gets in. */
#ifndef DOMI_RUNTIME_OUTSIDE_OUTSIDER_H
#define DOMI_RUNTIME_OUTSIDE_OUTSIDER_H

#include "house/conversation/stack.h"
#include "runtime/outside/seat.h"
#include "runtime/outside/visit.h"

/* The seat on whose manager the conversation runs. */
static inline domus_outsider *domi_outsider_of(const domus_stack *stack)
{
    return (domus_outsider *)(void *)stack->manager;
}

/* Enter the seat. Returns 0; -ECHILD; -EPERM; -EDEADLK; -ESHUTDOWN. On failure nothing is locked,
 * and domi_outsider_leave() must not be called. */
int domi_outsider_enter(domus_outsider *seat, domi_visit *ret_visit);

/* Do the same as domi_outsider_enter(), for a verb that an actor which was stopped does not have
 * any more: it also returns -ESTALE. */
int domi_outsider_enter_alive(domus_outsider *seat, domi_visit *ret_visit);

/* Do the same as domi_outsider_enter_alive(), for a verb that sends. While memory is short it
 * returns -EBUSY, as for all foreign threads. */
int domi_outsider_enter_to_send(domus_outsider *seat, domi_visit *ret_visit);

/* Leave the seat. domi_outsider_leave_unlocked() is for a seat that was closed meanwhile. */
void domi_outsider_leave(domus_outsider *seat, const domi_visit *visit);
void domi_outsider_leave_unlocked(const domi_visit *visit);

/* Make a stack in the caller's frame, for a verb that does not wait. It has the message that was
 * received last; domi_outsider_end_verb() takes that back. Inside. */
void domi_outsider_begin_verb(domus_outsider *seat, domus_stack *stack);
void domi_outsider_end_verb(domus_outsider *seat, domus_stack *stack);

/* The message that was received last is done with. Inside. */
void domi_outsider_end_shown(domus_outsider *seat);

/* Returns the place that was paid for when this watch was made; NULL: there is none. Inside. */
domi_outside_mail *domi_outsider_find_spare(const domus_outsider *seat, const void *watch);

/* The thread that stops the system leaves the seats on which it sits. */
void domi_outsiders_detach_own(domus_system *system);

#endif
