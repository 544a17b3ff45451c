/* Facts about the machine, from files of the kernel: quotas, throttling, stolen time, open files.
 *
 * If a file is missing, cannot be read or makes no sense, the result is 0. Thread-safety: any
 * thread. */
#ifndef DOMI_RUNTIME_OS_MACHINE_H
#define DOMI_RUNTIME_OS_MACHINE_H

#include <stdint.h>

/* The CPU quota of the process's cgroup, and how often the kernel stopped the process for it. */
typedef struct domi_cgroup_cpu {
    /* CPU quota in thousandths of a CPU, the smallest on the way to the root; 0: no quota */
    uint64_t quota;
    /* nanoseconds for which the cgroup was stopped by its quota, summed over all CPUs */
    uint64_t throttled_ns;
    uint64_t throttles; /* number of quota periods in which the cgroup was stopped */
    uint64_t periods;   /* number of quota periods in which the cgroup wanted a CPU */
} domi_cgroup_cpu;

/* Read the quota and the throttling of the process's cgroup. In all functions of this file
 * `root` is put before `/proc` and `/sys`; it is "" in production. */
void domi_machine_read_cgroup(const char *root, domi_cgroup_cpu *ret_cpu);

/* Times of the machine's CPUs since it was started, summed over all CPUs. */
typedef struct domi_machine_cpus {
    uint64_t stolen_ns; /* nanoseconds that a hypervisor gave to other machines */
    uint64_t idle_ns;   /* nanoseconds in which the CPUs were idle */
} domi_machine_cpus;

void domi_machine_read_cpus(const char *root, domi_machine_cpus *ret_cpus);

/* Returns for how many nanoseconds the thread `tid` of this process has waited for a CPU. */
uint64_t domi_machine_read_wait_of_thread(const char *root, int tid);

/* Returns how many descriptors of files this process has open. */
uint64_t domi_machine_count_open_files(const char *root);

#endif
