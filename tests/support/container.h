/* A process in a bare container, made by hand: namespaces of its own, a root of its own that can
 * only be read, a user without rights, limits, and calls that are refused. Linux lets any user make
 * it, unless the machine forbids user namespaces. */
#ifndef DOMT_CONTAINER_H
#define DOMT_CONTAINER_H

#include <stdbool.h>
#include <stdint.h>

#define DOMT_NOBODY 65534

typedef struct domt_container {
    /* true: the process has a new root with the programs and sources of this build and /usr. All of
     * it can only be read, but for /data, a file system in memory, if that is wanted. The process
     * has the number 1. */
    bool has_root;
    const char
        /* with a root: the only file of the sources there, as /echo.yaml; NULL: all sources */
        *only;
    bool has_proc;
    bool has_sys;
    bool has_bare_sys; /* whether the root has an empty folder /sys/fs/cgroup */
    bool has_data;
    uint64_t memlock; /* RLIMIT_MEMLOCK in bytes; 0: unchanged, 1: none at all */
    uint64_t nofile;  /* RLIMIT_NOFILE, soft and hard; 0: unchanged */
    /* system calls (SYS_ numbers) that fail with `denied_with`; the last one is -1 */
    const long *denied;
    int denied_with;
} domt_container;

/* Become a process in the container: with a root, as the user DOMT_NOBODY in a namespace of its
 * own. The caller then stays outside as the process that a test waits for: it passes SIGTERM on to
 * its child, and ends as the child ends. On failure a line is written to stderr, and the process
 * ends with 126. */
void domt_container_enter(const domt_container *container);

/* True if this machine lets a process make such namespaces. If not, one line on stderr says so. */
bool domt_container_may(void);

#endif
