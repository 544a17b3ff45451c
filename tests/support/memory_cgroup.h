/* A memory cgroup for a test. It is made where this machine has its cgroups, v1 or v2, if
 * that is allowed. */
#ifndef DOMT_MEMORY_CGROUP_H
#define DOMT_MEMORY_CGROUP_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct domt_memory_cgroup {
    char path[PATH_MAX / 2];
    int version;
    char why[256]; /* there is none */
} domt_memory_cgroup;

static inline bool domt_memory_cgroup_write(const domt_memory_cgroup *cgroup, const char *name,
                                            const char *text)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", cgroup->path, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return written;
}

/* The number behind `key` in a file, or the first number if the key is ""; 0 if there is none. */
static inline uint64_t domt_memory_cgroup_read(const domt_memory_cgroup *cgroup, const char *name,
                                               const char *key)
{
    char path[PATH_MAX], line[256];
    uint64_t value = 0;

    snprintf(path, sizeof path, "%s/%s", cgroup->path, name);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            value = strtoull(line + strlen(key), NULL, 10);
            break;
        }
    }
    if (file != NULL)
        fclose(file);
    return value;
}

static inline bool domt_memory_cgroup_try(domt_memory_cgroup *cgroup, int version,
                                          const char *mount, uint64_t limit)
{
    const char *name = version == 1 ? "memory.limit_in_bytes" : "memory.max";
    char text[32];

    cgroup->version = version;
    snprintf(cgroup->path, sizeof cgroup->path, "%s/domt-memory-%ld", mount, (long)getpid());
    if (version == 2) { /* lets the children have the controller; harmless if they have it */
        domt_memory_cgroup above = *cgroup;
        snprintf(above.path, sizeof above.path, "%s", mount);
        (void)domt_memory_cgroup_write(&above, "cgroup.subtree_control", "+memory");
    }
    if (mkdir(cgroup->path, 0755) != 0) {
        snprintf(cgroup->why, sizeof cgroup->why, "%.100s: %s", cgroup->path, strerror(errno));
        return false;
    }
    snprintf(text, sizeof text, "%llu", (unsigned long long)limit);
    if (domt_memory_cgroup_write(cgroup, name, text))
        return true;
    snprintf(cgroup->why, sizeof cgroup->why, "%.100s has no %s that can be written", mount, name);
    rmdir(cgroup->path);
    return false;
}

/* Make a cgroup. Returns false if none can be made; then `why` says why. */
static inline bool domt_memory_cgroup_make(domt_memory_cgroup *cgroup, uint64_t limit)
{
    return domt_memory_cgroup_try(cgroup, 1, "/sys/fs/cgroup/memory", limit) ||
           domt_memory_cgroup_try(cgroup, 2, "/sys/fs/cgroup", limit) ||
           domt_memory_cgroup_try(cgroup, 2, "/sys/fs/cgroup/unified", limit);
}

/* Move the calling process into the cgroup. */
static inline bool domt_memory_cgroup_enter(const domt_memory_cgroup *cgroup)
{
    char text[32];

    snprintf(text, sizeof text, "%ld", (long)getpid());
    return domt_memory_cgroup_write(cgroup, "cgroup.procs", text);
}

static inline uint64_t domt_memory_cgroup_used(const domt_memory_cgroup *cgroup)
{
    return domt_memory_cgroup_read(
        cgroup, cgroup->version == 1 ? "memory.usage_in_bytes" : "memory.current", "");
}

/* How many processes of the cgroup were killed for lack of memory. */
static inline uint64_t domt_memory_cgroup_kills(const domt_memory_cgroup *cgroup)
{
    return domt_memory_cgroup_read(
        cgroup, cgroup->version == 1 ? "memory.oom_control" : "memory.events", "oom_kill ");
}

static inline void domt_memory_cgroup_remove(const domt_memory_cgroup *cgroup)
{
    /* The processes of the cgroup have been waited for; the kernel may need a moment
     * all the same. */
    for (int i = 0; i < 1000 && rmdir(cgroup->path) != 0 && errno == EBUSY; i++)
        usleep(1000);
}

#endif
