/* The tables of mutants match the present code: each text that a mutant replaces stands in its file
 * exactly once, and each test that a mutant names exists. Whether the tests still kill the mutants
 * is seen only by `./dev mutants`, which takes long. */
#include "tests/support/suite.h"
#include "tests/tidy/tree.h"

#include <stdlib.h>
#include <string.h>

static char output[32768];

DOMT_TEST(each_mutant_can_be_applied)
{
    int status =
        domt_shell(output, sizeof output, "'%s/tests/mutants/run' --check", DOMT_SOURCE_DIR);

    ck_assert_msg(status == 0 && output[0] == '\0',
                  "%s\nWho changes the code that a mutant changes, changes its paragraph in "
                  "tests/mutants too (the head of tests/mutants/run says how it is written), and "
                  "tries it: ./dev mutants NAME",
                  output);
}

/* There are enough mutants that their run says something about the tests. */
DOMT_TEST(there_are_at_least_a_hundred)
{
    ck_assert_int_eq(domt_shell(output, sizeof output,
                                "'%s/tests/mutants/run' --list | grep -c ' mutant '",
                                DOMT_SOURCE_DIR),
                     0);
    ck_assert_int_ge(strtol(output, NULL, 10), 100);
}

/* Run the runner in a copy of the tree with one table, and check that it prints `said`; NULL: that
 * it prints nothing. */
static void runner_says(const char *paragraph, const char *said)
{
    char copy[DOMT_PATH_MAX];

    domt_tree_copy(DOMT_SOURCE_DIR, "tests/mutants/run tests/base/slab_test.c base/slab.c", copy);
    domt_tree_plant(copy, "base/planted.c", "int a;\nint  b;\nint b;\n");
    domt_tree_plant(copy, "tests/mutants/planted.txt", paragraph);
    int status = domt_shell(output, sizeof output, "'%s/tests/mutants/run' --check", copy);
    domt_tree_remove(copy);
    ck_assert_int_eq(status != 0, said != NULL);
    ck_assert_msg(said == NULL ? output[0] == '\0' : strstr(output, said) != NULL, "%s", output);
}

DOMT_TEST(tidy_sees_a_mutant_that_cannot_be_applied)
{
    runner_says("@ m1 base/planted.c dev base_slab\n= wrong\n- int   a;\n", NULL);
    runner_says("@ m1 base/planted.c dev base_slab\n= wrong\n- int c;\n", "stands 0 times");
    runner_says("@ m1 base/planted.c dev base_slab\n= wrong\n- int b;\n", "stands 2 times");
    runner_says("@ m1 base/planted.c dev base_nothing\n= wrong\n- int a;\n", "base/nothing_test.c");
    runner_says("@ m1 base/planted.c dev\n= wrong\n- int a;\n", "names no test");
    runner_says("@ m1 base/planted.c dev base_slab\n- int a;\n", "says what it does wrong");
    runner_says("@ m1 base/planted.c fast base_slab\n= wrong\n- int a;\n", "no preset");
    runner_says("@ m1 base/planted.c dev base_slab\n= wrong\n- int a;\n\n"
                "@ m1 base/planted.c dev base_slab\n= wrong\n- int  b;\nint\n",
                "none of the marks");
}

DOMT_SUITE(60)
