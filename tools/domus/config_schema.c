/* domus config schema: JSON Schema of a program's configuration, for editors and validators.
 *
 * The schema uses draft 7, which most editors know, and no word that later drafts interpret
 * differently. Each section is an object that refuses unknown keys. */
#include "tools/domus/config.h"
#include "tools/domus/config_parts.h"
#include "tools/domus/say.h"

#include <jansson.h>

#include <stdio.h>
#include <string.h>

#define DRAFT     "http://json-schema.org/draft-07/schema#"
#define PATH_SIZE 256

/* The schema of a configuration that is being made. */
typedef struct making {
    const json_t *keys;
    json_t *texts;
    json_t *root;
} making;

static json_t *make_section_of_schema(const char *text)
{
    json_t *section =
        json_pack("{s:s, s:b, s:{}}", "type", "object", "additionalProperties", 0, "properties");

    if (text[0] != '\0')
        (void)json_object_set_new(section, "description", json_string(text));
    return section;
}

/* Returns the section `name` in the schema of an outer section; it is made if it does not exist. */
static json_t *get_or_make_section(const making *all, json_t *section, const char *list,
                                   const char *path, size_t length)
{
    char whole[PATH_SIZE];
    json_t *properties = json_object_get(section, "properties");

    snprintf(whole, sizeof whole, "%.*s", (int)length, path);
    const char *dot = strrchr(whole, '.');
    const char *name = dot != NULL ? dot + 1 : whole;
    if (json_object_get(properties, name) == NULL)
        (void)json_object_set_new(
            properties, name,
            make_section_of_schema(config_texts_get_text_of_key(all->texts, list, whole)));
    return json_object_get(properties, name);
}

/* Mark a key of a section as required in the schema. */
static void mark_key_as_required(json_t *section, const char *name)
{
    json_t *all = json_object_get(section, "required");

    for (size_t i = 0; i < json_array_size(all); i++) {
        if (strcmp(json_string_value(json_array_get(all, i)), name) == 0)
            return;
    }
    if (all == NULL)
        (void)json_object_set_new(section, "required", all = json_array());
    (void)json_array_append_new(all, json_string(name));
}

/* Returns whether users must set a key, because it has no default. */
static bool must_users_set_key(const json_t *key)
{
    return json_object_get(key, "default") == NULL && !config_key_is_member_true(key, "inherits");
}

/* Describe a key in the schema: what it does, and when a new value takes effect. */
static void describe_key_in_schema(const making *all, const char *list, const json_t *key,
                                   json_t *schema)
{
    const char *text =
        config_texts_get_text_of_key(all->texts, list, config_key_get_text_of_member(key, "key"));
    json_t *preset = config_kinds_make_json_of_default(key);

    (void)json_object_set_new(
        schema, "description",
        json_sprintf("%s%s%s", text, text[0] != '\0' ? " " : "",
                     config_key_is_member_true(key, "live") ? "(live)" : "(counts at a start)"));
    if (preset != NULL)
        (void)json_object_set_new(schema, "default", preset);
}

/* Add a key to the schema, in its section below `section`. */
static void add_key_to_schema(const making *all, json_t *section, const char *list,
                              const json_t *key)
{
    const char *path = config_key_get_text_of_member(key, "key"), *name = path, *dot;
    json_t *schema =
        config_kinds_make_schema(key, config_keys_get_second_row_of_key(all->keys, key));

    for (; (dot = strchr(name, '.')) != NULL; name = dot + 1) {
        json_t *within = get_or_make_section(all, section, list, path, (size_t)(dot - path));
        if (must_users_set_key(key)) {
            char part[PATH_SIZE];
            snprintf(part, sizeof part, "%.*s", (int)(dot - name), name);
            mark_key_as_required(section, part);
        }
        section = within;
    }
    if (must_users_set_key(key))
        mark_key_as_required(section, name);
    describe_key_in_schema(all, list, key, schema);
    /* the second row of a key is skipped, because the first row has described both forms */
    if (json_object_get(json_object_get(section, "properties"), name) == NULL)
        (void)json_object_set(json_object_get(section, "properties"), name, schema);
    json_decref(schema);
}

static void add_keys_of_table(const making *all, json_t *section, const char *table,
                              const char *list)
{
    const json_t *rows = json_object_get(all->keys, table);

    for (size_t i = 0; i < json_array_size(rows); i++)
        add_key_to_schema(all, section, list, json_array_get(rows, i));
}

/* Add to the schema a list whose elements have the keys of a table. */
static void add_list_to_schema(const making *all, const char *list, const char *most)
{
    json_t *element = make_section_of_schema("");
    const json_t *bound = json_object_get(all->keys, most);

    add_keys_of_table(all, element, list, list);
    (void)json_object_set_new(json_object_get(all->root, "properties"), list,
                              json_pack("{s:s, s:s, s:I, s:o}", "type", "array", "description",
                                        config_texts_get_text_of_key(all->texts, "", list),
                                        "maxItems", (json_int_t)json_integer_value(bound), "items",
                                        element));
}

/* Make the schema of a configuration with all keys. An empty file is valid unless a key is
 * required. */
static void make_schema_of_all_keys(making *all)
{
    const char *program = config_key_get_text_of_member(all->keys, "program");

    all->root = make_section_of_schema("");
    (void)json_object_set_new(all->root, "$schema", json_string(DRAFT));
    (void)json_object_set_new(
        all->root, "title",
        json_sprintf("The configuration of %s, as domus " DOMUS_TOOL_VERSION " reads it", program));
    add_keys_of_table(all, all->root, "keys", "");
    add_list_to_schema(all, "listeners", "listeners_max");
    add_list_to_schema(all, "pools", "pools_max");
    if (json_object_get(all->root, "required") == NULL)
        (void)json_object_set_new(all->root, "type", json_pack("[s,s]", "object", "null"));
}

int config_print_schema(const config_words *given)
{
    json_t *keys = config_ask_program_for_key_table(given->exec);
    making all = {.keys = keys};
    int status = STATUS_FAILED;

    if (keys == NULL)
        return STATUS_FAILED;
    all.texts = config_texts_read_comments((const char *)config_yaml);
    if (all.texts != NULL) {
        make_schema_of_all_keys(&all);
        status = json_dumpf(all.root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) == 0
                     ? STATUS_OK
                     : STATUS_FAILED;
        (void)putchar('\n');
    }
    json_decref(all.root);
    json_decref(all.texts);
    json_decref(keys);
    return status;
}
