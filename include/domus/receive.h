/* Selective receive, and behaviours that change.
 *
 * A conversation may wait for a message of its choice: the first among the waiting asks and notices
 * that a pattern matches, or the next one that comes; the others stay, in order. While any
 * conversation of an actor waits in a receive, the actor takes no other asks and notices. Several
 * that wait are tried in the order in which they began. What no pattern ever takes stays, within
 * scheduler.mailboxMax. Under a barrier nothing is received, not even by who raised it: a receive
 * keeps the others out by itself.
 *
 * Thread-safety of all functions here: only from within a handler, with the stack it was given. */
#ifndef DOMUS_RECEIVE_H
#define DOMUS_RECEIVE_H

#include <domus/conversation.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOMUS_FOR_EVER UINT64_MAX /* as a time-out: none */

/* What a receive takes. Constant while it waits. */
typedef struct domus_pattern {
    const domus_type *const *types; /* up to NULL; NULL itself: any type */

    /* Looks at one message of these types; NULL: takes all. `self` is the actor's state, `frame`
     * the locals of the conversation that receives (NULL: it has none). Must not change anything;
     * may be called again for the same message. */
    bool (*matches)(const void *self, const void *frame, const domus_type *type,
                    const void *payload);
} domus_pattern;

/* Suspend until a message comes that `pattern` takes. The answer has its type and its payload, and
 * domus_sender() says who sent it; domus_take() takes what it owns. An ask that was received is the
 * one that domus_reply(), domus_fail(), domus_keep() and domus_forward() are about until the
 * resumed function returns; if none of them was called, it fails with -ENOMSG (or what the function
 * returned).
 *
 * Asks before notices, else in order. Returns DOMUS_PARKED; -ENOMEM; -ECANCELED. */
DOMUS_API int domus_receive(domus_stack *stack, const domus_pattern *pattern, domus_resumed *then);

/* As domus_receive(), and it fails with -ETIMEDOUT after `within_ns` (as both do when the deadline
 * of the ask that this conversation answers has passed). With 0 it looks only at what is there: so
 * a mailbox is flushed, or a more urgent message is looked for first. */
DOMUS_API int domus_receive_within(domus_stack *stack, const domus_pattern *pattern,
                                   uint64_t within_ns, domus_resumed *then);

/* Receive as one of several: its answer carries `tag`. `within_ns` as above, or
 * DOMUS_FOR_EVER. Wait by domus_wait_first(): then an ask that was received can be answered; after
 * domus_wait_all() it fails with -ENOMSG. Returns 0; -ENOMEM; -ECANCELED. */
DOMUS_API int domus_receive_add(domus_stack *stack, const domus_pattern *pattern,
                                uint64_t within_ns, uint64_t tag);

/* From the next message on, handle messages as `behaviour` says: its rows and callbacks. Its kind
 * must be the same and its state_size not larger than that of the behaviour the actor was spawned
 * with, to which NULL goes back.
 *
 * Returns 0; -EINVAL; -ENOMEM. */
DOMUS_API int domus_become(domus_stack *stack, const domus_behaviour *behaviour);

/* Put the ask or notice that is handled aside, until domus_unstash(). When the actor stops, it is
 * treated as what waits.
 *
 * Returns 0; -EINVAL when an event or an answer is handled; -EALREADY when an ask was answered, or
 * when what the message owns was taken;
 * -ENOBUFS when scheduler.mailboxMax messages are aside; -ENOMEM. */
DOMUS_API int domus_stash(domus_stack *stack);

/* All that was put aside is next again, in the order in which it came, before what waits. */
DOMUS_API void domus_unstash(domus_stack *stack);

#ifdef __cplusplus
}
#endif

#endif
