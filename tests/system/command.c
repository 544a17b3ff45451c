/* Runs tests/system/command.py, which tests the program `domus`; command.h describes the
 * functions. */
#include "tests/system/command.h"

#include "tests/support/suite.h"
#include "tests/support/tree.h"
#include "tests/system/judges.h"
#include "tests/system/observe.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PYTHON "/usr/bin/python3"

static domt_observed web;
static domt_tree registry;

static bool has_domus_and_python(void)
{
    if (access(DOMT_BIN_DIR "/domus", X_OK) == 0 && domt_are_judges_installed(PYTHON))
        return true;
    printf("the program domus or python3 is not here, so it is not tried\n");
    return false;
}

static void run_part_of_command_py(const char *part, const char *more)
{
    char command[2 * PATH_MAX];

    snprintf(command, sizeof command,
             "timeout -k 5 60 " PYTHON " " DOMT_SOURCE_DIR
             "/tests/system/command.py %s " DOMT_BIN_DIR "/domus %s %s",
             part, registry.root, more);
    ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c): a test may use the shell */
}

static void set_registry_of_service(void)
{
    (void)setenv("DOMUS_REGISTRY", registry.root, 1);
}

void domt_command_run_python_part_with_web(const char *part)
{
    char more[64];

    if (!has_domus_and_python())
        return;
    domt_tree_make(&registry);
    web.site.service.prepare = set_registry_of_service;
    domt_observed_start_web(&web, (const char *const[]){"web.kv.shards=8", NULL}, NULL);
    snprintf(more, sizeof more, "%d %u", (int)web.site.service.pid, web.port.web);
    run_part_of_command_py(part, more);
    domt_observed_stop_web(&web);
    ck_assert_int_eq(rmdir(registry.root), 0);
}

void domt_command_run_python_part(const char *part, const char *module)
{
    char import[128];

    snprintf(import, sizeof import, PYTHON " -c 'import %s' 2>/dev/null",
             module != NULL ? module : "sys");
    if (!has_domus_and_python())
        return;
    if (system(import) != 0) { /* NOLINT(cert-env33-c): as above */
        printf("%s of python3 is not installed, so %s is not tried\n", module, part);
        return;
    }
    domt_tree_make(&registry);
    run_part_of_command_py(part, "");
    domt_tree_remove_copy(&registry);
}
