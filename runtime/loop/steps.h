/* The steps of the loop of a thread: its phases, and what it does between two iterations. The
 * thread itself calls these functions, or the test kit in its place, where nothing else is said. */
#ifndef DOMI_RUNTIME_LOOP_STEPS_H
#define DOMI_RUNTIME_LOOP_STEPS_H

#include "runtime/system/thread.h"

/* ---- loop.c -----------------------------------------------------------------------------------*/

/* The loop of a thread, and its first two phases. The test kit calls the phases one after another;
 * then time is handed in. The thread itself calls these. */

void domi_phase_io(domi_thread *thread);
void domi_phase_channels(domi_thread *thread);

/* Run until the system wants the end. */
void domi_thread_loop(domi_thread *thread);

/* ---- state_phase.c ----------------------------------------------------------------------------*/

/* Phase 3 of the loop. The thread itself calls this. */

/* Run state actors until the deadline. */
void domi_phase_state(domi_thread *thread);

/* ---- work.c -----------------------------------------------------------------------------------*/

/* The questions of a thread before it rests: whether it has anything to do, and when the next thing
 * is due. The thread itself calls these. */

/* True if there is anything to do before the thread may sleep (M3). The words that other threads
 * write are read seq_cst, because this is also the second look of a park. */
bool domi_thread_has_work(const domi_thread *thread);

/* Returns when the next timer is due; UINT64_MAX: none is armed. */
uint64_t domi_thread_due_ns(domi_thread *thread);

/* Returns when a sleep ends without a wake-up: at the next timer, or at the cap
 * (DOMI_PARK_CAP_NS). */
uint64_t domi_thread_sleep_until(domi_thread *thread);

/* ---- park.c -----------------------------------------------------------------------------------*/

/* The rest of a thread that has nothing to do: spin for a while (idle.spin), then sleep in the ring
 * until something comes. The rest has two halves because a simulated thread sleeps between them and
 * enters no ring. The thread itself calls these, except the wake. */

void domi_thread_rest(domi_thread *thread);

/* Prepare to sleep. Returns false if there is something to do. Returns true if the park word is
 * SLEEPING and nothing was left to do (M3); then the caller sleeps until the word is NOTIFIED, at
 * the latest until `ret_until_ns`, and calls domi_thread_rest_end(). */
bool domi_thread_rest_begin(domi_thread *thread, uint64_t *ret_until_ns);
void domi_thread_rest_end(domi_thread *thread, uint64_t until_ns);

/* Phase 1 calls this after a sleep that seemed to end for nothing. It counts an empty wake-up if
 * phase 1 has brought nothing either. */
void domi_thread_judge_wakeup(domi_thread *thread);

/* Wake a manager that sleeps, by a write to its eventfd. This is
 * domi_runtime_hooks.wake. Any thread. */
void domi_thread_wake(domi_manager *manager);

/* ---- spin.c -----------------------------------------------------------------------------------*/

/* Spinning before a park. The thread itself calls these. */

/* Look for work for at most thread->spin_ns. Returns true if something came that the
 * loop has to take. */
bool domi_thread_spin(domi_thread *thread);

/* Set spin_ns for the next rest by the length of the rest that has just ended. */
void domi_thread_learn_spin(domi_thread *thread);

/* ---- stand_in.c -------------------------------------------------------------------------------*/

/* The sleepers that this thread has to wake, and the stand-in, which spares a sleeper the wake-up
 * (contract: Park and wake). */

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

/* ---- trim.c -----------------------------------------------------------------------------------*/

/* Giving free memory back, in small steps. */

/* Give free memory back, in one step of at most `objects` objects. Returns true if there may be
 * more to give back. The thread itself. */
bool domi_thread_trim(domi_thread *thread, uint32_t objects);

/* Do the same as domi_thread_trim() of an idle thread, but at most once a tick while there is
 * nothing to give back. */
bool domi_thread_trim_idle(domi_thread *thread);

/* ---- follow.c ---------------------------------------------------------------------------------*/

/* How a thread follows the orders of the system. */

/* Take the newest configuration, and begin the step of a stop that the system wants. The thread
 * itself, in its phase 2. */
void domi_thread_follow(domi_thread *thread);

/* ---- follow_change ----------------------------------------------------------------------------*/

/* How a thread of the loop takes a change of the configuration. */

/* Set what the thread derives from its configuration. The thread itself, or before it runs. */
void domi_thread_take_config(domi_thread *thread);

/* Take the configuration that holds now. The thread itself, in its phase 2. */
void domi_thread_follow_change(domi_thread *thread);

#endif
