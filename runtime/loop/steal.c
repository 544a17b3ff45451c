/* Stealing (contract: Stealing): an idle thread borrows one house at a time from a thread that has
 * too many.
 *
 * The condition is readies > floor && idleCount * readies >= aggression. `readies` is how many
 * houses are ready at the victim, `idleCount` how many iterations in a row the thief had no work of
 * its own. If the condition holds, the thief counts itself among the victim's `thieves`. Only then,
 * at its next look, the victim exposes up to `floor` of its surplus houses. The victim takes them
 * back if no thief wants them or it has no other work. So while no thread is idle, nothing is
 * exposed.
 *
 * Houses whose runs are on average shorter than a loan costs are not lent, because their thread
 * alone is faster (`minRun`; with many short runs one thread alone handles 34 million messages a
 * second, and 7 million with loans).
 *
 * A thread that sleeps cannot count its iterations. So a victim with more than `floor` ready houses
 * wakes one sleeper, and no other one until that sleeper has looked for houses (`waking` of the
 * system). A thief that has waited long and was shown no house sleeps, and a victim that could show
 * none wakes nobody for a while. */
#include "runtime/loop/steal.h"

#include "base/probe.h"
#include "house/dispatch/loan.h"
#include "runtime/loop/pairs.h"
#include "runtime/loop/spans.h"
#include "runtime/system/monitor.h"

/* Number of iterations in which a thread that was woken to steal looks for houses of others before
 * it sleeps again. */
#define WOKEN_LOOKS 16u

/* Most threads at which a victim looks for a sleeper to wake. */
#define SLEEPERS_MAX 8u

/* Nanoseconds for which a victim exposes nothing and wakes nobody, after all its houses were
 * pinned or thieves did not take the houses that it had exposed. */
#define ALONE_NS UINT64_C(10000000)

/* Nanoseconds between two looks of home, about, if its houses run for long. */
#define LOOK_NS UINT64_C(50000)

/* Nanoseconds after which exposed houses are taken back, if thieves have taken none of them in
 * that time. */
#define STALE_NS UINT64_C(2000000)

/* Returns scheduler.steal.floor: a thread that has no more ready houses than this lends none. */
static uint32_t get_steal_floor(const domi_thread *thread)
{
    return thread->config->scheduler.steal.floor;
}

bool domi_thread_is_woken_to_steal(const domi_thread *thread)
{
    /* seq_cst: a park calls this in its second look, and that pairs with the exchange of
     * `waking` in wake_idle_thread_to_steal(): one of the two threads sees what the other has
     * written. */
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&thread->system->waking,
                                memory_order_seq_cst) == thread->manager.index + 1;
}

/* If this thread was woken to steal, note that it has looked for houses, so that another sleeper
 * may be woken. */
static void note_that_woken_thread_has_looked(domi_thread *thread)
{
    if (domi_thread_is_woken_to_steal(thread))
        atomic_store_explicit(&thread->system->waking, 0, memory_order_relaxed);
}

/* --- the thief -------------------------------------------------------------------------------- */

/* Stop wanting houses of the thread that is the thief's victim now, if it has one. */
static void abandon_victim(domi_thread *thread)
{
    domi_stealing *stealing = &thread->stealing;

    if (stealing->victim == DOMI_NO_VICTIM)
        return;
    /* Relaxed: `thieves` is only a hint to the victim; the houses themselves are taken under a
     * lock. */
    atomic_fetch_sub_explicit(&thread->manager.managers[stealing->victim]->loans.thieves, 1,
                              memory_order_relaxed);
    stealing->victim = DOMI_NO_VICTIM;
}

static bool has_thread_too_many_ready_houses(const domi_thread *thread, uint32_t index)
{
    const domi_manager *manager = thread->manager.managers[index];
    uint64_t readies = atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&manager->loans.lendable,
                                            memory_order_relaxed);

    return readies > get_steal_floor(thread) &&
           thread->stealing.idle_count * readies >= thread->config->scheduler.steal.aggression;
}

/* Make the thread `index` the victim of this thief, which counts itself there as one of the
 * thieves. */
