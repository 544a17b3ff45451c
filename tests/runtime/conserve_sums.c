/* The counters, a line for each thread, and the budget of the conservation stress.
 *
 * A line is claimed at a thread's first count; the first is the test's own. A reset takes all
 * others back, so it comes before the threads of a run.
 *
 * Behind them stand the checks in a silence and at the end of a run: the test's sums and the
 * system's own counters tell the same, to the last message. A watchdog looks whether anything
 * moves, and prints what every thread has and waits for when nothing does. */
#include "tests/runtime/conserve.h"

#include "base/check.h"
#include "house/dispatch/loan.h"
#include "house/family/slots.h"
#include "house/message/mailbox.h"
#include "runtime/loop/steps.h"
#include "runtime/system/system.h"

#include <inttypes.h>
#include <stdalign.h>
#include <stdio.h>

#define LINES 256u

typedef struct line {
    alignas(128) _Atomic uint64_t of[DOMT_COUNTS_MAX];
    int64_t left; /* messages that this thread may still send of its block of the budget */
} line;

static line lines[LINES];
/* messages that a thread takes from the budget at once; it does not change during a run */
static int64_t block;
static _Atomic uint32_t claimed;
static _Thread_local line *mine;
alignas(128) static _Atomic int64_t budget;

/* The kinds of things, each with the counts of its beginnings and the counts of its ends. A 0 ends
 * a list of counts, except as first element, because 0 is also the number of a count. */
static const struct kind {
    const char *name;
    uint8_t begun[2];
    uint8_t ended[4];
} kinds[] = {
    {"notices",
     {DOMT_NOTICE_MADE},
     {DOMT_NOTICE_TAKEN, DOMT_NOTICE_DROPPED, DOMT_NOTICE_REFUSED, DOMT_NOTICE_STALE}},
    {"notices from outside",
     {DOMT_LETTER_MADE},
     {DOMT_LETTER_TAKEN, DOMT_LETTER_DROPPED, DOMT_LETTER_REFUSED, DOMT_LETTER_STALE}},
    {"asks",
     {DOMT_ASK_MADE, DOMT_ASK_FORWARDED},
     {DOMT_ASK_TAKEN, DOMT_ASK_DROPPED, DOMT_ASK_UNMADE, DOMT_ASK_UNFORWARDED}},
    {"resumptions", {DOMT_ASK_MADE}, {DOMT_ASK_RESUMED, DOMT_ASK_UNMADE}},
    {"asks from outside", {DOMT_QUERY_MADE}, {DOMT_QUERY_TAKEN, DOMT_QUERY_DROPPED}},
    {"answers to outside", {DOMT_QUERY_MADE}, {DOMT_QUERY_ENDED}},
    {"replies", {DOMT_REPLY_MADE}, {DOMT_REPLY_TAKEN, DOMT_REPLY_DROPPED, DOMT_REPLY_UNMADE}},
    {"timers",
     {DOMT_TIMER_MADE},
     {DOMT_TIMER_RUNG, DOMT_TIMER_CANCELLED, DOMT_TIMER_BACK, DOMT_TIMER_UNMADE}},
    {"tickers", {DOMT_TICKER_MADE}, {DOMT_TICKER_CANCELLED, DOMT_TICKER_BACK, DOMT_TICKER_UNMADE}},
    {"jobs", {DOMT_JOB_MADE}, {DOMT_JOB_ENDED, DOMT_JOB_UNMADE}},
    {"receives",
     {DOMT_RECEIVE_MADE},
     {DOMT_RECEIVE_TAKEN, DOMT_RECEIVE_FAILED, DOMT_RECEIVE_UNMADE}},
};

#define KINDS (sizeof kinds / sizeof kinds[0])

static line *row_of_this_thread(void)
{
    if (mine == NULL) {
        uint32_t place = atomic_fetch_add_explicit(&claimed, 1, memory_order_relaxed);
        DOMI_CHECK(place < LINES);
        mine = &lines[place];
    }
    return mine;
}

