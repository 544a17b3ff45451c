/* runtime/os/cpus.c and machine.c: threads get the CPUs that the configuration asks for, if this
 * process may use them; and the figures of the machine are read in all forms that kernels give
 * them. Quotas and figures come from a directory of the test; the affinity is this process's real
 * one, narrowed in a child where a test needs to know it. */
#include "runtime/os/cpus.h"

#include "tests/runtime/running.h"
#include "tests/support/death.h"
#include "tests/support/deny.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

#include "runtime/os/machine.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NO_QUOTA "/nowhere"

static domus_config config_for_cpus(const char *cpus, uint32_t threads, uint32_t percent)
{
    domus_config config = {0};

    config.system.cpus = cpus;
    config.system.threads = threads;
    config.system.threads_percent = percent;
    return config;
}

static domi_cpus cpus_chosen_for_config(domus_config config, const char *root)
{
    domi_cpus cpus;
    char error[256] = "";

    ck_assert_int_eq(domi_cpus_choose_for_threads(&config, root, &cpus, error, sizeof error), 0);
    ck_assert_str_eq(error, "");
    return cpus;
}

/* Check that the list of CPUs `list` is refused with one line in the log, which contains `word`. */
static void expect_list_is_refused(const char *list, const char *word)
{
    domus_config config = config_for_cpus(list, 0, 0);
    domi_cpus cpus = {.threads = 77};
    char error[256] = "";

    ck_assert_int_eq(domi_cpus_choose_for_threads(&config, NO_QUOTA, &cpus, error, sizeof error),
                     -EINVAL);
    ck_assert_msg(strstr(error, word) != NULL, "%s: %s", list, error);
    ck_assert_ptr_nonnull(strstr(error, "system.cpus"));
    ck_assert_uint_eq(cpus.threads, 77);
    ck_assert_int_eq(domi_cpus_choose_for_threads(&config, NO_QUOTA, &cpus, NULL, 0), -EINVAL);
}

static cpu_set_t cpus_that_process_may_use(void)
{
    cpu_set_t usable;

    ck_assert_int_eq(sched_getaffinity(0, sizeof usable, &usable), 0);
    return usable;
}

static domi_cpus cpus_chosen_with_quota(domus_config config, const char *cpu_max)
{
    domt_tree tree;

    domt_tree_make(&tree);
    domt_tree_write(&tree, "proc/self/cgroup", "0::/a\n");
    domt_tree_write(&tree, "sys/fs/cgroup/a/cpu.max", cpu_max);
    domi_cpus cpus = cpus_chosen_for_config(config, tree.root);
    domt_tree_remove_copy(&tree);
    return cpus;
}

DOMT_TEST(cpus_auto_is_one_thread_per_usable_cpu)
{
    cpu_set_t usable = cpus_that_process_may_use();
    domi_cpus cpus = cpus_chosen_for_config(config_for_cpus("auto", 0, 0), NO_QUOTA);

    ck_assert_int_eq((int)cpus.count, CPU_COUNT(&usable));
    ck_assert_uint_eq(cpus.threads, cpus.count);
    ck_assert_int_eq(cpus.few, cpus.count < 8);
    ck_assert_uint_eq(cpus.quota, 0);
    ck_assert_str_eq(cpus.warning, "");
    for (uint32_t i = 0; i < cpus.count; i++) {
        ck_assert(CPU_ISSET(cpus.cpu[i], &usable));
        ck_assert(i == 0 || cpus.cpu[i] > cpus.cpu[i - 1]);
    }
}

DOMT_TEST(cpus_auto_is_bounded_by_the_quota)
{
    domi_cpus cpus = cpus_chosen_with_quota(config_for_cpus("auto", 0, 0), "50000 100000\n");

    ck_assert_uint_eq(cpus.quota, 1);
    ck_assert_uint_eq(cpus.threads, 1);
    ck_assert(cpus.few);
    ck_assert_uint_ge(cpus.count, 1);
    ck_assert_str_eq(cpus.warning, "");

    cpus = cpus_chosen_with_quota(config_for_cpus("auto", 0, 0), "102400000 100000\n");
    ck_assert_uint_eq(cpus.quota, 1024);
    ck_assert_uint_eq(cpus.threads, cpus.count);
}

DOMT_TEST(cpus_takes_the_number_of_threads_as_it_is)
{
    domi_cpus cpus = cpus_chosen_for_config(config_for_cpus("auto", 1, 0), NO_QUOTA);

    ck_assert_uint_eq(cpus.threads, 1);
    ck_assert_str_eq(cpus.warning, "");
}

