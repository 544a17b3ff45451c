/* runtime/control/system_life.c: a system from its making to its free, in every order of calls that
 * a program may try. A start that fails leaves nothing. */
#include "base/memory.h"
#include "tests/runtime/running.h"
#include "tests/support/deny.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static domus_system *make_system_of_threads(uint32_t threads)
{
    domus_config config = domt_config_of_threads(threads);
    domus_system *system = NULL;
    ck_assert_int_eq(domus_system_new(&config, NULL, 0, &system), 0);
    return system;
}

static void expect_one_line(const char *text)
{
    ck_assert_msg(text[0] != '\0' && strchr(text, '\n') == NULL, "not one line: '%s'", text);
}

DOMT_TEST(calls_of_a_system_may_come_in_any_order)
{
    domus_system_free(NULL);
    domus_system_free(make_system_of_threads(1)); /* frees a system that was never started */

    domus_system *system = make_system_of_threads(2);
    ck_assert_str_eq(domus_system_error(system), "");
    ck_assert_int_eq(domus_system_stop(system), 0); /* a stop before the start does nothing */
    ck_assert_int_eq(domus_system_start(system), 0);
    ck_assert_int_eq(domus_system_start(system), -EALREADY);
    expect_one_line(domus_system_error(system));
    ck_assert_int_eq(domus_system_stop(system), 0);
    ck_assert_int_eq(domus_system_stop(system), 0);
    ck_assert_int_eq(domus_system_start(system), -EALREADY);
    domus_system_free(system);

    system = make_system_of_threads(2);
    ck_assert_int_eq(domus_system_start(system), 0);
    domus_system_free(system); /* this call also stops the system */
}

DOMT_TEST(wrong_configuration_makes_nothing_and_says_one_line)
{
    domus_config config = domt_config_of_threads(1);
    domus_system *system = NULL;
    char error[256] = "";
    char cut[8];

    config.scheduler.io_ratio = 101;
    ck_assert_int_eq(domus_system_new(&config, error, sizeof error, &system), -EINVAL);
    expect_one_line(error);
    memset(cut, 'x', sizeof cut);
    ck_assert_int_eq(domus_system_new(&config, cut, sizeof cut, &system), -EINVAL);
    ck_assert_uint_eq(strlen(cut), sizeof cut - 1);
    ck_assert_int_eq(domus_system_new(&config, NULL, 0, &system), -EINVAL);

    config = domt_config_of_threads(1);
    config.system.cpus = "9999";
    ck_assert_int_eq(domus_system_new(&config, error, sizeof error, &system), -EINVAL);
    expect_one_line(error);
    ck_assert_ptr_null(system);
}

DOMT_TEST(failed_start_leaves_nothing_and_may_be_tried_again)
{
    domus_system *system = make_system_of_threads(3);
    uint32_t files = domt_count_directory_entries("/proc/self/fd");
    struct rlimit before, few;
    int next = dup(0);

    ck_assert_int_ge(next, 0);
    close(next);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    /* in each round, fewer descriptors than an eventfd and a ring for each thread need */
    for (rlim_t room = 0; room < 6; room++) {
        few.rlim_cur = (rlim_t)next + room;
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
        ck_assert_int_eq(domus_system_start(system), -EMFILE);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        expect_one_line(domus_system_error(system));
        ck_assert_uint_eq(domt_count_directory_entries("/proc/self/fd"), files);
        ck_assert_int_eq(domus_system_stop(system), 0);
    }
    ck_assert_int_eq(domus_system_start(system), 0);
    domt_end_system(system);

    system = make_system_of_threads(2);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    few.rlim_cur = (rlim_t)next + 1;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    ck_assert_int_eq(domus_system_start(system), -EMFILE);
    domus_system_free(system);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    ck_assert_uint_eq(domt_count_directory_entries("/proc/self/fd"), files);
}

/* From now on let the enabling of each ring fail whose descriptor is `fd` or a higher number. */
static void let_enabling_of_rings_fail_from(int fd)
{
    enum { ENABLE_RINGS = 12 };
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_register, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ENABLE_RINGS, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (unsigned)fd, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof rules / sizeof rules[0], .filter = rules};

    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* Some threads already run when another one cannot enable its ring; then all of them must end. */
