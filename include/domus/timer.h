/* Timers: events that an actor sends to itself later.
 *
 * They do not keep an actor alive: it cancels them when it stops. Each is paid for when it is
 * armed, so its event always comes. Ticks are 1 ms; a timer is never early.
 *
 * What the payload owns is the timer's from when it was armed, and is released when the timer ends:
 * it was cancelled, its actor stopped or began anew, or it fired once and its event was handled
 * (unless the handler took it). A periodic timer shows the same payload each time, so it cannot be
 * taken: domus_take() returns -EPERM.
 *
 * Thread-safety of all functions here: only from within a handler, with the stack it was given. */
#ifndef DOMUS_TIMER_H
#define DOMUS_TIMER_H

#include <domus/actor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A timer that was armed; by value; a stale one is harmless. */
typedef struct domus_timer {
    struct domi_timer *timer;
    uint32_t generation;
} domus_timer;

/* Bytes in the payload of a timer's event. */
#define DOMUS_TIMER_PAYLOAD_MAX 24u

/* Send the event `type` to oneself, once, not before `delay_ns` from domus_now_ns(). `ret_timer`
 * may be NULL.
 *
 * Returns 0; -ENOMEM; -ENOBUFS at scheduler.timersMax; -EMSGSIZE. */
DOMUS_API int domus_after(domus_stack *stack, uint64_t delay_ns, const domus_type *type,
                          const void *payload, domus_timer *ret_timer);

/* At a fixed rate: every `period_ns` (at least 1 ms), counted from the first. One event is under
 * way at most; the ticks that pass meanwhile are counted, not queued: domus_timer_missed().
 * Returns as domus_after(); -EINVAL for a shorter period. */
DOMUS_API int domus_every(domus_stack *stack, uint64_t period_ns, const domus_type *type,
                          const void *payload, domus_timer *ret_timer);

/* With a fixed delay: `delay_ns` (at least 1 ms) after the last event was handled. Returns as
 * domus_every(). */
DOMUS_API int domus_repeat(domus_stack *stack, uint64_t delay_ns, const domus_type *type,
                           const void *payload, domus_timer *ret_timer);

/* Cancel: its event is not handled after this, even when it was under way. Only the actor that
 * armed it. Returns 0; -ENOENT when it had been handled or cancelled. */
DOMUS_API int domus_timer_cancel(domus_stack *stack, domus_timer timer);

/* The ticks of domus_every() that passed while the event now being handled was under way; 0 outside
 * of one. */
DOMUS_API uint64_t domus_timer_missed(const domus_stack *stack);

#ifdef __cplusplus
}
#endif

#endif
