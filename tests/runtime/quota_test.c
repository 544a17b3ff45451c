/* runtime/os/quota.c: the CPU quota is read in all the forms in which machines and containers show
 * it, from files of the test. */
#include "runtime/os/quota.h"

#include "tests/support/suite.h"
#include "tests/support/tree.h"

struct file {
    const char *path; /* below sys/fs/cgroup; NULL ends the list */
    const char *text;
};

/* The quota that is found when /proc/self/cgroup says `cgroup` (NULL: there is none). */
static uint32_t quota_of(const char *cgroup, const struct file *files)
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

    uint32_t quota = domi_quota_cpus(tree.root);
    domt_tree_remove(&tree);
    return quota;
}

#define FILES(...)                                                                                 \
    (const struct file[])                                                                          \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            NULL, NULL                                                                             \
        }                                                                                          \
    }
#define NO_FILES ((const struct file[]){{NULL, NULL}})

DOMT_TEST(quota_v2_is_rounded_up)
{
    ck_assert_uint_eq(quota_of("0::/a\n", FILES({"a/cpu.max", "200000 100000\n"})), 2);
    ck_assert_uint_eq(quota_of("0::/a\n", FILES({"a/cpu.max", "200001 100000\n"})), 3);
    ck_assert_uint_eq(quota_of("0::/a\n", FILES({"a/cpu.max", "1000 100000\n"})), 1);
    ck_assert_uint_eq(quota_of("0::/a\n", FILES({"a/cpu.max", "75000 50000\n"})), 2);
}

DOMT_TEST(quota_v2_max_is_none)
{
    ck_assert_uint_eq(quota_of("0::/a\n", FILES({"a/cpu.max", "max 100000\n"})), 0);
}

DOMT_TEST(quota_is_the_smallest_on_the_way_to_the_root)
{
    ck_assert_uint_eq(
        quota_of("0::/a/b/c\n",
                 FILES({"a/b/c/cpu.max", "max 100000\n"}, {"a/b/cpu.max", "400000 100000\n"},
                       {"a/cpu.max", "300000 100000\n"}, {"cpu.max", "500000 100000\n"})),
        3);
    ck_assert_uint_eq(quota_of("0::/a/b\n", FILES({"a/b/cpu.max", "100000 100000\n"},
                                                  {"a/cpu.max", "300000 100000\n"})),
                      1);
    ck_assert_uint_eq(quota_of("0::/a/b\n", FILES({"cpu.max", "200000 100000\n"})), 2);
    ck_assert_uint_eq(quota_of("0::/\n", FILES({"cpu.max", "200000 100000\n"})), 2);
    /* not on the way */
    ck_assert_uint_eq(quota_of("0::/a\n", FILES({"a/b/cpu.max", "100000 100000\n"},
                                                {"b/cpu.max", "100000 100000\n"})),
                      0);
}

DOMT_TEST(quota_v1_is_read_from_its_two_files)
{
    ck_assert_uint_eq(
        quota_of("3:cpuset:/x\n1:cpu:/a/b\n", FILES({"cpu/a/b/cpu.cfs_quota_us", "-1\n"},
                                                    {"cpu/a/b/cpu.cfs_period_us", "100000\n"},
                                                    {"cpu/a/cpu.cfs_quota_us", "250000\n"},
                                                    {"cpu/a/cpu.cfs_period_us", "100000\n"})),
        3);
    ck_assert_uint_eq(quota_of("1:cpu:/\n", FILES({"cpu/cpu.cfs_quota_us", "-1\n"},
                                                  {"cpu/cpu.cfs_period_us", "100000\n"})),
                      0);
}

DOMT_TEST(quota_v1_is_found_where_controllers_share_a_mount)
{
    ck_assert_uint_eq(
        quota_of("4:cpu,cpuacct:/a\n", FILES({"cpu,cpuacct/a/cpu.cfs_quota_us", "200000\n"},
                                             {"cpu,cpuacct/a/cpu.cfs_period_us", "100000\n"})),
        2);
    ck_assert_uint_eq(
        quota_of("4:cpuacct,cpu:/a\n", FILES({"cpuacct,cpu/a/cpu.cfs_quota_us", "200000\n"},
                                             {"cpuacct,cpu/a/cpu.cfs_period_us", "100000\n"})),
        2);
    /* other controllers whose names begin the same are none */
    ck_assert_uint_eq(
        quota_of("4:cpuset,cpuacct:/a\n", FILES({"cpuset,cpuacct/a/cpu.cfs_quota_us", "200000\n"},
                                                {"cpuset,cpuacct/a/cpu.cfs_period_us", "100000\n"},
                                                {"cpu/a/cpu.cfs_quota_us", "200000\n"},
                                                {"cpu/a/cpu.cfs_period_us", "100000\n"})),
        0);
}

