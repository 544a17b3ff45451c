/* Runs a function in a child process, and reads the child's stderr and its exit status. */
#include "tests/support/death.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int domt_run_in_child(void (*body)(void *context), void *context, char ret_said[DOMT_SAID_MAX])
{
    size_t length = 0;
    ssize_t got;
    int status;
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        dup2(ends[1], STDERR_FILENO);
        body(context);
        _exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], ret_said + length, DOMT_SAID_MAX - 1 - length)) > 0)
        length += (size_t)got;
    ret_said[length] = '\0';
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

void domt_check_child_aborts(void (*body)(void *context), void *context, const char *text)
{
    static char said[DOMT_SAID_MAX];
    int status = domt_run_in_child(body, context, said);

    ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "it lived, for '%s'", text);
    ck_assert_msg(strstr(said, text) != NULL, "'%s' is not in '%.1000s'", text, said);
}
