/* Selective receive, and behaviours that change.
 *
 * A conversation may wait for a message of its choice: the first among the waiting asks and notices
 * that a pattern matches, or the next one that comes; the others stay, in order. While any
 * conversation of an actor waits in a receive, the actor takes no other asks and notices. If
 * several conversations wait, their patterns are tried in the order in which the receives began.
 * Mail that no pattern ever takes stays in the mailbox and counts for scheduler.mailboxMax. Under a
 * barrier nothing is received, not even by the conversation that raised it: a receive needs no
 * barrier, because it keeps other asks and notices out by itself.
 *
 * Thread-safety of all functions here: only from within a handler, with the stack it was given. */
#ifndef DOMUS_RECEIVE_H
#define DOMUS_RECEIVE_H

#include <domus/conversation.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOMUS_FOR_EVER UINT64_MAX /* a time-out of this value means that there is no time-out */

/* A pattern: the messages that a receive takes. It must not change while a receive waits with
 * it. */
typedef struct domus_pattern {
    /* types of the messages that are taken, with NULL at the end; a NULL list: any type */
    const domus_type *const *types;

    /* Returns whether the receive takes this message, which is of one of the types above. `self` is
     * the actor's state, and `frame` the locals of the conversation that receives (NULL if it has
     * none). The function must not change anything, and may be called again for the same message.
     * NULL: all messages of these types are taken. */
    bool (*matches)(const void *self, const void *frame, const domus_type *type,
                    const void *payload);
} domus_pattern;

/* Suspend until a message comes that `pattern` takes. The answer has the type and the payload of
 * this message, domus_sender() gives its sender, and domus_take() takes what it owns. If the
 * message is an ask, domus_reply(), domus_fail(), domus_keep() and domus_forward() concern this ask
 * until the resumed function returns; if none of them was called, the ask fails with -ENOMSG (or
 * with the negative errno that the function returned).
 *
 * Waiting asks are taken before waiting notices, otherwise mail is taken in order. If the behaviour
 * has an `order` (domus/actor.h), asks and notices are taken by that.
 *
 * Returns DOMUS_PARKED; -ENOMEM; -ECANCELED. */
DOMUS_API int domus_receive(domus_stack *stack, const domus_pattern *pattern, domus_resumed *then);

/* Do what domus_receive() does, but fail with -ETIMEDOUT after `within_ns`. (Both fail so when
 * the deadline of the ask that this conversation answers has passed.) With 0 this looks only
 * at messages that wait already, for instance to empty a mailbox or to find a more urgent
 * message first. */
DOMUS_API int domus_receive_within(domus_stack *stack, const domus_pattern *pattern,
                                   uint64_t within_ns, domus_resumed *then);

/* Begin a receive as one of several things to wait for; its answer carries `tag`. `within_ns` is as
 * in domus_receive_within(), or DOMUS_FOR_EVER. Wait with domus_wait_first() if an ask may be
 * received, because after domus_wait_all() a received ask cannot be answered and fails with
 * -ENOMSG.
 *
 * Returns 0; -ENOMEM; -ECANCELED. */
DOMUS_API int domus_receive_add(domus_stack *stack, const domus_pattern *pattern,
                                uint64_t within_ns, uint64_t tag);

/* Change this actor's behaviour, its rows and callbacks, to `behaviour` from the next message on.
 * NULL goes back to the behaviour with which the actor was spawned. The new behaviour must have the
 * same kind as that one, and no larger state_size; that of a channel has a pipeline if the one
 * before has one. The pipeline of a channel that is open does not change by this.
 *
 * Returns 0; -EINVAL for a behaviour that does not fit; what `check` of a stage
 * returned; -ENOMEM. */
DOMUS_API int domus_become(domus_stack *stack, const domus_behaviour *behaviour);

/* Put aside the ask or notice that is handled, until domus_unstash(). When the actor stops,
 * messages that are aside are treated like mail that waits.
 *
 * Returns 0; -EINVAL when an event or an answer is handled; -EALREADY when an ask was answered, or
 * when what the message owns was taken;
 * -ENOBUFS when scheduler.mailboxMax messages are aside; -ENOMEM. */
DOMUS_API int domus_stash(domus_stack *stack);

/* Put all messages that are aside back in front of the mail that waits, in the order in
 * which they came. If the behaviour has an `order`, they come before messages that are equal
 * by it. */
DOMUS_API void domus_unstash(domus_stack *stack);

#ifdef __cplusplus
}
#endif

#endif
