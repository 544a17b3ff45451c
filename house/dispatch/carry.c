/* Carries messages from belts: home copies them into envelopes of its own, which go where messages
 * of an inbox would go.
 *
 * Home carries them only between runs (contract: Lanes), and before it delivers an inbox. A message
 * for an exposed house is held until the house is back. Its envelope then has 128 bytes, and the
 * address of the house stands behind the payload. */
#include "house/dispatch/incoming.h"

#include "base/check.h"
#include "base/spinlock.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"

#include <string.h>

/* a belt is turned off after so many looks in a row that found it empty */
#define EMPTY_LOOKS 32u

/* offset of the house's address in the envelope of a held message: behind the room for a belt
 * slot's payload */
#define HELD_HOUSE (DOMI_ENVELOPE_HEAD + sizeof(((domi_belt_slot *)NULL)->payload))

static_assert(HELD_HOUSE + sizeof(uintptr_t) <= 128, "fits behind the payload");

/* --- one message ------------------------------------------------------------------------------ */

static domi_envelope *copy_belt_slot_to_envelope(const domi_belt_slot *slot,
                                                 domi_envelope *envelope)
{
    envelope->node.lease = slot->lease;
    envelope->node.kind = DOMI_NOTICE;
    envelope->type = slot->type;
    envelope->sender = slot->sender;
    envelope->sender_lease = slot->sender_lease;
    memcpy(envelope->payload, slot->payload, sizeof slot->payload);
    return envelope;
}

__attribute__((noinline, cold)) static bool
hold_belt_message_for_exposed_house(domi_manager *manager, const domi_belt_slot *slot)
{
    domi_envelope *envelope = domi_pool_take_object(manager, DOMI_SLAB_128);
    domi_house *house = slot->house;
    uintptr_t named = (uintptr_t)house;

    if (envelope == NULL)
        return false;
    memcpy((char *)copy_belt_slot_to_envelope(slot, envelope) + HELD_HOUSE, &named, sizeof named);
    domi_list_append_node(&manager->belts.held, &envelope->node);
    domi_house_set_slot_bits(house, domi_house_slot_bits(house) | DOMI_SLOT_HELD);
    return true;
}

/* Take an envelope for a message of a belt beyond memory.threadMax; NULL if there is no memory at
 * all. The contents of the belts may exceed that bound, because they have to be delivered before
 * the inboxes. But senders are told to put no more on the belts. */
__attribute__((noinline, cold)) static domi_envelope *
take_envelope_beyond_memory_bound(domi_manager *manager)
{
    atomic_store_explicit(&manager->belts.is_short, true, memory_order_relaxed);
    return domi_pool_take_object(manager, DOMI_SLAB_64);
}

/* Carry the message of a belt's slot to its house. Returns false if there is no memory for it. */
DOMI_INLINE bool carry_message_to_house(domi_manager *manager, const domi_belt_slot *slot)
{
    domi_house *house = slot->house;

    if (DOMI_UNLIKELY(domi_house_is_exposed(house)))
        return hold_belt_message_for_exposed_house(manager, slot);
    domi_envelope *envelope = domi_pool_take_object_maybe_bounded(manager, DOMI_SLAB_64, true);
    if (DOMI_UNLIKELY(envelope == NULL) &&
        (envelope = take_envelope_beyond_memory_bound(manager)) == NULL)
        return false;
    domi_mailbox_deliver_belt_message(manager, house,
                                      &copy_belt_slot_to_envelope(slot, envelope)->node);
    return true;
}

/* --- belts ------------------------------------------------------------------------------------ */

/* Let the receiver of a belt continue in the larger ring that this slot names, and free the old
 * ring. */
__attribute__((noinline, cold)) static void
let_receiver_change_to_larger_ring(domi_belt *belt, const domi_belt_slot *slot)
{
    domi_belt_slot *old = belt->read.slots;

    memcpy(&belt->read, slot->payload, sizeof belt->read);
    domi_belt_free_ring(belt, old);
}

/* a belt counts as carrying a stream if one look finds at least this many messages on it */
#define STREAM 16u

/* Bounds of one wait for a stream, which takes about a microsecond: looks at a slot, and pauses
 * between two looks. */
#define STREAM_LOOKS  8u
#define STREAM_PAUSES 8u

/* number of looks at a belt without a wait that follow a wait for a stream that was in vain */
#define LOOKS_WITHOUT_WAIT 16u

/* Wait until the sender of a stream has filled slots for a look of full size, if home has nothing
 * else to do.
 *
 * A receiver that is faster than the sender looks at the slot that is filled next, so the sender
 * has to fetch its cache line again, and also the lines behind it that the CPU has read ahead. */
static void wait_for_more_slots_of_belt_stream(const domi_manager *manager, domi_belt *belt)
{
    uint64_t some =
        (belt->read.mask + 1) / 2 < DOMI_BELT_LOOK ? (belt->read.mask + 1) / 2 : DOMI_BELT_LOOK;

    if (belt->last_look < STREAM || domi_manager_has_ready_actor(manager))
        return;
    if (belt->looks_without_wait != 0) {
        belt->looks_without_wait--;
        return;
    }
    for (uint32_t i = 0; i < STREAM_LOOKS; i++) {
        if (domi_belt_has_message(belt, belt->next_number + some - 1, memory_order_relaxed))
            return;
        for (uint32_t j = 0; j < STREAM_PAUSES; j++)
            domi_pause();
    }
    belt->looks_without_wait = LOOKS_WITHOUT_WAIT;
}

