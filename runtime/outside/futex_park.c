/* Sleep and wake-up on a park word (base/park.h). The kernel compares the word with SLEEPING
 * before it lets the thread sleep, so a wake-up that comes just before the sleep also ends it. */
#include "runtime/outside/futex_park.h"

#include "base/clock.h"
#include "runtime/os/futex.h"

void domi_futex_park_sleep(domi_manager *manager, uint64_t time_ns)
{
    const struct timespec until = domi_clock_deadline_after(time_ns);

    domi_futex_wait(&manager->park, DOMI_PARK_SLEEPING, &until);
}

void domi_futex_park_wake(domi_manager *manager)
{
    domi_futex_wake(&manager->park);
}
