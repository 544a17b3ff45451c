/* This file runs a program and reads its figures (command.h).
 *
 * A program counts as ended when its output has ended: processes that it leaves behind also hold
 * the pipe open. */
#include "bench/support/command.h"

#include "bench/support/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* bytes of a program's output that are read; further ones are ignored */
#define OUTPUT_MAX 16384
#define NO_PROGRAM 127 /* exit status of a child that found no program to become, as in a shell */

static bool pin_to_first_cpus(uint32_t cpus)
{
    cpu_set_t set;
    uint32_t kept = 0;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return false;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &set))
            continue;
        if (kept < cpus)
            kept++;
        else
            CPU_CLR(cpu, &set);
    }
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

static bool limit_process_of_command(const struct command *command)
{
    /* the program leaves no core file, which could have gigabytes if the program aborts because
     * memory is short */
    struct rlimit no_core = {0, 0};

    if (setrlimit(RLIMIT_CORE, &no_core) != 0 || !pin_to_first_cpus(command->cpus))
        return false;
    if (command->memory_max_bytes == 0)
        return true;
    struct rlimit limit = {command->memory_max_bytes, command->memory_max_bytes};
    return setrlimit(RLIMIT_AS, &limit) == 0;
}

static _Noreturn void execute_command_in_child_or_exit(const struct command *command, int output,
                                                       pid_t parent)
{
    /* The child must not outlive the bench. If the bench ended before this request, the child sees
     * another parent and ends here. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(EXIT_FAILURE);
    if (dup2(output, STDOUT_FILENO) < 0 || !limit_process_of_command(command))
        _exit(EXIT_FAILURE);
    execvp(command->arguments[0], command->arguments);
    _exit(errno == ENOENT ? NO_PROGRAM : EXIT_FAILURE);
}

static int start_process_of_command(const struct command *command, pid_t *ret_pid, int *ret_output)
{
    int output[2];
    pid_t parent = getpid();

    if (pipe2(output, O_CLOEXEC) != 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0)
        execute_command_in_child_or_exit(command, output[1], parent);
    int error = pid < 0 ? -errno : 0;
    close(output[1]);
    if (error != 0) {
        close(output[0]);
        return error;
    }
    *ret_pid = pid;
    *ret_output = output[0];
    return 0;
}

/* Read the output of a program up to its end. Returns false if the end has not come at `end_ns`. */
static bool read_output_to_its_end(int output, uint64_t end_ns, char *text)
{
    struct pollfd readable = {.fd = output, .events = POLLIN};
    char beyond[256];
    size_t length = 0;

    for (;;) {
        uint64_t now_ns = measure_now_ns();
        if (now_ns >= end_ns)
            return false;
        if (poll(&readable, 1, (int)((end_ns - now_ns) / 1000000) + 1) <= 0)
            continue;
        bool full = length == OUTPUT_MAX;
        ssize_t more =
            read(output, full ? beyond : text + length, full ? sizeof beyond : OUTPUT_MAX - length);
        if (more < 0 && errno == EINTR)
            continue;
        if (more <= 0) {
            text[length] = '\0';
            return true;
        }
        if (!full)
            length += (size_t)more;
    }
}

static void append_figure_to_result(struct command_result *result, const char *name, size_t length,
                                    double value)
{
    struct command_figure *figure = &result->figures[result->count];

    if (result->count == COMMAND_FIGURES_MAX || length >= COMMAND_NAME_MAX)
        return;
    memcpy(figure->name, name, length);
    figure->name[length] = '\0';
    figure->value = value;
    result->count++;
}

/* Read one line of a program's output: a name and the numbers that follow it. The first word that
 * is not a number ends the numbers. */
static void read_line_of_figures(struct command_result *result, const char *line)
{
    size_t length = strcspn(line, " ");
    const char *next = line + length;

    for (;;) {
        char *end;
        double value = strtod(next, &end);
        if (end == next)
            return;
        append_figure_to_result(result, line, length, value);
        next = end;
    }
}

static int errno_of_exit_status(int status)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == COMMAND_WRONG)
        return -EBADMSG;
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_PROGRAM)
        return -ENOENT;
    return -ECHILD;
}

int command_run_and_read_figures(const struct command *command, struct command_result *ret_result)
{
    struct command_result result = {0};
    char text[OUTPUT_MAX + 1];
    char *rest;
    pid_t pid = -1;
    int output = -1;
    int status = 0;
    uint64_t end_ns = measure_now_ns() + (uint64_t)command->seconds_max * 1000000000;
    int error = start_process_of_command(command, &pid, &output);

    if (error != 0)
        return error;
    bool ended = read_output_to_its_end(output, end_ns, text);
    if (!ended)
        kill(pid, SIGKILL);
    close(output);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (!ended)
        return -ETIMEDOUT;
    error = errno_of_exit_status(status);
    if (error != 0)
        return error;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        read_line_of_figures(&result, line);
    *ret_result = result;
    return 0;
}

uint32_t command_copy_figures_of_name(const struct command_result *result, const char *name,
                                      double *ret_values, uint32_t room)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < result->count && count < room; i++) {
        if (strcmp(result->figures[i].name, name) == 0)
            ret_values[count++] = result->figures[i].value;
    }
    return count;
}

double command_first_figure_of_name(const struct command_result *result, const char *name)
{
    double value;

    return command_copy_figures_of_name(result, name, &value, 1) == 1 ? value : (double)NAN;
}

int command_find_program_beside(const char *program, char *path)
{
    char own[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);

    if (length < 0)
        return -errno;
    own[length] = '\0';
    *strrchr(own, '/') = '\0';
    int written = snprintf(path, PATH_MAX, "%s/%s", own, program);
    return written < PATH_MAX && access(path, X_OK) == 0 ? 0 : -ENOENT;
}
