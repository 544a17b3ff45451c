/* In this file a thread follows the steps of a stop: drain, then perhaps abort, then close, stop
 * and end.
 *
 * The system sets one word and wakes the threads; each thread follows at the start of its phase 2.
 * The system sees by their counters when nothing is open any more. */
#include "io/completions/drain.h"
#include "runtime/outside/outside.h"
#include "runtime/system/system.h"

void domi_thread_follow_stop(domi_thread *thread)
{
    uint32_t wanted = atomic_load_explicit(thread->wanted, memory_order_acquire);

    if (wanted >= DOMI_WANTED_DRAIN && thread->doing < DOMI_WANTED_DRAIN) {
        /* If one iteration cannot collect all that has arrived, the next one goes on. But if the
         * time of the drain is over, the drain begins with what was collected. */
        if (wanted == DOMI_WANTED_DRAIN && !domi_io_collect_before_drain(&thread->io))
            return;
        domi_io_drain(&thread->io);
    }
    if (wanted == DOMI_WANTED_ABORT && thread->doing < DOMI_WANTED_ABORT)
        (void)domi_io_abort(&thread->io);
    if (wanted >= DOMI_WANTED_CLOSE)
        thread->manager.closing = true;
    if (wanted == DOMI_WANTED_STOP && thread->doing < DOMI_WANTED_STOP)
        domi_manager_stop_actors(&thread->manager);
    thread->doing = wanted;
    /* release: a thread that reads this also sees what this thread began to do (is_quiet() in
     * stop.c). */
    atomic_store_explicit(&thread->counters.following, wanted, memory_order_release);
}

void domi_system_set_wanted(domus_system *system, domi_wanted wanted)
{
    /* seq_cst: this store comes before the looks at the park words, as a put does. */
    atomic_store_explicit(&system->wanted, wanted, memory_order_seq_cst);
    domi_outside_lock(system);
    for (uint32_t i = 0; i < system->count; i++)
        domi_manager_notify(&system->outside, &system->threads[i].manager);
    domi_outside_unlock(system);
}

domi_cut domi_system_count_cut(const domus_system *system)
{
    domi_cut sum = {0};

    for (uint32_t i = 0; i < system->count; i++) {
        const domi_io *io = &system->threads[i].io;
        sum.channels += domi_counter_read(&io->counters.cut) + domi_counter_read(&io->turned_away);
        sum.bytes +=
            domi_counter_read(&io->counters.cut_bytes) + domi_counter_read(&io->turned_away_bytes);
    }
    return sum;
}

uint64_t domi_system_connections(const domus_system *system)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < system->count; i++)
        sum +=
            atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&system->threads[i].io.connections,
                                 memory_order_acquire);
    return sum;
}
