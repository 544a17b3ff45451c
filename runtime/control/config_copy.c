/* Copies the configuration into a system: its numbers, and each text to a block of its own. The
 * texts of a listener are those of the table of keys, so a new key needs no line here. */
#include "runtime/control/config_copy.h"

#include "base/key.h"
#include "base/memory.h"
#include "runtime/control/config_keys.h"

#include <errno.h>
#include <string.h>

static char *copy_string(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = domi_memory_new(bytes);

    if (copy != NULL)
        memcpy(copy, text, bytes);
    return copy;
}

/* Free the texts of a listener. */
static void listener_free(const domus_listener_config *listener)
{
    for (size_t k = 0; k < domi_config_listener_key_count; k++) {
        const domus_config_key *key = &domi_config_listener_keys[k];
        if (domi_key_is_text(key))
            domi_memory_free((void *)(uintptr_t)domi_key_text(key, listener));
    }
}

/* Copy a listener with its texts, of which none is NULL in the copy. Returns whether there was
 * memory for all of them. */
static bool listener_copy(domus_listener_config *copy, const domus_listener_config *listener)
{
    bool whole = true;

    *copy = *listener;
    for (size_t k = 0; k < domi_config_listener_key_count; k++) {
        const domus_config_key *key = &domi_config_listener_keys[k];
        if (!domi_key_is_text(key))
            continue;
        const char *text = domi_key_text(key, listener);
        const char *own = copy_string(text != NULL ? text : "");
        domi_key_store(key, copy, 0, own);
        whole = whole && own != NULL;
    }
    return whole;
}

void domi_config_free(domus_system *system)
{
    for (size_t i = 0; i < system->config.listener_count; i++)
        listener_free(&system->listeners[i]);
    for (size_t i = 0; i < system->config.pool_count; i++) {
        domi_memory_free((void *)(uintptr_t)system->pool_configs[i].name);
        domi_memory_free((void *)(uintptr_t)system->pool_configs[i].policy);
    }
    domi_memory_free((void *)(uintptr_t)system->config.system.cpus);
    domi_memory_free((void *)(uintptr_t)system->config.observe.listen);
}

int domi_config_copy(domus_system *system, const domus_config *config)
{
    bool whole = true;

    system->config = *config;
    system->config.listeners = system->listeners;
    system->config.system.cpus = copy_string(config->system.cpus);
    system->config.observe.listen =
        copy_string(config->observe.listen != NULL ? config->observe.listen : "");
    whole = system->config.system.cpus != NULL && system->config.observe.listen != NULL;
    for (size_t i = 0; i < config->listener_count; i++) {
        whole = listener_copy(&system->listeners[i], &config->listeners[i]) && whole;
        domi_settings_resolve(config, &config->listeners[i].channel, &system->listener_settings[i]);
        domi_settings_set_name(&system->listener_settings[i], config->listeners[i].name);
        system->listener_settings[i].row = (uint32_t)i;
    }
    system->config.pools = system->pool_configs;
    for (size_t i = 0; i < config->pool_count; i++) {
        const domus_pool_config *pool = &config->pools[i];
        domus_pool_config *copy = &system->pool_configs[i];
        *copy = *pool;
        copy->name = copy_string(pool->name);
        copy->policy = copy_string(pool->policy != NULL ? pool->policy : "");
        whole = whole && copy->name != NULL && copy->policy != NULL;
    }
    if (!whole)
        domi_config_free(system);
    return whole ? 0 : -ENOMEM;
}
