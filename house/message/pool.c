/* The pools of a manager: the sizes of the slabs, the chains for other owners, and the slow halves
 * of take and free. */
#include "house/message/pool.h"

#include "base/memory.h"
#include "house/message/shared.h"

#include <errno.h>

static const struct {
    uint16_t bytes; /* size of one object of the slab in bytes */
    /* Number of bytes of a free object that stay readable under AddressSanitizer: the node of an
     * envelope, or everything up to the last field that a late reader may read. */
    uint16_t keep;
} sizes[DOMI_SLABS] = {
    [DOMI_SLAB_64] = {64, 16},
    [DOMI_SLAB_128] = {128, 16},
    [DOMI_SLAB_256] = {256, 16},
    [DOMI_SLAB_512] = {512, 16},
    [DOMI_SLAB_1088] = {DOMI_POOLED_MAX, 16},
    [DOMI_SLAB_STACK_SMALL] = {384, 320},
    [DOMI_SLAB_STACK_MEDIUM] = {640, 320},
    [DOMI_SLAB_STACK_LARGE] = {1088, 320},
    [DOMI_SLAB_PROMISE] = {128, 128},
    [DOMI_SLAB_TIMER] = {128, 128},
    [DOMI_SLAB_WATCH] = {128, 128},
    [DOMI_SLAB_DESCRIPTOR] = {128, 128},
    [DOMI_SLAB_MEMORY_WATCH] = {128, 128},
    [DOMI_SLAB_MEMBER] = {64, 16},
};

#define CHUNK_BYTES (256u * 1024) /* bytes of memory that a slab of a pool maps at a time */

void domi_pool_init(domi_manager *manager)
{
    for (uint32_t i = 0; i < DOMI_SLABS; i++) {
        domi_slab_init(&manager->pool.slabs[i], sizes[i].bytes, sizes[i].keep, CHUNK_BYTES);
        /* only the chunks of envelopes go back to the kernel: late readers may read the other
         * objects */
        manager->pool.slabs[i].lasts = i > DOMI_SLAB_1088;
    }
}

void domi_pool_fini(domi_manager *manager)
{
    for (uint32_t i = 0; i < DOMI_SLABS; i++)
        domi_slab_fini(&manager->pool.slabs[i]);
}

static void push_chain_of_objects_to_owner(domi_manager *owner, domi_chain *full)
{
    domi_node *head = atomic_load_explicit(&owner->pool.remote, memory_order_relaxed);

    do
        full->tail->next = head;
    /* release: pairs with the exchange in domi_pool_sort_returned_objects(), so the owner of the
     * objects sees the last writes to them. */
    while (!atomic_compare_exchange_weak_explicit(&owner->pool.remote, &head, full->head,
                                                  memory_order_release, memory_order_relaxed));
    *full = (domi_chain){NULL, NULL};
}

/* Link a freed object of another manager into the chain of objects for its owner. */
static void add_object_to_chain_of_owner(domi_manager *manager, domi_node *node)
{
    domi_chain *to = &manager->pool.chains[node->owner];

    node->next = to->head;
    if (to->head == NULL)
        to->tail = node;
    to->head = node;
    manager->pool.chained++;
}

void domi_pool_push_chains_to_owners(domi_manager *manager)
{
    if (manager->pool.guest != NULL)
        add_object_to_chain_of_owner(manager, manager->pool.guest);
    manager->pool.guest = NULL;
    if (manager->pool.chained == 0)
        return;
    for (uint32_t i = 0; i < manager->count; i++) {
        if (manager->pool.chains[i].head != NULL)
            push_chain_of_objects_to_owner(manager->managers[i], &manager->pool.chains[i]);
    }
    manager->pool.chained = 0;
}

/* Most objects given back by other threads that one call sorts into the slabs. If they were sorted
 * one by one when they are needed, each would be a cache miss on the way of a message (N senders to
 * 1 receiver: 13 instead of 22 million messages a second). If all were sorted at once, a thread
 * would stand still after others have freed a million for it. */
#define COLLECT_MAX 4096

bool domi_pool_sort_returned_objects(domi_manager *manager)
{
    domi_node *node = manager->pool.returned;

    if (node == NULL) {
        if (atomic_load_explicit(&manager->pool.remote, memory_order_relaxed) == NULL)
            return false;
        /* acquire: pairs with the release in push_chain_of_objects_to_owner(). */
        node = atomic_exchange_explicit(&manager->pool.remote, NULL, memory_order_acquire);
    }
    for (int most = COLLECT_MAX; node != NULL && most != 0; most--) {
        domi_node *next = node->next;
        domi_slab_put_object(&manager->pool.slabs[node->slab], node);
        node = next;
    }
    manager->pool.returned = node;
    return node != NULL;
}

/* Bring free objects back into `slab`: those that other threads freed, and those that a trim has
 * taken out of the slab's list. Returns true if the slab has a free object now. */
static bool refill_slab_with_returned_objects(domi_manager *manager, domi_slab *slab)
{
    (void)domi_pool_sort_returned_objects(manager);
    if (slab->free == NULL)
        domi_slab_trim_stop(slab);
    if (slab->free != NULL)
        return true;
    if (DOMI_UNLIKELY(slab->spare_bytes != 0)) {
        /* The slab has used up the free objects that the last trim counted as spare. Relaxed: the
         * threads that measure memory may see this late. */
        domi_counter_add(&manager->memory.spare_bytes, -slab->spare_bytes);
        slab->spare_bytes = 0;
    }
    return false;
}

