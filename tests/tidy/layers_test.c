/* M1: the arrows of the layers, walked include by include, and the only way into code of a user. */
#include "tests/support/suite.h"
#include "tests/tidy/libraries.h"
#include "tests/tidy/tree.h"

#include <stdio.h>
#include <string.h>

/* M1: the arrows of the layers, walked include by include. include/domus <- base <- house <- io <-
 * runtime include/domus <- config include/domus <- protocols/NAME Tests and benches may include
 * anything, examples only what is installed, and those that are folders their own files. Programs
 * of tools/ look at others from outside, so they include nothing of this tree but their own files,
 * and what is installed. Some foreign headers belong to one layer: with them the layer's business
 * would move elsewhere. */

/* The layers in the order of the arrows: each layer may use itself and those before it. */
static const char *const layers[] = {"base", "house", "io", "runtime"};
#define LAYERS_COUNT (int)(sizeof layers / sizeof layers[0])

/* Foreign headers that only the named layers may include, and the reasons. */
static const struct foreign {
    const char *header; /* the foreign header, or the begin of such a header's path */
    const char *folders;
    const char *reason;
} foreigners[] = {
    {"liburing", " io ", "the ring stays behind io's backend table"},
    {"linux/io_uring.h", " io ", "the ring stays behind io's backend table"},
    {"pthread.h", " runtime config ", "house and io know no threads"},
    {"threads.h", " ", "runtime uses pthread.h"},
    {"openssl/", " protocols ", "programs without TLS need not link OpenSSL"},
    {"msgpack", " protocols ", "programs without a cluster need not link msgpack-c"},
    {"cyaml/", " config ", "programs in C need not link YAML"},
    {"yaml.h", " config ", "programs in C need not link YAML"},
};

/* The doctor's rules use no library, because the program `domus`, which uses none, is built with
 * them, too. */
#define RULES_OF_THE_DOCTOR "protocols/observe/doctor/"

struct include {
    const char *path; /* path of the file that has the include */
    char from[64];    /* first folder of that path: "base", "include", "tests" */
    char to[256];     /* path that the #include names, between its quotes or angle brackets */
    bool quoted;
    uint32_t line;
};

static int rank_of_layer(const char *folder)
{
    for (int i = 0; i < LAYERS_COUNT; i++) {
        if (strcmp(folder, layers[i]) == 0) {
            return i;
        }
    }
    return -1;
}

static void copy_first_folder_of_path(const char *path, char *ret_folder, size_t size)
{
    size_t length = strcspn(path, "/");

    snprintf(ret_folder, size, "%.*s", path[length] == '/' ? (int)length : 0, path);
}

static bool is_folder_of_libraries(const char *folder)
{
    return rank_of_layer(folder) >= 0 || strcmp(folder, "config") == 0 ||
           strcmp(folder, "protocols") == 0 || strcmp(folder, "include") == 0;
}

static void check_foreign_header_of_include(const struct include *include, domt_report *report)
{
    char wanted[80];

    snprintf(wanted, sizeof wanted, " %s ", include->from);
    for (size_t i = 0; i < sizeof foreigners / sizeof foreigners[0]; i++) {
        if (domt_text_starts_with(include->to, foreigners[i].header) &&
            is_folder_of_libraries(include->from) &&
            strstr(foreigners[i].folders, wanted) == NULL) {
            domt_report_add_offence(report, include->path, include->line,
                                    "%s may not include %s: %s", include->from, include->to,
                                    foreigners[i].reason);
        }
    }
    size_t library = domt_text_starts_with(include->to, "domus/")
                         ? domt_library_of_header(include->to + strlen("domus/"))
                         : 0;
    if (library != 0 && rank_of_layer(include->from) >= 0) {
        domt_report_add_offence(report, include->path, include->line,
                                "%s may not include %s: it belongs to %s", include->from,
                                include->to, domt_libraries[library]);
    }
}

/* Returns whether two paths lie in the same folder of protocols/, each of which is a library of its
 * own. */
static bool are_paths_in_same_protocol(const char *path, const char *other)
{
    size_t folder = strlen("protocols/");

    folder += strcspn(path + folder, "/");
    return strncmp(path, other, folder + 1) == 0;
}

