/* The program `domus` and its commands: with programs that run, with files, on a terminal in
 * memory, and with ports that answer wrongly. Most cases are in the Python scripts of this folder.
 */
#include "tests/support/suite.h"
#include "tests/support/tree.h"
#include "tests/system/command.h"
#include "tests/system/judges.h"
#include "tests/system/observe.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The program `domus` of the command line with the example web: how it finds the running program,
 * and its reports about it. */

static domt_observed web;
static domt_tree tree;

DOMT_TEST(domus_commands_show_a_program_that_runs)
{
    domt_command_run_python_part_with_web("real");
}

DOMT_TEST(domus_commands_answer_wrong_words_and_files_with_a_line)
{
    domt_command_run_python_part_with_web("wrong");
}

static void use_runtime_directory_as_registry(void)
{
    (void)unsetenv("DOMUS_REGISTRY");
    (void)setenv("XDG_RUNTIME_DIR", tree.root, 1);
}

static void set_registry_of_service(void)
{
    (void)setenv("DOMUS_REGISTRY", tree.root, 1);
}

/* A program that ends removes its own file from the registry, and no other one. */
DOMT_TEST(an_observation_port_registers_in_the_session_directory)
{
    char path[PATH_MAX], other[PATH_MAX], text[256] = "", wanted[128];
    struct stat status;

    domt_tree_make(&tree);
    web.site.service.prepare = use_runtime_directory_as_registry;
    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    snprintf(path, sizeof path, "%s/domus/%d", tree.root, (int)web.site.service.pid);
    ck_assert_int_eq(lstat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode, S_IFREG | 0600);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_gt(fread(text, 1, sizeof text - 1, file), 0);
    fclose(file);
    ck_assert(strncmp(text, "domus-observe 1\npid ", 20) == 0);
    snprintf(wanted, sizeof wanted, "\nprogram web\nendpoint 127.0.0.1:%u\n", web.port.web);
    ck_assert_ptr_nonnull(strstr(text, wanted));
    domt_tree_write(&tree, "other", "of another program\n");
    snprintf(other, sizeof other, "%s/other", tree.root);
    ck_assert_int_eq(rename(other, path), 0);
    domt_observed_stop_web(&web);
    ck_assert_int_eq(lstat(path, &status), 0);
    domt_tree_remove_copy(&tree);
}

/* Other users who may write to a registry could put files there that lead the user to a program of
 * theirs, so web puts no file into it. */
DOMT_TEST(a_directory_that_others_may_use_is_left_alone)
{
    domt_tree_make(&tree);
    ck_assert_int_eq(chmod(tree.root, 0750), 0);
    web.site.service.prepare = set_registry_of_service;
    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    /* the directory can be removed, so web has put no file there */
    ck_assert_int_eq(rmdir(tree.root), 0);
    domt_observed_stop_web(&web);
}

DOMT_TEST(root_believes_users_about_their_own_programs_alone)
{
    domt_command_run_python_part("others", NULL);
}

/* --- command ports ---------------------------------------------------------------------------- */

/* The program `domus` of the command line with a port that answers as a newer, a broken or a
 * hostile program might. */

DOMT_TEST(domus_command_does_not_trust_ports)
{
    domt_command_run_python_part("fake", NULL);
}

/* --- command screen --------------------------------------------------------------------------- */

/* `domus top` on a terminal in memory: what it draws, its keys, sizes and ends. */

DOMT_TEST(domus_top_draws_and_takes_keys)
{
    domt_command_run_python_part("screen", "pyte");
}

/* --- config ----------------------------------------------------------------------------------- */

/* The command `domus config`, tested by tests/system/config.py: with files, with programs that do
 * not use domus, and with a running program; and its schema by a validator of JSON Schema. */

#define PYTHON "/usr/bin/python3"

/* Run one part of config.py. `modules` are Python modules that have to be installed; NULL: none. */
static void run_part_of_config_py(const char *part, const char *modules, const char *more)
{
    char command[2 * PATH_MAX];

    snprintf(command, sizeof command, PYTHON " -c 'import %s' 2>/dev/null",
             modules != NULL ? modules : "sys");
    if (access(DOMT_BIN_DIR "/domus", X_OK) != 0 || !domt_are_judges_installed(PYTHON) ||
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

DOMT_TEST(verbs_of_domus_config_read_what_programs_tell)
{
    domt_tree_make(&tree);
    run_part_of_config_py("verbs", NULL, "");
    domt_tree_remove_copy(&tree);
}

DOMT_TEST(schema_of_domus_config_takes_what_the_reader_takes)
{
    domt_tree_make(&tree);
    run_part_of_config_py("schema", "jsonschema, yaml", "");
    domt_tree_remove_copy(&tree);
}

DOMT_TEST(domus_config_shows_and_compares_a_program_that_runs)
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

/* --- tune ------------------------------------------------------------------------------------- */

/* `domus tune` with services and loads of the shell, and with the example echo; checked by
 * tests/system/tune.py. */

/* Run one part of tune.py in a directory of its own. */
static void run_part_of_tune_py(const char *part)
{
    char command[2 * PATH_MAX];
    domt_tree copy;

    if (access(DOMT_BIN_DIR "/domus", X_OK) != 0 || !domt_are_judges_installed(PYTHON)) {
        printf("the program domus or python3 is not here, so it is not tried\n");
        return;
    }
    domt_tree_make(&copy);
    snprintf(command, sizeof command,
             "timeout -k 5 60 " PYTHON " " DOMT_SOURCE_DIR "/tests/system/tune.py %s " DOMT_BIN_DIR
             " %s",
             part, copy.root);
    ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c): a test may use the shell */
    domt_tree_remove_copy(&copy);
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

DOMT_TEST(tune_says_when_the_best_values_lose_the_duel)
{
    run_part_of_tune_py("lost");
}

DOMT_TEST(tune_tells_of_services_and_loads_that_fail)
{
    run_part_of_tune_py("failures");
}

DOMT_TEST(tune_counts_and_ends_services_that_fork)
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

DOMT_SUITE(120)
