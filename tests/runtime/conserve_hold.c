/* The checks of the conservation stress in a silence and at the end of a run: the test's sums and
 * the system's own counters tell the same, to the last message. */
#include "tests/runtime/conserve.h"

#include "house/dispatch/loan.h"
#include "runtime/system/system.h"

#include <inttypes.h>
#include <stdio.h>

void domt_profile_add(domus_profile *sums, const domus_profile *more)
{
    uint64_t *sum = (uint64_t *)(void *)sums;
    const uint64_t *value = (const uint64_t *)(const void *)more;

    for (size_t field = 0; field < sizeof *sums / sizeof *sum; field++)
        sum[field] += value[field];
}

/* Prints all before it fails. */
void domt_hold(const char *name, const domt_sums *sums, const char *what, uint64_t ours,
               uint64_t theirs)
{
    if (ours == theirs)
        return;
    domt_sums_print(sums);
    ck_abort_msg("%s: %s: the test counts %" PRIu64 ", the system %" PRIu64, name, what, ours,
                 theirs);
}

void domt_hold_begun(const char *name, const domt_sums *sums)
{
    const char *kind = domt_sums_twice(sums);

    if (kind == NULL)
        return;
    domt_sums_print(sums);
    ck_abort_msg("%s: %s: more have ended than begun", name, kind);
}

/* The system's counters say the same. */
void domt_hold_profile(const char *name, domus_system *system, const domt_sums *sums)
{
    const uint64_t *of = sums->of;
    domus_profile all = domt_profile_all(system);
    domus_profile outside;

    domt_hold(name, sums, "spawns", of[DOMT_BORN] - of[DOMT_UNBORN], all.spawns);
    domt_hold(name, sums, "stops", of[DOMT_BORN] - of[DOMT_UNBORN], all.stops);
    ck_assert_int_eq(domus_outside_profile(system, &outside), 0);
    domt_profile_add(&all, &outside);
    domt_hold(name, sums, "notices handled",
              of[DOMT_NOTICE_TAKEN] + of[DOMT_LETTER_TAKEN] + of[DOMT_STASHED], all.notices);
    /* Asks that have expired count as handled, except where a receive met them. */
    uint64_t asks_taken = of[DOMT_ASK_TAKEN] + of[DOMT_QUERY_TAKEN];
    ck_assert_uint_ge(all.asks, asks_taken);
    ck_assert_uint_le(all.asks, asks_taken + all.asks_expired);
    domt_hold(name, sums, "refusals",
              of[DOMT_NOTICE_REFUSED] + of[DOMT_LETTER_REFUSED] + of[DOMT_ASK_REFUSED] +
                  of[DOMT_QUERY_REFUSED],
              all.refusals);
    /* Each answer, time-out or cancel that is handled resumes somebody, or is late, or it is the
     * time-out of a kept ask, which has then expired. */
    uint64_t resumed = of[DOMT_ASK_RESUMED] + of[DOMT_QUERY_ENDED] + of[DOMT_JOB_ENDED] +
                       of[DOMT_RECEIVE_FAILED] + all.late_replies;
    ck_assert_uint_ge(all.replies + all.exceptions, resumed);
    uint64_t kept_expired = all.replies + all.exceptions - resumed;
    ck_assert_uint_le(kept_expired, all.asks_expired);
    /* An ask that was put and dropped is a dead letter, unless it had expired or met its
     * own barrier. (A kept ask that expires was handled, and not dropped.) Each of the others has
     * an answer, which is a dead letter if it has resumed nobody. */
    uint64_t dropped = of[DOMT_ASK_DROPPED] + of[DOMT_QUERY_DROPPED];
    uint64_t unput = of[DOMT_ASK_UNPUT] + of[DOMT_QUERY_UNPUT];
    uint64_t put = of[DOMT_ASK_MADE] - of[DOMT_ASK_UNMADE] + of[DOMT_QUERY_MADE] - unput;
    uint64_t answers = put - all.asks_expired;
    uint64_t shown = of[DOMT_ASK_ANSWERED] + of[DOMT_QUERY_ENDED] - of[DOMT_QUERY_UNPUT];
    domt_hold(name, sums, "dead letters",
              of[DOMT_NOTICE_DROPPED] + of[DOMT_LETTER_DROPPED] +
                  (dropped - unput - (all.asks_expired - kept_expired) - all.circles) +
                  (answers - shown),
              all.dead_letters);
    domt_hold(name, sums, "busy, failures, circles", 0, all.busy + all.failures + all.circles);
    domt_hold(name, sums, "wake-ups by the cap that found work", 0, all.cap_wakeups_with_work);
    ck_assert_uint_ge(all.timers_fired, of[DOMT_TIMER_RUNG] + of[DOMT_TICKER_RUNG]);
}

/* Silence: no timer is armed, no house away, nobody in a barrier. */
void domt_hold_silence(const char *name, const domus_system *system, const domt_sums *sums)
{
    uint32_t timers = 0, lent = 0, ready = 0;
    uint64_t houses = 0;

    for (uint32_t i = 0; i < system->count; i++) {
        const domi_manager *manager = &system->threads[i].manager;
        timers += atomic_load(&((domi_manager *)(uintptr_t)manager)->timing.timers);
        lent += domi_loans_count_shown(manager);
        ready += atomic_load(&((domi_manager *)(uintptr_t)manager)->loans.readies);
        houses += domi_counter_read(&manager->births.houses);
    }
    domt_hold(name, sums, "wake-ups by the cap that found work", 0,
              domt_profile_all(system).cap_wakeups_with_work);
    domt_hold(name, sums, "timers in silence", 0, timers);
    domt_hold(name, sums, "houses shown in silence", 0, lent);
    domt_hold(name, sums, "houses ready in silence", 0, ready);
    domt_hold(name, sums, "houses in silence", sums->of[DOMT_MOUNTED] - sums->of[DOMT_STOPPED],
              houses);
    domt_hold(name, sums, "asks handled by another than was meant", 0, sums->of[DOMT_ASTRAY]);
    domt_hold(name, sums, "pinned actors elsewhere", 0, sums->of[DOMT_STRAYED]);
    domt_hold(name, sums, "odd results", 0, sums->of[DOMT_ODD]);
}
