/* Trimming a slab: find the chunks that are free as a whole, and give them back to the kernel.
 *
 * A free object does not know its chunk, and counting at every take and put would make each message
 * slower. So a trim takes the whole free list and sorts the objects by their chunks. (It searches a
 * table of chunks by address, but first tries the chunk of the object before, which mostly fits.)
 * Then it goes through the chunks: a chunk whose objects are all free is given back, any other one
 * gets its objects back. Objects that are freed meanwhile go to the free list of the slab as usual;
 * their chunk does not count as free as a whole, and stays. Each step is bounded. A trim can be
 * stopped at any moment: everything that it has not given back belongs to the slab again. */
#include "base/slab_trim.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/slab_check.h"

#include <stdlib.h>

/* Most chunks that one step of a trim gives back, at some 20 us each. */
#define RELEASES_PER_STEP 8

typedef domi_slab_trim trim;

/* free objects that each step of a trim checks in builds with slow checks */
#define CHECKED_PER_STEP 64u

static int compare_chunk_addresses(const void *left, const void *right)
{
    uintptr_t one = (uintptr_t) * (domi_slab_chunk *const *)left;
    uintptr_t other = (uintptr_t) * (domi_slab_chunk *const *)right;

    return (one > other) - (one < other);
}

/* The trim's table of chunks is not counted on the meter of memory, so it can be allocated even if
 * every other allocation fails (`full`): trimming is then the way to get memory back. */
static trim *allocate_trim_of_slab(size_t count)
{
    domi_meter *meter = domi_memory_set_meter(NULL);
    trim *made = domi_memory_new(sizeof(trim) + count * sizeof(domi_slab_chunk *));

    (void)domi_memory_set_meter(meter);
    return made;
}

static void free_trim(domi_slab *slab)
{
    domi_meter *meter = domi_memory_set_meter(NULL);

    domi_memory_free(slab->trim);
    slab->trim = NULL;
    (void)domi_memory_set_meter(meter);
}

bool domi_slab_trim_begin(domi_slab *slab)
{
    size_t count = 0;

    if (slab->trim != NULL)
        return true;
    for (const domi_slab_chunk *chunk = slab->chunks; chunk != NULL; chunk = chunk->next)
        count++;
    if (count < 2 || slab->free == NULL)
        return false;
    trim *made = allocate_trim_of_slab(count);
    if (made == NULL)
        return false;
    for (domi_slab_chunk *chunk = slab->chunks; chunk != NULL; chunk = chunk->next) {
        chunk->free = chunk->free_last = NULL;
        chunk->free_count = 0;
        made->chunks[made->count++] = chunk;
    }
    qsort(made->chunks, count, sizeof(void *), compare_chunk_addresses);
    made->last = slab->chunks;
    made->rest = slab->free;
    slab->free = NULL;
    slab->trim = made;
    DOMI_CHECK_SLOW(domi_slab_trim_is_sound(slab, CHECKED_PER_STEP));
    return true;
}

/* True if the object lies in the memory of the chunk. */
static bool lies_in_chunk(const domi_slab_chunk *chunk, const void *object)
{
    return (uintptr_t)object - (uintptr_t)chunk < chunk->bytes;
}

/* Returns the chunk of `object`: the last one that does not begin behind it. */
static domi_slab_chunk *find_chunk_of_object(trim *now, const void *object)
{
    size_t low = 0;
    size_t high = now->count;

    if (DOMI_LIKELY(lies_in_chunk(now->last, object)))
        return now->last;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)now->chunks[middle] <= (uintptr_t)object)
            low = middle;
        else
            high = middle;
    }
    now->last = now->chunks[low];
    DOMI_CHECK(lies_in_chunk(now->last, object));
    return now->last;
}

/* Move at most `objects` free objects from the trim's `rest` to the lists of their chunks. */
static void sort_objects_by_chunk(trim *now, uint32_t objects)
{
    for (void *object = now->rest; object != NULL && objects != 0; objects--) {
        void *next = *(void **)object;
        domi_slab_chunk *chunk = find_chunk_of_object(now, object);

        *(void **)object = chunk->free;
        if (chunk->free == NULL)
            chunk->free_last = object;
        chunk->free = object;
        chunk->free_count++;
        now->rest = object = next;
    }
}

