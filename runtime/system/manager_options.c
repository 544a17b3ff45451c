/* This file fills the options from which a manager is made, with the tables of its system. */
#include "runtime/system/manager_options.h"

domi_manager_options domi_system_make_manager_options(domus_system *system, uint32_t index,
                                                      uint64_t now_ns)
{
    return (domi_manager_options){
        .index = index,
        .count = system->managers_count,
        .threads = system->count,
        .managers = system->managers,
        .config = &system->config,
        .now_ns = now_ns,
        .system = system,
        .asker = system->asker.house,
        .pressure = &system->pressure.own_level,
        .names = &system->names,
        .letters = &system->letters,
        .groups = &system->groups,
        .routers = &system->routers,
        .remotes = &system->remotes,
        .grains = &system->grains,
        .processes = &system->processes,
        .behaviours = &system->behaviours,
    };
}

uint64_t domi_system_read_clock(const domi_manager *manager)
{
    const domus_system *system = manager->system;

    return domi_clock_now(&system->clock);
}
