/* Giving free memory back, in small steps. */
#ifndef DOMI_RUNTIME_LOOP_TRIM_H
#define DOMI_RUNTIME_LOOP_TRIM_H

#include "runtime/system/thread.h"

/* Give free memory back, in one step of at most `objects` objects. Returns true if there may be
 * more to give back. The thread itself. */
bool domi_thread_trim(domi_thread *thread, uint32_t objects);

/* Do the same as domi_thread_trim() of an idle thread, but at most once a tick while there is
 * nothing to give back. */
bool domi_thread_trim_idle(domi_thread *thread);

#endif
