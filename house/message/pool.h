/* Pools: a manager's slabs of envelopes, stacks, promises, timers and watches, and the way back for
 * objects that another thread frees.
 *
 * An object remembers its owner. If its owner frees it, it is the next one that is taken. If
 * another thread frees it, that thread links it into a chain for the owner; it pushes its chains
 * when they hold DOMI_CHAINED_MAX objects, and before it sleeps. So to free an object of another
 * thread costs no atomic operation of its own. The owner takes all chains at once when a slab runs
 * dry.
 *
 * One envelope of another manager is not chained: it stays as the *guest*, and is the next one that
 * is taken here. So two threads that answer each other pass the same few envelopes to and fro, and
 * neither has to fetch an envelope from the other core's cache before it fills it. Owner thread
 * only. */
#ifndef DOMI_HOUSE_MESSAGE_POOL_H
#define DOMI_HOUSE_MESSAGE_POOL_H

#include "house/message/manager.h"

/* size in bytes of the largest envelope that comes from a slab, head and payload */
#define DOMI_POOLED_MAX 1088u

void domi_pool_init(domi_manager *manager);
void domi_pool_fini(domi_manager *manager);

/* Push all chains of freed objects, and the guest, to their owners. A push takes a cache line away
 * from the owner, so objects are gathered first: this is called when DOMI_CHAINED_MAX objects are
 * chained, and before the thread sleeps. */
#define DOMI_CHAINED_MAX 64u
void domi_pool_push_chains_to_owners(domi_manager *manager);

/* Take an object when the slab is empty: the slow half of a take. Returns an object that another
 * thread has given back, else a new one; NULL if there is no memory.
 * domi_pool_take_object_slow_bounded() is for asks and notices, and also returns NULL if
 * memory.threadMax would be exceeded. */
void *domi_pool_take_object_slow(domi_manager *manager, uint32_t slab);
void *domi_pool_take_object_slow_bounded(domi_manager *manager, uint32_t slab);

/* True if domi_pool_take_object_slow_bounded() would find an object, or room for one under
 * memory.threadMax. */
bool domi_pool_can_take_object_bounded(domi_manager *manager, uint32_t slab);

/* Free an object by the slow half of domi_pool_free_object(): an object of another manager goes
 * into a chain, and an envelope that is in no slab goes back to the heap. */
void domi_pool_free_object_slow(domi_manager *manager, domi_node *node);

/* Returns an envelope of `bytes` in all (head and payload), which is too large for the slabs and
 * comes from the heap; NULL in the cases of domi_pool_take_object_slow() and
 * domi_pool_take_object_slow_bounded(). */
domi_envelope *domi_pool_take_heap_envelope(domi_manager *manager, size_t bytes);
domi_envelope *domi_pool_take_heap_envelope_bounded(domi_manager *manager, size_t bytes);

/* Returns the number of bytes of this manager's envelopes: all chunks of their slabs, and those on
 * the heap. */
uint64_t domi_pool_bytes_of_envelopes(const domi_manager *manager);

/* Sort some of the objects that other threads gave back into the slabs. Returns true if more are
 * left. */
bool domi_pool_sort_returned_objects(domi_manager *manager);

DOMI_INLINE void *domi_pool_take_object_maybe_bounded(domi_manager *manager, uint32_t index,
                                                      bool bounded)
{
    domi_slab *slab = &manager->pool.slabs[index];

    DOMI_CHECK_SLOW(domi_manager_is_owned_by_caller(manager));
    if (DOMI_UNLIKELY(slab->free == NULL))
        return bounded ? domi_pool_take_object_slow_bounded(manager, index)
                       : domi_pool_take_object_slow(manager, index);
    return domi_slab_take_free_object(slab);
}

DOMI_INLINE void *domi_pool_take_object(domi_manager *manager, uint32_t index)
{
    return domi_pool_take_object_maybe_bounded(manager, index, false);
}

