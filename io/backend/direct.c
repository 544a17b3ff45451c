/* Makes sends by send(2), without the ring, as long as few have been made since the last enter
 * (direct.h). */
#include "io/backend/direct.h"

#include "base/check.h"

/* most direct sends before their completions are shown; beyond that number the ring is cheaper */
#define SENDS_MAX 4u
/* number of completions of direct sends for which there is room, a power of two */
#define ROOM 8u

bool domi_direct_sends_init(domi_direct *direct)
{
    direct->made = 0;
    return domi_completion_queue_init(&direct->queue, ROOM);
}

void domi_direct_sends_fini(domi_direct *direct)
{
    if (direct->queue.places != NULL)
        domi_completion_queue_fini(&direct->queue);
}

bool domi_direct_sends_try_send(domi_direct *direct, int fd, const domi_output *output,
                                uint64_t user_data)
{
    if (direct->made == SENDS_MAX || domi_completion_queue_count(&direct->queue) == ROOM)
        return false;
    int result = domi_output_try_send(fd, output);
    if (result == -EAGAIN)
        return false;
    direct->made++;
    DOMI_CHECK(domi_completion_queue_put(
        &direct->queue, (domi_completion){.user_data = user_data, .result = result}));
    return true;
}
