/* In this file a thread of the loop follows the orders of the system, at the start of its phase 2.
 * runtime/system/stop_step.h says what each step of a stop means, and follow_change.c does what a
 * change of the configuration is. */
#include "runtime/loop/follow.h"

#include "house/dispatch/manage.h"
#include "io/completions/drain.h"
#include "runtime/loop/follow_change.h"
#include "runtime/system/system.h"

void domi_thread_follow(domi_thread *thread)
{
    /* Relaxed: its own word. acquire: pairs with the store in domi_system_set_stop_step(). */
    uint32_t followed = atomic_load_explicit(&thread->orders, memory_order_relaxed);
    uint32_t orders = atomic_load_explicit(&thread->system->orders, memory_order_acquire);
    domi_stop_step begun = domi_orders_step(followed), wanted = domi_orders_step(orders);

    if (domi_orders_differ_in_change(followed, orders))
        domi_thread_follow_change(thread);

    if (wanted >= DOMI_STOP_DRAIN && begun < DOMI_STOP_DRAIN) {
        /* If one iteration cannot collect all that has arrived, the next one goes on. But if the
         * time of the drain is over, the drain begins with what was collected. */
        if (wanted == DOMI_STOP_DRAIN && !domi_io_collect_before_drain(&thread->io))
            return;
        domi_io_drain(&thread->io);
    }
    if (wanted >= DOMI_STOP_UPSTREAM && begun < DOMI_STOP_UPSTREAM)
        domi_io_drain_upstream(&thread->io);
    if (wanted == DOMI_STOP_ABORT && begun < DOMI_STOP_ABORT)
        (void)domi_io_abort(&thread->io);
    if (wanted >= DOMI_STOP_CLOSE && begun < DOMI_STOP_CLOSE) {
        thread->manager.ending.closing = true;
        /* A connect may have become a channel after the last one was counted out; and a thread that
         * has missed ABORT does here what it was for. */
        (void)domi_io_abort(&thread->io);
    }
    if (wanted == DOMI_STOP_ACTORS && begun < DOMI_STOP_ACTORS)
        domi_manager_stop_actors(&thread->manager);
    /* release: a thread that reads this also sees what this thread began to do
     * (domi_thread_read_stop_step()). */
    atomic_store_explicit(&thread->orders, orders, memory_order_release);
}
