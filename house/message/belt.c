/* The sender's side of a belt: claims, fills and publishes slots; makes rings, enlarges them and
 * gives them back. */
#include "house/message/belt.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/prefetch.h"
#include "base/probe.h"
#include "house/message/pool.h"

#include <errno.h>
#include <string.h>

/* number of slots between the slot that is filled and the slot that is prefetched */
#define AHEAD 6u

/* Time between two checks of a belt's ring for use, in nanoseconds. A ring that was not used
 * between two checks is freed, which is one to two of these times after its last use. */
#define TRIM_EVERY_NS UINT64_C(5000000000)

/* --- rings ------------------------------------------------------------------------------------ */

/* Add the bytes of a belt's ring to the memory of the receiver's thread. Relaxed: the receiver only
 * compares this sum with a bound. */
static void charge_ring_to_receiver(const domi_belt *belt, int64_t bytes)
{
    atomic_fetch_add_explicit(&belt->receiver->pool.heap_bytes, bytes, memory_order_relaxed);
}

static domi_belt_ring allocate_ring_of_belt(const domi_belt *belt, uint64_t slots)
{
    domi_belt_ring ring = {domi_memory_new_cache_lines((size_t)slots * sizeof(domi_belt_slot)),
                           slots - 1};

    if (ring.slots != NULL)
        charge_ring_to_receiver(belt, (int64_t)domi_memory_bytes_of_block(ring.slots));
    return ring;
}

void domi_belt_free_ring(domi_belt *belt, domi_belt_slot *slots)
{
    if (slots == NULL)
        return;
    charge_ring_to_receiver(belt, -(int64_t)domi_memory_bytes_of_block(slots));
    domi_memory_free(slots);
}

/* --- the beginning and the end ---------------------------------------------------------------- */

int domi_belts_init(domi_manager *manager)
{
    uint64_t most = manager->config->scheduler.belt_slots;

    if (most == 0 || manager->threads < 2 || manager->index >= manager->threads)
        return 0;
    manager->belts.to = domi_memory_new(manager->threads * sizeof(domi_belt *));
    if (manager->belts.to == NULL)
        return -ENOMEM;
    return 0;
}

/* Release the messages that are left on a belt whose receiver has ended. */
static void release_messages_left_on_belt(domi_belt *belt)
{
    /* the sender has made this ring while the belt was off, and the receiver never took it */
    if (belt->first.slots != NULL)
        belt->read = belt->first;
    if (belt->filled.slots == NULL)
        return;
    for (; belt->next_number != belt->put; belt->next_number++) {
        domi_belt_slot *slot = domi_belt_peek_next_slot(belt, memory_order_relaxed);
        DOMI_CHECK(slot != NULL);
        if (slot->house == NULL) {
            domi_belt_slot *old = belt->read.slots;
            memcpy(&belt->read, slot->payload, sizeof belt->read);
            domi_belt_free_ring(belt, old);
        } else if (slot->type->release != NULL) {
            slot->type->release(slot->payload);
        }
    }
}

void domi_belts_fini(domi_manager *manager)
{
    if (manager->belts.to == NULL)
        return;
    for (uint32_t i = 0; i < manager->threads; i++) {
        domi_belt *belt = manager->belts.to[i];
        if (belt == NULL)
            continue;
        release_messages_left_on_belt(belt);
        /* The receiving thread may have ended, so its count of bytes is not changed for this
         * ring. */
        domi_memory_free(belt->filled.slots);
        domi_memory_free(belt);
    }
    domi_memory_free(manager->belts.to);
    manager->belts.to = NULL;
}

/* --- the sender ------------------------------------------------------------------------------- */

/* Make the belt from this thread to `home`; the belt has no ring yet. */
__attribute__((noinline, cold)) static domi_belt *make_belt_to_home(domi_manager *manager,
                                                                    domi_manager *home)
{
    domi_belt *belt = domi_memory_new_cache_lines(sizeof *belt);

    if (belt != NULL)
        belt->receiver = home;
    manager->belts.to[home->index] = belt;
    return belt;
}

/* Give a belt that is off a ring: its first one, or one in place of a ring that was given back. */
__attribute__((noinline, cold)) static bool give_ring_to_idle_belt(domi_belt *belt)
{
    domi_belt_ring ring = allocate_ring_of_belt(belt, DOMI_BELT_SLOTS);

    if (ring.slots == NULL)
        return false;
    /* The belt is off and not linked, so the receiver does not read its ring before the sender
     * links the belt. */
    belt->filled = belt->first = ring;
    return true;
}

/* Fill the next slot of the belt's ring with a message, and publish it to the receiver. */
DOMI_INLINE void fill_and_publish_slot(domi_belt *belt, domi_belt_slot *slot)
{
    /* seq_cst, by an exchange: it publishes the slot to the receiver's acquire load. It also stands
     * before the load of the belt's switch in the one order of all seq_cst operations. */
    (void)atomic_exchange_explicit(&slot->sequence, ++belt->put, memory_order_seq_cst);
}

/* Continue a belt whose ring is full in a new ring of twice the size. The last free slot of the old
 * ring tells the receiver where the new one is. */
__attribute__((noinline, cold)) static bool
let_sender_continue_in_larger_ring(const domi_manager *manager, domi_belt *belt)
{
    uint64_t slots = 2 * (belt->filled.mask + 1);

    if (slots > manager->config->scheduler.belt_slots)
        return false;
    domi_belt_ring ring = allocate_ring_of_belt(belt, slots);
    if (ring.slots == NULL)
        return false;
    domi_belt_slot *slot = &belt->filled.slots[belt->put & belt->filled.mask];
    slot->house = NULL;
    memcpy(slot->payload, &ring, sizeof ring);
    fill_and_publish_slot(belt, slot);
    belt->filled = ring;
    return true;
}

