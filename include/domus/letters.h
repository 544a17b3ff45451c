/* Dead letters and refusals: an actor may subscribe to hear of each of them.
 *
 * A dead letter is a message that nobody handled: its receiver was gone or stopped before it
 * handled the message, had no row for it, or did not wait for the answer any more. A refusal is an
 * ask or notice that a full mailbox did not take (refusals for lack of memory are only counted,
 * because a letter would need memory). Dead letters and refusals are always counted
 * (domus/profile.h). In addition a subscriber gets a notice of domus_letter_type, called a letter,
 * for each of them, on whatever thread it happened. A letter describes the message and does not
 * hold it: what a dead letter owned is released, and the sender still owns what a refused message
 * owns.
 *
 * Letters are subject to the subscriber's own bounds. A letter that the subscriber's mailbox does
 * not take, or for which there is no memory, is counted (letters_missed in domus/profile.h), and
 * makes no further letter. Set mailbox_max of the subscriber (domus/spawn.h) to bound the memory of
 * letters that wait. Without subscribers all this costs one load for each dead letter or refusal.
 * When the system ends its actors, no letters are sent any more. */
#ifndef DOMUS_LETTERS_H
#define DOMUS_LETTERS_H

#include <domus/actor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct domus_system;

/* The kinds of letters that an actor can subscribe to: one bit, or both. */
#define DOMUS_LETTERS_DEAD    1u
#define DOMUS_LETTERS_REFUSED 2u

/* Most subscribers in a system. */
#define DOMUS_LETTERS_SUBSCRIBERS_MAX 16u

/* The kind of the message that a letter is about, as docs/contract.md names the kinds. */
typedef enum domus_letter_kind {
    DOMUS_LETTER_REPLY,
    DOMUS_LETTER_EXCEPTION,
    DOMUS_LETTER_ASK,
    DOMUS_LETTER_NOTICE,
    DOMUS_LETTER_EVENT,
} domus_letter_kind;

/* The payload of a notice of domus_letter_type: a letter. */
typedef struct domus_letter {
    uint32_t what; /* kind of the letter, DOMUS_LETTERS_DEAD or DOMUS_LETTERS_REFUSED */
    domus_letter_kind kind;

    /* The reason. -ESTALE: the receiver is gone, stops, or is not mounted; -EOPNOTSUPP: it
     * has no row for the type; -ENOBUFS: its mailbox is full; -ETIMEDOUT: the answer came
     * when nobody waited for it any more; -ECANCELED: the message was cancelled; -ENOMEM:
     * there was no memory. */
    int why;
    /* type of the message that the letter is about; NULL for an exception */
    const domus_type *type;
    domus_address receiver; /* actor for which that message was */
    /* sender of that message; nobody, if it came from outside or the sender is not known */
    domus_address sender;
} domus_letter;

DOMUS_API extern const domus_type domus_letter_type;

/* Subscribe this actor to `what` from now on. This replaces its earlier subscription; 0 ends it. A
 * subscription ends with its actor.
 *
 * Returns 0; -ENOSPC when there are DOMUS_LETTERS_SUBSCRIBERS_MAX subscribers; -EINVAL for any
 * other `what`.
 * Thread-safety: only from within a handler, with the stack that the handler was given. */
DOMUS_API int domus_letters_subscribe(domus_stack *stack, uint32_t what);

/* Subscribe the actor `subscriber`, as domus_letters_subscribe() does.
 *
 * Returns as domus_letters_subscribe(); -EINVAL also for nobody; -ESHUTDOWN when the system does
 * not run; -ECHILD in a child made by fork(). Thread-safety: any foreign thread. */
DOMUS_API int domus_outside_letters(struct domus_system *system, domus_address subscriber,
                                    uint32_t what);

#ifdef __cplusplus
}
#endif

#endif
