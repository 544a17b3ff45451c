/* The invariants of a slab: its figures agree with its chunks, and its free objects lie in them at
 * places where an object can begin.
 *
 * While a trim is under way, each free object is in one list only: in the slab's free list, among
 * the objects that are not sorted yet, or in the list of its chunk. These lists may be long, so
 * only their beginnings are walked, and only one chunk is looked at with all its objects. */
#include "base/slab_check.h"

#include "base/check.h"

#define WALKED_MAX 1024u /* most objects of one free list that are looked at for one chunk */
/* most objects of a chunk that can be marked: 2 MiB of the smallest ones */
#define MARKED_MAX  32768u
#define MARKED_WORD 64u /* number of marks in one word of marks: one bit for each object */

/* True if the object lies in the memory of the chunk. */
static bool lies_in_chunk(const domi_slab_chunk *chunk, const void *object)
{
    return (uintptr_t)object - (uintptr_t)chunk < chunk->bytes;
}

/* Returns the chunk of the slab in which `object` lies; NULL: `object` lies in none. */
static const domi_slab_chunk *find_chunk_of_object(const domi_slab *slab, const void *object)
{
    for (const domi_slab_chunk *chunk = slab->chunks; chunk != NULL; chunk = chunk->next)
        if (lies_in_chunk(chunk, object))
            return chunk;
    return NULL;
}

/* Returns where the first object of the chunk lies. */
static const char *get_first_object_of_chunk(const domi_slab *slab, const domi_slab_chunk *chunk)
{
    return domi_slab_get_first_object(slab, (domi_slab_chunk *)(uintptr_t)chunk);
}

/* Returns how many objects of the chunk were carved so far. */
static size_t count_carved_objects(const domi_slab *slab, const domi_slab_chunk *chunk)
{
    const char *end = chunk == slab->chunks ? slab->carve : chunk->end;

    return (size_t)(end - get_first_object_of_chunk(slab, chunk)) / slab->object_bytes;
}

/* Check that an object of the chunk can begin at `object`. Returns its number in the chunk. */
static size_t check_place_of_object(const domi_slab *slab, const domi_slab_chunk *chunk,
                                    const char *object)
{
    const char *first = get_first_object_of_chunk(slab, chunk);

    DOMI_CHECK(object >= first);
    DOMI_CHECK((size_t)(object - first) % slab->object_bytes == 0);
    size_t number = (size_t)(object - first) / slab->object_bytes;
    DOMI_CHECK(number < count_carved_objects(slab, chunk));
    return number;
}

static uint64_t count_bytes_of_chunks(const domi_slab_chunk *chunk)
{
    uint64_t bytes = 0;

    for (; chunk != NULL; chunk = chunk->next)
        bytes += chunk->bytes;
    return bytes;
}

static void check_carved_part_of_newest_chunk(const domi_slab *slab)
{
    DOMI_CHECK(slab->spare_bytes <= slab->mapped_bytes);
    if (slab->chunks == NULL)
        return;
    DOMI_CHECK(slab->carve >= get_first_object_of_chunk(slab, slab->chunks));
    DOMI_CHECK(slab->carve <= slab->carve_end);
    DOMI_CHECK(slab->carve_end <= (char *)slab->chunks + slab->chunks->bytes);
}

static void check_start_of_free_list(const domi_slab *slab, uint32_t objects)
{
    const void *object = slab->free;

    for (uint32_t i = 0; object != NULL && i < objects; i++) {
        const domi_slab_chunk *chunk = find_chunk_of_object(slab, object);
        DOMI_CHECK(chunk != NULL);
        (void)check_place_of_object(slab, chunk, object);
        object = *(void *const *)object;
    }
}

bool domi_slab_is_sound(const domi_slab *slab, uint32_t objects)
{
    uint64_t bytes = count_bytes_of_chunks(slab->chunks);

    if (slab->trim != NULL)
        bytes += count_bytes_of_chunks(slab->trim->going);
    DOMI_CHECK(bytes == slab->mapped_bytes);
    check_carved_part_of_newest_chunk(slab);
    check_start_of_free_list(slab, objects);
    return true;
}

/* --- a trim ----------------------------------------------------------------------------------- */

/* The marks of one chunk: which of its objects were found in a list. */
typedef struct marks {
    const domi_slab *slab;        /* the slab that is checked */
    const domi_slab_chunk *chunk; /* the chunk of that slab whose objects are marked */
    /* marks, one bit for each object of the chunk: set when the object was found in a list */
    uint64_t words[MARKED_MAX / MARKED_WORD];
} marks;

