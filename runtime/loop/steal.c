/* Stealing (contract: Stealing): an idle thread borrows one house at a time from an overwhelmed
 * one.
 *
 * readies > floor && idleCount * readies >= aggression: readies is the victim's depth, idleCount
 * the thief's consecutive iterations without work of its own. A thief for whom it holds counts
 * itself among the victim's `thieves`; only then does the victim, at its next look, show up to
 * `floor` of its surplus houses, and it takes them back when nobody is after them or it has no
 * other work. So with nobody idle nothing is exposed.
 *
 * Houses that run shorter than a loan costs, on average, are not lent: their thread alone is faster
 * (`minRun`; many short runs: 34 million messages a second alone, 7 with loans).
 *
 * A sleeper cannot count. So a victim with more than `floor` ready houses wakes one sleeper, and no
 * further one before that one has looked (`waking`, the system's). A thief that has waited long
 * without being shown anything sleeps, and a victim that could show nothing wakes nobody for a
 * while. */
#include "house/dispatch/loan.h"
#include "runtime/system/system.h"

/* Iterations that a woken thread looks for work of others before it sleeps again. */
#define WOKEN_LOOKS 16u

/* Sleepers looked for at one look, at most. */
#define SLEEPERS_MAX 8u

/* All is pinned here, or thieves do not come for what they see: it shows nothing and wakes nobody
 * for so long. */
#define ALONE_NS UINT64_C(10000000)

/* Home looks up from its work about so often, if the houses run for long. */
#define LOOK_NS UINT64_C(50000)

/* What is shown, and has not become less for so long, is taken back. */
#define STALE_NS UINT64_C(2000000)

static uint32_t floor_of(const domi_thread *thread)
{
    return thread->config->scheduler.steal.floor;
}

bool domi_thread_is_waking(const domi_thread *thread)
{
    /* seq_cst: in the second look of a park, pairs with wake_sleeper(). */
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&thread->system->waking,
                                memory_order_seq_cst) == thread->manager.index + 1;
}

/* It has looked. */
static void end_waking(domi_thread *thread)
{
    if (domi_thread_is_waking(thread))
        atomic_store_explicit(&thread->system->waking, 0, memory_order_relaxed);
}

/* --- the thief -------------------------------------------------------------------------------- */

static void leave(domi_thread *thread)
{
    domi_stealing *stealing = &thread->stealing;

    if (stealing->victim == DOMI_NO_VICTIM)
        return;
    /* Relaxed: a hint, what is shown is taken under the lock. */
    atomic_fetch_sub_explicit(&thread->manager.managers[stealing->victim]->thieves, 1,
                              memory_order_relaxed);
    stealing->victim = DOMI_NO_VICTIM;
}

static bool is_overwhelmed(const domi_thread *thread, uint32_t index)
{
    const domi_manager *manager = thread->manager.managers[index];
    uint64_t readies = atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&manager->lendable,
                                            memory_order_relaxed);

    return readies > floor_of(thread) &&
           thread->stealing.idle_count * readies >= thread->config->scheduler.steal.aggression;
}

static void follow(domi_thread *thread, uint32_t index)
{
    thread->stealing.victim = index;
    atomic_fetch_add_explicit(&thread->manager.managers[index]->thieves, 1, memory_order_relaxed);
    domi_counter_add(&thread->counters.steals_wanted, 1);
}

/* Look at `count` threads from `start` on. Returns the first one that is overwhelmed, or
 * DOMI_NO_VICTIM when none is. */
static uint32_t find_overwhelmed(const domi_thread *thread, uint32_t start, uint32_t count)
{
    uint32_t threads = thread->manager.threads;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = (start + i) % threads;
        if (index != thread->manager.index && is_overwhelmed(thread, index))
            return index;
    }
    return DOMI_NO_VICTIM;
}

/* The victim it has, or another one, from a random one on. */
static bool choose(domi_thread *thread)
{
    domi_stealing *stealing = &thread->stealing;
    uint32_t threads = thread->manager.threads;

    if (stealing->victim != DOMI_NO_VICTIM && is_overwhelmed(thread, stealing->victim))
        return true;
    leave(thread);
    uint32_t start = (uint32_t)domi_random_below(&stealing->random, threads);
    uint32_t index = find_overwhelmed(thread, start, threads);
    if (index == DOMI_NO_VICTIM)
        return false;
    stealing->patience = 0;
    follow(thread, index);
    return true;
}

