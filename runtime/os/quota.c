/* This file reads the CPU quota of each cgroup from the process's own cgroup up to the root
 * (runtime/os/cgroup.h visits them), and keeps the smallest quota. */
#include "runtime/os/quota.h"

#include "runtime/os/cgroup.h"

/* Most bytes that are read of a file with a CPU quota, which has at most two numbers of 20
 * digits. */
#define QUOTA_FILE_BYTES 64

/* Returns `quota` divided by `period`, which is a number of CPUs, rounded up; 0 (no quota) if
 * one of the two is 0. */
static uint32_t round_up_to_cpus(uint64_t quota, uint64_t period)
{
    if (quota == 0 || period == 0)
        return 0;

    uint64_t cpus = quota / period + (quota % period != 0);
    return cpus > UINT32_MAX ? UINT32_MAX : (uint32_t)cpus;
}

/* Read the CPU quota of a cgroup of version 2. Its file holds quota and period: "50000 100000",
 * or "max 100000" if there is no quota. */
static uint32_t read_quota_of_cgroup_v2(const char *directory)
{
    char text[QUOTA_FILE_BYTES];
    const char *at = text;
    uint64_t quota, period;

    if (!domi_cgroup_read_file(directory, "cpu.max", text, sizeof text) ||
        !domi_cgroup_read_number(&at, ' ', &quota) || !domi_cgroup_read_number(&at, '\n', &period))
        return 0;
    return round_up_to_cpus(quota, period);
}

static bool read_number_from_file(const char *directory, const char *name, uint64_t *ret_value)
{
    char text[QUOTA_FILE_BYTES];
    const char *at = text;

    return domi_cgroup_read_file(directory, name, text, sizeof text) &&
           domi_cgroup_read_number(&at, '\n', ret_value);
}

/* Read the CPU quota of a cgroup of version 1. Quota and period have a file each; a quota of -1
 * means that there is none. */
static uint32_t read_quota_of_cgroup_v1(const char *directory)
{
    uint64_t quota, period;

    if (!read_number_from_file(directory, "cpu.cfs_quota_us", &quota) ||
        !read_number_from_file(directory, "cpu.cfs_period_us", &period))
        return 0;
    return round_up_to_cpus(quota, period);
}

/* Keep the smallest CPU quota of the cgroups' directories that were visited so far. */
static void keep_smallest_quota(const char *directory, int version, void *quota_)
{
    uint32_t *quota = quota_;
    uint32_t found =
        version == 2 ? read_quota_of_cgroup_v2(directory) : read_quota_of_cgroup_v1(directory);

    if (found != 0 && (*quota == 0 || found < *quota))
        *quota = found;
}

uint32_t domi_quota_read_as_cpus(const char *root)
{
    uint32_t quota = 0;

    domi_cgroup_visit_directories(&(domi_cgroup_walk){
        .root = root, .controller = "cpu", .visit = keep_smallest_quota, .context = &quota});
    return quota;
}