DOMT_TEST(quota_is_found_in_hybrid_mounts)
{
    static const char cgroup[] = "9:name=systemd:/s\n2:cpuacct:/\n1:cpu:/one\n0::/two\n";

    ck_assert_uint_eq(quota_of(cgroup, FILES({"cpu/one/cpu.cfs_quota_us", "400000\n"},
                                             {"cpu/one/cpu.cfs_period_us", "100000\n"},
                                             {"unified/two/cgroup.procs", "1\n"})),
                      4);
    ck_assert_uint_eq(quota_of(cgroup, FILES({"unified/two/cpu.max", "300000 100000\n"})), 3);
    ck_assert_uint_eq(quota_of(cgroup, FILES({"cpu/one/cpu.cfs_quota_us", "400000\n"},
                                             {"cpu/one/cpu.cfs_period_us", "100000\n"},
                                             {"unified/two/cpu.max", "300000 100000\n"})),
                      3);
}

DOMT_TEST(quota_of_a_container_is_found_at_the_mount_point)
{
    /* the path is the host's, or lies outside the namespace */
    ck_assert_uint_eq(quota_of("0::/docker/0af8\n", FILES({"cpu.max", "200000 100000\n"})), 2);
    ck_assert_uint_eq(quota_of("0::/../other\n", FILES({"cpu.max", "200000 100000\n"},
                                                       {"../other/cpu.max", "100000 100000\n"})),
                      2);
}

/* A container may have /sys and no /proc. */
DOMT_TEST(quota_without_proc_is_that_of_the_mount_point)
{
    ck_assert_uint_eq(quota_of(NULL, FILES({"cpu.max", "200000 100000\n"})), 2);
    ck_assert_uint_eq(quota_of(NULL, FILES({"cpu/cpu.cfs_quota_us", "300000\n"},
                                           {"cpu/cpu.cfs_period_us", "100000\n"})),
                      3);
    ck_assert_uint_eq(quota_of(NULL, FILES({"a/cpu.max", "200000 100000\n"})), 0);
    ck_assert_uint_eq(quota_of(NULL, NO_FILES), 0);
}

DOMT_TEST(quota_without_files_is_none)
{
    ck_assert_uint_eq(quota_of("0::/a\n1:cpu:/a\n", NO_FILES), 0);
    ck_assert_uint_eq(quota_of("1:cpu:/a\n", FILES({"cpu/a/cpu.cfs_quota_us", "100000\n"})), 0);
    ck_assert_uint_eq(quota_of("1:cpu:/a\n", FILES({"cpu/a/cpu.cfs_period_us", "100000\n"})), 0);
    ck_assert_uint_eq(domi_quota_cpus("/nowhere"), 0);
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

    /* an outer one that does make sense still counts */
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_uint_eq(
            quota_of("0::/a\n", FILES({"a/cpu.max", texts[i]}, {"cpu.max", "500000 100000\n"})), 5);
}

DOMT_TEST(quota_survives_a_malformed_list_of_cgroups)
{
    static const char *const texts[] = {"", "\n", ":", "::", "0:", "0::\n", "0::a\n", "cpu\n\n:\n"};
    char text[20000];

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        quota_of(texts[i], FILES({"cpu.max", "max 100000\n"}));

    /* longer than any path, and than what is read */
    memset(text, 'a', sizeof text - 1);
    memcpy(text, "0::/", 4);
    text[sizeof text - 1] = '\0';
    ck_assert_uint_eq(quota_of(text, FILES({"cpu.max", "100000 100000\n"})), 1);
    memset(text + 4, '/', 5000);
    text[5000] = '\0';
    ck_assert_uint_eq(quota_of(text, FILES({"cpu.max", "100000 100000\n"})), 1);
}

DOMT_SUITE(20)
