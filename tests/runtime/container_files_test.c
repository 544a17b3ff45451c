/* The memory and the CPU quota that machines and containers allow, read in all forms from files of
 * the test. */
#include "runtime/os/footprint.h"
#include "runtime/os/quota.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

/* runtime/os/footprint.c: the used memory and its limit are read in all forms in which machines
 * and containers show them; the files are made by the test. */

#define MIB UINT64_C(1048576)

static domt_tree tree;
static domi_footprint footprint;
static domi_usage usage;

/* Two thirds of the lines of a real memory.stat of version 1. */
#define STAT_V1                                                                                    \
    "cache 9605120\nrss 13611008\ninactive_file 12288\nactive_file 524288\nunevictable 0\n"        \
    "hierarchical_memory_limit 9223372036854771712\ntotal_cache 2995081216\n"                      \
    "total_inactive_file 10485760\ntotal_active_file 5242880\ntotal_unevictable 0\n"
#define STAT_V2                                                                                    \
    "anon 81920\nfile 7340032\ninactive_anon 1\ninactive_file 3145728\nactive_file 1048576\n"

static void write_file_of_cgroup(const char *path, const char *name, const char *text)
{
    char full[256];

    snprintf(full, sizeof full, "sys/fs/cgroup/%s/%s", path, name);
    domt_tree_write(&tree, full, text);
}

/* Write the files of a cgroup of version 2 whose memory contains no file cache. */
static void write_cgroup_of_version_2(const char *path, const char *max, const char *current)
{
    write_file_of_cgroup(path, "memory.max", max);
    write_file_of_cgroup(path, "memory.current", current);
    write_file_of_cgroup(path, "memory.stat", "inactive_file 0\n");
}

static void make_tree_of_memory_files(const char *cgroup)
{
    domt_tree_make(&tree);
    if (cgroup != NULL)
        domt_tree_write(&tree, "proc/self/cgroup", cgroup);
    domt_tree_write(&tree, "proc/meminfo", "MemTotal:       1024000 kB\nMemFree: 1 kB\n");
    domt_tree_write(&tree, "proc/self/statm", "5000 1000 200 1 0 100 0\n");
}

static bool open_and_read_footprint(uint64_t limit)
{
    domi_footprint_open(&footprint, tree.root, limit);
    return domi_footprint_read_fullest_gauge(&footprint, 0, &usage);
}

static void close_footprint_and_remove_tree(void)
{
    domi_footprint_close(&footprint);
    domt_tree_remove_copy(&tree);
}

static uint64_t resident_bytes_of_process(void)
{
    return 1000 * (uint64_t)sysconf(_SC_PAGESIZE);
}

DOMT_TEST(used_memory_of_cgroup_v2_excludes_its_file_cache)
{
    make_tree_of_memory_files("0::/a\n");
    write_file_of_cgroup("a", "memory.max", "67108864\n");
    write_file_of_cgroup("a", "memory.current", "33554432\n");
    write_file_of_cgroup("a", "memory.stat", STAT_V2);
    ck_assert(open_and_read_footprint(0));
    ck_assert_uint_eq(usage.limit, 64 * MIB);
    ck_assert_uint_eq(usage.used, 28 * MIB);
    /* memory.stat is expensive to read, so it is read only from a given percentage of the limit
     * on. */
    ck_assert(domi_footprint_read_fullest_gauge(&footprint, 51, &usage));
    ck_assert_uint_eq(usage.used, 32 * MIB);
    ck_assert(domi_footprint_read_fullest_gauge(&footprint, 50, &usage));
    ck_assert_uint_eq(usage.used, 28 * MIB);
    close_footprint_and_remove_tree();
}

DOMT_TEST(used_memory_of_cgroup_v1_excludes_file_cache_below_it)
{
    make_tree_of_memory_files("9:name=systemd:/s\n4:memory:/a/b\n0::/\n");
    write_file_of_cgroup("memory/a/b", "memory.limit_in_bytes", "9223372036854771712\n");
    write_file_of_cgroup("memory/a/b", "memory.usage_in_bytes", "1000\n");
    write_file_of_cgroup("memory/a/b", "memory.stat", STAT_V1);
    write_file_of_cgroup("memory/a", "memory.limit_in_bytes", "104857600\n");
    write_file_of_cgroup("memory/a", "memory.usage_in_bytes", "52428800\n");
    write_file_of_cgroup("memory/a", "memory.stat", STAT_V1);
    ck_assert(open_and_read_footprint(0));
    ck_assert_uint_eq(usage.limit, 100 * MIB);
    ck_assert_uint_eq(usage.used, 35 * MIB);
    /* only one of the two cgroups has a limit and is watched */
    ck_assert_uint_eq(footprint.count, 1);
    close_footprint_and_remove_tree();
}

