/* How a slab takes chunks, carves objects from them, and finds its objects again. */
#include "base/slab.h"

#include "base/memory.h"

#include <stdbool.h>

#define PAGE 4096u /* number of bytes in a page of memory */

/* most free objects that domi_slab_fini() checks in builds with slow checks */
#define CHECKED_AT_END 1000u

void domi_slab_init(domi_slab *slab, uint32_t object_bytes, uint32_t keep_bytes, size_t chunk_bytes)
{
    DOMI_CHECK(object_bytes % DOMI_SLAB_LINE == 0 && object_bytes > 0);
    DOMI_CHECK(keep_bytes >= sizeof(void *) && keep_bytes <= object_bytes);

    size_t least = 2 * DOMI_SLAB_LINE + (size_t)object_bytes * 8;
    if (chunk_bytes < least)
        chunk_bytes = least;
    *slab = (domi_slab){
        .object_bytes = object_bytes,
        .keep_bytes = keep_bytes,
        .chunk_bytes = (chunk_bytes + PAGE - 1) / PAGE * PAGE,
    };
}

void domi_slab_fini(domi_slab *slab)
{
    domi_slab_trim_stop(slab);
    DOMI_CHECK_SLOW(domi_slab_is_sound(slab, CHECKED_AT_END));
    domi_slab_chunk *chunk = slab->chunks;
    while (chunk != NULL) {
        domi_slab_chunk *next = chunk->next;
        DOMI_UNPOISON(chunk, chunk->bytes);
        domi_memory_unmap_pages(chunk, chunk->bytes);
        chunk = next;
    }
    *slab = (domi_slab){.object_bytes = slab->object_bytes, .keep_bytes = slab->keep_bytes};
}

/* A chunk of small pages is populated in pieces of this size, which costs a third of the page
 * faults. The first chunk of a slab is not populated, because most slabs use only little of it. */
#define POPULATE_BYTES (64u * 1024)

/* Have the kernel map the next pages of the slab's newest chunk in advance, POPULATE_BYTES at
 * most. */
static void populate_newest_chunk(domi_slab *slab)
{
    size_t left = (size_t)(slab->carve_end - slab->populated);
    size_t bytes = left < POPULATE_BYTES ? left : POPULATE_BYTES;

    domi_memory_populate_pages(slab->populated, bytes);
    slab->populated += bytes;
}

/* True if the slab's next chunk is to be made of huge pages. */
static bool is_next_chunk_huge(const domi_slab *slab)
{
    return slab->mapped_bytes >= DOMI_MEMORY_HUGE && slab->chunk_bytes <= DOMI_MEMORY_HUGE;
}

size_t domi_slab_bytes_of_next_chunk(const domi_slab *slab)
{
    return is_next_chunk_huge(slab) ? DOMI_MEMORY_HUGE : slab->chunk_bytes;
}

static domi_slab_chunk *make_chunk_of_huge_page(const domi_slab *slab)
{
    domi_slab_chunk *chunk = is_next_chunk_huge(slab) ? domi_memory_map_huge_page() : NULL;

    if (chunk == NULL)
        /* the kernel gave no huge page: the caller then makes a chunk of small pages */
        return NULL;
    domi_memory_populate_pages(chunk, DOMI_MEMORY_HUGE);
    chunk->bytes = DOMI_MEMORY_HUGE;
    return chunk;
}

static domi_slab_chunk *make_chunk_of_small_pages(const domi_slab *slab)
{
    domi_slab_chunk *chunk = domi_memory_map_pages(slab->chunk_bytes);

    if (chunk != NULL)
        chunk->bytes = slab->chunk_bytes;
    return chunk;
}

/* Returns the number of an object in its chunk; the first object has number 0. */
static uint32_t get_number_of_object_in_chunk(const domi_slab *slab, domi_slab_chunk *chunk,
                                              const char *object)
{
    return (uint32_t)((size_t)(object - domi_slab_get_first_object(slab, chunk)) /
                      slab->object_bytes);
}

static bool add_chunk_to_slab(domi_slab *slab)
{
    if (slab->lasts && slab->chunks != NULL && domi_memory_is_scarce())
        return false;
    domi_slab_chunk *chunk = make_chunk_of_huge_page(slab);

    if (chunk == NULL)
        chunk = make_chunk_of_small_pages(slab);
    if (chunk == NULL)
        return false;
    if (slab->chunks != NULL) {
        slab->chunks->end = slab->carve;
        chunk->first = slab->chunks->first +
                       get_number_of_object_in_chunk(slab, slab->chunks, slab->chunks->end);
    }
    chunk->next = slab->chunks;
    slab->chunks = chunk;
    slab->carve = domi_slab_get_first_object(slab, chunk);
    slab->carve_end = (char *)chunk + chunk->bytes;
    bool asks = chunk->next != NULL && chunk->bytes != DOMI_MEMORY_HUGE;
    slab->populated = asks ? (char *)chunk : slab->carve_end;
    slab->mapped_bytes += chunk->bytes;
    DOMI_CHECK_SLOW(domi_slab_is_sound(slab, 0));
    return true;
}

void *domi_slab_carve_object(domi_slab *slab)
{
    if (DOMI_UNLIKELY(slab->trim != NULL)) {
        domi_slab_trim_stop(slab);
        if (slab->free != NULL)
            return domi_slab_take_free_object(slab);
    }
    slab->spare_bytes = 0;
    if (domi_slab_needs_new_chunk(slab) && !add_chunk_to_slab(slab))
        return NULL;

    char *object = slab->carve;
    slab->carve += slab->object_bytes;
    if (slab->carve > slab->populated)
        populate_newest_chunk(slab);
    return object;
}

uint32_t domi_slab_number_of_object(const domi_slab *slab, const void *object)
{
    uintptr_t at = (uintptr_t)object;
    domi_slab_chunk *chunk = slab->chunks;

    while (at < (uintptr_t)chunk || at >= (uintptr_t)chunk + chunk->bytes)
        /* the loop over the slab's chunks ends, because the object lies in one of them */
        chunk = chunk->next;
    return chunk->first + get_number_of_object_in_chunk(slab, chunk, object);
}

void *domi_slab_object_at_number(const domi_slab *slab, uint32_t number)
{
    domi_slab_chunk *chunk = slab->chunks;

    while (chunk != NULL && number < chunk->first)
        chunk = chunk->next;
    if (chunk == NULL)
        return NULL;
    char *end = chunk == slab->chunks ? slab->carve : chunk->end;
    char *first = domi_slab_get_first_object(slab, chunk);
    return number - chunk->first < (size_t)(end - first) / slab->object_bytes
               ? first + (size_t)(number - chunk->first) * slab->object_bytes
               : NULL;
}

void domi_slab_visit_objects(domi_slab *slab, void (*visit)(void *object, void *context),
                             void *context)
{
    for (domi_slab_chunk *chunk = slab->chunks; chunk != NULL; chunk = chunk->next) {
        char *end = chunk == slab->chunks ? slab->carve : chunk->end;
        for (char *object = domi_slab_get_first_object(slab, chunk); object < end;
             object += slab->object_bytes)
            visit(object, context);
    }
}