static void give_free_objects_back_to_slab(domi_slab *slab, domi_slab_chunk *chunk)
{
    if (chunk->free == NULL)
        return;
    *(void **)chunk->free_last = slab->free;
    slab->free = chunk->free;
    chunk->free = NULL;
}

/* True if every object of the chunk is free and the chunk may be given back. The newest chunk is
 * never given back, because objects are still carved from it. */
static bool may_chunk_be_given_back(const domi_slab *slab, domi_slab_chunk *chunk)
{
    return !slab->lasts && chunk != slab->chunks &&
           (size_t)(chunk->end - domi_slab_get_first_object(slab, chunk)) ==
               (size_t)chunk->free_count * slab->object_bytes;
}

static void set_chunks_to_give_back_apart(domi_slab *slab)
{
    domi_slab_chunk **link = &slab->chunks;

    slab->trim->parted = true;
    slab->spare_bytes = 0;
    while (*link != NULL) {
        domi_slab_chunk *chunk = *link;

        if (may_chunk_be_given_back(slab, chunk)) {
            *link = chunk->next;
            chunk->next = slab->trim->going;
            slab->trim->going = chunk;
            continue;
        }
        slab->spare_bytes += (uint64_t)chunk->free_count * slab->object_bytes;
        give_free_objects_back_to_slab(slab, chunk);
        link = &chunk->next;
    }
}

static void give_set_apart_chunks_back(domi_slab *slab)
{
    trim *now = slab->trim;

    for (int left = RELEASES_PER_STEP; now->going != NULL && left != 0; left--) {
        domi_slab_chunk *chunk = now->going;
        size_t bytes = chunk->bytes;

        now->going = chunk->next;
        slab->mapped_bytes -= bytes;
        DOMI_UNPOISON(chunk, bytes);
        domi_memory_unmap_pages(chunk, bytes);
    }
}

/* Do one step of the slab's trim. Returns true when the trim has ended. */
static bool run_trim_step(domi_slab *slab, uint32_t objects)
{
    trim *now = slab->trim;

    if (now == NULL)
        return true;
    if (now->rest != NULL) {
        sort_objects_by_chunk(now, objects);
        return false;
    }
    if (!now->parted)
        set_chunks_to_give_back_apart(slab);
    else
        give_set_apart_chunks_back(slab);
    if (now->going != NULL)
        return false;
    free_trim(slab);
    return true;
}

bool domi_slab_trim_step(domi_slab *slab, uint32_t objects)
{
    bool ended = run_trim_step(slab, objects);

    DOMI_CHECK_SLOW(domi_slab_trim_is_sound(slab, CHECKED_PER_STEP));
    return ended;
}

/* Put the chunks of the list `going` back into the slab's list, behind its first chunk, which has
 * to stay the newest. */
static void put_remaining_chunks_back_into_slab(domi_slab *slab)
{
    trim *now = slab->trim;

    while (now->going != NULL) {
        domi_slab_chunk *chunk = now->going;

        now->going = chunk->next;
        chunk->next = slab->chunks->next;
        slab->chunks->next = chunk;
        give_free_objects_back_to_slab(slab, chunk);
    }
}

/* End the trim: all free objects that it still has, in chunks that are not given back, belong to
 * the slab again. */
static void return_all_objects_of_trim_to_slab(domi_slab *slab)
{
    trim *now = slab->trim;

    if (now->parted) {
        put_remaining_chunks_back_into_slab(slab);
        return;
    }
    /* The objects that are free now go to the trim, too. If the slab ran dry, its free list is
     * empty, and this loop costs nothing. */
    for (void *object = slab->free; object != NULL; object = slab->free) {
        slab->free = *(void **)object;
        *(void **)object = now->rest;
        now->rest = object;
    }
    slab->free = now->rest;
    for (size_t i = 0; i < now->count; i++)
        give_free_objects_back_to_slab(slab, now->chunks[i]);
}

void domi_slab_trim_stop(domi_slab *slab)
{
    if (slab->trim == NULL)
        return;
    return_all_objects_of_trim_to_slab(slab);
    free_trim(slab);
    DOMI_CHECK_SLOW(domi_slab_trim_is_sound(slab, CHECKED_PER_STEP));
}