static void choose_thread_as_victim(domi_thread *thread, uint32_t index)
{
    thread->stealing.victim = index;
    atomic_fetch_add_explicit(&thread->manager.managers[index]->loans.thieves, 1,
                              memory_order_relaxed);
    domi_counter_add(&thread->counters.steals_wanted, 1);
}

/* Look at `count` threads from the thread `start` on. Returns the index of the first one that
 * has too many ready houses, or DOMI_NO_VICTIM. */
static uint32_t find_thread_with_too_many_houses(const domi_thread *thread, uint32_t start,
                                                 uint32_t count)
{
    uint32_t threads = thread->manager.threads;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = (start + i) % threads;
        if (index != thread->manager.index && has_thread_too_many_ready_houses(thread, index))
            return index;
    }
    return DOMI_NO_VICTIM;
}

/* Keep the thief's victim if it still has too many ready houses, or choose another one,
 * beginning at a random thread. Returns false if no thread has too many. */
static bool keep_or_choose_victim(domi_thread *thread)
{
    domi_stealing *stealing = &thread->stealing;
    uint32_t threads = thread->manager.threads;

    if (stealing->victim != DOMI_NO_VICTIM &&
        has_thread_too_many_ready_houses(thread, stealing->victim))
        return true;
    abandon_victim(thread);
    uint32_t start = (uint32_t)domi_random_below(&stealing->random, threads);
    uint32_t index = find_thread_with_too_many_houses(thread, start, threads);
    if (index == DOMI_NO_VICTIM)
        return false;
    stealing->patience = 0;
    choose_thread_as_victim(thread, index);
    return true;
}

void domi_thread_note_it_had_work(domi_thread *thread)
{
    thread->stealing.idle_count = 0;
    abandon_victim(thread);
    note_that_woken_thread_has_looked(thread);
}

/* True if the last iteration was idle: it ran no house of this thread and reaped no completion
 * of io. */
static bool was_iteration_idle(domi_thread *thread)
{
    uint64_t runs = domi_counter_read(&thread->manager.counters.runs);
    bool idle = runs == thread->stealing.runs_seen && thread->brought == 0;

    thread->stealing.runs_seen = runs;
    return idle;
}

/* Give up stealing, because no thread has too many houses or the thief has waited in vain.
 * Returns true if the thread may sleep; a thread that was woken to steal looks some more times
 * before that. */
static bool give_up_stealing(domi_thread *thread)
{
    if (domi_thread_is_woken_to_steal(thread) && thread->stealing.victim == DOMI_NO_VICTIM &&
        thread->stealing.idle_count < WOKEN_LOOKS)
        return false;
    abandon_victim(thread);
    note_that_woken_thread_has_looked(thread);
    return true;
}

/* Take an exposed house of the thief's victim or of another one. A thief never waits for a lock:
 * if it gets nothing although the victim has exposed houses, another thread holds the lock, and
 * the thief goes on to the next thread for which the condition holds. It tries each thread once;
 * if all locks are held, it comes again in the next iteration, as long as its patience lasts. */
static domi_loan *take_loan_from_any_victim(domi_thread *thread)
{
    domi_stealing *stealing = &thread->stealing;
    uint32_t threads = thread->manager.threads;
    uint32_t first = stealing->victim;

    for (uint32_t passed = 0;;) {
        domi_manager *victim = thread->manager.managers[stealing->victim];
        domi_loan *loan = domi_loan_take_exposed_house(&thread->manager, victim);
        if (loan != NULL || domi_loans_count_shared_houses(victim) == 0)
            return loan;
        uint32_t next =
            find_thread_with_too_many_houses(thread, first + passed + 1, threads - 1 - passed);
        if (next == DOMI_NO_VICTIM)
            return NULL;
        passed = (next + threads - first) % threads;
        abandon_victim(thread);
        /* the thief's `patience` goes on counting, because it was idle all the time */
        choose_thread_as_victim(thread, next);
    }
}

