/* This file runs the load of load.h in a process of its own, and says what its results mean. */
#include "bench/load.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int load_run_in_child_process(const struct load_options *options, struct load_result *ret_result)
{
    struct {
        int error;
        struct load_result result;
    } report = {.error = -EIO};
    int channel[2];

    if (pipe(channel) != 0)
        return -errno;

    pid_t pid = fork();
    if (pid == 0) {
        report.error = load_run_to_its_end(options, &report.result);
        ssize_t written = write(channel[1], &report, sizeof report);
        _exit(written == (ssize_t)sizeof report ? 0 : 1);
    }
    close(channel[1]);
    if (pid > 0) {
        ssize_t length = read(channel[0], &report, sizeof report);
        if (length != (ssize_t)sizeof report)
            report.error = -EIO;
        waitpid(pid, NULL, 0);
    }
    close(channel[0]);
    if (pid > 0 && report.error == 0)
        *ret_result = report.result;
    return pid > 0 ? report.error : -EAGAIN;
}

const char *load_error_as_text(int error)
{
    switch (-error) {
    case EBADMSG:
        return "wrong bytes came back";
    case ECONNRESET:
        return "it closed a connection early";
    case ETIMEDOUT:
        return "bytes, or the end of a stream, did not come back";
    case EINVAL:
        return "the load cannot run so (is there a CPU 1?)";
    default:
        return strerror(-error);
    }
}

double load_share_of_one_cpu_used_by_load(const struct load_result *result)
{
    return result->elapsed_ns == 0 ? 0 : (double)result->cpu_ns / (double)result->elapsed_ns;
}
