/* Issues are the faults of one source of the configuration, such as a file. They are collected in
 * any order and printed in the order of its lines.
 *
 * The reader looks at a file in several passes (syntax, structure, values), and each pass goes on
 * after a fault. Sorting makes one list of all faults. */
#ifndef DOMI_CONFIG_ISSUES_H
#define DOMI_CONFIG_ISSUES_H

#include <stddef.h>
#include <stdint.h>

/* most issues of one source that are kept; further ones are only counted */
#define DOMI_YAML_ISSUES_MAX 64
#define DOMI_YAML_ISSUE_SIZE 384 /* bytes of the text of an issue, its NUL included */
#define DOMI_YAML_SHOWN_MAX  48  /* most bytes of a value or key that are shown in a message */

/* The origin of a value: the place in a source of the configuration where its node stands. */
struct domi_yaml_origin {
    uint32_t file; /* index of the source's name among the reader's names (config/yaml.c) */
    /* line in the source, from 1; 0: the source has no lines, or the issue is about no certain
     * line */
    uint32_t line;
    uint32_t column; /* column in that line, from 1; 0: not known */
};

struct domi_yaml_issue {
    struct domi_yaml_origin at; /* place in the source that the issue is about */
    /* number that keeps the order in which issues of one place were added */
    uint32_t serial;
    /* text that says what is wrong in that place, NUL-terminated */
    char text[DOMI_YAML_ISSUE_SIZE];
};

struct domi_yaml_issues {
    uint32_t count; /* number of issues in the list `list` */
    /* number of faults that were found when the list was full */
    uint32_t more;
    /* issues of the source, of which the first `count` are in use */
    struct domi_yaml_issue list[DOMI_YAML_ISSUES_MAX];
};

/* Add an issue "path: message" (or, with an empty path, the message alone). A text with bytes that
 * are not printable ASCII is escaped (domus/text.h), so that an issue is one line and does nothing
 * to a terminal. */
void domi_yaml_issues_add_issue(struct domi_yaml_issues *issues, struct domi_yaml_origin at,
                                const char *path, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Sort the issues of a source by file, line and column. */
void domi_yaml_issues_sort(struct domi_yaml_issues *issues);

/* Returns how many bytes of `text` to show, for "%.*s": whole characters, at most
 * DOMI_YAML_SHOWN_MAX. */
int domi_yaml_count_bytes_of_text_to_show(const char *text);

#endif
