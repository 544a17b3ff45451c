/* In this file a thread follows the steps of a stop: drain, then perhaps abort, then close, stop
 * and end.
 *
 * The system sets one word and wakes the threads; each thread follows at the start of its phase 2.
 * The system sees by their counters when nothing is open any more. */
#include "runtime/loop/follow.h"
#include "io/completions/drain.h"

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
    /* release: a thread that reads this also sees what this thread began to do
     * (domi_thread_read_following()). */
    atomic_store_explicit(&thread->counters.following, wanted, memory_order_release);
}