void domt_add_to_count(enum domt_count what, uint64_t by)
{
    _Atomic uint64_t *counter = &row_of_this_thread()->of[what];

    /* release: pairs with sum_count_over_threads(). A thread that sees the count of an end also
     * sees the count of the beginning before it. */
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by,
                          memory_order_release);
}

uint64_t domt_count_of_this_thread(enum domt_count what)
{
    return atomic_load_explicit(&row_of_this_thread()->of[what], memory_order_relaxed);
}

void domt_reset_all_counts(int64_t budget_block)
{
    uint32_t count = atomic_load_explicit(&claimed, memory_order_relaxed);

    /* only the main thread of the test resets counts, after the threads of all other rows have
     * ended */
    DOMI_CHECK(row_of_this_thread() == &lines[0]);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t what = 0; what < DOMT_COUNTS_MAX; what++)
            atomic_store_explicit(&lines[i].of[what], 0, memory_order_relaxed);
        lines[i].left = 0;
    }
    block = budget_block;
    atomic_store_explicit(&claimed, 1, memory_order_relaxed);
    atomic_store_explicit(&budget, 0, memory_order_relaxed);
}

static uint64_t sum_count_over_threads(uint32_t what)
{
    uint32_t count = atomic_load_explicit(&claimed, memory_order_relaxed);
    uint64_t sum = 0;

    /* acquire: pairs with domt_add_to_count(), so counts that are read after this one are at least
     * as new. */
    for (uint32_t i = 0; i < count; i++)
        sum += atomic_load_explicit(&lines[i].of[what], memory_order_acquire);
    return sum;
}

static bool is_count_of_things_begun(uint32_t what)
{
    for (size_t i = 0; i < KINDS; i++) {
        if (kinds[i].begun[0] == what || (kinds[i].begun[1] == what && what != 0))
            return true;
    }
    return false;
}

void domt_sums_read_counts(domt_sums *sums)
{
    for (uint32_t what = 0; what < DOMT_COUNTS_MAX; what++) {
        if (!is_count_of_things_begun(what))
            sums->of[what] = sum_count_over_threads(what);
    }
    for (uint32_t what = 0; what < DOMT_COUNTS_MAX; what++) {
        if (is_count_of_things_begun(what))
            sums->of[what] = sum_count_over_threads(what);
    }
}

static uint64_t sum_of_counts(const domt_sums *sums, const uint8_t *places, size_t count)
{
    uint64_t sum = sums->of[places[0]];

    for (size_t i = 1; i < count && places[i] != 0; i++)
        sum += sums->of[places[i]];
    return sum;
}

bool domt_sums_are_balanced(const domt_sums *sums, const char **ret_kind)
{
    for (size_t i = 0; i < KINDS; i++) {
        if (sum_of_counts(sums, kinds[i].begun, 2) == sum_of_counts(sums, kinds[i].ended, 4))
            continue;
        if (ret_kind != NULL)
            *ret_kind = kinds[i].name;
        return false;
    }
    return true;
}

const char *domt_sums_find_kind_ended_twice(const domt_sums *sums)
{
    for (size_t i = 0; i < KINDS; i++) {
        if (sum_of_counts(sums, kinds[i].begun, 2) < sum_of_counts(sums, kinds[i].ended, 4))
            return kinds[i].name;
    }
    return NULL;
}

uint64_t domt_sums_total_handled(const domt_sums *sums)
{
    const uint64_t *of = sums->of;

    return of[DOMT_NOTICE_TAKEN] + of[DOMT_LETTER_TAKEN] + of[DOMT_ASK_TAKEN] +
           of[DOMT_QUERY_TAKEN] + of[DOMT_ASK_RESUMED] + of[DOMT_TIMER_RUNG] + of[DOMT_JOB_ENDED] +
           of[DOMT_RECEIVE_FAILED];
}

