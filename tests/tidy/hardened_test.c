/* The files that were built have the compiler's protections against a program's own errors. The
 * test finds these protections in the libraries and in a program, and finds them missing in a
 * program built without them.
 *
 * Builds with a sanitizer are left out: CMakeLists.txt gives them no protection. */
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/tidy/libraries.h"
#include "tests/tidy/tree.h"

#include <stdio.h>
#include <string.h>

#define LIB DOMT_BIN_DIR "/../lib/"

/* A protection, and which lines of readelf show it (an extended expression of grep). */
static const struct property {
    const char *name;
    const char *options; /* the options of readelf */
    const char *line;
    bool wanted; /* true: a line must match; false: no line may match */
    bool program_only;
    bool calls; /* true: holds only for files whose own code calls libc with buffers */
} properties[] = {
    {"a stack that may not be executed", "-lW", "GNU_STACK .* RW +0x", true, false, false},
    {"no segment that may be written and executed", "-lW", " RWE ", false, false, false},
    {"an address table that is read-only", "-lW", "GNU_RELRO", true, false, false},
    {"all addresses bound at the start", "-dW", "FLAGS_1.*NOW", true, false, false},
    {"no relocation in the code", "-dW", "TEXTREL", false, false, false},
    {"any address to be loaded at", "-dW", "FLAGS_1.*PIE", true, true, false},
#ifdef __x86_64__
    {"a shadow stack", "-nW", "x86 feature:.*SHSTK", true, false, false},
#endif
    {"a canary in stacks", "-sW", "__stack_chk_fail", true, false, true},
    {"calls of libc that know the size", "-sW", "__(memcpy|snprintf|vsnprintf|read)_chk", true,
     false, true},
};

#define PROPERTIES (sizeof properties / sizeof properties[0])

static bool has_property(const struct property *property, const char *file)
{
    static char output[4096];
    int status = domt_shell(output, sizeof output, "LC_ALL=C readelf %s '%s' | grep -E -q '%s'",
                            property->options, file, property->line);

    ck_assert_msg(status == 0 || status == 1, "readelf %s: %d", file, status);
    return (status == 0) == property->wanted;
}

static void check_properties(const char *file, bool is_program, bool calls)
{
    for (size_t i = 0; i < PROPERTIES; i++) {
        if ((properties[i].program_only && !is_program) || (properties[i].calls && !calls))
            continue;
        ck_assert_msg(has_property(&properties[i], file), "%s lacks %s", file, properties[i].name);
    }
}

DOMT_TEST(libraries_and_programs_are_hardened)
{
    if (DOMT_SANITIZED)
        return;
    for (size_t i = 0; domt_libraries[i] != NULL; i++) {
        char path[DOMT_PATH_MAX];

        snprintf(path, sizeof path, LIB "%s.so", domt_libraries[i]);
        check_properties(path, false, true);
    }
    check_properties(DOMT_BIN_DIR "/echo", true, true);
    check_properties(DOMT_BIN_DIR "/ping_pong", true, true);
}

/* gcc records in the debug information the flags with which each object was made; clang does
 * not. */
DOMT_TEST(each_object_was_compiled_with_each_flag)
{
    static char output[65536];
    static const char *const flags[] = {"-fstack-protector-strong", "-fstack-clash-protection",
#ifdef __x86_64__
                                        "-fcf-protection=",
#endif
                                        "-fPIC"};

    for (size_t i = 0; domt_libraries[i] != NULL && !DOMT_SANITIZED; i++) {
        char *next = NULL;
        int status = domt_shell(output, sizeof output,
                                "LC_ALL=C readelf --debug-dump=info '" LIB "%s.a' 2>/dev/null | "
                                "sed -n 's/.*DW_AT_producer.*: //p' | sort -u",
                                domt_libraries[i]);
        ck_assert(status == 0 && output[0] != '\0');
        for (char *made = strtok_r(output, "\n", &next); made != NULL;
             made = strtok_r(NULL, "\n", &next)) {
            for (size_t f = 0; f < sizeof flags / sizeof flags[0]; f++)
                ck_assert_msg(strstr(made, "GNU C") == NULL || strstr(made, flags[f]) != NULL,
                              "%s has an object without %s: %s", domt_libraries[i], flags[f], made);
        }
    }
}

/* A program built without any of the protections. Its code needs no relocation. */
DOMT_TEST(tidy_sees_what_a_file_lacks)
{
    static char output[4096];
    static const char text[] = "#include <string.h>\\nint main(int n, char **v) { char b[64]; "
                               "memcpy(b, v[0], (size_t)n); return b[0]; }\\n";
    char path[64] = "/tmp/domus-hardened-XXXXXX";

    ck_assert_ptr_nonnull(mkdtemp(path));
    int status = domt_shell(output, sizeof output,
                            "printf '%s' | cc -x c -O2 -fno-stack-protector -U_FORTIFY_SOURCE "
                            "-fcf-protection=none -no-pie -z execstack -z norelro -z lazy "
                            "-o '%s/lax' - 2>&1",
                            text, path);
    ck_assert_msg(status == 0, "%s", output);
    char file[96];
    snprintf(file, sizeof file, "%s/lax", path);
    for (size_t i = 0; i < PROPERTIES; i++) {
        if (strcmp(properties[i].line, "TEXTREL") != 0)
            ck_assert_msg(!has_property(&properties[i], file), "seen: %s", properties[i].name);
    }
    ck_assert_int_eq(domt_shell(output, sizeof output, "rm -r '%s'", path), 0);
}

DOMT_SUITE(60)
