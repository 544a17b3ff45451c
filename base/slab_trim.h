/* Trimming a slab: its chunks that are free as a whole go back to the kernel. Owner thread only. */
#ifndef DOMI_BASE_SLAB_TRIM_H
#define DOMI_BASE_SLAB_TRIM_H

#include "base/slab_layout.h"

/* Give chunks that are free as a whole back to the kernel, in bounded steps. The newest chunk
 * always stays. If the slab keeps its chunks (`lasts`), their free bytes are only counted, in
 * `spare_bytes`.
 *
 * A trim takes the whole free list and sorts the objects by their chunks, because a free object
 * does not know its chunk. Meanwhile the free list is empty, apart from objects that are freed now.
 * If the slab runs dry then, domi_slab_carve_object() stops the trim, which gives all free objects
 * back to the slab.
 *
 * domi_slab_trim_begin() returns false if nothing can be gained, or if there is no memory for the
 * table of chunks. domi_slab_trim_step() sorts up to `objects` objects, or gives up to 8 chunks
 * back, and returns true when the trim has ended. */
bool domi_slab_trim_begin(domi_slab *slab);
bool domi_slab_trim_step(domi_slab *slab, uint32_t objects);
void domi_slab_trim_stop(domi_slab *slab);

#endif
