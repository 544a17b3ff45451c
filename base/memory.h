/* Where memory comes from: two doors, both of which can be told to fail.
 *
 * Everything that the library allocates comes through here, so that a test can make the n-th
 * allocation fail (domi_memory_fail_after) and sweep n until a scenario passes clean, and so that a
 * system can bring an allocator of its own. All memory is zeroed. Thread-safety: any thread; the
 * countdown is one for the process.
 *
 * Which allocator: the calling thread's, which it takes on when it enters a system and puts off
 * when it leaves (domi_memory_use). A block from the heap remembers whose it is and may be freed
 * anywhere; pages are given back by a thread that uses the same allocator as who mapped them. */
#ifndef DOMI_BASE_MEMORY_H
#define DOMI_BASE_MEMORY_H

#include <domus/hooks.h>

#include <stdatomic.h>
#include <stdbool.h>

/* From the heap; NULL when there is none. */
void *domi_memory_new(size_t bytes);

/* The same, aligned to a cache line (64 bytes). */
void *domi_memory_new_lines(size_t bytes);

/* NULL is taken. */
void domi_memory_free(void *memory);

/* Whole pages from the kernel; `bytes` is rounded up to pages. NULL when there are none. */
void *domi_memory_map(size_t bytes);
void domi_memory_unmap(void *memory, size_t bytes);

/* DOMI_MEMORY_HUGE bytes, in one page of that size if the kernel has one to give (a user's
 * allocator decides for itself); NULL when there is no memory, or it is tight. Given back with
 * domi_memory_unmap(). */
#define DOMI_MEMORY_HUGE ((size_t)2 * 1024 * 1024)
void *domi_memory_map_huge(void);

/* Mapped pages that will be written soon: let the kernel make them in one go instead of one fault
 * each. A hint: kernels before 5.14 do nothing. */
void domi_memory_populate(void *pages, size_t bytes);

/* From here on this thread allocates from `allocator` (NULL: the C library and the kernel), which
 * outlives its last block. Returns what it used before. */
const domus_allocator *domi_memory_use(const domus_allocator *allocator);

/* What a system has taken, and when to look at it. Threads count by themselves and add it up some
 * tens of KiB at a time, so `held` is about right; it only says when to measure. */
typedef struct domi_meter {
    _Atomic int64_t held;    /* bytes taken and not given back, of threads that count */
    _Atomic int64_t look_at; /* `grown` is called when held comes here */
    _Atomic uint32_t tight;  /* no huge pages, and `grown` is called at each step */
    _Atomic uint32_t scarce; /* what never goes back does not grow any more */
    _Atomic uint32_t full;   /* nothing is given any more: what can fail fails, with -ENOMEM */
    /* By the thread that is about to take `bytes`, maybe under a spinlock. Allocates nothing. */
    void (*grown)(struct domi_meter *meter, size_t bytes);
} domi_meter;

/* From here on this thread counts on `meter` (NULL: it does not). Returns what it did before. */
domi_meter *domi_memory_count(domi_meter *meter);

/* Much is used. */
bool domi_memory_is_tight(void);

/* What is taken for good is not given to this thread any more. */
bool domi_memory_is_scarce(void);

/* Nothing is given to this thread any more. */
bool domi_memory_is_full(void);

/* The bytes of a block from the heap, about. */
size_t domi_memory_bytes(const void *memory);

/* Let `count` more allocations pass, then let one fail (with `stay`, that one and all after it).
 * A negative count: none fails (the normal case). */
void domi_memory_fail_after(int64_t count, int stay);

#endif
