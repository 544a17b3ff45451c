/* Runs a program to which the kernel refuses io_uring, as the default profile of many containers
 * does: without_uring PROGRAM [ARGUMENT ...] */
#include "tests/support/deny.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    int error = count < 2 ? -EINVAL : domt_deny_system_call(SYS_io_uring_setup, EPERM);

    if (error != 0) {
        fprintf(stderr, "without_uring: %s\n", strerror(-error));
        return 126;
    }
    execv(arguments[1], arguments + 1);
    perror(arguments[1]);
    return 127;
}
