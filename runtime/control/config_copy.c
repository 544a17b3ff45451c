/* Copies a configuration into a system: its numbers, and each text into a block of its own. The
 * table of keys says which fields of a listener are texts, so a new key needs no line in this
 * file. */
#include "runtime/control/life.h"

#include "base/key.h"
#include "base/memory.h"
#include "runtime/control/config_keys.h"

#include <errno.h>
#include <string.h>

static char *copy_text_of_config(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = domi_memory_new(bytes);

    if (copy != NULL)
        memcpy(copy, text, bytes);
    return copy;
}

/* Free the texts of `object`, a structure of the configuration that has the fields of these
 * keys. */
static void free_texts_of_keys(const domus_config_key *keys, size_t count, const void *object)
{
    for (size_t k = 0; k < count; k++) {
        if (domi_key_is_text(&keys[k]))
            domi_memory_free((void *)(uintptr_t)domi_key_get_text(&keys[k], object));
    }
}

/* Give `copy` its own copies of all texts of `object`; for a text that is NULL the copy has an
 * empty one. Returns whether there was memory for all of them. */
static bool copy_texts_of_keys(const domus_config_key *keys, size_t count, void *copy,
                               const void *object)
{
    bool whole = true;

    for (size_t k = 0; k < count; k++) {
        if (!domi_key_is_text(&keys[k]))
            continue;
        const char *text = domi_key_get_text(&keys[k], object);
        const char *own = copy_text_of_config(text != NULL ? text : "");
        domi_key_store_value(&keys[k], copy, 0, own);
        whole = whole && own != NULL;
    }
    return whole;
}

void domi_config_free_copy_of_system(domus_system *system)
{
    for (size_t i = 0; i < system->config.listener_count; i++) {
        free_texts_of_keys(domi_config_listener_keys, domi_config_listener_key_count,
                           &system->listeners[i]);
        domi_memory_free(system->passed_at[i]);
    }
    for (size_t i = 0; i < system->config.pool_count; i++) {
        domi_memory_free((void *)(uintptr_t)system->pool_configs[i].name);
        domi_memory_free((void *)(uintptr_t)system->pool_configs[i].policy);
    }
    free_texts_of_keys(domi_config_keys, domi_config_key_count, &system->config);
}

int domi_config_copy_into_system(domus_system *system, const domus_config *config)
{
    system->config = *config;
    system->config.listeners = system->listeners;
    bool whole =
        copy_texts_of_keys(domi_config_keys, domi_config_key_count, &system->config, config);
    for (size_t i = 0; i < config->listener_count; i++) {
        system->listeners[i] = config->listeners[i];
        whole = copy_texts_of_keys(domi_config_listener_keys, domi_config_listener_key_count,
                                   &system->listeners[i], &config->listeners[i]) &&
                whole;
        domi_settings_compute_all(config, &config->listeners[i].channel,
                                  &system->listener_settings[i]);
        domi_settings_set_listener_name(&system->listener_settings[i], config->listeners[i].name);
        system->listener_settings[i].row = (uint32_t)i;
    }
    system->config.pools = system->pool_configs;
    for (size_t i = 0; i < config->pool_count; i++) {
        const domus_pool_config *pool = &config->pools[i];
        domus_pool_config *copy = &system->pool_configs[i];
        *copy = *pool;
        copy->name = copy_text_of_config(pool->name);
        copy->policy = copy_text_of_config(pool->policy != NULL ? pool->policy : "");
        whole = whole && copy->name != NULL && copy->policy != NULL;
    }
    if (!whole)
        domi_config_free_copy_of_system(system);
    return whole ? 0 : -ENOMEM;
}
