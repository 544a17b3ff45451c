/* This file finds the cgroups of this process. The file /proc/self/cgroup names them, and their
 * directories are under /sys/fs/cgroup.
 *
 * Version 2 is mounted at /sys/fs/cgroup itself, or in the hybrid form at `unified` beside
 * controllers of version 1. A controller of version 1 is mounted under its own name, or under the
 * names of all controllers that share its mount ("cpu,cpuacct"). Each of these directories is
 * tried, and the wrong ones do not exist. */
#include "runtime/os/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Most bytes that are read of /proc/self/cgroup, which has a line for each controller. */
#define CGROUP_FILE_BYTES 16384

/* Read as much of a file as fits into `ret_text`, and end the text with a NUL. Returns false if
 * the file cannot be read or is empty. */
static bool read_file_as_text(const char *path, char *ret_text, size_t size)
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

bool domi_cgroup_read_file(const char *directory, const char *name, char *ret_text, size_t size)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", directory, name);

    return length > 0 && (size_t)length < sizeof path && read_file_as_text(path, ret_text, size);
}

bool domi_cgroup_read_number(const char **text, char after, uint64_t *ret_value)
{
    char *end;

    if (**text < '0' || **text > '9')
        /* the first character must be a digit, because strtoull would accept blanks and signs in
         * front of the number */
        return false;
    errno = 0;
    *ret_value = strtoull(*text, &end, 10);
    if (errno != 0 || *end != after)
        return false;
    *text = end + 1;
    return true;
}

/* Call `visit` for the cgroup's directory `path` below the mount point, and for each directory
 * above it up to the mount point. Inside a container `path` may be a path of the host; then only
 * the mount point itself exists. */
static void visit_cgroup_directories_upwards(const domi_cgroup_walk *walk, int version,
                                             const char *mount, const char *path)
{
    char directory[PATH_MAX];
    int formatted = snprintf(directory, sizeof directory, "%s/sys/fs/cgroup%s", walk->root, mount);

    if (formatted < 0 || (size_t)formatted >= sizeof directory)
        return;

    /* A path with ".." is that of a cgroup outside of this process's cgroup namespace. It does
     * not exist below the mount point, so only the mount point is visited. */
    size_t base = (size_t)formatted;
    size_t length = base;
    if (path[0] == '/' && strstr(path, "/..") == NULL && base + strlen(path) < sizeof directory) {
        memcpy(directory + base, path, strlen(path) + 1);
        length += strlen(path);
    }

    for (;;) {
        walk->visit(directory, version, walk->context);
        if (length == base)
            return;
        do
            length--;
        /* the loop ends at the latest at the '/' that follows the mount point */
        while (directory[length] != '/');
        directory[length] = '\0';
    }
}

static bool is_cgroup_controller_in_list(const char *controllers, const char *controller)
{
    const char *at = controllers;

    for (;;) {
        size_t length = strcspn(at, ",");
        if (length == strlen(controller) && memcmp(at, controller, length) == 0)
            return true;
        if (at[length] == '\0')
            return false;
        at += length + 1;
    }
}

/* Visit the directories that a line of /proc/self/cgroup may mean. A line is
 * "number:controllers:path"; the line of version 2 names no controllers. */
static void visit_directories_of_line(const domi_cgroup_walk *walk, char *line)
{
    char *controllers = strchr(line, ':');
    char *path = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    char mount[128];

    if (path == NULL)
        return;
    *controllers++ = '\0';
    *path++ = '\0';

    if (controllers[0] == '\0') {
        visit_cgroup_directories_upwards(walk, 2, "", path);
        visit_cgroup_directories_upwards(walk, 2, "/unified", path);
    } else if (is_cgroup_controller_in_list(controllers, walk->controller)) {
        int length = snprintf(mount, sizeof mount, "/%s", walk->controller);
        if (length > 0 && (size_t)length < sizeof mount)
            visit_cgroup_directories_upwards(walk, 1, mount, path);
        length = snprintf(mount, sizeof mount, "/%s", controllers);
        if (strcmp(controllers, walk->controller) != 0 && length > 0 &&
            (size_t)length < sizeof mount)
            visit_cgroup_directories_upwards(walk, 1, mount, path);
    }
}

void domi_cgroup_visit_directories(const domi_cgroup_walk *walk)
{
    char path[PATH_MAX];
    char text[CGROUP_FILE_BYTES];
    int length = snprintf(path, sizeof path, "%s/proc/self/cgroup", walk->root);

    if (length < 0 || (size_t)length >= sizeof path)
        return;
    /* If /proc is missing, the mounted cgroup is taken for that of this process, as it is in most
     * containers. */
    if (!read_file_as_text(path, text, sizeof text))
        snprintf(text, sizeof text, "0::/\n1:%s:/\n", walk->controller);

    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        visit_directories_of_line(walk, line);
}
