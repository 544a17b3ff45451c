/* Actors: messages, behaviours, and what a handler may do.
 *
 * An actor is a behaviour (a constant table of functions) and its private state. It handles one
 * message at a time, so its handlers need no locks. Each handler gets a `domus_stack *` as its
 * first argument: it tells the library which actor runs, on which thread and in which conversation.
 * A stack is valid until the handler returns. A handler must not keep it, and no other thread may
 * use it.
 *
 * Order: messages of one sender to one receiver are handled in the order in which they were sent,
 * within each kind (replies, exceptions, asks, notices, events). Between kinds there is no order: a
 * run takes replies first, then exceptions, asks, notices and events. Between different senders
 * there is no order either, even if one has sent because of the other: if A sends a notice to C and
 * then one to B, and B sends one to C because of that, C may handle B's first when they live on
 * different threads. An actor that needs more asks, and goes on when it is answered. An actor whose
 * behaviour has an `order` handles its asks and notices by that.
 *
 * Ownership: a payload is copied when it is sent, and the message then owns everything that the
 * payload points to. A payload that owns something has a type with a `release`. The library calls
 * `release` once for each message, in whatever way the message came, unless a handler took what is
 * owned with domus_take(). The call comes:
 *
 * - for a notice, when its handler returns (also when the handler parks);
 * - for an ask, when the ask is over: it is replied to (the reply's payload is copied first), it
 *   fails, its deadline has passed before it was handled, or nobody handles it. Until then its
 *   payload stays valid, also while the conversation waits and while the ask is kept;
 * - for an answer, when the function that was resumed with it returns (after domus_wait_all() for
 *   each answer of the list);
 * - for a message that was received (domus_receive() and its like), as for an answer, or as for an
 *   ask if it is one;
 * - for a timer's event, when the timer has ended: a timer that fires once ends when its event was
 *   handled or the timer was cancelled, a periodic timer when it was cancelled;
 * - for a publication, when the last member has handled it;
 * - for every message that is thrown away unhandled, at that moment.
 *
 * A message that is forwarded, kept, put aside, or made an object (domus/message.h) takes along
 * what it owns. A handler that passes on a pointer from a payload that it was shown, in another
 * message or in a reply, calls domus_take() first; otherwise both messages would release the same
 * thing.
 *
 * When a verb returns a negative errno, nothing was sent, and the caller still owns what the
 * payload owns. (An ask that was made, and fails later, has released it.) The following verbs
 * consume the payload in every case, because after a failure the caller could not know how much of
 * the work was done, or could do nothing about it: domus_publish(), domus_outside_publish(),
 * domus_outside_ask(), and the macros DOMUS_ASK() and DOMUS_ASK_WITHIN().
 *
 * Thread-safety of all functions here that take a `domus_stack *`: only from within a handler, with
 * the stack that the handler was given. Foreign threads use `domus_outside_*` (domus/system.h). */
#ifndef DOMUS_ACTOR_H
#define DOMUS_ACTOR_H

#include <domus/export.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The handle of one conversation of an actor; each handler gets it as its first argument. */
typedef struct domus_stack domus_stack;

/* The address of one actor: a house and its lease. It is used by value and copied freely. A message
 * to a stale address answers -ESTALE and never reaches the next actor in the same slot.
 * `(domus_address){0}` names nobody. */
typedef struct domus_address {
    struct domi_house *house;
    uint32_t lease;
} domus_address;

/* True if both name the same actor, or both nobody. The next actor in a slot has another lease, and
 * so has an actor that is spawned again; a restart changes no address. Thread-safety: any thread,
 * also for stale addresses. */
static inline bool domus_address_equals(domus_address one, domus_address other)
{
    return one.house == other.house && one.lease == other.lease;
}

/* A hash for tables of addresses: equal addresses have equal hashes, and all 64 bits are mixed, so
 * that any of them choose a bucket well. Its values differ from run to run, as addresses do.
 * Thread-safety: any thread. */
