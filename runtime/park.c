/* Park and wake (DESIGN 6).
 *
 * The owner arms the wake poll, exchanges its word to SLEEPING, looks again everywhere, and enters
 * the ring for one completion. A sender puts (a read-modify-write), then looks at the word, and
 * only who exchanges SLEEPING for NOTIFIED writes to the eventfd (M12). Both sides are seq_cst
 * read-modify-writes or loads, so they cannot both miss; bare fences would do as well but
 * ThreadSanitizer cannot see them. The eventfd is never read: each write fires the poll. */
#include "runtime/system.h"

#include "base/prefetch.h"
#include "house/pool.h"
#include "house/trim.h"

#include <errno.h>
#include <sys/eventfd.h>

void domi_thread_wake(domi_manager *manager)
{
    domi_thread *thread = manager->thread;

    /* EAGAIN would need 2^64 - 2 writes; an eventfd knows no other error but EINTR. */
    while (eventfd_write(thread->io.wake_fd, 1) != 0 && errno == EINTR)
        continue;
}

bool domi_thread_has_work(const domi_thread *thread)
{
    return domi_manager_has_work(&thread->manager) || domi_io_has_work(&thread->io) ||
           atomic_load_explicit(thread->wanted, memory_order_seq_cst) != thread->doing;
}

uint64_t domi_thread_due_ns(const domi_thread *thread)
{
    uint64_t due_ns = domi_wheel_next_ns(&thread->manager.wheel);
    uint64_t deadlines_ns = domi_wheel_next_ns(&thread->manager.deadlines);
    uint64_t io_ns = domi_wheel_next_ns(&thread->io.wheel);

    if (deadlines_ns < due_ns)
        due_ns = deadlines_ns;
    if (io_ns < due_ns)
        due_ns = io_ns;
    /* A drain looks at its channels at each tick: their actors' conversations may have ended. */
    if (thread->io.draining && thread->stamp_ns + DOMI_WHEEL_TICK_NS < due_ns)
        due_ns = thread->stamp_ns + DOMI_WHEEL_TICK_NS;
    return due_ns;
}

/* When the next timer is due, at most the cap. */
static uint64_t sleep_until(const domi_thread *thread)
{
    uint64_t due_ns = domi_thread_due_ns(thread);
    uint64_t cap_ns = thread->stamp_ns + DOMI_PARK_CAP_NS;
    uint64_t look_ns = thread->stamp_ns + thread->config->memory.interval_ns;

    /* What has paused for want of memory is to go on, and nobody else may be awake to see when. */
    if (thread->manager.pressure_seen != DOMI_PRESSURE_NONE && look_ns < due_ns)
        due_ns = look_ns;
    return due_ns < cap_ns ? due_ns : cap_ns;
}

/* Count what the sleep was good for. `put` tells that something had been put when it ended. What
 * the ring has brought is known after the next reap. */
static void woke(domi_thread *thread, uint32_t word, bool put, uint64_t until_ns)
{
    bool found = put || domi_manager_has_work(&thread->manager) || domi_thread_is_waking(thread) ||
                 atomic_load_explicit(thread->wanted, memory_order_relaxed) != thread->doing;
    bool due = thread->stamp_ns >= until_ns;

    if (word == DOMI_PARK_NOTIFIED)
        domi_counter_add(&thread->counters.wakeups_received, 1);
    if (thread->capped && due && put && word == DOMI_PARK_SLEEPING)
        domi_counter_add(&thread->counters.cap_wakeups_with_work, 1);
    thread->judge_wakeup = !found && !due;
    /* Who was woken by the cap falls asleep again at once; if not, the phases attend. */
    if (found)
        domi_monitor_attend(&thread->system->monitor);
    if (found || due)
        thread->empty_wakeups = 0;
}

void domi_thread_judge_wakeup(domi_thread *thread)
{
    thread->judge_wakeup = false;
    if (thread->brought != 0) {
        thread->empty_wakeups = 0;
        return;
    }
    domi_counter_add(&thread->counters.wakeups_empty, 1);
    if (++thread->empty_wakeups < DOMI_EMPTY_WAKEUPS_MAX)
        return;
    thread->empty_wakeups = 0;
    domi_counter_add(&thread->counters.wake_rearms, 1);
    domi_io_arm_wake(&thread->io, true);
}