DOMT_TEST(cgroup_v1_is_found_where_controllers_share_a_mount)
{
    make_tree_of_memory_files("4:hugetlb,memory:/a\n");
    write_file_of_cgroup("hugetlb,memory/a", "memory.limit_in_bytes", "104857600\n");
    write_file_of_cgroup("hugetlb,memory/a", "memory.usage_in_bytes", "52428800\n");
    write_file_of_cgroup("hugetlb,memory/a", "memory.stat", "total_inactive_file 0\n");
    ck_assert(open_and_read_footprint(0));
    ck_assert_uint_eq(usage.used, 50 * MIB);
    close_footprint_and_remove_tree();
}

DOMT_TEST(fullest_cgroup_on_the_way_up_counts)
{
    make_tree_of_memory_files("0::/a/b\n");
    write_cgroup_of_version_2("a/b", "104857600\n", "10485760\n");
    /* the upper cgroup holds more memory, because it contains other processes, too */
    write_cgroup_of_version_2("a", "209715200\n", "104857600\n");
    ck_assert(open_and_read_footprint(0));
    ck_assert_uint_eq(usage.limit, 200 * MIB);
    ck_assert_uint_eq(usage.used, 100 * MIB);
    write_file_of_cgroup("a/b", "memory.current", "94371840\n");
    ck_assert(domi_footprint_read_fullest_gauge(&footprint, 0, &usage));
    ck_assert_uint_eq(usage.limit, 100 * MIB);
    ck_assert_uint_eq(usage.used, 90 * MIB);
    close_footprint_and_remove_tree();
}

DOMT_TEST(memory_high_of_cgroup_v2_is_a_limit_too)
{
    make_tree_of_memory_files("0::/a\n");
    write_cgroup_of_version_2("a", "104857600\n", "41943040\n");
    write_file_of_cgroup("a", "memory.high", "52428800\n");
    ck_assert(open_and_read_footprint(0));
    ck_assert_uint_eq(usage.limit, 50 * MIB);
    close_footprint_and_remove_tree();
}

DOMT_TEST(changed_memory_limits_of_cgroups_are_followed)
{
    make_tree_of_memory_files("0::/a\n");
    write_cgroup_of_version_2("a", "104857600\n", "52428800\n");
    ck_assert(open_and_read_footprint(0));
    write_file_of_cgroup("a", "memory.max", "209715200\n");
    domi_footprint_read_cgroup_limits_again(&footprint);
    ck_assert(domi_footprint_read_fullest_gauge(&footprint, 0, &usage));
    ck_assert_uint_eq(usage.limit, 200 * MIB);
    write_file_of_cgroup("a", "memory.max", "max\n");
    domi_footprint_read_cgroup_limits_again(&footprint);
    ck_assert(domi_footprint_read_fullest_gauge(&footprint, 0, &usage));
    ck_assert_uint_gt(usage.limit, UINT64_C(1) << 50);
    close_footprint_and_remove_tree();
}

DOMT_TEST(without_a_cgroup_limit_memory_of_machine_is_the_limit)
{
    static const char *const none[] = {"max\n", "0\n", "-1\n", "", "9223372036854771712\n", "12"};

    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        make_tree_of_memory_files("0::/a\n");
        write_file_of_cgroup("a", "memory.max", none[i]);
        write_file_of_cgroup("a", "memory.current", "33554432\n");
        write_file_of_cgroup("a", "memory.stat", STAT_V2);
        ck_assert(open_and_read_footprint(0));
        ck_assert_uint_eq(usage.limit, 1000 * MIB);
        ck_assert_uint_eq(usage.used, resident_bytes_of_process());
        close_footprint_and_remove_tree();
    }
    make_tree_of_memory_files(NULL);
    ck_assert(open_and_read_footprint(0));
    ck_assert_uint_eq(usage.limit, 1000 * MIB);
    close_footprint_and_remove_tree();
}

