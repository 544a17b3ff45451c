/* The manual page of the program `domus` and its completion know each command with each of its
 * options, and no other option. Without the program nothing is tested. */
#include "tests/support/suite.h"
#include "tests/tidy/tree.h"

#include <stdio.h>
#include <unistd.h>

static char output[32768];

/* Run a shell program for each command. In it $1 is the command's name, $page its page, $help its
 * help, and `options` prints the options in a text, one on a line. */
static void run_for_each_command(const char *program)
{
    if (access(DOMT_BIN_DIR "/domus", X_OK) != 0) {
        printf("the program domus is not built, so its manual is not looked at\n");
        return;
    }
    int status = domt_shell(
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

/* A shell line that puts the options of the help into $o. */
#define HELPED "o=$(echo \"$help\" | sed -n '/^  -\\|^      --/s/   *[^ -].*//p' | options)"

DOMT_TEST(each_option_has_its_words_in_the_manual)
{
    run_for_each_command(HELPED " && m=$(sed -n 's/^[.]It //p' $page | "
                                "sed 's/Fl -/ --/g; s/Fl \\([a-zA-Z]\\)/ -\\1/g' | options) && "
                                "[ \"$o\" = \"$m\" ] || { echo \"help: $o; page: $m\"; false; }");
}

DOMT_TEST(each_option_is_completed)
{
    run_for_each_command(
        HELPED " && c=$(bash -c '. completion/domus.bash; COMP_WORDS=(domus $0 -) COMP_CWORD=2; "
               "_domus; printf \" %s\\n\" \"${COMPREPLY[@]}\"' \"$1\" | options) && "
               "[ \"$o\" = \"$c\" ] || { echo \"help: $o; completion: $c\"; false; }");
}

/* File names may come from other people, so the completion must not run what a name contains as a
 * shell command. */
DOMT_TEST(programs_are_completed_by_plain_names)
{
    int status =
        domt_shell(output, sizeof output,
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
DOMT_TEST(judges_find_nothing_in_the_manual)
{
    int status = domt_shell(output, sizeof output,
                            "exec 2>&1; cd '" DOMT_SOURCE_DIR "/packaging/man' && "
                            "command -v mandoc >/dev/null || exit 0\n"
                            "mandoc -Tlint -Wstyle *.1 | grep -v 'referenced manual not found'\n"
                            "for page in *.1; do mandoc -Tascii $page >/dev/null || exit; done");

    ck_assert_int_eq(status, 0);
    ck_assert_str_eq(output, "");
}

DOMT_SUITE(60)
