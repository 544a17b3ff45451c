/* This file reads what the kernel shows of the machine: quotas, throttling, stolen time, open files
 * (machine.h). */
#include "runtime/os/machine.h"

#include "runtime/os/cgroup.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CPU_STAT_BYTES 2048
/* most entries of the directory of descriptors that are counted */
#define FILES_COUNTED UINT64_C(1048576)

/* --- the cgroup ------------------------------------------------------------------------------- */

/* Returns the share of CPUs that a quota per period allows, in thousandths of a CPU; 0: no
 * quota. */
static uint64_t get_quota_in_thousandths_of_cpu(uint64_t quota, uint64_t period)
{
    if (quota == 0 || period == 0 || quota > UINT64_MAX / 1000)
        return 0;
    uint64_t share = quota * 1000 / period;
    return share != 0 ? share : 1;
}

static bool read_number_of_file(const char *directory, const char *name, uint64_t *ret_value)
{
    char text[32];
    const char *at = text;

    return domi_cgroup_read_file(directory, name, text, sizeof text) &&
           domi_cgroup_read_number(&at, '\n', ret_value);
}

static uint64_t read_quota_of_cgroup(const char *directory, int version)
{
    uint64_t quota, period;
    char text[64];
    const char *at = text;

    if (version != 2)
        return read_number_of_file(directory, "cpu.cfs_quota_us", &quota) &&
                       read_number_of_file(directory, "cpu.cfs_period_us", &period)
                   ? get_quota_in_thousandths_of_cpu(quota, period)
                   : 0;
    if (!domi_cgroup_read_file(directory, "cpu.max", text, sizeof text) ||
        !domi_cgroup_read_number(&at, ' ', &quota) || !domi_cgroup_read_number(&at, '\n', &period))
        return 0;
    return get_quota_in_thousandths_of_cpu(quota, period);
}

/* Returns the number behind `name` in the line "name number" of `text`; 0: there is no such
 * line. */
static uint64_t find_number_behind_name_in_lines(const char *text, const char *name)
{
    size_t length = strlen(name);
    uint64_t value = 0;

    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *at = line + length + 1;
        if (strncmp(line, name, length) == 0 && line[length] == ' ' &&
            domi_cgroup_read_number(&at, '\n', &value))
            return value;
    }
    return 0;
}

/* Read from a cgroup's cpu.stat how often and how long the kernel stopped the cgroup. Version 2
 * counts microseconds, and version 1 nanoseconds. */
static void read_throttling_of_cgroup(const char *directory, domi_cgroup_cpu *cpu)
{
    char text[CPU_STAT_BYTES];

    if (!domi_cgroup_read_file(directory, "cpu.stat", text, sizeof text))
        text[0] = '\0';
    uint64_t us = find_number_behind_name_in_lines(text, "throttled_usec");
    uint64_t ns = us < UINT64_MAX / 1000 ? us * 1000 : 0;
    cpu->throttled_ns = ns != 0 ? ns : find_number_behind_name_in_lines(text, "throttled_time");
    cpu->throttles = find_number_behind_name_in_lines(text, "nr_throttled");
    cpu->periods = find_number_behind_name_in_lines(text, "nr_periods");
}

/* If the quota of a cgroup is the smallest so far, store it with the cgroup's throttling,
 * because this cgroup is the one that stops the process. */
static void keep_cgroup_with_smallest_quota(const char *directory, int version, void *cpu_)
{
    domi_cgroup_cpu *cpu = cpu_;
    uint64_t quota = read_quota_of_cgroup(directory, version);

    if (quota == 0 || (cpu->quota != 0 && quota >= cpu->quota))
        return;
    cpu->quota = quota;
    read_throttling_of_cgroup(directory, cpu);
}

void domi_machine_read_cgroup(const char *root, domi_cgroup_cpu *ret_cpu)
{
    *ret_cpu = (domi_cgroup_cpu){0};
    domi_cgroup_visit_directories(&(domi_cgroup_walk){.root = root,
                                                      .controller = "cpu",
                                                      .visit = keep_cgroup_with_smallest_quota,
                                                      .context = ret_cpu});
}

/* --- /proc ------------------------------------------------------------------------------------ */

/* Read the number at index `place` of a line, whose first number has index 0. Returns false if
 * the line has fewer numbers. */
static bool read_number_at_index(const char *line, unsigned place, uint64_t *ret_number)
{
    static const char digits[] = "0123456789";
    const char *at = line + strcspn(line, digits);

    for (; place > 0; place--) {
        at += strspn(at, digits);
        at += strcspn(at, "0123456789\n");
    }
    if (strspn(at, digits) == 0)
        return false;
    *ret_number = strtoull(at, NULL, 10);
    return true;
}

/* Read how long all CPUs were idle and stolen, from the first line of /proc/stat, "cpu user nice
 * system idle iowait irq softirq steal ...", in ticks. */
void domi_machine_read_cpus(const char *root, domi_machine_cpus *ret_cpus)
{
    char directory[PATH_MAX], text[512];
    uint64_t idle, waiting, stolen;
    long ticks = sysconf(_SC_CLK_TCK);

    *ret_cpus = (domi_machine_cpus){0};
    snprintf(directory, sizeof directory, "%s/proc", root);
    if (ticks <= 0 || !domi_cgroup_read_file(directory, "stat", text, sizeof text) ||
        !read_number_at_index(text, 3, &idle) || !read_number_at_index(text, 4, &waiting) ||
        !read_number_at_index(text, 7, &stolen))
        return;
    uint64_t tick_ns = UINT64_C(1000000000) / (uint64_t)ticks;
    *ret_cpus = (domi_machine_cpus){stolen * tick_ns, (idle + waiting) * tick_ns};
}

/* Read how long a thread has waited for a CPU, from its schedstat, which is "running waiting
 * slices" in nanoseconds. */
uint64_t domi_machine_read_wait_of_thread(const char *root, int tid)
{
    char directory[PATH_MAX], text[96];
    uint64_t waiting;

    snprintf(directory, sizeof directory, "%s/proc/self/task/%d", root, tid);
    if (!domi_cgroup_read_file(directory, "schedstat", text, sizeof text) ||
        !read_number_at_index(text, 1, &waiting))
        return 0;
    return waiting;
}

/* Count the entries of the directory /proc/self/fd, except that of the descriptor by which it is
 * read, for older kernels, which do not show the number as the directory's size. */
static uint64_t count_entries_of_directory(const char *path)
{
    DIR *directory = opendir(path);
    uint64_t count = 0;

    if (directory == NULL)
        return 0;
    for (const struct dirent *one; count < FILES_COUNTED && (one = readdir(directory)) != NULL;)
        count += one->d_name[0] != '.';
    closedir(directory);
    return count > 0 ? count - 1 : 0;
}

uint64_t domi_machine_count_open_files(const char *root)
{
    char path[PATH_MAX];
    struct stat fds;

    snprintf(path, sizeof path, "%s/proc/self/fd", root);
    if (stat(path, &fds) == 0 && fds.st_size > 0 && root[0] == '\0')
        /* in Linux 6.2 and newer the size of /proc/self/fd is the number of descriptors */
        return (uint64_t)fds.st_size;
    return count_entries_of_directory(path);
}
