/* Each test program is built and run: CMakeLists.txt and tests/run both list the folders of tests,
 * and this test finds a folder that one of the lists lacks. */
#include "tests/support/suite.h"
#include "tests/tidy/tree.h"

#include <string.h>

static char output[65536];

/* Print the path of each test file for which the command `has` fails; $name is the name of its
 * program. */
static int find_failing(const char *has)
{
    return domt_shell(output, sizeof output,
                      "cd '%s' && listed=$(tests/run --list dev) && "
                      "for file in tests/*/*_test.c tests/fuzz/*.c; do "
                      "name=${file#tests/} name=${name%%%%.c} name=${name%%%%_test} "
                      "name=${name%%%%/*}_${name#*/}; { %s; } || echo \"$file\"; done",
                      DOMT_SOURCE_DIR, has);
}

DOMT_TEST(each_test_file_is_run)
{
    ck_assert_int_eq(
        find_failing("case \" $(echo $listed) \" in *\" $name \"*) ;; *) false;; esac"), 0);
    ck_assert_msg(output[0] == '\0', "tests/run does not run\n%s", output);
}

DOMT_TEST(each_test_file_is_built)
{
    ck_assert_int_eq(find_failing("grep -q \"^add_test(\\[=\\[$name\\]=\\] \" '" DOMT_BIN_DIR
                                  "/../CTestTestfile.cmake'"),
                     0);
    ck_assert_msg(output[0] == '\0', "CMakeLists.txt does not build\n%s", output);
}

DOMT_TEST(a_file_that_is_left_out_is_seen)
{
    ck_assert_int_eq(find_failing("[ \"$name\" != tidy_programs ]"), 0);
    ck_assert_str_eq(output, "tests/tidy/programs_test.c\n");
}

/* All tests of a folder are linked to one file, so a function that one test file defines to replace
 * a library's function would replace it for all of them. Such a file must be among `separate_tests`
 * of CMakeLists.txt. The build with AddressSanitizer is checked, too, if there is one: `./dev test`
 * builds most tests there alone. An object that build.ninja does not name is left from an earlier
 * build. */
DOMT_TEST(a_test_that_takes_the_place_of_others_functions_is_separate)
{
    ck_assert_int_eq(
        domt_shell(output, sizeof output,
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

DOMT_SUITE(120)
