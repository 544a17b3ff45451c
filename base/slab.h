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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__)
#define DOMI_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DOMI_ASAN 1
#endif
#endif

#ifdef DOMI_ASAN
#include <sanitizer/asan_interface.h>
#define DOMI_POISON(memory, bytes)   ASAN_POISON_MEMORY_REGION((memory), (bytes))
#define DOMI_UNPOISON(memory, bytes) ASAN_UNPOISON_MEMORY_REGION((memory), (bytes))
#else
#define DOMI_POISON(memory, bytes)   ((void)(memory), (void)(bytes))
#define DOMI_UNPOISON(memory, bytes) ((void)(memory), (void)(bytes))
#endif

/* The header of a chunk, in its first cache line. */
typedef struct domi_slab_chunk domi_slab_chunk;

struct domi_slab_chunk {
    domi_slab_chunk *next;
    size_t bytes;
    char *end;      /* end of the carved part; for the newest chunk `slab->carve` holds it */
    uint32_t first; /* number of its first object; constant while no chunk is given back */

    /* Free objects of this chunk that a trim has found so far. */
    void *free;
    void *free_last;
    uint32_t free_count;
};

struct domi_slab_trim;

typedef struct domi_slab {
    void *free;  /* free objects, singly linked through their first word */
    char *carve; /* begin of the part of the newest chunk that is not carved yet */
    char *carve_end;
    char *populated; /* end of the populated pages of the newest chunk */
    domi_slab_chunk *chunks;
    uint32_t object_bytes; /* a multiple of 64 */
    uint32_t keep_bytes;   /* bytes of a free object that stay readable; at least 8 */
    size_t chunk_bytes;
    uint64_t mapped_bytes;
    /* free bytes in the chunks that the last trim kept; 0 again once the free list was empty */
    uint64_t spare_bytes;
    bool lasts; /* no chunk is given back; while memory is scarce, only the first chunk is made */
    struct domi_slab_trim *trim; /* the trim that is under way; NULL: none is */
} domi_slab;

/* Make an empty slab; allocates nothing. `chunk_bytes` is rounded up so that a chunk holds at least
 * 8 objects. Once a slab has taken 2 MiB, its further chunks are huge pages of 2 MiB, which take a
 * third of the time to be made that small pages take. */
void domi_slab_init(domi_slab *slab, uint32_t object_bytes, uint32_t keep_bytes,
                    size_t chunk_bytes);

/* Give every chunk back, even if objects are still in use. */
void domi_slab_fini(domi_slab *slab);

/* Carve one object, from a new chunk if the newest one is used up. Returns NULL when there is no
 * memory. */
void *domi_slab_carve(domi_slab *slab);

/* Give chunks that are free as a whole back to the kernel, in bounded steps. The newest chunk
 * always stays. If the slab keeps its chunks (`lasts`), their free bytes are only counted, in
 * `spare_bytes`.
 *
 * A trim takes the whole free list and sorts the objects by their chunks, because a free object
 * does not know its chunk. Meanwhile the free list is empty, apart from objects that are freed now.
 * If the slab runs dry then, domi_slab_carve() stops the trim, which gives all free objects back to
 * the slab.
 *
 * domi_slab_trim_begin() returns false if nothing can be gained, or if there is no memory for the
 * table of chunks. domi_slab_trim_step() sorts up to `objects` objects, or gives up to 8 chunks
 * back, and returns true when the trim has ended. */
bool domi_slab_trim_begin(domi_slab *slab);
bool domi_slab_trim_step(domi_slab *slab, uint32_t objects);
void domi_slab_trim_stop(domi_slab *slab);

/* Check that the figures of the slab agree with its chunks, and that up to `objects` objects of its
 * free list lie where an object can begin. Always returns true, so that it can stand in
 * DOMI_CHECK_SLOW. */
bool domi_slab_is_sound(const domi_slab *slab, uint32_t objects);

/* Returns where the objects of `chunk` begin. */
char *domi_slab_first_object(const domi_slab *slab, domi_slab_chunk *chunk);

/* Returns the size in bytes that the next chunk will have. */
size_t domi_slab_next_bytes(const domi_slab *slab);

/* Whether the next object that is carved needs a new chunk. */
static inline bool domi_slab_is_used_up(const domi_slab *slab)
{
    return (size_t)(slab->carve_end - slab->carve) < slab->object_bytes;
}

/* The number of an object among all objects that were ever carved, from 0; only for a slab whose
 * chunks all stay. Chunks are only added, at the head of the list, so `slab` may be a copy that was
 * made at any time when the object existed already. */
uint32_t domi_slab_number(const domi_slab *slab, const void *object);

/* Call `visit` for every object that was ever carved, whether used or free. */
void domi_slab_walk(domi_slab *slab, void (*visit)(void *object, void *context), void *context);

/* Take the object that was freed last. The free list must not be empty. */
static inline void *domi_slab_take_free(domi_slab *slab)
{
    void *object = slab->free;

    slab->free = *(void **)object;
    DOMI_UNPOISON(object, slab->object_bytes);
    return object;
}

/* Take an object. An object that is used for the first time is zeroed. Any other one is as it was
 * when it was freed, except for its first word. Returns NULL when there is no memory. */
static inline void *domi_slab_take(domi_slab *slab)
{
    if (DOMI_UNLIKELY(slab->free == NULL))
        return domi_slab_carve(slab);
    return domi_slab_take_free(slab);
}

static inline void domi_slab_put(domi_slab *slab, void *object)
{
    *(void **)object = slab->free;
    slab->free = object;
    DOMI_POISON((char *)object + slab->keep_bytes, slab->object_bytes - slab->keep_bytes);
}

#endif
