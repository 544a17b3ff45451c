/* Finding the quota: /proc/self/cgroup names the cgroups, the files stand under /sys/fs/cgroup.
 *
 * v2 is mounted there itself, or at `unified` beside v1 controllers (the hybrid form); the v1
 * controller at `cpu`, or under the name of all that share its mount ("cpu,cpuacct"). All are
 * tried: the wrong ones do not exist. */
#include "runtime/quota.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A line per controller, each with a path. */
#define CGROUP_FILE_BYTES 16384

/* Two numbers of at most 20 digits. */
#define QUOTA_FILE_BYTES 64

typedef uint32_t quota_reader(const char *directory);

/* Read what fits of a file, NUL-terminated; false when there is nothing to read. */
static bool read_text(const char *path, char *ret_text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t length = 0;

    if (fd < 0)
        return false;
    while (length < size - 1) {
        ssize_t got = read(fd, ret_text + length, size - 1 - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    close(fd);
    ret_text[length] = '\0';
    return length > 0;
}

static bool read_in(const char *directory, const char *name, char *ret_text, size_t size)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", directory, name);

    return length > 0 && (size_t)length < sizeof path && read_text(path, ret_text, size);
}

/* The whole number at `*text`, which must stand before `after`; `*text` is moved behind both. */
static bool take_number(const char **text, char after, uint64_t *ret_value)
{
    char *end;

    if (**text < '0' || **text > '9')
        return false; /* strtoull would take blanks and signs */
    errno = 0;
    *ret_value = strtoull(*text, &end, 10);
    if (errno != 0 || *end != after)
        return false;
    *text = end + 1;
    return true;
}

/* quota/period rounded up, in CPUs; 0 (no quota) when it makes no sense. */
static uint32_t whole_cpus(uint64_t quota, uint64_t period)
{
    if (quota == 0 || period == 0)
        return 0;

    uint64_t cpus = quota / period + (quota % period != 0);
    return cpus > UINT32_MAX ? UINT32_MAX : (uint32_t)cpus;
}

/* v2: "50000 100000", or "max 100000". */
static uint32_t read_quota_v2(const char *directory)
{
    char text[QUOTA_FILE_BYTES];
    const char *at = text;
    uint64_t quota, period;

    if (!read_in(directory, "cpu.max", text, sizeof text) || !take_number(&at, ' ', &quota) ||
        !take_number(&at, '\n', &period))
        return 0;
    return whole_cpus(quota, period);
}

static bool read_number_in(const char *directory, const char *name, uint64_t *ret_value)
{
    char text[QUOTA_FILE_BYTES];
    const char *at = text;

    return read_in(directory, name, text, sizeof text) && take_number(&at, '\n', ret_value);
}

/* v1: the same in two files; without a quota it is -1. */
static uint32_t read_quota_v1(const char *directory)
{
    uint64_t quota, period;

    if (!read_number_in(directory, "cpu.cfs_quota_us", &quota) ||
        !read_number_in(directory, "cpu.cfs_period_us", &period))
        return 0;
    return whole_cpus(quota, period);
}

static void keep_smaller(uint32_t *quota, uint32_t found)
{
    if (found != 0 && (*quota == 0 || found < *quota))
        *quota = found;
}

/* Look into `path` below the mount point and into every directory on the way up to it. Inside a
 * container the path may be one of the host's: then only the mount point itself exists. */
static void walk_up(const char *root, const char *mount, const char *path, quota_reader *read_quota,
                    uint32_t *quota)
{
    char directory[PATH_MAX];
    int formatted = snprintf(directory, sizeof directory, "%s/sys/fs/cgroup%s", root, mount);

    if (formatted < 0 || (size_t)formatted >= sizeof directory)
        return;

    /* A path with ".." is that of a cgroup outside our namespace; it leads nowhere below here. */
    size_t base = (size_t)formatted;
    size_t length = base;
    if (path[0] == '/' && strstr(path, "/..") == NULL && base + strlen(path) < sizeof directory) {
        memcpy(directory + base, path, strlen(path) + 1);
        length += strlen(path);
    }

    for (;;) {
        keep_smaller(quota, read_quota(directory));
        if (length == base)
            return;
        do
            length--;
        while (directory[length] != '/'); /* there is one at `base` */
        directory[length] = '\0';
    }
}

static bool names_cpu(const char *controllers)
{
    const char *at = controllers;

    for (;;) {
        size_t length = strcspn(at, ",");
        if (length == 3 && memcmp(at, "cpu", 3) == 0)
            return true;
        if (at[length] == '\0')
            return false;
        at += length + 1;
    }
}

/* One line of /proc/self/cgroup: "number:controllers:path"; v2 has no controllers. */
static void look_at_line(const char *root, char *line, uint32_t *quota)
{
    char *controllers = strchr(line, ':');
    char *path = controllers == NULL ? NULL : strchr(controllers + 1, ':');

    if (path == NULL)
        return;
    *controllers++ = '\0';
    *path++ = '\0';

    if (controllers[0] == '\0') {
        walk_up(root, "", path, read_quota_v2, quota);
        walk_up(root, "/unified", path, read_quota_v2, quota);
    } else if (names_cpu(controllers)) {
        char mount[128];
        int length = snprintf(mount, sizeof mount, "/%s", controllers);

        walk_up(root, "/cpu", path, read_quota_v1, quota);
        if (length > 0 && (size_t)length < sizeof mount)
            walk_up(root, mount, path, read_quota_v1, quota);
    }
}

uint32_t domi_quota_cpus(const char *root)
{
    char path[PATH_MAX];
    char text[CGROUP_FILE_BYTES];
    uint32_t quota = 0;
    int length = snprintf(path, sizeof path, "%s/proc/self/cgroup", root);

    if (length < 0 || (size_t)length >= sizeof path || !read_text(path, text, sizeof text))
        return 0;

    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        look_at_line(root, line, &quota);
    return quota;
}
