/* The sleepers that this thread has to wake, and the stand-in, who spares a sleeper the wake-up
 * (contract: Park and wake). */
#ifndef DOMI_RUNTIME_LOOP_STAND_IN_H
#define DOMI_RUNTIME_LOOP_STAND_IN_H

#include "runtime/system/thread.h"

/* Whether threads with this configuration note sleepers, and wake them later: only if they may
 * stand in for them. Else a sleeper is woken at once, so that it does not wait for a long handler.
 * Any thread. */
bool domi_thread_notes_sleepers(const domus_config *config);

/* Wake the sleeping threads that were noted (domi_manager_notify). If this thread `is_idle`, which
 * means that it has no state actor to run, it may do instead what a sleeper would wake for. The
 * thread itself, in phase 3, at each look, and before it sleeps. */
void domi_thread_wake_sleepers(domi_thread *thread, bool is_idle);

/* The thread has left its loop: from here on it wakes sleepers at once. */
void domi_thread_end_notes(domi_thread *thread);

#endif
