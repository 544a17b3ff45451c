/* The loop of a thread, and its first two phases. The test kit calls the phases one after another;
 * then time is handed in. The thread itself calls these. */
#ifndef DOMI_RUNTIME_LOOP_LOOP_H
#define DOMI_RUNTIME_LOOP_LOOP_H

#include "runtime/system/thread.h"

void domi_phase_io(domi_thread *thread);
void domi_phase_channels(domi_thread *thread);

/* Run until the system wants the end. */
void domi_thread_loop(domi_thread *thread);

#endif
