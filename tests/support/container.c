/* The root directory of the container is a file system in memory, into which folders of the host
 * are mounted (bind mounts). These mounts are made before the user of the container is mapped, so
 * they belong to the container's namespace of mounts and end with it. */
#include "tests/support/container.h"

#include "tests/support/deny.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEW_ROOT "/media" /* exists on each Linux; the new root hides the host's own folder */

static _Noreturn void print_error_and_exit(const char *what)
{
    fprintf(stderr, "container: %s: %s\n", what, strerror(errno));
    _exit(126);
}

static bool write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool is_written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0)
        close(fd);
    return is_written;
}

/* Enter new namespaces, in which the calling process has all rights and its user is DOMT_NOBODY.
 * Returns false if the machine forbids it. */
static bool enter_namespaces(void)
{
    char map[64];
    unsigned user = geteuid(), group = getegid();

    if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS) != 0 ||
        !write_file("/proc/self/setgroups", "deny"))
        return false;
    snprintf(map, sizeof map, "%d %u 1", DOMT_NOBODY, user);
    if (!write_file("/proc/self/uid_map", map))
        return false;
    snprintf(map, sizeof map, "%d %u 1", DOMT_NOBODY, group);
    return write_file("/proc/self/gid_map", map);
}

bool domt_container_is_allowed(void)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0)
        _exit(enter_namespaces() && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 ? 0
                                                                                             : 1);
    bool may = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
               WEXITSTATUS(status) == 0;
    if (!may)
        fprintf(stderr, "this machine lets nobody make namespaces; skipped\n");
    return may;
}

static void make_folders_of_path(const char *path)
{
    char part[PATH_MAX];

    for (size_t i = 1; path[i] != '\0'; i++) {
        if (path[i] != '/')
            continue;
        snprintf(part, sizeof part, "%.*s", (int)i, path);
        if (mkdir(part, 0755) != 0 && errno != EEXIST)
            print_error_and_exit(part);
    }
    if (mkdir(path, 0755) != 0 && errno != EEXIST)
        print_error_and_exit(path);
}

/* Mount the folder `from` of the host at the same path in the new root directory. */
static void bind_folder(const char *from, bool is_written)
{
    char to[PATH_MAX];
    const unsigned long flags = MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV;

    snprintf(to, sizeof to, "%s%s", NEW_ROOT, from);
    make_folders_of_path(to);
    if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) != 0)
        print_error_and_exit(from);
    if (!is_written && mount(NULL, to, NULL, flags, NULL) != 0)
        print_error_and_exit("read-only");
}

/* Mount the folders into the new root directory that a program with shared libraries needs. */
static void bind_folders_of_programs(void)
{
    static const char *const links[] = {"lib", "lib64", "bin"};

    bind_folder("/usr", false);
    bind_folder(DOMT_SOURCE_DIR, false);
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        char from[64], to[32];
        snprintf(from, sizeof from, "%s/%s", NEW_ROOT, links[i]);
        snprintf(to, sizeof to, "usr/%s", links[i]);
        if (symlink(to, from) != 0)
            print_error_and_exit(from);
    }
}

static void copy_file(const char *from, const char *to)
{
    char text[4096];
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ssize_t size = in >= 0 && out >= 0 ? read(in, text, sizeof text) : -1;

    if (size < 0 || write(out, text, (size_t)size) != size)
        print_error_and_exit(from);
    close(in);
    close(out);
}

static void make_root_directory(const domt_container *container)
{
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", NEW_ROOT, "tmpfs", 0, "mode=755,size=1m") != 0)
        print_error_and_exit("mount");
    if (container->only != NULL)
        copy_file(container->only, NEW_ROOT "/echo.yaml");
    else
        bind_folders_of_programs();
    if (container->has_sys)
        bind_folder("/sys", true);
    if (container->has_bare_sys)
        make_folders_of_path(NEW_ROOT "/sys/fs/cgroup");
    if (container->has_data)
        make_folders_of_path(NEW_ROOT "/data");
    if (chdir(NEW_ROOT) != 0)
        print_error_and_exit("chdir");
    /* process 1 of the new namespace of processes will mount /proc at this path */
    if (container->has_proc)
        make_folders_of_path(NEW_ROOT "/proc");
}

/* Make NEW_ROOT the root directory of the calling process. Only process 1 of the new namespace of
 * processes may mount /proc, so that process has to call this function. */
static void enter_root_directory(const domt_container *container)
{
    if ((container->has_proc && mount("proc", "proc", "proc", 0, NULL) != 0) ||
        (container->has_data && mount("tmpfs", "data", "tmpfs", 0, "size=4m") != 0))
        print_error_and_exit("mount in the root");
    if (syscall(SYS_pivot_root, ".", ".") != 0 || umount2(".", MNT_DETACH) != 0 || chdir("/") != 0)
        print_error_and_exit("pivot_root");
    if (mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) != 0)
        print_error_and_exit("read-only root");
}

static pid_t inner;

static void pass_signal_to_child(int number)
{
    (void)kill(inner, number);
}

/* Stay outside of the container, wait for the child inside, and end with the status with which the
 * child ends. */
static _Noreturn void wait_for_container_and_exit(void)
{
    struct sigaction action = {.sa_handler = pass_signal_to_child};
    int status = 0;

    (void)sigaction(SIGTERM, &action, NULL);
    while (waitpid(inner, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED(status)) {
        action.sa_handler = SIG_DFL;
        (void)sigaction(WTERMSIG(status), &action, NULL);
        (void)kill(getpid(), WTERMSIG(status));
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

void domt_container_enter(const domt_container *container)
{
    if (container->has_root) {
        if (!enter_namespaces())
            print_error_and_exit("namespaces");
        make_root_directory(container);
        inner = fork();
        if (inner < 0)
            print_error_and_exit("fork");
        if (inner > 0)
            wait_for_container_and_exit();
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
            print_error_and_exit("prctl");
        enter_root_directory(container);
    }
    const rlim_t memlock = container->memlock == 1 ? 0 : container->memlock;
    if (container->memlock != 0 &&
        setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){memlock, memlock}) != 0)
        print_error_and_exit("setrlimit");
    if (container->nofile != 0 &&
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){container->nofile, container->nofile}) != 0)
        print_error_and_exit("setrlimit");
    for (const long *call = container->denied; call != NULL && *call >= 0; call++) {
        if (domt_deny_system_call(*call, container->denied_with) != 0)
            print_error_and_exit("seccomp");
    }
}
