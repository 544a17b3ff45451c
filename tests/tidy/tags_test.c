/* Each tag in a comment leads somewhere in the tree.
 *
 * A comment may cite the contract by a must (`M8`) or by a heading (`contract: The loop`), and a
 * decision by its page (`decisions/messages`). A must and a heading have to stand in
 * docs/contract.md, and a page in docs/decisions/. Tags of earlier days, which only those could
 * follow who had the papers from before the first line, are not to come back. */
#include "tests/support/suite.h"
#include "tests/tidy/tree.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADINGS_MAX 128
#define HEADING_MAX  96

static char headings[HEADINGS_MAX][HEADING_MAX];
static size_t headings_count;

/* Read the headings of docs/contract.md, without their marks. */
static void read_contract(void)
{
    if (headings_count != 0)
        return;
    char *text = domt_tree_text(DOMT_SOURCE_DIR "/docs/contract.md");
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        size_t marks = strspn(line, "#");
        if (marks == 0 || line[marks] != ' ')
            continue;
        size_t length = strcspn(line + marks + 1, "\n");
        ck_assert(headings_count < HEADINGS_MAX && length < HEADING_MAX);
        snprintf(headings[headings_count++], HEADING_MAX, "%.*s", (int)length, line + marks + 1);
    }
    free(text);
    ck_assert(headings_count > 13);
}

/* Returns the length of `heading` at `at`, where a line of the comment may end between two words; 0
 * if it does not stand there. */
static size_t heading_length(const char *at, const char *heading)
{
    const char *p = at;

    for (; *heading != '\0'; heading++) {
        if (*heading == ' ') {
            size_t gap = strspn(p, " \t\n*#");
            if (gap == 0)
                return 0;
            p += gap;
        } else if (*p++ != *heading) {
            return 0;
        }
    }
    return domt_is_word(*p) ? 0 : (size_t)(p - at);
}

static bool is_heading(const char *at)
{
    at += strspn(at, " \t\n*#");
    for (size_t i = 0; i < headings_count; i++) {
        if (heading_length(at, headings[i]) != 0)
            return true;
    }
    return false;
}

/* Whether the text is the heading of a must: "M8" or "M8: the home lane ...". */
static bool is_must(const char *at, size_t length)
{
    for (size_t i = 0; i < headings_count; i++) {
        if (strncmp(headings[i], at, length) == 0 && !domt_is_word(headings[i][length]))
            return true;
    }
    return false;
}

static bool is_page(const char *name, size_t length)
{
    char path[DOMT_PATH_MAX];

    snprintf(path, sizeof path, "%s/docs/decisions/%.*s.md", DOMT_SOURCE_DIR, (int)length, name);
    return access(path, R_OK) == 0;
}

/* --- tags ------------------------------------------------------------------------------------ */

static void add_offence(domt_report *report, const domt_source *source, const char *at,
                        const char *why)
{
    domt_report_add(report, source->path, domt_line_of(source->text, at), "%.*s: %s",
                    (int)strcspn(at, "\n"), at, why);
}

/* Whether three digits that begin with two zeros stand at `at` and are no part of a longer
 * number. */
static bool is_bare_number(const char *at, char before)
{
    return strncmp(at, "00", 2) == 0 && isdigit((unsigned char)at[2]) && !domt_is_word(at[3]) &&
           (strchr(".,", at[3]) == NULL || !isdigit((unsigned char)at[4])) &&
           !domt_is_word(before) && strchr(".,:+-/\\#", before) == NULL;
}

/* Check the word that begins at `at`. */
static void check_word(const domt_source *source, const char *at, char before, domt_report *report)
{
    size_t digits = *at == 'M' ? strspn(at + 1, "0123456789") : 0;

    if (digits != 0 && digits <= 2 && !domt_is_word(at[1 + digits])) {
        if (!is_must(at, 1 + digits))
            add_offence(report, source, at, "docs/contract.md has no heading of this must");
    } else if (domt_starts_with(at, "contract: ") || domt_starts_with(at, "contract:\n")) {
        if (!is_heading(at + strlen("contract:")))
            add_offence(report, source, at, "docs/contract.md has no such heading");
    } else if (domt_starts_with(at, "decisions/")) {
        const char *name = at + strlen("decisions/");
        size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
        if (length != 0 && !is_page(name, length))
            add_offence(report, source, at, "docs/decisions/ has no such page");
    } else if (domt_starts_with(at, "DESIGN") && !domt_is_word(at[6])) {
        add_offence(report, source, at, "write contract: and a heading of docs/contract.md");
    } else if (domt_starts_with(at, "notes:") || domt_starts_with(at, "notes/")) {
        add_offence(report, source, at, "tell it here, or write decisions/ and a page");
    } else if (is_bare_number(at, before)) {
        add_offence(report, source, at, "tell it here: the number means nothing in this tree");
    }
}

