/* This file makes libcyaml's schema from the table of keys, and loads a skeleton (schema.h) by it.
 *
 * Each section lies at offset 0 of the same structure, domi_yaml_placed, whose `node` is indexed by
 * row of the table. So the nesting exists in the schema only. */
#include "config/schema.h"

#include "config/explain.h"
#include "config/memory.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The skeleton is the text that libcyaml reads. */
struct skeleton {
    char *text;
    size_t size, capacity;
};

/* Returns the next free field of a mapping; NULL if it is full. One field behind the last stays
 * empty, because it marks the end. */
static cyaml_schema_field_t *add_field(struct domi_yaml_schema *schema, uint32_t mapping)
{
    for (size_t i = 0; i < DOMI_YAML_FIELDS_MAX; i++)
        if (schema->fields[mapping][i].key == NULL)
            return &schema->fields[mapping][i];
    return NULL;
}

/* Hand out the number of the mapping that is section `name` (not NUL-terminated) of `mapping`; make
 * it if it does not exist. */
static int enter_section(struct domi_yaml_schema *schema, uint32_t mapping, const char *name,
                         size_t length, uint32_t *ret_section)
{
    const cyaml_schema_field_t *have = schema->fields[mapping];

    for (; have->key != NULL; have++) {
        if (strncmp(have->key, name, length) != 0 || have->key[length] != '\0')
            continue;
        *ret_section = 0;
        while (schema->fields[*ret_section] != have->value.mapping.fields)
            (*ret_section)++;
        return 0;
    }

    cyaml_schema_field_t *field = add_field(schema, mapping);
    if (field == NULL || schema->mappings == DOMI_YAML_MAPPINGS_MAX ||
        length >= DOMI_YAML_NAME_SIZE)
        return -E2BIG;
    *ret_section = schema->mappings++;
    memcpy(schema->names[*ret_section], name, length);
    field->key = schema->names[*ret_section];
    field->value.type = CYAML_MAPPING;
    field->value.flags = CYAML_FLAG_OPTIONAL;
    field->value.data_size = sizeof(struct domi_yaml_placed);
    field->value.mapping.fields = schema->fields[*ret_section];
    return 0;
}

static int add_key(struct domi_yaml_schema *schema, uint32_t mapping, const char *path,
                   uint32_t row)
{
    const char *dot;
    int result = 0;

    for (; result == 0 && (dot = strchr(path, '.')) != NULL; path = dot + 1)
        result = enter_section(schema, mapping, path, (size_t)(dot - path), &mapping);

    cyaml_schema_field_t *field = result == 0 ? add_field(schema, mapping) : NULL;
    if (field == NULL)
        return -E2BIG;
    field->key = path;
    field->data_offset = row * (uint32_t)sizeof(uint32_t);
    field->value.type = CYAML_UINT;
    field->value.flags = CYAML_FLAG_OPTIONAL;
    field->value.data_size = sizeof(uint32_t);
    return 0;
}

static int add_listeners(struct domi_yaml_schema *schema, uint32_t entry)
{
    cyaml_schema_field_t *field = add_field(schema, 0);

    if (field == NULL)
        return -E2BIG;
    schema->listener.type = CYAML_MAPPING;
    schema->listener.data_size = sizeof(struct domi_yaml_placed_listener);
    schema->listener.mapping.fields = schema->fields[entry];
    field->key = DOMI_YAML_LISTENERS;
    field->data_offset = (uint32_t)offsetof(struct domi_yaml_placed, listeners);
    field->count_offset = (uint32_t)offsetof(struct domi_yaml_placed, listener_count);
    field->count_size = sizeof(uint32_t);
    field->value.type = CYAML_SEQUENCE;
    field->value.flags = (enum cyaml_flag)(CYAML_FLAG_OPTIONAL | CYAML_FLAG_POINTER);
    field->value.data_size = sizeof(struct domi_yaml_placed_listener);
    field->value.sequence.entry = &schema->listener;
    field->value.sequence.max = DOMUS_LISTENERS_MAX;
    return 0;
}

int domi_yaml_schema_init(struct domi_yaml_schema *schema)
{
    const domus_config_key *key, *before = NULL;
    const uint32_t entry = 1; /* the number of a listener's mapping; 0 is the root's */
    uint32_t row;
    int result = 0;

    *schema = (struct domi_yaml_schema){.mappings = 2};
    schema->root.type = CYAML_MAPPING;
    schema->root.flags = CYAML_FLAG_POINTER;
    schema->root.data_size = sizeof(struct domi_yaml_placed);
    schema->root.mapping.fields = schema->fields[0];
    for (row = 0; result == 0 && (key = domus_config_key_get(row)) != NULL; before = key, row++) {
        if (row == DOMI_YAML_KEYS_MAX)
            return -E2BIG;
        if (before == NULL || strcmp(before->path, key->path) != 0)
            result = add_key(schema, 0, key->path, row);
    }
    for (row = 0; result == 0 && (key = domus_config_listener_key_get(row)) != NULL; row++)
        result =
            row < DOMI_YAML_LISTENER_KEYS_MAX ? add_key(schema, entry, key->path, row) : -E2BIG;
    return result < 0 ? result : add_listeners(schema, entry);
}

