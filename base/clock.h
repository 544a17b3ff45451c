/* The one place that reads time. Only runtime calls it; the layers below are handed `now_ns`.
 *
 * Times are nanoseconds since an arbitrary start (that of CLOCK_MONOTONIC) and never go backwards
 * on one thread. Where the TSC is invariant (CPUID 0x80000007, EDX bit 8), a read is one rdtsc
 * scaled by a factor that was calibrated against CLOCK_MONOTONIC; elsewhere it is clock_gettime. A
 * virtual clock has the same type and moves only when it is told to, so that a simulation controls
 * time.
 *
 * Thread-safety: a real clock may be shared by all threads once it is made; a virtual one belongs
 * to the thread that moves it. */
#ifndef DOMI_BASE_CLOCK_H
#define DOMI_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

typedef struct domi_clock {
    bool is_virtual; /* whether the time is `virtual_ns`, which a test kit moves */
    /* whether the TSC is invariant and used: a read then costs about 10 ns instead of 25 */
    bool has_tsc;
    uint64_t tsc_start;  /* value of the TSC (the CPU's time stamp counter) at `start_ns` */
    uint64_t start_ns;   /* CLOCK_MONOTONIC time in ns at which the TSC was `tsc_start` */
    uint64_t scale;      /* nanoseconds per TSC count, as a 32.32 fixed-point number */
    uint64_t virtual_ns; /* time in ns that a virtual clock shows */
} domi_clock;

/* Make a real clock. The calibration takes about 2 ms where the TSC is invariant. */
void domi_clock_init(domi_clock *clock);

/* Make a virtual clock that stands at `start_ns`. */
void domi_clock_init_virtual(domi_clock *clock, uint64_t start_ns);

/* Move a virtual clock forward by `by_ns`. */
void domi_clock_advance_virtual(domi_clock *clock, uint64_t by_ns);

#if defined(__x86_64__)
/* 128-bit type for multiplying a TSC value by the clock's factor; clock_gettime() needs no
 * factor */
__extension__ typedef unsigned __int128 domi_uint128;
#endif

/* Returns the time `after_ns` from now on CLOCK_MONOTONIC itself, for waits of the C library with a
 * time-out. It does not use the scaled TSC, which drifts over days. */
struct timespec domi_clock_deadline_after(uint64_t after_ns);

/* Returns the time by the calendar: nanoseconds since 1970, UTC. It jumps when somebody sets the
 * system's clock. */
uint64_t domi_clock_read_utc_ns(void);

/* Returns the time of a CPU-time clock (of a thread or a process) in ns; 0 when its thread is
 * gone. */
uint64_t domi_clock_read_cpu_ns(clockid_t clock);

/* Read a clock that does not use the TSC: a virtual clock, or a real one by clock_gettime. */
uint64_t domi_clock_read_without_tsc(const domi_clock *clock);

static inline uint64_t domi_clock_now(const domi_clock *clock)
{
#if defined(__x86_64__)
    if (__builtin_expect(clock->has_tsc, 1)) {
        uint64_t ticks = __builtin_ia32_rdtsc() - clock->tsc_start;
        return clock->start_ns + (uint64_t)(((domi_uint128)ticks * clock->scale) >> 32);
    }
#endif
    return domi_clock_read_without_tsc(clock);
}

#endif