/* Take up to `most` messages from a belt. Returns their number; sets `starved` if there was no
 * memory for one of them. */
DOMI_INLINE uint32_t take_messages_of_belt(domi_manager *manager, domi_belt *belt, uint64_t most)
{
    uint32_t count = 0;

    while (count < most) {
        /* acquire: pairs with the exchange in fill_and_publish_slot() (belt.c). */
        const domi_belt_slot *slot = domi_belt_peek_next_slot(belt, memory_order_acquire);
        if (slot == NULL)
            break;
        if (DOMI_UNLIKELY(slot->house == NULL)) {
            let_receiver_change_to_larger_ring(belt, slot);
        } else if (DOMI_LIKELY(carry_message_to_house(manager, slot))) {
            count++;
        } else {
            manager->belts.starved = true;
            break;
        }
        belt->next_number++;
    }
    /* release: when the sender reads `taken`, it may write the slots up to that number again. */
    atomic_store_explicit(&belt->taken, belt->next_number, memory_order_release);
    return count;
}

/* Take over the belts that senders have linked: these belts are on. */
static void take_over_linked_belts(domi_manager *manager)
{
    if (atomic_load_explicit(&manager->belts.linked, memory_order_relaxed) == NULL)
        return;
    /* acquire: pairs with turn_belt_on() (belt.c), so `linked_next` and `first` of the belts are
     * seen. */
    domi_belt *belt = atomic_exchange_explicit(&manager->belts.linked, NULL, memory_order_acquire);

    while (belt != NULL) {
        domi_belt *linked_next = belt->linked_next;
        if (belt->first.slots != NULL) {
            belt->read = belt->first;
            belt->first.slots = NULL;
        }
        belt->empty_looks = 0;
        belt->next = manager->belts.on;
        manager->belts.on = belt;
        belt = linked_next;
    }
}

/* Turn off a belt that seems empty (belt.h). Returns false if it stays on because a message has
 * come. If the sender has turned the belt on meanwhile, the belt is linked and comes back through
 * `linked`. */
static bool turn_off_empty_belt(domi_belt *belt)
{
    uint32_t looking = DOMI_BELT_LOOKING;

    /* seq_cst: this exchange stands before the look at the slot in the one order of all seq_cst
     * operations, as the sender's publication does before its look at the switch. So at least one
     * of the two sees what the other has done. */
    (void)atomic_exchange_explicit(&belt->power, DOMI_BELT_LOOKING, memory_order_seq_cst);
    bool found = domi_belt_peek_next_slot(belt, memory_order_seq_cst) != NULL;
    /* release, if the switch becomes OFF: from then on the sender may give the slots back. */
    bool mine = atomic_compare_exchange_strong_explicit(&belt->power, &looking,
                                                        found ? DOMI_BELT_ON : DOMI_BELT_OFF,
                                                        memory_order_acq_rel, memory_order_relaxed);
    return !(found && mine);
}

uint32_t domi_belts_take_some_messages(domi_manager *manager)
{
    uint32_t count = 0;

    manager->belts.starved = false;
    take_over_linked_belts(manager);
    for (domi_belt **at = &manager->belts.on; *at != NULL;) {
        domi_belt *belt = *at;
        wait_for_more_slots_of_belt_stream(manager, belt);
        uint32_t taken = take_messages_of_belt(manager, belt, DOMI_BELT_LOOK);

        count += taken;
        belt->last_look = taken;
        belt->empty_looks = taken != 0 ? 0 : belt->empty_looks + 1;
        if (belt->empty_looks > EMPTY_LOOKS && !manager->belts.starved && turn_off_empty_belt(belt))
            *at = belt->next;
        else
            at = &belt->next;
    }
    return count;
}

bool domi_belts_take_all_messages(domi_manager *manager)
{
    manager->belts.starved = false;
    take_over_linked_belts(manager);
    /* A sender may go on filling slots during this loop. The size of its ring bounds what is
     * taken. */
    for (domi_belt *belt = manager->belts.on; belt != NULL; belt = belt->next)
        (void)take_messages_of_belt(manager, belt, 2 * manager->config->scheduler.belt_slots);
    return !manager->belts.starved;
}

bool domi_belts_turn_all_off(domi_manager *manager)
{
    /* If there is no memory for the messages on the belts, the thread may sleep; it looks at the
     * belts again after memory was measured. */
    if (manager->belts.starved)
        return true;
    for (domi_belt **at = &manager->belts.on; *at != NULL;) {
        if (!turn_off_empty_belt(*at))
            return false;
        *at = (*at)->next;
    }
    return true;
}

/* --- exposed houses, and memory --------------------------------------------------------------- */

void domi_belts_deliver_held_messages(domi_manager *manager, domi_house *house)
{
    domi_node *others = NULL;
    domi_node *its = NULL;

    while (manager->belts.held != NULL) {
        domi_node *node = domi_list_take_first_node(&manager->belts.held);
        uintptr_t named;
        memcpy(&named, (char *)node + HELD_HOUSE, sizeof named);
        domi_list_append_node(named == (uintptr_t)house ? &its : &others, node);
    }
    manager->belts.held = others;
    while (its != NULL)
        domi_mailbox_deliver_belt_message(manager, house, domi_list_take_first_node(&its));
}

void domi_belts_allow_when_memory_is_back(domi_manager *manager)
{
    if (!atomic_load_explicit(&manager->belts.is_short, memory_order_relaxed))
        return;
    if (domi_pool_can_take_object_bounded(manager, DOMI_SLAB_64))
        atomic_store_explicit(&manager->belts.is_short, false, memory_order_relaxed);
}
