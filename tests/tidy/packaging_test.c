/* The rules of the packages: which file is in which package, which names they contain, and that
 * each program which a script or a test starts is in a package. */
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"
#include "tests/tidy/tree.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Rules of packages and of the names in them: each installed file is in one package, the lists of
 * symbols are those of the libraries, one version number stands everywhere, and a program that
 * includes the headers gets only names of domus. Each judge is also run on a copy of the tree in
 * which one thing is wrong. */

#define BUILD_DIR DOMT_BIN_DIR "/.."

static char output[1 << 16];
static char copy[DOMT_PATH_MAX];

#define HOLDS(...)                                                                                 \
    do {                                                                                           \
        int status_ = domt_run_shell(output, sizeof output, __VA_ARGS__);                          \
        ck_assert_msg(status_ == 0, "status %d: %s", status_, output);                             \
    } while (0)

/* Check that the shell command fails and prints `what`. */
#define SEES(what, ...)                                                                            \
    do {                                                                                           \
        int status_ = domt_run_shell(output, sizeof output, __VA_ARGS__);                          \
        ck_assert_msg(status_ == 1 && strstr(output, what) != NULL, "%s: status %d: %s", what,     \
                      status_, output);                                                            \
    } while (0)

/* Copy the files from which packages are made, without the sources and git's folder, so that the
 * copy is small. */
static void make_copy_of_packaging_files(void)
{
    domt_tree_copy_parts(DOMT_SOURCE_DIR,
                         "CMakeLists.txt CHANGELOG.md packaging docs/packages.md include/domus",
                         copy);
}

#define INSTALLED "python3 '" DOMT_SOURCE_DIR "/tests/tidy/installed.py' '" BUILD_DIR "' '%s' 2>&1"

DOMT_TEST(each_installed_file_is_in_exactly_one_package)
{
    HOLDS(INSTALLED, DOMT_SOURCE_DIR "/packaging/debian");
    make_copy_of_packaging_files();
    SEES("usr/bin/domus: in no package",
         "cd '%s/packaging/debian' && sed -i /domus$/d domus-tools.install && " INSTALLED, copy,
         ".");
    SEES("usr/bin/domus: in domus-tools, libdomus-dev",
         "cd '%s/packaging/debian' && echo usr/bin >>libdomus-dev.install &&"
         " echo usr/bin/domus >>domus-tools.install && " INSTALLED,
         copy, ".");
    SEES("domus-doc: nothing is installed that is usr/share/nowhere",
         "cd '%s/packaging/debian' && echo usr/share/nowhere >>domus-doc.install && " INSTALLED,
         copy, ".");
    SEES("domus.spec: usr/bin/domus: in no package",
         "cd '%s/packaging/debian' && sed -i.kept /bindir/d ../domus.spec && " INSTALLED, copy,
         ".");
    SEES("docs/guide/code/02/board.c: it is compressed in its package",
         "cd '%s/packaging/debian' && sed -i s,-X/docs/,, rules && " INSTALLED, copy, ".");
    if (access(BUILD_DIR "/manual/made", R_OK) == 0)
        SEES("domus.spec: ./man3/domus_keep.3 is in no package",
             "cd '%s/packaging/debian' && sed '/manual.list/s/! -type d/! -name domus_keep.3/'"
             " ../domus.spec.kept >../domus.spec && " INSTALLED,
             copy, ".");
    domt_tree_remove_copy(copy);
}

#define SYMBOLS "packaging/write-symbols '" BUILD_DIR "/lib' --check 2>&1"

DOMT_TEST(symbol_lists_match_the_libraries)
{
    if (DOMT_SANITIZED)
        return;
    int status = domt_run_shell(output, sizeof output, "cd '%s' && " SYMBOLS, DOMT_SOURCE_DIR);
    ck_assert_msg(status == 0, "./dev abi --write writes these lists anew:\n%s", output);
    make_copy_of_packaging_files();
    SEES("+ domus_ask@Base",
         "cd '%s' && sed -i /domus_ask@/d packaging/debian/*.symbols && " SYMBOLS, copy);
    SEES("- domus_gone@Base",
         "cd '%s' && echo ' domus_gone@Base 0.3.0' >>packaging/debian/libdomus-sql0.3.symbols &&"
         " " SYMBOLS,
         copy);
    /* A symbol keeps in its list the version in which it was added. */
    HOLDS("cd '%s' && sed -i 's/ domus_stop@Base .*/ domus_stop@Base 0.1.0/'"
          " packaging/debian/libdomus0.3.symbols &&"
          " packaging/write-symbols '" BUILD_DIR "/lib' &&"
          " grep -x ' domus_stop@Base 0.1.0' packaging/debian/libdomus0.3.symbols",
          copy);
    domt_tree_remove_copy(copy);
}