DOMT_TEST(cgroups_count_beside_a_configured_limit)
{
    make_tree_of_memory_files("0::/a\n");
    write_cgroup_of_version_2("a", "104857600\n", "1048576\n");
    ck_assert(open_and_read_footprint(5 * MIB));
    ck_assert_uint_eq(footprint.count, 2);
    /* 4 MiB of the configured 5 MiB are a larger share than 1 MiB of the cgroup's 100 MiB */
    ck_assert_uint_eq(usage.limit, 5 * MIB);
    ck_assert_uint_eq(usage.used, resident_bytes_of_process());
    write_file_of_cgroup("a", "memory.current", "99614720\n");
    ck_assert(domi_footprint_read_fullest_gauge(&footprint, 0, &usage));
    ck_assert_uint_eq(usage.limit, 100 * MIB);
    close_footprint_and_remove_tree();
}

DOMT_TEST(files_that_are_missing_or_make_no_sense_are_left_out)
{
    static const char *const names[] = {"memory.current", "memory.stat"};

    for (size_t missing = 0; missing < 2; missing++) {
        make_tree_of_memory_files("0::/a\n");
        write_file_of_cgroup("a", "memory.max", "67108864\n");
        write_file_of_cgroup("a", names[1 - missing], missing == 1 ? "1000\n" : STAT_V2);
        ck_assert(open_and_read_footprint(0));
        ck_assert_uint_eq(usage.limit, 1000 * MIB);
        close_footprint_and_remove_tree();
    }
    make_tree_of_memory_files("0::/a\n");
    write_file_of_cgroup("a", "memory.max", "67108864\n");
    write_file_of_cgroup("a", "memory.current", "1048576\n");
    write_file_of_cgroup("a", "memory.stat", "inactive_file\nactive_file x\n\n");
    ck_assert(open_and_read_footprint(0));
    ck_assert_uint_eq(usage.used, MIB);
    /* a file whose text becomes wrong later makes the read fail, too */
    write_file_of_cgroup("a", "memory.current", "much\n");
    ck_assert(!domi_footprint_read_fullest_gauge(&footprint, 0, &usage));
    write_file_of_cgroup("a", "memory.current", "2097152\n");
    ck_assert(domi_footprint_read_fullest_gauge(&footprint, 0, &usage));
    ck_assert_uint_eq(usage.used, 2 * MIB);
    close_footprint_and_remove_tree();
    make_tree_of_memory_files(NULL);
    domt_tree_write(&tree, "proc/meminfo", "MemFree: 1 kB\n");
    ck_assert(!open_and_read_footprint(0));
    ck_assert_uint_eq(footprint.count, 0);
    close_footprint_and_remove_tree();
    domi_footprint_open(&footprint, "/nowhere", 0);
    ck_assert(!domi_footprint_read_fullest_gauge(&footprint, 0, &usage));
    domi_footprint_close(&footprint);
}

/* The limit of a machine is cut at what a process can address with its pointers (of 4 bytes, for
 * instance), even if a file shows a larger number. */
DOMT_TEST(memory_of_machine_is_cut_at_addressable_bytes)
{
    static const struct {
        const char *kib;
        uint64_t bytes;
    } cases[] = {
        {"4194303", UINT64_C(0xfffffc00)},
        {"4194304", UINT64_C(0x100000000)},
        {"18014398509481983", UINT64_C(0xfffffffffffffc00)},
        {"18014398509481984", UINT64_MAX},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "MemTotal: %s kB\n", cases[i].kib);
        make_tree_of_memory_files(NULL);
        domt_tree_write(&tree, "proc/meminfo", text);
        ck_assert(open_and_read_footprint(0));
        ck_assert_uint_eq(usage.limit, cases[i].bytes < SIZE_MAX ? cases[i].bytes : SIZE_MAX);
        close_footprint_and_remove_tree();
    }
}

DOMT_TEST(footprint_of_real_machine_is_read)
{
    domi_footprint_open(&footprint, "", 0);
    ck_assert(domi_footprint_read_fullest_gauge(&footprint, 0, &usage));
    ck_assert_uint_gt(usage.used, 100000);
    ck_assert_uint_gt(usage.limit, usage.used);
    domi_footprint_close(&footprint);
}

