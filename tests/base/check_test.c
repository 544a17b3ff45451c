/* A failed check ends the process and says what and where; one that holds does nothing. The checks
 * fail in a child, whose stderr the test reads. */
#include "base/check.h"

#include "tests/support/suite.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct death {
    int status; /* as wait(2) gives it */
    char text[16384];
};

static struct death run_in_child(void (*body)(void))
{
    struct death death = {0};
    size_t length = 0;
    ssize_t got;
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        dup2(ends[1], STDERR_FILENO);
        body();
        _exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], death.text + length, sizeof death.text - 1 - length)) > 0)
        length += (size_t)got;
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &death.status, 0), child);
    return death;
}

static void fail_a_check(void)
{
    int answer = 41;

    DOMI_CHECK(answer == 42);
}
enum { failing_line = __LINE__ - 2 };

static void hold_a_check(void)
{
    int answer = 42;

    DOMI_CHECK(answer == 42);
}

static void fail_a_long_check(void)
{
    char expression[4096];

    memset(expression, 'x', sizeof expression - 1);
    expression[sizeof expression - 1] = '\0';
    domi_check_failed(expression, "file.c", 1, "function");
}

START_TEST(check_that_fails_aborts_and_says_what_and_where)
{
    struct death death = run_in_child(fail_a_check);
    char place[64];

    snprintf(place, sizeof place, "check_test.c:%d", failing_line);
    ck_assert(WIFSIGNALED(death.status));
    ck_assert_int_eq(WTERMSIG(death.status), SIGABRT);
    ck_assert_ptr_nonnull(strstr(death.text, "answer == 42"));
    ck_assert_ptr_nonnull(strstr(death.text, place));
    ck_assert_ptr_nonnull(strstr(death.text, "fail_a_check"));
}
END_TEST

START_TEST(check_that_fails_prints_a_backtrace)
{
    struct death death = run_in_child(fail_a_check);
    char *first_line_end = strchr(death.text, '\n');

    ck_assert_ptr_nonnull(first_line_end);
    ck_assert_ptr_nonnull(strstr(first_line_end, "\n  #0 "));
    ck_assert_ptr_nonnull(strstr(first_line_end, " base_check+0x")); /* #0 may be a sanitizer's */
    ck_assert_ptr_null(strstr(death.text, "[0x")); /* where modules lie is nobody's business */
}
END_TEST

/* A reader that does not read, and one that has gone. */
static void fail_a_check_before(int full)
{
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    while (full && write(ends[1], ".", 1) > 0)
        continue;
    ck_assert_int_eq(fcntl(ends[1], F_SETFL, 0), 0);
    if (!full)
        close(ends[0]);
    dup2(ends[1], STDERR_FILENO);
    alarm(10);
    DOMI_CHECK(full > 1);
}

static void fail_a_check_before_the_deaf(void)
{
    fail_a_check_before(1);
}

static void fail_a_check_before_nobody(void)
{
    fail_a_check_before(0);
}

START_TEST(check_that_fails_ends_the_process_whoever_reads)
{
    struct death death = run_in_child(fail_a_check_before_the_deaf);

    ck_assert(WIFSIGNALED(death.status));
    ck_assert_int_eq(WTERMSIG(death.status), SIGABRT);
    death = run_in_child(fail_a_check_before_nobody);
    ck_assert(WIFSIGNALED(death.status));
    ck_assert_int_eq(WTERMSIG(death.status), SIGABRT);
}
END_TEST

START_TEST(check_that_holds_is_silent)
{
    struct death death = run_in_child(hold_a_check);

    ck_assert(WIFEXITED(death.status) && WEXITSTATUS(death.status) == 0);
    ck_assert_str_eq(death.text, "");
}
END_TEST

START_TEST(check_with_a_long_expression_is_cut_and_still_aborts)
{
    struct death death = run_in_child(fail_a_long_check);

    ck_assert(WIFSIGNALED(death.status));
    ck_assert_int_eq(WTERMSIG(death.status), SIGABRT);
    ck_assert_ptr_nonnull(strstr(death.text, "domus: check failed: xxxx"));
}
END_TEST

static int count_evaluation(int *count)
{
    return ++*count;
}

START_TEST(check_evaluates_its_expression_once)
{
    int count = 0;

    DOMI_CHECK(count_evaluation(&count) == 1);
    ck_assert_int_eq(count, 1);
}
END_TEST

START_TEST(check_slow_runs_only_where_slow_checks_are_on)
{
    int count = 0;

    DOMI_CHECK_SLOW(count_evaluation(&count) == 1);
#ifdef DOMI_SLOW_CHECKS
    ck_assert_int_eq(count, 1);
#else
    ck_assert_int_eq(count, 0);
#endif
}
END_TEST

DOMT_MAIN("check", 20, check_that_fails_aborts_and_says_what_and_where,
          check_that_fails_prints_a_backtrace, check_that_fails_ends_the_process_whoever_reads,
          check_that_holds_is_silent, check_with_a_long_expression_is_cut_and_still_aborts,
          check_evaluates_its_expression_once, check_slow_runs_only_where_slow_checks_are_on)