bool domi_thread_try_to_steal_house(domi_thread *thread)
{
    domi_stealing *stealing = &thread->stealing;

    if (!was_iteration_idle(thread)) {
        domi_thread_note_it_had_work(thread);
        return false;
    }
    stealing->idle_count++;
    if (!thread->config->scheduler.steal.enabled || thread->manager.threads == 1)
        return false;
    if (!keep_or_choose_victim(thread))
        return !give_up_stealing(thread);
    /* the thief stamps the time, because it may wait for long, and its timers need the present
     * time */
    domi_thread_stamp_time(thread, DOMI_SPAN_OTHER);
    stealing->loan = take_loan_from_any_victim(thread);
    if (stealing->loan != NULL) {
        note_that_woken_thread_has_looked(thread);
        stealing->patience = 0;
        return true;
    }
    domi_pause();
    if (++stealing->patience <= stealing->patience_max)
        return true;
    return !give_up_stealing(thread);
}

void domi_thread_run_borrowed_house(domi_thread *thread, bool stands_in)
{
    domi_loan *loan = thread->stealing.loan;
    uint32_t victim = loan->house->home->index;

    domi_monitor_wake_if_resting(&thread->system->monitor);
    thread->stealing.loan = NULL;
    /* the thief stamps the time, because its time must not be before the time that the house has
     * seen at home */
    domi_thread_stamp_time(thread, DOMI_SPAN_OTHER);
    domi_pairs_count_run_for_victim(thread, victim, stands_in);
    DOMI_PROBE_4(steal, thread->manager.index, victim, loan->house->behaviour, stands_in);
    domi_spans_record_begin_of_loan(thread, loan->house->behaviour, victim, stands_in);
    domi_loan_run_house_and_return(&thread->manager, loan);
    domi_spans_record_end_of_loan(thread, stands_in);
    domi_counter_add(&thread->counters.steals, 1);
    thread->stealing.runs_seen = domi_counter_read(&thread->manager.counters.runs);
    domi_thread_stamp_time(thread, DOMI_SPAN_STATE);
}

/* --- the victim ------------------------------------------------------------------------------- */

/* True if a thread sleeps or spins; a thread that spins notices `waking` without being woken. */
static bool does_thread_sleep_or_spin(const domi_manager *other)
{
    uint32_t word = domi_park_read_word(&other->park);

    return domi_park_is_word_of_sleeper(word) || word == DOMI_PARK_SPINNING;
}

/* Wake one idle thread, so that it steals. Returns true if a thread was woken. */
static bool wake_idle_thread_to_steal(domi_thread *thread)
{
    domi_manager *manager = &thread->manager;
    uint32_t threads = manager->threads;
    uint32_t looks = threads < SLEEPERS_MAX ? threads : SLEEPERS_MAX;

    if (atomic_load_explicit(&thread->system->waking, memory_order_relaxed) != 0)
        return false;
    for (uint32_t i = 0; i < looks; i++) {
        uint32_t index = thread->stealing.next_sleeper++ % threads;
        domi_manager *other = manager->managers[index];
        uint32_t none = 0;

        if (index == manager->index || !does_thread_sleep_or_spin(other))
            continue;
        /* seq_cst: this store comes before the look at the other thread's park word, as with a
         * put. That thread may have been woken for another reason and be about to sleep; then
         * its second look finds this store. */
        if (!atomic_compare_exchange_strong_explicit(&thread->system->waking, &none, index + 1,
                                                     memory_order_seq_cst, memory_order_relaxed))
            return false; /* another victim has woken a thread at the same time */
        domi_manager_notify_of_push(manager, other);
        return true;
    }
    return false;
}

/* Note how many houses are exposed now, and that this number is new. */
static void note_count_of_exposed_houses(domi_thread *thread, uint32_t shown)
{
    thread->stealing.shown = shown;
    thread->stealing.shown_since_ns = thread->stamp_ns;
}

/* Returns whether the exposed houses have waited for thieves for too long. A thief that counts
 * itself in `thieves` may be in a long handler, and the houses must not starve meanwhile. */
static bool have_houses_been_exposed_too_long(domi_thread *thread, uint32_t shown)
{
    if (shown < thread->stealing.shown)
        note_count_of_exposed_houses(thread, shown);
    if (thread->stamp_ns - thread->stealing.shown_since_ns < STALE_NS)
        return false;
    thread->stealing.alone_until_ns = thread->stamp_ns + ALONE_NS;
    return true;
}

