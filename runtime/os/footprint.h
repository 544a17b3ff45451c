/* How much memory is used, of how much: gauges, the fullest of which counts.
 *
 * A gauge for each limit of the memory cgroups that this process is in (v1, v2; v2's memory.high is
 * one too, because beyond it the kernel stops the process to reclaim), which all that is in the
 * cgroup shares. And one of this process alone, its resident set against a limit from the
 * configuration; if there is neither, against the memory of the machine.
 *
 * What a cgroup uses is counted without its file cache: the kernel takes that back before it kills
 * anybody, and a full one is the normal state of a machine that reads files. Not thread-safe. */
#ifndef DOMI_RUNTIME_OS_FOOTPRINT_H
#define DOMI_RUNTIME_OS_FOOTPRINT_H

#include <stdbool.h>
#include <stdint.h>

#define DOMI_GAUGES_MAX 16

typedef struct domi_gauge {
    int usage_fd;
    int limit_fd; /* -1: the limit does not change */
    int stat_fd;  /* memory.stat; -1: resident pages are read instead */
    uint64_t limit;
} domi_gauge;

typedef struct domi_footprint {
    domi_gauge gauges[DOMI_GAUGES_MAX];
    uint32_t count;
    uint64_t page_bytes;
} domi_footprint;

typedef struct domi_usage {
    uint64_t used;
    uint64_t limit;
    uint64_t socket_bytes; /* of `used`, what the kernel's socket buffers take; 0 if not told */
} domi_usage;

/* Find the gauges. `root` stands before `/proc` and `/sys`: "" in production. `limit`: from the
 * configuration, 0: none. What cannot be read is left out. */
void domi_footprint_open(domi_footprint *footprint, const char *root, uint64_t limit);
void domi_footprint_close(domi_footprint *footprint);

/* Read the limits again, those that may change. */
void domi_footprint_refresh(domi_footprint *footprint);

/* The fullest. Reading memory.stat is dear, so file cache is taken off and socket buffers are told
 * only in gauges that show `percent` or more with them. False: there is no gauge. */
bool domi_footprint_read(const domi_footprint *footprint, uint32_t percent, domi_usage *ret_usage);

#endif
