/* Every bench program measures in the same way, by these functions: one clock, CPU time, a pinned
 * thread, a median.
 *
 * All times are nanoseconds. Nothing here belongs to domus: the bare programs that domus is held
 * against use the same functions, so that both sides are measured alike. */
#ifndef DOMUS_BENCH_MEASURE_H
#define DOMUS_BENCH_MEASURE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns the time of CLOCK_MONOTONIC in ns. */
uint64_t measure_now_ns(void);

/* These three give user and system time together: of the calling thread, of the calling process
 * (all its threads, also those that have ended), and of another process that has not been waited
 * for. The last one returns 0 or a negative errno. */
uint64_t measure_thread_cpu_ns(void);
uint64_t measure_process_cpu_ns(void);
int measure_cpu_ns_of_other_process(pid_t pid, uint64_t *ret_cpu_ns);

/* Returns the bytes of another process that are resident; 0: they cannot be read. */
double measure_resident_bytes(pid_t pid);

/* Sleep for `seconds`, also if signals interrupt the sleep. */
void measure_sleep_seconds(double seconds);

/* Pin the calling thread to a CPU. Returns 0; -EINVAL if this process may not use that CPU. */
int measure_pin_thread_to_cpu(int cpu);

/* Returns the median of `values`, which this sorts; for an even `count` it is the mean of the two
 * in the middle. `count` is at least 1. */
double measure_sort_and_get_median(double *values, size_t count);

#endif
