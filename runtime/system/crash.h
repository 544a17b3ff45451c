/* Crashes leave a trace: the handler of the signals by which a process is killed for a fault of its
 * own (domus_trace_crash_signals() of domus/trace.h).
 *
 * On the thread that has crashed the handler finds the run that was under way by the manager of
 * that thread (domi_thread_manager). It only reads that, and writes to the thread's own recorder,
 * or to one of static memory if it has none. */
#ifndef DOMI_RUNTIME_SYSTEM_CRASH_H
#define DOMI_RUNTIME_SYSTEM_CRASH_H

#include "runtime/trace/recorder.h"

/* Prepare the calling thread, which begins to run actors, for a crash: make an alternate stack for
 * it, if a crash handler is installed. `recorder` points to where the thread keeps its recorder;
 * NULL: the thread never has one. */
void domi_crash_prepare_thread(_Atomic(domi_recorder *) *recorder);

/* Free the alternate stack that domi_crash_prepare_thread() has made for the calling thread, which
 * is about to end. */
void domi_crash_unprepare_thread(void);

#endif
