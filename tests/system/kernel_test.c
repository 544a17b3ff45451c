/* Services on the oldest kernel that domus supports, Linux 6.1, and on an older one.
 * tests/support/programs/older_kernel.c makes the present kernel behave like one of these. */
#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/system/site.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PRELOAD DOMT_BIN_DIR "/tests/older_kernel.so"

static domt_site site;

static void play_kernel_in_service(const char *kernel)
{
    if (setenv("DOMT_KERNEL", kernel, 1) != 0 || setenv("LD_PRELOAD", PRELOAD, 1) != 0)
        _exit(126);
}

static void play_kernel_6_1(void)
{
    play_kernel_in_service("6.1");
}

static void play_kernel_5_10(void)
{
    play_kernel_in_service("5.10");
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
        play_kernel_6_1();
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
    site.service.prepare = play_kernel_6_1;
    check_site_is_served();
    ck_assert_msg(strstr(site.service.error, "thread (io_uring)") != NULL, "%s",
                  site.service.error);
    ck_assert_msg(strstr(site.service.error, "warning: ") == NULL, "%s", site.service.error);
}

DOMT_TEST(an_older_kernel_gets_epoll_and_one_line)
{
    if (!may_preload_older_kernel())
        return;
    site.service.prepare = play_kernel_5_10;
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
            play_kernel_6_1();
            unsetenv("DOMT_LONG");
            execl(path, path, NULL);
            _exit(127);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: %d", programs[i], status);
    }
}

DOMT_SUITE(600)
