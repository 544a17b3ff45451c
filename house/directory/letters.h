/* Letters: who wants to hear of dead letters and refusals, one table per system.
 *
 * `wanted` is the one word that is looked at when there is one; the table behind it is read and
 * written under a spinlock, for as long as a copy takes. A letter is a notice like any other: a
 * full or closed mailbox refuses it, which is only counted, so letters neither pile up nor
 * multiply. */
#ifndef DOMI_HOUSE_DIRECTORY_LETTERS_H
#define DOMI_HOUSE_DIRECTORY_LETTERS_H

#include "house/message/manager.h"

#include <domus/letters.h>

typedef struct domi_subscriber {
    domus_address address;
    uint32_t what;
} domi_subscriber;

typedef struct domi_letters {
    _Atomic uint32_t wanted; /* what any of them wants to hear of */
    domi_spinlock lock;      /* for all below */
    uint32_t count;
    domi_subscriber subscribers[DOMUS_LETTERS_SUBSCRIBERS_MAX];
} domi_letters;

void domi_letters_init(domi_letters *letters);

/* Errors as of domus_letters_subscribe(). Any thread. */
int domi_letters_set(domi_letters *letters, domus_address subscriber, uint32_t what);

/* Tell who wants to hear of `what`; from the thread of `manager`. */
void domi_letters_tell(domi_manager *manager, const domus_letter *letter);

static inline bool domi_letters_wanted(const domi_manager *manager, uint32_t what)
{
    /* Relaxed: who subscribes at this moment hears of the next one. */
    return manager->letters != NULL &&
           DOMI_UNLIKELY(
               (atomic_load_explicit(&manager->letters->wanted, memory_order_relaxed) & what) != 0);
}

/* `message`, for `receiver`, is a dead letter: count it, and tell. */
void domi_letters_dead(domi_manager *manager, domus_address receiver, const domi_envelope *message,
                       int why);

/* ... was refused; it is counted already. */
void domi_letters_refused(domi_manager *manager, domi_house *receiver, const domi_node *node);

#endif
