/* The configuration that holds now. Keys that are live may change while the system runs; all other
 * fields keep their values of the start.
 *
 * A manager has a copy of its own, so that its thread reads plain fields;
 * domi_live_update_config_of_manager() brings the copy up to date when the orders of the system
 * count another change (orders.h). The monitor, helpers and the thread that stops the system have
 * no manager, and read single fields with DOMI_LIVE(). `domus_system.config` is the configuration
 * with which the system was made, and constant. */
#ifndef DOMI_RUNTIME_SYSTEM_LIVE_H
#define DOMI_RUNTIME_SYSTEM_LIVE_H

#include <domus/config.h>

#include <pthread.h>

typedef struct domi_live {
    /* Locked for some microseconds by a change of the configuration, and while the whole
     * configuration is copied; taken inside the outside's mutex. While it is locked, no other lock
     * is taken but the spinlock of the peers. */
    pthread_mutex_t mutex;
    /* configuration that holds now; fields of live keys are written atomically, and under
     * `mutex` */
    domus_config config;
    /* value that the configuration has for scheduler.idle.spin in ns, before `auto` was replaced */
    uint64_t spin_given_ns;
    /* options of the channels of each listener that hold now, under `mutex` */
    domus_channel_options channels[DOMUS_LISTENERS_MAX];
    /* memory for the listeners of a configuration to which the system is changed, under `mutex` */
    domus_listener_config listeners[DOMUS_LISTENERS_MAX];
} domi_live;

/* Returns the value that a field of a live key has now. Relaxed: the value is complete by itself.
 * Any thread may call this. */
#define DOMI_LIVE(system, field) __atomic_load_n(&(system)->live.config.field, __ATOMIC_RELAXED)

#endif