DOMT_TEST(cpus_warns_of_more_threads_than_cpus_and_allows_them)
{
    cpu_set_t usable = cpus_that_process_may_use();
    uint32_t many = (uint32_t)CPU_COUNT(&usable) + 1;
    domi_cpus cpus = cpus_chosen_for_config(config_for_cpus("auto", many, 0), NO_QUOTA);
    char number[32];

    snprintf(number, sizeof number, "system.threads is %u", many);
    ck_assert_uint_eq(cpus.threads, many);
    ck_assert(cpus.few);
    ck_assert_uint_eq(cpus.count, many - 1);
    ck_assert_ptr_nonnull(strstr(cpus.warning, number));
    ck_assert_ptr_null(strchr(cpus.warning, '\n'));

    cpus = cpus_chosen_for_config(config_for_cpus("none", many, 0), NO_QUOTA);
    ck_assert_uint_eq(cpus.threads, many);
    ck_assert_ptr_nonnull(strstr(cpus.warning, number));
}

DOMT_TEST(cpus_warns_of_more_threads_than_the_quota)
{
    cpu_set_t usable = cpus_that_process_may_use();
    domi_cpus cpus = cpus_chosen_with_quota(config_for_cpus("auto", 2, 0), "100000 100000\n");

    ck_assert_uint_eq(cpus.threads, 2);
    ck_assert_ptr_nonnull(strstr(cpus.warning, CPU_COUNT(&usable) >= 2 ? "quota" : "more threads"));
}

DOMT_TEST(cpus_rounds_a_percentage_and_keeps_one_thread)
{
    cpu_set_t usable = cpus_that_process_may_use();
    int count = CPU_COUNT(&usable);

    for (uint32_t percent = 1; percent <= 100; percent++) {
        int threads =
            (int)cpus_chosen_for_config(config_for_cpus("auto", 0, percent), NO_QUOTA).threads;
        int off = threads * 100 - count * (int)percent;

        ck_assert_int_ge(threads, 1);
        ck_assert_int_le(off, threads == 1 ? 99 : 50);
        ck_assert_int_ge(off, -49);
    }
    ck_assert_int_eq((int)cpus_chosen_for_config(config_for_cpus("auto", 0, 100), NO_QUOTA).threads,
                     count);
    ck_assert_uint_eq(
        cpus_chosen_with_quota(config_for_cpus("auto", 0, 100), "90000 100000\n").threads, 1);
}

DOMT_TEST(cpus_none_pins_nothing)
{
    cpu_set_t usable = cpus_that_process_may_use();
    domi_cpus cpus = cpus_chosen_for_config(config_for_cpus("none", 0, 0), NO_QUOTA);

    ck_assert_uint_eq(cpus.count, 0);
    ck_assert_int_eq((int)cpus.threads, CPU_COUNT(&usable));
}

DOMT_TEST(cpus_takes_a_list_of_usable_cpus)
{
    domi_cpus usable = cpus_chosen_for_config(config_for_cpus("auto", 0, 0), NO_QUOTA);
    uint16_t last = usable.cpu[usable.count - 1];
    char list[32];

    snprintf(list, sizeof list, "%d,%d", last, last);
    domi_cpus cpus = cpus_chosen_for_config(config_for_cpus(list, 0, 0), NO_QUOTA);
    ck_assert_uint_eq(cpus.count, 1);
    ck_assert_uint_eq(cpus.cpu[0], last);
    ck_assert_uint_eq(cpus.threads, 1);

    cpus = cpus_chosen_for_config(config_for_cpus(list, 3, 0), NO_QUOTA);
    ck_assert_uint_eq(cpus.threads, 3);
    ck_assert_ptr_nonnull(strstr(cpus.warning, "more threads than CPUs"));
}

DOMT_TEST(cpus_refuses_a_list_it_cannot_use)
{
    expect_list_is_refused("8191", "8191 is not usable");
    expect_list_is_refused("0-2000", "list");
    expect_list_is_refused("", "list");
    expect_list_is_refused("all", "list");
    expect_list_is_refused("0,", "list");
}

