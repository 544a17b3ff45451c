/* Finds keys in a program's answer to --tell keys (config_parts.h). */
#include "tools/domus/config_parts.h"

#include "tools/domus/say.h"

#include <string.h>

static const char *const lists[] = {"listeners", "pools"};
#define LISTS (sizeof lists / sizeof lists[0])

json_t *config_ask_program_for_key_table(const char *exec)
{
    json_t *keys = config_run_program_for_answer(&(config_question){.exec = exec, .tell = "keys"});

    if (keys == NULL || json_is_array(json_object_get(keys, "keys")))
        return keys;
    say_print_error("the answer to --tell keys has no keys");
    json_decref(keys);
    return NULL;
}

const char *config_key_get_text_of_member(const json_t *key, const char *name)
{
    const char *text = json_string_value(json_object_get(key, name));

    return text != NULL ? text : "";
}

bool config_key_is_member_true(const json_t *key, const char *name)
{
    return json_is_true(json_object_get(key, name));
}

static const json_t *find_key_in_table(const json_t *keys, const char *table, const char *path)
{
    const json_t *rows = json_object_get(keys, table);

    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *key = json_array_get(rows, i);
        if (strcmp(config_key_get_text_of_member(key, "key"), path) == 0)
            return key;
    }
    return NULL;
}

/* Returns the list (listeners or pools) that contains the key of a path, and the path behind the
 * list's name; NULL if no list contains it. */
static const char *find_list_of_path(const char *path, const char **ret_rest)
{
    for (size_t i = 0; i < LISTS; i++) {
        size_t length = strlen(lists[i]);
        if (strncmp(path, lists[i], length) != 0 || (path[length] != '.' && path[length] != '['))
            continue;
        *ret_rest = path + length;
        return lists[i];
    }
    return NULL;
}

/* Returns the text behind the next dot of a path; "" if there is no dot. */
static const char *get_text_behind_dot(const char *path)
{
    const char *dot = strchr(path, '.');

    return dot != NULL ? dot + 1 : "";
}

const json_t *config_keys_find_key_of_value_path(const json_t *keys, const char *path)
{
    const char *rest;
    const char *list = find_list_of_path(path, &rest);

    if (list == NULL)
        return find_key_in_table(keys, "keys", path);
    return find_key_in_table(keys, list, get_text_behind_dot(rest + 1));
}

const json_t *config_keys_find_key_by_name(const json_t *keys, const char *path)
{
    const char *rest;
    const char *list = find_list_of_path(path, &rest);
    const json_t *key =
        list != NULL ? find_key_in_table(keys, list, get_text_behind_dot(rest)) : NULL;

    return key != NULL ? key : config_keys_find_key_of_value_path(keys, path);
}

const json_t *config_keys_get_second_row_of_key(const json_t *keys, const json_t *key)
{
    const json_t *rows = json_object_get(keys, "keys");

    for (size_t i = 0; i + 1 < json_array_size(rows); i++) {
        const json_t *next = json_array_get(rows, i + 1);
        if (json_array_get(rows, i) == key &&
            strcmp(config_key_get_text_of_member(key, "key"),
                   config_key_get_text_of_member(next, "key")) == 0)
            return next;
    }
    return NULL;
}
