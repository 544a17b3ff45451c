/* The cgroups of this process, in versions 1 and 2: their directories, and the numbers in their
 * files.
 *
 * If a file is missing, cannot be read or makes no sense, the functions report this to the caller,
 * who decides what it means. Thread-safety: any thread. */
#ifndef DOMI_RUNTIME_OS_CGROUP_H
#define DOMI_RUNTIME_OS_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct domi_cgroup_walk {
    const char *root;       /* directory that is put before `/proc` and `/sys`; "" in production */
    const char *controller; /* name of the cgroup controller in version 1: "cpu" or "memory" */
    /* Called for each directory that may be a cgroup of this process: first the process's own
     * cgroup, then the cgroups above, up to the mount point. Some of these directories do not
     * exist. */
    void (*visit)(const char *directory, int version, void *context);
    void *context; /* argument that the function `visit` gets */
} domi_cgroup_walk;

void domi_cgroup_visit_directories(const domi_cgroup_walk *walk);

/* Read as much of the file `name` in a cgroup's directory as fits into `ret_text`, and end the
 * text with a NUL. Returns false if the file cannot be read or is empty. */
bool domi_cgroup_read_file(const char *directory, const char *name, char *ret_text, size_t size);

/* Read the whole number that `*text` begins with, and that the character `after` must follow, and
 * move `*text` behind both. Returns false if there is no such number. */
bool domi_cgroup_read_number(const char **text, char after, uint64_t *ret_value);

#endif
