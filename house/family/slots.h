/* Slots: where houses are born. A slot belongs to one home for the life of the system.
 *
 * Any thread may spawn for any home: it keeps a small cache of free slots per home and refills it,
 * SLOTS_REFILL at a time, under that home's lock. Only home frees; of what it frees it keeps a
 * cache too and gives the surplus back under its own lock. */
#ifndef DOMI_HOUSE_FAMILY_SLOTS_H
#define DOMI_HOUSE_FAMILY_SLOTS_H

#include "house/message/manager.h"

#define DOMI_SLOTS_REFILL 64u
#define DOMI_SLOTS_KEEP   (4 * DOMI_SLOTS_REFILL)

void domi_slots_init(domi_manager *manager);
void domi_slots_fini(domi_manager *manager);

/* A free slot of `home` with room for `state_bytes`, for the thread of `manager`. Its state is
 * CREATED, its lease the next one, its room not zeroed. NULL without memory. */
domi_house *domi_slots_take(domi_manager *manager, domi_manager *home, uint32_t state_bytes);

/* Back into the cache that it was taken from, by who took it. */
void domi_slots_keep(domi_manager *manager, domi_house *house);

/* Give a slot back. Home only. */
void domi_slots_put(domi_manager *home, domi_house *house);

/* Visit every slot of this home, free ones too. No other thread may be spawning. */
void domi_slots_walk(domi_manager *home, void (*visit)(void *house, void *context), void *context);

/* The same while others spawn: what was born until now. Of a slot only `life` may be looked at
 * until it says (acquire) that it is not CLOSED. Home only. */
void domi_slots_walk_shared(domi_manager *home, void (*visit)(void *house, void *context),
                            void *context);

/* The number of a house's slot, which no other slot of its home has, as long as the system lives.
 * Takes the home's lock, and time with each thousand of its actors: for people. Any thread. */
uint32_t domi_slots_number(const domi_house *house);

/* Bytes of state that fit into a slot of this class. */
uint32_t domi_slots_room(uint32_t size_class);

#endif
