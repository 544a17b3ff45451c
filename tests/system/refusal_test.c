/* Programs that cannot run here, or run on an old kernel: one line says the reason, and the status
 * is right. */
#include "tests/support/crowd.h"
#include "tests/support/deny.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"
#include "tests/system/site.h"

#include <errno.h>
#include <grp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A program that cannot run prints the reason in one line and ends with the right status: when the
 * kernel really refuses a ring, when the configuration is wrong, and when a port is taken. */

#define NOBODY 65534

static domt_service service;

static void expect_end_without_listener(int status)
{
    int got = domt_service_wait(&service, 10000);

    ck_assert_msg(got == status, "it ended with %d: %s", got, service.error);
    ck_assert_str_eq(service.said, ""); /* no listener was announced, because none was started */
}

/* Check that the program has written one line to stderr, which contains this text. */
static void expect_part_of_stderr(const char *part)
{
    ck_assert_msg(strstr(service.error, part) != NULL, "'%s' is not in: %s", part, service.error);
}

static void expect_one_line_on_stderr(void)
{
    const char *end = strchr(service.error, '\n');

    ck_assert_msg(end != NULL && end[1] == '\0', "more than a line: %s", service.error);
    ck_assert_int_eq(strncmp(service.error, "echo: ", 6), 0);
}

static int denied_with;
static long denied_call = SYS_io_uring_setup;

static void deny_call_in_service(void)
{
    if (domt_deny_system_call(denied_call, denied_with) != 0)
        _exit(126);
}

/* Containers refuse io_uring with EPERM or ENOSYS: either all of its calls or only the later
 * ones. */
DOMT_TEST(a_seccomp_filter_that_refuses_io_uring_is_named)
{
    static const int errors[] = {EPERM, ENOSYS};
    static const long calls[] = {SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register};

    service.prepare = deny_call_in_service;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        for (size_t call = 0; call < sizeof calls / sizeof calls[0]; call++) {
            denied_with = errors[i];
            denied_call = calls[call];
            domt_service_spawn(&service, DOMT_ECHO_ARGUMENTS("--set", "io.backend=uring", ));
            expect_end_without_listener(1);
            expect_one_line_on_stderr();
            expect_part_of_stderr("seccomp filter");
            expect_part_of_stderr(strerror(errors[i]));
            expect_part_of_stderr("allow io_uring_setup, io_uring_enter and io_uring_register");
        }
    }
}

/* Connect to the service, and let it echo some bytes. */
static void expect_echo_of_service(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(service.port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char bytes[6] = "";

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(send(fd, "bytes", 5, MSG_NOSIGNAL), 5);
    ck_assert_int_eq(recv(fd, bytes, 5, MSG_WAITALL), 5);
    ck_assert_str_eq(bytes, "bytes");
    close(fd);
}

DOMT_TEST(where_io_uring_is_refused_epoll_serves_and_that_is_said_once)
{
    service.prepare = deny_call_in_service;
    denied_with = EPERM;
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS("--set", "system.threads=2", ));
    expect_echo_of_service();
    domt_service_stop(&service);
    expect_part_of_stderr("warning: epoll is used");
    expect_part_of_stderr("seccomp filter");
    expect_part_of_stderr("allow io_uring_setup, io_uring_enter and io_uring_register");
    ck_assert_ptr_null(strstr(strstr(service.error, "epoll is used") + 1, "epoll is used"));
    ck_assert_ptr_nonnull(strstr(service.error, "thread (epoll)"));

    service.prepare = NULL;
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS("--set", "io.backend=epoll", ));
    expect_echo_of_service();
    domt_service_stop(&service);
    ck_assert_ptr_null(strstr(service.error, "epoll is used"));
    ck_assert_ptr_nonnull(strstr(service.error, "thread (epoll)"));
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS("--set", "io.backend=uring", ));
    expect_echo_of_service();
    domt_service_stop(&service);
    ck_assert_ptr_nonnull(strstr(service.error, "thread (io_uring)"));
}

static void become_nobody_with_little_locked_memory(void)
{
    const struct rlimit limit = {16 * 1024, 16 * 1024};

    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || setgroups(0, NULL) != 0 ||
        setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0)
        _exit(126);
}

/* The user nobody may be unable to read the source tree, so the program uses its defaults: it fails
 * before it needs a listener. */