/* True: the word is SLEEPING, and nothing was left then. */
static bool fall_asleep(domi_thread *thread, uint64_t until_ns)
{
    domi_manager *manager = &thread->manager;

    thread->next_tick_ns = 0; /* after a sleep the wheels are looked at */
    domi_pool_flush(manager);
    if (until_ns <= thread->stamp_ns)
        return false;
    domi_io_arm_wake(&thread->io, false);
    domi_counter_add(&thread->counters.parks, 1); /* counted first: from here on one may be woken */
    /* seq_cst exchange, then seq_cst looks: pairs with domi_manager_notify(). */
    atomic_exchange_explicit(&manager->park, DOMI_PARK_SLEEPING, memory_order_seq_cst);
    domi_thread_stamp(thread, DOMI_SPAN_OTHER);
    /* A timer may have come due since it was looked for. */
    if (domi_thread_has_work(thread) || domi_thread_is_waking(thread) ||
        until_ns <= thread->stamp_ns) {
        atomic_exchange_explicit(&manager->park, DOMI_PARK_RUNNING, memory_order_seq_cst);
        return false;
    }
    domi_thread_stamp_asleep(thread);
    return true;
}

void domi_thread_rest_end(domi_thread *thread, uint64_t until_ns)
{
    domi_manager *manager = &thread->manager;
    bool put = domi_manager_has_work(manager);
    uint32_t word =
        atomic_exchange_explicit(&manager->park, DOMI_PARK_RUNNING, memory_order_seq_cst);

    domi_thread_stamp(thread, DOMI_SPAN_ENTER);
    woke(thread, word, put, until_ns);
}

#define SPIN_LOOKS 16

/* Something arrived: fetch the house while the way there is taken. */
static bool look_arrivals(domi_manager *manager)
{
    domi_pause();
    domi_house *house = atomic_load_explicit(&manager->arrivals, memory_order_relaxed);
    if (house == NULL)
        return false;
    domi_prefetch_write(house);
    return true;
}

/* What arrived may be all that is to do: then phase 3 takes it, without a turn of the whole loop,
 * which is half of what a message between two spinning threads costs. The ring waits no longer for
 * it than it waits for a phase 3. False if there is something for the other phases. */
static bool take_at_once(domi_thread *thread)
{
    domi_manager *manager = &thread->manager;

    if (thread->stamp_ns - thread->io_start_ns >= thread->config->scheduler.min_budget_ns)
        return false;
    (void)domi_manager_arrivals(manager);
    if (manager->ready[DOMUS_CHANNELS].count != 0 || manager->mounting.head != NULL)
        return false;
    thread->completions = thread->brought = 0;
    domi_phase_state(thread);
    return true;
}

/* Until when to look: a timer ends it too. */
static uint64_t spin_until(const domi_thread *thread)
{
    uint64_t until_ns = thread->stamp_ns + thread->config->scheduler.idle.spin_ns;
    uint64_t due_ns = sleep_until(thread);

    return due_ns < until_ns ? due_ns : until_ns;
}

/* Look for `idle.spin` before parking: a wake-up costs more than that many nanoseconds. True if
 * something came that the loop has to take. */
static bool spin(domi_thread *thread)
{
    uint64_t until_ns = spin_until(thread);
    bool found = false;

    atomic_store_explicit(&thread->counters.spinning, 1, memory_order_relaxed);
    if (domi_io_submit(&thread->io)) /* answers do not wait for the end of the spin */
        domi_thread_stamp(thread, DOMI_SPAN_ENTER);
    while (!found && domi_clock_now(thread->clock) < until_ns) {
        bool arrived = false;

        for (int i = 0; i < SPIN_LOOKS && !arrived; i++)
            arrived = look_arrivals(&thread->manager);
        if (arrived) {
            domi_thread_stamp(thread, DOMI_SPAN_OTHER);
            found = !take_at_once(thread);
            until_ns = spin_until(thread);
        }
        found =
            found || domi_thread_has_work(thread) || thread->io.backend->pending(thread->io.ring);
    }
    atomic_store_explicit(&thread->counters.spinning, 0, memory_order_relaxed);
    domi_thread_stamp(thread, DOMI_SPAN_OTHER);
    return found;
}

bool domi_thread_rest_begin(domi_thread *thread, uint64_t *ret_until_ns)
{
    domi_system_not_forked(thread->system);
    if (thread->manager.chained >= DOMI_CHAINED_MAX)
        domi_pool_flush(&thread->manager);
    if (domi_thread_has_work(thread)) {
        domi_thread_busy(thread);
        return false;
    }
    if (domi_thread_steal(thread))
        return false;
    if (domi_thread_trim(thread, DOMI_TRIM_IDLE))
        return false;
    if (thread->config->scheduler.idle.spin_ns != 0 && spin(thread))
        return false;
    *ret_until_ns = sleep_until(thread);
    thread->capped = *ret_until_ns == thread->stamp_ns + DOMI_PARK_CAP_NS;
    return fall_asleep(thread, *ret_until_ns);
}

void domi_thread_rest(domi_thread *thread)
{
    uint64_t until_ns;

    if (!domi_thread_rest_begin(thread, &until_ns)) {
        if (thread->stealing.loan != NULL)
            domi_thread_repay(thread);
        return;
    }
    domi_io_enter(&thread->io, 1, until_ns - thread->stamp_ns);
    domi_thread_rest_end(thread, until_ns);
}
