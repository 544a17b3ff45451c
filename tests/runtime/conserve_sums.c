/* The counters, a line for each thread, and the budget of the conservation stress.
 *
 * A line is claimed at a thread's first count; the first is the test's own. A reset takes all
 * others back, so it comes before the threads of a run. */
#include "tests/runtime/conserve.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdalign.h>
#include <stdio.h>

#define LINES 256u

typedef struct line {
    alignas(128) _Atomic uint64_t of[DOMT_COUNTS_MAX];
    int64_t left; /* of the block; the thread's own */
} line;

static line lines[LINES];
static int64_t block; /* messages that a thread takes from the budget at once; constant in a run */
static _Atomic uint32_t claimed;
static _Thread_local line *mine;
alignas(128) static _Atomic int64_t budget;

/* The counts that begin something of a kind, and those that end it. The first 0 ends a list, except
 * in its first place: 0 is the number of a count, too. */
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

static line *own_line(void)
{
    if (mine == NULL) {
        uint32_t place = atomic_fetch_add_explicit(&claimed, 1, memory_order_relaxed);
        DOMI_CHECK(place < LINES);
        mine = &lines[place];
    }
    return mine;
}

void domt_count_by(enum domt_count what, uint64_t by)
{
    _Atomic uint64_t *counter = &own_line()->of[what];

    /* release: pairs with read_one(). A thread that sees an end sees the beginning that
     * came before it. */
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by,
                          memory_order_release);
}

uint64_t domt_counted_here(enum domt_count what)
{
    return atomic_load_explicit(&own_line()->of[what], memory_order_relaxed);
}

void domt_sums_reset(int64_t budget_block)
{
    uint32_t count = atomic_load_explicit(&claimed, memory_order_relaxed);

    DOMI_CHECK(own_line() == &lines[0]); /* the test's own; the others' threads have ended */
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t what = 0; what < DOMT_COUNTS_MAX; what++)
            atomic_store_explicit(&lines[i].of[what], 0, memory_order_relaxed);
        lines[i].left = 0;
    }
    block = budget_block;
    atomic_store_explicit(&claimed, 1, memory_order_relaxed);
    atomic_store_explicit(&budget, 0, memory_order_relaxed);
}

static uint64_t read_one(uint32_t what)
{
    uint32_t count = atomic_load_explicit(&claimed, memory_order_relaxed);
    uint64_t sum = 0;

    /* acquire: pairs with domt_count_by(); what is read after this is at least as new. */
    for (uint32_t i = 0; i < count; i++)
        sum += atomic_load_explicit(&lines[i].of[what], memory_order_acquire);
    return sum;
}

static bool is_beginning(uint32_t what)
{
    for (size_t i = 0; i < KINDS; i++) {
        if (kinds[i].begun[0] == what || (kinds[i].begun[1] == what && what != 0))
            return true;
    }
    return false;
}

void domt_sums_read(domt_sums *sums)
{
    for (uint32_t what = 0; what < DOMT_COUNTS_MAX; what++) {
        if (!is_beginning(what))
            sums->of[what] = read_one(what);
    }
    for (uint32_t what = 0; what < DOMT_COUNTS_MAX; what++) {
        if (is_beginning(what))
            sums->of[what] = read_one(what);
    }
}

static uint64_t sum_of(const domt_sums *sums, const uint8_t *places, size_t count)
{
    uint64_t sum = sums->of[places[0]];

    for (size_t i = 1; i < count && places[i] != 0; i++)
        sum += sums->of[places[i]];
    return sum;
}

bool domt_sums_balance(const domt_sums *sums, const char **ret_kind)
{
    for (size_t i = 0; i < KINDS; i++) {
        if (sum_of(sums, kinds[i].begun, 2) == sum_of(sums, kinds[i].ended, 4))
            continue;
        if (ret_kind != NULL)
            *ret_kind = kinds[i].name;
        return false;
    }
    return true;
}

const char *domt_sums_twice(const domt_sums *sums)
{
    for (size_t i = 0; i < KINDS; i++) {
        if (sum_of(sums, kinds[i].begun, 2) < sum_of(sums, kinds[i].ended, 4))
            return kinds[i].name;
    }
    return NULL;
}

uint64_t domt_sums_moved(const domt_sums *sums)
{
    const uint64_t *of = sums->of;

    return of[DOMT_NOTICE_TAKEN] + of[DOMT_LETTER_TAKEN] + of[DOMT_ASK_TAKEN] +
           of[DOMT_QUERY_TAKEN] + of[DOMT_ASK_RESUMED] + of[DOMT_TIMER_RUNG] + of[DOMT_JOB_ENDED] +
           of[DOMT_RECEIVE_FAILED];
}

/* Replies and exceptions: each ask that was put has one, or none if its time was over. */
uint64_t domt_sums_messages(const domt_sums *sums)
{
    return sums->of[DOMT_NOTICE_MADE] + sums->of[DOMT_LETTER_MADE] + sums->of[DOMT_ASK_MADE] +
           sums->of[DOMT_ASK_FORWARDED] + sums->of[DOMT_ASK_ANSWERED] + sums->of[DOMT_QUERY_MADE] +
           sums->of[DOMT_QUERY_ENDED] + sums->of[DOMT_TIMER_RUNG] + sums->of[DOMT_TICKER_RUNG];
}

const char *domt_count_text(uint32_t what)
{
#define TEXT(name, text) text,
    static const char *const texts[] = {DOMT_COUNTS(TEXT)};

    return what < DOMT_COUNTS_MAX ? texts[what] : NULL;
}

void domt_sums_print(const domt_sums *sums)
{
    const char *kind;

    for (uint32_t what = 0; what < DOMT_COUNTS_MAX; what++)
        fprintf(stderr, "%-36s %14" PRIu64 "\n", domt_count_text(what), sums->of[what]);
    for (size_t i = 0; i < KINDS; i++) {
        uint64_t begun = sum_of(sums, kinds[i].begun, 2);
        uint64_t ended = sum_of(sums, kinds[i].ended, 4);
        if (begun != ended)
            fprintf(stderr, "%s: %" PRIu64 " begun, %" PRIu64 " ended\n", kinds[i].name, begun,
                    ended);
    }
    fprintf(stderr, "%s; %" PRId64 " of the budget left\n",
            domt_sums_balance(sums, &kind) ? "in balance" : "not in balance", domt_budget_left());
}

/* --- the budget ------------------------------------------------------------------------------- */

void domt_budget_give(int64_t messages)
{
    /* Relaxed, all: a number; who spends it was sent a message. */
    atomic_fetch_add_explicit(&budget, messages, memory_order_relaxed);
}

int64_t domt_budget_left(void)
{
    return atomic_load_explicit(&budget, memory_order_relaxed);
}

bool domt_budget_spend(void)
{
    line *own = own_line();

    if (own->left == 0) {
        if (domt_budget_left() <= 0)
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
