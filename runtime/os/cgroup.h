/* The cgroups of this process, v1 and v2: their directories, and the numbers in their files.
 *
 * Files that are missing, cannot be read or make no sense are told as such; what that means is the
 * caller's. Thread-safety: any thread. */
#ifndef DOMI_RUNTIME_OS_CGROUP_H
#define DOMI_RUNTIME_OS_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct domi_cgroup_walk {
    const char *root;       /* stands before `/proc` and `/sys`: "" in production */
    const char *controller; /* the v1 name: "cpu", "memory" */
    /* A directory that may be of a cgroup that this process is in: first its own, then those above
     * it, up to the mount point. Some do not exist. */
    void (*visit)(const char *directory, int version, void *context);
    void *context;
} domi_cgroup_walk;

void domi_cgroup_visit(const domi_cgroup_walk *walk);

/* What fits of a file in `directory`, NUL-terminated; false when there is nothing to read. */
bool domi_cgroup_read(const char *directory, const char *name, char *ret_text, size_t size);

/* The whole number at `*text`, which must stand before `after`; `*text` is moved behind both. */
bool domi_cgroup_number(const char **text, char after, uint64_t *ret_value);

#endif
