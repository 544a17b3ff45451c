/* The questions of a thread before it rests: whether it has anything to do, and when the next thing
 * is due. The thread itself calls these. */
#ifndef DOMI_RUNTIME_LOOP_WORK_H
#define DOMI_RUNTIME_LOOP_WORK_H

#include "runtime/system/thread.h"

/* True if there is anything to do before the thread may sleep (M3). The words that other threads
 * write are read seq_cst, because this is also the second look of a park. */
bool domi_thread_has_work(const domi_thread *thread);

/* Returns when the next timer is due; UINT64_MAX: none is armed. */
uint64_t domi_thread_due_ns(domi_thread *thread);

/* Returns when a sleep ends without a wake-up: at the next timer, or at the cap
 * (DOMI_PARK_CAP_NS). */
uint64_t domi_thread_sleep_until(domi_thread *thread);

#endif
