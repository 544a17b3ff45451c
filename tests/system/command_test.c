/* The program `domus` of the command line with the example web: how it finds the running program,
 * and its reports about it. */
#include "tests/support/suite.h"
#include "tests/support/tree.h"
#include "tests/system/command.h"
#include "tests/system/observe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static domt_observed web;
static domt_tree tree;

DOMT_TEST(commands_show_a_program_that_runs)
{
    domt_command_judge_part_with_web("real");
}

DOMT_TEST(wrong_words_and_files_end_with_a_line)
{
    domt_command_judge_part_with_web("wrong");
}

static void set_runtime_directory_alone(void)
{
    (void)unsetenv("DOMUS_REGISTRY");
    (void)setenv("XDG_RUNTIME_DIR", tree.root, 1);
}

static void set_registry_of_service(void)
{
    (void)setenv("DOMUS_REGISTRY", tree.root, 1);
}

/* A program that ends removes its own file from the registry, and no other one. */
DOMT_TEST(a_port_registers_in_the_directory_of_the_session)
{
    char path[PATH_MAX], other[PATH_MAX], text[256] = "", wanted[128];
    struct stat status;

    domt_tree_make(&tree);
    web.site.service.prepare = set_runtime_directory_alone;
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
    domt_command_judge_part("others", NULL);
}

DOMT_SUITE(70)
