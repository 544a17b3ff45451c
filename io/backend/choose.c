/* Chooses a backend, once for all threads of a system, by a small ring that is opened, started and
 * closed again. Only a refusal that no setting of this program could end leads to epoll: the
 * kernel, a sysctl or a filter does not let this process have a ring. If memory or descriptors have
 * run out, the start of the system fails, because a service that is meant to use io_uring would
 * otherwise change its backend by chance. */
#include "io/backend/choose.h"

#include "io/backend/explain.h"

#include <errno.h>

/* Open and close a small ring to see whether this process may have one. Returns 0 if it may; a
 * negative errno, and a line in `reason`. */
static int try_to_open_ring(const domus_config *config, char *reason, size_t reason_size)
{
    domus_config small = *config;
    void *ring;

    small.io.ring_entries = 16;
    small.io.completion_entries = 32;
    small.io.buffers.count = 16;
    int result = domi_backend_uring.open(&small, reason, reason_size, &ring);
    if (result != 0)
        return result;
    result = domi_backend_uring.start(ring);
    domi_backend_uring.close(ring);
    if (result != 0)
        domi_setup_explain_failure_of_ring(result, DOMI_SETUP_ENABLE, config, reason, reason_size);
    return result;
}

int domi_backend_choose(const domus_config *config, char *reason, size_t reason_size,
                        const domi_backend **ret_backend)
{
    int result = 0;

    reason[0] = '\0';
    if (config->io.backend == DOMUS_BACKEND_AUTO)
        result = try_to_open_ring(config, reason, reason_size);
    if (result == -EPERM || result == -EACCES || result == -ENOSYS || result == -EINVAL) {
        *ret_backend = &domi_backend_epoll;
        return 0;
    }
    /* Write the reason anew, with the size of the rings that threads would have. */
    if (result != 0)
        domi_setup_explain_failure_of_ring(result, DOMI_SETUP_RING, config, reason, reason_size);
    else
        *ret_backend =
            config->io.backend == DOMUS_BACKEND_EPOLL ? &domi_backend_epoll : &domi_backend_uring;
    return result;
}
