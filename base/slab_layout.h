/* How a slab, its chunks and its trim lie in memory. The first cache line of a chunk is its
 * header; objects begin at the second or third line, so that objects of whole cache lines are
 * aligned to them. */
#ifndef DOMI_BASE_SLAB_LAYOUT_H
#define DOMI_BASE_SLAB_LAYOUT_H

#include "base/poison.h"
#include "base/width.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The header of a chunk, in its first cache line. */
typedef struct domi_slab_chunk domi_slab_chunk;

struct domi_slab_chunk {
    domi_slab_chunk *next; /* the chunk that the slab made before this chunk; NULL: none was */
    size_t bytes;          /* size of the chunk with its header */
    /* end of the chunk's carved part; for the newest chunk `slab->carve` is that end instead */
    char *end;
    /* number of the chunk's first object; constant while no chunk is given back */
    uint32_t first;

    /* free objects of this chunk that a trim has found so far */
    void *free;
    void *free_last;     /* last of the objects in the chunk's list `free` */
    uint32_t free_count; /* number of objects in the chunk's list `free` */
};

/* A trim of a slab that is under way. While `rest` is not empty, it sorts free objects by their
 * chunks. Then it parts the chunks into those that stay and those of `going`, and gives the latter
 * back. slab_check.c states what is true meanwhile. */
typedef struct domi_slab_trim {
    void *rest; /* the slab's free objects that the trim has not sorted yet */
    /* chunk of the object that the trim sorted last; not used once `parted` */
    domi_slab_chunk *last;
    /* whether all free objects are sorted, and `going` lists the chunks to be given back */
    bool parted;
    /* chunks that the trim gives back; they are no longer in the slab's list */
    domi_slab_chunk *going;
    size_t count;              /* number of entries of the trim's table `chunks` */
    domi_slab_chunk *chunks[]; /* table of the slab's chunks, sorted by address */
} domi_slab_trim;

typedef struct domi_slab {
    void *free;      /* the slab's free objects, singly linked through their first word */
    char *carve;     /* start of the part of the newest chunk that is not carved yet */
    char *carve_end; /* end of the newest chunk */
    char *populated; /* end of the pages of the newest chunk that were populated in advance */
    domi_slab_chunk *chunks; /* all chunks of the slab, the newest first */
    uint32_t object_bytes;   /* size of one of the slab's objects in bytes, a multiple of 64 */
    uint32_t keep_bytes;     /* bytes of a free object that stay readable; at least 8 */
    size_t chunk_bytes;      /* bytes that the slab maps for a chunk */
    uint64_t mapped_bytes;   /* bytes of all chunks of the slab */
    /* free bytes in the chunks that the last trim kept; 0 again once the slab's free list was
     * empty */
    uint64_t spare_bytes;
    /* whether the slab keeps its chunks for ever; while memory is scarce, it then makes its first
     * chunk only */
    bool lasts;
    domi_slab_trim *trim; /* the trim of the slab that is under way; NULL: none is */
    uint64_t unused[DOMI_POINTER_BITS == 64 ? 5 : 9]; /* pads the slab to a power of two */
} domi_slab;

static_assert(sizeof(domi_slab) == 128, "each free finds its slab by a shift of the index");

#define DOMI_SLAB_LINE 64u /* bytes of a cache line, at which objects begin */

static_assert(sizeof(domi_slab_chunk) <= DOMI_SLAB_LINE, "the header is one line");

/* Returns a pointer to the first object of `chunk`. Objects whose size is a multiple of two lines
 * begin at an even line, because the hardware fetches lines in pairs. */
static inline char *domi_slab_get_first_object(const domi_slab *slab, domi_slab_chunk *chunk)
{
    return (char *)chunk +
           (slab->object_bytes % (2 * DOMI_SLAB_LINE) == 0 ? 2 * DOMI_SLAB_LINE : DOMI_SLAB_LINE);
}

#endif
