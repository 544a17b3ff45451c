/* Pools of connections (domus/pool.h) that foreign threads open. */
#include "io/connectors/pool.h"

#include <domus/router.h>
#include <domus/system.h>

int domus_outside_pool_open(domus_system *system, const char *to, const domus_pool_options *options,
                            domus_address *ret_address)
{
    domi_connection_pool pool;
    int error = domi_pool_prepare_state(to, options, &pool);

    if (error != 0)
        return error;
    if (options->per_thread)
        return domus_outside_spawn_many(system, &domi_pool_behaviour, &pool, DOMUS_PER_THREAD, NULL,
                                        NULL, ret_address);
    return domus_outside_spawn(system, &domi_pool_behaviour, &pool, ret_address);
}
