/* Compiler's view of a user: each public header compiles alone, and the macros of sequences compile
 * where they may stand and nowhere else. */
#include "tests/support/suite.h"
#include "tests/tidy/tree.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Each public header of include/domus/ compiles alone, in C and in C++, for a user who defines
 * nothing. */

/* The header is included twice, so that a missing guard shows; the declaration makes the unit valid
 * if the header is empty. */
#define PROGRAM "printf '#include <domus/%s>\\n#include <domus/%s>\\nint main(void);\\n'"

#define C_COMPILER   "cc -x c -std=c17 -Wstrict-prototypes"
#define CPP_COMPILER "g++ -x c++ -std=c++17"

static void compile_header_alone(const char *root, const char *compiler, const char *header,
                                 domt_report *report)
{
    char output[2048];
    int status =
        domt_run_shell(output, sizeof output,
                       PROGRAM " | LC_ALL=C %s -Wall -Wextra -Wpedantic -Werror -I '%s/include'"
                               " -fsyntax-only - 2>&1",
                       header, header, compiler, root);

    if (status != 0) {
        domt_report_add_offence(report, header, 0, "%s: %s", compiler, output);
    }
}

static void compile_each_public_header_alone(const char *root, domt_report *report)
{
    char pattern[DOMT_PATH_MAX + 32];
    glob_t found;

    *report = (domt_report){0};
    snprintf(pattern, sizeof pattern, "%s/include/domus/*.h", root);
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *header = strrchr(found.gl_pathv[i], '/') + 1;
        compile_header_alone(root, C_COMPILER, header, report);
        compile_header_alone(root, CPP_COMPILER, header, report);
    }
    globfree(&found);
}

DOMT_TEST(public_headers_compile_alone_in_c_and_cpp)
{
    static domt_report report;

    compile_each_public_header_alone(DOMT_SOURCE_DIR, &report);
    ck_assert_msg(report.count == 0, "%u:\n%s", report.count, report.text);
}

/* Let a public header with this text be the only one, and check that `refusals` of the compilers of
 * C and C++ refuse it and print `expected`. */
static void expect_compilers_refuse_header(const char *text, uint32_t refusals,
                                           const char *expected)
{
    static domt_report report;
    char copy[DOMT_PATH_MAX];
    char output[1024];

    domt_tree_copy_parts(DOMT_SOURCE_DIR, "include", copy);
    ck_assert_int_eq(domt_run_shell(output, sizeof output, "rm '%s'/include/domus/*.h 2>&1", copy),
                     0);
    domt_tree_append_text_to_file(copy, "include/domus/planted.h", text);
    compile_each_public_header_alone(copy, &report);
    domt_tree_remove_copy(copy);
    ck_assert_msg(report.count == refusals, "%s", report.text);
    ck_assert_msg(refusals == 0 || strstr(report.text, expected) != NULL, "%s", report.text);
}

DOMT_TEST(tidy_sees_header_that_needs_another)
{
    expect_compilers_refuse_header("#pragma once\nsize_t domus_planted(void);\n", 2, "size_t");
    expect_compilers_refuse_header(
        "#pragma once\n#include <stddef.h>\nsize_t domus_planted(void);\n", 0, "");
}

DOMT_TEST(tidy_sees_a_header_without_guard)
{
    expect_compilers_refuse_header("enum planted { PLANTED };\n", 2, "redeclar");
}

DOMT_TEST(tidy_sees_header_that_is_not_cpp)
{
    expect_compilers_refuse_header("#pragma once\nint domus_planted(int class);\n", 1, "g++");
}

DOMT_TEST(tidy_sees_header_that_is_not_pedantic_c)
{
    expect_compilers_refuse_header("#pragma once\nint domus_planted();\n", 1, "cc");
}

/* --- rows ------------------------------------------------------------------------------------- */

/* The macros that put a sequence into a behaviour: each compiles without a warning in the table
 * for which it is made, and in no other table, in C and in C++. */

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

/* This flag is needed because g++ warns of each member of a behaviour without an initialiser, also
 * where no macro is used. */
#define LENIENT "-Wno-missing-field-initializers"

/* Compile `source`, an example of a behaviour's table; the compiler's messages go to `output`.
 * Returns the exit status. */
static int compile_table_source(const char *compiler, const char *flags, const char *source,
                                char *output, size_t size)
{
    char path[] = "/tmp/domus-rows-XXXXXX";
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    FILE *file = fdopen(fd, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fprintf(file, "%s%s", before, source), 0);
    ck_assert_int_eq(fclose(file), 0);
    int status = domt_run_shell(output, size,
                                "command -v %.*s >/dev/null || exit 200; "
                                "LC_ALL=C %s %s -I '%s/include' -c -o /dev/null '%s' 2>&1",
                                (int)strcspn(compiler, " "), compiler, compiler, flags,
                                DOMT_SOURCE_DIR, path);
    ck_assert_int_eq(unlink(path), 0);
    return status;
}

#define NOT_INSTALLED 200