/* Messages are counted as sent and as answered: each ask that was put has one reply or exception,
 * or none if its time was over. */
uint64_t domt_sums_messages_made(const domt_sums *sums)
{
    return sums->of[DOMT_NOTICE_MADE] + sums->of[DOMT_LETTER_MADE] + sums->of[DOMT_ASK_MADE] +
           sums->of[DOMT_ASK_FORWARDED] + sums->of[DOMT_ASK_ANSWERED] + sums->of[DOMT_QUERY_MADE] +
           sums->of[DOMT_QUERY_ENDED] + sums->of[DOMT_TIMER_RUNG] + sums->of[DOMT_TICKER_RUNG];
}

const char *domt_text_of_count(uint32_t what)
{
#define TEXT(name, text) text,
    static const char *const texts[] = {DOMT_COUNTS(TEXT)};

    return what < DOMT_COUNTS_MAX ? texts[what] : NULL;
}

void domt_sums_print(const domt_sums *sums)
{
    const char *kind;

    for (uint32_t what = 0; what < DOMT_COUNTS_MAX; what++)
        fprintf(stderr, "%-36s %14" PRIu64 "\n", domt_text_of_count(what), sums->of[what]);
    for (size_t i = 0; i < KINDS; i++) {
        uint64_t begun = sum_of_counts(sums, kinds[i].begun, 2);
        uint64_t ended = sum_of_counts(sums, kinds[i].ended, 4);
        if (begun != ended)
            fprintf(stderr, "%s: %" PRIu64 " begun, %" PRIu64 " ended\n", kinds[i].name, begun,
                    ended);
    }
    fprintf(stderr, "%s; %" PRId64 " of the budget left\n",
            domt_sums_are_balanced(sums, &kind) ? "in balance" : "not in balance",
            domt_budget_messages_left());
}

/* --- the budget ------------------------------------------------------------------------------- */

void domt_budget_add_messages(int64_t messages)
{
    /* Relaxed in all functions of the budget: it is only a number, and a thread that takes of it
     * was sent a message before. */
    atomic_fetch_add_explicit(&budget, messages, memory_order_relaxed);
}

int64_t domt_budget_messages_left(void)
{
    return atomic_load_explicit(&budget, memory_order_relaxed);
}

bool domt_budget_take_message(void)
{
    line *own = row_of_this_thread();

    if (own->left == 0) {
        if (domt_budget_messages_left() <= 0)
            return false;
        int64_t before = atomic_fetch_sub_explicit(&budget, block, memory_order_relaxed);
        own->left = before < block ? before : block;
        if (before <= 0) {
            own->left = 0;
            return false;
        }
    }
    own->left--;
    return true;
}

/* --- what has to hold, and the watchdog ------------------------------------------------------- */

void domt_add_profile_to_sums(domus_profile *sums, const domus_profile *more)
{
    uint64_t *sum = (uint64_t *)(void *)sums;
    const uint64_t *value = (const uint64_t *)(const void *)more;

    for (size_t field = 0; field < sizeof *sums / sizeof *sum; field++)
        sum[field] += value[field];
}

/* If the two counts differ, print all sums, and fail the test. */
void domt_check_counts_equal(const char *name, const domt_sums *sums, const char *what,
                             uint64_t ours, uint64_t theirs)
{
    if (ours == theirs)
        return;
    domt_sums_print(sums);
    ck_abort_msg("%s: %s: the test counts %" PRIu64 ", the system %" PRIu64, name, what, ours,
                 theirs);
}

void domt_check_none_ended_twice(const char *name, const domt_sums *sums)
{
    const char *kind = domt_sums_find_kind_ended_twice(sums);

    if (kind == NULL)
        return;
    domt_sums_print(sums);
    ck_abort_msg("%s: %s: more have ended than begun", name, kind);
}

