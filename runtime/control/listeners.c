/* This file reads what the threads have counted about the connections of each listener. */
#include "runtime/system/system.h"

#include <errno.h>

static void add_counts_of_listener_on_thread(const domi_io *io, size_t row,
                                             domus_listener_profile *profile)
{
    const domi_listener_counts *counts = &io->listeners[row];
    /* The closed channels are read before the opened ones, so a channel that opens and closes
     * meanwhile is not counted as closed only. */
    uint64_t closed = domi_counter_read(&counts->closed);
    uint64_t opened = domi_counter_read(&counts->opened);

    profile->accepted += domi_counter_read(&counts->accepted);
    profile->refused +=
        domi_counter_read(&counts->refused) + domi_counter_read(&io->turned_away_of[row]);
    profile->open += opened > closed ? opened - closed : 0;
    profile->closed += closed;
    profile->reset += domi_counter_read(&counts->reset);
}

int domus_system_listener(const domus_system *system, size_t index,
                          domus_listener_profile *ret_profile)
{
    size_t count = system->config.listener_count;
    domus_listener_profile profile = {.name = "", .address = ""};

    if (index > count)
        return -EINVAL;
    if (index < count) {
        profile.name = system->listeners[index].name;
        profile.address = system->listeners[index].address;
        /* acquire: pairs with the release in domus_serve_with(), so the listener's table
         * `passed_at` is seen. */
        uint32_t listening = atomic_load_explicit(
            (_Atomic uint32_t *)(uintptr_t)&system->listening[index], memory_order_acquire);
        if (listening != 0 && system->passed_at[index] != NULL)
            profile.address = system->passed_at[index];
        profile.port = (uint16_t)listening;
        profile.is_served = listening != 0;
    }
    for (uint32_t i = 0; i < system->count; i++)
        add_counts_of_listener_on_thread(&system->threads[i].io,
                                         index < count ? index : DOMI_LISTENER_OWN, &profile);
    *ret_profile = profile;
    return 0;
}
