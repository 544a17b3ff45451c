/* The links of the pages are right: each link leads to a file and, behind `#`, to a heading of it,
 * and each file or folder of the tree that a page names between backquotes exists. So a renamed
 * file has to be renamed in the pages, too. */
#include "tests/support/suite.h"
#include "tests/tidy/tree.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        if (!domt_is_word(c) && c != '-')
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
    char *text = domt_tree_text(path);
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
    if (domt_starts_with(target, "http"))
        return;
    char *anchor = strchr(target, '#');
    if (anchor != NULL)
        *anchor++ = '\0';
    if (target[0] == '\0')
        snprintf(name, sizeof name, "%s", page->path);
    else
        snprintf(name, sizeof name, "%.*s%s", slash == NULL ? 0 : (int)(slash - page->path + 1),
                 page->path, target);
    uint32_t line = domt_line_of(page->text, at);
    if (!is_there(root, name))
        domt_report_add(report, page->path, line, "there is no %s", name);
    else if (anchor != NULL && !page_has(root, name, anchor))
        domt_report_add(report, page->path, line, "%s has no heading #%s", name, anchor);
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
        if (!domt_starts_with(at, folders[i]))
            continue;
        bool is_decision = strcmp(folders[i], "decisions/") == 0;
        snprintf(name, sizeof name, "%s%.*s", is_decision ? "docs/" : "", (int)length, at);
        snprintf(begun, sizeof begun, "%s.*", name);
        if (!is_there(root, name) && !is_there(root, begun))
            domt_report_add(report, page->path, domt_line_of(page->text, at), "there is no %s",
                            name);
    }
}

/* Check the line that begins at `at`. */
static void check_merged(const domt_source *page, const char *at, domt_report *report)
{
    if (domt_starts_with(at, "<<<<<<< ") || domt_starts_with(at, ">>>>>>> "))
        domt_report_add(report, page->path, domt_line_of(page->text, at),
                        "a conflict of a merge is left");
}

static void check_page(const domt_source *page, domt_report *report)
{
    bool quoted = false;

    for (const char *p = page->text; *p != '\0'; p++) {
        if (p == page->text || p[-1] == '\n')
            check_merged(page, p, report);
        if (domt_starts_with(p, "]("))
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
            domt_tree_visit(DOMT_SOURCE_DIR, found.gl_pathv[j], check_page, &report);
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

DOMT_SUITE(60)
