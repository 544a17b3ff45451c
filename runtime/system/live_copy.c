/* This file copies the configuration that holds now (live.h) to managers and others. */
#include "runtime/system/live_copy.h"

#include "house/dispatch/manage.h"

void domi_live_init_from_config(domus_system *system, uint64_t spin_ns)
{
    domi_live *live = &system->live;

    pthread_mutex_init(&live->mutex, NULL);
    live->config = system->config;
    live->spin_given_ns = spin_ns;
    for (size_t i = 0; i < system->config.listener_count; i++)
        live->channels[i] = system->listeners[i].channel;
}

void domi_live_fini(domus_system *system)
{
    pthread_mutex_destroy(&system->live.mutex);
}

void domi_live_copy_config(domus_system *system, domus_config *ret_config)
{
    pthread_mutex_lock(&system->live.mutex);
    *ret_config = system->live.config;
    pthread_mutex_unlock(&system->live.mutex);
}

void domi_live_update_config_of_manager(domus_system *system, domi_manager *manager)
{
    domus_config config;

    domi_live_copy_config(system, &config);
    domi_manager_set_config(manager, &config);
}