/* Free an object, from the thread of `manager`. It goes back to the slab of the manager that owns
 * it (node->owner). If that is another manager, it travels there in a chain with others
 * (domi_pool_push_chains_to_owners()). */
static inline void domi_pool_free_object(domi_manager *manager, domi_node *node)
{
    DOMI_CHECK_SLOW(domi_manager_is_owned_by_caller(manager));
    if (DOMI_LIKELY(node->owner == manager->index && node->slab < DOMI_SLABS))
        domi_slab_put_object(&manager->pool.slabs[node->slab], node);
    else
        domi_pool_free_object_slow(manager, node);
}

/* True if the next envelope of slab `index` lies in the slab's list, and no guest comes first. */
static inline bool domi_pool_has_free_envelope_in_slab(const domi_manager *manager, uint32_t index)
{
    return manager->pool.slabs[index].free != NULL && manager->pool.guest == NULL;
}

/* Take an envelope as domi_pool_take_object_maybe_bounded() does, but take the guest (see the head
 * of this file) first if it has this size. */
DOMI_INLINE void *domi_pool_take_envelope(domi_manager *manager, uint32_t index, bool bounded)
{
    domi_node *guest = manager->pool.guest;

    if (DOMI_UNLIKELY(guest != NULL) && guest->slab == index) {
        manager->pool.guest = NULL;
        return guest;
    }
    return domi_pool_take_object_maybe_bounded(manager, index, bounded);
}

DOMI_INLINE domi_envelope *domi_envelope_new_maybe_bounded(domi_manager *manager, size_t bytes,
                                                           bool bounded)
{
    if (DOMI_LIKELY(bytes <= 64))
        return domi_pool_take_envelope(manager, DOMI_SLAB_64, bounded);
    if (bytes <= 128)
        return domi_pool_take_envelope(manager, DOMI_SLAB_128, bounded);
    if (bytes <= 256)
        return domi_pool_take_object_maybe_bounded(manager, DOMI_SLAB_256, bounded);
    if (bytes <= 512)
        return domi_pool_take_object_maybe_bounded(manager, DOMI_SLAB_512, bounded);
    if (bytes <= DOMI_POOLED_MAX)
        return domi_pool_take_object_maybe_bounded(manager, DOMI_SLAB_1088, bounded);
    return bounded ? domi_pool_take_heap_envelope_bounded(manager, bytes)
                   : domi_pool_take_heap_envelope(manager, bytes);
}

/* Returns an envelope for `bytes` in all (head and payload), with only node.owner and node.slab
 * set; NULL if there is no memory. */
DOMI_INLINE domi_envelope *domi_envelope_new(domi_manager *manager, size_t bytes)
{
    return domi_envelope_new_maybe_bounded(manager, bytes, false);
}

/* Take a new envelope as domi_envelope_new() does, for an ask or a notice, which memory.threadMax
 * bounds. If this returns NULL, domi_message_error_of_failed_new() says why. */
DOMI_INLINE domi_envelope *domi_message_new(domi_manager *manager, size_t bytes)
{
    return domi_envelope_new_maybe_bounded(manager, bytes, true);
}

/* Returns the reason why domi_message_new() has just failed: -ENOBUFS because of memory.threadMax;
 * -EBUSY because memory is full and messages get no more of it; otherwise -ENOMEM. Counts the first
 * two. */
int domi_message_error_of_failed_new(domi_manager *manager);

/* Returns the number of bytes that an envelope can hold in all (head and payload). For an envelope
 * from the heap it returns 0, because its size is exactly what was asked for, and is not recorded.
 * The envelope may be of any manager, because their slabs have the same sizes. */
static inline size_t domi_envelope_bytes_in_all(const domi_manager *manager,
                                                const domi_envelope *envelope)
{
    uint32_t slab = envelope->node.slab;

    return DOMI_LIKELY(slab < DOMI_SLABS) ? manager->pool.slabs[slab].object_bytes : 0;
}

#endif