DOMT_TEST(too_little_locked_memory_is_told_in_numbers)
{
    static const char *const arguments[] = {DOMT_BIN_DIR "/echo", NULL};

    if (geteuid() != 0) {
        fprintf(stderr, "not root: cannot become nobody; skipped\n");
        return;
    }
    service.prepare = become_nobody_with_little_locked_memory;
    domt_service_spawn(&service, arguments);
    expect_end_without_listener(1);
    expect_one_line_on_stderr();
    expect_part_of_stderr("locked-memory limit is 16 KiB");
    expect_part_of_stderr("each thread's ring needs about");
    expect_part_of_stderr("ulimit -l");
}

static void limit_descriptors_to_6(void)
{
    const struct rlimit limit = {6, 6};

    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        _exit(126);
}

DOMT_TEST(too_few_descriptors_are_told)
{
    service.prepare = limit_descriptors_to_6;
    domt_service_spawn(
        &service, DOMT_ECHO_ARGUMENTS("--set", "system.threads=8", "--set", "system.cpus=none", ));
    expect_end_without_listener(1);
    expect_one_line_on_stderr();
    expect_part_of_stderr(strerror(EMFILE));
}

static size_t count_lines_of_stderr(void)
{
    size_t lines = 0;

    for (const char *p = service.error; (p = strchr(p, '\n')) != NULL; p++)
        lines++;
    return lines;
}

DOMT_TEST(all_errors_of_a_configuration_are_told_and_nothing_starts)
{
    domt_tree tree;
    char path[sizeof tree.root + 32];

    domt_tree_make(&tree);
    domt_tree_write(&tree, "wrong.yaml",
                    "system:\n"
                    "  threads: none\n"
                    "scheduler:\n"
                    "  ioRatio: 101\n"
                    "  minBudget: 500\n"
                    "  color: blue\n");
    snprintf(path, sizeof path, "%s/wrong.yaml", tree.root);
    service.prepare = NULL;
    const char *const arguments[] = {DOMT_BIN_DIR "/echo",    "--config", path, "--set",
                                     "io.buffers.count=1000", NULL};
    domt_service_spawn(&service, arguments);
    expect_end_without_listener(2);
    expect_part_of_stderr("wrong.yaml:2:");
    expect_part_of_stderr("system.threads: ");
    expect_part_of_stderr("wrong.yaml:4:");
    expect_part_of_stderr("scheduler.ioRatio: ");
    expect_part_of_stderr("wrong.yaml:5:");
    expect_part_of_stderr("scheduler.minBudget: ");
    expect_part_of_stderr("wrong.yaml:6:");
    expect_part_of_stderr("color");
    expect_part_of_stderr("io.buffers.count: ");
    ck_assert_uint_eq(count_lines_of_stderr(), 5);
    domt_tree_remove_copy(&tree);
}

DOMT_TEST(wrong_command_line_options_are_told)
{
    static const char *const wrong[][4] = {
        {"--config", "/does/not/exist.yaml", NULL},
        {"--set", "scheduler.ioRatio", NULL},
        {"--set", "no.such.key=1", NULL},
        {"--color", NULL},
        {"unexpected", NULL},
        {"--set", NULL},
    };

    service.prepare = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const char *arguments[8] = {DOMT_BIN_DIR "/echo"};
        for (size_t at = 0; wrong[i][at] != NULL; at++)
            arguments[at + 1] = wrong[i][at];
        domt_service_spawn(&service, arguments);
        expect_end_without_listener(2);
        ck_assert_uint_gt(strlen(service.error), 0);
    }
}

DOMT_TEST(a_port_that_is_taken_is_told_in_one_line)
{
    char set[64];
    char expected[128];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    unsigned port = ntohs(address.sin_port);
    snprintf(set, sizeof set, "listeners.echo.address=127.0.0.1:%u", port);
    service.prepare = NULL;
    domt_service_spawn(&service, DOMT_ECHO_ARGUMENTS("--set", set, ));
    expect_end_without_listener(1);
    expect_one_line_on_stderr();
    snprintf(expected, sizeof expected, "listener echo: 127.0.0.1:%u: %s", port,
             strerror(EADDRINUSE));
    expect_part_of_stderr(expected);
    close(fd);
}

/* --- kernel ----------------------------------------------------------------------------------- */

/* Services on the oldest kernel that domus supports, Linux 6.1, and on an older one.
 * tests/support/programs/older_kernel.c makes the present kernel behave like one of these. */

#define PRELOAD DOMT_BIN_DIR "/tests/older_kernel.so"

static domt_site site;

static void pretend_kernel_in_service(const char *kernel)
{
    if (setenv("DOMT_KERNEL", kernel, 1) != 0 || setenv("LD_PRELOAD", PRELOAD, 1) != 0)
        _exit(126);
}

static void pretend_kernel_6_1(void)
{
    pretend_kernel_in_service("6.1");
}

