/* This file reads the limits of threads and computes how many threads they allow
 * (thread_limits.h). */
#include "bench/support/thread_limits.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define SHARE_LEFT 8 /* one part in so many of each limit is left to other programs */
/* memory mappings of a process, without those of its further threads */
#define MAPS_OF_PROGRAM 512
#define MAPS_OF_THREAD  2

/* Read the number with which a file begins. If there is no such file, or if it says "max", there is
 * no limit. */
static uint64_t read_number_of_file(const char *path)
{
    FILE *file = fopen(path, "re");
    uint64_t number;

    if (file == NULL)
        return THREAD_LIMIT_NONE;
    if (fscanf(file, "%" SCNu64, &number) != 1)
        number = THREAD_LIMIT_NONE;
    fclose(file);
    return number;
}

static uint64_t get_smaller_limit(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

/* Read pids.max of the control group (of version 1 or 2) that `line` of /proc/self/cgroup names. */
static uint64_t read_limit_of_group(char *line)
{
    char path[PATH_MAX];
    char *controllers = strchr(line, ':');
    char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');

    if (group == NULL)
        return THREAD_LIMIT_NONE;
    *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    bool is_second = controllers[1] == '\0';
    if (!is_second && strcmp(controllers + 1, "pids") != 0)
        return THREAD_LIMIT_NONE;
    snprintf(path, sizeof path, "/sys/fs/cgroup/%s%s/pids.max", is_second ? "" : "pids", group);
    return read_number_of_file(path);
}

static uint64_t read_limit_of_all_groups(void)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    char line[PATH_MAX];
    uint64_t limit = THREAD_LIMIT_NONE;

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        limit = get_smaller_limit(limit, read_limit_of_group(line));
    if (file != NULL)
        fclose(file);
    return limit;
}

/* Read how many threads the machine has now: the number behind the slash of /proc/loadavg. */
static uint64_t read_number_of_threads(void)
{
    FILE *file = fopen("/proc/loadavg", "re");
    uint64_t used = 0;

    if (file != NULL && fscanf(file, "%*f %*f %*f %*u/%" SCNu64, &used) != 1)
        used = 0;
    if (file != NULL)
        fclose(file);
    return used;
}

void thread_limits_read(struct thread_limits *ret_limits)
{
    struct rlimit user = {RLIM_INFINITY, RLIM_INFINITY};

    (void)getrlimit(RLIMIT_NPROC, &user);
    *ret_limits = (struct thread_limits){
        .user = user.rlim_cur == RLIM_INFINITY ? THREAD_LIMIT_NONE : user.rlim_cur,
        .system = get_smaller_limit(read_number_of_file("/proc/sys/kernel/threads-max"),
                                    read_number_of_file("/proc/sys/kernel/pid_max")),
        .group = read_limit_of_all_groups(),
        .maps = read_number_of_file("/proc/sys/vm/max_map_count"),
        .used = read_number_of_threads(),
    };
}

static uint64_t count_threads_left_below_limit(uint64_t limit, uint64_t used)
{
    uint64_t ours = limit - limit / SHARE_LEFT;

    return ours > used ? ours - used : 0;
}

uint64_t thread_limits_count_startable_threads(const struct thread_limits *limits, uint64_t most)
{
    const uint64_t threads[] = {limits->user, limits->system, limits->group};

    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        if (threads[i] != THREAD_LIMIT_NONE)
            most =
                get_smaller_limit(most, count_threads_left_below_limit(threads[i], limits->used));
    }
    if (limits->maps == THREAD_LIMIT_NONE)
        return most;
    uint64_t maps = limits->maps > MAPS_OF_PROGRAM ? limits->maps - MAPS_OF_PROGRAM : 0;
    return get_smaller_limit(most, maps / MAPS_OF_THREAD);
}
