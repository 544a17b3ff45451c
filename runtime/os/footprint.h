/* A footprint shows how much memory is used, and how much may be used. It has several gauges, and
 * the fullest gauge counts.
 *
 * There is a gauge for each limit of the memory cgroups that this process is in (v1 and v2). The
 * limit memory.high of v2 is one, too, because beyond it the kernel stops the process to reclaim
 * memory. All processes in a cgroup share its limit. One more gauge is for this process alone: its
 * resident set against a limit from the configuration. If there is neither kind of gauge, the
 * resident set is compared with the memory of the machine, or with SIZE_MAX if that is less.
 *
 * The file cache of a cgroup does not count as used: the kernel takes it back before it kills a
 * process, and a full cache is the normal state of a machine that reads files. Thread-safety:
 * none. */
#ifndef DOMI_RUNTIME_OS_FOOTPRINT_H
#define DOMI_RUNTIME_OS_FOOTPRINT_H

#include <stdbool.h>
#include <stdint.h>

/* Most gauges of a footprint: one for the process alone, the others for the limits of cgroups. */
#define DOMI_GAUGES_MAX 16

typedef struct domi_gauge {
    int usage_fd; /* descriptor of the file with the bytes that are used */
    /* descriptor of the file with the gauge's limit; -1: the limit does not change */
    int limit_fd;
    /* descriptor of the cgroup's memory.stat; -1: this gauge is the process's resident set */
    int stat_fd;
    uint64_t limit; /* limit of the gauge: bytes that may be used */
} domi_gauge;

typedef struct domi_footprint {
    /* gauges of the cgroups that have a limit, and of the process alone */
    domi_gauge gauges[DOMI_GAUGES_MAX];
    uint32_t count; /* number of used entries of `gauges`: one for the process, and one for each
                       cgroup with a limit */
    uint64_t page_bytes; /* size of a page of the machine's memory in bytes */
} domi_footprint;

typedef struct domi_usage {
    uint64_t used;  /* bytes that the fullest gauge shows as used */
    uint64_t limit; /* bytes that may be used, by the fullest gauge */
    /* part of `used` that is in the kernel's socket buffers; 0: unknown */
    uint64_t socket_bytes;
} domi_usage;

/* Find the gauges of a footprint, and open their files. `root` is put before `/proc` and `/sys`,
 * and is "" in production. `limit` is the limit of the configuration in bytes; 0: none. A gauge
 * whose file cannot be read is left out. */
void domi_footprint_open(domi_footprint *footprint, const char *root, uint64_t limit);
void domi_footprint_close(domi_footprint *footprint);

/* Read the limits of the cgroups anew, because they may change while the process runs. */
void domi_footprint_read_cgroup_limits_again(domi_footprint *footprint);

/* Read all gauges of a footprint, and return the usage of the fullest one. memory.stat is
 * expensive to read, and needed to subtract the file cache and to know the socket buffers; so it
 * is read only for a gauge that is `percent` full or more without that. Returns false if no
 * gauge can be read. */
bool domi_footprint_read_fullest_gauge(const domi_footprint *footprint, uint32_t percent,
                                       domi_usage *ret_usage);

#endif
