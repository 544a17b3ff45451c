/* Phase 3 of the loop. The thread itself calls this. */
#ifndef DOMI_RUNTIME_LOOP_STATE_PHASE_H
#define DOMI_RUNTIME_LOOP_STATE_PHASE_H

#include "runtime/system/thread.h"

/* Run state actors until the deadline. */
void domi_phase_state(domi_thread *thread);

#endif
