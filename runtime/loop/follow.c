/* A thread of the loop follows the orders of the system at the start of its phase 2: the steps of a
 * stop, which runtime/system/stop_step.h describes, and changes of the configuration. */
#include "runtime/loop/steps.h"

#include "house/dispatch/manage.h"
#include "io/channels/renew.h"
#include "io/completions/tick.h"
#include "runtime/system/live_copy.h"
#include "runtime/system/system.h"

void domi_thread_follow_orders(domi_thread *thread)
{
    /* Relaxed: only this thread writes thread->orders. The system's orders are read with
     * acquire, which pairs with the store in domi_system_set_stop_step(). */
    uint32_t followed = atomic_load_explicit(&thread->orders, memory_order_relaxed);
    uint32_t orders = atomic_load_explicit(&thread->system->orders, memory_order_acquire);
    domi_stop_step begun = domi_orders_get_stop_step(followed),
                   wanted = domi_orders_get_stop_step(orders);

    if (domi_orders_differ_in_config_change(followed, orders))
        domi_thread_apply_changed_config(thread);

    if (wanted >= DOMI_STOP_DRAIN && begun < DOMI_STOP_DRAIN) {
        /* If this iteration cannot collect all connections and bytes that have arrived, the next
         * one goes on. But when the time of the drain is over, the drain begins with what was
         * collected. */
        if (wanted == DOMI_STOP_DRAIN && !domi_io_collect_arrivals_before_drain(&thread->io))
            return;
        domi_io_drain_accepted_channels(&thread->io);
    }
    if (wanted >= DOMI_STOP_UPSTREAM && begun < DOMI_STOP_UPSTREAM)
        domi_io_drain_outgoing_channels(&thread->io);
    if (wanted == DOMI_STOP_ABORT && begun < DOMI_STOP_ABORT)
        (void)domi_io_end_all_open_channels(&thread->io);
    if (wanted >= DOMI_STOP_CLOSE && begun < DOMI_STOP_CLOSE) {
        thread->manager.ending.closing = true;
        /* A connect may have become a channel after the thread's last channel was counted, and a
         * thread may have missed the step ABORT. So all channels are reset once more. */
        (void)domi_io_end_all_open_channels(&thread->io);
    }
    if (wanted == DOMI_STOP_ACTORS && begun < DOMI_STOP_ACTORS)
        domi_manager_stop_actors(&thread->manager);
    /* release: pairs with the acquire in domi_thread_read_stop_step(), so a thread that reads
     * the step sees what this thread did when it began that step. */
    atomic_store_explicit(&thread->orders, orders, memory_order_release);
}

/* ---- follow_change ----------------------------------------------------------------------------*/

/* In this file a thread of the loop applies a change of the configuration (runtime/system/live.h)
 * to its manager, to what it derives from keys, and to the settings of its channels. */

void domi_thread_apply_config_values(domi_thread *thread)
{
    bool is_simulated = thread->system->simulator != NULL;

    thread->spin_ns = thread->config->scheduler.idle.spin_ns;
    thread->stealing.patience_max =
        is_simulated ? DOMI_PATIENCE_SIMULATED : thread->config->scheduler.steal.patience;
    thread->stealing.min_run_ns = is_simulated ? 0 : thread->config->scheduler.steal.min_run_ns;
}

/* Apply the changed settings of channels to this thread's io. Returns whether a setting of any
 * channel has changed. */
static bool apply_changed_channel_settings(domi_thread *thread)
{
    domi_live *live = &thread->system->live;
    domi_io *io = &thread->io;
    bool differs = domi_settings_compute_anew(thread->config, NULL, &io->settings);

    pthread_mutex_lock(&live->mutex);
    for (size_t i = 0; i < thread->config->listener_count; i++) {
        if (domi_settings_compute_anew(thread->config, &live->channels[i], &io->settings_of[i]))
            differs = true;
    }
    pthread_mutex_unlock(&live->mutex);
    return differs;
}

void domi_thread_apply_changed_config(domi_thread *thread)
{
    domi_live_update_config_of_manager(thread->system, &thread->manager);
    thread->config = thread->io.config = thread->manager.config;
    domi_thread_apply_config_values(thread);
    if (apply_changed_channel_settings(thread))
        domi_io_apply_settings_to_channels(&thread->io);
}
