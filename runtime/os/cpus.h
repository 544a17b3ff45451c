/* Which CPUs this process may use, and how many threads `auto` means.
 *
 * Usable are the CPUs of the affinity mask (which the kernel keeps within the cpuset). A CPU quota
 * of the process's cgroup (v2 `cpu.max`, v1 `cpu.cfs_quota_us`/`cpu.cfs_period_us`, the smallest on
 * the way to the root) bounds the count: `auto` is min(usable, quota rounded up). Runs before the
 * threads start. */
#ifndef DOMI_RUNTIME_OS_CPUS_H
#define DOMI_RUNTIME_OS_CPUS_H

#include <domus/config.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOMI_CPUS_MAX 1024

typedef struct domi_cpus {
    uint32_t threads;            /* how many to start */
    uint32_t count;              /* entries in `cpu`; 0: do not pin */
    uint32_t quota;              /* CPUs by cgroup quota, rounded up; 0: no quota */
    bool few;                    /* of CPUs: a thread that looks for work stands in others' way */
    uint16_t cpu[DOMI_CPUS_MAX]; /* thread i is pinned to cpu[i % count] */
    char warning[256]; /* "" or one line, such as more threads than CPUs; the program prints it */
} domi_cpus;

/* Choose by `config->system`. `root` is "" in production; tests give a directory that holds a
 * `proc/self/cgroup` and a `sys/fs/cgroup` of their own.
 *
 * Returns 0; -EINVAL when the list names a CPU that is not usable or is malformed; what the kernel
 * says when it does not tell the affinity. With the line in `error` (may be NULL with size 0). */
int domi_cpus_choose(const domus_config *config, const char *root, domi_cpus *ret_cpus, char *error,
                     size_t error_size);

/* Read a list such as "8,0-3" into `ret_cpu`, in its order; duplicates are ignored.
 * Returns how many; -EINVAL. */
int domi_cpus_parse(const char *list, uint16_t *ret_cpu, size_t cpu_max);

#endif
