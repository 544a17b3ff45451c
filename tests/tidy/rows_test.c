/* The macros that put a sequence into a behaviour: each compiles without a warning in the table for
 * which it is made, and in no other table, in C and in C++. */
#include "tests/support/suite.h"
#include "tests/tidy/tree.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const compilers[] = {
    "gcc -x c -std=c17",     "gcc -x c -std=c2x",         "clang -x c -std=c17",
    "g++ -x c++ -std=c++20", "clang++ -x c++ -std=c++20",
};
#define COMPILERS (sizeof compilers / sizeof compilers[0])

static const char before[] = "#include <domus/await.h>\n"
                             "#include <domus/pipeline.h>\n"
                             "extern const domus_type t;\n"
                             "extern const domus_on_peer peers[];\n"
                             "extern const domus_on mails[];\n"
                             "extern const domus_behaviour b;\n"
                             "DOMUS_SEQUENCE(s, int)\n"
                             "{\n"
                             "    DOMUS_BEGIN;\n"
                             "    DOMUS_SLEEP(1);\n"
                             "    DOMUS_END;\n"
                             "}\n";

#define ON(row)   "const domus_on mails[] = {" row ", {NULL, NULL, 0}};\n"
#define PEER(row) "const domus_on_peer peers[] = {" row ", {NULL, NULL, 0, 0, NULL}};\n"
#define CALL(by)                                                                                   \
    "const domus_behaviour b = {.name = \"b\", .kind = DOMUS_CHANNELS, .on_read = " by "};\n"

#define STRICT "-Wall -Wextra -Wpedantic -Wshadow -Werror"

/* g++ warns of each member of a behaviour without an initialiser, also where no macro is used. */
#define LENIENT "-Wno-missing-field-initializers"

/* Compile `source`; the compiler's messages go to `output`. Returns the exit status. */
static int compile_source(const char *compiler, const char *flags, const char *source, char *output,
                          size_t size)
{
    char path[] = "/tmp/domus-rows-XXXXXX";
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    FILE *file = fdopen(fd, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fprintf(file, "%s%s", before, source), 0);
    ck_assert_int_eq(fclose(file), 0);
    int status =
        domt_shell(output, size,
                   "command -v %.*s >/dev/null || exit 200; "
                   "LC_ALL=C %s %s -I '%s/include' -c -o /dev/null '%s' 2>&1",
                   (int)strcspn(compiler, " "), compiler, compiler, flags, DOMT_SOURCE_DIR, path);
    ck_assert_int_eq(unlink(path), 0);
    return status;
}

#define NOT_INSTALLED 200

DOMT_TEST(each_macro_compiles_without_a_warning_in_its_table)
{
    char output[4096];

    for (size_t i = 0; i < COMPILERS; i++) {
        int status = compile_source(compilers[i], STRICT,
                                    ON("DOMUS_ON(&t, s)") PEER("DOMUS_ON_PEER(&t, s, DOMUS_ALONE)"),
                                    output, sizeof output);
        ck_assert_msg(status == 0 || status == NOT_INSTALLED, "%s: %s", compilers[i], output);
        status = compile_source(compilers[i], STRICT " " LENIENT, CALL("DOMUS_BY(s)"), output,
                                sizeof output);
        ck_assert_msg(status == 0 || status == NOT_INSTALLED, "%s: %s", compilers[i], output);
    }
}

/* With a user's plain flags, a macro in a wrong table is an error and not just a warning. */
DOMT_TEST(no_macro_compiles_in_another_table)
{
    static const char *const wrong[] = {
        ON("DOMUS_ON_PEER(&t, s, 0)"), ON("DOMUS_BY(s)"),       PEER("DOMUS_ON(&t, s)"),
        PEER("DOMUS_BY(s)"),           CALL("DOMUS_ON(&t, s)"), CALL("DOMUS_ON_PEER(&t, s, 0)"),
    };
    char output[4096];

    for (size_t i = 0; i < COMPILERS; i++) {
        for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++)
            ck_assert_msg(compile_source(compilers[i], "", wrong[k], output, sizeof output) != 0,
                          "%s takes %s", compilers[i], wrong[k]);
    }
}

DOMT_SUITE(60)
