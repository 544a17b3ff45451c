/* The end of a phase wakes the sleepers that were noted in it, or stands in for them.
 *
 * A wake-up costs both threads a system call, an interrupt and a change of context, about ten times
 * as much as one run of an actor. So a thread that is almost idle only notes the sleeper
 * (domi_manager_notify_of_push), and at the end of phase 3 it stands in:
 * 1. It holds the sleeper (base/park.h), and sorts what has arrived there.
 * 2. If exactly one house is ready then, it lends this house to itself, lets the sleeper go, and
 * runs the house once, as a thief does (house/dispatch/loan.h).
 * 3. When the loan is back, it holds the sleeper again and settles the loan.
 * No handler runs during a hold, and a hold is short, because a sleeper that wakes meanwhile has to
 * wait for the end of the hold. If anything is left to do, the sleeper is woken. A message on a
 * belt is left to do, too, because a stand-in takes nothing off belts.
 *
 * A thread is almost idle if it has no state actor to run and was asleep a moment ago
 * (idle.standIn). So a thread that is always busy wakes the others at once, and work spreads.
 *
 * A wake-up that is put off waits for the handler that has sent the message; this handler may
 * compute for long, or wait for the sleeper itself. So only a sleeper that dozes is noted. A doze
 * is a sleep of idle.doze at most; a thread dozes if its last sleep was as short, or if others have
 * stood in for it meanwhile. And a thread whose notes had to wait for long, or that ran something
 * long in place of a sleeper, is distrusted for a time, which doubles if that happens again. */
#include "runtime/loop/steps.h"

#include "house/dispatch/loan.h"
#include "house/dispatch/phases.h"
#include "house/message/pool.h"
#include "runtime/loop/steal.h"
#include "runtime/system/system.h"

/* How long a thread is distrusted, which means that it wakes sleepers at once. It is distrusted
 * if sleepers had to wait for long, or if it ran something long in place of a sleeper: for the
 * shorter time at first, for twice the last time if that is over since less than its own length,
 * and for the longer time at most. */
#define DISTRUST_NS     UINT64_C(10000000)
#define DISTRUST_MAX_NS UINT64_C(10000000000)

/* Returns from which length on a run in place of a sleeper is long: a fifth of idle.standIn. If
 * such runs are longer on average, or all of one phase together, sleepers are woken, because the
 * work is worth a wake-up. */
static uint64_t length_of_long_stand_in_run(const domi_thread *thread)
{
    return thread->config->scheduler.idle.stand_in_ns / 5;
}

/* Returns how long a noted sleeper may wait before its stand-in is distrusted: a tenth of
 * idle.doze. */
static uint64_t longest_wait_of_noted_sleeper(const domi_thread *thread)
{
    return thread->config->scheduler.idle.doze_ns / 10;
}

/* Number of rounds after which a thread wakes the noted sleepers; in each round it stands in for
 * the sleepers that were noted in the round before. */
#define ROUNDS 8u

/* Wake all sleeping threads that this manager has noted because messages were put for them. A
 * stand-in does this also for the manager that it holds. */
static void wake_noted_sleepers(domi_manager *manager)
{
    domi_sleepers *sleepers = &manager->sleepers;

    while (sleepers->count != 0)
        domi_manager_wake_owner(manager, manager->managers[sleepers->indices[--sleepers->count]]);
}

/* True if a thread that is held has something to do that only it can do. Its ring is not looked
 * at: the holder has put nothing there, and the kernel wakes the thread for everything else. */
static bool has_held_sleeper_work_only_it_can_do(domi_thread *sleeper)
{
    return domi_manager_has_work(&sleeper->manager) || domi_thread_is_woken_to_steal(sleeper) ||
           domi_thread_has_orders_to_follow(sleeper, memory_order_seq_cst) ||
           domi_thread_time_of_next_timer(sleeper) < sleeper->until_ns;
}

/* Take the only ready house of a manager that is held as a loan. Returns NULL if no house is
 * ready, or more than one, or if the house may not be lent. */
