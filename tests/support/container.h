/* A process in a bare container, made by hand: namespaces of its own, a root of its own that can
 * only be read, a user without rights, limits, and calls that are refused. Linux lets any user make
 * it, unless the machine forbids user namespaces. */
#ifndef DOMT_CONTAINER_H
#define DOMT_CONTAINER_H

#include <stdbool.h>
#include <stdint.h>

#define DOMT_NOBODY 65534

typedef struct domt_container {
    /* true: a new root with the programs and sources of this build, /usr, and what follows. It can
     * only be read, but for /data, a file system in memory, if that is wanted. The process has the
     * number 1 in it. */
    bool has_root;
    const char
        *only; /* with a root: it has this file of the sources alone, as /echo.yaml; may be NULL */
    bool has_proc;
    bool has_sys;
    bool has_bare_sys; /* a folder /sys/fs/cgroup in which nothing is */
    bool has_data;
    uint64_t memlock;   /* RLIMIT_MEMLOCK in bytes; 0: as it is, 1: none at all */
    uint64_t nofile;    /* RLIMIT_NOFILE, soft and hard; 0: as it is */
    const long *denied; /* system calls (SYS_ numbers) that fail with `denied_with`, up to a -1 */
    int denied_with;
} domt_container;

/* Become a process in the container, as the user DOMT_NOBODY in a namespace of its own if it has a
 * root. With a root the caller stays outside as the one that is waited for: it passes SIGTERM on,
 * and ends as its child does. On failure a line is written to stderr, and the process ends with
 * 126. */
void domt_container_enter(const domt_container *container);

/* True if this machine lets a process make such namespaces. If not, one line on stderr says so. */
bool domt_container_may(void);

#endif
