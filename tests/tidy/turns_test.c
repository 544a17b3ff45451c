/* Code of a user is entered by one way only (house/conversation/turn.h).
 *
 * A call through an entry of a behaviour that gets a stack stands in a function that begins a turn,
 * in a file that ends turns. So what a begin or an end does is done for each callback. Calls within
 * a callback of the library's own actor for processes are within its turn. */
#include "tests/support/suite.h"
#include "tests/tidy/tree.h"

#include <string.h>

/* The entries of `domus_behaviour`, `domus_on` and `domus_call`, and the function that resumes a
 * conversation. */
static const char *const entries[] = {
    "->handle(", ".handle(", "->then(", "->on_mount(", "->on_restart(", "->on_stop(",
};

/* Returns the begin of the function that holds `at`: it lies behind the last line that is only a
 * closing brace. */
static const char *function_begin(const char *code, const char *at)
{
    while (at > code && strncmp(at, "\n}", 2) != 0)
        at--;
    return at;
}

static bool holds_between(const char *from, const char *to, const char *word)
{
    const char *found = strstr(from, word);

    return found != NULL && found < to;
}

static void turns_rule(const domt_source *source, domt_report *report)
{
    const char *code = source->code;

    if (!domt_starts_with(source->path, "house/") && !domt_starts_with(source->path, "io/") &&
        !domt_starts_with(source->path, "runtime/"))
        return;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        for (const char *at = code; (at = strstr(at, entries[i])) != NULL; at++) {
            if (!holds_between(function_begin(code, at), at, "domi_turn_begin(") ||
                strstr(code, "domi_turn_end") == NULL)
                domt_report_add(report, source->path, domt_line_of(code, at),
                                "%s) enters code of a user without a turn: use "
                                "house/conversation/turn.h",
                                entries[i]);
        }
    }
}

DOMT_TEST(code_of_a_user_is_entered_by_turns)
{
    domt_tree_holds(turns_rule);
}

DOMT_TEST(tidy_sees_an_entry_without_a_turn)
{
    domt_tree_sees(turns_rule, "house/planted.c", "\nvoid f(void)\n{\n    b->on_stop(s, t);\n}\n",
                   "->on_stop() enters");
    domt_tree_sees(turns_rule, "io/planted.c",
                   "\nvoid g(void)\n{\n    domi_turn_begin(s, t);\n    domi_turn_end(s, 0);\n}\n"
                   "\nvoid f(void)\n{\n    on->handle(s, t, p);\n}\n",
                   "->handle() enters");
    domt_tree_sees(turns_rule, "io/planted.c",
                   "\nvoid f(void)\n{\n    b->on_read.handle(s, t, p);\n}\n", ".handle() enters");
    domt_tree_sees(turns_rule, "house/planted.c",
                   "\nvoid f(void)\n{\n    domi_turn_begin(s, t);\n    b->on_stop(s, t);\n}\n",
                   "->on_stop() enters");
    domt_tree_lets(turns_rule, "house/planted.c",
                   "\nvoid f(void)\n{\n    domi_turn_begin(s, t);\n    b->on_stop(s, t);\n"
                   "    domi_turn_end(s, 0);\n}\n");
}

DOMT_SUITE(60)