static domi_loan *borrow_only_ready_house_of_sleeper(domi_thread *thread, domi_manager *home)
{
    domi_queue *queue = &home->schedule.ready[DOMUS_STATE];

    if (queue->count != 1)
        return NULL;
    const domi_house *house = queue->normal.head != NULL ? queue->normal.head : queue->high.head;
    if (domi_house_must_check_stop_or_restart(house, domi_house_life_word(house)) ||
        domi_loans_expose_houses(home, queue, 1) == 0)
        return NULL;
    return domi_loan_take_exposed_house(&thread->manager, home);
}

/* Hold a sleeping thread (base/park.h), and do for it what needs no handler: sort its arrivals
 * and settle its loans. If `runs`, `*ret_loan` gets a house to run in its place, or NULL.
 * Returns false if the sleeper could not be held. */
static bool hold_sleeper_and_sort_its_mail(domi_thread *thread, domi_thread *sleeper, bool runs,
                                           domi_loan **ret_loan)
{
    domi_manager *home = &sleeper->manager;

    *ret_loan = NULL;
    if (!domi_park_try_hold_dozing_owner(&home->park))
        return false;
    const char *owner = home->owner;
    sleeper->was_held = true;
    domi_manager_become_owner(home);
    if (home->now_ns < thread->manager.now_ns)
        home->now_ns = thread->manager.now_ns;
    home->belts.kept_off = true;
    domi_manager_take_arrivals_as_stand_in(home);
    home->belts.kept_off = false;
    if (runs)
        *ret_loan = borrow_only_ready_house_of_sleeper(thread, home);
    bool left = has_held_sleeper_work_only_it_can_do(sleeper);
    wake_noted_sleepers(home);
    domi_pool_push_chains_to_owners(home);
    home->owner = owner;
    if (domi_park_release_held_owner(&home->park, left)) {
        domi_counter_add(&thread->manager.counters.wakeups_sent, 1);
        home->hooks.wake(home);
    }
    return true;
}

/* Distrust a thread for a while: meanwhile it wakes sleepers at once and does not stand in for
 * them. */
static void distrust_thread(domi_thread *thread)
{
    uint64_t now_ns = thread->stamp_ns;

    thread->distrust_ns =
        now_ns < thread->trusted_ns + thread->distrust_ns ? 2 * thread->distrust_ns : DISTRUST_NS;
    if (thread->distrust_ns > DISTRUST_MAX_NS)
        thread->distrust_ns = DISTRUST_MAX_NS;
    thread->trusted_ns = now_ns + thread->distrust_ns;
    thread->manager.sleepers.until_ns = 0;
}

/* Run a house that was borrowed from a sleeper, and update the average length of such runs. */
static void run_house_of_sleeper(domi_thread *thread, domi_loan *loan)
{
    uint64_t before_ns = thread->stamp_ns;
    uint64_t runs_seen = thread->stealing.runs_seen;

    thread->stealing.loan = loan;
    domi_thread_run_borrowed_house(thread, true);
    /* the old count is restored, because such a run counts as work of this thread, so the iteration
     * was not idle */
    thread->stealing.runs_seen = runs_seen;
    uint64_t run_ns = thread->stamp_ns - before_ns;
    /* A run counts for at most eight long ones, because the thread may have been taken off its
     * CPU meanwhile. */
    uint64_t counted_ns = run_ns < 8 * length_of_long_stand_in_run(thread)
                              ? run_ns
                              : 8 * length_of_long_stand_in_run(thread);
    thread->stand_in_ns = (3 * thread->stand_in_ns + counted_ns) / 4;
    if (run_ns > longest_wait_of_noted_sleeper(thread))
        distrust_thread(thread);
    else if (thread->stand_in_ns > length_of_long_stand_in_run(thread))
        thread->manager.sleepers.until_ns = 0;
}

