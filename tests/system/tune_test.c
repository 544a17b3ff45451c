/* `domus tune` with services and loads of the shell, and with the example echo; checked by
 * tests/system/tune.py. */
#include "tests/support/suite.h"
#include "tests/support/tree.h"
#include "tests/system/judges.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PYTHON "/usr/bin/python3"

/* Run one part of tune.py in a directory of its own. */
static void run_part_of_tune_py(const char *part)
{
    char command[2 * PATH_MAX];
    domt_tree tree;

    if (access(DOMT_BIN_DIR "/domus", X_OK) != 0 || !domt_are_judges_there(PYTHON)) {
        printf("the program domus or python3 is not here, so it is not tried\n");
        return;
    }
    domt_tree_make(&tree);
    snprintf(command, sizeof command,
             "timeout -k 5 60 " PYTHON " " DOMT_SOURCE_DIR "/tests/system/tune.py %s " DOMT_BIN_DIR
             " %s",
             part, tree.root);
    ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c): a test may use the shell */
    domt_tree_remove_copy(&tree);
}

DOMT_TEST(tune_prints_the_best_values)
{
    run_part_of_tune_py("best");
}

DOMT_TEST(tune_drops_values_that_the_service_refuses)
{
    run_part_of_tune_py("refused");
}

DOMT_TEST(tune_says_which_bounds_are_not_kept)
{
    run_part_of_tune_py("bounds");
}

DOMT_TEST(a_best_that_loses_the_duel_is_said)
{
    run_part_of_tune_py("lost");
}

DOMT_TEST(services_and_loads_that_fail_are_told)
{
    run_part_of_tune_py("failures");
}

DOMT_TEST(services_that_fork_are_counted_and_ended)
{
    run_part_of_tune_py("forks");
}

DOMT_TEST(a_signal_ends_tune_and_its_processes)
{
    run_part_of_tune_py("signals");
}

DOMT_TEST(tune_ends_with_a_line_at_wrong_words)
{
    run_part_of_tune_py("wrong");
}

DOMT_TEST(tune_tunes_a_real_service)
{
    run_part_of_tune_py("real");
}

DOMT_SUITE(70)
