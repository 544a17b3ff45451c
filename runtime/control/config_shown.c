/* Shows each key of a configuration with its value, by the tables of keys; <domus/config_shown.h>
 * is the manual. */
#include <domus/config_shown.h>

#include "base/key.h"
#include "runtime/control/config_keys.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* size in bytes of the full path of a key, as it is shown; a longer path is cut */
#define KEY_SIZE 256

void domus_config_key_write(const domus_config_key *key, const void *holder, char *text,
                            size_t size)
{
    char number[DOMI_KEY_TEXT_SIZE];
    const char *value = number;

    if (domi_key_is_text(key))
        value = domi_key_get_text(key, holder);
    else if (key->special != NULL && domi_key_get_number(key, holder) == key->special_number)
        value = key->special;
    else
        domi_key_print_number(key, domi_key_get_number(key, holder), number);
    if (value == NULL)
        value = "";
    snprintf(text, size, "%s", key->secret && value[0] != '\0' ? DOMUS_CONFIG_SECRET : value);
}

/* The arguments of domus_config_show(), which the functions of this file hand on to each other. */
struct showing {
    domus_config_origin *origin;
    domus_config_visit *visit;
    void *context;
    char value[DOMUS_CONFIG_VALUE_SIZE];
};

static bool is_value_of_key_the_default(const domus_config_key *key, const void *holder)
{
    if (!domi_key_is_text(key))
        return domi_key_get_number(key, holder) == key->preset;
    const char *text = domi_key_get_text(key, holder);
    return key->preset_text != NULL && strcmp(text != NULL ? text : "", key->preset_text) == 0;
}

static void show_value_of_key(struct showing *showing, const domus_config_key *key,
                              const char *name, const void *holder, size_t element)
{
    const char *origin =
        showing->origin != NULL ? showing->origin(showing->context, key, element) : NULL;

    if (origin == NULL)
        origin = is_value_of_key_the_default(key, holder) ? "default" : "program";
    domus_config_key_write(key, holder, showing->value, sizeof showing->value);
    showing->visit(showing->context,
                   &(domus_config_shown){.key = name, .value = showing->value, .origin = origin});
}

/* Show one key of domus_config. If a key has two rows in the table, a count and a share, show the
 * row whose field is set. */
static void show_key_of_config(struct showing *showing, const domus_config *config, size_t row)
{
    const domus_config_key *key = &domi_config_keys[row];

    if (row > 0 && strcmp(key[-1].path, key->path) == 0)
        return;
    if (row + 1 < domi_config_key_count && strcmp(key[1].path, key->path) == 0 &&
        domi_key_get_number(key, config) == 0 && domi_key_get_number(&key[1], config) != 0)
        key++;
    show_value_of_key(showing, key, key->path, config, SIZE_MAX);
}

/* Show the keys of one element of a list (a listener or a pool). A listener's key that inherits is
 * 0, and then the value of the section `channel` holds. */
static void show_keys_of_list_element(struct showing *showing, const char *list, const char *name,
                                      const domus_config_key *keys, size_t count,
                                      const void *holder, size_t element)
{
    char path[KEY_SIZE];

    for (const domus_config_key *key = keys; key < keys + count; key++) {
        if (key->inherits && domi_key_get_number(key, holder) == 0)
            continue;
        snprintf(path, sizeof path, "%s.%s.%s", list, name != NULL ? name : "", key->path);
        show_value_of_key(showing, key, path, holder, element);
    }
}

void domus_config_show(const domus_config *config, domus_config_origin *origin,
                       domus_config_visit *visit, void *context)
{
    struct showing showing = {.origin = origin, .visit = visit, .context = context};

    for (size_t row = 0; row < domi_config_key_count; row++)
        show_key_of_config(&showing, config, row);
    for (size_t i = 0; i < config->listener_count; i++)
        show_keys_of_list_element(&showing, "listeners", config->listeners[i].name,
                                  domi_config_listener_keys, domi_config_listener_key_count,
                                  &config->listeners[i], i);
    for (size_t i = 0; i < config->pool_count; i++)
        show_keys_of_list_element(&showing, "pools", config->pools[i].name, domi_config_pool_keys,
                                  domi_config_pool_key_count, &config->pools[i], i);
}
