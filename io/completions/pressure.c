/* Tells the channels and the acceptors of a thread how short memory is. */
#include "io/completions/tick.h"

#include "io/acceptors/acceptors.h"
#include "io/channels/crowd.h"

/* Set how short memory is for the thread. Channels that have to read less from now on are found by
 * the sweep (shed.c), or when bytes come for them; channels that may read more are found by the
 * last pass of the sweep. */
void domi_io_set_memory_shortage(domi_io *io, const domi_io_pressure *now)
{
    bool begins = now->pauses && !io->pressure.pauses;

    if (io->draining)
        return;
    if (now->queue_max != io->pressure.queue_max)
        domi_io_set_bound_of_queued_bytes(io, now->queue_max);
    io->pressure = *now;
    if ((now->pauses || now->spares) && !io->careful)
        domi_io_begin_to_receive_carefully(io);
    if (!begins)
        return;
    domi_counter_add(&io->counters.memory_pauses, 1);
    for (uint32_t i = 0; i < DOMI_ACCEPTORS_MAX; i++) {
        if (io->acceptors[i] != NULL)
            domi_acceptor_pause_if_memory_is_short(io->acceptors[i]);
    }
}

/* End the shortage of memory for a drain, which reads everything that has come, however little
 * memory there is. */
void domi_io_end_memory_shortage(domi_io *io)
{
    domi_io_set_memory_shortage(io, &(domi_io_pressure){.queue_max = UINT64_MAX});
    domi_io_stop_sweep(io);
    io->crowd_left = io->crowd_count;
}