/* The directories are like those of a container; each of the nearer ones has two limits. */
DOMT_TEST(fullest_cgroup_counts_at_any_height)
{
    static const char *const paths[] = {"a/b/c", "a/b", "a"};

    make_tree_of_memory_files("0::/a/b/c\n");
    for (int i = 0; i < 3; i++) {
        write_cgroup_of_version_2(paths[i], i == 2 ? "67108864\n" : "1073741824\n",
                                  i == 2 ? "66000000\n" : "33554432\n");
        if (i != 2)
            write_file_of_cgroup(paths[i], "memory.high", "1000000000\n");
    }
    ck_assert(open_and_read_footprint(0));
    ck_assert_uint_eq(usage.limit, 64 * MIB);
    close_footprint_and_remove_tree();
}

/* --- quota ------------------------------------------------------------------------------------ */

/* runtime/os/quota.c: the CPU quota is read in all forms in which machines and containers show it;
 * the files are made by the test. */

struct file {
    const char *path; /* path of the file below sys/fs/cgroup; NULL ends the list */
    const char *text;
};

/* Returns the quota that is found with these files, when /proc/self/cgroup contains `cgroup` (NULL:
 * that file is missing). */
static uint32_t quota_from_cgroup_files(const char *cgroup, const struct file *files)
{
    domt_tree root;
    char path[256];

    domt_tree_make(&root);
    if (cgroup != NULL)
        domt_tree_write(&root, "proc/self/cgroup", cgroup);
    for (; files->path != NULL; files++) {
        snprintf(path, sizeof path, "sys/fs/cgroup/%s", files->path);
        domt_tree_write(&root, path, files->text);
    }

    uint32_t quota = domi_quota_read_as_cpus(root.root);
    domt_tree_remove_copy(&root);
    return quota;
}

#define HYBRID "9:name=systemd:/s\n2:cpuacct:/\n1:cpu:/one\n0::/two\n"

#define FILES(...)                                                                                 \
    (const struct file[])                                                                          \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            NULL, NULL                                                                             \
        }                                                                                          \
    }

/* The files of a cgroup with a CPU quota, in version 2 and in version 1. */
#define V2(at, text)                                                                               \
    {                                                                                              \
        at "cpu.max", text "\n"                                                                    \
    }
#define V1(at, quota, period)                                                                      \
    {at "cpu.cfs_quota_us", quota "\n"},                                                           \
    {                                                                                              \
        at "cpu.cfs_period_us", period "\n"                                                        \
    }

