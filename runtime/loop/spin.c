/* Spinning: a thread looks for work for a while before it parks (idle.spin), as long as that pays.
 *
 * A park and a wake-up cost some microseconds on both sides, so a thread that expects work soon
 * looks for it instead. The last rest tells how soon work comes. If a rest, spinning or asleep, was
 * shorter than `idle.spin`, the next rest may spin for `idle.spin`; after each longer rest the spin
 * is halved, until there is none. So a quiet thread costs no CPU, and a thread that is woken again
 * and again soon spins again. */
#include "runtime/loop/steps.h"

#include "base/prefetch.h"
#include "house/dispatch/phases.h"
#include "house/message/belt.h"
#include "io/completions/ring.h"
#include "runtime/loop/steal.h"

/* how often a spinning thread looks for messages between two reads of the clock */
#define LOOKS      16
#define WORTH_A_US 1000u /* nanoseconds; a shorter spin is not worth its reads of the clock */

/* Pause for a moment, and return whether a message from another thread has arrived; if one has,
 * its house is prefetched. */
static bool pause_and_check_for_arrivals(domi_manager *manager)
{
    domi_pause();
    domi_house *house = atomic_load_explicit(&manager->mail.arrivals, memory_order_relaxed);
    if (house == NULL)
        return domi_belts_have_mail(manager, memory_order_relaxed);
    domi_prefetch_write(house);
    return true;
}

/* If only messages to state actors have arrived, handle them by a phase 3 at once. This saves
 * the rest of an iteration, which is half of the cost of a message between two spinning threads.
 * The ring waits no longer for that than for a usual phase 3. Returns false if other phases have
 * something to do. */
static bool run_arrivals_at_once(domi_thread *thread)
{
    domi_manager *manager = &thread->manager;

    if (thread->stamp_ns - thread->io_start_ns >= thread->config->scheduler.min_budget_ns)
        return false;
    (void)domi_manager_take_arrivals(manager);
    if (manager->schedule.ready[DOMUS_CHANNELS].count != 0 ||
        manager->schedule.mounting.head != NULL)
        return false;
    thread->completions = thread->brought = 0;
    domi_thread_run_phase_state(thread);
    return true;
}

/* Returns the time at which the spin ends: after thread->spin_ns, but at the latest when the
 * next timer is due. */
static uint64_t time_at_end_of_spin(domi_thread *thread)
{
    uint64_t until_ns = thread->stamp_ns + thread->spin_ns;
    uint64_t due_ns = domi_thread_get_sleep_end(thread);

    return due_ns < until_ns ? due_ns : until_ns;
}

bool domi_thread_spin_for_work(domi_thread *thread)
{
    bool found = false;

    thread->rest_from_ns = thread->stamp_ns;
    if (thread->spin_ns == 0)
        return false;
    uint64_t until_ns = time_at_end_of_spin(thread);
    domi_park_set_spinning(&thread->manager.park, true);
    /* operations are submitted before the spin, so that answers do not wait for its end */
    if (domi_io_enter_ring_if_useful(&thread->io))
        domi_thread_stamp_time(thread, DOMI_SPAN_ENTER);
    uint64_t now_ns = domi_clock_now(thread->clock);
    while (!found && now_ns < until_ns) {
        bool arrived = false;

        for (int i = 0; i < LOOKS && !arrived; i++)
            arrived = pause_and_check_for_arrivals(&thread->manager);
        if (arrived) {
            domi_thread_stamp_time(thread, DOMI_SPAN_OTHER);
            domi_thread_adapt_spin_time(thread);
            found = !run_arrivals_at_once(thread);
            thread->rest_from_ns = thread->stamp_ns;
            until_ns = time_at_end_of_spin(thread);
            now_ns = thread->stamp_ns; /* the clock was read by the look at the end of phase 3 */
            /* the thread looks for messages again before it looks at the ring;
             * run_arrivals_at_once() limits how long the ring waits */
            continue;
        }
        found = domi_thread_has_work(thread) || domi_thread_is_woken_to_steal(thread) ||
                thread->io.backend->pending(thread->io.ring);
        now_ns = domi_clock_now(thread->clock);
    }
    domi_park_set_spinning(&thread->manager.park, false);
    domi_thread_stamp_time(thread, DOMI_SPAN_OTHER);
    if (found)
        domi_thread_adapt_spin_time(thread);
    return found;
}

void domi_thread_adapt_spin_time(domi_thread *thread)
{
    uint64_t most_ns = thread->config->scheduler.idle.spin_ns;

    if (thread->stamp_ns - thread->rest_from_ns < most_ns)
        thread->spin_ns = most_ns;
    else
        thread->spin_ns = thread->spin_ns / 2 < WORTH_A_US ? 0 : thread->spin_ns / 2;
}
