/* The steps of the loop of a thread: its phases, and what it does between two iterations. The
 * thread itself calls these functions, or the test kit in its place, where nothing else is said. */
#ifndef DOMI_RUNTIME_LOOP_STEPS_H
#define DOMI_RUNTIME_LOOP_STEPS_H

#include "runtime/system/thread.h"

/* ---- loop.c -----------------------------------------------------------------------------------*/

/* The loop of a thread, and its first two phases. The thread itself calls these functions. The
 * test kit calls the phases of a simulated thread one after another, and sets the time. */

void domi_thread_run_phase_io(domi_thread *thread);
void domi_thread_run_phase_channels(domi_thread *thread);

/* Run the loop of a thread until the system orders its end (the step END of a stop). */
void domi_thread_run_loop(domi_thread *thread);

/* ---- state_phase.c ----------------------------------------------------------------------------*/

/* Phase 3 of the loop. The thread itself calls this function. */

/* Run ready state actors until the deadline of the phase. */
void domi_thread_run_phase_state(domi_thread *thread);

/* ---- work.c -----------------------------------------------------------------------------------*/

/* The questions that a thread asks before it rests: whether it has anything to do, and when the
 * next timer is due. The thread itself calls these functions. */

/* True if the thread has anything to do before it may sleep (M3). The words that other threads
 * write are read seq_cst, because this is also the second look of a park. */
bool domi_thread_has_work(const domi_thread *thread);

/* Returns when the thread's next timer is due; UINT64_MAX: none is armed. */
uint64_t domi_thread_time_of_next_timer(domi_thread *thread);

/* Returns when the thread's sleep ends without a wake-up: at the next timer, or at the cap
 * (DOMI_PARK_CAP_NS). */
uint64_t domi_thread_get_sleep_end(domi_thread *thread);

/* ---- park.c -----------------------------------------------------------------------------------*/

/* The rest of a thread that has nothing to do: spin for a while (idle.spin), then sleep in the ring
 * until something comes. The rest has two halves because a simulated thread sleeps between them and
 * enters no ring. The thread itself calls these functions, except domi_thread_wake_by_eventfd(). */

void domi_thread_rest_until_work(domi_thread *thread);

/* Prepare the thread to sleep. Returns false if there is something to do. Returns true if the park
 * word is SLEEPING and nothing was left to do (M3); then the caller sleeps until the word is
 * NOTIFIED, at the latest until `ret_until_ns`, and calls domi_thread_end_rest(). */
bool domi_thread_begin_rest(domi_thread *thread, uint64_t *ret_until_ns);
void domi_thread_end_rest(domi_thread *thread, uint64_t until_ns);

/* Count an empty wake-up if phase 1 has brought no completion. Phase 1 calls this function after a
 * sleep for whose end no other reason was found. */
void domi_thread_count_empty_wakeup(domi_thread *thread);

/* Wake the thread of a manager that sleeps, by a write to its eventfd. It is called as
 * domi_runtime_hooks.wake. Any thread may call this. */
void domi_thread_wake_by_eventfd(domi_manager *manager);

/* ---- spin.c -----------------------------------------------------------------------------------*/

/* Spinning: how a thread looks for work before it parks. The thread itself calls these
 * functions. */

/* Spin: look for work for at most thread->spin_ns. Returns true if something came that the loop
 * has to handle. */
bool domi_thread_spin_for_work(domi_thread *thread);

/* Set how long the next rest spins (`spin_ns`), by the length of the rest that has just ended. */
void domi_thread_adapt_spin_time(domi_thread *thread);

/* ---- stand_in.c -------------------------------------------------------------------------------*/

/* The sleepers that a thread has to wake, and the stand-in: it runs an actor in place of a
 * sleeper, which then need not wake (contract: Park and wake). */

/* Decide, after a sleep that began at `asleep_ns`, for how long the thread may stand in for
 * sleepers and not wake them (idle.standIn), and whether its next sleep is a doze. Called by the
 * thread itself. */
void domi_thread_decide_whether_to_stand_in(domi_thread *thread, uint64_t asleep_ns);

/* Returns when a sleep that may last until `until_ns` has to end: sooner than that if the thread
 * is to doze. */
uint64_t domi_thread_shorten_sleep_end_to_doze(const domi_thread *thread, uint64_t until_ns);

/* True if a sleep that ends at `until_ns` is a doze: others may stand in for the sleeping thread
 * then. */
bool domi_thread_is_sleep_a_doze(const domi_thread *thread, uint64_t until_ns);

/* Wake the sleeping threads that this thread has noted (domi_manager_notify_of_push), or stand in
 * for them if it `is_idle` (has no state actor to run). Called by the thread itself, in phase 3, at
 * each look, and before it sleeps. */
void domi_thread_wake_or_replace_sleepers(domi_thread *thread, bool is_idle);

/* Wake all sleepers that the thread has noted, and let it wake others at once from now on,
 * because it has left its loop. */
void domi_thread_stop_noting_sleepers(domi_thread *thread);

/* ---- trim.c -----------------------------------------------------------------------------------*/

/* The trim of a thread's slabs (house/message/trim.h), in small steps. */

/* Trim the slabs of a thread in one step over at most `objects` objects. Returns true if there
 * may be more to free. Called by the thread itself. */
bool domi_thread_trim_slabs(domi_thread *thread, uint32_t objects);

/* Trim the slabs of a thread that has nothing else to do; once a tick at most while there is
 * nothing to free. Returns true if there may be more to free. */
bool domi_thread_trim_slabs_if_idle(domi_thread *thread);

/* ---- follow.c ---------------------------------------------------------------------------------*/

/* How a thread of the loop follows the orders of the system (runtime/system/orders.h). */

/* Follow the orders of the system: apply a changed configuration, and begin the step of a stop
 * that is wanted. Called by the thread itself, in its phase 2. */
void domi_thread_follow_orders(domi_thread *thread);

/* ---- follow_change ----------------------------------------------------------------------------*/

/* How a thread of the loop applies a change of the configuration. */

/* Set what the thread derives from keys of its configuration. Called by the thread itself, or by
 * its maker before it runs. */
void domi_thread_apply_config_values(domi_thread *thread);

/* Take over the configuration as it is now, after it has changed. Called by the thread itself,
 * in its phase 2. */
void domi_thread_apply_changed_config(domi_thread *thread);

#endif