/* Returns whether a file in the folder `from` may include a file in the folder `to` of this
 * tree. */
static bool may_folder_include_folder(const struct include *include, const char *to)
{
    const char *from = include->from;

    if (rank_of_layer(from) >= 0) {
        return rank_of_layer(to) >= 0 && rank_of_layer(to) <= rank_of_layer(from);
    }
    if (strcmp(from, "protocols") == 0 && strcmp(to, "protocols") == 0) {
        return are_paths_in_same_protocol(include->path, include->to);
    }
    return strcmp(from, "config") == 0 && strcmp(to, "config") == 0;
}

/* Returns whether the including file belongs to an example that is a folder, and the included file
 * lies in the same folder. */
static bool is_include_within_one_example(const struct include *include)
{
    return strchr(include->path + strlen("examples/"), '/') != NULL &&
           strchr(include->to, '/') == NULL;
}

/* Returns whether a source of the doctor's rules includes a file that the program `domus` is built
 * without. */
static bool leaves_include_the_doctors_rules(const struct include *include)
{
    return domt_text_starts_with(include->path, RULES_OF_THE_DOCTOR) &&
           (domt_text_starts_with(include->to, "domus/") ||
            (include->quoted && !domt_text_starts_with(include->to, RULES_OF_THE_DOCTOR)));
}

static void check_include_against_layers(const struct include *include, domt_report *report)
{
    char to[64];

    copy_first_folder_of_path(include->to, to, sizeof to);
    check_foreign_header_of_include(include, report);
    if (strcmp(include->from, "tests") == 0 || strcmp(include->from, "bench") == 0) {
        return;
    }
    if (leaves_include_the_doctors_rules(include)) {
        domt_report_add_offence(
            report, include->path, include->line,
            "rules of the doctor may not include %s: the program domus has them, too", include->to);
    }
    bool ours = is_folder_of_libraries(to) || strcmp(to, "tests") == 0 || strcmp(to, "bench") == 0;
    if (strcmp(include->from, "tools") == 0 &&
        (strcmp(to, "tools") == 0 || domt_text_starts_with(include->to, RULES_OF_THE_DOCTOR))) {
        return;
    }
    if (strcmp(include->from, "examples") == 0) {
        if (ours || (include->quoted && !is_include_within_one_example(include))) {
            domt_report_add_offence(report, include->path, include->line,
                                    "examples include <domus/...> and the system's headers, not %s",
                                    include->to);
        }
    } else if (ours && !may_folder_include_folder(include, to)) {
        domt_report_add_offence(report, include->path, include->line, "%s may not include %s",
                                include->from, include->to);
    } else if (include->quoted && !ours) {
        domt_report_add_offence(report, include->path, include->line,
                                "write \"folder/file.h\" from the root of the tree, not \"%s\"",
                                include->to);
    }
}

/* The rule of the layers visits each `#include` that is code. It reads the header's name from the
 * text, because in the code alone literals are blanked. */
static void report_includes_against_layers(const domt_source *source, domt_report *report)
{
    struct include include = {.path = source->path};

    copy_first_folder_of_path(source->path, include.from, sizeof include.from);
    for (const char *hash = strchr(source->code, '#'); hash != NULL; hash = strchr(hash + 1, '#')) {
        const char *p = source->text + (hash - source->code) + 1;
        p += strspn(p, " \t");
        if (!domt_text_starts_with(p, "include")) {
            continue;
        }
        p += strlen("include");
        p += strspn(p, " \t");
        if (*p != '"' && *p != '<') {
            continue;
        }
        include.quoted = *p == '"';
        snprintf(include.to, sizeof include.to, "%.*s", (int)strcspn(p + 1, "\">\n"), p + 1);
        include.line = domt_line_number_of(source->code, hash);
        check_include_against_layers(&include, report);
    }
}

DOMT_TEST(M1_includes_follow_the_layers)
{
    domt_tree_check_rule_holds(report_includes_against_layers);
}