void domi_thread_busy(domi_thread *thread)
{
    thread->stealing.idle_count = 0;
    leave(thread);
    end_waking(thread);
}

/* An iteration that ran a house of its own or reaped a completion was not idle. */
static bool was_idle(domi_thread *thread)
{
    uint64_t runs = domi_counter_read(&thread->manager.counters.runs);
    bool idle = runs == thread->stealing.runs_seen && thread->brought == 0;

    thread->stealing.runs_seen = runs;
    return idle;
}

/* Nothing to steal, or in vain: may it sleep? */
static bool give_up(domi_thread *thread)
{
    if (domi_thread_is_waking(thread) && thread->stealing.victim == DOMI_NO_VICTIM &&
        thread->stealing.idle_count < WOKEN_LOOKS)
        return false;
    leave(thread);
    end_waking(thread);
    return true;
}

/* A thief waits for no lock. If it gets nothing although its victim shows something, somebody else
 * holds the victim's lock, so the thief goes on to the next thread that is overwhelmed. It tries
 * each thread once: when all are contended, waiting is what patience is for. */
static domi_loan *take_from_any(domi_thread *thread)
{
    domi_stealing *stealing = &thread->stealing;
    uint32_t threads = thread->manager.threads;
    uint32_t first = stealing->victim;

    for (uint32_t passed = 0;;) {
        domi_manager *victim = thread->manager.managers[stealing->victim];
        domi_loan *loan = domi_loan_take(&thread->manager, victim);
        if (loan != NULL || domi_loans_shown(victim) == 0)
            return loan;
        uint32_t next = find_overwhelmed(thread, first + passed + 1, threads - 1 - passed);
        if (next == DOMI_NO_VICTIM)
            return NULL;
        passed = (next + threads - first) % threads;
        leave(thread);
        follow(thread, next); /* its patience goes on: it is as idle as before */
    }
}

bool domi_thread_steal(domi_thread *thread)
{
    domi_stealing *stealing = &thread->stealing;

    if (!was_idle(thread)) {
        domi_thread_busy(thread);
        return false;
    }
    stealing->idle_count++;
    if (!thread->config->scheduler.steal.enabled || thread->manager.threads == 1)
        return false;
    if (!choose(thread))
        return !give_up(thread);
    domi_thread_stamp(thread, DOMI_SPAN_OTHER); /* it may wait for long, and has timers */
    stealing->loan = take_from_any(thread);
    if (stealing->loan != NULL) {
        end_waking(thread);
        stealing->patience = 0;
        return true;
    }
    domi_pause();
    if (++stealing->patience <= stealing->patience_max)
        return true;
    return !give_up(thread);
}

void domi_thread_run_loan(domi_thread *thread)
{
    domi_loan *loan = thread->stealing.loan;

    domi_monitor_attend(&thread->system->monitor);
    thread->stealing.loan = NULL;
    domi_thread_stamp(thread, DOMI_SPAN_OTHER); /* not before what the house has seen at home */
    domi_loan_run(&thread->manager, loan);
    domi_counter_add(&thread->counters.steals, 1);
    thread->stealing.runs_seen = domi_counter_read(&thread->manager.counters.runs);
    domi_thread_stamp(thread, DOMI_SPAN_STATE);
}

/* --- the victim ------------------------------------------------------------------------------- */

/* It sleeps, or spins and sees by itself that it is meant. */
static bool is_idle(const domi_manager *other)
{
    uint32_t word =
        atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&other->park, memory_order_relaxed);

    return word == DOMI_PARK_SLEEPING || word == DOMI_PARK_SPINNING;
}

/* True: one has been woken, and will look. */
static bool wake_sleeper(domi_thread *thread)
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

        if (index == manager->index || !is_idle(other))
            continue;
        /* seq_cst: as a put, before the look at its park word. It may have been woken since for
         * something else, and be about to sleep: then its second look finds this. */
        if (!atomic_compare_exchange_strong_explicit(&thread->system->waking, &none, index + 1,
                                                     memory_order_seq_cst, memory_order_relaxed))
            return false; /* another one has been woken, by somebody else */
        domi_manager_notify(manager, other);
        return true;
    }
    return false;
}

