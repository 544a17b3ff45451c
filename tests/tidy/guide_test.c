/* The guide (docs/guide) is what a newcomer reads first: each listing in it is part of a file that
 * is compiled and run with an installed tree, and each output is what that program prints.
 * tests/tidy/guide.py checks this, and says how the blocks of a chapter are marked.
 *
 * Builds with a sanitizer are left out, as in install_test.c. */
#include "tests/support/postgres.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"
#include "tests/tidy/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char output[65536];

/* Install this build to $scratch/domus, apply `change` to a copy of the guide, and run guide.py on
 * the copy. Returns its exit status. */
static int judge_guide(const char *change, const char *chapters)
{
    return domt_shell(output, sizeof output,
                      "scratch=$(mktemp -d) && trap 'rm -r \"$scratch\"' EXIT && "
                      "unset CC CFLAGS LDFLAGS DESTDIR && "
                      "cmake --install '" DOMT_BIN_DIR "/..' --prefix \"$scratch/domus\" "
                      ">\"$scratch/log\" && cp -r '" DOMT_SOURCE_DIR "/docs/guide' \"$scratch\" && "
                      "cd \"$scratch\" && { %s; } && timeout -k 5 250 /usr/bin/python3 "
                      "'" DOMT_SOURCE_DIR "/tests/tidy/guide.py' guide domus %s 2>&1",
                      change, chapters);
}

DOMT_TEST(listings_are_files_and_outputs_are_what_is_printed)
{
    if (DOMT_SANITIZED)
        return;
    int status = judge_guide(":", "");
    printf("%s", status == 0 ? output : ""); /* the parts that were left out */
    ck_assert_msg(status == 0, "status %d: %s", status, output);
}

DOMT_TEST(a_listing_and_an_output_that_are_wrong_are_named)
{
    static const struct {
        const char *change, *named;
    } rows[] = {
        {"sed -i 's/^static int start.*/& \\/\\/ /' guide/01-*.md", "these lines are not in"},
        {"sed -i 's/^hello$/hullo/' guide/01-*.md", "$ printf 'hello\\n'"},
        {"sed -i 's/argc, argv, &program/argc, argv, 0/' guide/code/01/board.c",
         "these lines are not in"},
        {"sed -i 's/^```console.*/```text/' guide/01-*.md", "a block of no kind: text"},
    };

    for (size_t i = 0; !DOMT_SANITIZED && i < sizeof rows / sizeof rows[0]; i++) {
        int status = judge_guide(rows[i].change, "01");
        ck_assert_msg(status == 1 && strstr(output, rows[i].named) != NULL, "%s: %d, %s",
                      rows[i].change, status, output);
    }
}

/* Chapter 6 says that PostgreSQL needs one other line of configuration. In the long form its
 * program is run with PostgreSQL, and prints the same. */
DOMT_TEST(postgresql_prints_what_sqlite_does)
{
    domt_postgres server;

    if (DOMT_SANITIZED || !domt_is_long() || !domt_postgres_is_there())
        return;
    domt_postgres_start(&server, NULL);
    setenv("GUIDE_DATABASE", server.url, 1);
    int status = judge_guide(":", "06");
    unsetenv("GUIDE_DATABASE");
    domt_postgres_stop(&server);
    ck_assert_msg(status == 0, "status %d: %s", status, output);
}

DOMT_SUITE(280)
