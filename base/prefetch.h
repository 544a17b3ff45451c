/* Ask for a cache line before it is needed, for writing: one transfer instead of two where it comes
 * from another core. gcc's and clang's __builtin_prefetch(p, 1) fetches only for reading unless the
 * CPU model is named, so the instruction is named here; older CPUs take it for a no-op. */
#ifndef DOMI_BASE_PREFETCH_H
#define DOMI_BASE_PREFETCH_H

static inline void domi_prefetch_write(const volatile void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const volatile char *)line));
#else
    __builtin_prefetch((const void *)line, 1);
#endif
}

#endif
