/* Services with several ports, with files, a database and the observation port, in a container
 * whose root is read-only and which has no /proc; and the number of threads that follows from a CPU
 * quota. */
#include "tests/support/cgroup.h"
#include "tests/support/container.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"
#include "tests/system/site.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARGUMENTS_MAX 64

static domt_site site;
static domt_container container;

static void enter_container(void)
{
    domt_container_enter(&container);
}

/* Returns a container without io_uring, and without /proc unless a sanitizer needs it. */
static domt_container container_without_io_uring(void)
{
    static const long calls[] = {SYS_io_uring_setup, -1};

    return (domt_container){
        .has_root = true, .has_proc = DOMT_SANITIZED, .denied = calls, .denied_with = EPERM};
}

/* Read the observation port by the program `domus`, which runs outside of the container; not every
 * build has that program. */
static void check_domus_stat_reads_port(uint16_t port)
{
    char line[512];
    char text[4096] = "";

    if (access(DOMT_BIN_DIR "/domus", X_OK) != 0) {
        fprintf(stderr, "no program domus in this build; not tried\n");
        return;
    }
    snprintf(line, sizeof line, DOMT_BIN_DIR "/domus stat -s 127.0.0.1:%u 2>&1", port);
    FILE *pipe = popen(line, "re"); /* NOLINT(cert-env33-c): a test may use the shell */
    ck_assert_ptr_nonnull(pipe);
    size_t size = fread(text, 1, sizeof text - 1, pipe);
    ck_assert_msg(pclose(pipe) == 0, "%s", text);
    ck_assert_uint_gt(size, 0);
    ck_assert_ptr_nonnull(strstr(text, "sleep"));
}

DOMT_TEST(a_site_with_files_and_a_port_for_observation_serves_in_a_bare_container)
{
    const char *arguments[ARGUMENTS_MAX];

    if (!domt_container_is_allowed())
        return;
    container = container_without_io_uring();
    site.service.prepare = enter_container;
    domt_site_gather_arguments((const char *const[]){"observe.listen=127.0.0.1:0", NULL}, arguments,
                               ARGUMENTS_MAX);
    domt_site_start_by_arguments(&site, arguments);
    domt_site_expect_answer(&site, "GET /", NULL, 200, "<html");
    domt_site_expect_answer(&site, "PUT /kv/a", "one", 204, NULL);
    domt_site_expect_answer(&site, "GET /kv/a", NULL, 200, "one");
    uint16_t observe = domt_site_await_port(&site.service, "observe");
    site.web = observe;
    domt_site_expect_answer(&site, "GET /metrics", NULL, 200, "domus_");
    domt_site_expect_answer(&site, "GET /profile", NULL, 200, "\"pid\":1,");
    domt_site_expect_answer(&site, "GET /actors", NULL, 200, "thread 1: ");
    check_domus_stat_reads_port(observe);
    domt_site_stop_program(&site);
    ck_assert_ptr_nonnull(strstr(site.service.error, "epoll is used"));
    ck_assert_ptr_null(strstr(site.service.error, "error: "));
}

/* Start examples/api with its database and its uploads at these paths. */
static void spawn_api(const char *database, const char *uploads)
{
    domt_service_spawn(&site.service,
                       (const char *const[]){DOMT_BIN_DIR "/api", "--config",
                                             DOMT_SOURCE_DIR "/examples/api/api.yaml", "--set",
                                             "listeners.api.address=127.0.0.1:0", "--set",
                                             "observe.listen=", "--set",
                                             "api.pages=" DOMT_SOURCE_DIR "/examples/api/static",
                                             "--set", database, "--set", uploads, NULL});
}

DOMT_TEST(a_database_needs_one_folder_that_can_be_written_to)
{
    if (!domt_container_is_allowed())
        return;
    container = container_without_io_uring();
    container.has_data = true;
    site.service.prepare = enter_container;
    spawn_api("api.database=sqlite:/data/tracker.db", "api.uploads=/data/uploads");
    site.web = domt_site_await_port(&site.service, "api");
    domt_site_expect_answer(&site, "GET /", NULL, 200, "<html");
    domt_service_stop(&site.service);

    spawn_api("api.database=sqlite:/tracker.db", "api.uploads=/data/uploads");
    int status = domt_service_wait(&site.service, 20000);
    ck_assert_msg(status == 1, "it ended with %d: %s", status, site.service.error);
    ck_assert_msg(strstr(site.service.error, "api.database: ") != NULL, "%s", site.service.error);

    spawn_api("api.database=sqlite:/data/tracker.db", "api.uploads=/uploads");
    status = domt_service_wait(&site.service, 20000);
    ck_assert_msg(status == 1, "it ended with %d: %s", status, site.service.error);
    ck_assert_msg(strstr(site.service.error, "api.uploads: ") != NULL, "%s", site.service.error);
}

