/* Fires the io timers of a thread. A timer means that something did not come in time, so everything
 * that has arrived is collected first. */
#include "io/completions/tick.h"

#include "base/check.h"
#include "io/acceptors/acceptors.h"
#include "io/channels/due.h"
#include "io/completions/ring.h"
#include "io/connectors/connect.h"

static void fire_io_timer(domi_io *io, domi_wheel_node *node)
{
    domi_io_timer *timer = (domi_io_timer *)(void *)node;

    switch (timer->kind) {
    case DOMI_TIMER_CHANNEL:
        domi_channel_check_all_timeouts(
            (domus_channel *)(void *)((char *)timer - offsetof(domus_channel, timer)));
        break;
    case DOMI_TIMER_ACCEPTOR:
        domi_acceptor_end_pause_or_continue_stop(
            (domi_acceptor *)(void *)((char *)timer - offsetof(domi_acceptor, timer)));
        break;
    case DOMI_TIMER_SWEEP:
        domi_io_take_step_of_sweep(io);
        break;
    case DOMI_TIMER_CONNECT:
        domi_connect_begin_attempt_at_timer(
            (domi_connect *)(void *)((char *)timer - offsetof(domi_connect, timer)));
        break;
    case DOMI_TIMER_SHORTAGE:
        domi_shortages_end_spells_at_timer(
            (domi_io *)(void *)((char *)timer - offsetof(domi_io, shortage_timer)));
        break;
    }
}

/* Collect everything that had arrived by now, if a timer of the thread's io is due. Otherwise a
 * thread that was held up would take a peer for silent while the bytes of the peer wait in the
 * ring. Returns false if the timers have to wait for the next iteration, because a flood brought
 * more than one iteration takes; this happens at most DOMI_POSTPONED_MAX times in a row. */
static bool collect_arrivals_before_timers(domi_io *io, uint32_t *ret_taken)
{
    if (domi_wheel_next_ns(&io->wheel) > io->manager->now_ns)
        return true;
    if (domi_io_enter_and_reap_all(io, io->config->io.completion_entries, ret_taken) ||
        ++io->postponed == DOMI_POSTPONED_MAX)
        io->postponed = 0;
    return io->postponed == 0;
}

static uint32_t fire_due_io_timers(domi_io *io)
{
    uint32_t done = 0;

    domi_wheel_advance_to_time(&io->wheel, io->manager->now_ns);
    for (domi_wheel_node *node = domi_wheel_take_due_node(&io->wheel); node != NULL;
         node = domi_wheel_take_due_node(&io->wheel)) {
        fire_io_timer(io, node);
        done++;
    }
    return done;
}

uint32_t domi_io_fire_timers(domi_io *io)
{
    uint32_t done = 0;

    if (collect_arrivals_before_timers(io, &done))
        done += fire_due_io_timers(io);

    if (io->draining)
        domi_io_check_draining_channels(io);
    return done;
}

void domi_io_refresh_times_of_activity(domi_io *io, uint64_t since_ns)
{
    for (uint32_t slot = 0; slot < io->slots_used; slot++) {
        domus_channel *channel = io->slots[slot].channel;
        if (channel != NULL && channel->active_ns == since_ns)
            channel->active_ns = io->manager->now_ns;
    }
}
