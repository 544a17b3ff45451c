/* Tells from which sources the values of a configuration come (origins.h). */
#include "config/origins.h"

#include <stdio.h>
#include <string.h>

#define ORIGIN_SIZE 4160 /* bytes of an origin "FILE:LINE", with the NUL; a longer name is cut */

/* The parameters of domi_origins_show_configuration(), for the functions below: the configuration
 * and the visitor. */
struct showing {
    const domi_effective *effective;
    domus_config_visit *visit;
    void *context;
    char origin[ORIGIN_SIZE];
};

static const char *write_origin_as_text(struct showing *showing, const domi_origins *from,
                                        struct domi_yaml_origin at)
{
    if (at.line > 0)
        snprintf(showing->origin, ORIGIN_SIZE, "%s:%u", from->names[at.file], at.line);
    else
        snprintf(showing->origin, ORIGIN_SIZE, "%s", from->names[at.file]);
    return showing->origin;
}

/* Returns whether a value that a reader has read is in use: the value in use equals it, or it is a
 * word, such as "auto", for which the library has chosen a value. */
static bool is_value_in_use(const domus_config_key *key, const void *read, const void *used)
{
    char text[DOMUS_CONFIG_VALUE_SIZE];

    if (!domi_value_is_different(key, read, used))
        return true;
    domus_config_key_write(key, read, text, sizeof text);
    return key->special != NULL && strcmp(text, key->special) == 0;
}

/* The list (listeners or pools) to whose elements a key belongs, with its table of keys. */
struct list {
    const char *name;
    const domus_config_key *(*keys)(size_t row);
    size_t index; /* the index of the key in the table of keys of the list's elements */
};

static bool find_config_list_with_key(const domus_config_key *key, struct list *ret_list)
{
    static const struct list lists[] = {
        {DOMI_YAML_LISTENERS, domus_config_listener_key_get, 0},
        {DOMI_YAML_POOLS, domus_config_pool_key_get, 0},
    };

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct list list = lists[i];
        const domus_config_key *row;
        for (; (row = list.keys(list.index)) != NULL; list.index++) {
            if (row != key)
                continue;
            *ret_list = list;
            return true;
        }
    }
    return false;
}

/* Find the origin that a reader knows for a value of a list's element. Returns false if the reader
 * has no element of the same name with this value. */
static bool find_origin_of_value_in_list_element(const domi_effective *effective,
                                                 const domi_origins *from,
                                                 const domus_config_key *key, size_t element,
                                                 struct domi_yaml_origin *ret_at)
{
    const struct domi_yaml_values *values = from->values;
    struct list list;

    if (!find_config_list_with_key(key, &list))
        return false;
    bool is_pool = list.keys == domus_config_pool_key_get;
    const void *now = is_pool ? (const void *)&effective->config->pools[element]
                              : (const void *)&effective->config->listeners[element];
    const char *name = is_pool ? effective->config->pools[element].name
                               : effective->config->listeners[element].name;
    int found = domi_yaml_values_find_element(values, list.name, name, strlen(name));
    if (found < 0)
        return false;
    const void *read =
        is_pool ? (const void *)&values->pools[found] : (const void *)&values->listeners[found];
    if (!is_value_in_use(key, read, now))
        return false;
    *ret_at = domi_yaml_values_get_element_origin(values, list.name, (size_t)found, list.index);
    return true;
}

static bool find_origin_in_reader(const domi_effective *effective, const domi_origins *from,
                                  const domus_config_key *key, size_t element,
                                  struct domi_yaml_origin *ret_at)
{
    if (element != SIZE_MAX)
        return find_origin_of_value_in_list_element(effective, from, key, element, ret_at);
    if (!is_value_in_use(key, &from->values->config, effective->config))
        return false;
    *ret_at = domi_yaml_values_get_key_origin(from->values, key);
    return true;
}

static const char *find_origin_in_newest_reader(void *showing_, const domus_config_key *key,
                                                size_t element)
{
    struct showing *showing = showing_;
    const domi_effective *effective = showing->effective;
    struct domi_yaml_origin at;

    if (find_origin_in_reader(effective, effective->newest, key, element, &at))
        return write_origin_as_text(showing, effective->newest, at);
    if (find_origin_in_reader(effective, effective->first, key, element, &at))
        return write_origin_as_text(showing, effective->first, at);
    return "program";
}

static void forward_shown_key_to_visit(void *showing_, const domus_config_shown *shown)
{
    const struct showing *showing = showing_;

    showing->visit(showing->context, shown);
}

static void show_section_of_program(struct showing *showing)
{
    const domi_origins *from = showing->effective->newest;
    const struct domi_section_values *own = &from->values->own;
    char path[DOMI_YAML_PATH_SIZE], value[DOMUS_CONFIG_VALUE_SIZE];

    if (own->section == NULL)
        return;
    for (uint32_t row = 0; own->section->keys[row].path != NULL; row++) {
        snprintf(path, sizeof path, "%s.%s", own->section->name, own->section->keys[row].path);
        domi_section_write_value(own, row, value, sizeof value);
        const char *origin = write_origin_as_text(showing, from, own->origins[row]);
        showing->visit(showing->context, &(domus_config_shown){path, value, origin});
    }
}

void domi_origins_show_configuration(const void *effective, domus_config_visit *visit,
                                     void *context)
{
    struct showing showing = {.effective = effective, .visit = visit, .context = context};

    domus_config_show(showing.effective->config, find_origin_in_newest_reader,
                      forward_shown_key_to_visit, &showing);
    show_section_of_program(&showing);
}
