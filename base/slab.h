/* A slab: objects of one size for one thread, from chunks that live as long as the slab, or until
 * they are trimmed.
 *
 * The last object freed is the next one taken (it is still in the cache); a fresh chunk is carved
 * as it is needed, so memory that was never used is never touched. An object's first word is the
 * link while it is free. Memory never goes to another size, so in a slab that is not trimmed a
 * stale pointer always points at an object of the same kind: generations and epochs in it stay
 * readable. Under AddressSanitizer what lies behind `keep_bytes` of a free object is poisoned.
 *
 * Owner thread only. What other threads free comes back in chains (house/message/pool.h). */
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

/* A chunk's first line. */
typedef struct domi_slab_chunk domi_slab_chunk;

struct domi_slab_chunk {
    domi_slab_chunk *next;
    size_t bytes;
    char *end;      /* of the part that was carved; the newest chunk's is slab->carve */
    uint32_t first; /* the number of its first object; constant while no chunk is given back */

    /* While the slab is trimmed: the free objects found in it. */
    void *free;
    void *free_last;
    uint32_t free_count;
};

struct domi_slab_trim;

typedef struct domi_slab {
    void *free;  /* singly linked through the first word */
    char *carve; /* the rest of the newest chunk */
    char *carve_end;
    char *populated; /* to here the newest chunk's pages were asked for, but of the first */
    domi_slab_chunk *chunks;
    uint32_t object_bytes; /* a multiple of 64 */
    uint32_t keep_bytes;   /* of a free object, what stays readable; at least 8 */
    size_t chunk_bytes;
    uint64_t mapped_bytes;
    uint64_t spare_bytes;        /* free in chunks that the last trim kept; until it runs dry */
    bool lasts;                  /* its chunks stay: no second one while memory is scarce */
    struct domi_slab_trim *trim; /* under way; NULL */
} domi_slab;

/* `chunk_bytes` is rounded up to hold at least 8 objects. A slab that has taken 2 MiB takes further
 * chunks of that size, in huge pages: a third of the time that small ones take to be made.
 * Allocates nothing. */
void domi_slab_init(domi_slab *slab, uint32_t object_bytes, uint32_t keep_bytes,
                    size_t chunk_bytes);

/* Give every chunk back, whatever is still in use. */
void domi_slab_fini(domi_slab *slab);

/* Carve one object, from a new chunk if need be; NULL without memory. */
void *domi_slab_carve(domi_slab *slab);

/* Give chunks of which every object is free back to the kernel, some steps at a time; those of a
 * slab that lasts, whose free objects are looked at, are only counted (`spare_bytes`). It sorts the
 * free objects by their chunk, which nothing else knows; meanwhile the slab has none, and who finds
 * it dry stops the trim and has them all (domi_slab_carve() does so too). The newest chunk stays.
 *
 * begin: false when there is nothing to gain, or no memory for the table of chunks. step: sort up
 * to `objects`, or give a few chunks back; true when it has ended. */
bool domi_slab_trim_begin(domi_slab *slab);
bool domi_slab_trim_step(domi_slab *slab, uint32_t objects);
void domi_slab_trim_stop(domi_slab *slab);

/* Check that the slab's figures are those of its chunks, and that up to `objects` of its free list
 * lie where an object can begin. Returns true, for DOMI_CHECK_SLOW. */
bool domi_slab_is_sound(const domi_slab *slab, uint32_t objects);

/* Where the objects of a chunk begin. */
char *domi_slab_first(const domi_slab *slab, domi_slab_chunk *chunk);

/* How large the next chunk would be. */
size_t domi_slab_next_bytes(const domi_slab *slab);

/* The next object needs a new chunk. */
static inline bool domi_slab_is_used_up(const domi_slab *slab)
{
    return (size_t)(slab->carve_end - slab->carve) < slab->object_bytes;
}

/* The number of an object among all that were carved, from 0. Only of a slab whose chunks stay.
 * Chunks are only added, at the head: `slab` may be a copy that was made when the object was there.
 */
uint32_t domi_slab_number(const domi_slab *slab, const void *object);

/* Call `visit` for every object that was ever carved, used or free. */
void domi_slab_walk(domi_slab *slab, void (*visit)(void *object, void *context), void *context);

/* The last freed of a slab that has some. */
static inline void *domi_slab_take_free(domi_slab *slab)
{
    void *object = slab->free;

    slab->free = *(void **)object;
    DOMI_UNPOISON(object, slab->object_bytes);
    return object;
}

/* An object; new ones are zeroed, used ones are as they were freed. NULL without memory. */
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
