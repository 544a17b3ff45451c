/* Makes, caches and finds slots. A slot of 192 bytes holds 16 bytes of state, one of 256 holds 80,
 * and so on up to 1,216, which holds 1,040. Larger state is allocated beside a slot of the smallest
 * class. */
#include "house/family/slots.h"

#include "base/check.h"
#include "base/prefetch.h"

#define CHUNK_BYTES (1024u * 1024) /* bytes of memory that a slab of slots maps at a time */

static const uint32_t sizes[DOMI_HOUSE_CLASSES] = {192, 256, 384, 640, 1216};

uint32_t domi_slots_state_bytes_of_class(uint32_t size_class)
{
    return sizes[size_class] - (uint32_t)sizeof(domi_house) + DOMI_HOUSE_STATE_INLINE;
}

void domi_slots_init(domi_manager *manager)
{
    domi_spinlock_init(&manager->births.slots.lock);
    for (uint32_t i = 0; i < DOMI_HOUSE_CLASSES; i++) {
        domi_slab_init(&manager->births.slots.slabs[i], sizes[i], sizes[i], CHUNK_BYTES);
        /* chunks of slots are never given back, because slots keep their leases (M10) */
        manager->births.slots.slabs[i].lasts = true;
    }
}

void domi_slots_fini(domi_manager *manager)
{
    for (uint32_t i = 0; i < DOMI_HOUSE_CLASSES; i++)
        domi_slab_fini(&manager->births.slots.slabs[i]);
}

/* Returns the smallest size class whose slots have room for the state; 0 if none has, because the
 * state is then allocated beside a slot. */
static uint32_t find_size_class_for_state(uint32_t state_bytes)
{
    for (uint32_t i = 0; i < DOMI_HOUSE_CLASSES; i++) {
        if (state_bytes <= domi_slots_state_bytes_of_class(i))
            return i;
    }
    return 0;
}

uint32_t domi_slots_bytes_for_state(uint32_t state_bytes)
{
    uint32_t size_class = find_size_class_for_state(state_bytes);

    return sizes[size_class] +
           (state_bytes > domi_slots_state_bytes_of_class(size_class) ? state_bytes : 0);
}

/* Make a slot in memory that was never used. Its first lease is 1, because a lease of 0 names
 * nobody. */
static domi_house *carve_new_slot(domi_manager *home, uint32_t size_class)
{
    domi_house *house = domi_slab_carve_object(&home->births.slots.slabs[size_class]);

    if (house == NULL)
        return NULL;
    house->home = home;
    domi_house_set_slot_bits(house, size_class);
    house->node.slab = DOMI_SLAB_HOUSE;
    atomic_store_explicit(&house->life, UINT64_C(1) << 32 | DOMI_LIFE_CLOSED, memory_order_relaxed);
    return house;
}

/* Prefetch the slots that are probably taken next. Slots that were freed one after another lie
 * side by side, upwards or downwards in memory, and following their links alone would mean one
 * cache miss after the other (10 million actors spawned anew: 135 ns each without this, 109 ns
 * with it). */
static void prefetch_next_slots(const domi_house *house, uint32_t size_class)
{
    uintptr_t at = (uintptr_t)&house->next;
    uintptr_t ahead = (uintptr_t)8 * sizes[size_class];

    domi_prefetch_write((const void *)(at + ahead));
    domi_prefetch_write((const void *)(at - ahead));
}

/* Take a free slot out of home's slabs. The caller holds home's lock. */
static domi_house *take_free_slot_of_home(domi_manager *home, uint32_t size_class)
{
    domi_house *house = home->births.slots.slabs[size_class].free;

    if (house == NULL)
        return carve_new_slot(home, size_class);
    prefetch_next_slots(house, size_class);
    home->births.slots.slabs[size_class].free = house->next;
    domi_counter_add(&home->births.slots.free_bytes, -(uint64_t)sizes[size_class]);
    return house;
}

/* A free slot is linked by house->next and not by its first word, because that is the inbox, which
 * a late put may still write. */
static void refill_slot_cache(domi_manager *home, domi_slot_cache *cache, uint32_t size_class)
{
    /* The slots are linked into the cache, and later used, in the order of their addresses. */
    domi_house **link = &cache->free[size_class];

    domi_spinlock_lock(&home->births.slots.lock);
    for (uint32_t i = 0; i < DOMI_SLOTS_REFILL; i++) {
        domi_house *house = take_free_slot_of_home(home, size_class);
        if (house == NULL)
            break;
        *link = house;
        link = &house->next;
        cache->count[size_class]++;
    }
    domi_spinlock_unlock(&home->births.slots.lock);
    *link = NULL;
}

