/* The two sources of memory, the heap and mapped pages. Each allocation passes the countdown to a
 * failure for a test and the count of bytes before it. A block from the heap has a header that
 * names its allocator, its size and its start. */
#include "base/memory.h"

#include "base/check.h"
#include "base/width.h"

#include <domus/memory.h>

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINE_BYTES 64u   /* number of bytes in a cache line */
#define ALIGNMENT  16u   /* alignment in bytes of every block from the heap */
#define PAGE       4096u /* number of bytes in a page of memory */
#define BYTES_BITS 56    /* number of bits of a block's header that hold the size of the block */
/* mask of the bits of a block's header that hold the size */
#define BYTES_MASK ((UINT64_C(1) << BYTES_BITS) - 1)
/* The largest size of a block: half of what the header's bits can hold, or half of the address
 * space where pointers have 32 bits. */
#define BYTES_MAX ((size_t)1 << (DOMI_POINTER_BITS == 64 ? BYTES_BITS - 1 : 31))

/* The header in front of each block of the heap. */
typedef struct block {
    /* the allocator from which the block was taken; NULL: the C library */
    const domus_allocator *allocator;
    /* size of the block with this header; the upper byte has the distance from its start to the
     * payload */
    DOMI_KEEP_PLACE(8) uint64_t bytes;
} block;

static_assert(sizeof(block) == ALIGNMENT, "what follows is aligned as the block is");
static_assert(sizeof(block) == DOMI_MEMORY_HEAD,
              "what domi_memory_bytes_of_block() counts besides");
static_assert(LINE_BYTES % ALIGNMENT == 0 && LINE_BYTES <= UINT8_MAX, "what the upper byte holds");

/* `passes` (allocations until one fails) and `stays` (whether all later ones fail, too) are
 * relaxed: only a test writes them, before the threads that it concerns allocate. */
static _Atomic int64_t passes = -1;
static atomic_int stays;

static _Thread_local const domus_allocator *current;

static bool must_allocation_fail_for_test(void)
{
    if (__builtin_expect(atomic_load_explicit(&passes, memory_order_relaxed) < 0, 1))
        return false;
    int64_t left = atomic_fetch_sub_explicit(&passes, 1, memory_order_relaxed);
    if (left > 0)
        return false;
    if (atomic_load_explicit(&stays, memory_order_relaxed) != 0)
        atomic_store_explicit(&passes, 0, memory_order_relaxed);
    return left == 0;
}

/* --- counting --------------------------------------------------------------------------------- */

/* most bytes by which a thread's use of memory changes before it reports the change to its meter */
#define COUNT_STEP (64 * 1024)

static _Thread_local domi_meter *meter;
static _Thread_local int64_t uncounted;

/* Add what this thread has not yet reported to its meter. `wanted` is the size of the allocation
 * under way, 0 when memory is freed. Relaxed, as for all fields of a meter: the numbers guard no
 * other data. */
static void report_bytes_to_meter(uint64_t wanted)
{
    int64_t held =
        atomic_fetch_add_explicit(&meter->held, uncounted, memory_order_relaxed) + uncounted;

    uncounted = 0;
    if (wanted != 0 && (held >= atomic_load_explicit(&meter->look_at, memory_order_relaxed) ||
                        atomic_load_explicit(&meter->tight, memory_order_relaxed) != 0))
        meter->grown(meter, (size_t)wanted);
}

bool domi_memory_is_tight(void)
{
    return meter != NULL && atomic_load_explicit(&meter->tight, memory_order_relaxed) != 0;
}

bool domi_memory_is_scarce(void)
{
    return meter != NULL && atomic_load_explicit(&meter->scarce, memory_order_relaxed) != 0;
}

bool domi_memory_is_full(void)
{
    return meter != NULL && atomic_load_explicit(&meter->full, memory_order_relaxed) != 0;
}

static void subtract_counted_bytes(uint64_t bytes)
{
    if (meter == NULL)
        return;
    uncounted -= (int64_t)bytes;
    if (uncounted <= -COUNT_STEP)
        report_bytes_to_meter(0);
}

