/* Figures of the machine: files of the test in all the forms in which kernels have them, and a
 * system that runs. */
#include "runtime/os/machine.h"

#include "tests/runtime/running.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

static domt_tree tree;

static domi_cgroup_cpu cpu_of(const char *cgroup, const char *path, const char *text,
                              const char *other, const char *other_text)
{
    domi_cgroup_cpu cpu;

    domt_tree_make(&tree);
    domt_tree_write(&tree, "proc/self/cgroup", cgroup);
    domt_tree_write(&tree, path, text);
    domt_tree_write(&tree, other, other_text);
    domi_machine_read_cgroup(tree.root, &cpu);
    domt_tree_remove(&tree);
    return cpu;
}

DOMT_TEST(quota_and_throttling_of_both_versions_are_read)
{
    domi_cgroup_cpu cpu =
        cpu_of("0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max", "150000 100000\n",
               "sys/fs/cgroup/a/b/cpu.stat", "nr_periods 8\nnr_throttled 3\nthrottled_usec 2000\n");
    ck_assert_uint_eq(cpu.quota, 1500);
    ck_assert_uint_eq(cpu.throttles, 3);
    ck_assert_uint_eq(cpu.periods, 8);
    ck_assert_uint_eq(cpu.throttled_ns, 2000000);
    cpu = cpu_of("4:cpu:/a\n", "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000\n",
                 "sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    ck_assert_uint_eq(cpu.quota, 500);
    ck_assert_uint_eq(cpu.throttles, 0);
    cpu = cpu_of("4:cpu:/a\n", "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n",
                 "sys/fs/cgroup/cpu/a/cpu.stat", "nr_throttled 2\nthrottled_time 7\n");
    ck_assert_uint_eq(cpu.quota, 0);
    ck_assert_uint_eq(cpu.throttles, 0); /* nothing stops it now */
}

/* The least quota is what stops the process, and not the one that was stopped for longest. */
DOMT_TEST(throttling_is_that_of_the_least_quota)
{
    domi_cgroup_cpu cpu;

    domt_tree_make(&tree);
    domt_tree_write(&tree, "proc/self/cgroup", "4:cpu:/a/b\n");
    domt_tree_write(&tree, "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "400000\n");
    domt_tree_write(&tree, "sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    domt_tree_write(&tree, "sys/fs/cgroup/cpu/a/cpu.stat",
                    "nr_periods 9\nnr_throttled 9\nthrottled_time 900\n");
    domt_tree_write(&tree, "sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "200000\n");
    domt_tree_write(&tree, "sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n");
    domt_tree_write(&tree, "sys/fs/cgroup/cpu/a/b/cpu.stat",
                    "nr_periods 4\nnr_throttled 2\nthrottled_time 7\n");
    domi_machine_read_cgroup(tree.root, &cpu);
    domt_tree_remove(&tree);
    ck_assert_uint_eq(cpu.quota, 2000);
    ck_assert_uint_eq(cpu.periods, 4);
    ck_assert_uint_eq(cpu.throttles, 2);
    ck_assert_uint_eq(cpu.throttled_ns, 7);
}

DOMT_TEST(files_that_make_no_sense_count_as_nothing)
{
    domi_machine_cpus cpus;
    domi_cgroup_cpu cpu =
        cpu_of("0::/a\n", "sys/fs/cgroup/a/cpu.max", "100 0\n", "sys/fs/cgroup/a/cpu.stat",
               "throttled_usec 99999999999999999999999\nnr_throttled x\n");
    ck_assert_uint_eq(cpu.quota, 0);
    ck_assert_uint_eq(cpu.throttled_ns, 0);
    domt_tree_make(&tree);
    domi_machine_read_cpus(tree.root, &cpus);
    ck_assert_uint_eq(cpus.stolen_ns, 0);
    ck_assert_uint_eq(domi_machine_waiting_ns(tree.root, 7), 0);
    ck_assert_uint_eq(domi_machine_files_open(tree.root), 0);
    domt_tree_write(&tree, "proc/stat", "cpu  1 2 3\n");
    domt_tree_write(&tree, "proc/self/task/7/schedstat", "no\n");
    domi_machine_read_cpus(tree.root, &cpus);
    ck_assert_uint_eq(cpus.stolen_ns, 0);
    ck_assert_uint_eq(domi_machine_waiting_ns(tree.root, 7), 0);
    domt_tree_remove(&tree);
}

DOMT_TEST(stolen_and_waiting_time_are_read)
{
    uint64_t tick_ns = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
    domi_machine_cpus cpus;

    domt_tree_make(&tree);
    domt_tree_write(&tree, "proc/stat", "cpu  1 2 3 4 5 6 7 50 0 0\ncpu0 1 2 3 4 5 6 7 9 0 0\n");
    domt_tree_write(&tree, "proc/self/task/7/schedstat", "11 22 3\n");
    domt_tree_write(&tree, "proc/self/fd/0", "");
    domt_tree_write(&tree, "proc/self/fd/1", "");
    domi_machine_read_cpus(tree.root, &cpus);
    ck_assert_uint_eq(cpus.stolen_ns, 50 * tick_ns);
    ck_assert_uint_eq(cpus.idle_ns, 9 * tick_ns);
    ck_assert_uint_eq(domi_machine_waiting_ns(tree.root, 7), 22);
    ck_assert_uint_eq(domi_machine_files_open(tree.root), 1);
    domt_tree_remove(&tree);
}

DOMT_TEST(a_system_tells_of_its_machine)
{
    struct rlimit limit;
    domus_config config = domt_config(2);
    domus_machine machine;
    domus_thread_times times;

    config.io.backend = DOMUS_BACKEND_EPOLL;
    domus_system *system = domt_start(&config);
    domus_system_machine(system, &machine);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_eq(machine.files_max, limit.rlim_cur);
    ck_assert_uint_ge(machine.cpus, 1);
    ck_assert_uint_ge(machine.cpus_online, machine.cpus);
    ck_assert_uint_gt(machine.cpu_ns, 0);
    ck_assert_uint_ge(machine.files_open, 5);
    ck_assert_str_eq(machine.backend, "epoll");
    ck_assert_str_eq(machine.backend_why, "");
    uint64_t open = machine.files_open;
    int fd = dup(0);
    domus_system_machine(system, &machine);
    ck_assert_uint_eq(machine.files_open, open + 1);
    close(fd);
    ck_assert_int_eq(domus_system_thread_times(system, 2, &times), -EINVAL);
    DOMT_WAIT_FOR(10, domus_system_thread_times(system, 1, &times) == 0 && times.cpu_ns != 0);
    domt_end(system);
}

DOMT_SUITE(60)
