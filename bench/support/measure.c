/* This file has the clocks, the pinning and the median of measure.h. */
#include "bench/support/measure.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static uint64_t read_clock_ns(clockid_t clock)
{
    struct timespec time = {0};

    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

uint64_t measure_now_ns(void)
{
    return read_clock_ns(CLOCK_MONOTONIC);
}

uint64_t measure_thread_cpu_ns(void)
{
    return read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t measure_process_cpu_ns(void)
{
    return read_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

int measure_cpu_ns_of_other_process(pid_t pid, uint64_t *ret_cpu_ns)
{
    clockid_t clock;
    int error = clock_getcpuclockid(pid, &clock);

    if (error != 0)
        return -error;
    *ret_cpu_ns = read_clock_ns(clock);
    return 0;
}

double measure_resident_bytes(pid_t pid)
{
    char path[48];
    unsigned long pages = 0;

    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL || fscanf(file, "%*u %lu", &pages) != 1)
        pages = 0;
    if (file != NULL)
        fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

void measure_sleep_seconds(double seconds)
{
    struct timespec left = {
        .tv_sec = (time_t)seconds,
        .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9),
    };

    while (nanosleep(&left, &left) != 0)
        continue;
}

int measure_pin_thread_to_cpu(int cpu)
{
    cpu_set_t set;

    if (cpu < 0 || cpu >= CPU_SETSIZE)
        return -EINVAL;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0 ? 0 : -errno;
}

static int compare_values(const void *left_, const void *right_)
{
    const double *left = left_;
    const double *right = right_;

    return (*left > *right) - (*left < *right);
}

double measure_sort_and_get_median(double *values, size_t count)
{
    qsort(values, count, sizeof values[0], compare_values);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}
