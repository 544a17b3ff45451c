/* Timers: events that an actor sends to itself later.
 *
 * A timer does not keep its actor alive: when the actor stops, its timers are cancelled. The memory
 * of a timer's event is taken when the timer is armed, so its event always comes. Times are rounded
 * up to ticks of 1 ms; a timer is never early.
 *
 * Ownership: from the arming on, the timer owns what its payload owns. The library releases this
 * when the timer ends: when it was cancelled, its actor stopped or restarted, or it fired once and
 * its event was handled (unless the handler called domus_take()). A periodic timer shows the same
 * payload each time, so it cannot be taken: domus_take() returns -EPERM.
 *
 * A timer belongs to the actor that runs when it is armed. Each channel is an actor of its own
 * (domus/channel.h), also one that shares a state: the event comes to the channel that has armed
 * the timer, ends with it, and only that channel can cancel it.
 *
 * Thread-safety of all functions here: only from within a handler, with the stack that the handler
 * was given. */
#ifndef DOMUS_TIMER_H
#define DOMUS_TIMER_H

#include <domus/actor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A handle of a timer that was armed. It is used by value; a stale handle does no harm. */
typedef struct domus_timer {
    struct domi_timer *timer;
    uint32_t generation;
} domus_timer;

/* Most bytes of the payload of a timer's event. */
#define DOMUS_TIMER_PAYLOAD_MAX 24u

/* Send the event `type` to oneself, once, not before `delay_ns` from domus_now_ns(). `ret_timer`
 * may be NULL.
 *
 * Returns 0; -ENOMEM; -ENOBUFS when this thread has scheduler.timersMax timers; -EMSGSIZE for a
 * payload of more than DOMUS_TIMER_PAYLOAD_MAX bytes. After an error the caller still owns what the
 * payload owns. */
DOMUS_API int domus_after(domus_stack *stack, uint64_t delay_ns, const domus_type *type,
                          const void *payload, domus_timer *ret_timer);

/* Send the event `type` to oneself at a fixed rate: every `period_ns` (at least 1 ms), counted from
 * the first. At most one event is under way; further ones that would be due meanwhile are only
 * counted (domus_timer_missed()).
 *
 * Returns as domus_after(); -EINVAL for a shorter period. */
DOMUS_API int domus_every(domus_stack *stack, uint64_t period_ns, const domus_type *type,
                          const void *payload, domus_timer *ret_timer);

/* Send the event `type` to oneself again and again, each time `delay_ns` (at least 1 ms) after the
 * event before was handled. Returns as domus_every(). */
DOMUS_API int domus_repeat(domus_stack *stack, uint64_t delay_ns, const domus_type *type,
                           const void *payload, domus_timer *ret_timer);

/* Cancel a timer of this actor: its event is not handled after this, even if it was under way.
 * Returns 0; -ENOENT when the timer has ended, or belongs to another actor. */
DOMUS_API int domus_timer_cancel(domus_stack *stack, domus_timer timer);

/* Returns how many events of a timer of domus_every() were left out because the event that is
 * handled now was under way. Returns 0 if no such event is being handled. */
DOMUS_API uint64_t domus_timer_missed(const domus_stack *stack);

#ifdef __cplusplus
}
#endif

#endif
