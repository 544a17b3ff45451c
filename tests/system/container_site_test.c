/* Services of several ports, with files, a database and the observation port, in a container whose
 * root can only be read and which has no /proc; and how many threads a CPU quota gives. */
#include "tests/support/container.h"
#include "tests/support/suite.h"
#include "tests/system/site.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARGUMENTS_MAX 64

static domt_site site;
static domt_container container;

static void enter(void)
{
    domt_container_enter(&container);
}

/* A container without io_uring and, but for a sanitizer that reads it, without /proc. */
static domt_container bare(void)
{
    static const long calls[] = {SYS_io_uring_setup, -1};

    return (domt_container){
        .has_root = true, .has_proc = DOMT_SANITIZED, .denied = calls, .denied_with = EPERM};
}

/* The program `domus` reads the port; it stands outside, and is not there in each build. */
static void stat_reads(uint16_t port)
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

START_TEST(a_site_with_files_and_a_port_for_observation_serves_in_a_bare_container)
{
    const char *arguments[ARGUMENTS_MAX];

    if (!domt_container_may())
        return;
    container = bare();
    site.service.prepare = enter;
    domt_site_arguments((const char *const[]){"observe.listen=127.0.0.1:0", NULL}, arguments,
                        ARGUMENTS_MAX);
    domt_site_start_by(&site, arguments);
    domt_site_holds(&site, "GET /", NULL, 200, "<html");
    domt_site_holds(&site, "PUT /kv/a", "one", 204, NULL);
    domt_site_holds(&site, "GET /kv/a", NULL, 200, "one");
    uint16_t observe = domt_site_await_port(&site.service, "observe");
    site.web = observe;
    domt_site_holds(&site, "GET /metrics", NULL, 200, "domus_");
    domt_site_holds(&site, "GET /profile", NULL, 200, "\"pid\":1,");
    domt_site_holds(&site, "GET /actors", NULL, 200, "thread 1: ");
    stat_reads(observe);
    domt_site_stop(&site);
    ck_assert_ptr_nonnull(strstr(site.service.error, "epoll is used"));
    ck_assert_ptr_null(strstr(site.service.error, "error: "));
}
END_TEST

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

START_TEST(a_database_needs_one_folder_that_can_be_written_to)
{
    if (!domt_container_may())
        return;
    container = bare();
    container.has_data = true;
    site.service.prepare = enter;
    spawn_api("api.database=sqlite:/data/tracker.db", "api.uploads=/data/uploads");
    site.web = domt_site_await_port(&site.service, "api");
    domt_site_holds(&site, "GET /", NULL, 200, "<html");
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
END_TEST

/* --- the quota of CPUs ------------------------------------------------------------------------ */

static char cgroup[256];

static bool write_cgroup(const char *name, const char *text)
{
    char path[sizeof cgroup + 32];

    snprintf(path, sizeof path, "%s/%s", cgroup, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool is_written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return is_written;
}

/* Make a cgroup, of version 1 or 2, that may use half a CPU. */
static bool make_half_a_cpu(void)
{
    snprintf(cgroup, sizeof cgroup, "/sys/fs/cgroup/cpu/domt-cpu-%ld", (long)getpid());
    if (mkdir(cgroup, 0755) == 0) {
        if (write_cgroup("cpu.cfs_period_us", "100000") &&
            write_cgroup("cpu.cfs_quota_us", "50000"))
            return true;
        rmdir(cgroup);
    }
    snprintf(cgroup, sizeof cgroup, "/sys/fs/cgroup");
    (void)write_cgroup("cgroup.subtree_control", "+cpu");
    snprintf(cgroup, sizeof cgroup, "/sys/fs/cgroup/domt-cpu-%ld", (long)getpid());
    if (mkdir(cgroup, 0755) == 0) {
        if (write_cgroup("cpu.max", "50000 100000"))
            return true;
        rmdir(cgroup);
    }
    return false;
}

static void join_half_a_cpu(void)
{
    char text[32];

    snprintf(text, sizeof text, "%ld", (long)getpid());
    if (!write_cgroup("cgroup.procs", text))
        _exit(126);
}

START_TEST(half_a_cpu_is_one_thread_and_more_of_them_are_warned_of)
{
    domt_service *service = &site.service;

    if (!make_half_a_cpu()) {
        fprintf(stderr, "no cgroup with a quota can be made here; skipped\n");
        return;
    }
    service->prepare = join_half_a_cpu;
    domt_service_start(service, DOMT_ECHO_ARGUMENTS());
    domt_service_stop(service);
    ck_assert_ptr_nonnull(strstr(service->error, "thread ("));
    ck_assert_uint_eq(domt_service_threads(service), 1);
    ck_assert_ptr_null(strstr(service->error, "warning: "));

    domt_service_start(service, DOMT_ECHO_ARGUMENTS("--set", "system.threads=2", ));
    domt_service_stop(service);
    ck_assert_uint_eq(domt_service_threads(service), 2);
    ck_assert_ptr_nonnull(strstr(service->error, "the CPU quota of the cgroup is 1"));
    for (int i = 0; i < 1000 && rmdir(cgroup) != 0 && errno == EBUSY; i++)
        usleep(1000);
}
END_TEST

DOMT_MAIN("container_site", 60,
          a_site_with_files_and_a_port_for_observation_serves_in_a_bare_container,
          a_database_needs_one_folder_that_can_be_written_to,
          half_a_cpu_is_one_thread_and_more_of_them_are_warned_of)
