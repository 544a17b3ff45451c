/* include/domus/await.h: code that the manual of sequences forbids does not compile, with a user's
 * plain flags; code that it allows compiles, with all warnings. */
#include "tests/support/suite.h"
#include "tests/tidy/tree.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { GCC, GCC_O2, CLANG, GXX, CLANGXX, COMPILERS };

static const char *const compilers[COMPILERS] = {
    "gcc -x c -std=c17 -O0",       "gcc -x c -std=c17 -O2",         "clang -x c -std=c17",
    "g++ -x c++ -std=c++17 -Wall", "clang++ -x c++ -std=c++17 -O0",
};

#define ALL         ((1u << COMPILERS) - 1)
#define ALL_BUT_GXX (ALL & ~(1u << GXX))
static const char strict[] = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wvla "
                             "-Wimplicit-fallthrough -Werror";

static const char before[] = "#include <domus/await.h>\n"
                             "struct kept { int number; };\n"
                             "struct large { char bytes[DOMUS_FRAME_MAX]; };\n"
                             "extern const domus_type t;\n"
                             "extern const domus_on rows[];\n"
                             "int use(int number);\n";

static const char after[] = "\nconst domus_on rows[] = {DOMUS_ON(&t, s), {NULL, NULL, 0}};\n";

#define SEQUENCE "DOMUS_SEQUENCE(s, struct kept) {\n"

/* A sequence that compiles: it has all macros, and locals wherever they are allowed. */
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
    const char *says; /* the message of gcc, in C */
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

static bool is_there(const char *compiler)
{
    char output[256];

    return domt_shell(output, sizeof output, "command -v %.*s", (int)strcspn(compiler, " "),
                      compiler) == 0;
}

/* Compile `source`; the compiler's messages go to `output`. Returns its exit status. */
static int compile_source(const char *compiler, const char *flags, const char *source, char *output,
                          size_t size)
{
    char path[] = "/tmp/domus-await-XXXXXX";
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    FILE *file = fdopen(fd, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fprintf(file, "%s%s%s", before, source, after), 0);
    ck_assert_int_eq(fclose(file), 0);
    /* Compile to an object file, because some errors are found only while code is generated. */
    int status =
        domt_shell(output, size, "LC_ALL=C %s %s -I '%s/include' -c -o /dev/null '%s' 2>&1",
                   compiler, flags, DOMT_SOURCE_DIR, path);
    ck_assert_int_eq(unlink(path), 0);
    return status;
}

DOMT_TEST(sequence_compiles_without_a_warning_in_c_and_cpp)
{
    static char output[16384];

    for (int i = 0; i < COMPILERS; i++) {
        if (!is_there(compilers[i]))
            continue;
        int status = compile_source(compilers[i], strict, whole, output, sizeof output);
        ck_assert_msg(status == 0, "%s:\n%s", compilers[i], output);
    }
}

DOMT_TEST(misuse_of_a_sequence_does_not_compile)
{
    static char output[16384];

    for (size_t m = 0; m < sizeof misuses / sizeof misuses[0]; m++) {
        const struct misuse *misuse = &misuses[m];
        for (int i = 0; i < COMPILERS; i++) {
            if ((misuse->refused_by & 1u << i) == 0 || !is_there(compilers[i]))
                continue;
            int status = compile_source(compilers[i], "", misuse->source, output, sizeof output);
            ck_assert_msg(status != 0, "%s: %s compiles", compilers[i], misuse->what);
            const char *says = i == GCC ? misuse->says : "error:";
            ck_assert_msg(strstr(output, says) != NULL, "%s: %s", compilers[i], output);
        }
    }
}

DOMT_SUITE(60)
