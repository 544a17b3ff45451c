/* The one observation port of a process, with the system that it observes, and the clock of the
 * port. */
#include "protocols/observe/observe.h"

#include <time.h>

domi_observation domi_observed;

uint64_t domi_observe_clock_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