/* True if this thread's runs are long enough to be lent. A loan costs about a microsecond: its
 * record, three cache lines to and fro, a look. */
static bool are_runs_long_enough_to_lend(const domi_thread *thread)
{
    return thread->stealing.run_ns >= thread->stealing.min_run_ns;
}

void domi_thread_add_runs_to_average(domi_thread *thread, uint32_t houses, uint64_t ns)
{
    if (houses != 0)
        thread->stealing.run_ns = (3 * thread->stealing.run_ns + ns / houses) / 4;
}

/* Returns how many houses home runs between two looks: deadlineCheckEvery, or fewer if that many
 * would take longer than LOOK_NS by the average of the last runs. */
static uint32_t count_houses_between_looks(const domi_thread *thread)
{
    uint32_t most = thread->config->scheduler.deadline_check_every;
    uint64_t run_ns = thread->stealing.run_ns;

    if (run_ns * most <= LOOK_NS)
        return most;
    return run_ns >= LOOK_NS ? 1 : (uint32_t)(LOOK_NS / run_ns);
}

/* The average is that of earlier runs, which may be out of date. So if there are houses for
 * thieves, home looks after the first house, and then after twice as many as before each time,
 * and notices at once if runs have become long. */
uint32_t domi_thread_count_runs_before_first_look(const domi_thread *thread, uint32_t count)
{
    if (count <= get_steal_floor(thread) || thread->manager.threads == 1 ||
        !thread->config->scheduler.steal.enabled)
        return count_houses_between_looks(thread);
    return 1;
}

uint32_t domi_thread_count_runs_before_next_look(const domi_thread *thread, uint32_t houses)
{
    uint32_t most = count_houses_between_looks(thread);

    return most / 2 < houses ? most : 2 * houses;
}

void domi_thread_publish_ready_count(domi_thread *thread, uint32_t count)
{
    /* Exposed houses are counted among the ready ones, or thieves would turn away from the
     * houses that they have asked for. */
    uint32_t readies = count + domi_loans_count_shared_houses(&thread->manager);

    atomic_store_explicit(&thread->manager.loans.readies, readies, memory_order_relaxed);
    atomic_store_explicit(&thread->manager.loans.lendable,
                          are_runs_long_enough_to_lend(thread) ? readies : 0, memory_order_relaxed);
}

void domi_thread_expose_or_take_back_houses(domi_thread *thread, domi_queue *queue)
{
    domi_manager *manager = &thread->manager;
    uint32_t floor = get_steal_floor(thread);
    uint32_t shown = domi_loans_count_shared_houses(manager);

    if ((shown == 0 && queue->count <= floor) || !thread->config->scheduler.steal.enabled)
        return;
    /* Houses that were exposed for a woken sleeper are not taken back before that thread has
     * looked, although it is not counted in `thieves` yet. */
    bool wanted =
        are_runs_long_enough_to_lend(thread) &&
        (atomic_load_explicit(&manager->loans.thieves, memory_order_relaxed) != 0 ||
         (shown != 0 && atomic_load_explicit(&thread->system->waking, memory_order_relaxed) != 0));
    if (shown != 0 &&
        (!wanted || queue->count == 0 || have_houses_been_exposed_too_long(thread, shown))) {
        (void)domi_loans_take_houses_back(manager, queue);
        return;
    }
    if (queue->count <= floor || thread->stamp_ns < thread->stealing.alone_until_ns)
        return;
    /* Houses are exposed in the same look in which a sleeper is woken, so that it finds one at
     * once: with long runs it would sleep again before the next look of home. */
    if (manager->threads > 1 && are_runs_long_enough_to_lend(thread) &&
        wake_idle_thread_to_steal(thread))
        wanted = true;
    if (wanted && shown < floor) {
        uint32_t surplus = queue->count - floor;
        uint32_t most = surplus < floor - shown ? surplus : floor - shown;
        uint32_t more = domi_loans_expose_houses(manager, queue, most);
        if (more + shown == 0)
            thread->stealing.alone_until_ns = thread->stamp_ns + ALONE_NS;
        if (more != 0)
            note_count_of_exposed_houses(thread, more + shown);
    }
}
