/* Letters: notices about dead letters and refusals, for actors that subscribe to them. There is one
 * table of subscribers for each system.
 *
 * When a message becomes a dead letter or is refused and nobody has subscribed to that, only the
 * word `wanted` is read. The table behind it is read and written under a spinlock, for as long as a
 * copy takes. A letter is a notice like any other: a full or closed mailbox refuses it, and that is
 * only counted, so letters neither pile up nor multiply. */
#ifndef DOMI_HOUSE_MESSAGE_LETTERS_H
#define DOMI_HOUSE_MESSAGE_LETTERS_H

#include "house/message/manager.h"

#include <domus/letters.h>

typedef struct domi_subscriber {
    domus_address address; /* the subscribed actor, which gets the letters */
    uint32_t what;         /* kinds of letters that the subscriber wants, as bits */
} domi_subscriber;

typedef struct domi_letters {
    /* all kinds of letters that any subscriber of the system wants, as bits */
    _Atomic uint32_t wanted;
    domi_spinlock lock; /* lock that protects all fields of the table of subscribers that follow */
    uint32_t count;     /* number of entries of `subscribers` in use */
    /* the subscribers; the first `count` are in use */
    domi_subscriber subscribers[DOMUS_LETTERS_SUBSCRIBERS_MAX];
} domi_letters;

void domi_letters_init(domi_letters *letters);

/* Subscribe an actor to the kinds of letters `what`, in place of those that it had; 0 ends its
 * subscription. Returns the errors of domus_letters_subscribe(). Any thread. */
int domi_letters_subscribe(domi_letters *letters, domus_address subscriber, uint32_t what);

/* Send `letter` to all subscribers of its kind, from the thread of `manager`. */
void domi_letters_send_to_subscribers(domi_manager *manager, const domus_letter *letter);

static inline bool domi_letters_has_subscriber(const domi_manager *manager, uint32_t what)
{
    /* Relaxed: an actor that subscribes at this moment gets letters from the next dead letter
     * on. */
    return manager->directory.letters != NULL &&
           DOMI_UNLIKELY(
               (atomic_load_explicit(&manager->directory.letters->wanted, memory_order_relaxed) &
                what) != 0);
}

/* Count `message`, which was for `receiver`, as a dead letter, and send letters to the
 * subscribers. */
void domi_letters_report_dead_letter(domi_manager *manager, domus_address receiver,
                                     const domi_envelope *message, int why);

/* Send letters to those who subscribe to refusals: `receiver` has refused the message of `node`.
 * The refusal is counted already. */
void domi_letters_report_refusal(domi_manager *manager, domi_house *receiver,
                                 const domi_node *node);

#endif
