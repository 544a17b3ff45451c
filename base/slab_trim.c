/* Trimming a slab: which of its chunks are free as a whole, and back to the kernel with them.
 *
 * A free object does not know its chunk, and counting on every take and put would cost each message
 * something. So a trim takes the whole list of the free, sorts it by chunk (a table by address, and
 * mostly the chunk of the one before), and then parts the chunks: those whose objects are all there
 * go, the others get theirs back. What is freed meanwhile goes to the slab's list as ever; its
 * chunk is not whole then, and stays. Each step is bounded, and at any moment a trim can be
 * stopped: everything that it has not given back is the slab's again. */
#include "base/slab.h"

#include "base/memory.h"

#include <stdlib.h>

/* Chunks that one step gives back: some 20 us each. */
#define RELEASES_PER_STEP 8

typedef struct domi_slab_trim {
    void *rest;             /* free objects that are not sorted yet */
    domi_slab_chunk *last;  /* where the one before lay */
    bool parted;            /* all are sorted, `going` is what goes */
    domi_slab_chunk *going; /* not in the slab's list any more */
    size_t count;
    domi_slab_chunk *chunks[]; /* by address */
} trim;

static int by_address(const void *left, const void *right)
{
    uintptr_t one = (uintptr_t) * (domi_slab_chunk *const *)left;
    uintptr_t other = (uintptr_t) * (domi_slab_chunk *const *)right;

    return (one > other) - (one < other);
}

/* Not counted: when nothing is given any more, this is the way back. */
static trim *trim_new(size_t count)
{
    domi_meter *meter = domi_memory_count(NULL);
    trim *made = domi_memory_new(sizeof(trim) + count * sizeof(domi_slab_chunk *));

    (void)domi_memory_count(meter);
    return made;
}

static void trim_free(domi_slab *slab)
{
    domi_meter *meter = domi_memory_count(NULL);

    domi_memory_free(slab->trim);
    slab->trim = NULL;
    (void)domi_memory_count(meter);
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
    trim *made = trim_new(count);
    if (made == NULL)
        return false;
    for (domi_slab_chunk *chunk = slab->chunks; chunk != NULL; chunk = chunk->next) {
        chunk->free = chunk->free_last = NULL;
        chunk->free_count = 0;
        made->chunks[made->count++] = chunk;
    }
    qsort(made->chunks, count, sizeof(void *), by_address);
    made->last = slab->chunks;
    made->rest = slab->free;
    slab->free = NULL;
    slab->trim = made;
    return true;
}

static bool lies_in(const domi_slab_chunk *chunk, const void *object)
{
    return (uintptr_t)object - (uintptr_t)chunk < chunk->bytes;
}

/* The last chunk that does not begin behind it. */
static domi_slab_chunk *chunk_of(trim *now, const void *object)
{
    size_t low = 0;
    size_t high = now->count;

    if (DOMI_LIKELY(lies_in(now->last, object)))
        return now->last;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)now->chunks[middle] <= (uintptr_t)object)
            low = middle;
        else
            high = middle;
    }
    now->last = now->chunks[low];
    DOMI_CHECK(lies_in(now->last, object));
    return now->last;
}

static void sort(trim *now, uint32_t objects)
{
    for (void *object = now->rest; object != NULL && objects != 0; objects--) {
        void *next = *(void **)object;
        domi_slab_chunk *chunk = chunk_of(now, object);

        *(void **)object = chunk->free;
        if (chunk->free == NULL)
            chunk->free_last = object;
        chunk->free = object;
        chunk->free_count++;
        now->rest = object = next;
    }
}

static void splice(domi_slab *slab, domi_slab_chunk *chunk)
{
    if (chunk->free == NULL)
        return;
    *(void **)chunk->free_last = slab->free;
    slab->free = chunk->free;
    chunk->free = NULL;
}

/* The newest chunk is not whole: it is being carved. */
static bool is_whole(const domi_slab *slab, domi_slab_chunk *chunk)
{
    return !slab->lasts && chunk != slab->chunks &&
           (size_t)(chunk->end - domi_slab_first(slab, chunk)) ==
               (size_t)chunk->free_count * slab->object_bytes;
}

static void part(domi_slab *slab)
{
    domi_slab_chunk **link = &slab->chunks;

    slab->trim->parted = true;
    slab->spare_bytes = 0;
    while (*link != NULL) {
        domi_slab_chunk *chunk = *link;

        if (is_whole(slab, chunk)) {
            *link = chunk->next;
            chunk->next = slab->trim->going;
            slab->trim->going = chunk;
            continue;
        }
        slab->spare_bytes += (uint64_t)chunk->free_count * slab->object_bytes;
        splice(slab, chunk);
        link = &chunk->next;
    }
}

static void release(domi_slab *slab)
{
    trim *now = slab->trim;

    for (int left = RELEASES_PER_STEP; now->going != NULL && left != 0; left--) {
        domi_slab_chunk *chunk = now->going;
        size_t bytes = chunk->bytes;

        now->going = chunk->next;
        slab->mapped_bytes -= bytes;
        DOMI_UNPOISON(chunk, bytes);
        domi_memory_unmap(chunk, bytes);
    }
}

bool domi_slab_trim_step(domi_slab *slab, uint32_t objects)
{
    trim *now = slab->trim;

    if (now == NULL)
        return true;
    if (now->rest != NULL) {
        sort(now, objects);
        return false;
    }
    if (!now->parted)
        part(slab);
    else
        release(slab);
    if (now->going != NULL)
        return false;
    trim_free(slab);
    return true;
}

/* What goes becomes the second chunk: the newest stays the first. */
static void take_back(domi_slab *slab)
{
    trim *now = slab->trim;

    while (now->going != NULL) {
        domi_slab_chunk *chunk = now->going;

        now->going = chunk->next;
        chunk->next = slab->chunks->next;
        slab->chunks->next = chunk;
        splice(slab, chunk);
    }
}

void domi_slab_trim_stop(domi_slab *slab)
{
    trim *now = slab->trim;

    if (now == NULL)
        return;
    if (now->parted) {
        take_back(slab);
        trim_free(slab);
        return;
    }
    /* Who ran dry has none: then what is not sorted is no walk. */
    for (void *object = slab->free; object != NULL; object = slab->free) {
        slab->free = *(void **)object;
        *(void **)object = now->rest;
        now->rest = object;
    }
    slab->free = now->rest;
    for (size_t i = 0; i < now->count; i++)
        splice(slab, now->chunks[i]);
    trim_free(slab);
}
