/* This file turns the events of libyaml into a tree.
 *
 * It has to know three things of libyaml. After an error the parser keeps returning events, so the
 * first failure ends the loop. An error of libyaml's reader (encoding, control characters) has a
 * byte offset but no line. A scalar may hold a NUL ("5\0"), where C would see its end. */
#include "config/passes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

enum { GO_ON, STOP };

struct pass {
    struct domi_yaml_tree *tree;     /* tree that gets the nodes of the document */
    struct domi_yaml_issues *issues; /* list of issues that gets the faults */
    uint32_t file; /* index of the source's name in the reader of the configuration */
    /* numbers of the mappings and sequences that have not ended yet, outermost first */
    uint32_t open[DOMI_YAML_DEPTH_MAX];
    uint32_t depth; /* number of entries of `open` in use */
    /* number of YAML documents that have begun in the source; more than one is a fault */
    uint32_t documents;
    bool keyed; /* whether a key was read, so that its value comes next */
    /* whether the mapping had the key that was read already, so that it is a duplicate */
    bool duplicate;
    struct domi_yaml_origin key_at;      /* place in the source of the key that was read */
    char key[DOMI_YAML_KEY_MAX + 1];     /* text of the key that was read */
    char value[DOMI_YAML_VALUE_MAX + 1]; /* text of the value that is read */
};

/* Returns the place in the source that libyaml's mark names. */
static struct domi_yaml_origin get_origin_of_mark(const struct pass *pass, const yaml_mark_t *mark)
{
    return (struct domi_yaml_origin){
        .file = pass->file, .line = (uint32_t)mark->line + 1, .column = (uint32_t)mark->column + 1};
}

/* Write the path of what the parser is reading: the path of the innermost open node, and the key
 * that was read if its value is still to come. */
static void write_current_path(const struct pass *pass, char path[DOMI_YAML_PATH_SIZE])
{
    path[0] = '\0';
    if (pass->depth == 0)
        return;
    domi_yaml_tree_write_path(pass->tree, pass->open[pass->depth - 1], path);
    if (pass->keyed) {
        size_t used = strlen(path);
        snprintf(path + used, DOMI_YAML_PATH_SIZE - used, "%s%.*s", used > 0 ? "." : "",
                 domi_yaml_count_bytes_of_text_to_show(pass->key), pass->key);
    }
}

static int report_issue_at_current_path(struct pass *pass, const yaml_mark_t *mark,
                                        const char *message)
{
    char path[DOMI_YAML_PATH_SIZE];

    write_current_path(pass, path);
    domi_yaml_issues_add_issue(pass->issues, get_origin_of_mark(pass, mark), path, "%s", message);
    return STOP;
}

/* Copy a scalar of libyaml and end it with a NUL. Returns false if it is too long. A NUL within it
 * becomes '?', which no key has and no value may hold. */
static bool copy_scalar_of_libyaml(char *into, size_t length_max, const yaml_event_t *event)
{
    size_t length = event->data.scalar.length;

    if (length > length_max)
        return false;
    for (size_t i = 0; i < length; i++)
        into[i] = (char)(event->data.scalar.value[i] == 0 ? '?' : event->data.scalar.value[i]);
    into[length] = '\0';
    return true;
}

static int read_key_from_libyaml_event(struct pass *pass, const yaml_event_t *event)
{
    char path[DOMI_YAML_PATH_SIZE];
    uint32_t parent = pass->open[pass->depth - 1];

    if (event->type != YAML_SCALAR_EVENT)
        return report_issue_at_current_path(pass, &event->start_mark,
                                            "a key must be a single word");
    if (!copy_scalar_of_libyaml(pass->key, DOMI_YAML_KEY_MAX, event))
        return report_issue_at_current_path(pass, &event->start_mark,
                                            "a key is longer than 128 bytes");
    pass->keyed = true;
    pass->key_at = get_origin_of_mark(pass, &event->start_mark);

    uint32_t twin = domi_yaml_tree_find_child(pass->tree, parent, pass->key);
    pass->duplicate = twin != 0;
    if (twin != 0) {
        write_current_path(pass, path);
        domi_yaml_issues_add_issue(pass->issues, pass->key_at, path,
                                   "duplicate key (first in line %u)",
                                   pass->tree->nodes[twin].key_at.line);
    }
    return GO_ON;
}

/* Add issues for an anchor, an alias or a tag. With them a configuration could mean something else
 * than it shows. */
static void refuse_anchor_and_tag_of_node(struct pass *pass, const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;

    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    }
    if (event->type == YAML_ALIAS_EVENT || anchor != NULL)
        report_issue_at_current_path(pass, &event->start_mark,
                                     "anchors and aliases are not allowed");
    if (tag != NULL)
        report_issue_at_current_path(pass, &event->start_mark, "tags are not allowed");
}

