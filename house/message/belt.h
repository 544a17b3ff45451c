/* Belts: rings of slots that carry small notices from one thread of the loop to another, by value.
 *
 * An envelope that travels to another thread costs several cache lines one after another: the
 * envelope there and home again, the house, the arrivals. On a belt a notice of up to 24 bytes
 * costs the one line of its slot. Each ordered pair of threads that talk has a belt. Asks, answers,
 * events, the nodes of houses and larger notices never use one, so nothing that may not be refused
 * depends on room in a ring.
 *
 * *The sender* uses a belt only if the receiver takes every message just now and its inbox is empty
 * (mailbox.c), and never while it runs a lent house. It fills the slot, publishes it by its
 * sequence, and looks at the belt's switch. If that is not ON it exchanges it for ON; if it was not
 * ON even then, the sender links the belt to the receiver's `linked` and wakes the receiver if it
 * sleeps.
 *
 * *The receiver* (dispatch/incoming.h) polls the belts that are on, and copies what they hold into
 * envelopes of its own. It turns a belt off after some looks that found nothing, and all of them
 * before it parks. So a park has to look at one more word, and at no belt.
 *
 *     OFF, LOOKING -> ON        the sender, which then links the belt
 *     ON -> LOOKING             the receiver, before it looks at the next slot once more
 *     LOOKING -> ON             the receiver, which has found something there
 *     LOOKING -> OFF            the receiver, which has found nothing there
 *
 * A sender that sees OFF knows that nobody looks at the slots, and gives them back after a while.
 *
 * A ring begins with DOMI_BELT_SLOTS slots. When it is full the sender makes one that is twice as
 * large, up to `scheduler.beltSlots`, and leaves a slot in the old one that tells where it goes on.
 * A ring is charged to the thread of its receiver. models/belt.pml has the switch and the park,
 * models/belts.pml the order of messages. */
#ifndef DOMI_HOUSE_MESSAGE_BELT_H
#define DOMI_HOUSE_MESSAGE_BELT_H

#include "house/message/manager.h"

#define DOMI_BELT_SLOTS 64u /* slots of a belt's first ring, which take 4 KiB */

enum domi_belt_switch {
    DOMI_BELT_OFF, /* the belt is off: its receiver does not look at it */
    /* the belt is on: its receiver polls it, or it is linked and the receiver will poll it */
    DOMI_BELT_ON,
    /* the receiver looks at the belt's next slot a last time before it turns the belt off */
    DOMI_BELT_LOOKING,
};

typedef struct domi_belt_slot {
    /* The number of the message in this slot of a belt, plus 1. The sender writes it last. */
    alignas(64) _Atomic uint64_t sequence;
    /* the house of the message's receiver; NULL: `payload` is a domi_belt_ring, where the belt
     * goes on */
    domi_house *house;
    const domus_type *type; /* the type of the message's payload */
    domi_house *sender;     /* the sender of the message; NULL: it has none */
    uint32_t lease;         /* the lease of the actor to which the message is sent */
    uint32_t sender_lease;  /* the lease of the message's sender */
    DOMI_KEEP_PLACE(8) unsigned char payload[24]; /* the message's payload, of at most 24 bytes */
} domi_belt_slot;

static_assert(sizeof(domi_belt_slot) == 64, "a message is one cache line");

typedef struct domi_belt_ring {
    domi_belt_slot *slots; /* the array of slots of a belt's ring; NULL: the belt has no ring */
    uint64_t mask;         /* number of slots of the ring, which is a power of two, minus 1 */
} domi_belt_ring;

static_assert(sizeof(domi_belt_ring) <= sizeof(((domi_belt_slot *)NULL)->payload), "fits");

struct domi_belt {
    /* The fields of a belt that only its sender uses. Messages are numbered from 0, and the numbers
     * continue in the next ring. */
    /* the manager to which the belt leads, which is the receiver's; constant */
    domi_manager *receiver;
    domi_belt_ring filled; /* the ring that the belt's sender fills */
    uint64_t put;          /* the number of the next message that the sender puts on the belt */
    uint64_t taken_seen;   /* value of the belt's `taken` when the sender read it last */
    /* value of `put` at the last check of domi_belts_free_unused_rings() for an unused ring */
    uint64_t put_at_trim;

