/* The list of issues of a source of the configuration has a fixed size, so adding to it cannot
 * fail. */
#include "config/issues.h"

#include <domus/text.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_printable(const char *text)
{
    while (*text >= ' ' && *text <= '~')
        text++;
    return *text == '\0';
}

/* Write the text of an issue. A printable text stays as it is, because it may hold escapes already;
 * another one is escaped. */
static void append_escaped_text_to_issue(struct domi_yaml_issue *issue, const char *text)
{
    if (is_printable(text))
        snprintf(issue->text, sizeof issue->text, "%s", text);
    else
        (void)domus_text_escape(text, strlen(text), issue->text, sizeof issue->text);
}

void domi_yaml_issues_add_issue(struct domi_yaml_issues *issues, struct domi_yaml_origin at,
                                const char *path, const char *format, ...)
{
    va_list arguments;

    if (issues->count == DOMI_YAML_ISSUES_MAX) {
        issues->more++;
        return;
    }

    struct domi_yaml_issue *issue = &issues->list[issues->count];
    char text[DOMI_YAML_ISSUE_SIZE];
    size_t used = 0;

    issue->at = at;
    issue->serial = issues->count++;
    if (path[0] != '\0') {
        int printed = snprintf(text, sizeof text, "%s: ", path);
        used = (size_t)printed < sizeof text ? (size_t)printed : sizeof text - 1;
    }
    va_start(arguments, format);
    vsnprintf(text + used, sizeof text - used, format, arguments);
    va_end(arguments);
    append_escaped_text_to_issue(issue, text);
}

static int compare_numbers(uint32_t left, uint32_t right)
{
    return (left > right) - (left < right);
}

static int compare_issues(const void *left_, const void *right_)
{
    const struct domi_yaml_issue *left = left_, *right = right_;
    int order = compare_numbers(left->at.file, right->at.file);

    if (order == 0)
        order = compare_numbers(left->at.line, right->at.line);
    if (order == 0)
        order = compare_numbers(left->at.column, right->at.column);
    return order != 0 ? order : compare_numbers(left->serial, right->serial);
}

void domi_yaml_issues_sort(struct domi_yaml_issues *issues)
{
    qsort(issues->list, issues->count, sizeof issues->list[0], compare_issues);
}

int domi_yaml_count_bytes_of_text_to_show(const char *text)
{
    size_t length = strnlen(text, DOMI_YAML_SHOWN_MAX + 1);

    if (length <= DOMI_YAML_SHOWN_MAX)
        return (int)length;
    length = DOMI_YAML_SHOWN_MAX;
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--; /* the shown bytes do not end within a UTF-8 character */
    return (int)length;
}
