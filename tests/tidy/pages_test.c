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

/* The links of the pages in docs/ are right: each link leads to a file and, behind `#`, to a
 * heading of it, and each file or folder of the tree that a page names between backquotes exists.
 * So whoever renames a file has to rename it in the pages, too. */

static const char *const pages[] = {"*.md", "docs/*.md", "docs/guide/*.md", "docs/decisions/*.md",
                                    "models/*.md"};

/* The folders of the tree's root whose files a page may name between backquotes. */
static const char *const folders[] = {"base/",     "house/",  "io/",        "runtime/",  "config/",
                                      "include/",  "models/", "protocols/", "tests/",    "bench/",
                                      "examples/", "docs/",   "packaging/", "decisions/"};

/* Returns whether a file or folder `root`/`pattern` exists; a pattern may contain `*`. */
static bool is_file_in_tree(const char *root, const char *pattern)
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

/* Returns whether the anchor `anchor` leads to `heading`, which ends with its line. An anchor is
 * the heading in lower case, with a hyphen for each space, and without characters that are neither
 * letter, digit, hyphen nor underscore. */
static bool has_heading_anchor(const char *heading, const char *anchor)
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

static bool has_text_heading_of_anchor(const char *text, const char *anchor)
{
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        size_t marks = strspn(line, "#");
        if (marks != 0 && line[marks] == ' ' && has_heading_anchor(line + marks + 1, anchor))
            return true;
    }
    return false;
}

/* Returns whether the page `name` in `root` has a heading to which `anchor` leads. */
static bool has_page_heading_of_anchor(const char *root, const char *name, const char *anchor)
{
    char path[4 * DOMT_PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", root, name);
    char *text = domt_tree_read_text(path);
    bool has = has_text_heading_of_anchor(text, anchor);
    free(text);
    return has;
}

static void check_link_of_page(const domt_source *page, const char *root, const char *at,
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
    if (!is_file_in_tree(root, name))
        domt_report_add_offence(report, page->path, line, "there is no %s", name);
    else if (anchor != NULL && !has_page_heading_of_anchor(root, name, anchor))
        domt_report_add_offence(report, page->path, line, "%s has no heading #%s", name, anchor);
}

/* --- names ----------------------------------------------------------------------------------- */

/* Check that the file exists that a page names between backquotes, of which the second one is at
 * `at`. A text with capitals, spaces or brackets names no file, and a source may be named without
 * its extension, as `base/clock`. */
static void check_name_in_backquotes(const domt_source *page, const char *root, const char *at,
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
        if (!is_file_in_tree(root, name) && !is_file_in_tree(root, begun))
            domt_report_add_offence(report, page->path, domt_line_number_of(page->text, at),
                                    "there is no %s", name);
    }
}

/* Report the line that begins at `at` if it is a mark of a merge conflict. */
static void report_mark_of_merge_conflict(const domt_source *page, const char *at,
                                          domt_report *report)
{
    if (domt_text_starts_with(at, "<<<<<<< ") || domt_text_starts_with(at, ">>>>>>> "))
        domt_report_add_offence(report, page->path, domt_line_number_of(page->text, at),
                                "a conflict of a merge is left");
}

static void check_links_and_names_of_page(const domt_source *page, domt_report *report)
{
    bool quoted = false;

    for (const char *p = page->text; *p != '\0'; p++) {
        if (p == page->text || p[-1] == '\n')
            report_mark_of_merge_conflict(page, p, report);
        if (domt_text_starts_with(p, "]("))
            check_link_of_page(page, DOMT_SOURCE_DIR, p + 2, report);
        if (*p == '`') {
            quoted = !quoted;
            if (quoted)
                check_name_in_backquotes(page, DOMT_SOURCE_DIR, p + 1, report);
        }
    }
}

DOMT_TEST(each_link_and_name_of_pages_resolves)
{
    static domt_report report;

    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        char pattern[DOMT_PATH_MAX];
        glob_t found;

        snprintf(pattern, sizeof pattern, "%s/%s", DOMT_SOURCE_DIR, pages[i]);
        ck_assert_msg(glob(pattern, 0, NULL, &found) == 0, "%s", pattern);
        for (size_t j = 0; j < found.gl_pathc; j++)
            domt_tree_visit_file(DOMT_SOURCE_DIR, found.gl_pathv[j], check_links_and_names_of_page,
                                 &report);
        globfree(&found);
    }
    ck_assert_msg(report.count == 0, "%u offences:\n%s", report.count, report.text);
}

/* Check a page docs/planted.md with this text, and see that the rule of pages reports `expected`,
 * or nothing if that is NULL. */
