/* `domus tune` with services and loads of the shell, and with the example echo; judged by
 * tests/system/tune.py. */
#include "tests/support/suite.h"
#include "tests/support/tree.h"
#include "tests/system/judges.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PYTHON "/usr/bin/python3"

/* Run a part of the judge in a directory of its own. */
static void judge(const char *part)
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

START_TEST(the_best_values_are_printed)
{
    judge("best");
}
END_TEST

START_TEST(values_that_the_service_refuses_leave)
{
    judge("refused");
}
END_TEST

START_TEST(bounds_that_nobody_keeps_are_said)
{
    judge("bounds");
}
END_TEST

START_TEST(a_best_that_loses_the_duel_is_said)
{
    judge("lost");
}
END_TEST

START_TEST(services_and_loads_that_fail_are_told)
{
    judge("failures");
}
END_TEST

START_TEST(services_that_fork_are_counted_and_ended)
{
    judge("forks");
}
END_TEST

START_TEST(a_signal_ends_all)
{
    judge("signals");
}
END_TEST

START_TEST(wrong_words_end_with_a_line)
{
    judge("wrong");
}
END_TEST

START_TEST(a_real_service_is_tuned)
{
    judge("real");
}
END_TEST

DOMT_MAIN("tune", 70, the_best_values_are_printed, values_that_the_service_refuses_leave,
          bounds_that_nobody_keeps_are_said, a_best_that_loses_the_duel_is_said,
          services_and_loads_that_fail_are_told, services_that_fork_are_counted_and_ended,
          a_signal_ends_all, wrong_words_end_with_a_line, a_real_service_is_tuned)
