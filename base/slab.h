/* A slab: objects of one size for one thread. They are carved from chunks, which live as long as
 * the slab does or until a trim gives them back.
 *
 * The object that was freed last is taken first, because it is still in the cache. A new chunk is
 * carved only as objects are needed, so memory that was never used is never touched. While an
 * object is free, its first word links it into the free list. Memory never goes to objects of
 * another size. So in a slab that is not trimmed a stale pointer always points to an object of the
 * same kind, and the generations and leases in it stay readable. Under AddressSanitizer all but the
 * first `keep_bytes` of a free object is poisoned.
 *
 * Owner thread only. Objects that other threads free come back in chains (house/message/pool.h). */
#ifndef DOMI_BASE_SLAB_H
#define DOMI_BASE_SLAB_H

#include "base/check.h"
#include "base/slab_check.h"
#include "base/slab_layout.h"
#include "base/slab_trim.h"

/* Make an empty slab; this allocates nothing. `chunk_bytes` is rounded up so that a chunk holds at
 * least 8 objects. Once a slab has taken 2 MiB, its further chunks are huge pages of 2 MiB, which
 * are made in a third of the time that small pages take. */
void domi_slab_init(domi_slab *slab, uint32_t object_bytes, uint32_t keep_bytes,
                    size_t chunk_bytes);

/* Give every chunk of a slab back, even if objects in them are still in use. */
void domi_slab_fini(domi_slab *slab);

/* Carve one object of a slab, from a new chunk if the newest one is used up. Returns NULL when
 * there is no memory. */
void *domi_slab_carve_object(domi_slab *slab);

/* Returns how many bytes the slab's next chunk will have. */
size_t domi_slab_bytes_of_next_chunk(const domi_slab *slab);

/* True if the newest chunk is used up, so that the next object to be carved needs a new chunk. */
static inline bool domi_slab_needs_new_chunk(const domi_slab *slab)
{
    return (size_t)(slab->carve_end - slab->carve) < slab->object_bytes;
}

/* Returns the number of an object among all objects that were ever carved, from 0; only for a slab
 * whose chunks all stay. Chunks are only added, at the head of the list, so `slab` may be a copy
 * that was made at any time when the object existed already. */
uint32_t domi_slab_number_of_object(const domi_slab *slab, const void *object);

/* Returns the object of a slab with the number `number`, or NULL if there is none. `slab` may be a
 * copy of a slab from which other threads carve objects meanwhile: objects that were carved before
 * the copy was made are found. */
void *domi_slab_object_at_number(const domi_slab *slab, uint32_t number);

/* Call `visit` for every object of the slab that was ever carved, whether used or free. */
void domi_slab_visit_objects(domi_slab *slab, void (*visit)(void *object, void *context),
                             void *context);

/* Take the object that was freed last from the slab's free list, which must not be empty. */
static inline void *domi_slab_take_free_object(domi_slab *slab)
{
    void *object = slab->free;

    slab->free = *(void **)object;
    DOMI_UNPOISON(object, slab->object_bytes);
    return object;
}

/* Take an object from a slab. An object that is used for the first time is zeroed. Any other
 * object is as it was when it was freed, except for its first word. Returns NULL when there is
 * no memory. */
static inline void *domi_slab_take_object(domi_slab *slab)
{
    if (DOMI_UNLIKELY(slab->free == NULL))
        return domi_slab_carve_object(slab);
    return domi_slab_take_free_object(slab);
}

static inline void domi_slab_put_object(domi_slab *slab, void *object)
{
    *(void **)object = slab->free;
    slab->free = object;
    DOMI_POISON((char *)object + slab->keep_bytes, slab->object_bytes - slab->keep_bytes);
}

#endif
