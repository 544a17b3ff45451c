/* The functions on which the rules of tests/tidy are built: they walk the tree, blank comments,
 * copy files and plant offences; tree.h describes them. */
#include "tests/tidy/tree.h"
#include "tests/support/suite.h"

#include <ctype.h>
#include <fts.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* The folders of the tree that hold code. A folder that does not exist yet is passed over. */
#define FOLDERS "base house io runtime config protocols include examples bench tests tools"

#define FILE_MAX (1 << 20)

bool domt_text_starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool domt_is_identifier_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

const char *domt_find_word(const char *text, const char *from, const char *word)
{
    size_t size = strlen(word);

    for (const char *p = strstr(from, word); p != NULL; p = strstr(p + 1, word)) {
        if (!domt_is_identifier_char(p[size]) && (p == text || !domt_is_identifier_char(p[-1])))
            return p;
    }
    return NULL;
}

uint32_t domt_line_number_of(const char *text, const char *at)
{
    uint32_t line = 1;

    for (const char *p = text; p < at; p++) {
        line += *p == '\n';
    }
    return line;
}

void domt_report_add_offence(domt_report *report, const char *path, uint32_t line,
                             const char *format, ...)
{
    char message[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);

    report->count++;
    size_t room = sizeof report->text - report->used;
    int length = snprintf(report->text + report->used, room, "%s:%u: %s\n", path, line, message);
    if (length > 0 && (size_t)length < room) {
        report->used += (size_t)length;
    } else {
        report->text[report->used] = '\0';
    }
}