static void *carve_object_for_manager(domi_manager *manager, uint32_t slab)
{
    domi_node *node = domi_slab_carve_object(&manager->pool.slabs[slab]);

    if (node == NULL)
        return NULL;
    /* An object keeps its owner and its slab for ever, so these two fields are written once. */
    node->owner = (uint16_t)manager->index;
    node->slab = (uint8_t)slab;
    return node;
}

void *domi_pool_take_object_slow(domi_manager *manager, uint32_t slab)
{
    if (refill_slab_with_returned_objects(manager, &manager->pool.slabs[slab]))
        return domi_slab_take_free_object(&manager->pool.slabs[slab]);
    return carve_object_for_manager(manager, slab);
}

uint64_t domi_pool_bytes_of_envelopes(const domi_manager *manager)
{
    int64_t heap_bytes = atomic_load_explicit(
        (_Atomic int64_t *)(uintptr_t)&manager->pool.heap_bytes, memory_order_relaxed);
    uint64_t bytes = heap_bytes > 0 ? (uint64_t)heap_bytes : 0;

    for (uint32_t i = 0; i <= DOMI_SLAB_1088; i++)
        bytes += manager->pool.slabs[i].mapped_bytes;
    return bytes;
}

/* True if `bytes` more of envelopes fit under memory.threadMax (0: no bound). */
static bool do_bytes_fit_under_thread_max(const domi_manager *manager, size_t bytes)
{
    uint64_t most = manager->config->memory.thread_max_bytes;

    return most == 0 || domi_pool_bytes_of_envelopes(manager) + bytes <= most;
}

void *domi_pool_take_object_slow_bounded(domi_manager *manager, uint32_t index)
{
    domi_slab *slab = &manager->pool.slabs[index];

    if (refill_slab_with_returned_objects(manager, slab))
        return domi_slab_take_free_object(slab);
    manager->memory.at_max =
        domi_slab_needs_new_chunk(slab) &&
        !do_bytes_fit_under_thread_max(manager, domi_slab_bytes_of_next_chunk(slab));
    return manager->memory.at_max ? NULL : carve_object_for_manager(manager, index);
}

bool domi_pool_can_take_object_bounded(domi_manager *manager, uint32_t index)
{
    domi_slab *slab = &manager->pool.slabs[index];

    return refill_slab_with_returned_objects(manager, slab) || !domi_slab_needs_new_chunk(slab) ||
           do_bytes_fit_under_thread_max(manager, domi_slab_bytes_of_next_chunk(slab));
}

int domi_message_error_of_failed_new(domi_manager *manager)
{
    if (manager->memory.at_max) {
        domi_counter_add(&manager->counters.thread_max_refusals, 1);
        return -ENOBUFS;
    }
    if (!domi_memory_is_full())
        return -ENOMEM;
    domi_counter_add(&manager->counters.busy, 1);
    return -EBUSY;
}

/* Free an envelope from the heap, or a notice whose payload is shared. */
__attribute__((noinline)) static void free_envelope_outside_slabs(domi_manager *manager,
                                                                  domi_node *node)
{
    if (node->slab == DOMI_SLAB_HEAP) {
        /* Relaxed: the owner only compares this sum of bytes with a bound. */
        atomic_fetch_sub_explicit(&manager->managers[node->owner]->pool.heap_bytes,
                                  (int64_t)domi_memory_bytes_of_block(node), memory_order_relaxed);
        domi_memory_free(node);
        return;
    }
    DOMI_CHECK(node->slab == DOMI_SLAB_SHARED);
    domi_shared_notice_free(manager, (domi_envelope *)(void *)node);
}

void domi_pool_free_object_slow(domi_manager *manager, domi_node *node)
{
    if (DOMI_UNLIKELY(node->slab >= DOMI_SLABS)) {
        free_envelope_outside_slabs(manager, node);
        return;
    }
    DOMI_CHECK(node->owner < manager->count);

    /* While messages come in a flood, no guest is kept. Envelopes are then freed in the order in
     * which they were taken, which is also their order in memory. Guests would disturb this order
     * bit by bit, until each take is a cache miss (N senders to 1 receiver: 13 instead of 22
     * million messages a second). */
    if (manager->mail.alone && manager->pool.guest == NULL && node->slab <= DOMI_SLAB_128)
        manager->pool.guest = node;
    else
        add_object_to_chain_of_owner(manager, node);
}

domi_envelope *domi_pool_take_heap_envelope(domi_manager *manager, size_t bytes)
{
    domi_envelope *envelope = domi_memory_new(bytes);

    if (envelope == NULL)
        return NULL;
    envelope->node.owner = (uint16_t)manager->index;
    envelope->node.slab = DOMI_SLAB_HEAP;
    atomic_fetch_add_explicit(&manager->pool.heap_bytes,
                              (int64_t)domi_memory_bytes_of_block(envelope), memory_order_relaxed);
    return envelope;
}

domi_envelope *domi_pool_take_heap_envelope_bounded(domi_manager *manager, size_t bytes)
{
    manager->memory.at_max = !do_bytes_fit_under_thread_max(manager, bytes);
    return manager->memory.at_max ? NULL : domi_pool_take_heap_envelope(manager, bytes);
}