/* Check that an object of the chunk was found in no list before, and mark it. */
static void mark_object_as_found(marks *marked, const void *object)
{
    size_t number = check_place_of_object(marked->slab, marked->chunk, object);

    if (number >= MARKED_MAX)
        return;
    uint64_t bit = UINT64_C(1) << number % MARKED_WORD;
    uint64_t *word = &marked->words[number / MARKED_WORD];
    DOMI_CHECK((*word & bit) == 0); /* a free object is in one list of the slab, and only once */
    *word |= bit;
}

/* Check that the chunk's own list of free objects has as many objects as the chunk counts. */
static void check_free_list_of_chunk(marks *marked)
{
    const domi_slab_chunk *chunk = marked->chunk;
    const void *object = chunk->free;
    const void *last = chunk->free_last;
    uint32_t count = 0;

    for (; object != NULL && count < WALKED_MAX; count++) {
        DOMI_CHECK(lies_in_chunk(chunk, object));
        mark_object_as_found(marked, object);
        last = object;
        object = *(void *const *)object;
    }
    if (object != NULL) {
        DOMI_CHECK(count < chunk->free_count);
        return;
    }
    DOMI_CHECK(count == chunk->free_count);
    DOMI_CHECK(last == chunk->free_last);
}

/* Mark those objects of the chunk that are in a list with objects of all chunks, and check that
 * none of them was marked before. */
static void mark_objects_in_shared_list(marks *marked, const void *object)
{
    for (uint32_t i = 0; object != NULL && i < WALKED_MAX; i++) {
        if (lies_in_chunk(marked->chunk, object))
            mark_object_as_found(marked, object);
        object = *(void *const *)object;
    }
}

/* Check a chunk whose free objects were sorted into its own list. */
static void check_chunk_with_own_free_list(const domi_slab *slab, const domi_slab_chunk *chunk)
{
    marks marked = {.slab = slab, .chunk = chunk};

    DOMI_CHECK(chunk->free_count <= count_carved_objects(slab, chunk));
    check_free_list_of_chunk(&marked);
    mark_objects_in_shared_list(&marked, slab->free);
    mark_objects_in_shared_list(&marked, slab->trim->rest);
}

/* Check a slab whose free objects are being sorted to their chunks: no chunk has been taken out of
 * the slab's list. When all objects are sorted, check each chunk, but do not walk its list. */
static void check_slab_being_sorted(const domi_slab *slab)
{
    const domi_slab_trim *now = slab->trim;
    size_t count = 0;

    DOMI_CHECK(now->going == NULL);
    check_chunk_with_own_free_list(slab, now->last);
    if (now->rest != NULL)
        return;
    for (const domi_slab_chunk *chunk = slab->chunks; chunk != NULL; chunk = chunk->next) {
        DOMI_CHECK((chunk->free == NULL) == (chunk->free_count == 0));
        DOMI_CHECK(chunk->free_count <= count_carved_objects(slab, chunk));
        count++;
    }
    DOMI_CHECK(count == now->count);
}

/* Check a slab whose chunks are parted: chunks that stay have given their objects to the slab's
 * free list, and chunks of `going` are free as a whole. */
static void check_slab_with_parted_chunks(const domi_slab *slab)
{
    const domi_slab_trim *now = slab->trim;
    uint64_t spare = 0;

    DOMI_CHECK(now->rest == NULL && now->going != NULL);
    DOMI_CHECK(!slab->lasts);
    for (const domi_slab_chunk *chunk = slab->chunks; chunk != NULL; chunk = chunk->next) {
        DOMI_CHECK(chunk->free == NULL);
        spare += (uint64_t)chunk->free_count * slab->object_bytes;
    }
    DOMI_CHECK(slab->spare_bytes == spare);
    for (const domi_slab_chunk *chunk = now->going; chunk != NULL; chunk = chunk->next)
        DOMI_CHECK(chunk->free_count == count_carved_objects(slab, chunk));
    check_chunk_with_own_free_list(slab, now->going);
}

bool domi_slab_trim_is_sound(const domi_slab *slab, uint32_t objects)
{
    (void)domi_slab_is_sound(slab, objects);
    if (slab->trim == NULL)
        return true;
    DOMI_CHECK(slab->chunks != NULL && slab->trim->count >= 2);
    if (slab->trim->parted)
        check_slab_with_parted_chunks(slab);
    else
        check_slab_being_sorted(slab);
    return true;
}
