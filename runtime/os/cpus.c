/* This file chooses how many threads there are and where they are pinned, from the affinity mask,
 * the CPU quota and the configuration.
 *
 * It first chooses the CPUs to pin to (the usable ones, those of the list, or none), then reads how
 * many of them may be busy at once (the quota), then chooses the number of threads. A configuration
 * that cannot be met is an error; one that is only unwise gives a warning. */
#include "runtime/os/cpus.h"

#include "runtime/os/quota.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One more than the largest id that a CPU may have; no configuration of Linux has more CPUs. An id
 * fits into 16 bits. */
#define CPU_IDS_MAX 8192

struct cpu_mask {
    /* a bit for each id that a CPU may have */
    cpu_set_t sets[CPU_IDS_MAX / CPU_SETSIZE];
};

static bool is_cpu_in_mask(const struct cpu_mask *mask, unsigned cpu)
{
    return CPU_ISSET_S(cpu, sizeof mask->sets, mask->sets);
}

/* Read the number of a CPU at `*list`, and move `*list` behind it. Returns false if there is
 * none. */
static bool read_cpu_number(const char **list, unsigned *ret_cpu)
{
    char *end;

    if (**list < '0' || **list > '9')
        /* the first character must be a digit, because strtoul would accept blanks and signs in
         * front of the number */
        return false;

    /* strtoul returns ULONG_MAX for a number that is too great, so such a number is refused as
     * too great an id */
    unsigned long cpu = strtoul(*list, &end, 10);
    if (cpu >= CPU_IDS_MAX)
        return false;
    *list = end;
    *ret_cpu = (unsigned)cpu;
    return true;
}

/* Read the next "a" or "a-b" of a list of CPUs, and the comma behind it. Returns false if that
 * is malformed, or if nothing follows the comma. */
static bool read_cpu_range(const char **list, unsigned *ret_first, unsigned *ret_last)
{
    if (!read_cpu_number(list, ret_first))
        return false;
    *ret_last = *ret_first;
    if (**list == '-') {
        (*list)++;
        if (!read_cpu_number(list, ret_last) || *ret_last < *ret_first)
            return false;
    }
    if (**list == '\0')
        return true;
    if (**list != ',')
        return false;
    (*list)++;
    return **list != '\0';
}

/* Count the CPUs of a list, and write their ids to `ret_cpu` unless it is NULL. Returns the
 * number; -EINVAL if the list is malformed or names more than `cpu_max` CPUs. */
static int count_or_read_cpus_of_list(const char *list, uint16_t *ret_cpu, size_t cpu_max)
{
    struct cpu_mask seen = {0};
    size_t count = 0;

    do {
        unsigned first, last;

        if (!read_cpu_range(&list, &first, &last))
            return -EINVAL;
        for (unsigned cpu = first; cpu <= last; cpu++) {
            if (is_cpu_in_mask(&seen, cpu))
                continue;
            if (count == cpu_max)
                return -EINVAL;
            CPU_SET_S(cpu, sizeof seen.sets, seen.sets);
            if (ret_cpu != NULL)
                ret_cpu[count] = (uint16_t)cpu;
            count++;
        }
    } while (*list != '\0');
    return (int)count;
}

/* Read which CPUs this process may use (its affinity mask). Returns 0; -EPERM, -EACCES or
 * -ENOSYS if a system call filter refuses the call. */
static int read_affinity_mask(struct cpu_mask *ret_mask)
{
    return sched_getaffinity(0, sizeof ret_mask->sets, ret_mask->sets) < 0 ? -errno : 0;
}

/* Choose CPUs although the kernel does not tell the affinity mask, with the errno `failure`.
 * Threads are then not pinned, and all CPUs of the machine count as usable. A configured list of
 * CPUs cannot be checked, so with one this returns `failure`; else 0. */
static int choose_cpus_without_affinity(domi_cpus *cpus, bool is_list, int failure, char *error,
                                        size_t error_size)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);

    if (is_list) {
        snprintf(error, error_size,
                 "system.cpus: the usable CPUs are not known (sched_getaffinity: %s): allow the "
                 "call, or set it to none",
                 strerror(-failure));
        return failure;
    }
    cpus->count = online < 1 ? 1 : online < DOMI_CPUS_MAX ? (uint32_t)online : DOMI_CPUS_MAX;
    cpus->is_unpinned = true;
    snprintf(cpus->warning, sizeof cpus->warning,
             "threads are not pinned, and CPUs are taken to be %u: sched_getaffinity is refused "
             "(%s): allow it, or set system.cpus to none and system.threads to a count",
             cpus->count, strerror(-failure));
    return 0;
}

