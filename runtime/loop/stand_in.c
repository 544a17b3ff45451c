/* The end of a phase wakes the sleepers that were noted in it, or stands in for them.
 *
 * A wake-up costs both threads a system call, an interrupt and a change of context, about ten times
 * as much as one run of an actor. So a thread that is almost idle only notes the sleeper
 * (domi_manager_notify), and at the end of phase 3 it stands in:
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

/* A thread is distrusted if sleepers had to wait for long, or if one run in place of a sleeper took
 * as long: first for the shorter time; for twice as long as the last time if that time has ended
 * less than its own length ago; at most for the longer time. */
#define DISTRUST_NS     UINT64_C(10000000)
#define DISTRUST_MAX_NS UINT64_C(10000000000)

/* Returns the length from which runs in place of sleepers are long: a fifth of idle.standIn. If
 * they are longer on average, or all of one phase together, sleepers are woken, because such work
 * is worth a wake-up. */
static uint64_t get_long_run_ns(const domi_thread *thread)
{
    return thread->config->scheduler.idle.stand_in_ns / 5;
}

/* Returns how long sleepers may wait: a tenth of idle.doze. */
static uint64_t get_longest_wait_ns(const domi_thread *thread)
{
    return thread->config->scheduler.idle.doze_ns / 10;
}

/* The most rounds in which a thread stands in for the sleepers that were noted in the last round;
 * then it wakes them. */
#define ROUNDS 8u

/* Wake the threads to which the holder has sent messages in the name of the sleeper. */
static void wake_noted_sleepers(domi_manager *manager)
{
    domi_sleepers *sleepers = &manager->sleepers;

    while (sleepers->count != 0)
        domi_manager_wake(manager, manager->managers[sleepers->indices[--sleepers->count]]);
}

/* True if the held thread has something to do that only this thread itself can do. Its ring is not
 * looked at: the holder has put nothing there, and the kernel wakes the thread for everything
 * else. */
static bool is_sleeper_needed(domi_thread *sleeper)
{
    return domi_manager_has_work(&sleeper->manager) || domi_thread_is_waking(sleeper) ||
           domi_thread_has_to_follow(sleeper, memory_order_seq_cst) ||
           domi_thread_due_ns(sleeper) < sleeper->until_ns;
}

/* Take the one ready house of the held home as a loan. Returns NULL if no house is ready, or more
 * than one, or if the house may not be lent. */
static domi_loan *borrow_ready_house(domi_thread *thread, domi_manager *home)
{
    domi_queue *queue = &home->schedule.ready[DOMUS_STATE];

    if (queue->count != 1)
        return NULL;
    const domi_house *house = queue->normal.head != NULL ? queue->normal.head : queue->high.head;
    if (domi_house_has_to_end(house, domi_house_life(house)) ||
        domi_loans_expose(home, queue, 1) == 0)
        return NULL;
    return domi_loan_take(&thread->manager, home);
}

/* Hold the sleeper, and sort and settle for it what needs no handler. Returns false if the sleeper
 * could not be held. `*ret_loan` gets a house to run, or NULL. */
static bool hold_sleeper(domi_thread *thread, domi_thread *sleeper, bool runs, domi_loan **ret_loan)
{
    domi_manager *home = &sleeper->manager;

    *ret_loan = NULL;
    if (!domi_park_try_hold(&home->park))
        return false;
    const char *owner = home->owner;
    sleeper->was_held = true;
    domi_manager_own(home);
    if (home->now_ns < thread->manager.now_ns)
        home->now_ns = thread->manager.now_ns;
    home->belts.kept_off = true;
    domi_manager_take_plain_arrivals(home);
    home->belts.kept_off = false;
    if (runs)
        *ret_loan = borrow_ready_house(thread, home);
    bool left = is_sleeper_needed(sleeper);
    wake_noted_sleepers(home);
    domi_pool_flush_returns(home);
    home->owner = owner;
    if (domi_park_release(&home->park, left)) {
        domi_counter_add(&thread->manager.counters.wakeups_sent, 1);
        home->hooks.wake(home);
    }
    return true;
}

/* Distrust the thread: for a while it wakes sleepers at once. */
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