int domt_run_shell(char *output, size_t size, const char *format, ...)
{
    char command[8 * DOMT_PATH_MAX];
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    ck_assert(length > 0 && (size_t)length < sizeof command);

    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    size_t used = fread(output, 1, size - 1, pipe);
    output[used] = '\0';
    char rest[4096];
    while (fread(rest, 1, sizeof rest, pipe) > 0) {
    }
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* ---- Text -------------------------------------------------------------------------------------*/

const char *domt_end_of_comment_or_literal(const char *p)
{
    if (p[0] == '/' && p[1] == '/') {
        return p + strcspn(p, "\n");
    }
    if (p[0] == '/' && p[1] == '*') {
        const char *end = strstr(p + 2, "*/");
        return end == NULL ? p + strlen(p) : end + 2;
    }
    if (p[0] != '"' && p[0] != '\'') {
        return NULL;
    }
    char quote = *p++;
    while (*p != '\0' && *p != quote && *p != '\n') {
        p += p[0] == '\\' && p[1] != '\0' ? 2 : 1;
    }
    return *p == quote ? p + 1 : p;
}

static void blank_comments_and_literals(char *code)
{
    char *p = code;

    while (*p != '\0') {
        const char *end = domt_end_of_comment_or_literal(p);
        if (end == NULL) {
            p++;
        }
        for (; end != NULL && p < end; p++) {
            *p = *p == '\n' ? '\n' : ' ';
        }
    }
}

char *domt_tree_read_text(const char *path)
{
    char *text = malloc(FILE_MAX);
    FILE *file = fopen(path, "r");

    ck_assert_ptr_nonnull(text);
    ck_assert_msg(file != NULL, "cannot read %s", path);
    size_t used = fread(text, 1, FILE_MAX - 1, file);
    ck_assert_msg(used < FILE_MAX - 1, "%s is too large", path);
    text[used] = '\0';
    fclose(file);
    return text;
}

/* ---- The tree ---------------------------------------------------------------------------------*/

static int compare_entries_by_name(const FTSENT **left, const FTSENT **right)
{
    return strcmp((*left)->fts_name, (*right)->fts_name);
}

void domt_tree_visit_file(const char *root, const char *path, domt_rule *rule, domt_report *report)
{
    char *text = domt_tree_read_text(path);
    char *code = strdup(text);

    ck_assert_ptr_nonnull(code);
    blank_comments_and_literals(code);
    rule(&(domt_source){.path = path + strlen(root) + 1, .text = text, .code = code}, report);
    free(code);
    free(text);
}

void domt_tree_walk_all_files(const char *root, domt_rule *rule, domt_report *report)
{
    char folders[] = FOLDERS;
    char paths[16][DOMT_PATH_MAX];
    char *starts[17] = {NULL};
    size_t count = 0;
    char *next = NULL;
    struct stat folder_stat;

    for (char *name = strtok_r(folders, " ", &next); name != NULL;
         name = strtok_r(NULL, " ", &next)) {
        snprintf(paths[count], sizeof paths[count], "%s/%s", root, name);
        if (stat(paths[count], &folder_stat) == 0) {
            starts[count] = paths[count];
            count++;
        }
    }

    FTS *walk = fts_open(starts, FTS_PHYSICAL | FTS_NOCHDIR, compare_entries_by_name);
    ck_assert_ptr_nonnull(walk);
    for (FTSENT *entry = fts_read(walk); entry != NULL; entry = fts_read(walk)) {
        size_t length = entry->fts_namelen;
        if (entry->fts_info != FTS_F || length < 3 || entry->fts_name[length - 2] != '.' ||
            strchr("ch", entry->fts_name[length - 1]) == NULL) {
            continue;
        }
        domt_tree_visit_file(root, entry->fts_path, rule, report);
    }
    fts_close(walk);
}

static void make_temporary_directory(char ret_path[DOMT_PATH_MAX])
{
    const char *folder = getenv("TMPDIR");

    snprintf(ret_path, DOMT_PATH_MAX, "%s/domt-tidy-XXXXXX", folder == NULL ? "/tmp" : folder);
    ck_assert_ptr_nonnull(mkdtemp(ret_path));
}

void domt_tree_copy_parts(const char *root, const char *parts, char ret_copy[DOMT_PATH_MAX])
{
    char output[1024];

    make_temporary_directory(ret_copy);
    int status = domt_run_shell(output, sizeof output, "cd '%s' && cp -R --parents %s '%s'/ 2>&1",
                                root, parts, ret_copy);
    ck_assert_msg(status == 0, "%s", output);
}

void domt_tree_remove_copy(const char *copy)
{
    char output[1024];

    ck_assert_msg(domt_run_shell(output, sizeof output, "rm -rf '%s' 2>&1", copy) == 0, "%s",
                  output);
}

void domt_tree_append_text_to_file(const char *copy, const char *path, const char *text)
{
    char full[2 * DOMT_PATH_MAX];

    snprintf(full, sizeof full, "%s/%s", copy, path);
    FILE *file = fopen(full, "a");
    ck_assert_msg(file != NULL, "cannot write %s", full);
    fputs(text, file);
    fclose(file);
}

/* ---- Holding ----------------------------------------------------------------------------------*/

void domt_tree_check_rule_holds(domt_rule *rule)
{
    static domt_report report;

    domt_tree_walk_all_files(DOMT_SOURCE_DIR, rule, &report);
    ck_assert_msg(report.count == 0, "%u offences:\n%s", report.count, report.text);
}

static domt_report before, after;

/* Copy one file of the tree to a new directory. A rule sees one file at a time, so a planted
 * offence needs no other files. */
static void copy_file_of_tree(const char *path, char ret_copy[DOMT_PATH_MAX])
{
    char output[1024];

    make_temporary_directory(ret_copy);
    int status = domt_run_shell(output, sizeof output,
                                "cd '%s' && mkdir -p '%s'/\"$(dirname '%s')\" && "
                                "if [ -f '%s' ]; then cp '%s' '%s'/'%s'; fi 2>&1",
                                DOMT_SOURCE_DIR, ret_copy, path, path, path, ret_copy, path);
    ck_assert_msg(status == 0, "%s", output);
}

static void count_offences_before_and_after_planting(domt_rule *rule, const char *path,
                                                     const char *text)
{
    char copy[DOMT_PATH_MAX];

    before = (domt_report){0};
    after = (domt_report){0};
    copy_file_of_tree(path, copy);
    domt_tree_walk_all_files(copy, rule, &before);
    domt_tree_append_text_to_file(copy, path, text);
    domt_tree_walk_all_files(copy, rule, &after);
    domt_tree_remove_copy(copy);
}

void domt_tree_check_rule_sees_offence(domt_rule *rule, const char *path, const char *text,
                                       const char *expected)
{
    count_offences_before_and_after_planting(rule, path, text);
    ck_assert_msg(after.count == before.count + 1, "%u offences, then %u:\n%s", before.count,
                  after.count, after.text);

    for (const char *line = strstr(after.text, path); line != NULL; line = strstr(line + 1, path)) {
        const char *end = strchr(line, '\n');
        const char *found = strstr(line, expected);
        if (end != NULL && found != NULL && found < end) {
            return;
        }
    }
    ck_abort_msg("no line with %s and '%s' in:\n%s", path, expected, after.text);
}

void domt_tree_check_rule_accepts(domt_rule *rule, const char *path, const char *text)
{
    count_offences_before_and_after_planting(rule, path, text);
    ck_assert_msg(after.count == before.count, "%u offences, then %u:\n%s", before.count,
                  after.count, after.text);
}