DOMT_TEST(same_version_stands_everywhere)
{
    static const struct {
        const char *file;
        const char *change;
        const char *seen;
    } rows[] = {
        {"CHANGELOG.md", "0,/^## 0/s/^## 0/## 7/", "CHANGELOG.md"},
        {"packaging/debian/changelog", "1s/(0/(7/", "packaging/debian/changelog"},
        {"packaging/domus.spec", "s/^Version:  *0/Version: 7/", "packaging/domus.spec"},
        {"packaging/domus.spec", "s/^%global minor 0/%global minor 7/", "packaging/domus.spec"},
        {"docs/packages.md", "s/find_package(domus 0/find_package(domus 7/", "docs/packages.md"},
        {"packaging/domus-sql.pc.in", "s/^Version: .*/Version: 7/", "packaging/domus-sql.pc.in"},
        {"packaging/debian/control", "s/^Package: libdomus-sql0/Package: libdomus-sql7/",
         "packaging/debian/control"},
    };

    HOLDS("'%s/packaging/check-release' --versions 2>&1", DOMT_SOURCE_DIR);
    make_copy_of_packaging_files();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        SEES(rows[i].seen,
             "cd '%s' && sed -i.kept '%s' %s && packaging/check-release --versions 2>&1", copy,
             rows[i].change, rows[i].file);
        HOLDS("cd '%s' && mv %s.kept %s 2>&1", copy, rows[i].file, rows[i].file);
    }
    domt_tree_remove_copy(copy);
}

#define NAMES "python3 '" DOMT_SOURCE_DIR "/tests/tidy/names.py' '%s/include' 2>&1"

DOMT_TEST(headers_define_only_names_of_domus)
{
    static const char *const texts[] = {
        "#define STRAY 1\n",
        "int stray(int domus_a);\n",
        "extern int stray;\n",
        "typedef int stray;\n",
        "typedef struct domus_x {\n    int a;\n} stray;\n",
        "typedef int (*stray)(void);\n",
        "struct stray {\n    int a;\n};\n",
        "enum {\n    DOMUS_NO_STRAY,\n    STRAY = 3\n};\n",
        "static inline int stray(int domus_a)\n{\n    return domus_a;\n}\n",
    };

    HOLDS(NAMES, DOMT_SOURCE_DIR);
    make_copy_of_packaging_files();
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        domt_tree_append_text_to_file(copy, "include/domus/planted.h", texts[i]);
        SEES(strstr(texts[i], "STRAY = 3") != NULL || texts[i][0] == '#' ? "STRAY" : "stray", NAMES,
             copy);
        HOLDS("rm '%s/include/domus/planted.h' 2>&1", copy);
    }
    domt_tree_remove_copy(copy);
}

/* --- packages --------------------------------------------------------------------------------- */

/* Each program that a script or a test starts is on a fresh Debian, or in a list of packages of
 * `dev`. A run of the tests on a machine where all programs are installed does not show this. */

static char output_packages[32768];

DOMT_TEST(each_started_program_is_in_a_listed_package)
{
    int status = domt_run_shell(output_packages, sizeof output_packages,
                                "python3 '%s/tests/tidy/packages.py' '%s'", DOMT_SOURCE_DIR,
                                DOMT_SOURCE_DIR);

    ck_assert_msg(status == 0,
                  "status %d: %sPut its package into one of the lists at the head of `dev`, or do "
                  "without it",
                  status, output_packages);
}

/* A program without a package is also found if a script starts it behind a pipe, in a substitution,
 * or by `timeout`. */
DOMT_TEST(started_program_without_package_is_named)
{
    static const char *const texts[] = {"nowhere-to-be-found a", "sort x | nowhere-to-be-found",
                                        "x=$(nowhere-to-be-found)",
                                        "if timeout 5 nowhere-to-be-found; then :; fi"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int status = domt_run_shell(output_packages, sizeof output_packages,
                                    "python3 '%s/tests/tidy/packages.py' '%s' '%s'",
                                    DOMT_SOURCE_DIR, DOMT_SOURCE_DIR, texts[i]);
        ck_assert_msg(status == 1 && strstr(output_packages, "nowhere-to-be-found") != NULL,
                      "%s: %s", texts[i], output_packages);
    }
    ck_assert_int_eq(domt_run_shell(output_packages, sizeof output_packages,
                                    "python3 '%s/tests/tidy/packages.py' '%s' 'sort x | redis-cli'",
                                    DOMT_SOURCE_DIR, DOMT_SOURCE_DIR),
                     0);
}

DOMT_SUITE(120)
