/* Each program that a script or a test starts is on a fresh Debian, or in a list of packages of
 * `dev`. A run of the tests on a machine where all programs are installed does not show this. */
#include "tests/support/suite.h"
#include "tests/tidy/tree.h"

#include <string.h>

static char output[32768];

DOMT_TEST(each_program_that_is_started_is_in_a_list_of_packages)
{
    int status = domt_shell(output, sizeof output, "python3 '%s/tests/tidy/packages.py' '%s'",
                            DOMT_SOURCE_DIR, DOMT_SOURCE_DIR);

    ck_assert_msg(status == 0,
                  "status %d: %sPut its package into one of the lists at the head of `dev`, or do "
                  "without it",
                  status, output);
}

/* A program without a package is found also behind a pipe, in a substitution, and behind
 * `timeout`. */
DOMT_TEST(program_without_a_package_is_named)
{
    static const char *const texts[] = {"nowhere-to-be-found a", "sort x | nowhere-to-be-found",
                                        "x=$(nowhere-to-be-found)",
                                        "if timeout 5 nowhere-to-be-found; then :; fi"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int status =
            domt_shell(output, sizeof output, "python3 '%s/tests/tidy/packages.py' '%s' '%s'",
                       DOMT_SOURCE_DIR, DOMT_SOURCE_DIR, texts[i]);
        ck_assert_msg(status == 1 && strstr(output, "nowhere-to-be-found") != NULL, "%s: %s",
                      texts[i], output);
    }
    ck_assert_int_eq(domt_shell(output, sizeof output,
                                "python3 '%s/tests/tidy/packages.py' '%s' 'sort x | redis-cli'",
                                DOMT_SOURCE_DIR, DOMT_SOURCE_DIR),
                     0);
}

DOMT_SUITE(120)