DOMT_TEST(sequence_macro_compiles_in_its_own_table)
{
    char output[4096];

    for (size_t i = 0; i < COMPILERS; i++) {
        int status = compile_table_source(
            compilers[i], STRICT, ON("DOMUS_ON(&t, s)") PEER("DOMUS_ON_PEER(&t, s, DOMUS_ALONE)"),
            output, sizeof output);
        ck_assert_msg(status == 0 || status == NOT_INSTALLED, "%s: %s", compilers[i], output);
        status = compile_table_source(compilers[i], STRICT " " LENIENT, CALL("DOMUS_BY(s)"), output,
                                      sizeof output);
        ck_assert_msg(status == 0 || status == NOT_INSTALLED, "%s: %s", compilers[i], output);
    }
}

/* With a user's plain flags, a macro in a wrong table is an error and not just a warning. */
DOMT_TEST(no_sequence_macro_compiles_in_another_table)
{
    static const char *const wrong[] = {
        ON("DOMUS_ON_PEER(&t, s, 0)"), ON("DOMUS_BY(s)"),       PEER("DOMUS_ON(&t, s)"),
        PEER("DOMUS_BY(s)"),           CALL("DOMUS_ON(&t, s)"), CALL("DOMUS_ON_PEER(&t, s, 0)"),
    };
    char output[4096];

    for (size_t i = 0; i < COMPILERS; i++) {
        for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++)
            ck_assert_msg(compile_table_source(compilers[i], "", wrong[k], output, sizeof output) !=
                              0,
                          "%s takes %s", compilers[i], wrong[k]);
    }
}

/* --- await ------------------------------------------------------------------------------------ */

/* include/domus/await.h: code that the manual of sequences forbids does not compile, with a user's
 * plain flags; code that it allows compiles, with all warnings. */

enum { GCC, GCC_O2, CLANG, GXX, CLANGXX, AWAIT_COMPILERS };

static const char *const compilers_await[AWAIT_COMPILERS] = {
    "gcc -x c -std=c17 -O0",       "gcc -x c -std=c17 -O2",         "clang -x c -std=c17",
    "g++ -x c++ -std=c++17 -Wall", "clang++ -x c++ -std=c++17 -O0",
};

#define ALL         ((1u << AWAIT_COMPILERS) - 1)
#define ALL_BUT_GXX (ALL & ~(1u << GXX))
static const char strict[] = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wvla "
                             "-Wimplicit-fallthrough -Werror";

static const char before_await[] = "#include <domus/await.h>\n"
                                   "struct kept { int number; };\n"
                                   "struct large { char bytes[DOMUS_FRAME_MAX]; };\n"
                                   "extern const domus_type t;\n"
                                   "extern const domus_on rows[];\n"
                                   "int use(int number);\n";

static const char after[] = "\nconst domus_on rows[] = {DOMUS_ON(&t, s), {NULL, NULL, 0}};\n";

#define SEQUENCE "DOMUS_SEQUENCE(s, struct kept) {\n"

/* The source of a sequence that compiles: it has all macros, and local variables wherever they are
 * allowed. */
static const char whole[] =
    SEQUENCE "    int *number = (int *)self;\n"
             "    DOMUS_BEGIN;\n"
             "    frame->number = *(const int *)message;\n"
             "    for (frame->number = 0; ; frame->number++) {\n"
             "        {\n"
             "            int local = use(1);\n"
             "            use(local);\n"
             "        }\n"
             "        for (int i = 0; i < 3; i++)\n"
             "            use(i);\n"
             "        DOMUS_ASK(domus_self(stack), &t, number);\n"
             "        if (answer->error != 0)\n"
             "            DOMUS_SLEEP(1);\n"
             "        else\n"
             "            DOMUS_ASK_WITHIN(domus_self(stack), &t, NULL, 1);\n"
             "        switch (use(2)) {\n"
             "        case 1: use(3); break;\n"
             "        default: return -1;\n"
             "        }\n"
             "        static const domus_pattern any = {NULL, NULL};\n"
             "        DOMUS_RECEIVE(&any);\n"
             "        DOMUS_RECEIVE_WITHIN(&any, 1);\n"
             "        DOMUS_WAIT_ALL();\n"
             "        while (domus_pending(stack) != 0)\n"
             "            DOMUS_WAIT_FIRST();\n"
             "        DOMUS_AWAIT(domus_sleep(stack, 1, then));\n"
             "    }\n"
             "    DOMUS_END;\n"
             "}\n";

#define BODY(text) SEQUENCE "DOMUS_BEGIN;\n" text "\nDOMUS_END;\n}\n"

