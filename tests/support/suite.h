/* The end of every test file: its suite, which Check runs in its fork mode, with one line of
 * counts.
 *
 * A test file is a program of its own, named after the source or the behaviour that it holds; it
 * includes this header and ends with DOMT_SUITE. All files of a folder are linked to one file,
 * which runs the suite that it is called by (suite.c). `./dev test` adds up the lines that Check
 * prints. CK_FORK=no runs all tests in one process, for a debugger; CK_TIMEOUT_MULTIPLIER stretches
 * the time-outs. */
#ifndef DOMT_SUITE_H
#define DOMT_SUITE_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Replaces a function of Check that tells the parent process by a write(2) of each assertion that
 * held, so that the last place is known after a crash. A test that compares a million bytes would
 * do little else, so each place is told only a few times. */
void domt_mark_point(const char *file, int line);
#define _mark_point(file, line) domt_mark_point(file, line)

/* Returns whether the tests run in the long form (`./dev test --long`). */
bool domt_tests_are_long(void);

/* Returns `count`, or ten times `count` if the tests run in the long form: for the rounds of a test
 * that looks for a race. */
uint32_t domt_tenfold_if_tests_are_long(uint32_t count);

/* One test of a test file. DOMT_TEST adds it to the list of all tests before main() runs. */
typedef struct domt_test {
    TTest test;
    struct domt_test *next;
} domt_test;

/* The suite of one test file, with the seconds that each of its tests may take; DOMT_SUITE adds it
 * to the list of suites. */
typedef struct domt_suite {
    const char *file; /* path of the test file, as "tests/house/mailbox_test.c" */
    int (*seconds)(void);
    struct domt_suite *next;
} domt_suite;

void domt_test_add(domt_test *test);
void domt_suite_add(domt_suite *suite);

/* DOMT_TEST(wheel_never_fires_early), followed by a body in braces, defines a test of its file's
 * suite. */
#define DOMT_TEST(named)                                                                           \
    static void named(int domt_loop);                                                              \
    __attribute__((constructor)) static void add_##named(void)                                     \
    {                                                                                              \
        static domt_test test = {.test = {#named, named, __FILE__, __LINE__}};                     \
        domt_test_add(&test);                                                                      \
    }                                                                                              \
    static void named(int domt_loop CK_ATTRIBUTE_UNUSED)

/* DOMT_SUITE(20) stands at the end of a test file, and lets each of its tests take at most 20 s. */
#define DOMT_SUITE(count)                                                                          \
    static int domt_seconds(void)                                                                  \
    {                                                                                              \
        return (count);                                                                            \
    }                                                                                              \
    __attribute__((constructor)) static void domt_add_suite(void)                                  \
    {                                                                                              \
        static domt_suite suite = {.file = __FILE__, .seconds = domt_seconds};                     \
        domt_suite_add(&suite);                                                                    \
    }

#endif
