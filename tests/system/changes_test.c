/* Keys are changed over the observation port while echo, kv and a site over TLS are under load.
 * tests/system/changes.py checks the results. */
#include "tests/support/suite.h"
#include "tests/support/tree.h"
#include "tests/system/judges.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PYTHON "/usr/bin/python3"

DOMT_TEST(live_keys_changed_under_load_lose_no_message)
{
    char command[2 * PATH_MAX];
    domt_tree tree;

    if (!domt_are_judges_installed(PYTHON) || access("/usr/bin/openssl", X_OK) != 0) {
        printf("python3 or openssl is not here, so changes under load are not tried\n");
        return;
    }
    domt_tree_make(&tree);
    snprintf(command, sizeof command,
             "timeout -k 5 110 " PYTHON " " DOMT_SOURCE_DIR "/tests/system/changes.py " DOMT_BIN_DIR
             "/web %s %d",
             tree.root, domt_tests_are_long() ? 1000 : 100);
    ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c): a test may use the shell */
    domt_tree_remove_copy(&tree);
}

DOMT_SUITE(120)
