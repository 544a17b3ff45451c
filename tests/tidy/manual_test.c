/* The texts that users read are right: the manual page of `domus`, the pages of all names, and the
 * listings and outputs of the guide. */
#include "tests/support/postgres.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"
#include "tests/tidy/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The manual page of the program `domus`, and the shell's completion for it, know each command with
 * each of its options, and no other option. If the program was not built, nothing is tested. */

static char output[32768];

/* Run the shell text `program` for each command of `domus`. In it $1 is the command's name, $page
 * its manual page, $help its help, and the function `options` prints the options in its input, one
 * on a line. */
static void run_shell_for_each_command(const char *program)
{
    if (access(DOMT_BIN_DIR "/domus", X_OK) != 0) {
        printf("the program domus is not built, so its manual is not looked at\n");
        return;
    }
    int status = domt_run_shell(
        output, sizeof output,
        "exec 2>&1; cd '" DOMT_SOURCE_DIR "/packaging' || exit\n"
        "options() { grep -o -e '--[a-z][-a-z]*' -e '[[(, ]-[a-zA-Z]\\b' | tr -d '[(, ' | sort -u; "
        "}\n"
        "look() { page=man/domus-$1.1; help=$('" DOMT_BIN_DIR
        "/domus' \"$1\" --help) || exit\n%s; }\n"
        "for name in $('" DOMT_BIN_DIR
        "/domus' --help | sed -n 's/^  \\([a-z][a-z]*\\) .*/\\1/p'); do\n"
        "    look \"$name\" || { echo \"domus $name\"; exit 1; }; seen=$((${seen:-0} + 1))\n"
        "done; [ \"$seen\" -eq 12 ]",
        program);
    ck_assert_msg(status == 0, "status %d: %s", status, output);
}

/* A line of shell that puts the options that a command's help names into $o. */
#define HELPED "o=$(echo \"$help\" | sed -n '/^  -\\|^      --/s/   *[^ -].*//p' | options)"

DOMT_TEST(each_option_is_described_in_manual_page)
{
    run_shell_for_each_command(HELPED
                               " && m=$(sed -n 's/^[.]It //p' $page | "
                               "sed 's/Fl -/ --/g; s/Fl \\([a-zA-Z]\\)/ -\\1/g' | options) && "
                               "[ \"$o\" = \"$m\" ] || { echo \"help: $o; page: $m\"; false; }");
}

DOMT_TEST(each_option_is_completed_by_the_shell)
{
    run_shell_for_each_command(
        HELPED " && c=$(bash -c '. completion/domus.bash; COMP_WORDS=(domus $0 -) COMP_CWORD=2; "
               "_domus; printf \" %s\\n\" \"${COMPREPLY[@]}\"' \"$1\" | options) && "
               "[ \"$o\" = \"$c\" ] || { echo \"help: $o; completion: $c\"; false; }");
}

/* File names may come from other people, so the completion must not run a part of a file's name as
 * a shell command. */
DOMT_TEST(completion_runs_no_part_of_file_names)
{
    int status = domt_run_shell(
        output, sizeof output,
        "exec 2>&1; cd '" DOMT_SOURCE_DIR "/packaging' || exit\n"
        "bash -c '. completion/domus.bash\n"
        "command() { printf \"%%s\\n\" \"PID\" \"  42 \\$(echo\\${IFS}bad)  unix:/a\" "
        "\" 43 shop-2.x   unix:/b\" \"  44 \\`echo\\` 1\" \"45 a{b,c} 1\"; }\n"
        "COMP_WORDS=(domus top -p \"\") COMP_CWORD=3\n"
        "_domus; echo \"${COMPREPLY[@]}\"'");

    ck_assert_int_eq(status, 0);
    ck_assert_str_eq(output, "42 43 shop-2.x 44 45\n");
}

/* Manual pages refer to each other before they are installed, which mandoc cannot know. */
DOMT_TEST(mandoc_finds_no_fault_in_manual_pages)
{
    int status =
        domt_run_shell(output, sizeof output,
                       "exec 2>&1; cd '" DOMT_SOURCE_DIR "/packaging/man' && "
                       "command -v mandoc >/dev/null || exit 0\n"
                       "mandoc -Tlint -Wstyle *.1 | grep -v 'referenced manual not found'\n"
                       "for page in *.1; do mandoc -Tascii $page >/dev/null || exit; done");

    ck_assert_int_eq(status, 0);
    ck_assert_str_eq(output, "");
}

