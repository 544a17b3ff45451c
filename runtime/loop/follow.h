/* How a thread follows the orders of the system. */
#ifndef DOMI_RUNTIME_LOOP_FOLLOW_H
#define DOMI_RUNTIME_LOOP_FOLLOW_H

#include "runtime/system/thread.h"

/* Take the newest configuration, and begin the step of a stop that the system wants. The thread
 * itself, in its phase 2. */
void domi_thread_follow(domi_thread *thread);

#endif
