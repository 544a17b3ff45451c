/* Actors: messages, behaviours, and what a handler may do.
 *
 * Unstable for now: names and layouts may change until 1.0.
 *
 * An actor is a behaviour (a constant table of functions) and its private state. It handles one
 * message at a time, so its handlers need no locks. Each handler gets a `domus_stack *` first: who
 * runs, where, in which conversation. A stack is valid until the handler returns; it is never kept
 * and never used by another thread.
 *
 * Order: messages of one sender to one receiver are handled in the order they were sent, within
 * each kind (replies, exceptions, asks, notices, events). Across kinds there is no order: a run
 * takes replies first, then exceptions, asks, notices, events.
 *
 * Thread-safety of all functions here that take a `domus_stack *`: only from within a handler, with
 * the stack it was given. Foreign threads use `domus_outside_*` (domus/system.h). */
#ifndef DOMUS_ACTOR_H
#define DOMUS_ACTOR_H

#include <domus/export.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One conversation that an actor is having. */
typedef struct domus_stack domus_stack;

/* Who to send to: a house and its lease. By value; copying is free; a stale one answers -ESTALE
 * and never reaches the slot's next actor. `(domus_address){0}` is nobody. */
typedef struct domus_address {
    struct domi_house *house;
    uint32_t lease;
} domus_address;

/* What a message is: one constant per type, compared by its address. */
typedef struct domus_type {
    const char *name;
    uint32_t size;               /* of the payload, 0..DOMUS_PAYLOAD_MAX bytes; copied when sent */
    void (*drop)(void *payload); /* frees what a payload owns that no handler took; any thread */
} domus_type;

/* Bytes in one payload. Up to 24 (ask: 64) are inline in the smallest envelope, up to 1 KiB is
 * pooled, more is allocated. Send larger things by pointer, with a `drop`. */
#define DOMUS_PAYLOAD_MAX 65535u

/* What a handler returns when it waits; only domus_ask() and its like make it. */
#define DOMUS_PARKED 1

/* Handle one message. `self` is the actor's state, `payload` the message's: aligned to 8 bytes, and
 * valid until the return or until domus_reply(), whichever is first.
 *
 * Returns 0: done (an ask that was not answered by then fails with -ENOMSG); DOMUS_PARKED (as
 * domus_ask() returned it): go on later; a negative errno: an ask fails with it, a notice or event
 * is counted as a failure of the actor. Never ends the loop. */
typedef int domus_handler(domus_stack *stack, void *self, const void *payload);

/* What came of an ask. */
typedef struct domus_answer {
    int error;              /* 0, or a negative errno: the exception; then there is no payload */
    const domus_type *type; /* of the reply; NULL with an error */
    const void *payload;    /* valid until the resumed function returns */
} domus_answer;

/* Go on with a conversation. Returns as a domus_handler does. */
typedef int domus_resumed(domus_stack *stack, void *self, const domus_answer *answer);

/* A row of a behaviour: which function takes which type, be it ask, notice or event. */
typedef struct domus_on {
    const domus_type *type;
    domus_handler *handle;
    uint32_t frame_size; /* bytes that domus_frame() gives, 0..DOMUS_FRAME_MAX; zeroed */
} domus_on;

#define DOMUS_FRAME_MAX 768u

typedef enum domus_kind {
    DOMUS_STATE,    /* business logic: phase 3, within the deadline */
    DOMUS_CHANNELS, /* owns connections: phase 2; never leaves its thread */
} domus_kind;

struct domus_channel;
struct domus_buffer;

/* What an actor is. Constant for the life of the system. All functions may be NULL. */
typedef struct domus_behaviour {
    const char *name;
    domus_kind kind;
    uint32_t state_size; /* bytes of private state, 0..1 MiB; 16 fit into the house */
    const domus_on *on;  /* the rows, up to one whose type is NULL */

    /* Runs once, before the first message. A negative errno ends the actor (no on_stop). */
    int (*on_mount)(domus_stack *stack, void *self);

    /* Runs once, last: give back what the state owns. */
    void (*on_stop)(domus_stack *stack, void *self);

    /* Channels actors only; domus/channel.h says when each is called. */
    int (*on_open)(domus_stack *stack, void *self, struct domus_channel *channel);
    int (*on_read)(domus_stack *stack, void *self, struct domus_channel *channel,
                   struct domus_buffer *bytes);
    int (*on_end)(domus_stack *stack, void *self, struct domus_channel *channel);
    void (*on_close)(domus_stack *stack, void *self, struct domus_channel *channel, int error);
} domus_behaviour;

/* The address of the actor that runs. */
DOMUS_API domus_address domus_self(const domus_stack *stack);

