/* The rest of a thread of the loop: the steps of base/park.h, with a sleep in the ring (contract:
 * Park and wake).
 *
 * Before the first step the thread arms the wake poll, so that a write to its eventfd completes in
 * the ring. The eventfd is never read, because each write completes the poll. A timer, or the cap
 * of sleeps, ends the sleep, too. */
#include "runtime/loop/steps.h"

#include "base/probe.h"
#include "house/dispatch/incoming.h"
#include "house/dispatch/phases.h"
#include "house/message/pool.h"
#include "house/message/trim.h"
#include "io/completions/ring.h"
#include "runtime/loop/spans.h"
#include "runtime/loop/steal.h"
#include "runtime/system/monitor.h"

void domi_thread_wake_by_eventfd(domi_manager *manager)
{
    domi_thread *thread = manager->thread;

    thread->io.backend->sockets->wake(thread->io.ring, thread->io.wake_fd);
}

/* Count whether a sleep has ended for a reason. `put`: other threads had put something for the
 * thread when it ended. If no reason is found, the completions of the next reap decide, in
 * domi_thread_count_empty_wakeup(). */
static void record_whether_sleep_had_reason(domi_thread *thread, uint32_t word, bool put,
                                            uint64_t until_ns)
{
    bool found = put || (word == DOMI_PARK_NOTIFIED && domi_manager_has_work(&thread->manager)) ||
                 domi_thread_is_woken_to_steal(thread) ||
                 domi_thread_has_orders_to_follow(thread, memory_order_relaxed);
    bool due = thread->stamp_ns >= until_ns;

    if (word == DOMI_PARK_NOTIFIED) {
        domi_counter_add(&thread->counters.wakeups_received, 1);
        /* the thread looks at memory and timers at once, because the message may have changed
         * them */
        thread->next_tick_ns = 0;
    }
    if (thread->capped && due && put && word == DOMI_PARK_SLEEPING)
        domi_counter_add(&thread->counters.cap_wakeups_with_work, 1);
    thread->judge_wakeup = !found && !due;
    /* The monitor is not woken if only the cap has ended the sleep, because the thread then
     * sleeps again at once; if the thread finds work after all, its phases wake the monitor. */
    if (found)
        domi_monitor_wake_if_resting(&thread->system->monitor);
    if (found || due)
        thread->empty_wakeups = 0;
}

void domi_thread_count_empty_wakeup(domi_thread *thread)
{
    thread->judge_wakeup = false;
    if (thread->brought != 0) {
        thread->empty_wakeups = 0;
        return;
    }
    domi_counter_add(&thread->counters.wakeups_empty, 1);
    if (++thread->empty_wakeups < thread->config->io.empty_wakeups_max)
        return;
    /* After so many wake-ups without a reason, the wake poll itself may be what wakes the
     * thread, so it is armed anew. */
    thread->empty_wakeups = 0;
    domi_counter_add(&thread->counters.wake_rearms, 1);
    domi_io_arm_wake_poll(&thread->io, true);
}

/* Take the first two steps of base/park.h for the thread that owns the park word. Returns true
 * if nothing was left to do; then the word is SLEEPING, or NOTIFIED already. */
