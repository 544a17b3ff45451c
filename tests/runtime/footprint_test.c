/* runtime/os/footprint.c: the used memory and its limit are read in all forms in which machines and
 * containers show them; the files are made by the test. */
#include "runtime/os/footprint.h"

#include "tests/support/suite.h"
#include "tests/support/tree.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

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

DOMT_TEST(v2_is_used_without_its_file_cache)
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

DOMT_TEST(v1_is_used_without_the_file_cache_of_all_below_it)
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

DOMT_TEST(v1_is_found_where_controllers_share_a_mount)
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

DOMT_TEST(v2_high_is_a_limit_too)
{
    make_tree_of_memory_files("0::/a\n");
    write_cgroup_of_version_2("a", "104857600\n", "41943040\n");
    write_file_of_cgroup("a", "memory.high", "52428800\n");
    ck_assert(open_and_read_footprint(0));
    ck_assert_uint_eq(usage.limit, 50 * MIB);
    close_footprint_and_remove_tree();
}

DOMT_TEST(limits_that_change_are_followed)
{
    make_tree_of_memory_files("0::/a\n");
    write_cgroup_of_version_2("a", "104857600\n", "52428800\n");
    ck_assert(open_and_read_footprint(0));
    write_file_of_cgroup("a", "memory.max", "209715200\n");
    domi_footprint_read_limits_again(&footprint);
    ck_assert(domi_footprint_read_fullest_gauge(&footprint, 0, &usage));
    ck_assert_uint_eq(usage.limit, 200 * MIB);
    write_file_of_cgroup("a", "memory.max", "max\n");
    domi_footprint_read_limits_again(&footprint);
    ck_assert(domi_footprint_read_fullest_gauge(&footprint, 0, &usage));
    ck_assert_uint_gt(usage.limit, UINT64_C(1) << 50);
    close_footprint_and_remove_tree();
}

DOMT_TEST(without_a_limit_the_machine_is_one)
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

DOMT_TEST(a_configured_limit_is_for_the_process_beside_its_cgroups)
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
DOMT_TEST(memory_of_the_machine_is_no_more_than_addresses)
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

DOMT_SUITE(20)
