/* Reads the profiles of all sources of a system: threads, the outside, and runners (sources.h). */
#include "protocols/observe/sources.h"

#include <errno.h>
#include <stdlib.h>

static size_t count_sources_of_system(domus_system *system)
{
    const domus_config *config = domus_system_config(system);
    size_t count = domus_system_threads(system) + 1u;

    for (size_t i = 0; i < config->pool_count; i++)
        count += domus_pool_runners(domus_outside_pool_find(system, config->pools[i].name));
    return count;
}

static void read_profiles_of_pool(domus_system *system, const domus_pool_config *config,
                                  domi_sources *sources)
{
    const domus_pool *pool = domus_outside_pool_find(system, config->name);
    uint32_t count = domus_pool_runners(pool);

    for (uint32_t i = 0; i < count; i++) {
        domi_source *one = &sources->each[sources->count++];
        one->kind = DOMI_SOURCE_RUNNER;
        one->pool = config->name;
        one->number = i;
        one->is_spare = i + config->spares >= count;
        (void)domus_pool_profile(pool, i, &one->runner, &one->counters);
    }
}

int domi_sources_read_profiles(domus_system *system, domi_sources *ret_sources)
{
    const domus_config *config = domus_system_config(system);
    domi_sources sources = {0, calloc(count_sources_of_system(system), sizeof *sources.each)};

    if (sources.each == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < domus_system_threads(system); i++) {
        domi_source *one = &sources.each[sources.count++];
        one->number = i;
        (void)domus_system_profile(system, i, &one->counters);
    }
    sources.each[sources.count].kind = DOMI_SOURCE_OUTSIDE;
    (void)domus_outside_profile(system, &sources.each[sources.count++].counters);
    for (size_t i = 0; i < config->pool_count; i++)
        read_profiles_of_pool(system, &config->pools[i], &sources);
    *ret_sources = sources;
    return 0;
}

void domi_sources_free_profiles(domi_sources *sources)
{
    free(sources->each);
    sources->each = NULL;
}