/* Append the ids of all usable CPUs to the CPUs to which threads are pinned. */
static void append_usable_cpus(domi_cpus *cpus, const struct cpu_mask *usable)
{
    for (unsigned cpu = 0; cpu < CPU_IDS_MAX && cpus->count < DOMI_CPUS_MAX; cpu++)
        if (is_cpu_in_mask(usable, cpu))
            cpus->cpu[cpus->count++] = (uint16_t)cpu;
}

static int read_configured_cpus(domi_cpus *cpus, const struct cpu_mask *usable, const char *list,
                                char *error, size_t error_size)
{
    int count = domi_cpus_parse_list(list, cpus->cpu, DOMI_CPUS_MAX);

    if (count < 0) {
        snprintf(error, error_size,
                 "system.cpus: \"%.100s\" is neither auto, none nor a list of up to %d CPUs such "
                 "as 0-3,8",
                 list, DOMI_CPUS_MAX);
        return -EINVAL;
    }
    for (int i = 0; i < count; i++) {
        if (is_cpu_in_mask(usable, cpus->cpu[i]))
            continue;
        snprintf(error, error_size,
                 "system.cpus: CPU %d is not usable by this process (affinity mask or cpuset)",
                 cpus->cpu[i]);
        return -EINVAL;
    }
    cpus->count = (uint32_t)count;
    return 0;
}

/* Number of CPUs of a machine from which on a spinning thread does not hinder the kernel and
 * other threads. */
#define FEW_CPUS 8u

/* Append to a warning that exists already that there are more threads than the quota allows; the
 * two share the only line for warnings. */
static void append_warning_of_quota(domi_cpus *cpus)
{
    size_t said = strlen(cpus->warning);

    if (cpus->quota != 0 && cpus->threads > cpus->quota)
        snprintf(cpus->warning + said, sizeof cpus->warning - said,
                 "; system.threads is %u, but the CPU quota of the cgroup is %u", cpus->threads,
                 cpus->quota);
}

/* Choose how many threads there are. `places` is the number of CPUs to which threads may be
 * pinned, by the configured list or by the affinity mask. */
static void choose_number_of_threads(domi_cpus *cpus, const domus_config *config, uint32_t places)
{
    uint32_t automatic = cpus->quota != 0 && cpus->quota < places ? cpus->quota : places;

    if (config->system.threads_percent != 0) {
        uint64_t percent = (uint64_t)automatic * config->system.threads_percent;
        cpus->threads = (uint32_t)((percent + 50) / 100);
        if (cpus->threads == 0)
            cpus->threads = 1;
    } else {
        cpus->threads = config->system.threads != 0 ? config->system.threads : automatic;
    }

    cpus->few = automatic < FEW_CPUS || cpus->threads > automatic;
    if (cpus->warning[0] != '\0')
        append_warning_of_quota(cpus);
    else if (cpus->threads > places)
        snprintf(cpus->warning, sizeof cpus->warning,
                 "system.threads is %u, but CPUs to run on are %u: more threads than CPUs cost "
                 "speed",
                 cpus->threads, places);
    else if (cpus->threads > automatic)
        snprintf(cpus->warning, sizeof cpus->warning,
                 "system.threads is %u, but the CPU quota of the cgroup is %u: the kernel stops "
                 "all threads when it is used up",
                 cpus->threads, cpus->quota);
}

int domi_cpus_choose_for_threads(const domus_config *config, const char *root, domi_cpus *ret_cpus,
                                 char *error, size_t error_size)
{
    const char *list = config->system.cpus;
    domi_cpus cpus = {0};
    struct cpu_mask usable = {0};
    bool is_list = strcmp(list, "auto") != 0 && strcmp(list, "none") != 0;
    int failure = read_affinity_mask(&usable);

    if (failure != 0)
        failure = choose_cpus_without_affinity(&cpus, is_list, failure, error, error_size);
    else if (!is_list)
        append_usable_cpus(&cpus, &usable);
    else
        failure = read_configured_cpus(&cpus, &usable, list, error, error_size);
    if (failure != 0)
        return failure;

    cpus.quota = domi_quota_read_as_cpus(root);
    choose_number_of_threads(&cpus, config, cpus.count);
    if (cpus.is_unpinned || strcmp(list, "none") == 0)
        cpus.count = 0;
    *ret_cpus = cpus;
    return 0;
}

int domi_cpus_parse_list(const char *list, uint16_t *ret_cpu, size_t cpu_max)
{
    int count = count_or_read_cpus_of_list(list, NULL, cpu_max);

    return count < 0 ? count : count_or_read_cpus_of_list(list, ret_cpu, cpu_max);
}
