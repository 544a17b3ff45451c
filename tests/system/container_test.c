/* Echo in containers that lack something: it starts, says in one line what it does without, and
 * serves; or it cannot run without that, and one line says so. The containers are made without a
 * container program (tests/support/container.h). */
#include "tests/support/container.h"
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static domt_service service;
static domt_container container;

static void enter_container(void)
{
    domt_container_enter(&container);
}

static void check_service_echoes(void)
{
    char bytes[6] = "";
    int fd = domt_connect_to_port(service.port);

    ck_assert_int_eq(send(fd, "bytes", 5, MSG_NOSIGNAL), 5);
    ck_assert_int_eq(recv(fd, bytes, 5, MSG_WAITALL), 5);
    ck_assert_str_eq(bytes, "bytes");
    close(fd);
}

/* Returns how many lines of the service's errors begin with this text. */
static unsigned count_lines(const char *start)
{
    unsigned count = 0;

    for (const char *line = service.error; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        count += strncmp(line, start, strlen(start)) == 0;
    }
    return count;
}

/* Start echo in the container, and check that it serves, ends without an error, and prints `lines`
 * warnings, one of which contains `says`. */
static void expect_echo_serves_with_warnings(const char *name, const char *backend, unsigned lines,
                                             const char *says)
{
    service.prepare = enter_container;
    domt_service_start(&service,
                       DOMT_ECHO_ARGUMENTS("--set", "system.threads=2", "--set", backend, ));
    check_service_echoes();
    domt_service_stop(&service);
    ck_assert_msg(count_lines("echo: warning: ") == lines && count_lines("echo: error: ") == 0,
                  "%s: %s", name, service.error);
    ck_assert_msg(says == NULL || strstr(service.error, says) != NULL, "%s: '%s' is not in: %s",
                  name, says, service.error);
}

/* Start echo in the container, and check that it ends with status 1 and a line that contains
 * `says`, after `lines` warnings. */
static void expect_end_with_status_1(const char *name, const char *backend, unsigned lines,
                                     const char *says)
{
    service.prepare = enter_container;
    domt_service_spawn(&service, DOMT_ECHO_ARGUMENTS("--set", backend, ));
    int status = domt_service_wait(&service, 10000);
    ck_assert_msg(status == 1, "%s: it ended with %d: %s", name, status, service.error);
    ck_assert_msg(count_lines("echo: ") == lines + 1, "%s: %s", name, service.error);
    ck_assert_msg(strstr(service.error, says) != NULL, "%s: '%s' is not in: %s", name, says,
                  service.error);
}

/* --- roots ------------------------------------------------------------------------------------ */

#define NO_RING "warning: epoll is used, which is slower (io.backend: auto): io_uring is refused"
#define NO_SYS  "there is no /sys/fs/cgroup: limits of CPU and memory are not seen"
#define NO_PROC "there is no /proc: used memory is not measured, so memory.limit does nothing"

static const long ring_calls[] = {SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
                                  -1};

/* A sanitizer reads /proc before main(), so a container without /proc is not tested with one. */
#if DOMT_SANITIZED
#define HAS_PROC true
#else
#define HAS_PROC false
#endif

DOMT_TEST(in_a_root_of_its_own_echo_serves_and_says_what_is_missing)
{
    static const struct {
        const char *name;
        domt_container container;
        unsigned lines;
        const char *says;
    } cases[] = {
        {"read-only root, no /dev, no /sys", {.has_root = true, .has_proc = true}, 1, NO_SYS},
        {"the same, and a /sys without cgroups",
         {.has_root = true, .has_proc = true, .has_bare_sys = true},
         0,
         NULL},
        {"read-only root, no /dev", {.has_root = true, .has_proc = true, .has_sys = true}, 0, NULL},
        {"the same, and io_uring is refused",
         {.has_root = true,
          .has_proc = true,
          .has_sys = true,
          .denied = ring_calls,
          .denied_with = EPERM},
         1,
         NO_RING},
        {"the same, as a kernel without it",
         {.has_root = true,
          .has_proc = true,
          .has_sys = true,
          .denied = ring_calls,
          .denied_with = ENOSYS},
         1,
         NO_RING},
        {"no /proc, but /sys", {.has_root = true, .has_sys = true}, 1, NO_PROC},
        {"neither", {.has_root = true}, 2, NO_PROC},
        {"neither, and io_uring is refused",
         {.has_root = true, .denied = ring_calls, .denied_with = EPERM},
         3,
         NO_RING},
        {"256 descriptors",
         {.has_root = true, .has_proc = true, .has_sys = true, .nofile = 256},
         1,
         "because this process may have 256 descriptors: raise the limit"},
    };

    if (!domt_container_is_allowed())
        return;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        container = cases[i].container;
        if (container.has_proc || !HAS_PROC)
            expect_echo_serves_with_warnings(cases[i].name, "io.backend=auto", cases[i].lines,
                                             cases[i].says);
    }
}

