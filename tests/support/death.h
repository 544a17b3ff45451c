/* How a process ends that does what must end it: in a child, whose stderr the test reads. */
#ifndef DOMT_DEATH_H
#define DOMT_DEATH_H

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Run body(context) in a child; it must abort, and say `text` before. */
static inline void domt_dies(void (*body)(void *context), void *context, const char *text)
{
    static char said[16384];
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
    while ((got = read(ends[0], said + length, sizeof said - 1 - length)) > 0)
        length += (size_t)got;
    said[length] = '\0';
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "it lived, for '%s'", text);
    ck_assert_msg(strstr(said, text) != NULL, "'%s' is not in '%.1000s'", text, said);
}

#endif