DOMT_TEST(tidy_sees_include_against_the_layers)
{
    domt_tree_check_rule_sees_offence(report_includes_against_layers, "base/planted.c",
                                      "#include \"house/house.h\"\n", "base may not");
    domt_tree_check_rule_sees_offence(report_includes_against_layers, "house/planted.h",
                                      "#include <io/ring.h>\n", "house may not");
    domt_tree_check_rule_sees_offence(report_includes_against_layers, "io/planted.c",
                                      "  #  include \"runtime/loop.h\"\n", "io may not");
    domt_tree_check_rule_sees_offence(report_includes_against_layers, "runtime/planted.c",
                                      "#include \"tests/support/suite.h\"\n", "runtime may not");
    domt_tree_check_rule_sees_offence(report_includes_against_layers, "config/planted.c",
                                      "#include \"base/check.h\"\n", "config may not");
    domt_tree_check_rule_sees_offence(report_includes_against_layers, "runtime/planted.c",
                                      "#include \"config/scalar.h\"\n", "runtime may not");
    domt_tree_check_rule_sees_offence(report_includes_against_layers, "protocols/resp/planted.c",
                                      "#include \"base/check.h\"\n", "protocols may not");
    domt_tree_check_rule_sees_offence(report_includes_against_layers, "protocols/planted/planted.c",
                                      "#include \"protocols/resp/resp.h\"\n", "protocols may not");
    domt_tree_check_rule_sees_offence(report_includes_against_layers, "io/planted.c",
                                      "#include \"protocols/resp/resp.h\"\n", "io may not");
    domt_tree_check_rule_sees_offence(report_includes_against_layers, "include/domus/planted.h",
                                      "#include \"base/check.h\"\n", "include may not");
}

DOMT_TEST(tidy_sees_example_that_includes_internals)
{
    domt_tree_check_rule_sees_offence(report_includes_against_layers, "tools/domus/planted.c",
                                      "#include \"base/check.h\"\n", "tools may not include");
    domt_tree_check_rule_sees_offence(report_includes_against_layers, "tools/domus/planted.c",
                                      "#include \"protocols/observe/rows.h\"\n",
                                      "tools may not include");
    domt_tree_check_rule_sees_offence(report_includes_against_layers,
                                      "protocols/observe/doctor/planted.c",
                                      "#include <domus/profile.h>\n", "the doctor may not include");
    domt_tree_check_rule_sees_offence(report_includes_against_layers, "examples/planted.c",
                                      "#include \"base/check.h\"\n", "examples");
    domt_tree_check_rule_sees_offence(report_includes_against_layers, "examples/planted.c",
                                      "#include \"helper.h\"\n", "examples");
    domt_tree_check_rule_sees_offence(report_includes_against_layers, "examples/kv/planted.c",
                                      "#include \"base/check.h\"\n", "examples");
}

DOMT_TEST(tidy_sees_foreign_header_outside_its_layer)
{
    domt_tree_check_rule_sees_offence(report_includes_against_layers, "house/planted.c",
                                      "#include <liburing.h>\n", "backend table");
    domt_tree_check_rule_sees_offence(report_includes_against_layers, "io/planted.c",
                                      "#include <pthread.h>\n", "know no threads");
    domt_tree_check_rule_sees_offence(report_includes_against_layers, "runtime/planted.c",
                                      "#include <yaml.h>\n", "link YAML");
    domt_tree_check_rule_sees_offence(report_includes_against_layers, "runtime/planted.c",
                                      "#include <domus/yaml.h>\n", "libdomus-config");
    domt_tree_check_rule_sees_offence(report_includes_against_layers, "io/planted.c",
                                      "#include <domus/resp.h>\n", "libdomus-resp");
    domt_tree_check_rule_sees_offence(report_includes_against_layers, "base/planted.c",
                                      "#include \"check.h\"\n", "folder/file.h");
}