/* The image of packaging/container: a static program and its configuration. */
DOMT_TEST(an_image_with_two_files_serves)
{
    static const char program[] = DOMT_BIN_DIR "/tests/echo_static";
    static const char *const arguments[] = {
        program, "--config", "/echo.yaml", "--set", "listeners.echo.address=127.0.0.1:0", NULL};

    if (access(program, X_OK) != 0) {
        fprintf(stderr, "no echo without shared libraries in this build; skipped\n");
        return;
    }
    if (!domt_container_is_allowed())
        return;
    container = (domt_container){.has_root = true,
                                 .only = DOMT_SOURCE_DIR "/packaging/container/echo.yaml",
                                 .denied = ring_calls,
                                 .denied_with = EPERM};
    service.prepare = enter_container;
    domt_service_start(&service, arguments);
    check_service_echoes();
    domt_service_stop(&service);
    ck_assert_msg(count_lines("echo_static: ") + count_lines("echo: ") == 4, "%s", service.error);
    ck_assert_ptr_nonnull(strstr(service.error, NO_PROC));
    ck_assert_ptr_nonnull(strstr(service.error, NO_SYS));
    ck_assert_ptr_nonnull(strstr(service.error, NO_RING));
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "accepted"), 1);
}

DOMT_TEST(without_locked_memory_a_ring_is_an_error_that_names_epoll_and_epoll_serves)
{
    if (!domt_container_is_allowed())
        return;
    container = (domt_container){.has_root = true, .has_proc = true, .has_sys = true, .memlock = 1};
    expect_end_with_status_1("no locked memory", "io.backend=auto", 0,
                             "or set io.backend to epoll");
    expect_echo_serves_with_warnings("no locked memory, epoll", "io.backend=epoll", 0, NULL);
}

/* --- refused calls ---------------------------------------------------------------------------- */

#define ENDS true

typedef struct refused_call {
    const char *name;
    long call;
    const char *backend; /* the backend that --set chooses; NULL: both, one after the other */
    const char *says;    /* text in the warning about the refused call; NULL: no warning */
    bool ends;
} refused_call;

#define CALL(name) #name, SYS_##name
/* Newer processors such as aarch64 lack the first system call of each pair; the C library uses the
 * second one there. */
#ifdef SYS_epoll_wait
#define CALL_WAIT CALL(epoll_wait)
#define CALL_POLL CALL(poll)
#else
#define CALL_WAIT CALL(epoll_pwait)
#define CALL_POLL CALL(ppoll)
#endif
#define URING        "io.backend=uring"
#define EPOLL        "io.backend=epoll"
#define NEEDED_EPOLL "a call that epoll needs is refused"

static const refused_call told[] = {
    {CALL(sched_setaffinity), NULL, "threads are not pinned to CPUs: sched_setaffinity", false},
    {CALL(sched_getaffinity), NULL, "threads are not pinned, and CPUs are taken", false},
    {CALL(eventfd2), NULL, "eventfd: ", ENDS},
    {CALL(getrandom), NULL, "no random numbers: getrandom: ", ENDS},
    {CALL(socket), NULL, "listener echo: 127.0.0.1:0: ", ENDS},
    {CALL(bind), NULL, "listener echo: 127.0.0.1:0: ", ENDS},
    {CALL(listen), NULL, "listener echo: 127.0.0.1:0: ", ENDS},
    {CALL(setsockopt), NULL, "listener echo: 127.0.0.1:0: ", ENDS},
    {CALL(epoll_create1), EPOLL, NEEDED_EPOLL, ENDS},
    {CALL(epoll_ctl), EPOLL, NEEDED_EPOLL, ENDS},
    {CALL_WAIT, EPOLL, NEEDED_EPOLL, ENDS},
    {CALL(fcntl), EPOLL, NEEDED_EPOLL, ENDS},
    {CALL(accept4), EPOLL, NEEDED_EPOLL, ENDS},
    {CALL(recvfrom), EPOLL, NEEDED_EPOLL, ENDS},
    {CALL(recvmsg), EPOLL, NEEDED_EPOLL, ENDS},
    {CALL(sendto), EPOLL, NEEDED_EPOLL, ENDS},
    {CALL(sendmsg), EPOLL, NEEDED_EPOLL, ENDS},
    {CALL(io_uring_setup), URING, "io_uring is refused", ENDS},
};

/* A sanitizer makes system calls of its own, and cannot run when these are refused. */
static bool may_refuse_calls_in_this_build(void)
{
    if (!DOMT_SANITIZED)
        return true;
    fprintf(stderr, "a sanitizer does not do without calls; skipped\n");
    return false;
}

/* Start echo in a container that refuses a row's system call by one error. */
static void start_echo_with_refused_call(const refused_call *row, const char *backend, int error)
{
    const long calls[] = {row->call, -1};

    container = (domt_container){.denied = calls, .denied_with = error};
    if (row->ends)
        expect_end_with_status_1(row->name, backend, 0, row->says);
    else
        expect_echo_serves_with_warnings(row->name, backend, row->says != NULL, row->says);
    ck_assert_ptr_null(strstr(service.error, "CPUs are taken to be 0:"));
}