DOMT_TEST(start_fails_whole_when_one_thread_cannot_enable_its_ring)
{
    domus_system *system = make_system_of_threads(3);
    uint32_t files = domt_count_directory_entries("/proc/self/fd");
    int next = dup(0);

    ck_assert_int_ge(next, 0);
    close(next);
    /* `next` to `next` + 3 are the eventfds and rings of the first two threads */
    let_enabling_of_rings_fail_from(next + 4);
    ck_assert_int_eq(domus_system_start(system), -EPERM);
    expect_one_line(domus_system_error(system));
    ck_assert_ptr_nonnull(strstr(domus_system_error(system), "seccomp"));
    domus_system_free(system);
    ck_assert_uint_eq(domt_count_directory_entries("/proc/self/fd"), files);
}

DOMT_TEST(a_system_that_cannot_be_made_says_why)
{
    domus_config config = domt_config_of_threads(1);
    domus_system *system = NULL;
    char error[256] = "left over";

    /* A filter that does not know a system call may answer that the kernel does not have it. */
    ck_assert_int_eq(domt_deny_system_call(SYS_getrandom, ENOSYS), 0);
    ck_assert_int_eq(domus_system_new(&config, error, sizeof error, &system), -ENOSYS);
    expect_one_line(error);
    ck_assert_ptr_nonnull(strstr(error, "no random numbers: getrandom: "));
    ck_assert_ptr_nonnull(strstr(error, strerror(ENOSYS)));
    ck_assert_int_eq(domus_system_new(&config, NULL, 0, &system), -ENOSYS);
}

DOMT_TEST(failed_allocation_is_an_error_wherever_it_happens)
{
    domus_config config = domt_config_of_threads(2);
    int64_t count = 0;
    int result = -1;

    for (; result != 0 && count < 1000; count++) {
        domus_system *system = NULL;
        char error[256] = "";

        domi_memory_fail_allocation_after(count, 0);
        result = domus_system_new(&config, error, sizeof error, &system);
        if (result == 0 && (result = domus_system_start(system)) != 0)
            memcpy(error, domus_system_error(system), sizeof error);
        domi_memory_fail_allocation_after(-1, 0);
        if (result != 0) {
            ck_assert_int_eq(result, -ENOMEM);
            expect_one_line(error);
        }
        domus_system_free(system);
    }
    ck_assert_int_eq(result, 0);
    ck_assert_int_ge(count, 10);
}

/* --- what runs -------------------------------------------------------------------------------- */

static const domus_type add_type = {.name = "add", .size = sizeof(uint64_t)};

struct adder {
    _Atomic uint64_t *sum;
};

static int add_number_to_sum(domus_stack *stack, void *self_, const void *payload)
{
    struct adder *self = self_;
    atomic_fetch_add(self->sum, *(const uint64_t *)payload);
    return 0;
}

static const domus_behaviour adder = {
    .name = "adder",
    .state_size = sizeof(struct adder),
    .on = (const domus_on[]){{&add_type, add_number_to_sum, 0}, {0}},
    .on_mount = domt_count_mount,
    .on_stop = domt_count_stop};

DOMT_TEST(several_systems_run_in_one_process)
{
    enum { SYSTEMS = 3 };
    domus_system *systems[SYSTEMS];
    _Atomic uint64_t sums[SYSTEMS] = {0};
    domus_address addresses[SYSTEMS];

    for (uint32_t i = 0; i < SYSTEMS; i++) {
        domus_config config = domt_config_of_threads(i + 1);
        systems[i] = domt_start_system(&config);
        addresses[i] = domt_spawn(systems[i], i, &adder, &(struct adder){&sums[i]});
    }
    for (uint64_t value = 1; value <= 100; value++) {
        for (uint32_t i = 0; i < SYSTEMS; i++) {
            uint64_t scaled = value << i;
            domt_send_notice(systems[i], addresses[i], &add_type, &scaled);
        }
    }
    for (uint32_t i = 0; i < SYSTEMS; i++)
        DOMT_WAIT_FOR(10, atomic_load(&sums[i]) == UINT64_C(5050) << i);
    domt_end_system(systems[1]); /* the end of one system does not affect the others */
    domt_send_notice(systems[2], addresses[2], &add_type, &(uint64_t){1});
    DOMT_WAIT_FOR(10, atomic_load(&sums[2]) == (UINT64_C(5050) << 2) + 1);
    domt_end_system(systems[2]);
    domt_end_system(systems[0]);
    ck_assert_uint_eq(atomic_load(&domt_stopped), SYSTEMS);
}

