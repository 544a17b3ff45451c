/* The child process that runs domus_main(), its arguments, and its two outputs
 * (tests/runtime/program.h). */
#include "tests/runtime/program.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHOWN_MAX     1000u
#define ARGUMENTS_MAX 15

const char *const domt_no_arguments[] = {NULL};

void domt_program_start(domt_program *own, const domus_program *program,
                        const char *const *arguments, void (*prepare)(void))
{
    char *argv[ARGUMENTS_MAX + 1] = {(char *)(uintptr_t) "program"};
    int argc = 1;
    int out[2], err[2];

    for (; arguments[argc - 1] != NULL; argc++)
        argv[argc] = (char *)(uintptr_t)arguments[argc - 1];
    memset(own, 0, sizeof *own);
    ck_assert_int_eq(pipe(out), 0);
    ck_assert_int_eq(pipe(err), 0);
    fflush(NULL);
    own->pid = fork();
    ck_assert_int_ge(own->pid, 0);
    if (own->pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        close(out[0]);
        close(out[1]);
        close(err[0]);
        close(err[1]);
        alarm(60); /* the kernel ends a program that hangs for 60 s */
        if (prepare != NULL)
            prepare();
        exit(domus_main(argc, argv, program));
    }
    close(out[1]);
    close(err[1]);
    own->out = out[0];
    own->err = err[0];
}

/* Returns the last part of a text, because Check bounds the length of a message. */
static const char *last_part_of_text(const char *text)
{
    size_t length = strlen(text);
    return length > SHOWN_MAX ? text + length - SHOWN_MAX : text;
}

static bool read_more_text(int fd, char *text, size_t *length)
{
    ssize_t got = read(fd, text + *length, DOMT_PROGRAM_TEXT_MAX - 1 - *length);
    if (got > 0)
        *length += (size_t)got;
    return got > 0;
}

void domt_program_read_stdout_until(domt_program *own, const char *text)
{
    while (strstr(own->out_text, text) == NULL)
        ck_assert_msg(read_more_text(own->out, own->out_text, &own->out_length),
                      "'%s' is not in '%s'", text, last_part_of_text(own->out_text));
}

void domt_program_start_and_read(domt_program *own, const domus_program *program,
                                 const char *const *arguments, void (*prepare)(void),
                                 const char *text)
{
    domt_program_start(own, program, arguments, prepare);
    domt_program_read_stdout_until(own, text);
}

void domt_program_read_stderr_until(domt_program *own, const char *text, int times)
{
    for (;;) {
        const char *at = own->err_text;
        int count = 0;

        while ((at = strstr(at, text)) != NULL) {
            at++;
            count++;
        }
        if (count >= times)
            return;
        ck_assert_msg(read_more_text(own->err, own->err_text, &own->err_length),
                      "'%s' is not in '%s'", text, last_part_of_text(own->err_text));
    }
}

int domt_program_wait_for_end(domt_program *own)
{
    int status = 0;
    ck_assert_int_eq(waitpid(own->pid, &status, 0), own->pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int domt_program_read_to_end(domt_program *own)
{
    while (read_more_text(own->out, own->out_text, &own->out_length))
        continue;
    while (read_more_text(own->err, own->err_text, &own->err_length))
        continue;
    close(own->out);
    close(own->err);
    int status = domt_program_wait_for_end(own);
    ck_assert_msg(status < 128 || strstr(own->err_text, "second signal") != NULL,
                  "ended by signal %d: %s", status - 128, last_part_of_text(own->err_text));
    return status;
}

void domt_program_end_by_signal(domt_program *own, int signal, int status)
{
    ck_assert_int_eq(kill(own->pid, signal), 0);
    ck_assert_int_eq(domt_program_read_to_end(own), status);
}

int domt_program_run(domt_program *own, const domus_program *program, const char *const *arguments)
{
    domt_program_start(own, program, arguments, NULL);
    return domt_program_read_to_end(own);
}

void domt_program_check_exit(domt_program *own, const domus_program *program, int status, ...)
{
    const char *arguments[ARGUMENTS_MAX + 1];
    int count = 0;
    va_list list;

    va_start(list, status);
    while ((arguments[count] = va_arg(list, const char *)) != NULL)
        ck_assert_int_lt(++count, ARGUMENTS_MAX);
    va_end(list);
    ck_assert_int_eq(domt_program_run(own, program, arguments), status);
}

void domt_must_contain(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "'%s' is not in '%s'", part, last_part_of_text(text));
}
