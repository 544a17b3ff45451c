/* Makes sends without a ring, within a bound (direct.h). */
#include "io/backend/direct.h"

#include "base/check.h"

#define SENDS_MAX 4u /* most sends between two shows; beyond that number an enter is cheaper */
#define ROOM      8u /* number of completions for which there is room, a power of two */

bool domi_direct_init(domi_direct *direct)
{
    direct->made = 0;
    return domi_completion_queue_init(&direct->queue, ROOM);
}

void domi_direct_fini(domi_direct *direct)
{
    if (direct->queue.places != NULL)
        domi_completion_queue_fini(&direct->queue);
}

bool domi_direct_send(domi_direct *direct, int fd, const domi_output *output, uint64_t user_data)
{
    if (direct->made == SENDS_MAX || domi_completion_queue_count(&direct->queue) == ROOM)
        return false;
    int result = domi_output_try(fd, output);
    if (result == -EAGAIN)
        return false;
    direct->made++;
    DOMI_CHECK(domi_completion_queue_put(
        &direct->queue, (domi_completion){.user_data = user_data, .result = result}));
    return true;
}
