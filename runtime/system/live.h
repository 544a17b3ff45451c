/* The configuration that holds now. Keys that are live may change while the system runs; all other
 * fields keep their values of the start.
 *
 * A manager has a copy of its own, so that its thread reads plain fields;
 * domi_live_update_manager() brings the copy up to date when the orders of the system count another
 * change (orders.h). The monitor, helpers and the thread that stops the system have no manager, and
 * read single fields with DOMI_LIVE(). `domus_system.config` is the configuration with which the
 * system was made, and constant. */
#ifndef DOMI_RUNTIME_SYSTEM_LIVE_H
#define DOMI_RUNTIME_SYSTEM_LIVE_H

#include <domus/config.h>

#include <pthread.h>

typedef struct domi_live {
    /* Held for some microseconds by a change of the configuration, and while the whole
     * configuration is copied; taken inside the outside's mutex. While it is held, no other lock is
     * taken but the spinlock of the peers. */
    pthread_mutex_t mutex;
    /* the configuration that holds now; fields of live keys are written atomically, and under
     * `mutex` */
    domus_config config;
    /* the configured scheduler.idle.spin in ns, before `auto` was replaced by a value */
    uint64_t spin_given_ns;
    /* the options of the channels of each listener, under `mutex` */
    domus_channel_options channels[DOMUS_LISTENERS_MAX];
    /* memory for the listeners of a changed configuration, under `mutex` */
    domus_listener_config listeners[DOMUS_LISTENERS_MAX];
} domi_live;

/* Returns the present value of a field of a live key. Relaxed: the value is complete by itself. Any
 * thread may call this. */
#define DOMI_LIVE(system, field) __atomic_load_n(&(system)->live.config.field, __ATOMIC_RELAXED)

#endif
