/* Files of the kernel that tell of the machine: quotas, throttling, stolen time, open files.
 *
 * A file that is missing, cannot be read or makes no sense leaves 0 behind. Thread-safety: any
 * thread. */
#ifndef DOMI_RUNTIME_OS_MACHINE_H
#define DOMI_RUNTIME_OS_MACHINE_H

#include <stdint.h>

/* The share of the CPUs that the cgroup of the process has. */
typedef struct domi_cgroup_cpu {
    uint64_t quota;        /* CPUs in thousandths, the least on the way to the root; 0: no quota */
    uint64_t throttled_ns; /* time for which the cgroup was stopped, over all CPUs */
    uint64_t throttles;    /* the number of periods in which the cgroup was stopped */
    uint64_t periods;      /* the number of periods in which the cgroup wanted a CPU */
} domi_cgroup_cpu;

/* `root` goes before `/proc` and `/sys` in these; it is "" in production. */
void domi_machine_read_cgroup(const char *root, domi_cgroup_cpu *ret_cpu);

/* The time of all CPUs since the machine runs. */
typedef struct domi_machine_cpus {
    uint64_t stolen_ns; /* a hypervisor gave it to others */
    uint64_t idle_ns;   /* nobody used it */
} domi_machine_cpus;

void domi_machine_read_cpus(const char *root, domi_machine_cpus *ret_cpus);

/* Returns how long the task `tid` of this process has waited for a CPU. */
uint64_t domi_machine_waiting_ns(const char *root, int tid);

/* Returns how many descriptors are open. */
uint64_t domi_machine_files_open(const char *root);

#endif
