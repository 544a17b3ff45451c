/* How a thread of the loop takes a change of the configuration. */
#ifndef DOMI_RUNTIME_LOOP_FOLLOW_CHANGE_H
#define DOMI_RUNTIME_LOOP_FOLLOW_CHANGE_H

#include "runtime/system/thread.h"

/* Set what the thread derives from its configuration. The thread itself, or before it runs. */
void domi_thread_take_config(domi_thread *thread);

/* Take the configuration that holds now. The thread itself, in its phase 2. */
void domi_thread_follow_change(domi_thread *thread);

#endif