static const int numbers[] = {SIGUSR1, SIGTERM, SIGINT, SIGCHLD, SIGHUP, SIGPIPE, SIGALRM};
#define NUMBERS (sizeof numbers / sizeof numbers[0])

static pthread_t signalled;
static atomic_int signals_here, signals_elsewhere;

static void count_signal_here_or_elsewhere(int number)
{
    atomic_fetch_add(pthread_equal(pthread_self(), signalled) ? &signals_here : &signals_elsewhere,
                     1);
}

/* The signal mask of a thread of the system, as a handler on it has recorded it. */
static sigset_t seen_mask;
static atomic_bool mask_told;

static int record_signal_mask_of_thread(domus_stack *stack, void *self)
{
    pthread_sigmask(SIG_SETMASK, NULL, &seen_mask);
    atomic_store(&mask_told, true);
    return 0;
}

static const domus_behaviour mask_teller = {.name = "mask",
                                            .on_mount = record_signal_mask_of_thread};

static bool is_signal_of_fault(int number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL ||
           number == SIGABRT || number == SIGTRAP;
}

static void check_thread_blocks_all_but_faults(domus_system *system, uint32_t thread)
{
    atomic_store(&mask_told, false);
    (void)domt_spawn(system, thread, &mask_teller, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&mask_told));
    for (int number = 1; number <= SIGSYS; number++) {
        if (number != SIGKILL && number != SIGSTOP)
            ck_assert_int_eq(sigismember(&seen_mask, number), !is_signal_of_fault(number));
    }
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        ck_assert_int_eq(sigismember(&seen_mask, number), 1);
}

DOMT_TEST(signals_stay_with_the_threads_of_the_caller)
{
    struct sigaction action = {.sa_handler = count_signal_here_or_elsewhere};
    sigset_t before, after;

    signalled = pthread_self();
    for (size_t i = 0; i < NUMBERS; i++)
        ck_assert_int_eq(sigaction(numbers[i], &action, NULL), 0);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    domus_system *system = domt_start_system_of_threads(3);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int number = 1; number < NSIG; number++)
        ck_assert_int_eq(sigismember(&before, number), sigismember(&after, number));

    for (uint32_t thread = 0; thread < 3; thread++)
        check_thread_blocks_all_but_faults(system, thread);
    for (int round = 0; round < 10; round++) {
        for (size_t i = 0; i < NUMBERS; i++)
            ck_assert_int_eq(kill(getpid(), numbers[i]), 0);
    }
    ck_assert_int_gt(atomic_load(&signals_here), 0);
    ck_assert_int_eq(atomic_load(&signals_elsewhere), 0);
    domt_end_system(system);
}

/* --- where it runs ---------------------------------------------------------------------------- */

struct place {
    cpu_set_t cpus;
    char name[16];
    atomic_bool told;
};

struct scout {
    struct place *place;
};

static int record_cpus_and_name_of_thread(domus_stack *stack, void *self_)
{
    struct scout *self = self_;
    (void)sched_getaffinity(0, sizeof self->place->cpus, &self->place->cpus);
    (void)pthread_getname_np(pthread_self(), self->place->name, sizeof self->place->name);
    atomic_store(&self->place->told, true);
    return 0;
}

static const domus_behaviour scout = {.name = "scout",
                                      .state_size = sizeof(struct scout),
                                      .on_mount = record_cpus_and_name_of_thread};

static void check_cpus_and_name_of_thread(domus_system *system, uint32_t thread,
                                          struct place *place)
{
    char name[16];
    atomic_store(&place->told, false);
    (void)domt_spawn(system, thread, &scout, &(struct scout){place});
    DOMT_WAIT_FOR(10, atomic_load(&place->told));
    snprintf(name, sizeof name, "domus-%u", thread);
    ck_assert_str_eq(place->name, name);
}