/* Stand in for a sleeper that was noted, or wake it if it cannot be held. */
static void stand_in_for_or_wake_sleeper(domi_thread *thread, domi_thread *sleeper, bool runs)
{
    domi_loan *loan;

    if (!hold_sleeper_and_sort_its_mail(thread, sleeper, runs, &loan))
        domi_manager_wake_owner(&thread->manager, &sleeper->manager);
    else if (loan != NULL)
        run_house_of_sleeper(thread, loan);
}

void domi_thread_stop_noting_sleepers(domi_thread *thread)
{
    thread->manager.sleepers.until_ns = 0;
    wake_noted_sleepers(&thread->manager);
}

static bool may_stand_in_for_sleepers(const domi_thread *thread)
{
    const domus_config *config = thread->config;

    return config->scheduler.idle.stand_in_ns != 0 && config->scheduler.steal.enabled &&
           thread->manager.threads > 1;
}

/* True if runs in place of sleepers are short on average. */
static bool are_stand_in_runs_short(domi_thread *thread)
{
    if (thread->stand_in_ns <= length_of_long_stand_in_run(thread))
        return true;
    /* The average is lowered each time that it is too high, so after some time the thread tries
     * again to stand in. */
    thread->stand_in_ns -= thread->stand_in_ns / 8;
    return false;
}

void domi_thread_decide_whether_to_stand_in(domi_thread *thread, uint64_t asleep_ns)
{
    uint64_t now_ns = thread->stamp_ns;

    if (!may_stand_in_for_sleepers(thread))
        return;
    thread->dozes = thread->was_held || now_ns - asleep_ns < thread->config->scheduler.idle.doze_ns;
    thread->was_held = false;
    thread->manager.sleepers.until_ns =
        now_ns >= thread->trusted_ns && are_stand_in_runs_short(thread)
            ? now_ns + thread->config->scheduler.idle.stand_in_ns
            : 0;
}

uint64_t domi_thread_shorten_sleep_end_to_doze(const domi_thread *thread, uint64_t until_ns)
{
    uint64_t doze_ns = thread->stamp_ns + thread->config->scheduler.idle.doze_ns;

    return thread->dozes && doze_ns < until_ns ? doze_ns : until_ns;
}

bool domi_thread_is_sleep_a_doze(const domi_thread *thread, uint64_t until_ns)
{
    return may_stand_in_for_sleepers(thread) &&
           until_ns <= thread->stamp_ns + thread->config->scheduler.idle.doze_ns;
}

static void wake_all_noted_sleepers(domi_thread *thread)
{
    domi_sleepers *sleepers = &thread->manager.sleepers;

    /* `since_ns` was read from the clock at the first note, which may be after the newest stamp. */
    if (sleepers->count != 0 &&
        thread->stamp_ns > sleepers->since_ns + longest_wait_of_noted_sleeper(thread))
        distrust_thread(thread);
    wake_noted_sleepers(&thread->manager);
}

void domi_thread_wake_or_replace_sleepers(domi_thread *thread, bool is_idle)
{
    domi_sleepers *sleepers = &thread->manager.sleepers;

    if (sleepers->count == 0)
        return;
    /* The phase's queue may be empty although houses are ready: with an ioRatio of 100 those
     * wait for the next phase. */
    if (!is_idle || thread->stamp_ns >= sleepers->until_ns ||
        thread->manager.schedule.ready[DOMUS_STATE].count != 0) {
        wake_all_noted_sleepers(thread);
        return;
    }
    uint64_t begun_ns = thread->stamp_ns;
    for (uint32_t round = 0; sleepers->count != 0 && round < ROUNDS; round++) {
        const domi_sleepers noted = *sleepers;

        sleepers->count = 0;
        for (uint32_t i = 0; i < noted.count; i++) {
            /* The last round runs no house: it only settles the loans of the round before. */
            bool runs = round + 1 < ROUNDS &&
                        thread->stamp_ns - begun_ns < length_of_long_stand_in_run(thread);
            stand_in_for_or_wake_sleeper(thread, &thread->system->threads[noted.indices[i]], runs);
        }
    }
    wake_all_noted_sleepers(thread);
}
