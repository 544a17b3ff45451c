/* The rest of a thread that has nothing to do: spin for a while (idle.spin), then sleep in the ring
 * until something comes. The rest has two halves because a simulated thread sleeps between them and
 * enters no ring. The thread itself calls these, except the wake. */
#ifndef DOMI_RUNTIME_LOOP_PARK_H
#define DOMI_RUNTIME_LOOP_PARK_H

#include "runtime/system/thread.h"

void domi_thread_rest(domi_thread *thread);

/* Prepare to sleep. Returns false if there is something to do. Returns true if the park word is
 * SLEEPING and nothing was left to do (M3); then the caller sleeps until the word is NOTIFIED, at
 * the latest until `ret_until_ns`, and calls domi_thread_rest_end(). */
bool domi_thread_rest_begin(domi_thread *thread, uint64_t *ret_until_ns);
void domi_thread_rest_end(domi_thread *thread, uint64_t until_ns);

/* Phase 1 calls this after a sleep that seemed to end for nothing. It counts an empty wake-up if
 * phase 1 has brought nothing either. */
void domi_thread_judge_wakeup(domi_thread *thread);

/* Wake a manager that sleeps, by a write to its eventfd. This is
 * domi_runtime_hooks.wake. Any thread. */
void domi_thread_wake(domi_manager *manager);

#endif
