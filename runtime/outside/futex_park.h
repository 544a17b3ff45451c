/* A manager whose thread has no ring: the thread sleeps on the park word itself (base/park.h),
 * which is a futex. */
#ifndef DOMI_RUNTIME_OUTSIDE_FUTEX_PARK_H
#define DOMI_RUNTIME_OUTSIDE_FUTEX_PARK_H

#include "house/message/manager.h"

/* Sleep while the word is SLEEPING, at the latest for `time_ns`. It may return early. The owner,
 * between domi_park_begin() and domi_park_end(). */
void domi_futex_park_sleep(domi_manager *manager, uint64_t time_ns);

/* End the owner's sleep, after the word was exchanged to NOTIFIED. This is domi_runtime_hooks.wake.
 * Any thread. */
void domi_futex_park_wake(domi_manager *manager);

#endif
