/* The one place that reads time. Only runtime calls it; the other layers are handed `now_ns`.
 *
 * Nanoseconds since an arbitrary start (CLOCK_MONOTONIC's), never backwards on one thread. Where
 * the TSC is invariant (CPUID 0x80000007, EDX bit 8), a read is one rdtsc scaled by a factor that
 * was calibrated against CLOCK_MONOTONIC; elsewhere clock_gettime. The virtual twin has the same
 * type and moves only when told to, so that a simulation owns time.
 *
 * Thread-safety: a real clock may be shared by all threads once made; a virtual one belongs to the
 * thread that moves it. */
#ifndef DOMI_BASE_CLOCK_H
#define DOMI_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

typedef struct domi_clock {
    bool is_virtual;
    bool has_tsc;       /* invariant TSC: reads cost about 10 ns instead of 25 */
    uint64_t tsc_start; /* the TSC at `start_ns` */
    uint64_t start_ns;
    uint64_t scale; /* nanoseconds per tick, as a 32.32 fixed-point number */
    uint64_t virtual_ns;
} domi_clock;

/* Calibrate: takes about 2 ms where the TSC is invariant. */
void domi_clock_init(domi_clock *clock);

/* A clock that stands still at `start_ns`. */
void domi_clock_init_virtual(domi_clock *clock, uint64_t start_ns);

/* Move a virtual clock on. */
void domi_clock_advance(domi_clock *clock, uint64_t by_ns);

__extension__ typedef unsigned __int128 domi_uint128;

/* `after_ns` from now on CLOCK_MONOTONIC itself, for timed waits: over days the scaled TSC drifts.
 */
struct timespec domi_clock_after(uint64_t after_ns);

/* What a CPU-time clock (of a thread or a process) says; 0 when it is gone. */
uint64_t domi_clock_cpu_ns(clockid_t clock);

/* The slow way, for clocks without TSC. */
uint64_t domi_clock_read_slow(const domi_clock *clock);

static inline uint64_t domi_clock_now(const domi_clock *clock)
{
#if defined(__x86_64__)
    if (__builtin_expect(clock->has_tsc, 1)) {
        uint64_t ticks = __builtin_ia32_rdtsc() - clock->tsc_start;
        return clock->start_ns + (uint64_t)(((domi_uint128)ticks * clock->scale) >> 32);
    }
#endif
    return domi_clock_read_slow(clock);
}

#endif