static bool look_and_fall_asleep(domi_thread *thread, uint64_t until_ns)
{
    domi_manager *manager = &thread->manager;

    if (!domi_belts_turn_all_off(manager))
        return false;
    /* No timer is due before `until_ns`, so the thread looks at its timers only then, although
     * io may wake it every few microseconds. */
    if (until_ns < thread->next_tick_ns)
        thread->next_tick_ns = until_ns;
    thread->until_ns = until_ns;
    domi_thread_wake_or_replace_sleepers(thread, false);
    domi_pool_push_chains_to_owners(manager);
    if (until_ns <= thread->stamp_ns)
        return false;
    domi_io_arm_wake_poll(&thread->io, false);
    /* the park is counted before the park word is SLEEPING, because from then on a sender may wake
     * the thread and count that */
    domi_counter_add(&thread->counters.parks, 1);
    domi_park_begin_look_before_sleep(&manager->park);
    domi_thread_stamp_time(thread, DOMI_SPAN_OTHER);
    /* The words that other threads write are looked at a second time here, and the clock too: a
     * timer may have become due since `until_ns` was computed. */
    if (domi_thread_has_work(thread) || domi_thread_is_woken_to_steal(thread) ||
        until_ns <= thread->stamp_ns) {
        (void)domi_park_end_sleep(&manager->park);
        return false;
    }
    domi_thread_mark_stamp_as_asleep(thread);
    DOMI_PROBE_2(park__begin, manager->index, until_ns);
    domi_spans_record_begin_of_park(thread);
    domi_park_end_look_and_sleep(&manager->park, domi_thread_is_sleep_a_doze(thread, until_ns));
    return true;
}

void domi_thread_end_rest(domi_thread *thread, uint64_t until_ns)
{
    domi_manager *manager = &thread->manager;
    uint64_t asleep_ns = thread->stamp_ns;
    /* Read before the sleep ends for others: a sleeping thread has only what other threads put
     * for it, and a stand-in may take that away at this moment. */
    bool put = domi_manager_has_foreign_puts(manager);
    uint32_t word = domi_park_end_sleep(&manager->park);

    put = put && domi_manager_has_work(manager);
    DOMI_PROBE_2(park__end, manager->index, word);
    domi_spans_record_end_of_park(thread);
    domi_thread_stamp_time(thread, DOMI_SPAN_ENTER);
    domi_thread_decide_whether_to_stand_in(thread, asleep_ns);
    if (thread->config->scheduler.idle.spin_ns != 0)
        domi_thread_adapt_spin_time(thread);
    record_whether_sleep_had_reason(thread, word, put, until_ns);
}

/* True if there is anything to do before the thread may rest. With a backend whose sends need no
 * enter, the sends of this iteration are submitted first, because most of them complete at once:
 * completions in the enter that sleeps would end the sleep, and cost an iteration. */
static bool submit_sends_and_look_for_work(domi_thread *thread)
{
    if (!domi_manager_has_ready_actor(&thread->manager) &&
        domi_io_carry_out_queued_sends(&thread->io)) {
        domi_thread_stamp_time(thread, DOMI_SPAN_ENTER);
        (void)domi_io_reap_completions(&thread->io);
    }
    return domi_thread_has_work(thread);
}

bool domi_thread_begin_rest(domi_thread *thread, uint64_t *ret_until_ns)
{
    domi_system_check_not_forked(thread->system);
    if (thread->manager.pool.chained >= DOMI_CHAINED_MAX)
        domi_pool_push_chains_to_owners(&thread->manager);
    if (submit_sends_and_look_for_work(thread)) {
        domi_thread_note_it_had_work(thread);
        return false;
    }
    /* messages that io brings from now on do not have to wait for a phase 3 */
    thread->state_took_ns = 0;
    if (domi_thread_try_to_steal_house(thread))
        return false;
    if (domi_thread_trim_slabs_if_idle(thread))
        return false;
    if (thread->config->scheduler.idle.spin_ns != 0 && domi_thread_spin_for_work(thread))
        return false;
    *ret_until_ns =
        domi_thread_shorten_sleep_end_to_doze(thread, domi_thread_get_sleep_end(thread));
    thread->capped = *ret_until_ns == thread->stamp_ns + DOMI_PARK_CAP_NS;
    return look_and_fall_asleep(thread, *ret_until_ns);
}

void domi_thread_rest_until_work(domi_thread *thread)
{
    uint64_t until_ns;

    if (!domi_thread_begin_rest(thread, &until_ns)) {
        if (thread->stealing.loan != NULL)
            domi_thread_run_borrowed_house(thread, false);
        return;
    }
    domi_io_enter_ring(&thread->io, 1, until_ns - thread->stamp_ns);
    domi_thread_end_rest(thread, until_ns);
}
