/* Links and tags lead somewhere: those of the pages to files and headings, and those of comments
 * to the contract, to decisions, and to steps. */
#include "tests/support/suite.h"
#include "tests/tidy/tree.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The links of the pages are right: each link leads to a file and, behind `#`, to a heading of it,
 * and each file or folder of the tree that a page names between backquotes exists. So a renamed
 * file has to be renamed in the pages, too. */

static const char *const pages[] = {"*.md", "docs/*.md", "docs/guide/*.md", "docs/decisions/*.md",
                                    "models/*.md"};

/* The folders of the root whose files a page may name. */
static const char *const folders[] = {"base/",     "house/",  "io/",        "runtime/",  "config/",
                                      "include/",  "models/", "protocols/", "tests/",    "bench/",
                                      "examples/", "docs/",   "packaging/", "decisions/"};

/* Whether the file `root`/`pattern` exists; a pattern may contain `*`. */
static bool is_there(const char *root, const char *pattern)
{
    char path[4 * DOMT_PATH_MAX];
    glob_t found;

    snprintf(path, sizeof path, "%s/%s", root, pattern);
    bool there = glob(path, 0, NULL, &found) == 0;
    if (there)
        globfree(&found);
    return there;
}

/* --- links ----------------------------------------------------------------------------------- */

/* Whether `heading`, up to the end of its line, has the anchor `anchor`: in lower case, with a
 * hyphen for each space, and without characters that are neither letter, digit, hyphen nor
 * underscore. */
static bool has_anchor(const char *heading, const char *anchor)
{
    for (; *heading != '\0' && *heading != '\n'; heading++) {
        char c = *heading == ' ' ? '-' : (char)tolower((unsigned char)*heading);
        if (!domt_is_identifier_char(c) && c != '-')
            continue;
        if (*anchor++ != c)
            return false;
    }
    return *anchor == '\0';
}

static bool has_heading(const char *text, const char *anchor)
{
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        size_t marks = strspn(line, "#");
        if (marks != 0 && line[marks] == ' ' && has_anchor(line + marks + 1, anchor))
            return true;
    }
    return false;
}

