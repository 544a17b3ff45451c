/* The main() of all test programs. bin/tests/house has the suites of all files of tests/house, and
 * bin/tests/house_mailbox is a link to it: the name of the link says which suite is run. */
#include "tests/support/suite.h"
#include "tests/support/leaks.h"

#include <libgen.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NAME_ROOM 256

/* Lines of a source share a count of marks if their numbers differ by a multiple of this. */
#define PLACES     1024u
#define MARKS_MOST 16u

static domt_suite *suites;
static domt_test *tests;
static domt_test **tests_end =
    &tests; /* place of the next test in the list; tests run in the order of their file */

void domt_mark_point(const char *file, int line)
{
    static _Thread_local uint8_t marks[PLACES];
    uint8_t *told = &marks[(unsigned)line % PLACES];

    if (*told == MARKS_MOST)
        return;
    (*told)++;
    (_mark_point)(file, line);
}

void domt_suite_add(domt_suite *suite)
{
    suite->next = suites;
    suites = suite;
}

void domt_test_add(domt_test *test)
{
    *tests_end = test;
    tests_end = &test->next;
}

bool domt_tests_are_long(void)
{
    /* Answer of domt_tests_are_long(). 0: not known yet; 1: no; 2: yes. It is cached, because
     * handlers ask for each message. */
    static _Atomic int known;
    int answer = atomic_load_explicit(&known, memory_order_relaxed);

    if (answer == 0) {
        const char *text = getenv("DOMT_LONG");
        answer = text != NULL && text[0] != '\0' ? 2 : 1;
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return answer == 2;
}

uint32_t domt_tenfold_if_tests_are_long(uint32_t count)
{
    return domt_tests_are_long() ? 10 * count : count;
}

static int run_suite(const domt_suite *of, const char *name)
{
    Suite *suite = suite_create(name);

    for (const domt_test *test = tests; test != NULL; test = test->next) {
        if (strcmp(test->test.file, of->file) != 0)
            continue;
        TCase *group = tcase_create(test->test.name);
        tcase_set_timeout(group, of->seconds());
        tcase_add_test(group, &test->test);
        suite_add_tcase(suite, group);
    }

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Write the name by which the suite of a test file is called: house_mailbox for
 * tests/house/mailbox_test.c. */
static void write_suite_name(const domt_suite *suite, char name[static NAME_ROOM])
{
    char folder[NAME_ROOM / 2];
    char file[NAME_ROOM / 2];

    snprintf(folder, sizeof folder, "%s", suite->file);
    snprintf(file, sizeof file, "%s", suite->file);
    const char *of = basename(dirname(folder));
    const char *what = basename(file);
    const char *end = strstr(what, "_test.c");
    snprintf(name, NAME_ROOM, "%s_%.*s", of, end == NULL ? 0 : (int)(end - what), what);
}

int main(int count, char **arguments)
{
    char name[NAME_ROOM];
    const char *called = count > 0 ? basename(arguments[0]) : "";

    domt_limit_leak_search();
    /* Check keeps messages of failures this long, because they may contain the whole output of a
     * service */
    setenv("CK_MAX_MSG_SIZE", "1000000", 0);
    for (const domt_suite *suite = suites; suite != NULL; suite = suite->next) {
        write_suite_name(suite, name);
        if (strcmp(name, called) == 0)
            return run_suite(suite, name);
    }
    fprintf(stderr, "%s: no suite has this name; call it by one of:\n", called);
    for (const domt_suite *suite = suites; suite != NULL; suite = suite->next) {
        write_suite_name(suite, name);
        fprintf(stderr, "%s\n", name);
    }
    return EXIT_FAILURE;
}
