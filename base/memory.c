/* The heap and the kernel's pages behind one countdown; see the header. */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINE_BYTES 64u

/* Relaxed: only a test writes it, before the threads that it concerns allocate. */
static _Atomic int64_t passes = -1;
static atomic_int stays;

static bool fails(void)
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

void *domi_memory_new(size_t bytes)
{
    return fails() ? NULL : calloc(1, bytes);
}

void *domi_memory_new_lines(size_t bytes)
{
    size_t whole = (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    void *memory = fails() ? NULL : aligned_alloc(LINE_BYTES, whole);

    if (memory != NULL)
        memset(memory, 0, whole);
    return memory;
}

void domi_memory_free(void *memory)
{
    free(memory);
}

void *domi_memory_map(size_t bytes)
{
    if (fails())
        return NULL;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void domi_memory_unmap(void *memory, size_t bytes)
{
    if (memory != NULL)
        (void)munmap(memory, bytes);
}

void domi_memory_populate(void *pages, size_t bytes)
{
#ifdef MADV_POPULATE_WRITE
    (void)madvise(pages, bytes, MADV_POPULATE_WRITE);
#else
    (void)pages;
    (void)bytes;
#endif
}

void domi_memory_fail_after(int64_t count, int stay)
{
    atomic_store_explicit(&stays, stay, memory_order_relaxed);
    atomic_store_explicit(&passes, count, memory_order_relaxed);
}
