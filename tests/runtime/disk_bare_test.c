/* runtime/os/disk.c where there is no /proc: a file without a name gets one all the same, if the
 * kernel gives it by the descriptor (Linux 6.10). */
#include "runtime/os/disk.h"

#include "tests/support/container.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the container: 0 if the file has its name and its bytes, else an errno. */
static int link_a_file(void)
{
    const domi_disk_name name = {.directory = AT_FDCWD, .path = "/data/named"};
    char text[8] = "";
    int fd = open("/data", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (access("/proc/self/fd", F_OK) == 0 || fd < 0 || write(fd, "bytes", 5) != 5)
        return EINVAL;
    int result = domi_disk_link(fd, name);
    if (result != 0)
        return -result;
    int again = open("/data/named", O_RDONLY | O_CLOEXEC);
    return again >= 0 && read(again, text, sizeof text) == 5 && strcmp(text, "bytes") == 0 ? 0
                                                                                           : EIO;
}

DOMT_TEST(a_file_without_a_name_gets_one_without_proc)
{
    static const domt_container container = {.has_root = true, .has_data = true};
    struct utsname kernel;
    int status = 0;

    ck_assert_int_eq(uname(&kernel), 0);
    char *minor = NULL;
    unsigned long major = strtoul(kernel.release, &minor, 10);
    if (major < 6 || (major == 6 && strtoul(minor + 1, NULL, 10) < 10)) {
        fprintf(stderr, "Linux %s names no file by its descriptor; skipped\n", kernel.release);
        return;
    }
    if (DOMT_SANITIZED) {
        fprintf(stderr, "a sanitizer reads /proc; skipped\n");
        return;
    }
    if (!domt_container_may())
        return;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        domt_container_enter(&container);
        _exit(link_a_file());
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s",
                  strerror(WEXITSTATUS(status)));
}

DOMT_SUITE(20)
