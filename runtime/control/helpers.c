/* Makes and frees the helper threads of a system, and the parts of the system that use them. */
#include "runtime/control/life.h"

#include "runtime/files/handle.h"
#include "runtime/outside/resolver.h"

#include <errno.h>

static int init_helper_threads(domus_system *system)
{
    const domi_workers_limits limits = {
        .threads_min = system->config.blocking.threads_min,
        .threads_max = system->config.blocking.threads_max,
        .queue_max = system->config.blocking.queue_max,
        .idle_expiry_ns = system->config.blocking.idle_expiry_ns,
    };

    return domi_workers_new(&limits, &system->workers);
}

int domi_helpers_init(domus_system *system)
{
    int result = system->simulator == NULL ? init_helper_threads(system) : 0;

    if (result != 0)
        return result;
    system->files = domi_files_new(system->workers, system->config.files.open_max);
    result = system->files != NULL ? domi_resolver_new(system, &system->resolver) : -ENOMEM;
    if (result != 0) {
        domi_files_free(system->files);
        domi_workers_free(system->workers);
    }
    return result;
}

void domi_helpers_fini(domus_system *system)
{
    domi_resolver_free(system->resolver);
    domi_workers_free(system->workers);
}
