/* Measuring, the same way in every bench program: one clock, CPU time, a pinned thread, a median.
 *
 * All times are nanoseconds. Nothing here belongs to domus: the bare programs that domus is held
 * against use the same functions, so that both sides are measured alike. */
#ifndef DOMUS_BENCH_MEASURE_H
#define DOMUS_BENCH_MEASURE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* CLOCK_MONOTONIC. */
uint64_t measure_now_ns(void);

/* User and system time of the calling thread, of the calling process (all its threads, also those
 * that ended), and of another process that has not been waited for.
 * The last returns 0 or a negative errno. */
uint64_t measure_thread_cpu_ns(void);
uint64_t measure_process_cpu_ns(void);
int measure_other_cpu_ns(pid_t pid, uint64_t *ret_cpu_ns);

/* Sleep so long, whatever interrupts. */
void measure_nap(double seconds);

/* Pin the calling thread. Returns 0, or -EINVAL where there is no such CPU for this process. */
int measure_pin(int cpu);

/* Sorts `values`; the mean of the two in the middle for an even count. `count` is at least 1. */
double measure_median(double *values, size_t count);

#endif
