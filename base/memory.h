/* The library takes memory from two sources only, the heap and pages of the kernel. A test can make
 * each of them fail.
 *
 * Everything that the library allocates passes through here, for two reasons: a test can make the
 * n-th allocation fail (domi_memory_fail_allocation_after) and raise n until a scenario passes
 * clean, and a system can bring an allocator of its own. All memory is zeroed, except that of
 * domi_memory_new_bytes() and domi_memory_grow_block(). Thread-safety: any thread; the countdown to
 * a failure is one for the whole process.
 *
 * The allocator is that of the calling thread, which sets it when it enters a system and restores
 * the former one when it leaves (domi_memory_set_allocator). A block from the heap remembers its
 * allocator and may be freed on any thread; pages have to be unmapped by a thread that uses the
 * same allocator as the thread that mapped them. */
#ifndef DOMI_BASE_MEMORY_H
#define DOMI_BASE_MEMORY_H

#include <domus/hooks.h>

#include <stdatomic.h>
#include <stdbool.h>

/* Allocate zeroed memory from the heap. Returns NULL when there is no memory. */
void *domi_memory_new(size_t bytes);

/* Allocate from the heap as domi_memory_new() does, but without zeroing, for bytes that are written
 * before they are read. */
void *domi_memory_new_bytes(size_t bytes);

/* Let a block of domi_memory_new_bytes() have `bytes`, which are more than it has. The block may
 * move; the kernel moves large blocks without a copy. Returns the block; NULL without memory, and
 * then the old block is as it was. */
void *domi_memory_grow_block(void *memory, size_t bytes);

/* Allocate zeroed memory from the heap as domi_memory_new() does, but aligned to a cache line (64
 * bytes). */
void *domi_memory_new_cache_lines(size_t bytes);

/* Free a block from the heap, on any thread. NULL is allowed. */
void domi_memory_free(void *memory);

/* Map whole pages; `bytes` is rounded up to pages. Returns NULL when there is no memory. */
void *domi_memory_map_pages(size_t bytes);
void domi_memory_unmap_pages(void *memory, size_t bytes);

/* Map DOMI_MEMORY_HUGE bytes, in one huge page if the kernel has one free (the allocator of a user
 * decides for itself). Returns NULL when there is no memory, or while the meter says `tight`.
 * domi_memory_unmap_pages() gives them back. */
#define DOMI_MEMORY_HUGE ((size_t)2 * 1024 * 1024)
void *domi_memory_map_huge_page(void);

/* Ask the kernel to make mapped pages present in one call, because they will be written soon;
 * otherwise each page costs a fault. This is a hint: kernels before 5.14 ignore it. */
void domi_memory_populate_pages(void *pages, size_t bytes);

/* Let this thread allocate from `allocator` (NULL: from the C library and the kernel).
 * The allocator has to outlive the last block taken from it. Returns the allocator that
 * was set before. */
const domus_allocator *domi_memory_set_allocator(const domus_allocator *allocator);

/* The memory that a system has taken, and when to measure it. Each thread counts for itself and
 * adds its count to `held` when that has grown or shrunk by 64 KiB. So `held` is only about right,
 * which is enough to decide when to measure. */
typedef struct domi_meter {
    _Atomic int64_t held; /* bytes that the threads with this meter have taken and not given back */
    _Atomic int64_t look_at; /* value of the meter's `held` at which `grown` is called */
    /* not 0: memory is tight, so no huge pages are made, and `grown` is called each 64 KiB */
    _Atomic uint32_t tight;
    /* not 0: memory is scarce, so slabs that keep their chunks for ever do not grow */
    _Atomic uint32_t scarce;
    _Atomic uint32_t full; /* not 0: memory is full, so every allocation fails */
    /* A function that is called by the thread that is about to take `bytes`; that thread may hold a
     * spinlock, so this function allocates nothing. */
    void (*grown)(struct domi_meter *meter, size_t bytes);
} domi_meter;

/* Let this thread count on `meter` (NULL: it does not count). Returns the meter that
 * was set before. */
domi_meter *domi_memory_set_meter(domi_meter *meter);

/* True if the meter of this thread says `tight`. */
bool domi_memory_is_tight(void);

/* True if the meter of this thread says `scarce`: a slab whose chunks are never given back (`lasts`
 * in slab_layout.h) takes no further chunk then. */
bool domi_memory_is_scarce(void);

/* True if the meter of this thread says `full`: every allocation of this thread fails then. */
bool domi_memory_is_full(void);

#define DOMI_MEMORY_HEAD 16u /* bytes of the header in front of each block from the heap */

/* Returns the bytes that a block from the heap takes, with its header and its alignment. */
size_t domi_memory_bytes_of_block(const void *memory);

/* Let `count` more allocations of the process succeed, and let the next one fail; if `stay` is not
 * 0, all after that one fail, too. With a negative count none fails, which is the normal case. */
void domi_memory_fail_allocation_after(int64_t count, int stay);

#endif
