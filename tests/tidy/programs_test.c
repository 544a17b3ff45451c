/* The lists of tests are right: each folder of tests is built and run, and each mutant matches the
 * present code and names tests that exist. */
#include "tests/support/suite.h"
#include "tests/tidy/tree.h"

#include <stdlib.h>
#include <string.h>

/* Each test program is built and run: CMakeLists.txt and tests/run both list the folders of tests,
 * and this test finds a folder that one of the lists lacks. */

static char output[65536];

/* Print the path of each test file for which the shell command `has` fails; in it $name is the name
 * of the file's program. */
static int print_test_files_failing_command(const char *has)
{
    return domt_run_shell(output, sizeof output,
                          "cd '%s' && listed=$(tests/run --list dev) && "
                          "for file in tests/*/*_test.c tests/fuzz/*.c; do "
                          "name=${file#tests/} name=${name%%%%.c} name=${name%%%%_test} "
                          "name=${name%%%%/*}_${name#*/}; { %s; } || echo \"$file\"; done",
                          DOMT_SOURCE_DIR, has);
}

DOMT_TEST(each_test_file_is_run)
{
    ck_assert_int_eq(print_test_files_failing_command(
                         "case \" $(echo $listed) \" in *\" $name \"*) ;; *) false;; esac"),
                     0);
    ck_assert_msg(output[0] == '\0', "tests/run does not run\n%s", output);
}

DOMT_TEST(each_test_file_is_built)
{
    ck_assert_int_eq(
        print_test_files_failing_command("grep -q \"^add_test(\\[=\\[$name\\]=\\] \" '" DOMT_BIN_DIR
                                         "/../CTestTestfile.cmake'"),
        0);
    ck_assert_msg(output[0] == '\0', "CMakeLists.txt does not build\n%s", output);
}

DOMT_TEST(tidy_sees_test_file_that_is_left_out)
{
    ck_assert_int_eq(print_test_files_failing_command("[ \"$name\" != tidy_programs ]"), 0);
    ck_assert_str_eq(output, "tests/tidy/programs_test.c\n");
}

/* All tests of a folder are linked to one file, so a function that one test file defines to replace
 * a library's function would replace it for all of them. Such a file must be among `separate_tests`
 * of CMakeLists.txt. The build with AddressSanitizer is checked, too, if there is one: `./dev test`
 * builds most tests there alone. An object that build.ninja does not name is left from an earlier
 * build. */
DOMT_TEST(test_that_replaces_library_functions_is_separate)
{
    ck_assert_int_eq(
        domt_run_shell(output, sizeof output,
                       "cd '" DOMT_BIN_DIR "/../CMakeFiles' && ls -d test_tidy.dir && "
                       "for at in .. ../../asan; do [ ! -f $at/build.ninja ] || (cd $at && "
                       "grep -o 'CMakeFiles/test_[a-z_]*[.]dir/tests/[a-z0-9_/]*_test[.]c[.]o' "
                       "build.ninja | sort -u | xargs ls 2>/dev/null | "
                       "xargs nm -A -g --defined-only); done | "
                       "grep '^CMakeFiles/test_[a-z]*\\(_others\\)\\?[.]dir' | "
                       "grep -v -e ' domt_' -e ' _[.]stapsdt[.]base'; :"),
        0);
    ck_assert_str_eq(output, "test_tidy.dir\n");
}

/* --- mutants ---------------------------------------------------------------------------------- */

/* The tables of mutants match the present code: each text that a mutant replaces stands in its
 * file exactly once, and each test that a mutant names exists. Whether the tests still kill the
 * mutants is seen only by `./dev mutants`, which takes long. */

static char output_mutants[32768];

DOMT_TEST(each_mutant_matches_the_code)
{
    int status = domt_run_shell(output_mutants, sizeof output_mutants,
                                "'%s/tests/mutants/run' --check", DOMT_SOURCE_DIR);

    ck_assert_msg(status == 0 && output_mutants[0] == '\0',
                  "%s\nWho changes the code that a mutant changes, changes its paragraph in "
                  "tests/mutants too (the head of tests/mutants/run says how it is written), and "
                  "tries it: ./dev mutants NAME",
                  output_mutants);
}

/* There are so many mutants that a run of them says something about the tests. */
DOMT_TEST(there_are_at_least_a_hundred_mutants)
{
    ck_assert_int_eq(domt_run_shell(output_mutants, sizeof output_mutants,
                                    "'%s/tests/mutants/run' --list | grep -c ' mutant '",
                                    DOMT_SOURCE_DIR),
                     0);
    ck_assert_int_ge(strtol(output_mutants, NULL, 10), 100);
}

/* Run `tests/mutants/run --check` in a small copy of the tree with one paragraph as its table, and
 * check that it prints `said`, or nothing if that is NULL. */
static void expect_message_of_mutants_check(const char *paragraph, const char *said)
{
    char copy[DOMT_PATH_MAX];

    domt_tree_copy_parts(DOMT_SOURCE_DIR, "tests/mutants/run tests/base/slab_test.c base/slab.c",
                         copy);
    domt_tree_append_text_to_file(copy, "base/planted.c", "int a;\nint  b;\nint b;\n");
    domt_tree_append_text_to_file(copy, "tests/mutants/planted.txt", paragraph);
    int status = domt_run_shell(output_mutants, sizeof output_mutants,
                                "'%s/tests/mutants/run' --check", copy);
    domt_tree_remove_copy(copy);
    ck_assert_int_eq(status != 0, said != NULL);
    ck_assert_msg(said == NULL ? output_mutants[0] == '\0' : strstr(output_mutants, said) != NULL,
                  "%s", output_mutants);
}

DOMT_TEST(tidy_sees_mutant_that_matches_no_code)
{
    expect_message_of_mutants_check("@ m1 base/planted.c dev base_slab\n= wrong\n- int   a;\n",
                                    NULL);
    expect_message_of_mutants_check("@ m1 base/planted.c dev base_slab\n= wrong\n- int c;\n",
                                    "stands 0 times");
    expect_message_of_mutants_check("@ m1 base/planted.c dev base_slab\n= wrong\n- int b;\n",
                                    "stands 2 times");
    expect_message_of_mutants_check("@ m1 base/planted.c dev base_nothing\n= wrong\n- int a;\n",
                                    "base/nothing_test.c");
    expect_message_of_mutants_check("@ m1 base/planted.c dev\n= wrong\n- int a;\n",
                                    "names no test");
    expect_message_of_mutants_check("@ m1 base/planted.c dev base_slab\n- int a;\n",
                                    "says what it does wrong");
    expect_message_of_mutants_check("@ m1 base/planted.c fast base_slab\n= wrong\n- int a;\n",
                                    "no preset");
    expect_message_of_mutants_check("@ m1 base/planted.c dev base_slab\n= wrong\n- int a;\n\n"
                                    "@ m1 base/planted.c dev base_slab\n= wrong\n- int  b;\nint\n",
                                    "none of the marks");
}

DOMT_SUITE(120)
