/* Openings that no comment has.
 *
 * A comment is a plain sentence. A comment that begins with What, Who, Those, Of or By puts a
 * clause where a noun belongs; one that begins or ends with "..." leans on another line; and "See
 * the header." alone says nothing. Readers of such comments could only guess. The rule looks at all
 * comments of the tree's C files and of the models, sentence by sentence. */
#include "tests/support/suite.h"
#include "tests/tidy/tree.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMENT_MAX 16384

/* Write the text of the comment [from, end) to one line, without its marks. `at` gets the place in
 * the file of each character. */
static size_t flatten_comment(const char *from, const char *end, char *text, const char **at)
{
    size_t length = 0;
    bool gap = true;

    for (const char *p = from + 2; p < end - 2 && length < COMMENT_MAX - 1; p++) {
        bool is_mark = *p == '*' && gap;
        if (isspace((unsigned char)*p) || is_mark) {
            if (!gap)
                text[length] = ' ', at[length++] = p;
            gap = true;
            continue;
        }
        text[length] = *p;
        at[length++] = p;
        gap = false;
    }
    while (length > 0 && text[length - 1] == ' ')
        length--;
    text[length] = '\0';
    return length;
}

static bool begins_badly(const char *sentence)
{
    static const char *const words[] = {"What", "Who", "Whom", "Whose", "Those", "Of", "By"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (domt_starts_with(sentence, words[i]) && !domt_is_word(sentence[strlen(words[i])]))
            return true;
    }
    return false;
}

/* Whether a sentence begins at `i`: at the start, or behind a full stop and a space. */
static bool begins_sentence(const char *text, size_t i)
{
    return i == 0 || (i >= 2 && text[i - 1] == ' ' && strchr(".:;?!", text[i - 2]) != NULL);
}

static void check_comment(const domt_source *source, const char *from, const char *end,
                          domt_report *report)
{
    static char text[COMMENT_MAX];
    static const char *at[COMMENT_MAX];
    size_t length = flatten_comment(from, end, text, at);

    if (length == 0)
        return;
    if (strcmp(text, "See the header.") == 0)
        domt_report_add(report, source->path, domt_line_of(source->text, from),
                        "say what this file adds to its header");
    if (domt_starts_with(text, "...") || (length >= 3 && strcmp(text + length - 3, "...") == 0))
        domt_report_add(report, source->path, domt_line_of(source->text, from),
                        "\"%.40s\" leans on another line", text);
    for (size_t i = 0; i < length; i++) {
        if (begins_sentence(text, i) && begins_badly(text + i))
            domt_report_add(report, source->path, domt_line_of(source->text, at[i]),
                            "\"%.40s\": begin with a noun", text + i);
    }
}

static void check_openings(const domt_source *source, domt_report *report)
{
    for (const char *p = source->text; *p != '\0';) {
        const char *end = domt_span_end(p);
        if (end == NULL) {
            p++;
            continue;
        }
        if (domt_starts_with(p, "/*"))
            check_comment(source, p, end, report);
        p = end;
    }
}

DOMT_TEST(no_comment_begins_with_a_clause_or_leans_on_another_line)
{
    domt_tree_holds(check_openings);
}

DOMT_TEST(no_comment_of_a_model_begins_or_leans_so)
{
    static domt_report report;
    glob_t found;

    ck_assert_int_eq(glob(DOMT_SOURCE_DIR "/models/*.pml", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        domt_tree_visit(DOMT_SOURCE_DIR, found.gl_pathv[i], check_openings, &report);
    globfree(&found);
    ck_assert_msg(report.count == 0, "%u:\n%s", report.count, report.text);
}

DOMT_TEST(tidy_sees_each_opening)
{
    static const struct {
        const char *text;
        const char *expected;
    } rows[] = {
        {"\n/* What is dropped is freed. */\n", "What is dropped"},
        {"\n/* It is freed. Who comes late\n * finds nothing. */\n", "Who comes late"},
        {"\n/* Those that wait go first. */\n", "Those that wait"},
        {"\n/* It is\n * free. Of two, the first. */\n", "Of two"},
        {"\n/* By this it is told. */\n", "By this"},
        {"\n/* ... which is so much */\n", "leans"},
        {"\n/* the first of these ... */\n", "leans"},
        {"\n/* See the header. */\n", "what this file adds"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        domt_tree_sees(check_openings, "base/slab.c", rows[i].text, rows[i].expected);
    domt_tree_sees(check_openings, "tests/base/slab_test.c", rows[0].text, rows[0].expected);
    domt_tree_lets(check_openings, "base/slab.c",
                   "\n/* Whatever is freed is poisoned. Often it is not. See the header, too. */\n"
                   "\nstatic const char *text = \"/* What */\";\n");
}

DOMT_SUITE(60)
