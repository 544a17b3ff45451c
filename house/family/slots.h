/* Slots: the memory of houses. A slot belongs to one home for the life of the system.
 *
 * Any thread may spawn an actor for any home. For that it has a small cache of free slots of each
 * home, and refills it under that home's lock, DOMI_SLOTS_REFILL slots at a time. Only home frees
 * slots. It puts them into a cache of its own, and gives the surplus back under its own lock. */
#ifndef DOMI_HOUSE_FAMILY_SLOTS_H
#define DOMI_HOUSE_FAMILY_SLOTS_H

#include "house/message/manager.h"

/* number of slots that move at a time between a cache and home's slabs */
#define DOMI_SLOTS_REFILL 64u
/* number of free slots of a size class above which home's cache gives some back */
#define DOMI_SLOTS_KEEP (4 * DOMI_SLOTS_REFILL)

void domi_slots_init(domi_manager *manager);
void domi_slots_fini(domi_manager *manager);

/* Take a free slot of `home` with room for `state_bytes`, for the thread of `manager`. The house is
 * CREATED and has its next lease; its room is not zeroed. Returns NULL if there is no memory. */
domi_house *domi_slots_take_free_slot(domi_manager *manager, domi_manager *home,
                                      uint32_t state_bytes);

/* Put a slot back into the cache from which it was taken, because no actor was made in it. The
 * thread that took it calls this. */
void domi_slots_put_unused_slot_back(domi_manager *manager, domi_house *house);

/* Free the slot of an actor that has ended. Home, or the runner that has ended an actor of a
 * pool. */
void domi_slots_free_slot(domi_manager *manager, domi_house *house);

/* Visit every slot of this home, also free slots. No other thread may spawn at the same time. */
void domi_slots_visit_all(domi_manager *home, void (*visit)(void *house, void *context),
                          void *context);

/* Visit the slots of this home as domi_slots_visit_all() does, while other threads may spawn: those
 * that were made before the call are visited. `visit` may read only the `life` of a slot until an
 * acquire load of it says that the slot is not CLOSED. Home only. */
void domi_slots_visit_while_others_spawn(domi_manager *home,
                                         void (*visit)(void *house, void *context), void *context);

/* True if an actor lives in the slot of `house`; then all that its spawner wrote may be read. Any
 * thread; the actor may end at any time. */
static inline bool domi_slots_does_actor_live_in_house(const domi_house *house)
{
    /* acquire: pairs with the release by which a spawn publishes the actor. */
    uint64_t life =
        atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)&house->life, memory_order_acquire);

    return (life & DOMI_LIFE_CLOSED) == 0;
}

/* Returns the number of a house's slot; no other slot of its home ever has this number. It takes
 * the home's lock, and time in proportion to the number of memory chunks of the home, so it is
 * meant for output that people read. Any thread. */
uint32_t domi_slots_number_of_house(const domi_house *house);

/* Returns the house whose slot has this number; NULL: `home` has no such slot. It takes lock and
 * time as domi_slots_number_of_house() does. Any thread; the actor there may end at any time. */
domi_house *domi_slots_house_at_number(domi_manager *home, uint32_t number);

/* Returns the number of bytes of state that fit into a slot of this size class. */
uint32_t domi_slots_state_bytes_of_class(uint32_t size_class);

/* Returns the size of a slot for `state_bytes` bytes of state, together with the state if that is
 * allocated beside the slot. */
uint32_t domi_slots_bytes_for_state(uint32_t state_bytes);

#endif
