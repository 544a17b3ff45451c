/* A footprint says how much memory is used, and how much may be. It has several gauges, and the
 * fullest of them counts.
 *
 * There is a gauge for each limit of the memory cgroups that this process is in (v1, v2; v2's
 * memory.high is one, too, because beyond it the kernel stops the process to reclaim). All
 * processes in a cgroup share its limit. One more gauge is of this process alone: its resident set
 * against a limit from the configuration. If there is no gauge of either kind, its resident set is
 * compared with the memory of the machine, or with SIZE_MAX if that is less.
 *
 * The file cache of a cgroup is not counted as used: the kernel takes it back before it kills
 * a process, and a full cache is the normal state of a machine that reads files.
 * Thread-safety: none. */
#ifndef DOMI_RUNTIME_OS_FOOTPRINT_H
#define DOMI_RUNTIME_OS_FOOTPRINT_H

#include <stdbool.h>
#include <stdint.h>

#define DOMI_GAUGES_MAX 16 /* groups of processes (cgroups) that are measured at most */

typedef struct domi_gauge {
    int usage_fd;   /* the file that tells the bytes in use */
    int limit_fd;   /* -1: the limit does not change */
    int stat_fd;    /* memory.stat; -1: resident pages are read instead */
    uint64_t limit; /* bytes that may be in use */
} domi_gauge;

typedef struct domi_footprint {
    /* one for each group of processes (cgroup) that has a limit */
    domi_gauge gauges[DOMI_GAUGES_MAX];
    uint32_t count;      /* entries of `gauges` in use */
    uint64_t page_bytes; /* bytes of a page */
} domi_footprint;

typedef struct domi_usage {
    uint64_t used;  /* bytes in use */
    uint64_t limit; /* bytes that may be in use */
    /* the part of `used` that the kernel's socket buffers take; 0 if it is not known */
    uint64_t socket_bytes;
} domi_usage;

/* Find the gauges. `root` is put before `/proc` and `/sys`, and is "" in production. `limit` comes
 * from the configuration; 0: none. A gauge whose file cannot be read is left out. */
void domi_footprint_open(domi_footprint *footprint, const char *root, uint64_t limit);
void domi_footprint_close(domi_footprint *footprint);

/* Read the limits that may change again. */
void domi_footprint_refresh(domi_footprint *footprint);

/* Read the fullest gauge. Reading memory.stat is expensive. So it is read, to subtract the file
 * cache and to tell the socket buffers, only for a gauge that is `percent` full or more without
 * that. Returns false if there is no gauge. */
bool domi_footprint_read(const domi_footprint *footprint, uint32_t percent, domi_usage *ret_usage);

#endif
