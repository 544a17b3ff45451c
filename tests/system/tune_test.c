/* `domus tune` with services and loads of the shell, and with the example echo; checked by
 * tests/system/tune.py. */
#include "tests/support/suite.h"
#include "tests/support/tree.h"
#include "tests/system/judges.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PYTHON "/usr/bin/python3"

/* Run a part of that file in a directory of its own. */
static void run_judge(const char *part)
{
    char command[2 * PATH_MAX];
    domt_tree tree;

    if (access(DOMT_BIN_DIR "/domus", X_OK) != 0 || !domt_judges_are_there(PYTHON)) {
        printf("the program domus or python3 is not here, so it is not tried\n");
        return;
    }
    domt_tree_make(&tree);
    snprintf(command, sizeof command,
             "timeout -k 5 60 " PYTHON " " DOMT_SOURCE_DIR "/tests/system/tune.py %s " DOMT_BIN_DIR
             " %s",
             part, tree.root);
    ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c): a test may use the shell */
    domt_tree_remove(&tree);
}

DOMT_TEST(the_best_values_are_printed)
{
    run_judge("best");
}

DOMT_TEST(values_that_the_service_refuses_leave)
{
    run_judge("refused");
}

DOMT_TEST(bounds_that_nobody_keeps_are_said)
{
    run_judge("bounds");
}

DOMT_TEST(a_best_that_loses_the_duel_is_said)
{
    run_judge("lost");
}

DOMT_TEST(services_and_loads_that_fail_are_told)
{
    run_judge("failures");
}

DOMT_TEST(services_that_fork_are_counted_and_ended)
{
    run_judge("forks");
}

DOMT_TEST(a_signal_ends_all)
{
    run_judge("signals");
}

DOMT_TEST(wrong_words_end_with_a_line)
{
    run_judge("wrong");
}

DOMT_TEST(a_real_service_is_tuned)
{
    run_judge("real");
}

DOMT_SUITE(70)