static enum domi_yaml_node_kind get_kind_of_event(const yaml_event_t *event)
{
    return event->type == YAML_MAPPING_START_EVENT    ? DOMI_YAML_MAPPING
           : event->type == YAML_SEQUENCE_START_EVENT ? DOMI_YAML_SEQUENCE
                                                      : DOMI_YAML_SCALAR;
}

static int read_node_from_libyaml_event(struct pass *pass, const yaml_event_t *event)
{
    uint32_t parent = pass->depth > 0 ? pass->open[pass->depth - 1] : 0, number;
    struct domi_yaml_node node = {.kind = get_kind_of_event(event),
                                  .at = get_origin_of_mark(pass, &event->start_mark)};
    const char *value = NULL;

    node.dropped = pass->duplicate || event->type == YAML_ALIAS_EVENT;
    node.key_at = pass->keyed ? pass->key_at : node.at;
    if (event->type == YAML_SCALAR_EVENT) {
        value = pass->value;
        if (!copy_scalar_of_libyaml(pass->value, DOMI_YAML_VALUE_MAX, event)) {
            report_issue_at_current_path(pass, &event->start_mark,
                                         "a value is longer than 4096 bytes");
            node.dropped = true;
            value = NULL;
        }
    } else if (node.kind != DOMI_YAML_SCALAR && pass->depth == DOMI_YAML_DEPTH_MAX) {
        return report_issue_at_current_path(pass, &event->start_mark,
                                            "nested deeper than 16 levels");
    }

    int result = domi_yaml_tree_add_node(pass->tree, parent, &node, pass->keyed ? pass->key : "",
                                         value, &number);
    if (result == -E2BIG)
        return report_issue_at_current_path(pass, &event->start_mark,
                                            "the file holds more than 4096 values");
    if (result < 0)
        return result;
    pass->keyed = pass->duplicate = false;
    if (node.kind != DOMI_YAML_SCALAR)
        pass->open[pass->depth++] = number;
    return GO_ON;
}

/* Handle an event of libyaml. Returns GO_ON; STOP, and then the rest of the text is not read;
 * -ENOMEM. */
static int add_libyaml_event_to_tree(struct pass *pass, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (pass->documents++ > 0)
            return report_issue_at_current_path(pass, &event->start_mark,
                                                "a second document; a file holds one");
        return GO_ON;
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        pass->depth--;
        return GO_ON;
    case YAML_SCALAR_EVENT:
    case YAML_ALIAS_EVENT:
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        refuse_anchor_and_tag_of_node(pass, event);
        if (pass->depth > 0 && !pass->keyed &&
            pass->tree->nodes[pass->open[pass->depth - 1]].kind == DOMI_YAML_MAPPING)
            return read_key_from_libyaml_event(pass, event);
        return read_node_from_libyaml_event(pass, event);
    default:
        return GO_ON;
    }
}

/* Returns the line and column of a byte of the source, for errors that have only an offset. */
static yaml_mark_t find_line_and_column_of_byte(const char *text, size_t size, size_t offset)
{
    yaml_mark_t mark = {0};

    for (size_t i = 0; i < size && i < offset; i++) {
        if (text[i] == '\n') {
            mark.line++;
            mark.column = 0;
        } else if (((unsigned char)text[i] & 0xc0) != 0x80) {
            mark.column++;
        }
    }
    return mark;
}

static int report_parser_error(struct pass *pass, const yaml_parser_t *parser, const char *text,
                               size_t size)
{
    yaml_mark_t mark = parser->problem_mark;

    if (parser->error == YAML_MEMORY_ERROR)
        return -ENOMEM;
    if (parser->error == YAML_READER_ERROR)
        mark = find_line_and_column_of_byte(text, size, parser->problem_offset);
    domi_yaml_issues_add_issue(
        pass->issues, get_origin_of_mark(pass, &mark), "", "not YAML: %s%s%s",
        parser->problem != NULL ? parser->problem : "cannot be read",
        parser->context != NULL ? " " : "", parser->context != NULL ? parser->context : "");
    return STOP;
}

static int read_events(struct pass *pass, yaml_parser_t *parser, const char *text, size_t size)
{
    yaml_event_t event;
    int result = GO_ON;

    for (bool ended = false; result == GO_ON && !ended;) {
        if (!yaml_parser_parse(parser, &event))
            return report_parser_error(pass, parser, text, size);
        ended = event.type == YAML_STREAM_END_EVENT;
        result = add_libyaml_event_to_tree(pass, &event);
        yaml_event_delete(&event);
    }
    return result;
}

int domi_yaml_read_text_into_tree(struct domi_yaml_tree *tree, const char *text, size_t size,
                                  uint32_t file, struct domi_yaml_issues *issues)
{
    struct pass pass = {.tree = tree, .issues = issues, .file = file};
    yaml_parser_t parser;

    if (!yaml_parser_initialize(&parser))
        return -ENOMEM;
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);

    int result = read_events(&pass, &parser, text, size);
    yaml_parser_delete(&parser);
    tree->cut = result == STOP;
    return result < 0 ? result : 0;
}
