/* The command `domus config`, tested by tests/system/config.py: with files, with programs that do
 * not use domus, and with a running program; and its schema by a validator of JSON Schema. */
#include "tests/support/suite.h"
#include "tests/support/tree.h"
#include "tests/system/judges.h"
#include "tests/system/observe.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PYTHON "/usr/bin/python3"

static domt_observed web;
static domt_tree tree;

/* Run one part of config.py. `modules` are Python modules that have to be installed; NULL: none. */
static void run_part_of_config_py(const char *part, const char *modules, const char *more)
{
    char command[2 * PATH_MAX];

    snprintf(command, sizeof command, PYTHON " -c 'import %s' 2>/dev/null",
             modules != NULL ? modules : "sys");
    if (access(DOMT_BIN_DIR "/domus", X_OK) != 0 || !domt_are_judges_there(PYTHON) ||
        system(command) != 0) { /* NOLINT(cert-env33-c): a test may use the shell */
        printf("the program domus, python3 or %s is not here, so %s is not tried\n",
               modules != NULL ? modules : "sys", part);
        return;
    }
    snprintf(command, sizeof command,
             "timeout -k 5 100 " PYTHON " " DOMT_SOURCE_DIR
             "/tests/system/config.py %s " DOMT_BIN_DIR "/domus %s %s",
             part, tree.root, more);
    ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c): as above */
}

DOMT_TEST(verbs_read_what_programs_tell)
{
    domt_tree_make(&tree);
    run_part_of_config_py("verbs", NULL, "");
    domt_tree_remove_copy(&tree);
}

DOMT_TEST(schema_takes_what_the_reader_takes)
{
    domt_tree_make(&tree);
    run_part_of_config_py("schema", "jsonschema, yaml", "");
    domt_tree_remove_copy(&tree);
}

static void set_registry_of_service(void)
{
    (void)setenv("DOMUS_REGISTRY", tree.root, 1);
}

DOMT_TEST(a_program_that_runs_is_shown_and_compared)
{
    char more[64];

    domt_tree_make(&tree);
    web.site.service.prepare = set_registry_of_service;
    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    snprintf(more, sizeof more, "%d %u", (int)web.site.service.pid, web.port.web);
    run_part_of_config_py("running", NULL, more);
    domt_observed_stop_web(&web);
    domt_tree_remove_copy(&tree);
}

DOMT_SUITE(120)
