/* The sleepers that this thread has to wake, and the stand-in, which spares a sleeper the wake-up
 * (contract: Park and wake). */
#ifndef DOMI_RUNTIME_LOOP_STAND_IN_H
#define DOMI_RUNTIME_LOOP_STAND_IN_H

#include "runtime/system/thread.h"

/* The thread has woken from a sleep that began at `asleep_ns`. Decide whether it may put wake-ups
 * of others off for idle.standIn, and whether its next sleep is a doze. The thread itself. */
void domi_thread_begin_notes(domi_thread *thread, uint64_t asleep_ns);

/* Returns when a sleep that may last until `until_ns` ends: sooner, if the thread is to doze. */
uint64_t domi_thread_doze_until(const domi_thread *thread, uint64_t until_ns);

/* True if others may stand in during a sleep that ends at `until_ns`: it is a doze. */
bool domi_thread_is_doze(const domi_thread *thread, uint64_t until_ns);

/* Wake the sleeping threads that were noted (domi_manager_notify). If this thread `is_idle`, which
 * means that it has no state actor to run, it may do instead what a sleeper would wake for. The
 * thread itself, in phase 3, at each look, and before it sleeps. */
void domi_thread_wake_sleepers(domi_thread *thread, bool is_idle);

/* The thread has left its loop: from here on it wakes sleepers at once. */
void domi_thread_end_notes(domi_thread *thread);

#endif