static const struct misuse {
    const char *what;
    const char *says; /* part of gcc's message for this misuse, in C */
    const char *source;
    unsigned refused_by;
} misuses[] = {
    {"a local with initialiser across an await", "jumps over variable initialization",
     BODY("int x = use(1);\nDOMUS_SLEEP(1);\nuse(x);"), ALL},
    {"a loop's counter across an await", "jumps over variable initialization",
     BODY("for (int i = 0; i < 3; i++)\n    DOMUS_SLEEP(1);"), ALL},
    {"a local without initialiser across an await", "may be used uninitialized",
     BODY("int x;\nx = use(1);\nDOMUS_SLEEP(1);\nuse(x);"), ALL_BUT_GXX},
    {"a local from before DOMUS_BEGIN, set behind it, across an await", "may be used uninitialized",
     SEQUENCE "int x;\nDOMUS_BEGIN;\nx = use(1);\nDOMUS_SLEEP(1);\nuse(x);\nDOMUS_END;\n}\n",
     ALL_BUT_GXX},
    {"two awaits on one line", "duplicate case value", BODY("DOMUS_SLEEP(1); DOMUS_SLEEP(1);"),
     ALL},
    {"an await before DOMUS_BEGIN", "not within a switch",
     SEQUENCE "DOMUS_SLEEP(1);\nDOMUS_BEGIN;\nDOMUS_END;\n}\n", ALL},
    {"an await behind DOMUS_END", "not within a switch",
     SEQUENCE "DOMUS_BEGIN;\nDOMUS_END;\nDOMUS_SLEEP(1);\n}\n", ALL},
    {"an await in a function that is no sequence", "not within a switch",
     "static int f(domus_stack *stack, domus_resumed *then) {\nDOMUS_SLEEP(1);\nreturn "
     "0;\n}\n" BODY("return f(stack, then);"),
     ALL},
    {"DOMUS_BEGIN without DOMUS_END", "expected declaration or statement at end of input",
     SEQUENCE "DOMUS_BEGIN;\nDOMUS_SLEEP(1);\nreturn 0;\n}\n", ALL},
    {"DOMUS_END without DOMUS_BEGIN", "before 'return'", SEQUENCE "return 0;\nDOMUS_END;\n}\n",
     ALL},
    {"an await in a switch over an int", "changes value",
     BODY("switch (use(1)) {\ncase 1:\nDOMUS_SLEEP(1);\nbreak;\ndefault:\nbreak;\n}"), ALL},
    {"an await in a switch over a byte", "less than minimum value",
     BODY("switch ((uint8_t)use(1)) {\ncase 1:\nDOMUS_SLEEP(1);\nbreak;\ndefault:\nbreak;\n}"),
     ALL},
    {"an await in a switch over an unsigned int", "changes value",
     BODY("switch ((unsigned)use(1)) {\ncase 1:\nDOMUS_SLEEP(1);\nbreak;\ndefault:\nbreak;\n}"),
     ALL},
    {"an await in a switch over an enum", "changes value",
     BODY("switch ((domus_kind)use(1)) {\ncase DOMUS_STATE:\nDOMUS_SLEEP(1);\nbreak;\n"
          "default:\nbreak;\n}"),
     ALL},
    {"too large a frame", "too large a frame",
     "DOMUS_SEQUENCE(s, struct large) {\nDOMUS_BEGIN;\nDOMUS_END;\n}\n", ALL},
};

static bool has_compiler(const char *compiler)
{
    char output[256];

    return domt_run_shell(output, sizeof output, "command -v %.*s", (int)strcspn(compiler, " "),
                          compiler) == 0;
}

/* Compile `source`, an example of a sequence; the compiler's messages go to `output`. Returns its
 * exit status. */
static int compile_sequence_source(const char *compiler, const char *flags, const char *source,
                                   char *output, size_t size)
{
    char path[] = "/tmp/domus-await-XXXXXX";
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    FILE *file = fdopen(fd, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fprintf(file, "%s%s%s", before_await, source, after), 0);
    ck_assert_int_eq(fclose(file), 0);
    /* The compiler has to write an object file, because it finds some errors only while it
     * generates code. */
    int status =
        domt_run_shell(output, size, "LC_ALL=C %s %s -I '%s/include' -c -o /dev/null '%s' 2>&1",
                       compiler, flags, DOMT_SOURCE_DIR, path);
    ck_assert_int_eq(unlink(path), 0);
    return status;
}

DOMT_TEST(sequence_compiles_without_warning_in_c_and_cpp)
{
    static char output[16384];

    for (int i = 0; i < AWAIT_COMPILERS; i++) {
        if (!has_compiler(compilers_await[i]))
            continue;
        int status =
            compile_sequence_source(compilers_await[i], strict, whole, output, sizeof output);
        ck_assert_msg(status == 0, "%s:\n%s", compilers_await[i], output);
    }
}

DOMT_TEST(misuse_of_sequence_does_not_compile)
{
    static char output[16384];

    for (size_t m = 0; m < sizeof misuses / sizeof misuses[0]; m++) {
        const struct misuse *misuse = &misuses[m];
        for (int i = 0; i < AWAIT_COMPILERS; i++) {
            if ((misuse->refused_by & 1u << i) == 0 || !has_compiler(compilers_await[i]))
                continue;
            int status = compile_sequence_source(compilers_await[i], "", misuse->source, output,
                                                 sizeof output);
            ck_assert_msg(status != 0, "%s: %s compiles", compilers_await[i], misuse->what);
            const char *says = i == GCC ? misuse->says : "error:";
            ck_assert_msg(strstr(output, says) != NULL, "%s: %s", compilers_await[i], output);
        }
    }
}

DOMT_SUITE(60)
