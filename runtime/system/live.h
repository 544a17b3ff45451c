/* The configuration that holds now. Keys that are live may change while the system runs; the fields
 * of all others have the values of the start for ever.
 *
 * A manager has a copy of its own, so that its thread reads plain fields; domi_live_take() brings
 * the copy up to date when the orders of the system count another change (orders.h). The
 * monitor, helpers and the thread that stops the system, which have no manager, read single fields
 * with DOMI_LIVE(). `domus_system.config` is what the system was made with, and constant. */
#ifndef DOMI_RUNTIME_SYSTEM_LIVE_H
#define DOMI_RUNTIME_SYSTEM_LIVE_H

#include <domus/config.h>

#include <pthread.h>

typedef struct domi_live {
    /* Held by a change, inside the outside, and while all of it is copied: for some microseconds.
     * No lock is taken under it but the spinlock of the peers. */
    pthread_mutex_t mutex;
    /* what holds; its fields of live keys are written atomically, and under `mutex` */
    domus_config config;
    uint64_t spin_given_ns; /* scheduler.idle.spin as it was given, before `auto` got a value */
    /* the options of the channels of each listener, under `mutex` */
    domus_channel_options channels[DOMUS_LISTENERS_MAX];
    domus_listener_config listeners[DOMUS_LISTENERS_MAX]; /* room for a change, under `mutex` */
} domi_live;

/* Returns the present value of a field of a live key. Relaxed: it is complete by itself. Any
 * thread. */
#define DOMI_LIVE(system, field) __atomic_load_n(&(system)->live.config.field, __ATOMIC_RELAXED)

#endif