/* Check that the counters of the stopped system agree with the counts of the test. */
void domt_check_profile_of_system(const char *name, domus_system *system, const domt_sums *sums)
{
    const uint64_t *of = sums->of;
    domus_profile all = domt_profile_of_all_threads(system);
    domus_profile outside;

    domt_check_counts_equal(name, sums, "spawns", of[DOMT_BORN] - of[DOMT_UNBORN], all.spawns);
    domt_check_counts_equal(name, sums, "stops", of[DOMT_BORN] - of[DOMT_UNBORN], all.stops);
    ck_assert_int_eq(domus_outside_profile(system, &outside), 0);
    domt_add_profile_to_sums(&all, &outside);
    domt_check_counts_equal(name, sums, "notices handled",
                            of[DOMT_NOTICE_TAKEN] + of[DOMT_LETTER_TAKEN] + of[DOMT_STASHED],
                            all.notices);
    /* The system counts expired asks as handled, except expired asks that a receive has found. */
    uint64_t asks_taken = of[DOMT_ASK_TAKEN] + of[DOMT_QUERY_TAKEN];
    ck_assert_uint_ge(all.asks, asks_taken);
    ck_assert_uint_le(all.asks, asks_taken + all.asks_expired);
    domt_check_counts_equal(name, sums, "refusals",
                            of[DOMT_NOTICE_REFUSED] + of[DOMT_LETTER_REFUSED] +
                                of[DOMT_ASK_REFUSED] + of[DOMT_QUERY_REFUSED],
                            all.refusals);
    /* Each answer, time-out or cancel that is handled resumes a conversation or is late, or it is
     * the time-out of a kept ask, which has then expired. */
    uint64_t resumed = of[DOMT_ASK_RESUMED] + of[DOMT_QUERY_ENDED] + of[DOMT_JOB_ENDED] +
                       of[DOMT_RECEIVE_FAILED] + all.late_replies;
    ck_assert_uint_ge(all.replies + all.exceptions, resumed);
    uint64_t kept_expired = all.replies + all.exceptions - resumed;
    ck_assert_uint_le(kept_expired, all.asks_expired);
    /* An ask that was put and dropped is a dead letter, unless it had expired or met its own
     * barrier. (A kept ask that expires was handled, and not dropped.) Each other ask has an
     * answer, which is a dead letter if it has resumed no conversation. */
    uint64_t dropped = of[DOMT_ASK_DROPPED] + of[DOMT_QUERY_DROPPED];
    uint64_t unput = of[DOMT_ASK_UNPUT] + of[DOMT_QUERY_UNPUT];
    uint64_t put = of[DOMT_ASK_MADE] - of[DOMT_ASK_UNMADE] + of[DOMT_QUERY_MADE] - unput;
    uint64_t answers = put - all.asks_expired;
    uint64_t shown = of[DOMT_ASK_ANSWERED] + of[DOMT_QUERY_ENDED] - of[DOMT_QUERY_UNPUT];
    domt_check_counts_equal(
        name, sums, "dead letters",
        of[DOMT_NOTICE_DROPPED] + of[DOMT_LETTER_DROPPED] +
            (dropped - unput - (all.asks_expired - kept_expired) - all.circles) + (answers - shown),
        all.dead_letters);
    domt_check_counts_equal(name, sums, "busy, failures, circles", 0,
                            all.busy + all.failures + all.circles);
    domt_check_counts_equal(name, sums, "wake-ups by the cap that found work", 0,
                            all.cap_wakeups_with_work);
    ck_assert_uint_ge(all.timers_fired, of[DOMT_TIMER_RUNG] + of[DOMT_TICKER_RUNG]);
}

/* Check that in a silence no timer is armed, no house is ready or shown to thieves, and as many
 * actors live as were mounted and not stopped. */
