/* Reads the comments of config/domus.yaml (config_parts.h).
 *
 * This is no reader of YAML: it knows the form of that one file, line by line. A comment above a
 * key is the text of the key, and of following keys without a comment of their own, as `sendBuffer`
 * and `receiveBuffer` share one. A mark behind a value tells that the key is live, which the table
 * of keys tells, too. The keys of a pool stand in a comment, with their texts behind them. */
#include "tools/domus/config_parts.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 8
#define PATH_SIZE 256
#define TEXT_SIZE 4096
#define LINE_SIZE 256

/* The state of reading the comments of config/domus.yaml. */
typedef struct reading {
    json_t *texts;
    char path[PATH_SIZE];    /* path of the last key that was read */
    size_t ends[DEPTH_MAX];  /* offsets at which the parts of `path` end, by depth */
    char pending[TEXT_SIZE]; /* the comment above the next key, as far as it was read */
    char last[TEXT_SIZE];    /* the text of the last key that was read */
    /* indentation of a key whose text continues; SIZE_MAX: there is none */
    size_t last_indent;
    /* the lines of the file that follow are keys of a pool, which stand in comments */
    bool is_pool;
    bool is_list; /* the keys that follow belong to an element of a list */
} reading;

/* Copy a line of the file without its end. Returns where the next line begins. */
static const char *copy_line_and_go_to_next(const char *at, char line[LINE_SIZE])
{
    size_t length = strcspn(at, "\n");

    snprintf(line, LINE_SIZE, "%.*s", (int)length, at);
    return at + length + (at[length] == '\n');
}

/* Returns the length of the key's name at the begin of a text; 0: there is none. */
static size_t get_length_of_yaml_key_at_begin(const char *text)
{
    size_t length = 0;

    while (isalnum((unsigned char)text[length]))
        length++;
    return text[length] == ':' && (text[length + 1] == ' ' || text[length + 1] == '\0') ? length
                                                                                        : 0;
}

/* Append a piece of a comment to the text of a key. */
static void append_piece_of_comment(char text[TEXT_SIZE], const char *piece)
{
    size_t used = strlen(text);

    snprintf(text + used, TEXT_SIZE - used, "%s%s", used > 0 ? " " : "", piece);
}

/* Returns the comment behind a key's value in a line, unless it is only the mark of a live key;
 * otherwise "". */
static const char *get_comment_behind_value(const char *value)
{
    const char *comment = strstr(value, " # ");

    if (comment == NULL || strcmp(comment, " # live") == 0 || strcmp(comment, " # restart") == 0)
        return "";
    return comment + strlen(" # ");
}

/* Set the path that belongs to a key with this indentation. Keys of an element are indented by one
 * level more than those of a section. */
static void set_path_of_key(reading *at, size_t indent, const char *name, size_t length)
{
    size_t depth = indent / 2 - (indent >= 4 && at->is_list ? 1 : 0);

    depth = depth < DEPTH_MAX ? depth : DEPTH_MAX - 1;
    size_t used = depth > 0 ? at->ends[depth - 1] : 0;

    snprintf(at->path + used, PATH_SIZE - used, "%s%.*s", used > 0 ? "." : "", (int)length, name);
    at->ends[depth] = strlen(at->path);
    if (depth == 0) {
        at->is_pool = strcmp(at->path, "pools") == 0;
        at->is_list = at->is_pool || strcmp(at->path, "listeners") == 0;
    }
}

/* Store the text of a key: the comments above and behind it. */
static void store_text_of_key(reading *at, size_t indent, const char *name, size_t length)
{
    const char *value = name + length + 1;
    const char *behind = get_comment_behind_value(value);
    bool is_section = value[0] == '\0';

    set_path_of_key(at, indent, name, length);
    if (behind[0] != '\0')
        append_piece_of_comment(at->pending, behind);
    if (at->pending[0] != '\0')
        memcpy(at->last, at->pending, TEXT_SIZE);
    else if (at->last_indent != indent)
        at->last[0] = '\0';
    if (at->last[0] != '\0')
        (void)json_object_set_new(at->texts, at->path, json_string(at->last));
    at->pending[0] = '\0';
    at->last_indent = is_section || behind[0] != '\0' ? SIZE_MAX : indent;
}

/* Read a line of the file in which a key may stand. Returns whether a key stands in it. */
static bool read_line_if_key_stands_in_it(reading *at, const char *line)
{
    size_t indent = strspn(line, " ");
    size_t dash = strncmp(line + indent, "- ", 2) == 0 ? 2 : 0;
    size_t length = get_length_of_yaml_key_at_begin(line + indent + dash);

    if (length > 0)
        store_text_of_key(at, indent + dash, line + indent + dash, length);
    return length > 0;
}

static void read_comment_line_or_commented_key(reading *at, const char *comment)
{
    char line[LINE_SIZE + 2];

    snprintf(line, sizeof line, "  %s", comment);
    bool is_key = isspace((unsigned char)comment[0]) || strncmp(comment, "- ", 2) == 0;
    if (at->is_pool && is_key) { /* the text of a pool's key stands behind the key */
        at->pending[0] = '\0';
        if (read_line_if_key_stands_in_it(at, line))
            return;
    }
    append_piece_of_comment(at->pending, comment);
    at->last_indent = SIZE_MAX;
}

json_t *config_texts_read_comments(const char *yaml)
{
    reading at = {.texts = json_object(), .last_indent = SIZE_MAX};
    char line[LINE_SIZE];

    if (at.texts == NULL)
        return NULL;
    while (*yaml != '\0') {
        yaml = copy_line_and_go_to_next(yaml, line);
        const char *text = line + strspn(line, " ");
        if (strncmp(text, "# ", 2) == 0) {
            read_comment_line_or_commented_key(&at, text + 2);
        } else if (!read_line_if_key_stands_in_it(&at, line)) {
            at.pending[0] = '\0';
            at.last_indent = SIZE_MAX;
        }
    }
    return at.texts;
}

const char *config_texts_get_text_of_key(const json_t *texts, const char *list, const char *key)
{
    char path[PATH_SIZE];

    snprintf(path, sizeof path, "%s%s%s", list, list[0] != '\0' ? "." : "", key);
    const char *text = json_string_value(json_object_get(texts, path));
    if (text == NULL && list[0] != '\0' && strncmp(key, "channel.", 8) == 0)
        text = json_string_value(json_object_get(texts, key));
    return text != NULL ? text : "";
}