/* --- manual pages ----------------------------------------------------------------------------- */

/* The manual that this build has made has a page for each name. tests/tidy/manual.py collects the
 * names without the generator: from the compiler, its debugging information, nm, and the schema of
 * the configuration. A build with a sanitizer makes no manual, so nothing is tested there. */

/* Run the judges of tests/tidy/manual.py that `names` lists, on the manual of this build or, if
 * `change` is given, on a copy that this shell text has changed; the copy's folder is `manual`.
 * Returns the exit status. */
static int run_judges_of_manual(const char *names, const char *change)
{
    return domt_run_shell(
        output, sizeof output,
        "exec 2>&1; scratch=$(mktemp -d) && trap 'rm -rf \"$scratch\"' EXIT || exit 2\n"
        "build='" DOMT_BIN_DIR "/..'\n"
        "if [ -n '%s' ]; then\n"
        "    cp -R \"$build/manual\" \"$scratch/manual\" || exit 2\n"
        "    ln -s \"$(realpath \"$build/lib\")\" \"$scratch/lib\"\n"
        "    ln -s \"$(realpath \"$build/bin\")\" \"$scratch/bin\"\n"
        "    build=$scratch\n"
        "    (cd \"$build/manual\" && %s) || exit 2\n"
        "fi\n"
        "python3 -B '" DOMT_SOURCE_DIR "/tests/tidy/manual.py' '" DOMT_SOURCE_DIR "' \"$build\" %s",
        change, *change != '\0' ? change : ":", names);
}

static bool has_build_made_manual(void)
{
    bool is_there = access(DOMT_BIN_DIR "/../manual/made", R_OK) == 0;

    if (!is_there)
        printf("this build has made no manual, so it is not looked at\n");
    return is_there;
}

/* Changes to a copy of the manual, each with the name of a judge and the message that the judge
 * then prints. */
static const struct {
    const char *name;
    const char *change;
    const char *expected;
} rows[] = {
    {"names", "rm man/man3/domus_ask.3 man/man3/DOMUS_PARKED.3 man/man3/domus_kept_fail.3",
     "DOMUS_PARKED, a macro, has no page"},
    {"fields", "sed -i /on_restart/d man/man3/domus_behaviour.3",
     "the page of domus_behaviour has no field on_restart"},
    {"libraries", "sed -i s/ldomus-sql/ldomus/ man/man3/domus_sql_error_make.3",
     "the page of domus_sql_error_make does not say -ldomus-sql"},
    {"keys", "sed -i /mailboxMax/d man/man5/domus.yaml.5",
     "the key scheduler.mailboxMax is not in domus.yaml(5)"},
    {"counters", "sed -i /domus_belted/d man/man7/domus_counters.7",
     "the metric domus_belted is not in domus_counters(7)"},
    {"links", "rm man/man3/domus_keep.3", "domus_keep(3) is nowhere"},
    {"links", "rm man/man7/domus_actors.7", "README.md: man 7 domus_actors shows nothing"},
    {"links", "rm html/domus_keep.3.html", "there is no domus_keep.3.html"},
    {"lint", "echo .Xx >>man/man3/domus_keep.3", "domus_keep.3"},
    {"texts", "sed -i \"s/^.Nd read.*/.Nd read and/\" man/man3/domus_http_read_basic.3",
     "domus_http_read_basic.3: its line is cut"},
    {"texts", "sed -i s/blocking.queueMax/Blocking.queueMax/ man/man3/domus_blocking.3",
     "there is no key Blocking.queueMax"},
    {"texts", "sed -i \"/Er EMSGSIZE/d\" man/man3/domus_append.3",
     "domus_append.3: EMSGSIZE is returned, and not among the errors"},
    {"texts", "sed -i \"s/[\\\\]%//\" man/man3/domus_file_type.3",
     "domus_file_type.3: a hyphen may divide"},
    {"same", "echo x >>man/man3/domus_keep.3", "domus_keep.3 differs from run to run"},
};

DOMT_TEST(manual_has_a_page_for_each_name)
{
    if (!has_build_made_manual())
        return;
    int status = run_judges_of_manual("names fields libraries keys counters links lint texts", "");
    ck_assert_msg(status == 0, "status %d: %s", status, output);
}