/* The cases: for each, a list of files that ends with an empty one. */
static const struct {
    const char *name, *cgroup;
    uint32_t cpus; /* number of CPUs in the quota that must be found */
    struct file files[5];
} cases[] = {
    {"v2", "0::/a\n", 2, {V2("a/", "200000 100000")}},
    {"v2 is rounded up", "0::/a\n", 3, {V2("a/", "200001 100000")}},
    {"v2, less than one", "0::/a\n", 1, {V2("a/", "1000 100000")}},
    {"v2, another period", "0::/a\n", 2, {V2("a/", "75000 50000")}},
    {"v2 max is none", "0::/a\n", 0, {V2("a/", "max 100000")}},
    {"the smallest on the way to the root", .cgroup = "0::/a/b/c\n", .cpus = 3,
     .files = {V2("a/b/c/", "max 100000"), V2("a/b/", "400000 100000"), V2("a/", "300000 100000"),
               V2("", "500000 100000")}},
    {"its own is the smallest", .cgroup = "0::/a/b\n", .cpus = 1,
     .files = {V2("a/b/", "100000 100000"), V2("a/", "300000 100000")}},
    {"the root's alone", "0::/a/b\n", 2, {V2("", "200000 100000")}},
    {"at the root", "0::/\n", 2, {V2("", "200000 100000")}},
    {"not on the way", .cgroup = "0::/a\n",
     .files = {V2("a/b/", "100000 100000"), V2("b/", "100000 100000")}},
    {"v1 has two files", .cgroup = "3:cpuset:/x\n1:cpu:/a/b\n", .cpus = 3,
     .files = {V1("cpu/a/b/", "-1", "100000"), V1("cpu/a/", "250000", "100000")}},
    {"v1 without a bound", "1:cpu:/\n", 0, {V1("cpu/", "-1", "100000")}},
    {"v1, controllers that share a mount", .cgroup = "4:cpu,cpuacct:/a\n", .cpus = 2,
     .files = {V1("cpu,cpuacct/a/", "200000", "100000")}},
    {"v1, the same in the other order", .cgroup = "4:cpuacct,cpu:/a\n", .cpus = 2,
     .files = {V1("cpuacct,cpu/a/", "200000", "100000")}},
    {"v1, other controllers whose names begin the same", .cgroup = "4:cpuset,cpuacct:/a\n",
     .files = {V1("cpuset,cpuacct/a/", "200000", "100000"), V1("cpu/a/", "200000", "100000")}},
    {"hybrid, in v1", .cgroup = HYBRID, .cpus = 4,
     .files = {V1("cpu/one/", "400000", "100000"), {"unified/two/cgroup.procs", "1\n"}}},
    {"hybrid, in v2", HYBRID, 3, {V2("unified/two/", "300000 100000")}},
    {"hybrid, the smaller of both", .cgroup = HYBRID, .cpus = 3,
     .files = {V1("cpu/one/", "400000", "100000"), V2("unified/two/", "300000 100000")}},
    /* The path in /proc/self/cgroup is that of the host, or lies outside of the container's
     * namespace. */
    {"a container at the mount point", "0::/docker/0af8\n", 2, {V2("", "200000 100000")}},
    {"a path outside", .cgroup = "0::/../other\n", .cpus = 2,
     .files = {V2("", "200000 100000"), V2("../other/", "100000 100000")}},
    /* A container may have /sys without /proc. */
    {"v2 without /proc", NULL, 2, {V2("", "200000 100000")}},
    {"v1 without /proc", NULL, 3, {V1("cpu/", "300000", "100000")}},
    {"below the mount point, without /proc", NULL, 0, {V2("a/", "200000 100000")}},
    {"no files and no /proc", NULL, 0, {{NULL, NULL}}},
    {"no files", "0::/a\n1:cpu:/a\n", 0, {{NULL, NULL}}},
    {"v1 without a period", "1:cpu:/a\n", 0, {{"cpu/a/cpu.cfs_quota_us", "100000\n"}}},
    {"v1 without a quota", "1:cpu:/a\n", 0, {{"cpu/a/cpu.cfs_period_us", "100000\n"}}},
};

DOMT_TEST(cpu_quota_is_found_in_each_form)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t cpus = quota_from_cgroup_files(cases[i].cgroup, cases[i].files);
        ck_assert_msg(cpus == cases[i].cpus, "%s: %u", cases[i].name, cpus);
    }
    ck_assert_uint_eq(domi_quota_read_as_cpus("/nowhere"), 0);
}

DOMT_TEST(cpu_quota_that_makes_no_sense_is_ignored)
{
    static const char *const texts[] = {
        "",
        "\n",
        "max\n",
        "100000\n",
        "100000 \n",
        " 100000 100000\n",
        "-1 100000\n",
        "100000 -1\n",
        "100000 0\n",
        "0 100000\n",
        "1e5 100000\n",
        "100000  100000\n",
        "100000 100000 1\n",
        "99999999999999999999999 100000\n",
        "100000 99999999999999999999999\n",
        "0000000000000000000000000000000000000000000000000000000000000000000000001 1\n",
    };

    /* If the quota of the inner cgroup is wrong, a right one of an outer cgroup still counts. */
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_uint_eq(quota_from_cgroup_files("0::/a\n", FILES({"a/cpu.max", texts[i]},
                                                                   {"cpu.max", "500000 100000\n"})),
                          5);
}

DOMT_TEST(cpu_quota_survives_a_malformed_list_of_cgroups)
{
    static const char *const texts[] = {"", "\n", ":", "::", "0:", "0::\n", "0::a\n", "cpu\n\n:\n"};
    char text[20000];

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        quota_from_cgroup_files(texts[i], FILES({"cpu.max", "max 100000\n"}));

    /* A text that is longer than any path, and longer than the part of the file that is read. */
    memset(text, 'a', sizeof text - 1);
    memcpy(text, "0::/", 4);
    text[sizeof text - 1] = '\0';
    ck_assert_uint_eq(quota_from_cgroup_files(text, FILES({"cpu.max", "100000 100000\n"})), 1);
    memset(text + 4, '/', 5000);
    text[5000] = '\0';
    ck_assert_uint_eq(quota_from_cgroup_files(text, FILES({"cpu.max", "100000 100000\n"})), 1);
}

DOMT_SUITE(20)
