/* base/check.h: a failed check ends the process and says what and where; one that holds does
 * nothing. The checks fail in a child process, whose stderr the test reads. */
#include "base/check.h"

#include "tests/support/death.h"
#include "tests/support/deny.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef SYS_poll
#define DOMT_POLL SYS_poll
#else
/* poll() of the C library makes this system call where the kernel has no SYS_poll */
#define DOMT_POLL SYS_ppoll
#endif

static char said[DOMT_SAID_MAX];

static void fail_a_check(void *context)
{
    int answer = 41;

    DOMI_CHECK(answer == 42);
}
enum { failing_line = __LINE__ - 2 };

static void make_a_check_hold(void *context)
{
    int answer = 42;

    DOMI_CHECK(answer == 42);
}

static void fail_check_with_long_expression(void *context)
{
    char expression[4096];

    memset(expression, 'x', sizeof expression - 1);
    expression[sizeof expression - 1] = '\0';
    domi_check_failed(expression, "file.c", 1, "function");
}

DOMT_TEST(failed_check_aborts_and_says_what_and_where)
{
    char place[64];

    snprintf(place, sizeof place, "check_test.c:%d", failing_line);
    domt_check_child_aborts(fail_a_check, NULL, place);
    domt_check_child_aborts(fail_a_check, NULL, "answer == 42");
    domt_check_child_aborts(fail_a_check, NULL, "fail_a_check");
}

DOMT_TEST(failed_check_prints_a_backtrace)
{
    (void)domt_run_in_child(fail_a_check, NULL, said);
    char *first_line_end = strchr(said, '\n');

    ck_assert_ptr_nonnull(first_line_end);
    ck_assert_ptr_nonnull(strstr(first_line_end, "\n  #0 "));
    /* Frame #0 may be a function of the sanitizer, so the test looks for the program's name in any
     * frame. */
    ck_assert_ptr_nonnull(strstr(first_line_end, " base_check+0x"));
    /* no line shows the address at which a program or library was loaded */
    ck_assert_ptr_null(strstr(said, "[0x"));
}

/* Fail a check in a process whose stderr nobody reads: it is a full pipe, or one whose reader has
 * gone. */
static void fail_check_without_reader_of_stderr(void *is_full)
{
    bool full = is_full != NULL;
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
    fail_a_check(NULL);
}

DOMT_TEST(failed_check_ends_process_without_reader_of_stderr)
{
    domt_check_child_aborts(fail_check_without_reader_of_stderr, &(bool){true}, "");
    domt_check_child_aborts(fail_check_without_reader_of_stderr, NULL, "");
}

/* Fail a check in a process in which a filter of system calls refuses poll(): with a full pipe as
 * stderr, or without one. */
static void fail_check_while_poll_is_refused(void *is_full)
{
    ck_assert_int_eq(domt_deny_system_call(DOMT_POLL, EPERM), 0);
    if (is_full != NULL)
        fail_check_without_reader_of_stderr(is_full);
    fail_a_check(NULL);
}

DOMT_TEST(failed_check_aborts_if_poll_is_refused)
{
    domt_check_child_aborts(fail_check_while_poll_is_refused, NULL, "answer == 42");
    domt_check_child_aborts(fail_check_while_poll_is_refused, &(bool){true}, "");
}

DOMT_TEST(check_that_holds_prints_nothing)
{
    ck_assert_int_eq(domt_run_in_child(make_a_check_hold, NULL, said), 0);
    ck_assert_str_eq(said, "");
}

DOMT_TEST(check_cuts_long_expression_and_still_aborts)
{
    domt_check_child_aborts(fail_check_with_long_expression, NULL, "domus: check failed: xxxx");
}

static int count_evaluation_of_expression(int *count)
{
    return ++*count;
}

DOMT_TEST(check_evaluates_its_expression_once)
{
    int count = 0;

    DOMI_CHECK(count_evaluation_of_expression(&count) == 1);
    ck_assert_int_eq(count, 1);
}

DOMT_TEST(slow_check_runs_only_if_slow_checks_are_enabled)
{
    int count = 0;

    DOMI_CHECK_SLOW(count_evaluation_of_expression(&count) == 1);
#ifdef DOMI_SLOW_CHECKS
    ck_assert_int_eq(count, 1);
#else
    ck_assert_int_eq(count, 0);
#endif
}

DOMT_SUITE(20)