DOMT_TEST(threads_are_pinned_as_told_and_named)
{
    domus_config config = domt_config_of_threads(3);
    cpu_set_t own;
    struct place place;
    char list[32];
    size_t last = CPU_SETSIZE - 1;

    ck_assert_int_eq(sched_getaffinity(0, sizeof own, &own), 0);
    while (!CPU_ISSET(last, &own))
        last--;
    snprintf(list, sizeof list, "%zu", last);
    config.system.cpus = list;
    domus_system *system = domt_start_system(&config);
    for (uint32_t thread = 0; thread < 3; thread++) {
        check_cpus_and_name_of_thread(system, thread, &place);
        ck_assert_int_eq(CPU_COUNT(&place.cpus), 1);
        ck_assert(CPU_ISSET(last, &place.cpus));
    }
    domt_end_system(system);

    config.system.cpus = "none";
    system = domt_start_system(&config);
    check_cpus_and_name_of_thread(system, 2, &place);
    ck_assert(CPU_EQUAL(&place.cpus, &own));
    domt_end_system(system);

    config.system.cpus = "auto";
    config.system.threads = 0;
    system = domt_start_system(&config);
    ck_assert_uint_le(domus_system_threads(system), (uint32_t)CPU_COUNT(&own));
    for (uint32_t thread = 0; thread < domus_system_threads(system); thread++) {
        check_cpus_and_name_of_thread(system, thread, &place);
        ck_assert_int_eq(CPU_COUNT(&place.cpus), 1);
        ck_assert(CPU_ISSET(thread, &place.cpus) || (size_t)CPU_COUNT(&own) <= last);
    }
    domt_end_system(system);
}

DOMT_TEST(more_threads_than_cpus_work_and_are_warned_of)
{
    cpu_set_t own;
    _Atomic uint64_t sum = 0;

    ck_assert_int_eq(sched_getaffinity(0, sizeof own, &own), 0);
    uint32_t threads = 2 * (uint32_t)CPU_COUNT(&own) + 1;
    domus_config config = domt_config_of_threads(threads);
    config.system.cpus = "auto";
    domus_system *system = domt_start_system(&config);
    expect_one_line(domus_system_warning(system));
    for (uint32_t i = 0; i < threads; i++) {
        domus_address address = domt_spawn(system, i, &adder, &(struct adder){&sum});
        domt_send_notice(system, address, &add_type, &(uint64_t){1});
    }
    DOMT_WAIT_FOR(10, atomic_load(&sum) == threads);
    domt_end_system(system);

    config = domt_config_of_threads(1);
    config.system.cpus = "auto";
    system = domt_start_system(&config);
    ck_assert_str_eq(domus_system_warning(system), "");
    domt_end_system(system);
}

DOMT_TEST(configuration_is_copied_with_its_strings)
{
    char cpus[] = "none";
    char name[] = "front";
    char address[] = "127.0.0.1:0";
    domus_listener_config listener = {.name = name, .address = address, .backlog = 16};
    domus_config config = domt_config_of_threads(1);
    domus_system *system = NULL;

    config.system.cpus = cpus;
    config.listeners = &listener;
    config.listener_count = 1;
    ck_assert_int_eq(domus_system_new(&config, NULL, 0, &system), 0);
    memset(cpus, 'x', sizeof cpus - 1);
    memset(name, 'x', sizeof name - 1);
    memset(address, 'x', sizeof address - 1);
    memset(&listener, 0xff, sizeof listener);
    memset(&config, 0xff, sizeof config);

    const domus_config *copy = domus_system_config(system);
    ck_assert_str_eq(copy->system.cpus, "none");
    ck_assert_uint_eq(copy->listener_count, 1);
    ck_assert_str_eq(copy->listeners[0].name, "front");
    ck_assert_str_eq(copy->listeners[0].address, "127.0.0.1:0");
    ck_assert_uint_eq(copy->listeners[0].backlog, 16);
    ck_assert_uint_eq(copy->scheduler.io_ratio, 50);
    ck_assert_int_eq(domus_system_start(system), 0);
    domt_end_system(system);
}

DOMT_SUITE(60)
