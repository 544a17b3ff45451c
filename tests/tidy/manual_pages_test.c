/* The manual that this build has made has a page for each name. tests/tidy/manual.py collects the
 * names without the generator: from the compiler, its debugging information, nm, and the schema of
 * the configuration. A build with a sanitizer makes no manual, so nothing is tested there. */
#include "tests/support/suite.h"
#include "tests/tidy/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char output[32768];

/* Run the judges named in `names` on the manual of the build or, if `change` is given, on a copy
 * that these shell commands have changed: its folder is `manual`. Returns the exit status. */
static int judge_manual(const char *names, const char *change)
{
    return domt_shell(
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

static bool is_made(void)
{
    bool is_there = access(DOMT_BIN_DIR "/../manual/made", R_OK) == 0;

    if (!is_there)
        printf("this build has made no manual, so it is not looked at\n");
    return is_there;
}

/* Changes to a copy of the manual, and the message that the judge then prints. */
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

DOMT_TEST(manual_is_whole)
{
    if (!is_made())
        return;
    int status = judge_manual("names fields libraries keys counters links lint texts", "");
    ck_assert_msg(status == 0, "status %d: %s", status, output);
}

/* A second run of the generator and copies of the manual take time, so they are tested in the long
 * form only. */
DOMT_TEST(second_run_makes_the_same_bytes)
{
    if (!is_made() || getenv("DOMT_LONG") == NULL)
        return;
    int status = judge_manual("same", "");
    ck_assert_msg(status == 0, "status %d: %s", status, output);
}

DOMT_TEST(judges_see_what_is_missing)
{
    if (!is_made() || getenv("DOMT_LONG") == NULL)
        return;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int status = judge_manual(rows[i].name, rows[i].change);
        ck_assert_msg(status == 1 && strstr(output, rows[i].expected) != NULL, "%s: status %d: %s",
                      rows[i].change, status, output);
    }
}

DOMT_SUITE(600)