/* True if the ring has a free slot besides the last one, which is kept to tell of the change to a
 * larger ring. */
static bool has_ring_free_slot(const domi_belt *belt)
{
    return belt->put - belt->taken_seen < belt->filled.mask;
}

/* Find a free slot for a message when the belt has no ring, or its ring seems full: the slow half
 * of domi_belt_put_notice(). */
__attribute__((noinline)) static bool find_free_slot_of_belt(const domi_manager *manager,
                                                             domi_belt *belt)
{
    if (belt->filled.slots == NULL)
        return give_ring_to_idle_belt(belt);
    /* acquire: pairs with the release in carry.c by which the receiver counts the slots that it has
     * read. */
    belt->taken_seen = atomic_load_explicit(&belt->taken, memory_order_acquire);
    return has_ring_free_slot(belt) || let_sender_continue_in_larger_ring(manager, belt);
}

/* Turn on a belt whose switch was not ON: the receiver may not look at it any more. */
__attribute__((noinline)) static void turn_belt_on(domi_manager *manager, domi_belt *belt)
{
    domi_manager *receiver = belt->receiver;
    domi_belt *head = NULL;

    /* seq_cst: the receiver's exchange of the switch and this exchange stand in one order. The
     * later of the two sees what the earlier has written. */
    if (atomic_exchange_explicit(&belt->power, DOMI_BELT_ON, memory_order_seq_cst) == DOMI_BELT_ON)
        return;
    do
        belt->linked_next = head;
    /* seq_cst: the comment in push_chain_to_arrivals() (arrivals.c) says why, for the like link of
     * a house. */
    while (!atomic_compare_exchange_weak_explicit(&receiver->belts.linked, &head, belt,
                                                  memory_order_seq_cst, memory_order_relaxed));
    domi_manager_notify_of_push(manager, receiver);
}

/* True if the receiver dozes and does not look at the belt. A sender may then stand in for the
 * receiver; but a stand-in takes messages from inboxes only, not from belts (base/park.h). Relaxed:
 * if the belt is used nevertheless, the receiver is woken. */
static bool is_receiver_dozing_without_belt(domi_belt *belt)
{
    return DOMI_UNLIKELY(atomic_load_explicit(&belt->power, memory_order_relaxed) !=
                         DOMI_BELT_ON) &&
           domi_park_may_waking_be_put_off(&belt->receiver->park);
}

bool domi_belt_put_notice(domi_manager *manager, domi_house *house, domi_node *node)
{
    domi_manager *home = house->home;
    domi_belt *belt = manager->belts.to[home->index];
    const domi_envelope *envelope = (const domi_envelope *)(const void *)node;

    /* Relaxed: a sender that does not see yet that the receiver's memory is short uses the belt,
     * and its message is delivered all the same. */
    if (DOMI_UNLIKELY(atomic_load_explicit(&home->belts.is_short, memory_order_relaxed)))
        return false;
    if (DOMI_UNLIKELY(belt == NULL) && (belt = make_belt_to_home(manager, home)) == NULL)
        return false;
    if (is_receiver_dozing_without_belt(belt))
        return false;
    if (DOMI_UNLIKELY(belt->filled.slots == NULL || !has_ring_free_slot(belt)) &&
        !find_free_slot_of_belt(manager, belt))
        return false;
    domi_belt_slot *slot = &belt->filled.slots[belt->put & belt->filled.mask];
    domi_prefetch_write(&belt->filled.slots[(belt->put + AHEAD) & belt->filled.mask]);
    slot->house = house;
    slot->type = envelope->type;
    slot->sender = envelope->sender;
    slot->lease = node->lease;
    slot->sender_lease = envelope->sender_lease;
    memcpy(slot->payload, envelope->payload, sizeof slot->payload);
    DOMI_PROBE_2(send__belt, house->home, envelope);
    fill_and_publish_slot(belt, slot);
    /* seq_cst: the comment in fill_and_publish_slot() says why. A relaxed load of the switch would
     * have no place in that one order. */
    if (DOMI_UNLIKELY(atomic_load_explicit(&belt->power, memory_order_seq_cst) != DOMI_BELT_ON))
        turn_belt_on(manager, belt);
    domi_counter_add(&manager->counters.belted, 1);
    domi_pool_free_object(manager, node);
    return true;
}

/* --- trim ------------------------------------------------------------------------------------- */

static void free_unused_ring_of_belt(domi_belt *belt)
{
    bool used = belt->put != belt->put_at_trim;

    belt->put_at_trim = belt->put;
    /* acquire: pairs with the exchange by which the receiver turned the belt off, after its last
     * look at the slot. Only this thread turns the belt on again. */
    if (used || belt->filled.slots == NULL ||
        atomic_load_explicit(&belt->power, memory_order_acquire) != DOMI_BELT_OFF)
        return;
    domi_belt_free_ring(belt, belt->filled.slots);
    belt->filled.slots = NULL;
}

void domi_belts_free_unused_rings(domi_manager *manager)
{
    if (manager->belts.to == NULL || manager->now_ns < manager->belts.trim_at_ns)
        return;
    manager->belts.trim_at_ns = manager->now_ns + TRIM_EVERY_NS;
    for (uint32_t i = 0; i < manager->threads; i++) {
        if (manager->belts.to[i] != NULL)
            free_unused_ring_of_belt(manager->belts.to[i]);
    }
}