void domt_check_system_is_silent(const char *name, const domus_system *system,
                                 const domt_sums *sums)
{
    uint32_t timers = 0, lent = 0, ready = 0;
    uint64_t houses = 0;

    for (uint32_t i = 0; i < system->count; i++) {
        const domi_manager *manager = &system->threads[i].manager;
        timers += atomic_load(&((domi_manager *)(uintptr_t)manager)->timing.timers);
        lent += domi_loans_count_shared_houses(manager);
        ready += atomic_load(&((domi_manager *)(uintptr_t)manager)->loans.readies);
        houses += domi_counter_read(&manager->births.houses);
    }
    domt_check_counts_equal(name, sums, "wake-ups by the cap that found work", 0,
                            domt_profile_of_all_threads(system).cap_wakeups_with_work);
    domt_check_counts_equal(name, sums, "timers in silence", 0, timers);
    domt_check_counts_equal(name, sums, "houses shown in silence", 0, lent);
    domt_check_counts_equal(name, sums, "houses ready in silence", 0, ready);
    domt_check_counts_equal(name, sums, "houses in silence",
                            sums->of[DOMT_MOUNTED] - sums->of[DOMT_STOPPED], houses);
    domt_check_counts_equal(name, sums, "asks handled by another than was meant", 0,
                            sums->of[DOMT_ASTRAY]);
    domt_check_counts_equal(name, sums, "pinned actors elsewhere", 0, sums->of[DOMT_STRAYED]);
    domt_check_counts_equal(name, sums, "odd results", 0, sums->of[DOMT_ODD]);
}

#define STUCK_NS   (UINT64_C(1000) * DOMT_MS * (DOMT_SANITIZED ? 60 : 10))
#define HOUSES_MAX 24u /* most houses of a thread that the watchdog prints */

void domt_conserve_watchdog_init(domt_watchdog *dog, const domus_system *system, const char *name)
{
    *dog = (domt_watchdog){.system = system, .name = name, .since_ns = domt_now_ns()};
}

bool domt_all_threads_sleep(const domus_system *system)
{
    for (uint32_t i = 0; i < system->count; i++) {
        /* acquire: pairs with the exchange by which a thread falls asleep, so this thread sees all
         * counts of the sleeping one. */
        if (!domi_park_is_word_of_sleeper(
                atomic_load_explicit(&system->threads[i].manager.park, memory_order_acquire)))
            return false;
    }
    return true;
}

/* Print a house that has messages, or waits for something, or is not at rest. */
static void print_house(void *house_, void *left_)
{
    const domi_house *house = house_;
    uint32_t *left = left_;
    uint64_t life = domi_house_life_word(house);
    uint32_t inbox = domi_mailbox_depth_of_inbox(house);
    bool empty = house->tails[DOMI_REPLY] == NULL && house->tails[DOMI_EXCEPTION] == NULL &&
                 house->tails[DOMI_ASK] == NULL && house->tails[DOMI_NOTICE] == NULL &&
                 house->tails[DOMI_EVENT] == NULL;
    bool rests = (life & DOMI_LIFE_CLOSED) != 0 || house->state == DOMI_WAITING;

    if (*left == 0 ||
        (empty && rests && inbox == 0 && domi_house_count_parked_conversations(house) == 0 &&
         (life & DOMI_LIFE_STOP) == 0 && !domi_house_is_exposed(house)))
        return;
    --*left;
    fprintf(
        stderr,
        "    %s %p/%u: %s, slot %#x, marks %#x, life bits %#x, mail %u, inbox %u, lists %d%d%d%d%d,"
        " asks %u, stacks %u\n",
        (life & DOMI_LIFE_CLOSED) == 0 && house->behaviour != NULL ? house->behaviour->name
                                                                   : "(free)",
        (const void *)house, DOMI_LIFE_LEASE(life),
        domi_house_name_of_state((domi_state)house->state), domi_house_slot_bits(house),
        house->marks, (uint32_t)life, house->mail, inbox, house->tails[DOMI_REPLY] != NULL,
        house->tails[DOMI_EXCEPTION] != NULL, house->tails[DOMI_ASK] != NULL,
        house->tails[DOMI_NOTICE] != NULL, house->tails[DOMI_EVENT] != NULL, house->asks,
        domi_house_count_parked_conversations(house));
}

