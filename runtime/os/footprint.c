/* This file finds and reads the gauges of a footprint (footprint.h). The files of the gauges stay
 * open, so reading one is one system call, which takes some microseconds. */
#include "runtime/os/footprint.h"

#include "runtime/os/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NUMBER_BYTES 64 /* most bytes that are read of a file which holds one number */
/* size of the buffer for memory.stat, which has some 50 lines */
#define STAT_BYTES 8192
#define KIB        UINT64_C(1024) /* bytes in a KiB */
/* a limit from this number of bytes on means "no limit": version 1 of cgroups shows 2^63 minus a
 * page for it */
#define UNLIMITED (UINT64_C(1) << 60)

/* Open the file `name` in a directory for reading. Returns its descriptor; -1 if that fails. */
static int open_file_of_directory(const char *directory, const char *name)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", directory, name);

    if (length < 0 || (size_t)length >= sizeof path)
        return -1;
    return open(path, O_RDONLY | O_CLOEXEC);
}

static void close_if_open(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}

/* Read an open file from its start, and end the text with a NUL. Returns false if it cannot be
 * read or is empty. */
static bool read_open_file(int fd, char *ret_text, size_t size)
{
    ssize_t length;

    do
        length = pread(fd, ret_text, size - 1, 0);
    while (length < 0 && errno == EINTR);
    if (length <= 0)
        return false;
    ret_text[length] = '\0';
    return true;
}

static bool read_number_of_file(int fd, uint64_t *ret_value)
{
    char text[NUMBER_BYTES];
    const char *at = text;

    return read_open_file(fd, text, sizeof text) && domi_cgroup_read_number(&at, '\n', ret_value);
}

/* Returns the number behind `name` in the line of `text` that begins with this name; 0: there is
 * no such line. */
static uint64_t find_number_behind_name_in_lines(const char *text, const char *name)
{
    size_t length = strlen(name);
    uint64_t value;

    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *at = line + length;
        if (strncmp(line, name, length) == 0 && domi_cgroup_read_number(&at, '\n', &value))
            return value;
    }
    return 0;
}

/* Two parts of the memory that a cgroup uses, as memory.stat shows them. */
typedef struct parts {
    uint64_t file_cache;   /* bytes of cached files that the kernel can take back */
    uint64_t socket_bytes; /* bytes of the kernel's socket buffers, as memory.stat shows them */
} parts;

/* Read the two parts of a cgroup's memory from its memory.stat. In version 1 the lines that
 * begin with "total_" count the cgroup with all cgroups below it, as its limit does; in version
 * 2 all lines do so. Socket buffers count against the limit in version 2 only, and only version
 * 2 has a line for them. */
static parts read_parts_of_memory_stat(int stat_fd)
{
    char text[STAT_BYTES];

    if (!read_open_file(stat_fd, text, sizeof text))
        return (parts){0};
    uint64_t total = find_number_behind_name_in_lines(text, "total_inactive_file ") +
                     find_number_behind_name_in_lines(text, "total_active_file ");
    if (total != 0 || strstr(text, "\ntotal_") != NULL)
        return (parts){.file_cache = total};
    return (parts){
        .file_cache = find_number_behind_name_in_lines(text, "inactive_file ") +
                      find_number_behind_name_in_lines(text, "active_file "),
        .socket_bytes = find_number_behind_name_in_lines(text, "sock "),
    };
}

/* Read the process's resident set from /proc/self/statm, which has "size resident shared" and
 * further numbers, in pages. */
static bool read_resident_set(const domi_footprint *footprint, int fd, uint64_t *ret_bytes)
{
    char text[NUMBER_BYTES * 4];
    const char *at = text;
    uint64_t size, resident;

    if (!read_open_file(fd, text, sizeof text) || !domi_cgroup_read_number(&at, ' ', &size) ||
        !domi_cgroup_read_number(&at, ' ', &resident))
        return false;
    *ret_bytes = resident * footprint->page_bytes;
    return true;
}

/* True if the number is a limit of memory and does not mean "no limit". */
static bool is_limit_of_memory_set(uint64_t limit)
{
    return limit != 0 && limit < UNLIMITED;
}

static void add_gauge_of_cgroup_limit(domi_footprint *footprint, const char *directory,
                                      const char *limit_name, const char *usage_name)
{
    domi_gauge gauge = {.usage_fd = -1, .stat_fd = -1};
    uint64_t used;

    /* the last place for a gauge is kept for the gauge of the process alone */
    if (footprint->count == DOMI_GAUGES_MAX - 1)
        return;
    gauge.limit_fd = open_file_of_directory(directory, limit_name);
    if (gauge.limit_fd >= 0 && read_number_of_file(gauge.limit_fd, &gauge.limit) &&
        is_limit_of_memory_set(gauge.limit)) {
        gauge.usage_fd = open_file_of_directory(directory, usage_name);
        gauge.stat_fd = open_file_of_directory(directory, "memory.stat");
        if (gauge.usage_fd >= 0 && gauge.stat_fd >= 0 &&
            read_number_of_file(gauge.usage_fd, &used)) {
            footprint->gauges[footprint->count++] = gauge;
            return;
        }
    }
    close_if_open(gauge.limit_fd);
    close_if_open(gauge.usage_fd);
    close_if_open(gauge.stat_fd);
}