/* Choose CPUs by the real files of this machine, in a process that may use one CPU only. */
static void check_choice_on_one_cpu(void *context)
{
    cpu_set_t usable = cpus_that_process_may_use(), one;
    unsigned last = 0;
    char list[32];

    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &usable))
            last = cpu;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);

    domi_cpus cpus = cpus_chosen_for_config(config_for_cpus("auto", 0, 0), "");
    ck_assert_uint_eq(cpus.threads, 1);
    ck_assert_uint_eq(cpus.count, 1);
    ck_assert_uint_eq(cpus.cpu[0], last);
    ck_assert_str_eq(cpus.warning, "");

    /* The list names a CPU that most machines have, but that this process may not use. */
    snprintf(list, sizeof list, "%d", last == 0);
    expect_list_is_refused(list, "not usable");
    snprintf(list, sizeof list, "0-%u", last == 0 ? 1 : last);
    expect_list_is_refused(list, "not usable");
}

DOMT_TEST(cpus_respects_the_affinity_of_the_process)
{
    static char said[DOMT_SAID_MAX];

    ck_assert_int_eq(domt_run_in_child(check_choice_on_one_cpu, NULL, said), 0);
}

/* Choose CPUs while the system call that reads the affinity is refused; the only line of the log
 * says what is missing and what is done instead. */
static void check_choice_without_affinity(void *context)
{
    ck_assert_int_eq(domt_deny_system_call(SYS_sched_getaffinity, EPERM), 0);
    domi_cpus cpus = cpus_chosen_with_quota(config_for_cpus("auto", 1024, 0), "100000 100000\n");
    ck_assert_uint_eq(cpus.threads, 1024);
    ck_assert_ptr_nonnull(strstr(cpus.warning, "sched_getaffinity is refused"));
    ck_assert_ptr_nonnull(
        strstr(cpus.warning, "; system.threads is 1024, but the CPU quota of the cgroup is 1"));
    cpus = cpus_chosen_with_quota(config_for_cpus("auto", 1, 0), "100000 100000\n");
    ck_assert_ptr_nonnull(strstr(cpus.warning, "sched_getaffinity is refused"));
    ck_assert_ptr_null(strstr(cpus.warning, "quota"));
    cpus = cpus_chosen_with_quota(config_for_cpus("auto", 1024, 0), "max 100000\n");
    ck_assert_ptr_null(strstr(cpus.warning, "quota"));
}

DOMT_TEST(cpus_warns_of_the_quota_also_where_the_affinity_is_not_known)
{
    static char said[DOMT_SAID_MAX];

    ck_assert_msg(domt_run_in_child(check_choice_without_affinity, NULL, said) == 0, "%s", said);
}

static void expect_list_is_parsed_as(const char *list, const uint16_t *expected, int count)
{
    uint16_t cpu[8];

    ck_assert_int_eq(domi_cpus_parse_list(list, cpu, 8), count);
    for (int i = 0; i < count; i++)
        ck_assert_uint_eq(cpu[i], expected[i]);
}

DOMT_TEST(cpus_parse_reads_numbers_and_ranges)
{
    expect_list_is_parsed_as("0", (uint16_t[]){0}, 1);
    expect_list_is_parsed_as("0-3,8", (uint16_t[]){0, 1, 2, 3, 8}, 5);
    expect_list_is_parsed_as("8,2-3,0", (uint16_t[]){8, 2, 3, 0}, 4);
    expect_list_is_parsed_as("5-5", (uint16_t[]){5}, 1);
    expect_list_is_parsed_as("1,1,0-2,2-3", (uint16_t[]){1, 0, 2, 3}, 4);
    expect_list_is_parsed_as("8191", (uint16_t[]){8191}, 1);
    expect_list_is_parsed_as("0-7,0-7", (uint16_t[]){0, 1, 2, 3, 4, 5, 6, 7}, 8);
}

DOMT_TEST(cpus_parse_refuses_what_is_no_list)
{
    static const char *const lists[] = {"",       ",",       "-",
                                        "1-",     "-1",      "1,",
                                        ",1",     "1,,2",    "3-1",
                                        "1--2",   "1-2-3",   "a",
                                        "1a",     "1 ",      " 1",
                                        "1, 2",   "+1",      "0x1",
                                        "1.5",    "8192",    "0-8",
                                        "0-8192", "0-99999", "9,0-7",
                                        "1\n",    "1;2",     "18446744073709551617"};

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        uint16_t cpu[8] = {77, 77};

        ck_assert_msg(domi_cpus_parse_list(lists[i], cpu, 8) == -EINVAL, "\"%s\"", lists[i]);
        ck_assert_msg(cpu[0] == 77 && cpu[1] == 77, "\"%s\" was written", lists[i]);
    }
}