/* The bytes are counted before they are allocated, so that `grown` can set `full` and thereby
 * refuse this very allocation. */
static bool count_bytes_before_allocation(uint64_t bytes)
{
    if (meter == NULL)
        return true;
    uncounted += (int64_t)bytes;
    if (uncounted >= COUNT_STEP)
        report_bytes_to_meter(bytes);
    if (DOMI_LIKELY(!domi_memory_is_full()))
        return true;
    subtract_counted_bytes(bytes);
    return false;
}

domi_meter *domi_memory_set_meter(domi_meter *next)
{
    domi_meter *before = meter;

    if (next == before)
        return before;
    if (before != NULL && uncounted != 0)
        report_bytes_to_meter(0);
    uncounted = 0;
    meter = next;
    return before;
}

/* --- the doors -------------------------------------------------------------------------------- */

const domus_allocator *domi_memory_set_allocator(const domus_allocator *allocator)
{
    const domus_allocator *before = current;

    current = allocator;
    return before;
}

static void *allocate_zeroed_by_c_library(size_t bytes)
{
    return calloc(1, bytes);
}

/* Allocate a block of `bytes` at a multiple of `alignment`, which is a multiple of ALIGNMENT and at
 * most LINE_BYTES. `source` is the function of the C library. */
DOMI_INLINE void *allocate_block_with_header(size_t bytes, size_t alignment,
                                             void *(*source)(size_t bytes))
{
    const domus_allocator *allocator = current;

    if (must_allocation_fail_for_test() || bytes > BYTES_MAX)
        return NULL;
    /* room for the header and for the alignment of the payload: `start` is aligned to ALIGNMENT
     * only */
    bytes += alignment;
    if (!count_bytes_before_allocation(bytes))
        return NULL;
    char *start =
        allocator != NULL ? allocator->allocate(allocator->context, bytes) : source(bytes);
    if (start == NULL) {
        subtract_counted_bytes(bytes);
        return NULL;
    }
    DOMI_CHECK((uintptr_t)start % ALIGNMENT == 0);
    size_t before = alignment - (uintptr_t)start % alignment;
    block *made = (block *)(void *)(start + before) - 1;
    *made = (block){allocator, bytes | (uint64_t)before << BYTES_BITS};
    return made + 1;
}

int domus_memory_count(uint64_t *counted, uint64_t bytes)
{
    if (bytes > *counted &&
        (must_allocation_fail_for_test() || !count_bytes_before_allocation(bytes - *counted)))
        return -ENOMEM;
    if (bytes < *counted)
        subtract_counted_bytes(*counted - bytes);
    *counted = bytes;
    return 0;
}

void *domi_memory_new(size_t bytes)
{
    return allocate_block_with_header(bytes, ALIGNMENT, allocate_zeroed_by_c_library);
}

void *domi_memory_new_bytes(size_t bytes)
{
    return allocate_block_with_header(bytes, ALIGNMENT, malloc);
}

/* Grow a block as domi_memory_grow_block() does, but by a copy, because an allocator of the user
 * cannot make blocks larger. */
static void *grow_block_by_copy(void *memory, size_t bytes)
{
    void *grown = domi_memory_new_bytes(bytes);

    if (grown == NULL)
        return NULL;
    memcpy(grown, memory, domi_memory_bytes_of_block(memory) - ALIGNMENT);
    domi_memory_free(memory);
    return grown;
}

void *domi_memory_grow_block(void *memory, size_t bytes)
{
    block *made = (block *)memory - 1;
    size_t before = domi_memory_bytes_of_block(memory);

    DOMI_CHECK(made->bytes >> BYTES_BITS == ALIGNMENT && bytes >= before - ALIGNMENT);
    if (made->allocator != NULL || current != NULL)
        return grow_block_by_copy(memory, bytes);
    if (must_allocation_fail_for_test() || bytes > BYTES_MAX ||
        !count_bytes_before_allocation(bytes + ALIGNMENT - before))
        return NULL;
    block *grown = realloc(made, bytes + ALIGNMENT);
    if (grown == NULL) {
        subtract_counted_bytes(bytes + ALIGNMENT - before);
        return NULL;
    }
    grown->bytes = (bytes + ALIGNMENT) | (uint64_t)ALIGNMENT << BYTES_BITS;
    return grown + 1;
}