static void add_gauges_of_cgroup(const char *directory, int version, void *footprint)
{
    if (version == 1) {
        add_gauge_of_cgroup_limit(footprint, directory, "memory.limit_in_bytes",
                                  "memory.usage_in_bytes");
    } else {
        add_gauge_of_cgroup_limit(footprint, directory, "memory.max", "memory.current");
        add_gauge_of_cgroup_limit(footprint, directory, "memory.high", "memory.current");
    }
}

/* Returns how many bytes of memory the machine has, from the line "MemTotal: 24683648 kB" of
 * /proc/meminfo, but at most SIZE_MAX; 0: unknown. */
static uint64_t read_memory_of_machine(const char *root)
{
    char directory[PATH_MAX];
    char text[STAT_BYTES];
    int length = snprintf(directory, sizeof directory, "%s/proc", root);
    uint64_t kib;

    if (length < 0 || (size_t)length >= sizeof directory ||
        !domi_cgroup_read_file(directory, "meminfo", text, sizeof text) ||
        strncmp(text, "MemTotal:", 9) != 0)
        return 0;
    const char *at = text + 9 + strspn(text + 9, " ");
    if (!domi_cgroup_read_number(&at, ' ', &kib))
        return 0;
    return kib <= SIZE_MAX / KIB ? kib * KIB : SIZE_MAX;
}

static void add_gauge_of_process(domi_footprint *footprint, const char *root, uint64_t limit)
{
    char directory[PATH_MAX];
    int length = snprintf(directory, sizeof directory, "%s/proc/self", root);
    uint64_t used;

    if (limit == 0 || length < 0 || (size_t)length >= sizeof directory)
        return;
    domi_gauge gauge = {.limit_fd = -1, .stat_fd = -1, .limit = limit};
    gauge.usage_fd = open_file_of_directory(directory, "statm");
    if (gauge.usage_fd >= 0 && read_resident_set(footprint, gauge.usage_fd, &used))
        footprint->gauges[footprint->count++] = gauge;
    else
        close_if_open(gauge.usage_fd);
}

void domi_footprint_open(domi_footprint *footprint, const char *root, uint64_t limit)
{
    *footprint = (domi_footprint){.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
    domi_cgroup_visit_directories(&(domi_cgroup_walk){
        .root = root, .controller = "memory", .visit = add_gauges_of_cgroup, .context = footprint});
    if (limit == 0 && footprint->count == 0)
        limit = read_memory_of_machine(root);
    add_gauge_of_process(footprint, root, limit);
}

void domi_footprint_close(domi_footprint *footprint)
{
    for (uint32_t i = 0; i < footprint->count; i++) {
        close_if_open(footprint->gauges[i].usage_fd);
        close_if_open(footprint->gauges[i].limit_fd);
        close_if_open(footprint->gauges[i].stat_fd);
    }
    footprint->count = 0;
}

void domi_footprint_read_cgroup_limits_again(domi_footprint *footprint)
{
    for (uint32_t i = 0; i < footprint->count; i++) {
        domi_gauge *gauge = &footprint->gauges[i];
        uint64_t limit;

        if (gauge->limit_fd < 0)
            continue;
        /* The file of a limit may hold "max" by now, or the large number of version 1; both mean
         * "no limit". */
        gauge->limit = read_number_of_file(gauge->limit_fd, &limit) && is_limit_of_memory_set(limit)
                           ? limit
                           : UNLIMITED;
    }
}

static bool read_usage_of_gauge(const domi_footprint *footprint, const domi_gauge *gauge,
                                uint32_t percent, domi_usage *ret_usage)
{
    domi_usage usage = {.limit = gauge->limit};

    if (gauge->stat_fd < 0) {
        if (!read_resident_set(footprint, gauge->usage_fd, &usage.used))
            return false;
    } else {
        if (!read_number_of_file(gauge->usage_fd, &usage.used))
            return false;
        if (usage.used >= gauge->limit / 100 * percent) {
            parts within = read_parts_of_memory_stat(gauge->stat_fd);
            usage.used -= within.file_cache < usage.used ? within.file_cache : usage.used;
            usage.socket_bytes = within.socket_bytes;
        }
    }
    *ret_usage = usage;
    return true;
}

bool domi_footprint_read_fullest_gauge(const domi_footprint *footprint, uint32_t percent,
                                       domi_usage *ret_usage)
{
    domi_usage fullest = {0};

    for (uint32_t i = 0; i < footprint->count; i++) {
        domi_usage usage;

        if (!read_usage_of_gauge(footprint, &footprint->gauges[i], percent, &usage))
            continue;
        if (fullest.limit == 0 ||
            (double)usage.used * (double)fullest.limit > (double)fullest.used * (double)usage.limit)
            fullest = usage;
    }
    if (fullest.limit == 0)
        return false;
    *ret_usage = fullest;
    return true;
}
