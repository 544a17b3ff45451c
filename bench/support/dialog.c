/* This file starts a program, reads and writes its lines, and ends it (dialog.h). */
#include "bench/support/dialog.h"

#include "bench/support/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define END_NS_MAX UINT64_C(5000000000)
#define LOOK_S     0.002 /* seconds between two looks whether the program has ended */

static _Noreturn void execute_program_in_child_or_exit(char *const arguments[], int input,
                                                       int output, pid_t parent)
{
    const struct sigaction usual = {.sa_handler = SIG_DFL};

    /* The child must not outlive the bench. If the bench ended before this request, the child sees
     * another parent and ends here. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(127);
    if (sigaction(SIGPIPE, &usual, NULL) == 0 && dup2(input, STDIN_FILENO) >= 0 &&
        dup2(output, STDOUT_FILENO) >= 0)
        execvp(arguments[0], arguments);
    _exit(127);
}

int dialog_start_program(struct dialog *dialog, char *const arguments[])
{
    int input[2];
    int output[2];
    pid_t parent = getpid();

    *dialog = (struct dialog){.pid = -1, .input = -1, .output = -1};
    if (pipe2(input, O_CLOEXEC) != 0)
        return -errno;
    if (pipe2(output, O_CLOEXEC) != 0) {
        int error = -errno;
        close(input[0]);
        close(input[1]);
        return error;
    }
    pid_t pid = fork();
    if (pid == 0)
        execute_program_in_child_or_exit(arguments, input[0], output[1], parent);
    int error = pid < 0 ? -errno : 0;
    close(input[0]);
    close(output[1]);
    if (error != 0) {
        close(input[1]);
        close(output[0]);
        return error;
    }
    dialog->pid = pid;
    dialog->input = input[1];
    dialog->output = output[0];
    return 0;
}

/* Copy the first line of the bytes that the program has written. Returns false if they have no
 * whole line. */
static bool take_first_line_of_output(struct dialog *dialog, char *ret_line)
{
    char *end = memchr(dialog->bytes, '\n', dialog->length);

    if (end == NULL)
        return false;
    uint32_t length = (uint32_t)(end - dialog->bytes);
    memcpy(ret_line, dialog->bytes, length);
    ret_line[length] = '\0';
    dialog->length -= length + 1;
    memmove(dialog->bytes, end + 1, dialog->length);
    return true;
}

int dialog_read_line(struct dialog *dialog, uint64_t patience_ns, char *ret_line)
{
    uint64_t end_ns = measure_now_ns() + patience_ns;
    struct pollfd readable = {.fd = dialog->output, .events = POLLIN};

    while (!take_first_line_of_output(dialog, ret_line)) {
        uint64_t now_ns = measure_now_ns();
        if (now_ns >= end_ns)
            return -ETIMEDOUT;
        if (dialog->length == DIALOG_LINE_MAX)
            return -EMSGSIZE;
        if (poll(&readable, 1, (int)((end_ns - now_ns) / 1000000) + 1) <= 0)
            continue;
        ssize_t more =
            read(dialog->output, dialog->bytes + dialog->length, DIALOG_LINE_MAX - dialog->length);
        if (more == 0 || (more < 0 && errno != EINTR))
            return -ECHILD;
        if (more > 0)
            dialog->length += (uint32_t)more;
    }
    return 0;
}

int dialog_write_text(struct dialog *dialog, const char *text)
{
    size_t length = strlen(text);

    return write(dialog->input, text, length) == (ssize_t)length ? 0 : -ECHILD;
}

void dialog_end_program(struct dialog *dialog)
{
    uint64_t end_ns = measure_now_ns() + END_NS_MAX;

    if (dialog->pid <= 0)
        return;
    close(dialog->input);
    kill(dialog->pid, SIGTERM);
    while (waitpid(dialog->pid, NULL, WNOHANG) == 0) {
        measure_sleep_seconds(LOOK_S);
        if (measure_now_ns() >= end_ns)
            kill(dialog->pid, SIGKILL);
    }
    close(dialog->output);
    *dialog = (struct dialog){.pid = -1, .input = -1, .output = -1};
}
