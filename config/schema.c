/* Makes libcyaml's schema of a configuration from the table of keys.
 *
 * Each section lies at offset 0 of the same structure, domi_yaml_placed, whose `node` is indexed by
 * row of the table. So the nesting exists in the schema only. */
#include "config/schema.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* Returns the next free field of a mapping of the schema; NULL if it is full. One field behind the
 * last stays empty, because it marks the end. */
static cyaml_schema_field_t *get_next_field_of_mapping(struct domi_yaml_schema *schema,
                                                       uint32_t mapping)
{
    for (size_t i = 0; i < DOMI_YAML_FIELDS_MAX; i++)
        if (schema->fields[mapping][i].key == NULL)
            return &schema->fields[mapping][i];
    return NULL;
}

/* Hand out the number of the schema's mapping that is section `name` (not NUL-terminated) of
 * `mapping`; make it if it does not exist. */
static int find_or_add_section(struct domi_yaml_schema *schema, uint32_t mapping, const char *name,
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

    cyaml_schema_field_t *field = get_next_field_of_mapping(schema, mapping);
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

static int add_key_to_schema(struct domi_yaml_schema *schema, uint32_t mapping, const char *path,
                             uint32_t row, cyaml_schema_field_t **ret_field)
{
    const char *dot;
    int result = 0;

    for (; result == 0 && (dot = strchr(path, '.')) != NULL; path = dot + 1)
        result = find_or_add_section(schema, mapping, path, (size_t)(dot - path), &mapping);

    cyaml_schema_field_t *field = result == 0 ? get_next_field_of_mapping(schema, mapping) : NULL;
    if (field == NULL)
        return -E2BIG;
    field->key = path;
    field->data_offset = row * (uint32_t)sizeof(uint32_t);
    field->value.type = CYAML_UINT;
    field->value.flags = CYAML_FLAG_OPTIONAL;
    field->value.data_size = sizeof(uint32_t);
    *ret_field = field;
    return 0;
}

/* Let a field of the program's section be a list of texts; for each text the number of its node is
 * stored. */
static void make_field_list_of_texts(struct domi_yaml_schema *schema, cyaml_schema_field_t *field,
                                     uint32_t row, uint32_t list_max)
{
    const uint32_t offset = (uint32_t)(offsetof(struct domi_yaml_placed, lists) +
                                       row * sizeof(struct domi_yaml_placed_list));

    schema->element.type = CYAML_UINT;
    schema->element.data_size = sizeof(uint32_t);
    field->data_offset = offset + (uint32_t)offsetof(struct domi_yaml_placed_list, elements);
    field->count_offset = offset + (uint32_t)offsetof(struct domi_yaml_placed_list, count);
    field->count_size = sizeof(uint32_t);
    field->value.type = CYAML_SEQUENCE;
    field->value.flags = (enum cyaml_flag)(CYAML_FLAG_OPTIONAL | CYAML_FLAG_POINTER);
    field->value.sequence.entry = &schema->element;
    field->value.sequence.max = list_max;
}

static int add_section_of_program(struct domi_yaml_schema *schema, const domus_section *section)
{
    uint32_t mapping;
    int result = find_or_add_section(schema, 0, section->name, strlen(section->name), &mapping);

    for (uint32_t row = 0; result == 0 && section->keys[row].path != NULL; row++) {
        const domus_config_key *key = &section->keys[row];
        cyaml_schema_field_t *field;
        result = add_key_to_schema(schema, mapping, key->path, DOMI_YAML_KEYS_MAX + row, &field);
        if (result == 0 && key->list_max != 0)
            make_field_list_of_texts(schema, field, row, key->list_max);
    }
    return result;
}

/* Let the field `key` of the schema's root be a list of at most `most` elements, each of which the
 * mapping `entry` describes and which takes `size` bytes when placed. `offset` and `count_offset`
 * say where the list and its length are stored. */
static int add_list_of_mappings(struct domi_yaml_schema *schema, const char *key,
                                cyaml_schema_value_t *element, uint32_t entry, size_t size,
                                size_t offset, size_t count_offset, uint32_t most)
{
    cyaml_schema_field_t *field = get_next_field_of_mapping(schema, 0);

    if (field == NULL)
        return -E2BIG;
    element->type = CYAML_MAPPING;
    element->data_size = (uint32_t)size;
    element->mapping.fields = schema->fields[entry];
    field->key = key;
    field->data_offset = (uint32_t)offset;
    field->count_offset = (uint32_t)count_offset;
    field->count_size = sizeof(uint32_t);
    field->value.type = CYAML_SEQUENCE;
    field->value.flags = (enum cyaml_flag)(CYAML_FLAG_OPTIONAL | CYAML_FLAG_POINTER);
    field->value.data_size = (uint32_t)size;
    field->value.sequence.entry = element;
    field->value.sequence.max = most;
    return 0;
}

/* Add the keys of a table to the schema's mapping `entry`. */
static int add_keys_of_table(struct domi_yaml_schema *schema, uint32_t entry,
                             const domus_config_key *(*get)(size_t row), uint32_t rows_max)
{
    const domus_config_key *key;
    cyaml_schema_field_t *field;
    int result = 0;

    for (uint32_t row = 0; result == 0 && (key = get(row)) != NULL; row++)
        result = row < rows_max ? add_key_to_schema(schema, entry, key->path, row, &field) : -E2BIG;
    return result;
}

static int add_list_of_listeners(struct domi_yaml_schema *schema, uint32_t entry)
{
    int result = add_keys_of_table(schema, entry, domus_config_listener_key_get,
                                   DOMI_YAML_LISTENER_KEYS_MAX);

    if (result != 0)
        return result;
    return add_list_of_mappings(
        schema, DOMI_YAML_LISTENERS, &schema->listener, entry,
        sizeof(struct domi_yaml_placed_listener), offsetof(struct domi_yaml_placed, listeners),
        offsetof(struct domi_yaml_placed, listener_count), DOMUS_LISTENERS_MAX);
}

static int add_list_of_pools(struct domi_yaml_schema *schema, uint32_t entry)
{
    int result =
        add_keys_of_table(schema, entry, domus_config_pool_key_get, DOMI_YAML_POOL_KEYS_MAX);

    if (result != 0)
        return result;
    return add_list_of_mappings(schema, DOMI_YAML_POOLS, &schema->pool, entry,
                                sizeof(struct domi_yaml_placed_pool),
                                offsetof(struct domi_yaml_placed, pools),
                                offsetof(struct domi_yaml_placed, pool_count), DOMUS_POOLS_MAX);
}

int domi_yaml_schema_init(struct domi_yaml_schema *schema, const domus_section *section)
{
    const domus_config_key *key, *before = NULL;
    cyaml_schema_field_t *field;
    /* numbers of the schema's mappings for a listener and for a pool; 0 is that of the root */
    const uint32_t listener = 1, pool = 2;
    uint32_t row;
    int result = 0;

    *schema = (struct domi_yaml_schema){.mappings = 3};
    schema->root.type = CYAML_MAPPING;
    schema->root.flags = CYAML_FLAG_POINTER;
    schema->root.data_size = sizeof(struct domi_yaml_placed);
    schema->root.mapping.fields = schema->fields[0];
    for (row = 0; result == 0 && (key = domus_config_key_get(row)) != NULL; before = key, row++) {
        if (row == DOMI_YAML_KEYS_MAX)
            return -E2BIG;
        if (before == NULL || strcmp(before->path, key->path) != 0)
            result = add_key_to_schema(schema, 0, key->path, row, &field);
    }
    if (result == 0)
        result = add_list_of_listeners(schema, listener);
    if (result == 0)
        result = add_list_of_pools(schema, pool);
    return result == 0 && section != NULL ? add_section_of_program(schema, section) : result;
}