/* Who sent the message that is being handled: nobody for events and messages from outside. */
DOMUS_API domus_address domus_sender(const domus_stack *stack);

/* The locals of this conversation: `frame_size` zeroed bytes of the row that began it, NULL when
 * it names none. They stay while the conversation parks; their address may change then. */
DOMUS_API void *domus_frame(domus_stack *stack);

/* Nanoseconds on the thread's clock, read when the phase began: cheap, and the same for a run. */
DOMUS_API uint64_t domus_now_ns(const domus_stack *stack);

/* Send one way. The payload (type->size bytes; NULL when 0) is copied; what it owns goes with it
 * only when this returns 0.
 *
 * Returns 0; -ESTALE when the actor is gone; -ENOBUFS when its mailbox is full
 * (scheduler.mailboxMax); -ENOMEM; -EMSGSIZE. */
DOMUS_API int domus_notice(domus_stack *stack, domus_address to, const domus_type *type,
                           const void *payload);

/* Ask, and suspend: `return domus_ask(...)` is one step. `then` resumes the conversation with the
 * answer, on this actor, interleaved with its other conversations (but see domus_barrier()).
 *
 * A failed ask resumes too: errors as of domus_notice(), what the other side's handler returned,
 * -ENOMSG when it ended without an answer, -ESTALE when it stopped before.
 * Returns DOMUS_PARKED; -ENOMEM when nothing could be kept; -EMSGSIZE; -EBUSY when this stack
 * already waits. */
DOMUS_API int domus_ask(domus_stack *stack, domus_address to, const domus_type *type,
                        const void *payload, domus_resumed *then);

/* Answer the ask that this conversation handles; what the payload owns goes with it.
 *
 * Returns 0; -EINVAL when this is no ask; -EALREADY when it was answered; -EMSGSIZE. A reply that
 * cannot be kept for want of memory reaches the asker as -ENOMEM (and its payload is dropped). */
DOMUS_API int domus_reply(domus_stack *stack, const domus_type *type, const void *payload);

/* Until this conversation ends, the actor takes only replies, exceptions and events (and what its
 * channels bring); asks and notices wait in order and run then. Who waits under a barrier for an
 * actor that asks this one waits for ever.
 *
 * Returns 0; -EALREADY when it is raised by this conversation; -EBUSY by another. */
DOMUS_API int domus_barrier(domus_stack *stack);

/* Make an actor. Its state begins as a copy of `state` (behaviour->state_size bytes), or zeroed
 * when that is NULL. It lives on the thread of the actor that makes it; on_mount runs there before
 * its first message, which may be sent at once.
 *
 * Returns 0; -EINVAL for a wrong behaviour; -ENOMEM; -ESHUTDOWN when the system stops. */
DOMUS_API int domus_spawn(domus_stack *stack, const domus_behaviour *behaviour, const void *state,
                          domus_address *ret_address);

/* Stop an actor (also oneself): it handles at most one more ask or notice, finishes the
 * conversations it has, closes its channels, runs on_stop, and is gone; mail that it did not
 * handle fails (asks, -ESTALE) or is a dead letter.
 *
 * Returns 0, also when it stops already; -ESTALE when it is gone. */
DOMUS_API int domus_stop(domus_stack *stack, domus_address address);

/* A timer that was armed; by value; a stale one is harmless. */
typedef struct domus_timer {
    struct domi_timer *timer;
    uint32_t generation;
} domus_timer;

/* Bytes in the payload of a timer's event. */
#define DOMUS_TIMER_PAYLOAD_MAX 24u

/* Send the event `type` to oneself, once, not before `delay_ns` from domus_now_ns() (ticks of 1
 * ms), or every `period_ns` (at least 1 ms) at a fixed rate. A periodic timer has one event under
 * way; the ticks that pass meanwhile are counted, not queued: domus_timer_missed(). `ret_timer` may
 * be NULL.
 *
 * Returns 0; -ENOMEM; -ENOBUFS at scheduler.timersMax; -EMSGSIZE; -EINVAL. */
DOMUS_API int domus_after(domus_stack *stack, uint64_t delay_ns, const domus_type *type,
                          const void *payload, domus_timer *ret_timer);
DOMUS_API int domus_every(domus_stack *stack, uint64_t period_ns, const domus_type *type,
                          const void *payload, domus_timer *ret_timer);

/* Cancel: its event is not handled after this, even when it was under way. Only the actor that
 * armed it. Returns 0; -ENOENT when it had been handled or cancelled. */
DOMUS_API int domus_timer_cancel(domus_stack *stack, domus_timer timer);

/* The ticks that passed while the event now being handled was under way; 0 outside of one. */
DOMUS_API uint64_t domus_timer_missed(const domus_stack *stack);

#ifdef __cplusplus
}
#endif

#endif