/* Run the loan, and update the average length of such runs. */
static void run_borrowed_loan(domi_thread *thread, domi_loan *loan)
{
    uint64_t before_ns = thread->stamp_ns;
    uint64_t runs_seen = thread->stealing.runs_seen;

    thread->stealing.loan = loan;
    domi_thread_run_loan(thread, true);
    /* With this count the code that steals sees that the iteration was not idle. */
    thread->stealing.runs_seen = runs_seen;
    uint64_t run_ns = thread->stamp_ns - before_ns;
    /* If a run seems to be much longer, the thread may have been taken off its CPU. */
    uint64_t counted_ns =
        run_ns < 8 * get_long_run_ns(thread) ? run_ns : 8 * get_long_run_ns(thread);
    thread->stand_in_ns = (3 * thread->stand_in_ns + counted_ns) / 4;
    if (run_ns > get_longest_wait_ns(thread))
        distrust_thread(thread);
    else if (thread->stand_in_ns > get_long_run_ns(thread))
        thread->manager.sleepers.until_ns = 0;
}

/* Stand in for a noted sleeper, or wake it. */
static void serve_sleeper(domi_thread *thread, domi_thread *sleeper, bool runs)
{
    domi_loan *loan;

    if (!hold_sleeper(thread, sleeper, runs, &loan))
        domi_manager_wake(&thread->manager, &sleeper->manager);
    else if (loan != NULL)
        run_borrowed_loan(thread, loan);
}

void domi_thread_stop_noting_sleepers(domi_thread *thread)
{
    thread->manager.sleepers.until_ns = 0;
    wake_noted_sleepers(&thread->manager);
}

static bool may_stand_in(const domi_thread *thread)
{
    const domus_config *config = thread->config;

    return config->scheduler.idle.stand_in_ns != 0 && config->scheduler.steal.enabled &&
           thread->manager.threads > 1;
}

/* True if runs in place of sleepers are short. */
static bool are_runs_short(domi_thread *thread)
{
    if (thread->stand_in_ns <= get_long_run_ns(thread))
        return true;
    /* The average is lowered each time, so standing in is tried again after some time. */
    thread->stand_in_ns -= thread->stand_in_ns / 8;
    return false;
}

void domi_thread_decide_stand_in(domi_thread *thread, uint64_t asleep_ns)
{
    uint64_t now_ns = thread->stamp_ns;

    if (!may_stand_in(thread))
        return;
    thread->dozes = thread->was_held || now_ns - asleep_ns < thread->config->scheduler.idle.doze_ns;
    thread->was_held = false;
    thread->manager.sleepers.until_ns = now_ns >= thread->trusted_ns && are_runs_short(thread)
                                            ? now_ns + thread->config->scheduler.idle.stand_in_ns
                                            : 0;
}

uint64_t domi_thread_get_doze_end(const domi_thread *thread, uint64_t until_ns)
{
    uint64_t doze_ns = thread->stamp_ns + thread->config->scheduler.idle.doze_ns;

    return thread->dozes && doze_ns < until_ns ? doze_ns : until_ns;
}

bool domi_thread_is_doze(const domi_thread *thread, uint64_t until_ns)
{
    return may_stand_in(thread) &&
           until_ns <= thread->stamp_ns + thread->config->scheduler.idle.doze_ns;
}

static void wake_all_sleepers(domi_thread *thread)
{
    domi_sleepers *sleepers = &thread->manager.sleepers;

    /* The clock was read for the first note (`since_ns`), perhaps after the newest stamp. */
    if (sleepers->count != 0 && thread->stamp_ns > sleepers->since_ns + get_longest_wait_ns(thread))
        distrust_thread(thread);
    wake_noted_sleepers(&thread->manager);
}

void domi_thread_wake_sleepers(domi_thread *thread, bool is_idle)
{
    domi_sleepers *sleepers = &thread->manager.sleepers;

    if (sleepers->count == 0)
        return;
    /* With an ioRatio of 100 houses may be ready that are not in the queue of this phase. */
    if (!is_idle || thread->stamp_ns >= sleepers->until_ns ||
        thread->manager.schedule.ready[DOMUS_STATE].count != 0) {
        wake_all_sleepers(thread);
        return;
    }
    uint64_t begun_ns = thread->stamp_ns;
    for (uint32_t round = 0; sleepers->count != 0 && round < ROUNDS; round++) {
        const domi_sleepers noted = *sleepers;

        sleepers->count = 0;
        for (uint32_t i = 0; i < noted.count; i++) {
            /* The last round runs nothing: it only settles the loans of the round before. */
            bool runs = round + 1 < ROUNDS && thread->stamp_ns - begun_ns < get_long_run_ns(thread);
            serve_sleeper(thread, &thread->system->threads[noted.indices[i]], runs);
        }
    }
    wake_all_sleepers(thread);
}
