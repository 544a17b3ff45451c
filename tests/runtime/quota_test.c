/* runtime/os/quota.c: the CPU quota is read in all forms in which machines and containers show it;
 * the files are made by the test. */
#include "runtime/os/quota.h"

#include "tests/support/suite.h"
#include "tests/support/tree.h"

struct file {
    const char *path; /* path of the file below sys/fs/cgroup; NULL ends the list */
    const char *text;
};

/* Returns the quota that is found with these files, when /proc/self/cgroup contains `cgroup` (NULL:
 * that file is missing). */
static uint32_t quota_from_cgroup_files(const char *cgroup, const struct file *files)
{
    domt_tree tree;
    char path[256];

    domt_tree_make(&tree);
    if (cgroup != NULL)
        domt_tree_write(&tree, "proc/self/cgroup", cgroup);
    for (; files->path != NULL; files++) {
        snprintf(path, sizeof path, "sys/fs/cgroup/%s", files->path);
        domt_tree_write(&tree, path, files->text);
    }

    uint32_t quota = domi_quota_read_as_cpus(tree.root);
    domt_tree_remove_copy(&tree);
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

DOMT_TEST(quota_is_found_in_each_form)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t cpus = quota_from_cgroup_files(cases[i].cgroup, cases[i].files);
        ck_assert_msg(cpus == cases[i].cpus, "%s: %u", cases[i].name, cpus);
    }
    ck_assert_uint_eq(domi_quota_read_as_cpus("/nowhere"), 0);
}

DOMT_TEST(quota_that_makes_no_sense_is_ignored)
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

DOMT_TEST(quota_survives_a_malformed_list_of_cgroups)
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
