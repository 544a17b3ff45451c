/* Each public header of include/domus/ compiles alone, in C and in C++, for a user who
 * defines nothing. */
#include "tests/support/suite.h"
#include "tests/tidy/tree.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

/* The header is included twice, so that a missing guard shows; the declaration makes the unit valid
 * if the header is empty. */
#define PROGRAM "printf '#include <domus/%s>\\n#include <domus/%s>\\nint main(void);\\n'"

#define C_COMPILER   "cc -x c -std=c17 -Wstrict-prototypes"
#define CPP_COMPILER "g++ -x c++ -std=c++17"

static void compile_header(const char *root, const char *compiler, const char *header,
                           domt_report *report)
{
    char output[2048];
    int status =
        domt_shell(output, sizeof output,
                   PROGRAM " | LC_ALL=C %s -Wall -Wextra -Wpedantic -Werror -I '%s/include'"
                           " -fsyntax-only - 2>&1",
                   header, header, compiler, root);

    if (status != 0) {
        domt_report_add(report, header, 0, "%s: %s", compiler, output);
    }
}

static void compile_all(const char *root, domt_report *report)
{
    char pattern[DOMT_PATH_MAX + 32];
    glob_t found;

    *report = (domt_report){0};
    snprintf(pattern, sizeof pattern, "%s/include/domus/*.h", root);
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *header = strrchr(found.gl_pathv[i], '/') + 1;
        compile_header(root, C_COMPILER, header, report);
        compile_header(root, CPP_COMPILER, header, report);
    }
    globfree(&found);
}

DOMT_TEST(public_headers_compile_alone_in_c_and_cpp)
{
    static domt_report report;

    compile_all(DOMT_SOURCE_DIR, &report);
    ck_assert_msg(report.count == 0, "%u:\n%s", report.count, report.text);
}

/* Plant this text as the only header, and check that `refusals` of the two compilers refuse it and
 * report `expected`. */
static void expect_refusals(const char *text, uint32_t refusals, const char *expected)
{
    static domt_report report;
    char copy[DOMT_PATH_MAX];
    char output[1024];

    domt_tree_copy(DOMT_SOURCE_DIR, "include", copy);
    ck_assert_int_eq(domt_shell(output, sizeof output, "rm '%s'/include/domus/*.h 2>&1", copy), 0);
    domt_tree_plant(copy, "include/domus/planted.h", text);
    compile_all(copy, &report);
    domt_tree_remove(copy);
    ck_assert_msg(report.count == refusals, "%s", report.text);
    ck_assert_msg(refusals == 0 || strstr(report.text, expected) != NULL, "%s", report.text);
}

DOMT_TEST(tidy_sees_a_header_that_needs_another)
{
    expect_refusals("#pragma once\nsize_t domus_planted(void);\n", 2, "size_t");
    expect_refusals("#pragma once\n#include <stddef.h>\nsize_t domus_planted(void);\n", 0, "");
}

DOMT_TEST(tidy_sees_a_header_without_guard)
{
    expect_refusals("enum planted { PLANTED };\n", 2, "redeclar");
}

DOMT_TEST(tidy_sees_a_header_that_is_no_cpp)
{
    expect_refusals("#pragma once\nint domus_planted(int class);\n", 1, "g++");
}

DOMT_TEST(tidy_sees_a_header_that_is_no_pedantic_c)
{
    expect_refusals("#pragma once\nint domus_planted();\n", 1, "cc");
}

DOMT_SUITE(60)