void *domi_memory_new_cache_lines(size_t bytes)
{
    return allocate_block_with_header((bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES,
                                      LINE_BYTES, allocate_zeroed_by_c_library);
}

void domi_memory_free(void *memory)
{
    if (memory == NULL)
        return;
    const block *made = (const block *)memory - 1;
    const domus_allocator *allocator = made->allocator;
    size_t bytes = (size_t)(made->bytes & BYTES_MASK);
    void *start = (char *)memory - (size_t)(made->bytes >> BYTES_BITS);

    subtract_counted_bytes(bytes);
    if (allocator != NULL)
        allocator->free(allocator->context, start, bytes);
    else
        free(start);
}

size_t domi_memory_bytes_of_block(const void *memory)
{
    return (size_t)(((const block *)memory - 1)->bytes & BYTES_MASK);
}

/* Allocators of users get and give whole pages, so whole pages are counted, too. */
static size_t round_up_to_pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static void *map_pages_by_allocator(size_t bytes)
{
    void *mapped = current->map(current->context, round_up_to_pages(bytes));

    DOMI_CHECK((uintptr_t)mapped % PAGE == 0);
    return mapped;
}

static void *map_kernel_pages(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void *domi_memory_map_pages(size_t bytes)
{
    if (must_allocation_fail_for_test() || !count_bytes_before_allocation(round_up_to_pages(bytes)))
        return NULL;
    void *memory = current != NULL ? map_pages_by_allocator(bytes) : map_kernel_pages(bytes);
    if (memory == NULL)
        subtract_counted_bytes(round_up_to_pages(bytes));
    return memory;
}

/* Map a huge page at its alignment: map twice as much memory, and unmap what lies before and behind
 * the aligned half. */
static void *map_aligned_huge_page(void)
{
    char *memory = map_kernel_pages(2 * DOMI_MEMORY_HUGE);

    if (memory == NULL)
        return NULL;
    size_t before = -(uintptr_t)memory % DOMI_MEMORY_HUGE;
    if (before != 0)
        (void)munmap(memory, before);
    (void)munmap(memory + before + DOMI_MEMORY_HUGE, DOMI_MEMORY_HUGE - before);
    (void)madvise(memory + before, DOMI_MEMORY_HUGE, MADV_HUGEPAGE);
    return memory + before;
}

void *domi_memory_map_huge_page(void)
{
    if (must_allocation_fail_for_test() || domi_memory_is_tight() ||
        !count_bytes_before_allocation(DOMI_MEMORY_HUGE))
        return NULL;
    void *memory =
        current != NULL ? map_pages_by_allocator(DOMI_MEMORY_HUGE) : map_aligned_huge_page();
    if (memory == NULL)
        subtract_counted_bytes(DOMI_MEMORY_HUGE);
    return memory;
}

void domi_memory_unmap_pages(void *memory, size_t bytes)
{
    const domus_allocator *allocator = current;

    if (memory == NULL)
        return;
    subtract_counted_bytes(round_up_to_pages(bytes));
    if (allocator != NULL)
        allocator->unmap(allocator->context, memory, round_up_to_pages(bytes));
    else
        (void)munmap(memory, bytes);
}

void domi_memory_populate_pages(void *pages, size_t bytes)
{
#ifdef MADV_POPULATE_WRITE
    (void)madvise(pages, bytes, MADV_POPULATE_WRITE);
#else
    (void)pages;
    (void)bytes;
#endif
}

void domi_memory_fail_allocation_after(int64_t count, int stay)
{
    atomic_store_explicit(&stays, stay, memory_order_relaxed);
    atomic_store_explicit(&passes, count, memory_order_relaxed);
}
