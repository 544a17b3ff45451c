/* Calibration of the TSC against CLOCK_MONOTONIC, and clocks that do without it.
 *
 * A sample is the CLOCK_MONOTONIC time taken between two reads of the TSC. Among several attempts
 * the one with the smallest gap counts, so that an interrupt during one attempt does no harm. Two
 * samples that are 2 ms apart give the factor. The clock begins at the first of them: a CPU whose
 * TSC lags a little behind is still past `tsc_start` then, so the subtraction in domi_clock_now()
 * cannot wrap. */
#include "base/clock.h"

#include "base/check.h"

#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define NS_PER_S UINT64_C(1000000000) /* number of nanoseconds in a second */

static uint64_t read_monotonic_clock(void)
{
    struct timespec time;

    /* clock_gettime() fails only for a bad pointer or an unknown clock. */
    DOMI_CHECK(clock_gettime(CLOCK_MONOTONIC, &time) == 0);
    return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

#if defined(__x86_64__)

/* number of the CPUID leaf that tells of power management and clocks */
#define CPUID_POWER 0x80000007u
/* bit of the CPUID leaf about clocks: the TSC counts at one rate */
#define CPUID_POWER_EDX_INVARIANT_TSC (1u << 8)
/* nanoseconds over which the rate of the TSC is measured */
#define CALIBRATION_NS UINT64_C(2000000)
/* pairs of reads of the TSC that one sample tries; the pair with the smallest gap is used */
#define SAMPLE_ATTEMPTS 16

struct sample {
    uint64_t ticks; /* value of the TSC in the middle between the two reads of it around `ns` */
    uint64_t ns;    /* CLOCK_MONOTONIC time of this sample, in ns */
};

static bool is_tsc_invariant(void)
{
    unsigned eax, ebx, ecx, edx;

    return __get_cpuid(CPUID_POWER, &eax, &ebx, &ecx, &edx) != 0 &&
           (edx & CPUID_POWER_EDX_INVARIANT_TSC) != 0;
}

static struct sample sample_tsc(void)
{
    struct sample best = {0};
    uint64_t gap_min = UINT64_MAX;

    for (int i = 0; i < SAMPLE_ATTEMPTS; i++) {
        uint64_t before = __builtin_ia32_rdtsc();
        uint64_t ns = read_monotonic_clock();
        uint64_t gap = __builtin_ia32_rdtsc() - before;

        if (gap < gap_min) {
            gap_min = gap;
            best = (struct sample){.ticks = before + gap / 2, .ns = ns};
        }
    }
    return best;
}

/* Calibrate `clock`. If the TSC does not count, whatever CPUID says, the clock goes on without the
 * TSC. */
static void calibrate_tsc(domi_clock *clock)
{
    struct sample first = sample_tsc();

    while (read_monotonic_clock() - first.ns < CALIBRATION_NS)
        ;

    struct sample last = sample_tsc();
    uint64_t elapsed_ns = last.ns - first.ns;
    uint64_t elapsed_ticks = last.ticks - first.ticks;

    /* A rate outside 250 MHz to 16 GHz is not that of a TSC of a 64-bit CPU: the TSC stands still,
     * or it went back. */
    if (elapsed_ticks < elapsed_ns / 4 || elapsed_ticks > elapsed_ns * 16)
        return;
    clock->tsc_start = first.ticks;
    clock->start_ns = first.ns;
    clock->scale = (uint64_t)(((domi_uint128)elapsed_ns << 32) / elapsed_ticks);
    clock->has_tsc = true;
}

#endif

void domi_clock_init(domi_clock *clock)
{
    *clock = (domi_clock){.start_ns = read_monotonic_clock()};
#if defined(__x86_64__)
    if (is_tsc_invariant())
        calibrate_tsc(clock);
#endif
}

void domi_clock_init_virtual(domi_clock *clock, uint64_t start_ns)
{
    *clock = (domi_clock){.is_virtual = true, .start_ns = start_ns, .virtual_ns = start_ns};
}

void domi_clock_advance_virtual(domi_clock *clock, uint64_t by_ns)
{
    DOMI_CHECK(clock->is_virtual);
    DOMI_CHECK(by_ns <= UINT64_MAX - clock->virtual_ns);
    clock->virtual_ns += by_ns;
}

uint64_t domi_clock_read_without_tsc(const domi_clock *clock)
{
    return clock->is_virtual ? clock->virtual_ns : read_monotonic_clock();
}

uint64_t domi_clock_read_utc_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t domi_clock_read_cpu_ns(clockid_t clock)
{
    struct timespec now;

    if (clock_gettime(clock, &now) != 0)
        return 0;
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct timespec domi_clock_deadline_after(uint64_t after_ns)
{
    struct timespec time = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    after_ns += (uint64_t)time.tv_nsec;
    time.tv_sec += (time_t)(after_ns / 1000000000u);
    time.tv_nsec = (long)(after_ns % 1000000000u);
    return time;
}
