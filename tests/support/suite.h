/* The end of every test program: run one suite in Check's fork mode, and print one line of counts.
 *
 * A test file is a program of its own, named after the source or the behaviour that it holds; it
 * includes this header and ends with DOMT_MAIN. `./dev test` adds up the lines that Check
 * prints. CK_FORK=no runs all tests in one process, for a debugger; CK_TIMEOUT_MULTIPLIER
 * stretches the time-outs. */
#ifndef DOMT_SUITE_H
#define DOMT_SUITE_H

#include <check.h>
#include <stddef.h>
#include <stdlib.h>

static inline int domt_run(const char *name, int seconds, const TTest *const *tests, size_t count)
{
    Suite *suite = suite_create(name);

    for (size_t i = 0; i < count; i++) {
        TCase *group = tcase_create(tests[i]->name);
        tcase_set_timeout(group, seconds);
        tcase_add_test(group, tests[i]);
        suite_add_tcase(suite, group);
    }

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* DOMT_MAIN("wheel", 20, wheel_never_fires_early, wheel_holds_a_million): each test has 20 s. */
#define DOMT_MAIN(name, seconds, ...)                                                              \
    int main(void)                                                                                 \
    {                                                                                              \
        const TTest *const tests[] = {__VA_ARGS__};                                                \
        return domt_run(name, seconds, tests, sizeof tests / sizeof tests[0]);                     \
    }

#endif
