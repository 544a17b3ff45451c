/* Shell commands of services to which `domus tune` appends words. */
#include "tools/domus/tune/parts.h"

#include "tests/support/suite.h"

DOMT_TEST(commands_that_drop_words_are_seen)
{
    static const struct {
        const char *command, *why;
    } cases[] = {
        {"./web --config web.yaml", NULL},
        {"A=1 exec ./web >log 2>&1", NULL},
        {"./web &>log", NULL},
        {"./web >&2", NULL},
        {"./web >|log", NULL},
        {"cd shop && ./web", NULL},
        {"cat a | sort >b; ./web", NULL},
        {"false | true || ./web", NULL},
        {"./web --name '# | ;' \"a \\\" #\" b#c \\#d", NULL},
        {"./web --name $(hostname | cut -c1-3) `a | b`", NULL},
        {"./web --name $(hostname) | tee log", "has a pipe in its last command"},
        {"./web # for now", "has a comment"},
        {"#./web", "has a comment"},
        {"cd shop;#./web", "has a comment"},
        {"./web | tee log", "has a pipe in its last command"},
        {"cd shop && ./web 2>&1 |tee log", "has a pipe in its last command"},
        {"./web;", "ends with ';', '&' or a line break"},
        {"./web & ", "ends with ';', '&' or a line break"},
        {"./web\n", "ends with ';', '&' or a line break"},
        {"", "ends with ';', '&' or a line break"},
        {"./web 'a", "ends within a quoted part"},
        {"./web \"a\\\"", "ends within a quoted part"},
        {"./web \\", "ends within a quoted part"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *why = tune_shell_why_words_are_dropped(cases[i].command);
        ck_assert_msg((why == NULL) == (cases[i].why == NULL), "%s: %s", cases[i].command, why);
        if (why != NULL)
            ck_assert_str_eq(why, cases[i].why);
    }
}

DOMT_SUITE(20)