static void refuse_calls_one_by_one(const refused_call *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (rows[i].backend == NULL || strcmp(rows[i].backend, URING) == 0) {
            start_echo_with_refused_call(&rows[i], URING, EPERM);
            start_echo_with_refused_call(&rows[i], URING, ENOSYS);
        }
        if (rows[i].backend == NULL || strcmp(rows[i].backend, EPOLL) == 0) {
            start_echo_with_refused_call(&rows[i], EPOLL, EPERM);
            start_echo_with_refused_call(&rows[i], EPOLL, ENOSYS);
        }
    }
}

DOMT_TEST(a_refused_call_that_matters_is_told_in_one_line)
{
    if (!may_refuse_calls_in_this_build())
        return;
    refuse_calls_one_by_one(told, sizeof told / sizeof told[0]);
}

/* System calls of the library, or of the libraries it uses, whose refusal has no visible effect. */
static const refused_call unneeded[] = {
    {CALL(timer_create), NULL, NULL, false},
    {CALL(timer_settime), NULL, NULL, false},
    {CALL(madvise), NULL, NULL, false},
    {CALL(membarrier), NULL, NULL, false},
    {CALL(memfd_create), NULL, NULL, false},
    {CALL(statx), NULL, NULL, false},
    {CALL(openat2), NULL, NULL, false},
    {CALL(getsockopt), NULL, NULL, false},
    {CALL(getdents64), NULL, NULL, false},
    {CALL(prlimit64), NULL, NULL, false},
    {CALL(sigaltstack), NULL, NULL, false},
    {CALL(uname), NULL, NULL, false},
    {CALL(sysinfo), NULL, NULL, false},
    {CALL(tgkill), NULL, NULL, false},
    {CALL(gettid), NULL, NULL, false},
    {CALL(getcpu), NULL, NULL, false},
    {CALL(epoll_pwait2), NULL, NULL, false},
    {CALL(perf_event_open), NULL, NULL, false},
    {CALL(pidfd_open), NULL, NULL, false},
    {CALL(signalfd4), NULL, NULL, false},
    {CALL(timerfd_create), NULL, NULL, false},
    {CALL(mlock), NULL, NULL, false},
    {CALL(ioctl), NULL, NULL, false},
    {CALL(shutdown), NULL, NULL, false},
    {CALL(clock_nanosleep), NULL, NULL, false},
    {CALL_POLL, NULL, NULL, false},
    {CALL(set_robust_list), NULL, NULL, false},
    {CALL(rseq), NULL, NULL, false},
    /* this row is the last one: once prctl(2) is refused, no further filter can be loaded */
    {CALL(prctl), NULL, NULL, false},
};

/* Refuse all calls of these rows together, and in the long form one at a time. */
DOMT_TEST(a_program_does_without_calls_that_do_not_matter)
{
    static const int errors[] = {EPERM, ENOSYS};
    long calls[sizeof unneeded / sizeof unneeded[0] + 2];
    size_t count = 0;

    if (!may_refuse_calls_in_this_build())
        return;
    for (size_t i = 0; i < sizeof unneeded / sizeof unneeded[0]; i++)
        calls[count++] = unneeded[i].call;
    calls[count] = -1;
    for (size_t i = 0; i < 2; i++) {
        container = (domt_container){.denied = calls, .denied_with = errors[i]};
        expect_echo_serves_with_warnings("all", URING, 0, NULL);
        expect_echo_serves_with_warnings("all", EPOLL, 0, NULL);
    }
    if (domt_tests_are_long())
        refuse_calls_one_by_one(unneeded, sizeof unneeded / sizeof unneeded[0]);
}

DOMT_TEST(clone3_has_to_be_refused_by_the_right_error)
{
    static const long calls[] = {SYS_clone3, -1};

    container = (domt_container){.denied = calls, .denied_with = ENOSYS};
    expect_echo_serves_with_warnings("clone3", URING, 0, NULL);
    container.denied_with = EPERM;
    expect_end_with_status_1("clone3", URING, 0, "has to refuse clone3 by ENOSYS");
}

/* The program runs in its own PID namespace: getpid() returns -1 here, and kill(-1) would end all
 * processes that it may signal. */
DOMT_TEST(a_program_that_may_not_call_getpid_ends_in_order)
{
    static const long calls[] = {SYS_getpid, SYS_tgkill, -1};

    if (!may_refuse_calls_in_this_build() || !domt_container_is_allowed())
        return;
    container = (domt_container){
        .has_root = true, .has_proc = true, .has_sys = true, .denied = calls, .denied_with = EPERM};
    expect_echo_serves_with_warnings("getpid", URING, 0, NULL);
}

DOMT_TEST(a_program_that_cannot_wait_for_signals_says_so_and_ends)
{
    static const long calls[] = {SYS_rt_sigtimedwait, -1};

    container = (domt_container){.denied = calls, .denied_with = EPERM};
    service.prepare = enter_container;
    domt_service_spawn(&service, DOMT_ECHO_ARGUMENTS());
    ck_assert_int_eq(domt_service_wait(&service, 10000), 1);
    ck_assert_ptr_nonnull(strstr(service.error, "it cannot wait for signals, and ends: "));
}

DOMT_SUITE(60)
