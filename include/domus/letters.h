/* Dead letters and refusals: an actor may hear of each.
 *
 * A dead letter is a message that nobody handled: its receiver was gone or stopped before its turn,
 * had no row for it, or did not wait for the answer any more. A refusal is an ask or notice that a
 * full mailbox did not take (those for want of memory are only counted: a letter would need some).
 * Both are counted in any case (domus/profile.h); who subscribes gets a notice of domus_letter_type
 * for each, from wherever it happened. A letter tells of the message and does not hold it: what a
 * dead one owned is released, and what a refused one owns is its sender's still.
 *
 * These notices are subject to the subscriber's own bounds: what its mailbox does not take, or
 * finds no memory, is counted (letters_missed in domus/profile.h), and never makes another letter.
 * A mailbox_max of its own (domus/spawn.h) bounds what they hold. Without subscribers all this
 * costs one load per letter. When the system ends its actors, nothing is told any more. */
#ifndef DOMUS_LETTERS_H
#define DOMUS_LETTERS_H

#include <domus/actor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct domus_system;

/* What to hear of; one or both. */
#define DOMUS_LETTERS_DEAD    1u
#define DOMUS_LETTERS_REFUSED 2u

/* Subscribers of a system at most. */
#define DOMUS_LETTERS_SUBSCRIBERS_MAX 16u

/* Which kind of message it was. */
typedef enum domus_letter_kind {
    DOMUS_LETTER_REPLY,
    DOMUS_LETTER_EXCEPTION,
    DOMUS_LETTER_ASK,
    DOMUS_LETTER_NOTICE,
    DOMUS_LETTER_EVENT,
} domus_letter_kind;

/* The payload of a domus_letter_type. */
typedef struct domus_letter {
    uint32_t what; /* DOMUS_LETTERS_DEAD or DOMUS_LETTERS_REFUSED */
    domus_letter_kind kind;

    /* -ESTALE: the receiver is gone, or stops, or is not mounted; -EOPNOTSUPP: it has no row for
     * the type; -ENOBUFS: its mailbox is full; -ETIMEDOUT: the answer came when nobody waited for
     * it any more; -ECANCELED: nobody wants it; -ENOMEM. */
    int why;
    const domus_type *type; /* NULL for an exception */
    domus_address receiver;
    domus_address sender; /* nobody: from outside, or not known */
} domus_letter;

DOMUS_API extern const domus_type domus_letter_type;

/* Hear of `what` from now on, instead of what this actor heard of before; 0: of nothing. It ends
 * with the actor.
 *
 * Returns 0; -ENOSPC at DOMUS_LETTERS_SUBSCRIBERS_MAX; -EINVAL for another `what`.
 * Thread-safety: only from within a handler, with the stack it was given. */
DOMUS_API int domus_letters_subscribe(domus_stack *stack, uint32_t what);

/* As domus_letters_subscribe(), for the actor `subscriber`. Also -EINVAL for nobody; -ESHUTDOWN;
 * -ECHILD. Thread-safety: any foreign thread. */
DOMUS_API int domus_outside_letters(struct domus_system *system, domus_address subscriber,
                                    uint32_t what);

#ifdef __cplusplus
}
#endif

#endif