static void print_thread(domi_thread *thread)
{
    static const char *const parks[] = {
        [DOMI_PARK_RUNNING] = "running",   [DOMI_PARK_SPINNING] = "spinning",
        [DOMI_PARK_LOOKING] = "looking",   [DOMI_PARK_SLEEPING] = "sleeping",
        [DOMI_PARK_HELD] = "held",         [DOMI_PARK_WANTED] = "wanted",
        [DOMI_PARK_NOTIFIED] = "notified", [DOMI_PARK_DOZING] = "dozing"};
    domi_manager *manager = &thread->manager;
    const domi_stealing *stealing = &thread->stealing;
    const domus_behaviour *running = manager->activity.running;
    uint64_t due_ns = domi_thread_time_of_next_timer(thread);
    uint32_t park = manager->park;
    uint32_t left = HOUSES_MAX;

    fprintf(stderr,
            "thread %u: %s, runs %s; ready: state %u, channels %u; mounting %d, arrivals %p, "
            "returns %p, links kept back %u; houses %" PRIu64 ", timers %u, ",
            manager->index, park < sizeof parks / sizeof parks[0] ? parks[park] : "?",
            running != NULL ? running->name : "nobody", manager->schedule.ready[DOMUS_STATE].count,
            manager->schedule.ready[DOMUS_CHANNELS].count, manager->schedule.mounting.head != NULL,
            (void *)manager->mail.arrivals, (void *)manager->loans.returns,
            manager->mail.links.houses, manager->births.houses, manager->timing.timers);
    if (due_ns == UINT64_MAX)
        fprintf(stderr, "none due\n");
    else
        fprintf(stderr, "due in %" PRId64 " us\n",
                (int64_t)(due_ns - domi_clock_now(thread->clock)) / 1000);
    fprintf(stderr,
            "    lent %u, of these shown %u; thieves %u, lendable %u; after the houses of %d, "
            "patience %u, has borrowed %d; wanted %u, doing %u\n",
            manager->loans.lent, manager->loans.shared_count, manager->loans.thieves,
            manager->loans.lendable,
            stealing->victim == DOMI_NO_VICTIM ? -1 : (int)stealing->victim, stealing->patience,
            stealing->loan != NULL, thread->system->orders, thread->orders);
    domi_slots_visit_all(manager, print_house, &left);
}

void domt_watchdog_print_state(const domt_watchdog *dog, const domt_sums *sums,
                               const char *waits_for)
{
    static char text[32768];

    (void)domus_system_profile_table(dog->system, text, sizeof text);
    fprintf(stderr, "\n%s: nothing has moved for %" PRIu64 " s, and this is waited for: %s\n%s",
            dog->name, (domt_now_ns() - dog->since_ns) / 1000 / DOMT_MS, waits_for, text);
    for (uint32_t i = 0; i < dog->system->count; i++)
        print_thread(&dog->system->threads[i]);
    fprintf(stderr, "outside: arrivals %p, park %u; waking %u (0: nobody)\n",
            (void *)dog->system->outside.mail.arrivals, dog->system->outside.park,
            dog->system->waking);
    domt_sums_print(sums);
}

void domt_watchdog_check_progress(domt_watchdog *dog, const domt_sums *sums, const char *waits_for)
{
    uint64_t moved = domt_sums_total_handled(sums);

    if (moved != dog->moved) {
        dog->moved = moved;
        dog->since_ns = domt_now_ns();
    } else if (domt_now_ns() - dog->since_ns > STUCK_NS) {
        domt_watchdog_print_state(dog, sums, waits_for);
        abort();
    }
}