/* --- the quota of CPUs ------------------------------------------------------------------------ */

static domt_cgroup cgroup;

/* Returns the last text that was written to the file of the mount; a tree of files plays the mount
 * of cgroups. */
static const char *controllers_given_to_children(const domt_tree *tree, char *text, size_t size)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/cgroup.subtree_control", tree->root);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = read(fd, text, size - 1);
    close(fd);
    ck_assert_int_ge(got, 0);
    text[got] = '\0';
    return text;
}

static void enter_cgroup_of_half_a_cpu(void)
{
    if (!domt_cgroup_enter_process(&cgroup))
        _exit(126);
}

DOMT_TEST(half_a_cpu_is_one_thread_and_more_of_them_are_warned_of)
{
    domt_service *service = &site.service;

    if (!domt_cgroup_make_with_half_a_cpu(&cgroup)) {
        fprintf(stderr, "no cgroup with a quota can be made here (%s); skipped\n", cgroup.why);
        return;
    }
    service->prepare = enter_cgroup_of_half_a_cpu;
    domt_service_start(service, DOMT_ECHO_ARGUMENTS());
    domt_service_stop(service);
    ck_assert_ptr_nonnull(strstr(service->error, "thread ("));
    ck_assert_uint_eq(domt_service_profile_threads(service), 1);
    ck_assert_ptr_null(strstr(service->error, "warning: "));

    domt_service_start(service, DOMT_ECHO_ARGUMENTS("--set", "system.threads=2", ));
    domt_service_stop(service);
    ck_assert_uint_eq(domt_service_profile_threads(service), 2);
    ck_assert_ptr_nonnull(strstr(service->error, "the CPU quota of the cgroup is 1"));
    domt_cgroup_remove(&cgroup);
}

/* A test may enable a controller for the children of the mount; it disables the controller when its
 * cgroup is removed, or could not be made. Directories and files play the mount. */
DOMT_TEST(a_cgroup_controller_that_a_test_enabled_is_disabled_again)
{
    static const domt_cgroup_setting nothing[] = {{NULL, NULL}};
    static const domt_cgroup_setting missing[] = {{"cpu.max", "1 1"}, {NULL, NULL}};
    static const struct {
        const char *given_before; /* text in the mount's file before the test enables anything */
        const domt_cgroup_setting *settings;
        bool is_made;
        const char *beside;       /* name of another test's cgroup beside this one, or NULL */
        const char *given_during; /* text in the mount's file while the test's cgroup exists */
        const char *given_after;  /* text in the mount's file after the cgroup was removed */
    } rows[] = {
        {"", nothing, true, NULL, "+cpu", "-cpu"},
        {"", missing, false, NULL, "-cpu", "-cpu"},
        {"cpu\n", nothing, true, NULL, "cpu\n", "cpu\n"},
        {"", nothing, true, "domt-cpu-1", "+cpu", "+cpu"},
        {"", nothing, true, "domt-memory-1", "+cpu", "-cpu"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char path[PATH_MAX], given[64];
        domt_tree tree;

        domt_tree_make(&tree);
        domt_tree_write(&tree, "cgroup.subtree_control", rows[i].given_before);
        snprintf(path, sizeof path, "%s/%s", tree.root,
                 rows[i].beside != NULL ? rows[i].beside : "x");
        ck_assert_int_eq(mkdir(path, 0700), 0);
        ck_assert_int_eq(
            domt_cgroup_try_to_make_in_version(&cgroup, 2, tree.root, "cpu", rows[i].settings),
            rows[i].is_made);
        ck_assert_str_eq(controllers_given_to_children(&tree, given, sizeof given),
                         rows[i].given_during);
        if (rows[i].is_made)
            domt_cgroup_remove(&cgroup);
        ck_assert_str_eq(controllers_given_to_children(&tree, given, sizeof given),
                         rows[i].given_after);
        domt_tree_remove_copy(&tree);
    }
}

DOMT_SUITE(60)