static void expect_report_for_page(const char *text, const char *expected)
{
    static domt_report report;

    report = (domt_report){0};
    check_links_and_names_of_page(
        &(domt_source){.path = "docs/planted.md", .text = text, .code = text}, &report);
    ck_assert_uint_eq(report.count, expected != NULL);
    ck_assert_msg(expected == NULL || strstr(report.text, expected) != NULL, "%s", report.text);
}

DOMT_TEST(tidy_sees_broken_link_or_name_in_page)
{
    expect_report_for_page("see [this](nothing.md)", "there is no docs/nothing.md");
    expect_report_for_page("see [this](contract.md#the-lop)", "no heading #the-lop");
    expect_report_for_page("see `base/nothing.c`", "there is no base/nothing.c");
    expect_report_for_page("see `decisions/nothing`", "there is no docs/decisions/nothing");
    expect_report_for_page("see this\n<<<<<<< HEAD\n", "a conflict of a merge is left");
    expect_report_for_page(
        "see [this](contract.md#the-loop), [that](../README.md), `base/slab.h`, `base/`,\n"
        "`house/`, `tests/tidy/*_test.c`, `tests/AREA/NAME_test.c`, `docs/` and\n"
        "[elsewhere](https://example.org/nothing.md)",
        NULL);
}

/* --- tags ------------------------------------------------------------------------------------- */

/* Each tag in a comment leads somewhere in the tree. A comment may cite the contract by a must
 * (`M8`) or by a heading (`contract: The loop`), and a decision by its page (`decisions/messages`).
 * The must and the heading have to stand in docs/contract.md, and the page in docs/decisions/.
 * Older forms of tags, which cite papers that are not in the tree, are refused. */

#define HEADINGS_MAX 128
#define HEADING_MAX  96

static char headings[HEADINGS_MAX][HEADING_MAX];
static size_t headings_count;

/* Read the headings of docs/contract.md, without their marks `#`. */
static void read_headings_of_contract(void)
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

/* Returns how many bytes of the comment at `at` are the text of `heading`, where a line of the
 * comment may end between two words; 0 if the heading does not stand there. */
static size_t matched_length_of_heading(const char *at, const char *heading)
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

static bool is_heading_of_contract(const char *at)
{
    at += strspn(at, " \t\n*#");
    for (size_t i = 0; i < headings_count; i++) {
        if (matched_length_of_heading(at, headings[i]) != 0)
            return true;
    }
    return false;
}

/* Returns whether a heading of the contract is the tag at `at` (such as "M8"), or begins with it
 * ("M8: a local message ..."). */
static bool is_must_of_contract(const char *at, size_t length)
{
    for (size_t i = 0; i < headings_count; i++) {
        if (strncmp(headings[i], at, length) == 0 && !domt_is_identifier_char(headings[i][length]))
            return true;
    }
    return false;
}

static bool is_page_of_decisions(const char *name, size_t length)
{
    char path[DOMT_PATH_MAX];

    snprintf(path, sizeof path, "%s/docs/decisions/%.*s.md", DOMT_SOURCE_DIR, (int)length, name);
    return access(path, R_OK) == 0;
}

/* --- tags ------------------------------------------------------------------------------------ */

static void add_offence_with_line(domt_report *report, const domt_source *source, const char *at,
                                  const char *why)
{
    domt_report_add_offence(report, source->path, domt_line_number_of(source->text, at), "%.*s: %s",
                            (int)strcspn(at, "\n"), at, why);
}

/* Returns whether three digits that begin with two zeros stand at `at` and are no part of a longer
 * number: a tag of early comments. */
static bool is_bare_number_as_tag(const char *at, char before)
{
    return strncmp(at, "00", 2) == 0 && isdigit((unsigned char)at[2]) &&
           !domt_is_identifier_char(at[3]) &&
           (strchr(".,", at[3]) == NULL || !isdigit((unsigned char)at[4])) &&
           !domt_is_identifier_char(before) && strchr(".,:+-/\\#", before) == NULL;
}

