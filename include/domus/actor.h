/* Actors: messages, behaviours, and what a handler may do.
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
 * Ownership: a payload is copied when it is sent, and what it points to goes with it: the message
 * owns that. A payload that owns something has a type with a `release`, and the library calls it,
 * however the message came, unless the handler took what is owned with domus_take():
 *
 * - for a notice, when its handler returns (also when it parks);
 * - for an ask, when its envelope leaves: with the reply (whose payload is copied first), when it
 *   fails, when its time was over before it was handled, or when nobody handled it. Until then its
 *   payload stays valid, also while the conversation waits and while the ask is kept;
 * - for an answer, when the step that was shown it returns; after domus_wait_all() for each of
 * them;
 * - for a message that was received (domus_receive() and its like), as for an answer, or as for an
 *   ask if it is one;
 * - for a timer's event, when the timer has ended: for one that fires once, when it was handled or
 *   cancelled; for a periodic one, when it was cancelled;
 * - for a publication, when the last member has handled it;
 * - for everything that is thrown away unhandled, there and then.
 *
 * A message that is forwarded, kept, put aside, or made an object (domus/message.h) takes along
 * what it owns. Whoever sends on a pointer out of a payload that was handled, in another message or
 * in a reply, takes it first; otherwise both messages would release the same.
 *
 * When a verb returns a negative errno, nothing was sent, and what the payload owns is still the
 * caller's. (An ask that was made, and then fails, has released it.) These consume it in every
 * case, because nobody could tell then what was done of the work, or act on it: domus_publish(),
 * domus_outside_publish(), domus_outside_ask(), and the macros DOMUS_ASK() and DOMUS_ASK_WITHIN().
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
    uint32_t size; /* of the payload, 0..DOMUS_PAYLOAD_MAX bytes; copied when sent */
    /* Frees what a payload owns, not the payload itself; NULL: it owns nothing. The library calls
     * it once for each message, unless a handler took what is owned ("Ownership" above). Any
     * thread; must not call domus_*. The payload may be a copy at another place than the sender's.
     */
    void (*release)(void *payload);
} domus_type;

/* Bytes in one payload. Up to 24 (ask: 64) are inline in the smallest envelope, up to 1 KiB is
 * pooled, more is allocated. Send larger things by pointer, with a `release`. */
#define DOMUS_PAYLOAD_MAX 65535u

/* What a handler returns when it waits; only domus_ask() and its like (domus/conversation.h) make
 * it. */
#define DOMUS_PARKED 1

/* Handle one message. `self` is the actor's state, `payload` the message's: aligned to 8 bytes, and
 * valid until the return (an ask's: until it is answered), or until the message is forwarded or put
 * aside, whichever is first.
 *
 * Returns 0: done (an ask that was not answered by then fails with -ENOMSG); DOMUS_PARKED (as
 * domus_ask() returned it): go on later; a negative errno: an ask fails with it, a notice or event
 * is counted as a failure of the actor. Never ends the loop. */
typedef int domus_handler(domus_stack *stack, void *self, const void *payload);

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
struct domus_supervision;

/* What an actor is. Constant for the life of the system. All functions may be NULL. */
typedef struct domus_behaviour {
    const char *name;
    domus_kind kind;
    uint32_t state_size; /* bytes of private state, 0..1 MiB; 16 fit into the house */
    const domus_on *on;  /* the rows, up to one whose type is NULL; its handler, if it has one,
                            takes what no other row does */

    /* Runs once, before the first message. A negative errno is a failure; without a supervisor that
     * restarts it, it ends the actor (no on_stop). An actor whose on_mount has failed is not
     * mounted: none of its functions is called (domus/supervise.h). */
    int (*on_mount)(domus_stack *stack, void *self);

    /* Runs once, last: give back what the state owns. */
    void (*on_stop)(domus_stack *stack, void *self);

    /* Channels actors only; domus/channel.h says when each is called. */
    int (*on_open)(domus_stack *stack, void *self, struct domus_channel *channel);
    int (*on_read)(domus_stack *stack, void *self, struct domus_channel *channel,
                   struct domus_buffer *bytes);
    int (*on_end)(domus_stack *stack, void *self, struct domus_channel *channel);
    void (*on_close)(domus_stack *stack, void *self, struct domus_channel *channel, int error);

    /* Runs once for each restart, instead of on_stop and on_mount: make the state as good as new.
     * `error` is why. A negative errno is a failure again. */
    int (*on_restart)(domus_stack *stack, void *self, int error);

    /* What it does about its children's failures (domus/supervise.h); NULL: nothing. */
    const struct domus_supervision *supervision;

    /* Bytes that domus_frame() gives to what on_mount begins, 0..DOMUS_FRAME_MAX; zeroed. */
    uint32_t mount_frame_size;
} domus_behaviour;

/* The address of the actor that runs. */
DOMUS_API domus_address domus_self(const domus_stack *stack);

/* Who sent the message that is being handled: nobody for events and messages from outside. */
DOMUS_API domus_address domus_sender(const domus_stack *stack);

/* The locals of this conversation: `frame_size` zeroed bytes of the row that began it, NULL when
 * it names none. They stay while the conversation parks, at the same address. */
DOMUS_API void *domus_frame(domus_stack *stack);

/* Nanoseconds on the thread's clock, read when the phase began: cheap, and the same for a run. */
DOMUS_API uint64_t domus_now_ns(const domus_stack *stack);

/* Take what the payload owns that this handler, or resumed function, was shown: the library will
 * not release it, so the actor has to. The payload itself stays where it is, as long as it would
 * have. In a resumed function it is the answer that is taken (or the message received), not the ask
 * that the conversation answers: take that where it is handled. After domus_wait_all() what all the
 * answers own is taken, all or none; one of them is taken with domus_take_answer()
 * (domus/conversation.h). A message that was taken can be answered and kept, but neither forwarded
 * nor put aside nor made an object.
 *
 * Returns 0, also for a type without `release`; -EPERM when the payload is shared (a publication,
 * a periodic timer's, an event of the library), and then the handler has to copy; -EALREADY when it
 * was taken; -EINVAL when there is nothing to take: no message is shown, it has failed, or it is
 * gone (answered, kept, forwarded, put aside, made an object). */
DOMUS_API int domus_take(domus_stack *stack);

/* Send one way. The payload (type->size bytes; NULL when 0) is copied; what it owns goes with it
 * only when this returns 0.
 *
 * Returns 0; -ESTALE when the actor is gone; -ENOBUFS when its mailbox is full
 * (scheduler.mailboxMax), or this thread's messages take memory.threadMax; -EBUSY while memory is
 * critical (domus/memory.h); -ENOMEM; -EMSGSIZE. */
DOMUS_API int domus_notice(domus_stack *stack, domus_address to, const domus_type *type,
                           const void *payload);

/* Send the same to each of `count` actors, as so many domus_notice() would, but faster: targets are
 * fetched ahead, and other threads are told of them some dozens at a time. Who does not take it
 * keeps nobody else from it; `ret_sent` (may be NULL) is how many took it.
 *
 * Returns 0 when all did; else the first error, as above; -EINVAL and -EMSGSIZE, and nothing is
 * sent: a payload that owns something (`release`) cannot be shared. */
DOMUS_API int domus_notice_all(domus_stack *stack, const domus_address *to, uint32_t count,
                               const domus_type *type, const void *payload, uint32_t *ret_sent);

#ifdef __cplusplus
}
#endif

#endif
