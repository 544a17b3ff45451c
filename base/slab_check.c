/* The invariants of a slab: its figures agree with its chunks, and its free objects lie in them at
 * places where an object can begin. */
#include "base/slab_check.h"

#include "base/check.h"

/* Returns the chunk in which `object` lies; NULL when it lies in none. */
static const domi_slab_chunk *chunk_of(const domi_slab *slab, const char *object)
{
    for (const domi_slab_chunk *chunk = slab->chunks; chunk != NULL; chunk = chunk->next)
        if (object > (const char *)chunk && object < (const char *)chunk + chunk->bytes)
            return chunk;
    return NULL;
}

static void check_object(const domi_slab *slab, const char *object)
{
    const domi_slab_chunk *chunk = chunk_of(slab, object);

    DOMI_CHECK(chunk != NULL);
    const char *first = domi_slab_first_object(slab, (domi_slab_chunk *)(uintptr_t)chunk);
    const char *end = chunk == slab->chunks ? slab->carve : chunk->end;
    DOMI_CHECK(object >= first && object + slab->object_bytes <= end);
    DOMI_CHECK((size_t)(object - first) % slab->object_bytes == 0);
}

bool domi_slab_is_sound(const domi_slab *slab, uint32_t objects)
{
    uint64_t bytes = 0;

    for (const domi_slab_chunk *chunk = slab->chunks; chunk != NULL; chunk = chunk->next)
        bytes += chunk->bytes;
    DOMI_CHECK(bytes == slab->mapped_bytes);
    DOMI_CHECK(slab->spare_bytes <= slab->mapped_bytes);
    if (slab->chunks != NULL) {
        DOMI_CHECK(slab->carve >= domi_slab_first_object(slab, slab->chunks));
        DOMI_CHECK(slab->carve <= slab->carve_end);
        DOMI_CHECK(slab->carve_end <= (char *)slab->chunks + slab->chunks->bytes);
    }
    const void *object = slab->free;
    for (uint32_t i = 0; object != NULL && i < objects; i++) {
        check_object(slab, object);
        object = *(void *const *)object;
    }
    return true;
}
