/* Programs that were built with the first release of a minor version run with its later releases:
 * packaging/check-abi compares the libraries of this build with the recorded ABI. A small library
 * that is changed in one place shows that the comparison sees a change.
 *
 * Builds with a sanitizer have no debugging information of types, so they are left out. */
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"
#include "tests/tidy/tree.h"

#include <stdio.h>
#include <string.h>

static char output[1 << 16];

static int run_check_abi_script(const char *arguments)
{
    return domt_run_shell(output, sizeof output, "'%s/packaging/check-abi' %s 2>&1",
                          DOMT_SOURCE_DIR, arguments);
}

DOMT_TEST(libraries_match_recorded_abi)
{
    if (DOMT_SANITIZED)
        return;
    int status = run_check_abi_script("'" DOMT_BIN_DIR "/../lib'");
    ck_assert_msg(status == 0, "status %d: %s", status, output);
    if (strstr(output, "to compare with") != NULL)
        fprintf(stderr, "%s", output); /* say that there is no recorded ABI for this processor */
}

/* ---- A small library --------------------------------------------------------------------------*/

static char copy[DOMT_PATH_MAX];

#define HEADER                                                                                     \
    "typedef enum domus_color { DOMUS_RED, DOMUS_BLUE } domus_color;\n"                            \
    "typedef struct domus_sized {\n    unsigned long size;\n    int a;\n} domus_sized;\n"          \
    "typedef struct domus_plain {\n    int a;\n    int b;\n} domus_plain;\n"                       \
    "typedef struct domus_payload {\n    long x;\n} domus_payload;\n"                              \
    "int domus_one(const domus_sized *, const domus_plain *, domus_color);\n"                      \
    "int domus_two(void);\n"                                                                       \
    "#define DOMUS_FLAG 1u\n#define DOMUS_SOME_MAX 8u\n#define DOMUS_CALL(x) domus_two()\n"        \
    "enum {\n    DOMUS_FIRST,\n    DOMUS_SECOND,\n};\n"
#define SOURCE                                                                                     \
    "#include <domus/small.h>\n"                                                                   \
    "int domus_one(const domus_sized *s, const domus_plain *p, domus_color c)\n"                   \
    "{\n    return s->a + p->a + (int)c;\n}\n"                                                     \
    "int domus_two(void)\n{\n    return 0;\n}\n"
#define GROWS "[suppress_type]\n  name = domus_sized\n  has_data_member_inserted_at = end\n"

/* Build the small library anew from its sources, changed by an expression of sed. */
static void build_small_library(const char *change)
{
    int status = domt_run_shell(output, sizeof output,
                                "cd '%s' && sed '%s' small.h >include/domus/small.h &&"
                                " sed '%s' small.c >changed.c && rm -rf lib && mkdir lib &&"
                                " cc -g -shared -fPIC -Iinclude changed.c -o lib/libdomus.so 2>&1",
                                copy, change, change);
    ck_assert_msg(status == 0, "%s: %s", change, output);
}

static int run_check_abi_on_copy(const char *option)
{
    char arguments[4 * DOMT_PATH_MAX];

    snprintf(arguments, sizeof arguments, "%s '%s/lib' '%s/include' '%s/record/small'", option,
             copy, copy, copy);
    return run_check_abi_script(arguments);
}

static void make_copy_with_small_library(void)
{
    domt_tree_copy_parts(DOMT_SOURCE_DIR, "LICENSE", copy);
    int status = domt_run_shell(output, sizeof output,
                                "cd '%s' && mkdir -p include/domus record 2>&1", copy);
    ck_assert_msg(status == 0, "%s", output);
    domt_tree_append_text_to_file(copy, "small.h", HEADER);
    domt_tree_append_text_to_file(copy, "small.c", SOURCE);
    domt_tree_append_text_to_file(copy, "record/grows.abignore", GROWS);
    build_small_library("");
    status = run_check_abi_on_copy("--write");
    ck_assert_msg(status == 0, "%s", output);
}

DOMT_TEST(abi_change_that_breaks_programs_is_seen)
{
    static const struct {
        const char *change;
        /* text that the report must have; NULL: the change breaks no program, so there is no
         * report */
        const char *seen;
    } rows[] = {
        {"", NULL},
        /* The structure carries its own size, so a member may be added at its end. */
        {"/unsigned long size;/{n;s/$/ long c;/}", NULL},
        {"s/unsigned long size;/& int c;/", "domus_sized"},
        {"s/int b;/& long c;/", "domus_plain"},
        {"s/int b;/char b;/", "domus_plain"},
        /* no function has this type as a parameter, but programs use it */
        {"s/long x;/int x;/", "domus_payload"},
        {"s/long x;/& int y;/", "domus_payload"},
        {"/^typedef struct domus_payload/,/^}/d", "domus_payload"},
        {"s/DOMUS_BLUE }/DOMUS_BLUE, DOMUS_GREEN }/", NULL},
        {"s/DOMUS_BLUE }/DOMUS_GREEN, DOMUS_BLUE }/", "DOMUS_BLUE"},
        {"s/^int domus_two(void);/& int domus_three(void);/;"
         "s/^int domus_two(void)$/int domus_three(void) { return 1; } &/",
         NULL},
        {"s/domus_two/domus_three/", "domus_two"},
        {"s/domus_two(void)/domus_two(long a)/", "domus_two"},
        {"s/^int domus_two/long domus_two/", "domus_two"},
        {"s/DOMUS_FLAG 1u/DOMUS_FLAG 2u/", "DOMUS_FLAG was 1u, and is 2u"},
        {"s/DOMUS_FLAG/DOMUS_FLAGS/", "DOMUS_FLAG is gone"},
        {"s/DOMUS_SOME_MAX 8u/DOMUS_SOME_MAX 9u/", NULL},
        {"s/DOMUS_SOME_MAX/DOMUS_OTHER_MAX/", "DOMUS_SOME_MAX is gone"},
        {"s/DOMUS_CALL/DOMUS_CALLED/", "DOMUS_CALL() is gone"},
        {"s/DOMUS_FIRST,/DOMUS_FIRST = 4,/", "DOMUS_SECOND was 1, and is 5"},
        {"s/DOMUS_SECOND,/& DOMUS_THIRD,/", NULL},
    };

    if (DOMT_SANITIZED)
        return;
    make_copy_with_small_library();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        build_small_library(rows[i].change);
        int status = run_check_abi_on_copy("");
        ck_assert_msg(status == (rows[i].seen != NULL), "%s: status %d: %s", rows[i].change, status,
                      output);
        if (rows[i].seen != NULL) {
            ck_assert_msg(strstr(output, rows[i].seen) != NULL, "%s: %s", rows[i].change, output);
            ck_assert_msg(strstr(output, "Programs that were built with") != NULL, "%s", output);
        }
    }
    domt_tree_remove_copy(copy);
}

DOMT_TEST(without_recorded_abi_nothing_is_compared)
{
    if (DOMT_SANITIZED)
        return;
    make_copy_with_small_library();
    int status = domt_run_shell(output, sizeof output, "rm -r '%s/record/small'", copy);
    ck_assert_int_eq(status, 0);
    status = run_check_abi_on_copy("");
    ck_assert_int_eq(status, 0);
    ck_assert_ptr_nonnull(strstr(output, "to compare with"));
    domt_tree_remove_copy(copy);
}

DOMT_SUITE(60)
