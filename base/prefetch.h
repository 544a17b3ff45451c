/* Ask for a cache line before it is needed for writing. If the line is in another core, this saves
 * one of two transfers (one to read it, one to own it). The instruction is written out because the
 * __builtin_prefetch(p, 1) of gcc and clang fetches only for reading unless the CPU model is named.
 * CPUs that do not know it do nothing. */
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

/* Ask for a cache line before it is needed for reading. */
static inline void domi_prefetch_read(const void *line)
{
    __builtin_prefetch(line, 0);
}

#endif