/* Check that the tag, if the word that begins at `at` is one, leads somewhere. */
static void check_tag_at_word(const domt_source *source, const char *at, char before,
                              domt_report *report)
{
    size_t digits = *at == 'M' ? strspn(at + 1, "0123456789") : 0;

    if (digits != 0 && digits <= 2 && !domt_is_identifier_char(at[1 + digits])) {
        if (!is_must_of_contract(at, 1 + digits))
            add_offence_with_line(report, source, at,
                                  "docs/contract.md has no heading of this must");
    } else if (domt_text_starts_with(at, "contract: ") ||
               domt_text_starts_with(at, "contract:\n")) {
        if (!is_heading_of_contract(at + strlen("contract:")))
            add_offence_with_line(report, source, at, "docs/contract.md has no such heading");
    } else if (domt_text_starts_with(at, "decisions/")) {
        const char *name = at + strlen("decisions/");
        size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
        if (length != 0 && !is_page_of_decisions(name, length))
            add_offence_with_line(report, source, at, "docs/decisions/ has no such page");
    } else if (domt_text_starts_with(at, "DESIGN") && !domt_is_identifier_char(at[6])) {
        add_offence_with_line(report, source, at,
                              "write contract: and a heading of docs/contract.md");
    } else if (domt_text_starts_with(at, "notes:") || domt_text_starts_with(at, "notes/")) {
        add_offence_with_line(report, source, at, "tell it here, or write decisions/ and a page");
    } else if (is_bare_number_as_tag(at, before)) {
        add_offence_with_line(report, source, at,
                              "tell it here: the number means nothing in this tree");
    }
}

static void check_tags_of_comment(const domt_source *source, const char *from, const char *end,
                                  domt_report *report)
{
    for (const char *p = from; p < end; p++) {
        char before = p == source->text ? ' ' : p[-1];
        if (domt_is_identifier_char(*p) && !domt_is_identifier_char(before))
            check_tag_at_word(source, p, before, report);
    }
}

/* The rule of tags: it checks each comment of a file in C or Promela, or of a file whose comments
 * begin with #. */
static void check_tags_of_file(const domt_source *source, domt_report *report)
{
    bool hashes = strchr(source->path, '.') == NULL || strstr(source->path, ".txt") != NULL ||
                  strstr(source->path, ".yaml") != NULL;
    const char *p = source->text;

    read_headings_of_contract();
    while (*p != '\0') {
        const char *end = p + 1;
        if (hashes && *p == '#')
            end = p + strcspn(p, "\n");
        else if (!hashes)
            end = domt_end_of_comment_or_literal(p);
        if (end != NULL && (hashes ? *p == '#' : *p == '/'))
            check_tags_of_comment(source, p, end, report);
        p = end == NULL ? p + 1 : end;
    }
}

DOMT_TEST(each_tag_in_comments_of_c_resolves)
{
    domt_tree_check_rule_holds(check_tags_of_file);
}

/* Files with comments that are not written in C: models, scripts and their like. */
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
            domt_tree_visit_file(DOMT_SOURCE_DIR, found.gl_pathv[j], check_tags_of_file, &report);
        globfree(&found);
    }
    ck_assert_msg(report.count == 0, "%u offences:\n%s", report.count, report.text);
}

DOMT_TEST(tidy_sees_tag_that_resolves_nowhere)
{
    domt_tree_check_rule_sees_offence(check_tags_of_file, "base/planted.c",
                                      "/* as it must (M14). */\n", "this must");
    domt_tree_check_rule_sees_offence(check_tags_of_file, "base/planted.c",
                                      "/* (contract: The lop) */\n", "no such heading");
    domt_tree_check_rule_sees_offence(check_tags_of_file, "base/planted.c",
                                      "/* (contract: The loops) */\n", "no such heading");
    domt_tree_check_rule_sees_offence(check_tags_of_file, "base/planted.c",
                                      "/* decisions/nothing */\n", "no such page");
    domt_tree_check_rule_sees_offence(check_tags_of_file, "tests/base/planted.c", "// DESIGN 4\n",
                                      "heading of docs/contract");
    domt_tree_check_rule_sees_offence(check_tags_of_file, "base/planted.h", "/* (notes: ring) */\n",
                                      "tell it here");
    domt_tree_check_rule_sees_offence(check_tags_of_file, "base/planted.h", "/* as 003 has it */\n",
                                      "tell it here");
}

DOMT_TEST(tidy_accepts_right_tags_and_plain_numbers)
{
    domt_tree_check_rule_accepts(check_tags_of_file, "base/planted.c",
                                 "/* M1, M13 (contract: The loop), and contract:\n"
                                 " * Birth and\n * death */\n");
    domt_tree_check_rule_accepts(check_tags_of_file, "base/planted.c",
                                 "/* decisions/messages. 1,003 of 0.003 */\n");
    domt_tree_check_rule_accepts(check_tags_of_file, "base/planted.c",
                                 "const char *t = \"DESIGN 003 notes: M99\";\n");
    domt_tree_check_rule_accepts(check_tags_of_file, "base/planted.c",
                                 "int M99; /* a DESIGNER's footnotes: M8s */\n");
}

DOMT_SUITE(120)
