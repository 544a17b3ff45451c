/* The invariants of a slab and of its trim. Owner thread only. */
#ifndef DOMI_BASE_SLAB_CHECK_H
#define DOMI_BASE_SLAB_CHECK_H

#include "base/slab_layout.h"

/* Check that the figures of the slab agree with its chunks, and that up to `objects` objects
 * of its free list lie where an object can begin. Always returns true, so that it can stand
 * in DOMI_CHECK_SLOW. */
bool domi_slab_is_sound(const domi_slab *slab, uint32_t objects);

/* Do what domi_slab_is_sound() does, and check the trim, if one is under way. For one chunk, up to
 * 1024 objects of each list are looked at, too, so that no object is in two of them. Always
 * returns true. */
bool domi_slab_trim_is_sound(const domi_slab *slab, uint32_t objects);

#endif