static inline uint64_t domus_address_hash(domus_address address)
{
    uint64_t hash =
        (uint64_t)(uintptr_t)address.house + UINT64_C(0x9e3779b97f4a7c15) * address.lease;

    /* mix the bits of the hash as the finalizer of splitmix64 does, with its shifts and factors */
    hash = (hash ^ (hash >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ (hash >> 27)) * UINT64_C(0x94d049bb133111eb);
    return hash ^ (hash >> 31);
}

/* The type of a message says what its payload is. There is one constant for each type, and types
 * are compared by the address of that constant. */
typedef struct domus_type {
    const char *name;
    /* bytes of a payload of this type, 0..DOMUS_PAYLOAD_MAX; they are copied when it is sent */
    uint32_t size;
    /* Free what the payload owns, but not the payload itself. NULL: the payload owns nothing. The
     * library calls this once for each message, on any thread, unless a handler took what is owned
     * ("Ownership" above). The function must not call domus_*. `payload` may be a copy at another
     * address than the sender's. */
    void (*release)(void *payload);
} domus_type;

/* Bytes in one payload at most. A notice of up to 24 bytes and an ask of up to 64 fit into the
 * smallest envelope, payloads of up to about 1 KiB have pooled envelopes, and larger ones are
 * allocated. Send larger things by pointer, with a `release`. */
#define DOMUS_PAYLOAD_MAX 65535u

/* A handler returns this when its conversation waits. The value comes only from domus_ask() and its
 * like (domus/conversation.h). */
#define DOMUS_PARKED 1

/* Handle one message. `self` is the actor's state. `payload` is the message's payload, aligned to 8
 * bytes; it is valid until the handler returns (the payload of an ask: until the ask is answered),
 * or until the message is forwarded or put aside, whichever is first.
 *
 * Returns 0 when it is done (an ask that was not answered by then fails with -ENOMSG);
 * DOMUS_PARKED, as domus_ask() returned it, when the conversation goes on later; or a negative
 * errno: an ask fails with it, and for a notice or event the actor has failed (domus/supervise.h).
 * No return value ends the loop.
 *
 * Two mistakes are told in the log, once for each behaviour and type, and counted in the profile: a
 * handler that let its conversation wait, and returned 0 (the answer is then thrown away); and a
 * positive result other than DOMUS_PARKED, which counts as 0. Three more are told so and not
 * counted: an ask that is neither answered, kept nor forwarded when the handler returns 0; an ask
 * or notice of a type for which the behaviour has no row (perhaps one of the same name, because a
 * static type in a header is another one in each file); and an answer to a peer that the pipeline
 * cannot encode. */
typedef int domus_handler(domus_stack *stack, void *self, const void *payload);

/* A row of a behaviour: the function that handles the messages of one type, whether they are asks,
 * notices or events. */
typedef struct domus_on {
    const domus_type *type;
    domus_handler *handle;
    /* bytes of the frame of the row's conversations (domus_frame()), 0..DOMUS_FRAME_MAX; zeroed at
     * first */
    uint32_t frame_size;
} domus_on;

/* The largest size of the frame of a conversation (domus_frame()), in bytes. */
#define DOMUS_FRAME_MAX 768u

/* A function of a behaviour that begins a conversation, as the handler of a row does, though no
 * message causes it. `{handle, 0}` names a handler without a frame, and DOMUS_BY()
 * (domus/await.h) a sequence. */
typedef struct domus_call {
    domus_handler *handle; /* the function to be called; NULL: the behaviour has no such function */
    /* Bytes of the frame that domus_frame() gives to the conversation, 0..DOMUS_FRAME_MAX; they
     * begin zeroed. (The frames of rows and of calls have other names, so that the macro of one
     * does not compile in the place of the other.) */
    uint32_t call_frame_size;
} domus_call;

/* The two kinds of actors: state actors, and channels actors. */
typedef enum domus_kind {
    /* a state actor: it has business logic, and runs in phase 3, until the deadline of that
     * phase */
    DOMUS_STATE,
    /* a channels actor: it owns connections, runs in phase 2, and never leaves its thread */
    DOMUS_CHANNELS,
} domus_kind;

struct domus_supervision;

/* Compare two messages that wait, each given by its type and its payload. Returns a negative number
 * if `one` has to be handled before `other`, a positive one if after it, and 0 if they are equal
 * (as strcmp() and the comparisons of qsort() do).
 *
 * Both may be asks or notices, and each of any type that the actor is sent, also of types without a
 * row. So a comparison looks at the types first. Its results must fit together: if A comes before B
 * and B before C, A comes before C; if A equals B, both compare alike with every C; and the same
 * two messages always compare alike. If they do not fit together, messages are handled in any
 * order, and none is lost.
 *
 * The library calls it from whichever thread runs the actor, in no turn: it gets no stack, must not
 * call domus_* and must not change anything. It may be called for a message that is never handled,
 * and many times for one that is. */
typedef int domus_order(const domus_type *one_type, const void *one, const domus_type *other_type,
                        const void *other);

/* A behaviour says how an actor acts. It must stay constant for the life of the system. All
 * functions may be NULL, and so may the `handle` of each domus_call. One that is wrong is refused
 * with -EINVAL by the verb that takes it; the log, or domus_system_error() after domus_serve(),
 * says what is wrong. */
typedef struct domus_behaviour {
    const char *name;
    domus_kind kind;
    /* bytes of the actor's private state, 0..1 MiB; a state of up to 16 bytes lies in its house */
    uint32_t state_size;
    /* The rows of the behaviour, one for each type of message that its actors handle. The last row
     * has a NULL type; its handler, if it has one, takes the messages that no other row takes. */
    const domus_on *on;

    /* Runs once, before the first message of the actor. A negative errno is a failure of the actor:
     * if no supervisor restarts the actor, it ends without on_stop. An actor whose on_mount has
     * failed is not mounted: none of its functions is called (domus/supervise.h). */
    int (*on_mount)(domus_stack *stack, void *self);

    /* Runs once, as the last function of the actor, and gives back what the actor's state owns. */
    void (*on_stop)(domus_stack *stack, void *self);

    /* Channels actors only; domus/channel.h says when each is called. The payload of each is a
     * `const domus_channel_event *`. A state actor that has one of these, or another member that is
     * for channels, is refused: mostly `.kind` was forgotten. */
    domus_call on_open;
    domus_call on_read;
    domus_call on_end;
    domus_call on_close;

    /* Runs once for each restart, instead of on_stop and on_mount, and makes the state as good as
     * new. `error` is the failure that led to the restart. A negative errno is a failure again. */
    int (*on_restart)(domus_stack *stack, void *self, int error);

    /* The rules by which this actor decides about failures of its children (domus/supervise.h).
     * NULL: the actor has no rules. */
    const struct domus_supervision *supervision;

    /* Bytes that domus_frame() gives to the conversation that on_mount begins, 0..DOMUS_FRAME_MAX;
     * they begin zeroed. */
    uint32_t mount_frame_size;

    /* Channels actors only: the behaviour of this actor's channels, each of which is an actor of
     * its own (domus/channel.h). NULL: the channels have this behaviour and share this actor's
     * state. */
    const struct domus_behaviour *channel;

    /* In the behaviour of a channel: `self` is the state of the actor that the channel belongs to,
     * and state_size, on_mount, on_stop and on_restart are not used. */
    bool shares_state;

    /* In the behaviour of a channel: its conversations go on to their end when the connection is
     * gone, and its actor lives until then. False: they are cancelled. */
    bool conversations_go_on;

    /* In the behaviour of a channel: what turns its bytes into messages and back
     * (domus/pipeline.h), and the rows for the messages that the peer sends. The last row is as
     * that of `on`. NULL: the channel handles bytes. */
    const struct domus_pipeline *pipeline;
    const struct domus_on_peer *on_peer;

    /* State actors only: the asks and notices of the actor are handled by this comparison, instead
     * of asks first and each kind in the order in which it came. NULL: asks and notices are handled
     * in that usual order.
     *
     * The next message is the first by the comparison of all asks and notices that wait. Equal ones
     * of a kind are handled in the order in which they came; between an ask and a notice that are
     * equal there is no order, and neither starves the other. So the order of a sender holds for
     * messages that are equal, and for no others. A message that others always come before waits
     * until the bound of the mailbox refuses them; its sender may ask within a time.
     *
     * Everything else is as without: replies and exceptions are handled before asks and notices,
     * events have their places in each run, a stop lets at most one more message be handled, and as
     * many messages wait as may (scheduler.mailboxMax, domus_spawn_options.mailbox_max). Messages
     * that other threads send count once the actor's thread has taken them in, which it does
     * between runs. Receives look at mail in this order, and take the first message that their
     * pattern takes. Messages that domus_unstash() puts back take their places by the comparison,
     * before equal messages that wait. domus_stop_after_mail() lets all mail be handled that was
     * put before it.
     *
     * domus_become() and a restart may change the comparison. Mail that waits is then sorted by the
     * new one, and messages that are equal by that stay as the old one had them. If the new
     * behaviour has none, asks are handled first again, those that wait in the order of the old
     * comparison, and new mail behind them.
     *
     * With n messages that wait, a message costs O(log n) comparisons on average over all of them,
     * and a single one a few thousand at most. A change of the comparison, domus_unstash(), and the
     * first look of a receive sort all mail. No memory is taken for a message: an actor with a
     * comparison has about 2.2 KiB more, from its spawn or its domus_become() on. */
    domus_order *order;
} domus_behaviour;

/* The address of the actor that is running. */
DOMUS_API domus_address domus_self(const domus_stack *stack);

/* The address of the actor that sent the message that is being handled. It is nobody for events,
 * and for messages from outside. */
DOMUS_API domus_address domus_sender(const domus_stack *stack);

/* The locals of this conversation: `frame_size` bytes, as the row or the domus_call that began the
 * conversation says. They begin zeroed, and stay at the same address while the conversation is
 * parked. Returns NULL if no frame is named there. */
DOMUS_API void *domus_frame(domus_stack *stack);

/* The time of the running thread's clock in nanoseconds. The thread reads its clock between runs,
 * when a phase begins and at each look, so this call is cheap, and its result does not change
 * within a run. */
DOMUS_API uint64_t domus_now_ns(const domus_stack *stack);

/* Take over what the payload owns that this handler, or resumed function, was shown: the library
 * will not release it, so the actor has to. The payload itself stays where it is, and valid for as
 * long as without this call. In a resumed function this concerns the answer (or the message that
 * was received), and not the ask that the conversation answers: call domus_take() for the ask in
 * the handler of the ask. After domus_wait_all() this takes what all the answers own, all or none;
 * domus_take_answer() (domus/conversation.h) takes what one of them owns. A message that was taken
 * like this can be answered and kept, but neither forwarded nor put aside nor made an object.
 *
 * Returns 0, also for a type without `release`; -EPERM when the payload is shared (of a
 * publication, of a periodic timer, of an event of the library), and then the handler has to copy;
 * -EALREADY when this was called before; -EINVAL when there is nothing to take: no message is
 * shown, the answer is an error, or the message is gone (answered, kept, forwarded, put aside, made
 * an object). */
DOMUS_API int domus_take(domus_stack *stack);

/* Send a notice. The payload (type->size bytes; NULL when the size is 0) is copied.
 *
 * Ownership: the message owns what the payload owns if this returns 0; otherwise the caller still
 * does.
 *
 * Returns 0; -ESTALE when the actor is gone or stops; -ENOBUFS when its mailbox is full
 * (scheduler.mailboxMax), or when the messages of this thread take memory.threadMax; -EBUSY while
 * memory is critical (domus/memory.h); -ENOMEM; -EMSGSIZE when the payload is too large. For an
 * actor in another system (domus/remote.h) also -ENOBUFS when too much is on the way there, and
 * -EHOSTDOWN when it cannot be reached; with 0 the notice was given to this system's gateway. */
DOMUS_API int domus_notice(domus_stack *stack, domus_address to, const domus_type *type,
                           const void *payload);

/* Send the same notice to each of `count` actors. This does what `count` calls of domus_notice()
 * would do, but faster: the targets are prefetched, and other threads are told of their messages
 * some dozens at a time. If one actor refuses the notice, the others still get it. `ret_sent` (may
 * be NULL) gets the number of actors that took it.
 *
 * Returns 0 when all of them took it; otherwise the first error, as of domus_notice(). With -EINVAL
 * (the type has a `release`: a payload that owns something cannot be copied for several) and with
 * -EMSGSIZE nothing is sent. */
DOMUS_API int domus_notice_all(domus_stack *stack, const domus_address *to, uint32_t count,
                               const domus_type *type, const void *payload, uint32_t *ret_sent);

#ifdef __cplusplus
}
#endif

#endif
