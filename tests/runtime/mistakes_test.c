/* The log tells mistakes of handlers from which the library goes on, once for each behaviour and
 * type, and the profile counts them: a wait that is not returned, a second wait in a turn, a result
 * that means nothing. It tells of an actor that has its most conversations, too. */
#include "tests/runtime/running.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define LINES_MAX 64

static pthread_mutex_t lines_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    unsigned count;
    char text[LINES_MAX][DOMUS_LOG_TEXT_MAX + 1];
} lines;

static void log_line(void *context, domus_log_level level, uint32_t thread, const char *text)
{
    pthread_mutex_lock(&lines_mutex);
    ck_assert_uint_lt(lines.count, LINES_MAX);
    memcpy(lines.text[lines.count++], text, strlen(text) + 1);
    pthread_mutex_unlock(&lines_mutex);
}

static unsigned count_lines(const char *text)
{
    unsigned found = 0;

    pthread_mutex_lock(&lines_mutex);
    for (unsigned i = 0; i < lines.count; i++)
        found += strstr(lines.text[i], text) != NULL;
    pthread_mutex_unlock(&lines_mutex);
    return found;
}

static domus_system *start_logging(const domus_config *config)
{
    const domus_hooks hooks = {.log = log_line};
    domus_system *system = NULL;

    lines.count = 0;
    ck_assert_int_eq(domus_system_new_with(config, &hooks, NULL, 0, &system), 0);
    ck_assert_int_eq(domus_system_start(system), 0);
    return system;
}

/* --- an actor that is asked, and one that makes mistakes -------------------------------------- */

static const domus_type question = {.name = "question"};
static const domus_type drops_type = {.name = "drops"};
static const domus_type twice_type = {.name = "twice"};
static const domus_type odd_type = {.name = "odd"};
static const domus_type right_type = {.name = "right"};
static domus_address oracle_address;
static _Atomic uint64_t handled, resumed;

static int reply(domus_stack *stack, void *self, const void *payload)
{
    return domus_reply(stack, &question, NULL);
}

static int hear(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_fetch_add(&resumed, 1);
    return 0;
}

static int drop(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&handled, 1);
    ck_assert_int_eq(domus_ask(stack, oracle_address, &question, NULL, hear), DOMUS_PARKED);
    return 0;
}

static int ask_twice(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&handled, 1);
    (void)domus_ask(stack, oracle_address, &question, NULL, hear);
    return domus_ask(stack, oracle_address, &question, NULL, hear);
}

static int return_five(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&handled, 1);
    return 5;
}

/* None of this is a mistake: several asks, of which the first answer is enough; a failure after an
 * ask was begun; a wait behind a wait. */
static int wait_again(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)domus_ask_add(stack, oracle_address, &question, NULL, 0, 1);
    (void)domus_ask_add(stack, oracle_address, &question, NULL, 0, 2);
    return domus_wait_first(stack, hear);
}

static int do_right(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&handled, 1);
    (void)domus_ask_add(stack, oracle_address, &question, NULL, 0, 0);
    return domus_ask(stack, oracle_address, &question, NULL, wait_again);
}

static const domus_behaviour oracle = {
    .name = "oracle", .on = (const domus_on[]){{&question, reply, 0}, {NULL, NULL, 0}}};
static const domus_behaviour hasty = {
    .name = "hasty",
    .on = (const domus_on[]){{&drops_type, drop, 0},
                             {&twice_type, ask_twice, 0},
                             {&odd_type, return_five, 0},
                             {&right_type, do_right, 0},
                             {NULL, NULL, 0}},
};

/* Let the hasty actor handle `times` notices of `type`, and wait until it was resumed so often. */
static void provoke(domus_system *system, const domus_type *type, uint64_t times, uint64_t resumes)
{
    domus_address address = domt_spawn(system, 0, &hasty, NULL);

    atomic_store(&handled, 0);
    atomic_store(&resumed, 0);
    for (uint64_t i = 0; i < times; i++)
        domt_notice(system, address, type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&handled) == times && atomic_load(&resumed) == resumes);
    ck_assert_int_eq(domus_outside_stop(system, address), 0);
}

DOMT_TEST(mistakes_are_told_once_and_counted_each_time)
{
    domus_config config = domt_config(1);
    domus_system *system = start_logging(&config);

    oracle_address = domt_spawn(system, 0, &oracle, NULL);
    provoke(system, &right_type, 3, 3);
    ck_assert_uint_eq(lines.count, 0);
    provoke(system, &drops_type, 3, 0);
    DOMT_WAIT_FOR(10, domt_profile(system, 0).waits_lost == 3);
    provoke(system, &twice_type, 3, 3);
    DOMT_WAIT_FOR(10, domt_profile(system, 0).waits_lost == 6);
    provoke(system, &odd_type, 3, 0);
    DOMT_WAIT_FOR(10, domt_profile(system, 0).results_unknown == 3);
    domus_profile profile = domt_profile(system, 0);
    ck_assert_uint_eq(profile.waits_lost, 6);
    ck_assert_uint_eq(profile.failures, 0);
    domt_end(system);
    ck_assert_uint_eq(lines.count, 3);
    ck_assert_uint_eq(count_lines("actor hasty 0/"), 3);
    ck_assert_uint_eq(count_lines("handles drops let its conversation wait and returned 0"), 1);
    ck_assert_uint_eq(count_lines("handles twice let its conversation wait twice"), 1);
    ck_assert_uint_eq(count_lines("handles odd returned 5, which is neither"), 1);
}

/* --- an actor that has its most conversations ------------------------------------------------- */

static int keep(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&handled, 1);
    return domus_sleep(stack, 20 * DOMT_MS, hear);
}

static const domus_behaviour slow = {
    .name = "slow", .on = (const domus_on[]){{&question, keep, 0}, {NULL, NULL, 0}}};

DOMT_TEST(most_conversations_are_told_once_in_a_spell)
{
    domus_config config = domt_config(1);

    config.scheduler.conversations_max = 2;
    domus_system *system = start_logging(&config);
    domus_address address = domt_spawn(system, 0, &slow, NULL);

    atomic_store(&resumed, 0);
    for (int i = 0; i < 12; i++)
        domt_notice(system, address, &question, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&resumed) == 12);
    uint64_t times = domt_profile(system, 0).conversations_full;
    ck_assert_uint_ge(times, 6);
    DOMT_WAIT_FOR(20, count_lines("no actor comes to scheduler.conversationsMax any more") == 1);
    domt_end(system);
    ck_assert_uint_eq(count_lines("slow 0/"), 1);
    ck_assert_uint_eq(count_lines("has 2 conversations, the most that"), 1);
}

DOMT_SUITE(60)