static int write_text(struct skeleton *skeleton, const char *text)
{
    size_t length = strlen(text);
    int result = domi_yaml_memory_grow((void **)&skeleton->text, &skeleton->capacity,
                                       skeleton->size + length, 1);

    if (result < 0)
        return result;
    memcpy(skeleton->text + skeleton->size, text, length);
    skeleton->size += length;
    return 0;
}

/* Write a key between quotes. Each character that would need an escape is written as '?', because
 * no key of the table holds one. */
static int write_key(struct skeleton *skeleton, const char *key)
{
    size_t start = skeleton->size + 1;
    int result = write_text(skeleton, "\"");

    if (result == 0)
        result = write_text(skeleton, key);
    for (size_t i = start; result == 0 && i < skeleton->size; i++)
        if (skeleton->text[i] < ' ' || skeleton->text[i] > '~' || strchr("\"\\", skeleton->text[i]))
            skeleton->text[i] = '?';
    return result < 0 ? result : write_text(skeleton, "\": ");
}

static int write_node(struct skeleton *skeleton, const struct domi_yaml_tree *tree,
                      uint32_t number);

/* NOLINTNEXTLINE(misc-no-recursion): as write_node() */
static int write_children(struct skeleton *skeleton, const struct domi_yaml_tree *tree,
                          uint32_t number)
{
    const struct domi_yaml_node *nodes = tree->nodes;
    bool first = true;
    int result = 0;

    for (uint32_t child = nodes[number].first; result == 0 && child != 0;
         child = nodes[child].next) {
        if (nodes[child].dropped)
            continue;
        if (!first)
            result = write_text(skeleton, ", ");
        first = false;
        if (result == 0 && nodes[number].kind == DOMI_YAML_MAPPING)
            result = write_key(skeleton, domi_yaml_tree_key(tree, child));
        if (result == 0)
            result = write_node(skeleton, tree, child);
    }
    return result;
}

/* Write a node and all below it; a scalar is written as its number. The recursion is as deep as the
 * tree, at most DOMI_YAML_DEPTH_MAX. NOLINTNEXTLINE(misc-no-recursion) */
static int write_node(struct skeleton *skeleton, const struct domi_yaml_tree *tree, uint32_t number)
{
    bool mapping = tree->nodes[number].kind == DOMI_YAML_MAPPING;
    char text[16];

    if (tree->nodes[number].kind == DOMI_YAML_SCALAR) {
        snprintf(text, sizeof text, "%u", number);
        return write_text(skeleton, text);
    }

    int result = write_text(skeleton, mapping ? "{" : "[");
    if (result == 0)
        result = write_children(skeleton, tree, number);
    return result < 0 ? result : write_text(skeleton, mapping ? "}" : "]");
}

static cyaml_config_t libcyaml_config(void)
{
    return (cyaml_config_t){.mem_fn = domi_yaml_memory_realloc, .flags = CYAML_CFG_NO_ALIAS};
}

/* Let libcyaml load the tree's skeleton. Returns 0; a positive error of libcyaml; -ENOMEM for each
 * error that means that memory ran out. */
static int load(const struct domi_yaml_schema *schema, const struct domi_yaml_tree *tree,
                struct domi_yaml_placed **ret_placed)
{
    cyaml_config_t config = libcyaml_config();
    struct skeleton skeleton = {0};
    cyaml_data_t *data = NULL;
    int result = write_node(&skeleton, tree, 0);

    if (result == 0)
        result = (int)cyaml_load_data((const uint8_t *)skeleton.text, skeleton.size, &config,
                                      &schema->root, &data, NULL);
    domi_yaml_memory_realloc(NULL, skeleton.text, 0);
    if (result == CYAML_OK)
        *ret_placed = data;
    if (result == CYAML_ERR_OOM || result == CYAML_ERR_LIBYAML_PARSER_INIT ||
        /* the skeleton is well-formed, so libyaml failed because memory ran out */
        result == CYAML_ERR_LIBYAML_PARSER)
        return -ENOMEM;
    return result;
}

int domi_yaml_schema_place(const struct domi_yaml_schema *schema, struct domi_yaml_tree *tree,
                           struct domi_yaml_issues *issues, struct domi_yaml_placed **ret_placed)
{
    int result;

    if (tree->count == 0 || tree->nodes[0].dropped)
        return 0; /* the file is empty, or nothing in it could be read */
    result = load(schema, tree, ret_placed);
    if (result > 0) {
        domi_yaml_explain(schema, tree, issues);
        if (tree->nodes[0].dropped)
            return 0;
        result = load(schema, tree, ret_placed);
    }
    if (result > 0) { /* the walk found no reason, so the message is libcyaml's */
        domi_yaml_issues_add(issues, tree->nodes[0].at, "", "%s",
                             cyaml_strerror((cyaml_err_t)result));
        return 0;
    }
    return result;
}

void domi_yaml_schema_release(const struct domi_yaml_schema *schema,
                              struct domi_yaml_placed *placed)
{
    cyaml_config_t config = libcyaml_config();

    if (placed != NULL)
        cyaml_free(&config, &schema->root, placed, 0);
}