/* A second run of the generator and copies of the manual take time, so they are tested in the long
 * form only. */
DOMT_TEST(second_run_makes_identical_manual)
{
    if (!has_build_made_manual() || getenv("DOMT_LONG") == NULL)
        return;
    int status = run_judges_of_manual("same", "");
    ck_assert_msg(status == 0, "status %d: %s", status, output);
}

DOMT_TEST(judges_see_missing_parts_of_manual)
{
    if (!has_build_made_manual() || getenv("DOMT_LONG") == NULL)
        return;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int status = run_judges_of_manual(rows[i].name, rows[i].change);
        ck_assert_msg(status == 1 && strstr(output, rows[i].expected) != NULL, "%s: status %d: %s",
                      rows[i].change, status, output);
    }
}

/* --- guide ------------------------------------------------------------------------------------ */

/* The guide (docs/guide) is what a newcomer reads first: each listing in it is part of a file that
 * is compiled and run with an installed tree, and each output is what that program prints.
 * tests/tidy/guide.py checks this, and says how the blocks of a chapter are marked. Builds with a
 * sanitizer are left out, as in install_test.c. */

static char output_guide[65536];

/* Install this build to $scratch/domus, apply `change` to a copy of the guide, and run guide.py on
 * the copy. Returns its exit status. */
static int run_judge_of_guide(const char *change, const char *chapters)
{
    return domt_run_shell(output_guide, sizeof output_guide,
                          "scratch=$(mktemp -d) && trap 'rm -r \"$scratch\"' EXIT && "
                          "unset CC CFLAGS LDFLAGS DESTDIR && "
                          "cmake --install '" DOMT_BIN_DIR "/..' --prefix \"$scratch/domus\" "
                          ">\"$scratch/log\" && cp -r '" DOMT_SOURCE_DIR
                          "/docs/guide' \"$scratch\" && "
                          "cd \"$scratch\" && { %s; } && timeout -k 5 250 /usr/bin/python3 "
                          "'" DOMT_SOURCE_DIR "/tests/tidy/guide.py' guide domus %s 2>&1",
                          change, chapters);
}

DOMT_TEST(guide_listings_and_outputs_are_true)
{
    if (DOMT_SANITIZED)
        return;
    int status = run_judge_of_guide(":", "");
    printf("%s", status == 0 ? output_guide : ""); /* guide.py prints which parts it has left out */
    ck_assert_msg(status == 0, "status %d: %s", status, output_guide);
}

DOMT_TEST(wrong_listing_or_output_of_guide_is_named)
{
    static const struct {
        const char *change, *named;
    } chapters[] = {
        {"sed -i 's/^static int start.*/& \\/\\/ /' guide/01-*.md", "these lines are not in"},
        {"sed -i 's/^hello$/hullo/' guide/01-*.md", "$ printf 'hello\\n'"},
        {"sed -i 's/argc, argv, &program/argc, argv, 0/' guide/code/01/board.c",
         "these lines are not in"},
        {"sed -i 's/^```console.*/```text/' guide/01-*.md", "a block of no kind: text"},
    };

    for (size_t i = 0; !DOMT_SANITIZED && i < sizeof chapters / sizeof chapters[0]; i++) {
        int status = run_judge_of_guide(chapters[i].change, "01");
        ck_assert_msg(status == 1 && strstr(output_guide, chapters[i].named) != NULL, "%s: %d, %s",
                      chapters[i].change, status, output_guide);
    }
}

/* Chapter 6 says that PostgreSQL needs one other line of configuration. In the long form its
 * program is run with PostgreSQL, and prints the same. */
DOMT_TEST(guide_program_prints_same_with_postgresql)
{
    domt_postgres server;

    if (DOMT_SANITIZED || !domt_tests_are_long() || !domt_postgres_is_installed())
        return;
    domt_postgres_start(&server, NULL);
    setenv("GUIDE_DATABASE", server.url, 1);
    int status = run_judge_of_guide(":", "06");
    unsetenv("GUIDE_DATABASE");
    domt_postgres_stop(&server);
    ck_assert_msg(status == 0, "status %d: %s", status, output_guide);
}

DOMT_SUITE(600)
