/* A test becomes a process in a bare container, which is made by hand: namespaces of its own, a
 * root directory that can only be read, a user without rights, limits, and system calls that are
 * refused. Linux lets any user make such a container, unless the machine forbids namespaces of
 * users. */
#ifndef DOMT_CONTAINER_H
#define DOMT_CONTAINER_H

#include <stdbool.h>
#include <stdint.h>

#define DOMT_NOBODY 65534

typedef struct domt_container {
    /* true: the process gets a new root directory with /usr and the programs and sources of this
     * build. The process can only read there, except in /data (a file system in memory, with
     * `has_data`). The process has the number 1. */
    bool has_root;
    const char
        /* with a root: the only file that is copied there, as /echo.yaml; NULL: all sources and
         * /usr */
        *only;
    bool has_proc;
    bool has_sys;
    bool has_bare_sys; /* the new root has an empty folder /sys/fs/cgroup */
    bool has_data;
    uint64_t memlock; /* limit RLIMIT_MEMLOCK in bytes; 0: unchanged, 1: no byte at all */
    uint64_t nofile;  /* limit RLIMIT_NOFILE, soft and hard; 0: unchanged */
    /* system calls (SYS_ numbers) that fail with the errno `denied_with`; -1 ends the list */
    const long *denied;
    int denied_with;
} domt_container;

/* Make the calling process a process in the container. With `has_root` a child enters the container
 * as the user DOMT_NOBODY, and only the child returns from this call; the calling process stays
 * outside, passes SIGTERM on to the child, and ends with the child's status. On failure the process
 * writes a line to stderr and ends with 126. */
void domt_container_enter(const domt_container *container);

/* Returns whether this machine lets a process make the namespaces of a container. If not, a line on
 * stderr says that the test is left out. */
bool domt_container_is_allowed(void);

#endif
