/* The CPU quota of this process's cgroup, v1 or v2, in whole CPUs.
 *
 * Files that are missing, cannot be read or make no sense count as "no quota": a guess too high
 * costs speed, a refusal to start costs the service. Thread-safety: any thread. */
#ifndef DOMI_RUNTIME_OS_QUOTA_H
#define DOMI_RUNTIME_OS_QUOTA_H

#include <stdint.h>

/* Returns the smallest CPU quota of all cgroups from the process's own up to the root, rounded
 * up to whole CPUs; 0: no quota. `root` is put before `/proc` and `/sys`; it is "" in
 * production. */
uint32_t domi_quota_read_as_cpus(const char *root);

#endif