/* Whether the page `name` in `root` has the heading of `anchor`. */
static bool page_has(const char *root, const char *name, const char *anchor)
{
    char path[4 * DOMT_PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", root, name);
    char *text = domt_tree_read_text(path);
    bool has = has_heading(text, anchor);
    free(text);
    return has;
}

static void check_link(const domt_source *page, const char *root, const char *at,
                       domt_report *report)
{
    char target[DOMT_PATH_MAX];
    char name[2 * DOMT_PATH_MAX];
    const char *slash = strrchr(page->path, '/');

    snprintf(target, sizeof target, "%.*s", (int)strcspn(at, ")"), at);
    if (domt_text_starts_with(target, "http"))
        return;
    char *anchor = strchr(target, '#');
    if (anchor != NULL)
        *anchor++ = '\0';
    if (target[0] == '\0')
        snprintf(name, sizeof name, "%s", page->path);
    else
        snprintf(name, sizeof name, "%.*s%s", slash == NULL ? 0 : (int)(slash - page->path + 1),
                 page->path, target);
    uint32_t line = domt_line_number_of(page->text, at);
    if (!is_there(root, name))
        domt_report_add_offence(report, page->path, line, "there is no %s", name);
    else if (anchor != NULL && !page_has(root, name, anchor))
        domt_report_add_offence(report, page->path, line, "%s has no heading #%s", name, anchor);
}

/* --- names ----------------------------------------------------------------------------------- */

/* Check the name behind the backquote before `at`. A name with capitals, spaces or brackets is not
 * a plain name, and a source may be named without its extension, as `base/clock`. */
static void check_name(const domt_source *page, const char *root, const char *at,
                       domt_report *report)
{
    char name[DOMT_PATH_MAX];
    char begun[DOMT_PATH_MAX + 2];
    size_t length = strcspn(at, "`\n");

    if (at[length] != '`' || strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_-./*") != length)
        return;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        if (!domt_text_starts_with(at, folders[i]))
            continue;
        bool is_decision = strcmp(folders[i], "decisions/") == 0;
        snprintf(name, sizeof name, "%s%.*s", is_decision ? "docs/" : "", (int)length, at);
        snprintf(begun, sizeof begun, "%s.*", name);
        if (!is_there(root, name) && !is_there(root, begun))
            domt_report_add_offence(report, page->path, domt_line_number_of(page->text, at),
                                    "there is no %s", name);
    }
}

/* Check the line that begins at `at`. */
static void check_merged(const domt_source *page, const char *at, domt_report *report)
{
    if (domt_text_starts_with(at, "<<<<<<< ") || domt_text_starts_with(at, ">>>>>>> "))
        domt_report_add_offence(report, page->path, domt_line_number_of(page->text, at),
                                "a conflict of a merge is left");
}

static void check_page(const domt_source *page, domt_report *report)
{
    bool quoted = false;

    for (const char *p = page->text; *p != '\0'; p++) {
        if (p == page->text || p[-1] == '\n')
            check_merged(page, p, report);
        if (domt_text_starts_with(p, "]("))
            check_link(page, DOMT_SOURCE_DIR, p + 2, report);
        if (*p == '`') {
            quoted = !quoted;
            if (quoted)
                check_name(page, DOMT_SOURCE_DIR, p + 1, report);
        }
    }
}

DOMT_TEST(each_link_and_name_of_the_pages_leads_somewhere)
{
    static domt_report report;

    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        char pattern[DOMT_PATH_MAX];
        glob_t found;

        snprintf(pattern, sizeof pattern, "%s/%s", DOMT_SOURCE_DIR, pages[i]);
        ck_assert_msg(glob(pattern, 0, NULL, &found) == 0, "%s", pattern);
        for (size_t j = 0; j < found.gl_pathc; j++)
            domt_tree_visit_file(DOMT_SOURCE_DIR, found.gl_pathv[j], check_page, &report);
        globfree(&found);
    }
    ck_assert_msg(report.count == 0, "%u offences:\n%s", report.count, report.text);
}

/* Plant a page docs/planted.md with this text, and check that the rule reports `expected`; NULL:
 * that it reports nothing. */
static void page_says(const char *text, const char *expected)
{
    static domt_report report;

    report = (domt_report){0};
    check_page(&(domt_source){.path = "docs/planted.md", .text = text, .code = text}, &report);
    ck_assert_uint_eq(report.count, expected != NULL);
    ck_assert_msg(expected == NULL || strstr(report.text, expected) != NULL, "%s", report.text);
}

DOMT_TEST(tidy_sees_a_link_or_name_that_leads_nowhere)
{
    page_says("see [this](nothing.md)", "there is no docs/nothing.md");
    page_says("see [this](contract.md#the-lop)", "no heading #the-lop");
    page_says("see `base/nothing.c`", "there is no base/nothing.c");
    page_says("see `decisions/nothing`", "there is no docs/decisions/nothing");
    page_says("see this\n<<<<<<< HEAD\n", "a conflict of a merge is left");
    page_says("see [this](contract.md#the-loop), [that](../README.md), `base/slab.h`, `base/`,\n"
              "`house/`, `tests/tidy/*_test.c`, `tests/AREA/NAME_test.c`, `docs/` and\n"
              "[elsewhere](https://example.org/nothing.md)",
              NULL);
}

/* --- tags ------------------------------------------------------------------------------------- */

/* Each tag in a comment leads somewhere in the tree. A comment may cite the contract by a must
 * (`M8`) or by a heading (`contract: The loop`), and a decision by its page
 * (`decisions/messages`). A must and a heading have to stand in docs/contract.md, and a page in
 * docs/decisions/. Tags of earlier days, which only those could follow who had the papers from
 * before the first line, are not to come back. */

#define HEADINGS_MAX 128
#define HEADING_MAX  96

static char headings[HEADINGS_MAX][HEADING_MAX];
static size_t headings_count;

/* Read the headings of docs/contract.md, without their marks. */
static void read_contract(void)
{
    if (headings_count != 0)
        return;
    char *text = domt_tree_read_text(DOMT_SOURCE_DIR "/docs/contract.md");
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
    return domt_is_identifier_char(*p) ? 0 : (size_t)(p - at);
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
        if (strncmp(headings[i], at, length) == 0 && !domt_is_identifier_char(headings[i][length]))
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
    domt_report_add_offence(report, source->path, domt_line_number_of(source->text, at), "%.*s: %s",
                            (int)strcspn(at, "\n"), at, why);
}

/* Whether three digits that begin with two zeros stand at `at` and are no part of a longer
 * number. */
static bool is_bare_number(const char *at, char before)
{
    return strncmp(at, "00", 2) == 0 && isdigit((unsigned char)at[2]) &&
           !domt_is_identifier_char(at[3]) &&
           (strchr(".,", at[3]) == NULL || !isdigit((unsigned char)at[4])) &&
           !domt_is_identifier_char(before) && strchr(".,:+-/\\#", before) == NULL;
}

/* Check the word that begins at `at`. */
static void check_word(const domt_source *source, const char *at, char before, domt_report *report)
{
    size_t digits = *at == 'M' ? strspn(at + 1, "0123456789") : 0;

    if (digits != 0 && digits <= 2 && !domt_is_identifier_char(at[1 + digits])) {
        if (!is_must(at, 1 + digits))
            add_offence(report, source, at, "docs/contract.md has no heading of this must");
    } else if (domt_text_starts_with(at, "contract: ") ||
               domt_text_starts_with(at, "contract:\n")) {
        if (!is_heading(at + strlen("contract:")))
            add_offence(report, source, at, "docs/contract.md has no such heading");
    } else if (domt_text_starts_with(at, "decisions/")) {
        const char *name = at + strlen("decisions/");
        size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
        if (length != 0 && !is_page(name, length))
            add_offence(report, source, at, "docs/decisions/ has no such page");
    } else if (domt_text_starts_with(at, "DESIGN") && !domt_is_identifier_char(at[6])) {
        add_offence(report, source, at, "write contract: and a heading of docs/contract.md");
    } else if (domt_text_starts_with(at, "notes:") || domt_text_starts_with(at, "notes/")) {
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
        if (domt_is_identifier_char(*p) && !domt_is_identifier_char(before))
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
            end = domt_end_of_comment_or_literal(p);
        if (end != NULL && (hashes ? *p == '#' : *p == '/'))
            check_comment(source, p, end, report);
        p = end == NULL ? p + 1 : end;
    }
}

DOMT_TEST(each_tag_resolves)
{
    domt_tree_check_rule_holds(tags_rule);
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
            domt_tree_visit_file(DOMT_SOURCE_DIR, found.gl_pathv[j], tags_rule, &report);
        globfree(&found);
    }
    ck_assert_msg(report.count == 0, "%u offences:\n%s", report.count, report.text);
}

DOMT_TEST(tidy_sees_a_tag_that_leads_nowhere)
{
    domt_tree_check_rule_sees(tags_rule, "base/planted.c", "/* as it must (M14). */\n",
                              "this must");
    domt_tree_check_rule_sees(tags_rule, "base/planted.c", "/* (contract: The lop) */\n",
                              "no such heading");
    domt_tree_check_rule_sees(tags_rule, "base/planted.c", "/* (contract: The loops) */\n",
                              "no such heading");
    domt_tree_check_rule_sees(tags_rule, "base/planted.c", "/* decisions/nothing */\n",
                              "no such page");
    domt_tree_check_rule_sees(tags_rule, "tests/base/planted.c", "// DESIGN 4\n",
                              "heading of docs/contract");
    domt_tree_check_rule_sees(tags_rule, "base/planted.h", "/* (notes: ring) */\n", "tell it here");
    domt_tree_check_rule_sees(tags_rule, "base/planted.h", "/* as 003 has it */\n", "tell it here");
}

DOMT_TEST(tidy_lets_tags_and_numbers_stand)
{
    domt_tree_check_rule_accepts(tags_rule, "base/planted.c",
                                 "/* M1, M13 (contract: The loop), and contract:\n"
                                 " * Birth and\n * death */\n");
    domt_tree_check_rule_accepts(tags_rule, "base/planted.c",
                                 "/* decisions/messages. 1,003 of 0.003 */\n");
    domt_tree_check_rule_accepts(tags_rule, "base/planted.c",
                                 "const char *t = \"DESIGN 003 notes: M99\";\n");
    domt_tree_check_rule_accepts(tags_rule, "base/planted.c",
                                 "int M99; /* a DESIGNER's footnotes: M8s */\n");
}

DOMT_SUITE(120)