domi_house *domi_slots_take_free_slot(domi_manager *manager, domi_manager *home,
                                      uint32_t state_bytes)
{
    domi_slot_cache *cache = &manager->births.slots_of[home->index];
    uint32_t size_class = find_size_class_for_state(state_bytes);

    if (cache->free[size_class] == NULL)
        refill_slot_cache(home, cache, size_class);
    domi_house *house = cache->free[size_class];
    if (house == NULL)
        return NULL;
    cache->free[size_class] = house->next;
    cache->count[size_class]--;
    return house;
}

static void give_surplus_slots_back(domi_manager *home, domi_slot_cache *cache, uint32_t size_class)
{
    domi_spinlock_lock(&home->births.slots.lock);
    for (uint32_t i = 0; i < DOMI_SLOTS_REFILL; i++) {
        domi_house *house = cache->free[size_class];

        cache->free[size_class] = house->next;
        house->next = home->births.slots.slabs[size_class].free;
        home->births.slots.slabs[size_class].free = house;
    }
    domi_counter_add(&home->births.slots.free_bytes, DOMI_SLOTS_REFILL * sizes[size_class]);
    domi_spinlock_unlock(&home->births.slots.lock);
    cache->count[size_class] -= DOMI_SLOTS_REFILL;
}

void domi_slots_put_unused_slot_back(domi_manager *manager, domi_house *house)
{
    domi_slot_cache *cache = &manager->births.slots_of[house->home->index];
    uint32_t size_class = domi_house_slot_bits(house);

    /* the field `slot` of an unused slot has no bit besides its size class */
    DOMI_CHECK_SLOW(size_class < DOMI_HOUSE_CLASSES);
    house->next = cache->free[size_class];
    cache->free[size_class] = house;
    cache->count[size_class]++;
}

void domi_slots_free_slot(domi_manager *manager, domi_house *house)
{
    domi_manager *home = house->home;
    domi_slot_cache *cache = &manager->births.slots_of[home->index];

    domi_slots_put_unused_slot_back(manager, house);
    uint32_t size_class = domi_house_slot_bits(house);
    if (cache->count[size_class] > DOMI_SLOTS_KEEP)
        give_surplus_slots_back(home, cache, size_class);
}

void domi_slots_visit_all(domi_manager *home, void (*visit)(void *house, void *context),
                          void *context)
{
    for (uint32_t i = 0; i < DOMI_HOUSE_CLASSES; i++)
        domi_slab_visit_objects(&home->births.slots.slabs[i], visit, context);
}

/* Chunks are only added, at the head of the list, and a chunk behind the head does not change any
 * more. So a copy of the list's head, with the number of slots that were made in the newest chunk,
 * is a list of its own. Each slot in it, and its life word, was made under the lock. */
void domi_slots_visit_while_others_spawn(domi_manager *home,
                                         void (*visit)(void *house, void *context), void *context)
{
    for (uint32_t i = 0; i < DOMI_HOUSE_CLASSES; i++) {
        domi_spinlock_lock(&home->births.slots.lock);
        domi_slab now = home->births.slots.slabs[i];
        domi_spinlock_unlock(&home->births.slots.lock);
        domi_slab_visit_objects(&now, visit, context);
    }
}

uint32_t domi_slots_number_of_house(const domi_house *house)
{
    domi_manager *home = house->home;
    uint32_t size_class = domi_house_slot_bits(house) & DOMI_SLOT_CLASS;

    domi_spinlock_lock(&home->births.slots.lock);
    domi_slab now = home->births.slots.slabs[size_class];
    domi_spinlock_unlock(&home->births.slots.lock);
    return domi_slab_number_of_object(&now, house) * DOMI_HOUSE_CLASSES + size_class;
}

domi_house *domi_slots_house_at_number(domi_manager *home, uint32_t number)
{
    domi_spinlock_lock(&home->births.slots.lock);
    domi_slab now = home->births.slots.slabs[number % DOMI_HOUSE_CLASSES];
    domi_spinlock_unlock(&home->births.slots.lock);
    return domi_slab_object_at_number(&now, number / DOMI_HOUSE_CLASSES);
}
