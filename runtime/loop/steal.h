/* Stealing, for both sides: the thief, which looks for a house to borrow, and the victim, which
 * exposes some houses. The thread itself calls these functions. */
#ifndef DOMI_RUNTIME_LOOP_STEAL_H
#define DOMI_RUNTIME_LOOP_STEAL_H

#include "runtime/system/thread.h"

/* Add that `houses` houses have run in `ns` nanoseconds to the thread's average length of a run. */
void domi_thread_add_runs_to_average(domi_thread *thread, uint32_t houses, uint64_t ns);

/* Returns how many houses run before home looks for the first time (M2), if `count` houses are
 * ready at the beginning of its phase 3. */
uint32_t domi_thread_count_runs_before_first_look(const domi_thread *thread, uint32_t count);

/* Returns how many houses run before home looks again (M2), if `houses` of them ran before the last
 * look. */
uint32_t domi_thread_count_runs_before_next_look(const domi_thread *thread, uint32_t houses);

/* Publish that `count` houses are ready in this thread's queue; thieves and reports read the
 * number. */
void domi_thread_publish_ready_count(domi_thread *thread, uint32_t count);

/* Expose some houses of `queue` if thieves want them, and take back those that no thief wants. A
 * victim calls this at each look. `queue` has the ready houses that its phase 3 runs. */
void domi_thread_expose_or_take_back_houses(domi_thread *thread, domi_queue *queue);

/* A thread calls domi_thread_note_it_had_work() if it had work of its own in an iteration, and
 * domi_thread_try_to_steal_house() if it had none. domi_thread_try_to_steal_house() returns true if
 * the thread must not sleep yet; if stealing.loan is set then, the caller runs that loan first
 * (domi_thread_run_borrowed_house). */
void domi_thread_note_it_had_work(domi_thread *thread);
bool domi_thread_try_to_steal_house(domi_thread *thread);

/* Run the house that the thread has borrowed as stealing.loan, and give it back to its home.
 * `stands_in`: it was borrowed from a sleeper, and not stolen. */
void domi_thread_run_borrowed_house(domi_thread *thread, bool stands_in);

/* True if a victim has woken this thread to steal, and the thread has not looked for houses
 * since. */
bool domi_thread_is_woken_to_steal(const domi_thread *thread);

#endif
