/* The choice of the CPUs that this process uses, and of the number of threads for `auto`.
 *
 * The usable CPUs are those of the affinity mask, which the kernel keeps within the cpuset. `auto`
 * is the number of usable CPUs, or, if it is less, the CPU quota of the process's cgroup, rounded
 * up (v2 `cpu.max`, v1 `cpu.cfs_quota_us` and `cpu.cfs_period_us`, the smallest on the way to the
 * root). Called before the threads start. */
#ifndef DOMI_RUNTIME_OS_CPUS_H
#define DOMI_RUNTIME_OS_CPUS_H

#include <domus/config.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most entries in a list of CPUs; the ids in the list may be larger. */
#define DOMI_CPUS_MAX 1024

typedef struct domi_cpus {
    uint32_t threads; /* number of threads that the system starts */
    /* number of entries in `cpu` to which threads are pinned; 0: threads are not pinned */
    uint32_t count;
    uint32_t quota; /* number of CPUs that the cgroup's quota allows, rounded up; 0: no quota */
    /* true: the machine has so few CPUs that a spinning thread would hinder the others */
    bool few;
    /* true: threads are not pinned, because the kernel does not tell the usable CPUs */
    bool is_unpinned;
    /* ids of the CPUs to which threads are pinned: thread i is pinned to cpu[i % count] */
    uint16_t cpu[DOMI_CPUS_MAX];
    /* warning for the program to print, one line such as "more threads than CPUs"; "": no
     * warning */
    char warning[256];
} domi_cpus;

/* Choose threads and CPUs by `config->system`. `root` is "" in production; tests give a directory
 * that holds a `proc/self/cgroup` and a `sys/fs/cgroup` of their own.
 *
 * Returns 0; -EINVAL if the list is malformed or names a CPU that is not usable; the kernel's
 * negative errno if it does not tell the affinity and the configuration has a list. On failure
 * `error` gets one line of text; `error` may be NULL with size 0. */
int domi_cpus_choose_for_threads(const domus_config *config, const char *root, domi_cpus *ret_cpus,
                                 char *error, size_t error_size);

/* Read a list of CPUs such as "8,0-3" into `ret_cpu`, in the order of the list; a CPU that is
 * named again is ignored. Returns how many CPUs the list names; -EINVAL. */
int domi_cpus_parse_list(const char *list, uint16_t *ret_cpu, size_t cpu_max);

#endif
