/* The end of every test file: its suite, which Check runs in its fork mode, with one line of
 * counts.
 *
 * A test file is a program of its own, named after the source or the behaviour that it holds; it
 * includes this header and ends with DOMT_MAIN. All files of a folder are linked to one file, which
 * runs the suite that it is called by (suite.c). `./dev test` adds up the lines that Check prints.
 * CK_FORK=no runs all tests in one process, for a debugger; CK_TIMEOUT_MULTIPLIER stretches the
 * time-outs. */
#ifndef DOMT_SUITE_H
#define DOMT_SUITE_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Check tells its parent process of each assertion that held, by a write(2): the place is what it
 * says of a test that crashes later. A test that compares a million bytes would do little else, so
 * each place is told some times only. */
void domt_mark_point(const char *file, int line);
#define _mark_point(file, line) domt_mark_point(file, line)

/* Whether the long form is run (`./dev test --long`). */
bool domt_is_long(void);

/* Returns `count`, and ten times as many in the long form: of rounds that look for a race, for
 * which more are better, and there is no number that is enough. */
uint32_t domt_more_if_long(uint32_t count);

/* The suite of a test file, whose path in the tree is `file`, as in "tests/house/mailbox_test.c".
 */
typedef struct domt_suite {
    const char *file;
    int (*run)(void);
    struct domt_suite *next;
} domt_suite;

/* Add the suite to those that this program can run. Called before main(), by each test file. */
void domt_suite_add(domt_suite *suite);

/* Run tests, each of which has so many seconds. Returns the status of the program. */
int domt_suite_run(const char *name, int seconds, const TTest *const *tests, size_t count);

/* DOMT_MAIN("wheel", 20, wheel_never_fires_early, wheel_holds_a_million): each test has 20 s. */
#define DOMT_MAIN(name, seconds, ...)                                                              \
    static int domt_run_all(void)                                                                  \
    {                                                                                              \
        const TTest *const tests[] = {__VA_ARGS__};                                                \
        return domt_suite_run(name, seconds, tests, sizeof tests / sizeof tests[0]);               \
    }                                                                                              \
    __attribute__((constructor)) static void domt_add_suite(void)                                  \
    {                                                                                              \
        static domt_suite suite = {.file = __FILE__, .run = domt_run_all};                         \
        domt_suite_add(&suite);                                                                    \
    }

#endif
