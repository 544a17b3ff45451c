/* The slow halves of pools; see the header. */
#include "house/pool.h"

#include "base/memory.h"
#include "house/shared.h"

static const struct {
    uint16_t bytes;
    uint16_t keep; /* what stays readable in a free one: the node; all that is known by a serial */
} sizes[DOMI_SLABS] = {
    [DOMI_SLAB_64] = {64, 16},
    [DOMI_SLAB_128] = {128, 16},
    [DOMI_SLAB_256] = {256, 16},
    [DOMI_SLAB_512] = {512, 16},
    [DOMI_SLAB_1088] = {1088, 16},
    [DOMI_SLAB_STACK_SMALL] = {384, 320},
    [DOMI_SLAB_STACK_MEDIUM] = {640, 320},
    [DOMI_SLAB_STACK_LARGE] = {1088, 320},
    [DOMI_SLAB_PROMISE] = {128, 128},
    [DOMI_SLAB_TIMER] = {128, 128},
    [DOMI_SLAB_WATCH] = {128, 128},
    [DOMI_SLAB_DESCRIPTOR] = {128, 128},
    [DOMI_SLAB_MEMBER] = {64, 16},
};

#define CHUNK_BYTES (256u * 1024)

void domi_pool_init(domi_manager *manager)
{
    for (uint32_t i = 0; i < DOMI_SLABS; i++)
        domi_slab_init(&manager->slabs[i], sizes[i].bytes, sizes[i].keep, CHUNK_BYTES);
}

void domi_pool_fini(domi_manager *manager)
{
    for (uint32_t i = 0; i < DOMI_SLABS; i++)
        domi_slab_fini(&manager->slabs[i]);
}

static void push_chain(domi_manager *owner, domi_chain *full)
{
    domi_node *head = atomic_load_explicit(&owner->remote, memory_order_relaxed);

    do
        full->tail->next = head;
    /* release: pairs with the exchange in collect(); the objects' last writes are seen. */
    while (!atomic_compare_exchange_weak_explicit(&owner->remote, &head, full->head,
                                                  memory_order_release, memory_order_relaxed));
    *full = (domi_chain){NULL, NULL};
}

static void chain(domi_manager *manager, domi_node *node)
{
    domi_chain *to = &manager->chains[node->owner];

    node->next = to->head;
    if (to->head == NULL)
        to->tail = node;
    to->head = node;
    manager->chained++;
}

void domi_pool_flush(domi_manager *manager)
{
    if (manager->guest != NULL)
        chain(manager, manager->guest);
    manager->guest = NULL;
    if (manager->chained == 0)
        return;
    for (uint32_t i = 0; i < manager->count; i++) {
        if (manager->chains[i].head != NULL)
            push_chain(manager->managers[i], &manager->chains[i]);
    }
    manager->chained = 0;
}

/* Sort what others gave back into the slabs: a few thousand at a time. One by one, as they are
 * needed, each would be a cache miss on the way of a message (N:1: 13 instead of 22 million
 * messages a second); all at once, a thread that others freed a million for would stand still. */
#define COLLECT_MAX 4096

static void collect(domi_manager *manager)
{
    domi_node *node = manager->returned;

    if (node == NULL) {
        if (atomic_load_explicit(&manager->remote, memory_order_relaxed) == NULL)
            return;
        /* acquire: pairs with push_chain(). */
        node = atomic_exchange_explicit(&manager->remote, NULL, memory_order_acquire);
    }
    for (int most = COLLECT_MAX; node != NULL && most != 0; most--) {
        domi_node *next = node->next;
        domi_slab_put(&manager->slabs[node->slab], node);
        node = next;
    }
    manager->returned = node;
}

void *domi_pool_refill(domi_manager *manager, uint32_t slab)
{
    collect(manager);
    if (manager->slabs[slab].free != NULL)
        return domi_slab_take(&manager->slabs[slab]);

    domi_node *node = domi_slab_carve(&manager->slabs[slab]);
    if (node == NULL)
        return NULL;
    /* Written once: an object keeps its owner and its slab for life. */
    node->owner = (uint16_t)manager->index;
    node->slab = (uint8_t)slab;
    return node;
}

/* What is of no slab. */
__attribute__((noinline)) static void free_special(domi_manager *manager, domi_node *node)
{
    if (node->slab == DOMI_SLAB_HEAP) {
        domi_memory_free(node);
        return;
    }
    DOMI_CHECK(node->slab == DOMI_SLAB_SHARED);
    domi_shared_notice_free(manager, (domi_envelope *)(void *)node);
}

void domi_pool_free_slow(domi_manager *manager, domi_node *node)
{
    if (DOMI_UNLIKELY(node->slab >= DOMI_SLABS)) {
        free_special(manager, node);
        return;
    }
    DOMI_CHECK(node->owner < manager->count);

    /* Not in a flood: what is freed in the order in which it was taken, and lies so in memory,
     * would be shuffled bit by bit, and each be a cache miss in the end (N:1: 13 instead of 22
     * million messages a second). */
    if (manager->alone && manager->guest == NULL && node->slab <= DOMI_SLAB_128)
        manager->guest = node;
    else
        chain(manager, node);
}

domi_envelope *domi_pool_heap(domi_manager *manager, size_t bytes)
{
    domi_envelope *envelope = domi_memory_new(bytes);

    if (envelope != NULL) {
        envelope->node.owner = (uint16_t)manager->index;
        envelope->node.slab = DOMI_SLAB_HEAP;
    }
    return envelope;
}

size_t domi_envelope_room(const domi_envelope *envelope)
{
    return envelope->node.slab < DOMI_SLABS ? sizes[envelope->node.slab].bytes : 0;
}
