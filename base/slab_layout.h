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
    domi_slab_chunk *next; /* the chunk that was made before this one; NULL: none */
    size_t bytes;          /* size of the chunk with its header */
    /* end of the carved part; `slab->carve` holds that of the newest chunk */
    char *end;
    /* number of the chunk's first object; constant while no chunk is given back */
    uint32_t first;

    /* free objects of this chunk that a trim has found so far */
    void *free;
    void *free_last;     /* last of the objects in `free` */
    uint32_t free_count; /* number of objects in `free` */
};

/* A trim that is under way. It first sorts, as long as `rest` is not empty, and then parts the
 * chunks. After that it only gives the chunks of `going` back. slab_check.c states what is
 * true meanwhile. */
typedef struct domi_slab_trim {
    void *rest;            /* free objects that are not sorted yet */
    domi_slab_chunk *last; /* chunk of the object that was sorted last; not used once `parted` */
    /* whether everything is sorted, and `going` lists the chunks to be given back */
    bool parted;
    domi_slab_chunk *going;    /* chunks to be given back; they are no longer in the slab's list */
    size_t count;              /* number of entries of `chunks` */
    domi_slab_chunk *chunks[]; /* chunks of the slab, sorted by address */
} domi_slab_trim;

typedef struct domi_slab {
    void *free;              /* free objects, singly linked through their first word */
    char *carve;             /* start of the part of the newest chunk that is not carved yet */
    char *carve_end;         /* end of the newest chunk */
    char *populated;         /* end of the populated pages of the newest chunk */
    domi_slab_chunk *chunks; /* all chunks, the newest first */
    uint32_t object_bytes;   /* size of an object in bytes, a multiple of 64 */
    uint32_t keep_bytes;     /* bytes of a free object that stay readable; at least 8 */
    size_t chunk_bytes;      /* bytes that are mapped for a chunk */
    uint64_t mapped_bytes;   /* bytes of all chunks */
    /* free bytes in the chunks that the last trim kept; 0 again once the free list was empty */
    uint64_t spare_bytes;
    /* whether no chunk is given back; while memory is scarce, only the first chunk is made */
    bool lasts;
    domi_slab_trim *trim;                             /* trim that is under way; NULL: none is */
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
