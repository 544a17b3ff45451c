/* Properties of the built files: the symbols that the shared libraries export, and the compiler's
 * protections against a program's own errors. */
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/tidy/libraries.h"
#include "tests/tidy/tree.h"

#include <stdio.h>
#include <string.h>

/* The shared libraries export exactly the symbols that the public headers declare with DOMUS_API.
 * Internal symbols that more than one file uses have names that begin with domi_. */

#define NAMES_MAX      4096
#define NAME_MAX_BYTES 96

struct names {
    size_t count;
    char name[NAMES_MAX][NAME_MAX_BYTES];
};

static void add_symbol_name(struct names *names, const char *name, size_t length)
{
    ck_assert_uint_lt(names->count, NAMES_MAX);
    ck_assert_uint_lt(length, NAME_MAX_BYTES);
    memcpy(names->name[names->count], name, length);
    names->name[names->count][length] = '\0';
    names->count++;
}

static bool has_symbol_name(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->name[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- What is declared -------------------------------------------------------------------------*/

static struct names declared[DOMT_LIBRARIES_MAX];

/* A rule that reports nothing, but collects the names of declared symbols: a name is the last word
 * before the parenthesis, or before the end of a declaration without one. */
static void collect_declared_names_of_file(const domt_source *source, domt_report *report)
{
    if (!domt_text_starts_with(source->path, "include/domus/")) {
        return;
    }
    const char *p = strstr(source->code, "DOMUS_API");
    for (; p != NULL; p = strstr(p + 1, "DOMUS_API")) {
        const char *start = p + strlen("DOMUS_API");
        const char *line = p;
        while (line > source->code && line[-1] != '\n') {
            line--;
        }
        if (line[0] == '#') {
            continue; /* this is the definition of the macro DOMUS_API */
        }
        const char *end = start + strcspn(start, "(;[=");
        while (end > start && !domt_is_identifier_char(end[-1])) {
            end--;
        }
        const char *name = end;
        while (name > start && domt_is_identifier_char(name[-1])) {
            name--;
        }
        add_symbol_name(&declared[domt_library_of_header(source->path + strlen("include/domus/"))],
                        name, (size_t)(end - name));
    }
}

/* ---- What is there ----------------------------------------------------------------------------*/

/* Read the symbols that nm prints for a library. Symbols that begin with two underscores are the
 * sanitizers' own, and are left out. */
static void read_symbols_of_library(const char *options, const char *library, struct names *names)
{
    static char output[1 << 18];
    char *next = NULL;
    int status = domt_run_shell(output, sizeof output,
                                "nm %s --defined-only '%s' 2>&1 | awk 'NF == 3 { print $3 }'",
                                options, library);

    names->count = 0;
    ck_assert_int_eq(status, 0);
    for (char *name = strtok_r(output, "\n", &next); name != NULL;
         name = strtok_r(NULL, "\n", &next)) {
        if (!domt_text_starts_with(name, "__")) {
            add_symbol_name(names, name, strlen(name));
        }
    }
    ck_assert_msg(names->count > 0, "no symbol in %s", library);
}

static void compare_declarations_with_exports(const char *library, size_t which,
                                              domt_report *report)
{
    static struct names exported;
    const struct names *wanted = &declared[which];

    read_symbols_of_library("-D", library, &exported);
    for (size_t i = 0; i < exported.count; i++) {
        if (!has_symbol_name(wanted, exported.name[i])) {
            domt_report_add_offence(report, library, 0, "exports %s, which no header declares",
                                    exported.name[i]);
        }
    }
    for (size_t i = 0; i < wanted->count; i++) {
        if (!has_symbol_name(&exported, wanted->name[i])) {
            domt_report_add_offence(report, library, 0, "does not export %s", wanted->name[i]);
        }
    }
}

/* Compare the declarations in the public headers of `root` with the symbols that the file `library`
 * exports, or the library number `which` of this build if that is NULL. */
static void compare_headers_with_library(const char *root, const char *library, size_t which,
                                         domt_report *report)
{
    char built[DOMT_PATH_MAX];

    snprintf(built, sizeof built, DOMT_BIN_DIR "/../lib/%s.so", domt_libraries[which]);
    memset(declared, 0, sizeof declared);
    *report = (domt_report){0};
    domt_tree_walk_all_files(root, collect_declared_names_of_file, report);
    for (size_t i = 0; domt_libraries[i] != NULL; i++) {
        ck_assert_uint_gt(declared[i].count, 0);
    }
    compare_declarations_with_exports(library != NULL ? library : built, which, report);
}

static domt_report report;

DOMT_TEST(each_library_exports_what_its_headers_declare)
{
    for (size_t i = 0; domt_libraries[i] != NULL; i++) {
        compare_headers_with_library(DOMT_SOURCE_DIR, NULL, i, &report);
        ck_assert_msg(report.count == 0, "%s", report.text);
    }
}

/* Report each symbol of an archive that other files can use and whose name is neither internal
 * (domi_) nor public (domus_), except the symbol that sys/sdt.h makes in each file with probes. */
static void report_symbols_without_prefix(const char *archive, domt_report *strangers)
{
    static struct names names;

    read_symbols_of_library("-g", archive, &names);
    for (size_t i = 0; i < names.count; i++) {
        if (!domt_text_starts_with(names.name[i], "domi_") &&
            !domt_text_starts_with(names.name[i], "domus_") &&
            strcmp(names.name[i], "_.stapsdt.base") != 0) {
            domt_report_add_offence(strangers, archive, 0, "%s: name it domi_, or make it static",
                                    names.name[i]);
        }
    }
}

DOMT_TEST(symbol_used_in_other_files_is_named_domi_or_domus)
{
    for (size_t i = 0; domt_libraries[i] != NULL; i++) {
        char archive[DOMT_PATH_MAX];
        snprintf(archive, sizeof archive, DOMT_BIN_DIR "/../lib/%s.a", domt_libraries[i]);
        report_symbols_without_prefix(archive, &report);
    }
    ck_assert_msg(report.count == 0, "%s", report.text);
}

DOMT_TEST(tidy_sees_declaration_without_exported_symbol)
{
    static domt_report other;
    char copy[DOMT_PATH_MAX];

    domt_tree_copy_parts(DOMT_SOURCE_DIR, "include", copy);
    domt_tree_append_text_to_file(copy, "include/domus/config.h",
                                  "DOMUS_API char\n    *domus_nowhere(int);\n");
    domt_tree_append_text_to_file(copy, "include/domus/yaml.h",
                                  "DOMUS_API extern const int domus_nothing[2];\n");
    compare_headers_with_library(copy, NULL, 0, &report);
    compare_headers_with_library(copy, NULL, 1, &other);
    domt_tree_remove_copy(copy);

    ck_assert_ptr_nonnull(strstr(report.text, "does not export domus_nowhere"));
    ck_assert_ptr_null(strstr(report.text, "domus_nothing"));
    ck_assert_ptr_nonnull(strstr(other.text, "does not export domus_nothing"));
    ck_assert_ptr_null(strstr(other.text, "domus_nowhere"));
}

/* A small planted library exports an internal function, because it is not hidden. */
DOMT_TEST(tidy_sees_exported_symbol_without_declaration)
{
    char copy[DOMT_PATH_MAX];
    char library[DOMT_PATH_MAX + 32];
    char output[4096];

    domt_tree_copy_parts(DOMT_SOURCE_DIR, "include", copy);
    domt_tree_append_text_to_file(copy, "leak.c",
                                  "int domi_leak(void);\nint domi_leak(void) { return 0; }\n");
    snprintf(library, sizeof library, "%s/libleak.so", copy);
    int status = domt_run_shell(output, sizeof output, "cc -shared -fPIC -o '%s' '%s/leak.c' 2>&1",
                                library, copy);
    if (status == 0) {
        compare_headers_with_library(copy, library, 0, &report);
    }
    domt_tree_remove_copy(copy);

    ck_assert_msg(status == 0, "%s", output);
    ck_assert_ptr_nonnull(strstr(report.text, "exports domi_leak, which no header declares"));
}

DOMT_TEST(tidy_sees_symbol_without_prefix)
{
    static const char *const code = "int stranger(void);\nint stranger(void) { return 0; }\n"
                                    "int domi_one(void);\nint domi_one(void) { return 0; }\n";
    char copy[DOMT_PATH_MAX];
    char archive[DOMT_PATH_MAX + 32];
    char output[4096];

    domt_tree_copy_parts(DOMT_SOURCE_DIR, "include", copy);
    domt_tree_append_text_to_file(copy, "stranger.c", code);
    snprintf(archive, sizeof archive, "%s/libstranger.a", copy);
    int status = domt_run_shell(output, sizeof output,
                                "cd '%s' && cc -c stranger.c 2>&1 && ar rc '%s' stranger.o 2>&1",
                                copy, archive);
    if (status == 0) {
        report_symbols_without_prefix(archive, &report);
    }
    domt_tree_remove_copy(copy);

    ck_assert_msg(status == 0, "%s", output);
    ck_assert_uint_eq(report.count, 1);
    ck_assert_ptr_nonnull(strstr(report.text, "stranger: name it domi_"));
}

/* --- hardened --------------------------------------------------------------------------------- */

/* The files that were built have the compiler's protections against a program's own errors. The
 * test finds these protections in the libraries and in a program, and finds them missing in a
 * program built without them. Builds with a sanitizer are left out: CMakeLists.txt gives them no
 * protection. */

#define LIB DOMT_BIN_DIR "/../lib/"

/* A protection of built files, and which lines of readelf's output show it (an extended expression
 * of grep). */
static const struct property {
    const char *name;
    const char *options; /* the options of readelf with which it shows this protection */
    const char *line;
    bool wanted; /* true: a line of the output must match; false: no line may match */
    bool program_only;
    /* true: the property holds only for files whose own code calls functions of libc with
     * buffers */
    bool calls;
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

static bool has_file_protection(const struct property *property, const char *file)
{
    static char output[4096];
    int status = domt_run_shell(output, sizeof output, "LC_ALL=C readelf %s '%s' | grep -E -q '%s'",
                                property->options, file, property->line);

    ck_assert_msg(status == 0 || status == 1, "readelf %s: %d", file, status);
    return (status == 0) == property->wanted;
}

static void report_missing_protections(const char *file, bool is_program, bool calls)
{
    for (size_t i = 0; i < PROPERTIES; i++) {
        if ((properties[i].program_only && !is_program) || (properties[i].calls && !calls))
            continue;
        ck_assert_msg(has_file_protection(&properties[i], file), "%s lacks %s", file,
                      properties[i].name);
    }
}

DOMT_TEST(libraries_and_programs_are_hardened)
{
    if (DOMT_SANITIZED)
        return;
    for (size_t i = 0; domt_libraries[i] != NULL; i++) {
        char path[DOMT_PATH_MAX];

        snprintf(path, sizeof path, LIB "%s.so", domt_libraries[i]);
        report_missing_protections(path, false, true);
    }
    report_missing_protections(DOMT_BIN_DIR "/echo", true, true);
    report_missing_protections(DOMT_BIN_DIR "/ping_pong", true, true);
}

/* gcc records in the debugging information with which flags each object was made; clang does
 * not. */
DOMT_TEST(each_object_was_compiled_with_protective_flags)
{
    static char output[65536];
    static const char *const flags[] = {"-fstack-protector-strong", "-fstack-clash-protection",
#ifdef __x86_64__
                                        "-fcf-protection=",
#endif
                                        "-fPIC"};

    for (size_t i = 0; domt_libraries[i] != NULL && !DOMT_SANITIZED; i++) {
        char *next = NULL;
        int status =
            domt_run_shell(output, sizeof output,
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

/* The source of a program that is built without any of the protections. Its code needs no
 * relocation. */
DOMT_TEST(tidy_sees_missing_protections_of_a_file)
{
    static char output[4096];
    static const char text[] = "#include <string.h>\\nint main(int n, char **v) { char b[64]; "
                               "memcpy(b, v[0], (size_t)n); return b[0]; }\\n";
    char path[64] = "/tmp/domus-hardened-XXXXXX";

    ck_assert_ptr_nonnull(mkdtemp(path));
    int status = domt_run_shell(output, sizeof output,
                                "printf '%s' | cc -x c -O2 -fno-stack-protector -U_FORTIFY_SOURCE "
                                "-fcf-protection=none -no-pie -z execstack -z norelro -z lazy "
                                "-o '%s/lax' - 2>&1",
                                text, path);
    ck_assert_msg(status == 0, "%s", output);
    char file[96];
    snprintf(file, sizeof file, "%s/lax", path);
    for (size_t i = 0; i < PROPERTIES; i++) {
        if (strcmp(properties[i].line, "TEXTREL") != 0)
            ck_assert_msg(!has_file_protection(&properties[i], file), "seen: %s",
                          properties[i].name);
    }
    ck_assert_int_eq(domt_run_shell(output, sizeof output, "rm -r '%s'", path), 0);
}

DOMT_SUITE(60)