static void note_shown(domi_thread *thread, uint32_t shown)
{
    thread->stealing.shown = shown;
    thread->stealing.shown_since_ns = thread->stamp_ns;
}

/* A thief may be in a long handler while it counts: what waits for it must not starve. */
static bool is_stale(domi_thread *thread, uint32_t shown)
{
    if (shown < thread->stealing.shown)
        note_shown(thread, shown);
    if (thread->stamp_ns - thread->stealing.shown_since_ns < STALE_NS)
        return false;
    thread->stealing.alone_until_ns = thread->stamp_ns + ALONE_NS;
    return true;
}

/* A loan costs about a microsecond: its record, three cache lines to and fro, a look. */
static bool is_worth_it(const domi_thread *thread)
{
    return thread->stealing.run_ns >= thread->stealing.min_run_ns;
}

void domi_thread_note_runs(domi_thread *thread, uint32_t houses, uint64_t ns)
{
    if (houses != 0)
        thread->stealing.run_ns = (3 * thread->stealing.run_ns + ns / houses) / 4;
}

/* This is deadlineCheckEvery, or fewer houses if these would take LOOK_NS by the mean of the last
 * runs. */
static uint32_t houses_between_looks(const domi_thread *thread)
{
    uint32_t most = thread->config->scheduler.deadline_check_every;
    uint64_t run_ns = thread->stealing.run_ns;

    if (run_ns * most <= LOOK_NS)
        return most;
    return run_ns >= LOOK_NS ? 1 : (uint32_t)(LOOK_NS / run_ns);
}

/* The mean tells of earlier runs only. Where there is something for thieves, the first look comes
 * after one house, and the next ones after twice as many each, so that runs which have become long
 * are noticed by the first of them. */
uint32_t domi_thread_first_look(const domi_thread *thread, uint32_t count)
{
    if (count <= floor_of(thread) || thread->manager.threads == 1 ||
        !thread->config->scheduler.steal.enabled)
        return houses_between_looks(thread);
    return 1;
}

uint32_t domi_thread_next_look(const domi_thread *thread, uint32_t houses)
{
    uint32_t most = houses_between_looks(thread);

    return most / 2 < houses ? most : 2 * houses;
}

void domi_thread_publish(domi_thread *thread, uint32_t count)
{
    /* What is shown counts: else thieves would turn away from what they asked for. */
    uint32_t readies = count + domi_loans_shown(&thread->manager);

    atomic_store_explicit(&thread->manager.readies, readies, memory_order_relaxed);
    atomic_store_explicit(&thread->manager.lendable, is_worth_it(thread) ? readies : 0,
                          memory_order_relaxed);
}

void domi_thread_share(domi_thread *thread, domi_queue *queue)
{
    domi_manager *manager = &thread->manager;
    uint32_t floor = floor_of(thread);
    uint32_t shown = domi_loans_shown(manager);

    if ((shown == 0 && queue->count <= floor) || !thread->config->scheduler.steal.enabled)
        return;
    /* Also by who was woken and has not looked yet: what was shown for him is not taken back. */
    bool wanted =
        is_worth_it(thread) &&
        (atomic_load_explicit(&manager->thieves, memory_order_relaxed) != 0 ||
         (shown != 0 && atomic_load_explicit(&thread->system->waking, memory_order_relaxed) != 0));
    if (shown != 0 && (!wanted || queue->count == 0 || is_stale(thread, shown))) {
        (void)domi_loans_take_back(manager, queue);
        return;
    }
    if (queue->count <= floor || thread->stamp_ns < thread->stealing.alone_until_ns)
        return;
    /* Who is woken finds something at once: if runs are long, he sleeps again before the next look.
     */
    if (manager->threads > 1 && is_worth_it(thread) && wake_sleeper(thread))
        wanted = true;
    if (wanted && shown < floor) {
        uint32_t surplus = queue->count - floor;
        uint32_t most = surplus < floor - shown ? surplus : floor - shown;
        uint32_t more = domi_loans_expose(manager, queue, most);
        if (more + shown == 0)
            thread->stealing.alone_until_ns = thread->stamp_ns + ALONE_NS;
        if (more != 0)
            note_shown(thread, more + shown);
    }
}
