/* The sleep of a manager whose thread has no ring: the thread sleeps on the park word
 * (base/park.h), which is a futex. */
#ifndef DOMI_RUNTIME_OUTSIDE_FUTEX_PARK_H
#define DOMI_RUNTIME_OUTSIDE_FUTEX_PARK_H

#include "house/message/manager.h"

/* Let the owner of a manager sleep while its park word is SLEEPING, at most for `time_ns`; the
 * function may return early. Called by the owner between domi_park_begin_sleep() and
 * domi_park_end_sleep(). */
void domi_futex_park_sleep(domi_manager *manager, uint64_t time_ns);

/* Wake the owner of a manager, after the park word was exchanged to NOTIFIED. It is called as
 * domi_runtime_hooks.wake. Any thread. */
void domi_futex_park_wake(domi_manager *manager);

#endif
