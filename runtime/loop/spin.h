/* Spinning before a park. The thread itself calls these. */
#ifndef DOMI_RUNTIME_LOOP_SPIN_H
#define DOMI_RUNTIME_LOOP_SPIN_H

#include "runtime/system/thread.h"

/* Look for work for at most thread->spin_ns. Returns true if something came that the
 * loop has to take. */
bool domi_thread_spin(domi_thread *thread);

/* Set spin_ns for the next rest by the length of the rest that has just ended. */
void domi_thread_learn_spin(domi_thread *thread);

#endif
