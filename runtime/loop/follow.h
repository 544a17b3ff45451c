/* How a thread follows a stop of the system. */
#ifndef DOMI_RUNTIME_LOOP_FOLLOW_H
#define DOMI_RUNTIME_LOOP_FOLLOW_H

#include "runtime/system/thread.h"

/* Begin the step of the stop that the system wants. The thread itself, in its phase 2. */
void domi_thread_follow_stop(domi_thread *thread);

#endif