/* --- figures of the machine ------------------------------------------------------------------- */

static domt_tree tree;

static domi_cgroup_cpu quota_and_shares_of_cgroup(const char *cgroup, const char *path,
                                                  const char *text, const char *other,
                                                  const char *other_text)
{
    domi_cgroup_cpu cpu;

    domt_tree_make(&tree);
    domt_tree_write(&tree, "proc/self/cgroup", cgroup);
    domt_tree_write(&tree, path, text);
    domt_tree_write(&tree, other, other_text);
    domi_machine_read_cgroup(tree.root, &cpu);
    domt_tree_remove_copy(&tree);
    return cpu;
}

DOMT_TEST(quota_and_throttling_of_both_versions_are_read)
{
    domi_cgroup_cpu cpu = quota_and_shares_of_cgroup(
        "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max", "150000 100000\n", "sys/fs/cgroup/a/b/cpu.stat",
        "nr_periods 8\nnr_throttled 3\nthrottled_usec 2000\n");
    ck_assert_uint_eq(cpu.quota, 1500);
    ck_assert_uint_eq(cpu.throttles, 3);
    ck_assert_uint_eq(cpu.periods, 8);
    ck_assert_uint_eq(cpu.throttled_ns, 2000000);
    cpu =
        quota_and_shares_of_cgroup("4:cpu:/a\n", "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000\n",
                                   "sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    ck_assert_uint_eq(cpu.quota, 500);
    ck_assert_uint_eq(cpu.throttles, 0);
    cpu = quota_and_shares_of_cgroup("4:cpu:/a\n", "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n",
                                     "sys/fs/cgroup/cpu/a/cpu.stat",
                                     "nr_throttled 2\nthrottled_time 7\n");
    ck_assert_uint_eq(cpu.quota, 0);
    ck_assert_uint_eq(cpu.throttles, 0); /* at present no quota throttles the process */
}

/* The figures of throttling are those of the least quota, which is the one that throttles the
 * process, and not those of the quota with the longest throttling. */
DOMT_TEST(throttling_counts_are_those_of_the_least_cpu_quota)
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
    domt_tree_remove_copy(&tree);
    ck_assert_uint_eq(cpu.quota, 2000);
    ck_assert_uint_eq(cpu.periods, 4);
    ck_assert_uint_eq(cpu.throttles, 2);
    ck_assert_uint_eq(cpu.throttled_ns, 7);
}

DOMT_TEST(cgroup_files_that_make_no_sense_count_as_nothing)
{
    domi_machine_cpus cpus;
    domi_cgroup_cpu cpu = quota_and_shares_of_cgroup(
        "0::/a\n", "sys/fs/cgroup/a/cpu.max", "100 0\n", "sys/fs/cgroup/a/cpu.stat",
        "throttled_usec 99999999999999999999999\nnr_throttled x\n");
    ck_assert_uint_eq(cpu.quota, 0);
    ck_assert_uint_eq(cpu.throttled_ns, 0);
    domt_tree_make(&tree);
    domi_machine_read_cpus(tree.root, &cpus);
    ck_assert_uint_eq(cpus.stolen_ns, 0);
    ck_assert_uint_eq(domi_machine_read_wait_of_thread(tree.root, 7), 0);
    ck_assert_uint_eq(domi_machine_count_open_files(tree.root), 0);
    domt_tree_write(&tree, "proc/stat", "cpu  1 2 3\n");
    domt_tree_write(&tree, "proc/self/task/7/schedstat", "no\n");
    domi_machine_read_cpus(tree.root, &cpus);
    ck_assert_uint_eq(cpus.stolen_ns, 0);
    ck_assert_uint_eq(domi_machine_read_wait_of_thread(tree.root, 7), 0);
    domt_tree_remove_copy(&tree);
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
    ck_assert_uint_eq(domi_machine_read_wait_of_thread(tree.root, 7), 22);
    ck_assert_uint_eq(domi_machine_count_open_files(tree.root), 1);
    domt_tree_remove_copy(&tree);
}

DOMT_TEST(a_system_tells_of_its_machine)
{
    struct rlimit limit;
    domus_config config = domt_config_of_threads(2);
    domus_machine machine;
    domus_thread_times times;

    config.io.backend = DOMUS_BACKEND_EPOLL;
    domus_system *system = domt_start_system(&config);
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
    domt_end_system(system);
}

DOMT_SUITE(60)
