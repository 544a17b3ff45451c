/* The source tree as data for the rules of tests/tidy: every C file, its text, and its code alone.
 *
 * A rule is a function that visits each file, one at a time, and reports offences. Each rule is
 * tested twice: on the tree itself, where it must find no offence, and on a copy of one file in
 * which an offence was planted, where it must find exactly that one, because a rule that sees
 * nothing proves nothing. */
#ifndef DOMT_TIDY_TREE_H
#define DOMT_TIDY_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOMT_PATH_MAX 1024

typedef struct domt_source {
    const char *path; /* the source's path from the root of the tree: "base/slab.c" */
    const char *text;
    /* `text` with comments and literals blanked, so that every other byte keeps its place */
    const char *code;
} domt_source;

typedef struct domt_report {
    uint32_t count;
    size_t used;
    /* one line "path:line: message" for each offence; lines that do not fit are only counted */
    char text[32768];
} domt_report;

typedef void domt_rule(const domt_source *source, domt_report *report);

void domt_report_add_offence(domt_report *report, const char *path, uint32_t line,
                             const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Apply `rule` to each .c and .h file of the folders that hold code, sorted by path. */
void domt_tree_walk_all_files(const char *root, domt_rule *rule, domt_report *report);

/* Apply `rule` to one more file, with its whole path, which begins with `root`. */
void domt_tree_visit_file(const char *root, const char *path, domt_rule *rule, domt_report *report);

/* Read the text of a file. Ownership: the caller frees it. */
char *domt_tree_read_text(const char *path);

/* Copy parts of the tree (files and folders, between spaces) to a new directory below $TMPDIR.
 * Ownership: the caller gives the copy to domt_tree_remove_copy(). */
void domt_tree_copy_parts(const char *root, const char *parts, char ret_copy[DOMT_PATH_MAX]);
void domt_tree_remove_copy(const char *copy);

/* Append text to the file `path` of a copy; the file is made if it does not exist. */
void domt_tree_append_text_to_file(const char *copy, const char *path, const char *text);

/* Check that `rule` finds exactly one offence more, with `expected` in its line, after `text` was
 * planted at the end of a copy of `path`. */
void domt_tree_check_rule_sees_offence(domt_rule *rule, const char *path, const char *text,
                                       const char *expected);

/* Check that `rule` finds no further offence after `text` was planted at the end of a copy of
 * `path`. */
void domt_tree_check_rule_accepts(domt_rule *rule, const char *path, const char *text);

/* Check that `rule` finds no offence in the tree. */
void domt_tree_check_rule_holds(domt_rule *rule);

bool domt_text_starts_with(const char *text, const char *prefix);

/* Returns whether `c` can be a character of an identifier in C. */
bool domt_is_identifier_char(char c);

/* Returns the next place in `text`, from `from` on, where `word` is a whole identifier; NULL: there
 * is none. */
const char *domt_find_word(const char *text, const char *from, const char *word);

/* Returns the end of the comment or literal of C that begins at `p`, or NULL if neither begins
 * there. */
const char *domt_end_of_comment_or_literal(const char *p);

uint32_t domt_line_number_of(const char *text, const char *at);

/* Run a shell command; its output goes to `output`, cut to `size` bytes. Returns the exit
 * status. */
int domt_run_shell(char *output, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