    /* The fields of a belt that are written by the thread which turns the belt on or off. */
    alignas(64) _Atomic uint32_t power; /* the belt's switch, an enum domi_belt_switch */
    /* the next belt in the receiver's list `linked` of belts that were turned on */
    struct domi_belt *linked_next;
    /* a ring that the sender has made while the belt was off, for the receiver to take: the belt's
     * first one, or one in place of a ring that was given back; NULL slots: none */
    domi_belt_ring first;

    alignas(64) unsigned char apart[64]; /* unused; cores fetch cache lines in pairs */

    /* The fields of a belt that only its receiver uses. */
    domi_belt_ring read;    /* the ring that the belt's receiver reads */
    uint64_t next_number;   /* number of the message that the receiver takes next from the belt */
    struct domi_belt *next; /* the next one of the belts to this receiver that are on */
    uint32_t empty_looks;   /* the receiver's looks in a row that found no message on the belt */
    uint32_t last_look;     /* number of messages that the receiver's last look found on the belt */
    /* number of looks to come that do not wait for a stream of messages (carry.c) */
    uint32_t looks_without_wait;

    /* Written by the belt's receiver after each look, and read by the sender when its ring seems
     * full. */
    /* number of messages that the receiver has taken from the belt */
    alignas(64) _Atomic uint64_t taken;
};

static_assert(DOMI_TAKES(sizeof(struct domi_belt), 320), "a header of a belt is small");

/* Make the table of the manager's belts, if threads of the system use belts at all. Returns 0;
 * -ENOMEM. */
int domi_belts_init(domi_manager *manager);

/* Free the belts that lead away from the manager, and release messages that are left on them. */
void domi_belts_fini(domi_manager *manager);

/* Put a notice on the belt to the home of `house`, and free its envelope, which has 64 bytes.
 * Returns false if there is no slot; then the caller still owns the envelope. Called by the owner
 * of `manager`, which is not that home, if the house accepts every message and its inbox is
 * empty. */
bool domi_belt_put_notice(domi_manager *manager, domi_house *house, domi_node *node);

/* Free a ring of the belt, and subtract its bytes from the memory of the receiver. */
void domi_belt_free_ring(domi_belt *belt, domi_belt_slot *slots);

/* Free the rings of this thread's belts that were not used since the last such check, a few seconds
 * ago. Called once a tick by the owner of `manager`, which is the sender. */
void domi_belts_free_unused_rings(domi_manager *manager);

/* True if the message with this number lies in its slot of the ring that the receiver reads. Called
 * by the belt's receiver. */
static inline bool domi_belt_has_message(const domi_belt *belt, uint64_t number, memory_order order)
{
    domi_belt_slot *slot = &belt->read.slots[number & belt->read.mask];

    return atomic_load_explicit(&slot->sequence, order) == number + 1;
}

/* Returns the slot of the next message on the belt; NULL: that message has not come yet. Called by
 * the belt's receiver. */
static inline domi_belt_slot *domi_belt_peek_next_slot(domi_belt *belt, memory_order order)
{
    return domi_belt_has_message(belt, belt->next_number, order)
               ? &belt->read.slots[belt->next_number & belt->read.mask]
               : NULL;
}

/* True if a belt to this thread was turned on and linked, or if one that is on holds a message.
 * Called by the receiver. */
static inline bool domi_belts_have_mail(const domi_manager *manager, memory_order order)
{
    if (atomic_load_explicit((_Atomic(domi_belt *) *)(uintptr_t)&manager->belts.linked, order) !=
        NULL)
        return true;
    if (manager->belts.starved)
        return false;
    for (domi_belt *belt = manager->belts.on; belt != NULL; belt = belt->next) {
        /* acquire is enough here, and seq_cst is not needed: a thread that parks has turned its
         * belts off before, so this load of a slot is no part of a park. */
        if (domi_belt_peek_next_slot(belt, memory_order_acquire) != NULL)
            return true;
    }
    return false;
}

/* True if messages may come to this thread by belts; the test costs one load. */
static inline bool domi_manager_has_belts(const domi_manager *manager)
{
    return manager->belts.to != NULL;
}

#endif
