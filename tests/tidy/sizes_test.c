/* The limits of size: no file, function or line is larger than what one can read at once. */
#include "tests/support/suite.h"
#include "tests/tidy/tree.h"

#include <stdio.h>
#include <string.h>

#define FILE_LINES_MAX     500
#define FUNCTION_LINES_MAX 70
#define EXAMPLE_LINES_MAX  119
#define COLUMNS_MAX        100

static void report_too_long_file(const domt_source *source, domt_report *report)
{
    uint32_t lines = domt_line_number_of(source->text, source->text + strlen(source->text)) - 1;
    bool is_small = domt_text_starts_with(source->path, "examples/") &&
                    strchr(source->path + strlen("examples/"), '/') == NULL;
    uint32_t lines_max = is_small ? EXAMPLE_LINES_MAX : FILE_LINES_MAX;

    if (lines > lines_max) {
        domt_report_add_offence(report, source->path, lines, "%u lines: split it at %u", lines,
                                lines_max);
    }
}

static void copy_text_up_to_line_end(const char *line, char *ret_text, size_t size)
{
    snprintf(ret_text, size, "%.*s", (int)strcspn(line, "\n"), line);
}

/* The rule of functions relies on the format: only the braces of a function stand alone in column
 * 0. */
static void report_too_long_functions(const domt_source *source, domt_report *report)
{
    char head[128] = "";
    uint32_t line = 0;
    uint32_t opened = 0;
    const char *next = NULL;

    for (const char *p = source->code; *p != '\0'; p = next) {
        const char *end = strchr(p, '\n');
        next = end == NULL ? p + strlen(p) : end + 1;
        line++;
        if (p[0] == '{' && opened == 0) {
            opened = line;
        } else if (p[0] == '}' && opened != 0) {
            uint32_t lines = line - opened + 1;
            if (lines > FUNCTION_LINES_MAX) {
                domt_report_add_offence(report, source->path, opened,
                                        "%u lines, %u is the most: %s", lines, FUNCTION_LINES_MAX,
                                        head);
            }
            opened = 0;
        } else if (opened == 0 && (domt_is_identifier_char(p[0]))) {
            copy_text_up_to_line_end(p, head, sizeof head);
        }
    }
}

/* Count the characters of a line: bytes that continue a character in UTF-8 are not counted. */
static uint32_t count_columns_of_line(const char *line, size_t length)
{
    uint32_t columns = 0;

    for (size_t i = 0; i < length; i++) {
        columns += ((unsigned char)line[i] & 0xc0) != 0x80;
    }
    return columns;
}

static void report_too_long_lines(const domt_source *source, domt_report *report)
{
    uint32_t line = 0;
    const char *next = NULL;

    for (const char *p = source->text; *p != '\0'; p = next) {
        size_t length = strcspn(p, "\n");
        next = p[length] == '\0' ? p + length : p + length + 1;
        line++;
        if (count_columns_of_line(p, length) > COLUMNS_MAX || memchr(p, '\t', length) != NULL) {
            domt_report_add_offence(report, source->path, line, "a tab, or past column %u",
                                    COLUMNS_MAX);
        }
    }
}

DOMT_TEST(files_stay_short)
{
    domt_tree_check_rule_holds(report_too_long_file);
}

DOMT_TEST(functions_stay_short)
{
    domt_tree_check_rule_holds(report_too_long_functions);
}

DOMT_TEST(lines_stay_short)
{
    domt_tree_check_rule_holds(report_too_long_lines);
}

/* Returns the text `before`, then `count` times `line`, then the text `after`. */
static const char *make_text_of_repeated_line(const char *before, const char *line, uint32_t count,
                                              const char *after)
{
    static char text[16384];
    size_t used = (size_t)snprintf(text, sizeof text, "%s", before);

    for (uint32_t i = 0; i < count; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", line);
    }
    snprintf(text + used, sizeof text - used, "%s", after);
    return text;
}

DOMT_TEST(tidy_sees_a_long_file)
{
    domt_tree_check_rule_accepts(report_too_long_file, "io/planted.c",
                                 make_text_of_repeated_line("", "\n", FILE_LINES_MAX, ""));
    domt_tree_check_rule_sees_offence(report_too_long_file, "io/planted.c",
                                      make_text_of_repeated_line("", "\n", FILE_LINES_MAX + 1, ""),
                                      "split");
    domt_tree_check_rule_accepts(report_too_long_file, "examples/planted.c",
                                 make_text_of_repeated_line("", "\n", EXAMPLE_LINES_MAX, ""));
    domt_tree_check_rule_sees_offence(
        report_too_long_file, "examples/planted.c",
        make_text_of_repeated_line("", "\n", EXAMPLE_LINES_MAX + 1, ""), "split");
}

DOMT_TEST(tidy_sees_a_long_function)
{
    const char *head = "static int planted(int a,\n                   int b)\n{\n";

    domt_tree_check_rule_accepts(
        report_too_long_functions, "io/planted.c",
        make_text_of_repeated_line(head, "    a++;\n", FUNCTION_LINES_MAX - 2, "}\n"));
    domt_tree_check_rule_sees_offence(
        report_too_long_functions, "io/planted.c",
        make_text_of_repeated_line(head, "    a++;\n", FUNCTION_LINES_MAX - 1, "}\n"),
        "planted(int a");
}

DOMT_TEST(tidy_sees_a_long_line)
{
    domt_tree_check_rule_accepts(report_too_long_lines, "io/planted.c",
                                 make_text_of_repeated_line("", "a", COLUMNS_MAX, "\n"));
    domt_tree_check_rule_accepts(report_too_long_lines, "io/planted.c",
                                 make_text_of_repeated_line("", "\u00e4", COLUMNS_MAX, "\n"));
    domt_tree_check_rule_sees_offence(report_too_long_lines, "io/planted.c",
                                      make_text_of_repeated_line("", "a", COLUMNS_MAX + 1, "\n"),
                                      "column");
    domt_tree_check_rule_sees_offence(report_too_long_lines, "io/planted.c", "\tint a;\n", "tab");
}

DOMT_SUITE(60)
