/* One turn of a thread's io that a test takes by hand: phases 1 and 2. */
#ifndef DOMT_IO_TURN_H
#define DOMT_IO_TURN_H

#include "house/dispatch/phases.h"
#include "house/message/manager.h"
#include "io/channels/table.h"
#include "io/completions/ring.h"
#include "io/completions/setup.h"
#include "io/completions/tick.h"

static inline void domt_io_run_phases_1_and_2(domi_io *io)
{
    domi_manager *manager = io->manager;

    (void)domi_io_enter_ring_if_useful(io);
    (void)domi_io_reap_completions(io);
    (void)domi_manager_take_arrivals(manager);
    (void)domi_manager_mount_actors(manager);
    (void)domi_manager_fire_timers(manager);
    (void)domi_io_fire_timers(io);
    (void)domi_manager_run_channels_actors(manager);
    (void)domi_io_resume_reads_and_queue_sends(io);
}

#endif