static void pretend_kernel_5_10(void)
{
    pretend_kernel_in_service("5.10");
}

/* Returns whether the library that plays an older kernel can be preloaded: not under a sanitizer,
 * whose own library has to be loaded first. */
static bool may_preload_older_kernel(void)
{
    if (!DOMT_SANITIZED) {
        /* the loader would silently leave out a library that is missing */
        ck_assert_int_eq(access(PRELOAD, R_OK), 0);
        return true;
    }
    fprintf(stderr, "a build with a sanitizer lets nothing be loaded before it; skipped\n");
    return false;
}

/* The other tests of this file depend on this one: newer calls are really refused, because a
 * program that could still use them would not show anything. A real 6.1 refuses them by itself. */
DOMT_TEST(calls_newer_than_linux_6_1_are_refused)
{
    static const char program[] = DOMT_BIN_DIR "/tests/asks_newer";
    int status = 0;

    if (!may_preload_older_kernel())
        return;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        pretend_kernel_6_1();
        execl(program, program, NULL);
        _exit(127);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    if (WEXITSTATUS(status) == 1)
        fprintf(stderr, "no ring on this machine: operations are left out\n");
    else
        ck_assert_msg(WEXITSTATUS(status) == 0, "number %d", WEXITSTATUS(status));
}

static void check_site_is_served(void)
{
    char text[64];

    domt_site_start_program(&site, (const char *const[]){NULL});
    domt_site_expect_answer(&site, "GET /", NULL, 200, "<html");
    /* the first request has opened the file, which stays open for this one */
    domt_site_expect_answer(&site, "GET /", NULL, 200, "<html");
    domt_site_expect_answer(&site, "PUT /kv/a", "one", 204, NULL);
    domt_site_expect_answer(&site, "GET /kv/a", NULL, 200, "one");
    int echo = domt_connect_to_port(site.echo);
    domt_send_text(echo, "any bytes");
    (void)domt_read_until_text(echo, "any bytes", text, sizeof text);
    close(echo);
    domt_site_stop_program(&site);
}

DOMT_TEST(linux_6_1_has_all_that_a_ring_needs)
{
    if (!may_preload_older_kernel())
        return;
    site.service.prepare = pretend_kernel_6_1;
    check_site_is_served();
    ck_assert_msg(strstr(site.service.error, "thread (io_uring)") != NULL, "%s",
                  site.service.error);
    ck_assert_msg(strstr(site.service.error, "warning: ") == NULL, "%s", site.service.error);
}

DOMT_TEST(an_older_kernel_gets_epoll_and_one_line)
{
    if (!may_preload_older_kernel())
        return;
    site.service.prepare = pretend_kernel_5_10;
    check_site_is_served();
    const char *line = strstr(site.service.error, "epoll is used");
    ck_assert_msg(line != NULL, "%s", site.service.error);
    ck_assert_ptr_null(strstr(line + 1, "epoll is used"));
    ck_assert_ptr_nonnull(strstr(line, "it needs Linux 6.1 or newer"));
    ck_assert_ptr_nonnull(strstr(line, "thread (epoll)"));

    domt_service_spawn(&site.service, DOMT_ECHO_ARGUMENTS("--set", "io.backend=uring", ));
    ck_assert_int_eq(domt_service_wait(&site.service, 10000), 1);
    ck_assert_ptr_nonnull(strstr(site.service.error, "it needs Linux 6.1 or newer"));
}

/* The tests that use the kernel most, on Linux 6.1. */
DOMT_TEST(the_tests_of_the_ring_pass_on_linux_6_1)
{
    static const char *const programs[] = {
        "io_backend",         "io_backend_limits", "io_direct_seeds",   "io_calls",
        "runtime_datagram",   "runtime_connect",   "runtime_file",      "runtime_file_names",
        "runtime_file_ring",  "runtime_file_held", "runtime_file_send", "runtime_half_close",
        "runtime_http_files", "runtime_listen",    "runtime_settings",  "runtime_stop",
        "runtime_park",       "runtime_pipeline",  "runtime_proxy"};

    if (!domt_tests_are_long() || !may_preload_older_kernel())
        return;
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        char path[512];
        int status = 0;
        snprintf(path, sizeof path, DOMT_BIN_DIR "/tests/%s", programs[i]);
        if (access(path, X_OK) != 0)
            continue; /* the program of the list was not built, so it is left out */
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            pretend_kernel_6_1();
            unsetenv("DOMT_LONG");
            execl(path, path, NULL);
            _exit(127);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: %d", programs[i], status);
    }
}

DOMT_SUITE(600)
