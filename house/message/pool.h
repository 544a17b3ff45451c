/* Pools: a manager's slabs of envelopes, stacks and timers, and the way home for what others free.
 *
 * An object remembers its owner. Freed by its owner, it is the next one taken; freed elsewhere, it
 * is linked into a chain for its owner, and chains are pushed once per tick and before a park, so a
 * foreign free costs no atomic operation of its own. The owner takes all chains at once when a
 * slab runs dry. The last foreign envelope stays as a guest instead, and is the next one taken: so
 * those who answer each other across threads pass the same few envelopes to and fro, and none of
 * them has to be fetched from the other's cache to be given out. Owner thread only. */
#ifndef DOMI_HOUSE_MESSAGE_POOL_H
#define DOMI_HOUSE_MESSAGE_POOL_H

#include "house/message/manager.h"

/* Bytes in the largest envelope that is pooled, head and payload. */
#define DOMI_POOLED_MAX 1088u

void domi_pool_init(domi_manager *manager);
void domi_pool_fini(domi_manager *manager);

/* Push all chains to their owners: before a park, and when DOMI_CHAINED_MAX objects are in them. A
 * push takes a cache line from its owner, so it is worth waiting for company. */
#define DOMI_CHAINED_MAX 64u
void domi_pool_flush(domi_manager *manager);

/* The slow half of a take: what others gave back, else a fresh one. NULL without memory; the
 * second, for asks and notices, also when memory.threadMax would be exceeded. */
void *domi_pool_refill(domi_manager *manager, uint32_t slab);
void *domi_pool_refill_bounded(domi_manager *manager, uint32_t slab);

/* The slow half of a free: into the owner's chain, or to the heap. */
void domi_pool_free_slow(domi_manager *manager, domi_node *node);

/* An envelope for `bytes` in all, more than the slabs hold. NULL as above. */
domi_envelope *domi_pool_heap(domi_manager *manager, size_t bytes);
domi_envelope *domi_pool_heap_bounded(domi_manager *manager, size_t bytes);

/* What the manager's envelopes take: the chunks of their slabs, and the heap. */
uint64_t domi_pool_bytes(const domi_manager *manager);

/* Sort some of what others gave back into the slabs. True: there is more. */
bool domi_pool_collect(domi_manager *manager);

DOMI_INLINE void *domi_pool_take_by(domi_manager *manager, uint32_t index, bool bounded)
{
    domi_slab *slab = &manager->slabs[index];

    DOMI_CHECK_SLOW(domi_manager_is_mine(manager));
    if (DOMI_UNLIKELY(slab->free == NULL))
        return bounded ? domi_pool_refill_bounded(manager, index)
                       : domi_pool_refill(manager, index);
    return domi_slab_take_free(slab);
}

DOMI_INLINE void *domi_pool_take(domi_manager *manager, uint32_t index)
{
    return domi_pool_take_by(manager, index, false);
}

static inline void domi_pool_free(domi_manager *manager, domi_node *node)
{
    DOMI_CHECK_SLOW(domi_manager_is_mine(manager));
    if (DOMI_LIKELY(node->owner == manager->index && node->slab < DOMI_SLABS))
        domi_slab_put(&manager->slabs[node->slab], node);
    else
        domi_pool_free_slow(manager, node);
}

DOMI_INLINE void *domi_pool_take_envelope(domi_manager *manager, uint32_t index, bool bounded)
{
    domi_node *guest = manager->guest;

    if (DOMI_UNLIKELY(guest != NULL) && guest->slab == index) {
        manager->guest = NULL;
        return guest;
    }
    return domi_pool_take_by(manager, index, bounded);
}

DOMI_INLINE domi_envelope *domi_envelope_by(domi_manager *manager, size_t bytes, bool bounded)
{
    if (DOMI_LIKELY(bytes <= 64))
        return domi_pool_take_envelope(manager, DOMI_SLAB_64, bounded);
    if (bytes <= 128)
        return domi_pool_take_envelope(manager, DOMI_SLAB_128, bounded);
    if (bytes <= 256)
        return domi_pool_take_by(manager, DOMI_SLAB_256, bounded);
    if (bytes <= 512)
        return domi_pool_take_by(manager, DOMI_SLAB_512, bounded);
    if (bytes <= DOMI_POOLED_MAX)
        return domi_pool_take_by(manager, DOMI_SLAB_1088, bounded);
    return bounded ? domi_pool_heap_bounded(manager, bytes) : domi_pool_heap(manager, bytes);
}

/* An envelope for `bytes` in all (head and payload). Only node.owner and node.slab are set. */
DOMI_INLINE domi_envelope *domi_envelope_new(domi_manager *manager, size_t bytes)
{
    return domi_envelope_by(manager, bytes, false);
}

/* The same for an ask or a notice: within memory.threadMax. NULL: domi_message_error() says why. */
DOMI_INLINE domi_envelope *domi_message_new(domi_manager *manager, size_t bytes)
{
    return domi_envelope_by(manager, bytes, true);
}

/* After domi_message_new() has failed: -ENOBUFS at memory.threadMax; -EBUSY when nothing is given
 * any more; both are counted; else -ENOMEM. */
int domi_message_error(domi_manager *manager);

/* How many bytes an envelope can hold in all; 0 for one from the heap (it is as long as it was
 * asked for, which nobody noted). */
size_t domi_envelope_room(const domi_envelope *envelope);

#endif