/* The rule reports neither an include that is commented out nor one that is allowed. */
DOMT_TEST(tidy_accepts_allowed_includes)
{
    domt_tree_check_rule_accepts(report_includes_against_layers, "base/planted.c",
                                 "/*\n#include \"house/house.h\"\n*/\n// #include \"io/ring.h\"\n");
    domt_tree_check_rule_accepts(
        report_includes_against_layers, "runtime/planted.c",
        "#include \"io/ring.h\"\n#include <domus/config.h>\n#include <pthread.h>\n");
    domt_tree_check_rule_accepts(report_includes_against_layers, "tests/base/planted.c",
                                 "#include \"runtime/loop.h\"\n");
    domt_tree_check_rule_accepts(report_includes_against_layers, "tools/domus/planted.c",
                                 "#include \"tools/domus/say.h\"\n");
    domt_tree_check_rule_accepts(report_includes_against_layers, "tools/domus/planted.c",
                                 "#include \"protocols/observe/doctor/rule.h\"\n");
    domt_tree_check_rule_accepts(report_includes_against_layers, "examples/planted.c",
                                 "#include <domus/main.h>\n");
    domt_tree_check_rule_accepts(report_includes_against_layers, "examples/kv/planted.c",
                                 "#include \"kv.h\"\n");
}

/* --- turns ------------------------------------------------------------------------------------ */

/* Code of a user is entered by one way only (house/conversation/turn.h): a call through an entry of
 * a behaviour that gets a stack stands in a function that begins a turn, in a file that ends turns.
 * So everything that a begin or an end of a turn does is done for each callback. Calls within a
 * callback of the library's own actor for processes are within that callback's turn. */

/* The calls that enter code of a user: through the entries of `domus_behaviour`, `domus_on` and
 * `domus_call`, and of the function that resumes a conversation. */
static const char *const entries[] = {
    "->handle(", ".handle(", "->then(", "->on_mount(", "->on_restart(", "->on_stop(",
};

/* Returns where the function that holds `at` begins: behind the last line before `at` that is only
 * a closing brace. */
static const char *begin_of_function_holding(const char *code, const char *at)
{
    while (at > code && strncmp(at, "\n}", 2) != 0)
        at--;
    return at;
}

static bool is_word_between(const char *from, const char *to, const char *word)
{
    const char *found = strstr(from, word);

    return found != NULL && found < to;
}

static void report_user_calls_without_turn(const domt_source *source, domt_report *report)
{
    const char *code = source->code;

    if (!domt_text_starts_with(source->path, "house/") &&
        !domt_text_starts_with(source->path, "io/") &&
        !domt_text_starts_with(source->path, "runtime/"))
        return;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        for (const char *at = code; (at = strstr(at, entries[i])) != NULL; at++) {
            if (!is_word_between(begin_of_function_holding(code, at), at, "domi_turn_begin(") ||
                strstr(code, "domi_turn_end") == NULL)
                domt_report_add_offence(report, source->path, domt_line_number_of(code, at),
                                        "%s) enters code of a user without a turn: use "
                                        "house/conversation/turn.h",
                                        entries[i]);
        }
    }
}

DOMT_TEST(user_code_is_entered_only_by_turns)
{
    domt_tree_check_rule_holds(report_user_calls_without_turn);
}

DOMT_TEST(tidy_sees_user_call_without_turn)
{
    domt_tree_check_rule_sees_offence(report_user_calls_without_turn, "house/planted.c",
                                      "\nvoid f(void)\n{\n    b->on_stop(s, t);\n}\n",
                                      "->on_stop() enters");
    domt_tree_check_rule_sees_offence(
        report_user_calls_without_turn, "io/planted.c",
        "\nvoid g(void)\n{\n    domi_turn_begin(s, t);\n    domi_turn_end(s, 0);\n}\n"
        "\nvoid f(void)\n{\n    on->handle(s, t, p);\n}\n",
        "->handle() enters");
    domt_tree_check_rule_sees_offence(report_user_calls_without_turn, "io/planted.c",
                                      "\nvoid f(void)\n{\n    b->on_read.handle(s, t, p);\n}\n",
                                      ".handle() enters");
    domt_tree_check_rule_sees_offence(
        report_user_calls_without_turn, "house/planted.c",
        "\nvoid f(void)\n{\n    domi_turn_begin(s, t);\n    b->on_stop(s, t);\n}\n",
        "->on_stop() enters");
    domt_tree_check_rule_accepts(
        report_user_calls_without_turn, "house/planted.c",
        "\nvoid f(void)\n{\n    domi_turn_begin(s, t);\n    b->on_stop(s, t);\n"
        "    domi_turn_end(s, 0);\n}\n");
}

DOMT_SUITE(60)
