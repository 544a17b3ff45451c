/* In this file a thread of the loop takes a change of the configuration (runtime/system/live.h):
 * its manager, what the thread derives from keys, and the settings of its channels. */
#include "runtime/loop/follow_change.h"

#include "io/channels/renew.h"
#include "runtime/system/live_copy.h"

void domi_thread_take_config(domi_thread *thread)
{
    bool is_simulated = thread->system->simulator != NULL;

    thread->spin_ns = thread->config->scheduler.idle.spin_ns;
    thread->stealing.patience_max =
        is_simulated ? DOMI_PATIENCE_SIMULATED : thread->config->scheduler.steal.patience;
    thread->stealing.min_run_ns = is_simulated ? 0 : thread->config->scheduler.steal.min_run_ns;
}

/* Returns whether a setting of any channel has changed. */
static bool take_settings(domi_thread *thread)
{
    domi_live *live = &thread->system->live;
    domi_io *io = &thread->io;
    bool differs = domi_settings_renew(thread->config, NULL, &io->settings);

    pthread_mutex_lock(&live->mutex);
    for (size_t i = 0; i < thread->config->listener_count; i++) {
        if (domi_settings_renew(thread->config, &live->channels[i], &io->settings_of[i]))
            differs = true;
    }
    pthread_mutex_unlock(&live->mutex);
    return differs;
}

void domi_thread_follow_change(domi_thread *thread)
{
    domi_live_take(thread->system, &thread->manager);
    thread->config = thread->io.config = thread->manager.config;
    domi_thread_take_config(thread);
    if (take_settings(thread))
        domi_io_renew_channels(&thread->io);
}