static void check_comment(const domt_source *source, const char *from, const char *end,
                          domt_report *report)
{
    for (const char *p = from; p < end; p++) {
        char before = p == source->text ? ' ' : p[-1];
        if (domt_is_word(*p) && !domt_is_word(before))
            check_word(source, p, before, report);
    }
}

/* The rule of the tags: it checks the comments of a file in C or Promela, or of a file whose
 * comments begin with #. */
static void tags_rule(const domt_source *source, domt_report *report)
{
    bool hashes = strchr(source->path, '.') == NULL || strstr(source->path, ".txt") != NULL ||
                  strstr(source->path, ".yaml") != NULL;
    const char *p = source->text;

    read_contract();
    while (*p != '\0') {
        const char *end = p + 1;
        if (hashes && *p == '#')
            end = p + strcspn(p, "\n");
        else if (!hashes)
            end = domt_span_end(p);
        if (end != NULL && (hashes ? *p == '#' : *p == '/'))
            check_comment(source, p, end, report);
        p = end == NULL ? p + 1 : end;
    }
}

DOMT_TEST(each_tag_resolves)
{
    domt_tree_holds(tags_rule);
}

/* Files that have comments, but are not written in C. */
static const char *const others[] = {
    "CMakeLists.txt", "dev", "models/run", "models/*.pml", "tests/mutants/*", "config/*.yaml",
};

DOMT_TEST(each_tag_of_models_and_scripts_resolves)
{
    static domt_report report;

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        char pattern[DOMT_PATH_MAX];
        glob_t found;

        snprintf(pattern, sizeof pattern, "%s/%s", DOMT_SOURCE_DIR, others[i]);
        ck_assert_msg(glob(pattern, 0, NULL, &found) == 0, "%s", pattern);
        for (size_t j = 0; j < found.gl_pathc; j++)
            domt_tree_visit(DOMT_SOURCE_DIR, found.gl_pathv[j], tags_rule, &report);
        globfree(&found);
    }
    ck_assert_msg(report.count == 0, "%u offences:\n%s", report.count, report.text);
}

DOMT_TEST(tidy_sees_a_tag_that_leads_nowhere)
{
    domt_tree_sees(tags_rule, "base/planted.c", "/* as it must (M14). */\n", "this must");
    domt_tree_sees(tags_rule, "base/planted.c", "/* (contract: The lop) */\n", "no such heading");
    domt_tree_sees(tags_rule, "base/planted.c", "/* (contract: The loops) */\n", "no such heading");
    domt_tree_sees(tags_rule, "base/planted.c", "/* decisions/nothing */\n", "no such page");
    domt_tree_sees(tags_rule, "tests/base/planted.c", "// DESIGN 4\n", "heading of docs/contract");
    domt_tree_sees(tags_rule, "base/planted.h", "/* (notes: ring) */\n", "tell it here");
    domt_tree_sees(tags_rule, "base/planted.h", "/* as 003 has it */\n", "tell it here");
}

DOMT_TEST(tidy_lets_tags_and_numbers_stand)
{
    domt_tree_lets(tags_rule, "base/planted.c",
                   "/* M1, M13 (contract: The loop), and contract:\n"
                   " * Birth and\n * death */\n");
    domt_tree_lets(tags_rule, "base/planted.c", "/* decisions/messages. 1,003 of 0.003 */\n");
    domt_tree_lets(tags_rule, "base/planted.c", "const char *t = \"DESIGN 003 notes: M99\";\n");
    domt_tree_lets(tags_rule, "base/planted.c", "int M99; /* a DESIGNER's footnotes: M8s */\n");
}

DOMT_SUITE(120)
