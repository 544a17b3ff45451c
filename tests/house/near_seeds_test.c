/* Random programs of actors are run twice, once with the short ways of asks, replies and notices
 * (near.c, actor.c) and once with the long ones alone: in both runs each actor sees the same
 * events, in the same order.
 *
 * The actors ask, answer, notice, sleep, receive, keep, stash, cancel, raise barriers and stop each
 * other, on homes that are stepped at random and lend houses to each other, while memory is short
 * now and then. All of that is drawn where it happens, so the two runs stay different from the
 * first difference on. DOMT_SEED=<n> runs one seed only. */
#include "base/random.h"
#include "house/conversation/asks.h"
#include "house/conversation/stack.h"
#include "house/dispatch/loan.h"
#include "house/family/life.h"
#include "house/message/owned.h"
#include "tests/support/house_world.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <domus/actor.h>
#include <domus/receive.h>
#include <domus/spawn.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS       UINT64_C(1000000)
#define HOMES    2u
#define ACTORS   7u
#define HANDLES  6u
#define SEEDS    DOMT_SCALE(150, 25)
#define STEPS    500u
#define SEEN_MAX 200000u
#define SIZES    5u

static domt_world world;
static domi_random dice;
static domus_address actors[ACTORS];
static domus_conversation conversations[HANDLES];
static domus_kept kept[HANDLES];
static bool quiet; /* true: the actors begin nothing new, so that the run comes to its end */
static uint64_t now_seed;

/* --- what is seen ----------------------------------------------------------------------------- */

typedef struct sight {
    uint16_t who;   /* number of the actor that saw the event */
    uint16_t what;  /* line of this file at which the event was seen */
    int32_t result; /* result of a verb, or the error of an answer */
    uint64_t number;
} sight;

static sight seen[2][SEEN_MAX];
static uint32_t seen_count[2];
static bool is_short; /* true in the run that uses the short ways */
static uint64_t short_asks, short_replies;

static void record_event(const void *self, int line, int result, uint64_t number)
{
    uint32_t at = seen_count[is_short]++;

    if (at == SEEN_MAX)
        ck_abort_msg("seed %llu: more is seen than fits", (unsigned long long)now_seed);
    seen[is_short][at] = (sight){
        .who = self != NULL ? *(const uint16_t *)self : UINT16_MAX,
        .what = (uint16_t)line,
        .result = result,
        .number = number,
    };
}

/* Compare the events that both runs have seen so far. */
static void compare_events_of_both_runs(void)
{
    for (uint32_t i = 0; i < seen_count[0] && i < seen_count[1]; i++) {
        const sight *slow = &seen[0][i], *near = &seen[1][i];
        if (slow->who != near->who || slow->what != near->what || slow->result != near->result ||
            slow->number != near->number)
            ck_abort_msg("seed %llu, sight %u: by long ways actor %u saw %d, %llu in line %u, by "
                         "short ways %u saw %d, %llu in line %u",
                         (unsigned long long)now_seed, i, slow->who, slow->result,
                         (unsigned long long)slow->number, slow->what, near->who, near->result,
                         (unsigned long long)near->number, near->what);
    }
    ck_assert_uint_eq(seen_count[0], seen_count[1]);
}

/* --- messages --------------------------------------------------------------------------------- */

static void record_release_as_event(void *payload)
{
    record_event(NULL, __LINE__, 0, *(const uint64_t *)payload);
}

static const uint32_t sizes[SIZES] = {8, 16, 24, 40, 200};
static domus_type questions[SIZES], answers[SIZES + 1], notes[SIZES];
static const domus_type owning = {.name = "owning", .size = 8, .release = record_release_as_event};

static unsigned random_below(unsigned below)
{
    return (unsigned)domi_random_below(&dice, below);
}

static void draw_bytes(uint64_t words[25])
{
    uint64_t number = domi_random_next_bits(&dice);

    for (unsigned i = 0; i < 25; i++)
        words[i] = number + i * number;
}

/* Returns the checksum of a payload that draw_bytes() has made. */
static uint64_t checksum_of_payload(const domus_type *type, const void *payload)
{
    uint64_t sum = type != NULL ? type->size : 1, word;

    for (uint32_t i = 0; type != NULL && i < type->size; i += 8) {
        memcpy(&word, (const char *)payload + i, 8);
        sum = sum * 31 + word;
    }
    return sum;
}

static domus_address choose_random_actor(void)
{
    return actors[random_below(ACTORS)];
}

static int ask_by_short_or_general_form(domus_stack *stack, domus_address to,
                                        const domus_type *type, const void *payload,
                                        domus_resumed *then)
{
    if (!is_short)
        return domi_ask_by_slow_path(stack, to, type, payload, then);
    bool was_pooled = stack->pooled == stack;
    int result = domus_ask(stack, to, type, payload, then);
    short_asks += was_pooled && result == DOMUS_PARKED && type->size <= 24 &&
                  to.house->home == stack->manager;
    return result;
}

static int reply_by_short_or_general_form(domus_stack *stack, const domus_type *type,
                                          const void *payload)
{
    if (!is_short)
        return domi_reply_by_slow_path(stack, type, payload);
    short_replies += stack->ask != NULL && stack->ask->sender != NULL &&
                     stack->ask->sender->home == stack->manager && type->size <= 24;
    return domus_reply(stack, type, payload);
}

static int notice_by_short_or_general_form(domus_stack *stack, domus_address to,
                                           const domus_type *type, const void *payload)
{
    return is_short ? domus_notice(stack, to, type, payload)
                    : domus_notice_all(stack, &to, 1, type, payload, NULL);
}

/* --- what an actor does ----------------------------------------------------------------------- */

static int record_answers_and_act(domus_stack *stack, void *self, const domus_answer *answer);

static const domus_pattern patterns[] = {
    {NULL, NULL},
    {(const domus_type *const[]){&questions[0], &questions[1], NULL}, NULL},
    {(const domus_type *const[]){&notes[0], &notes[2], NULL}, NULL},
};

static uint64_t choose_random_time(void)
{
    static const uint64_t times[] = {0, 1, MS, 3 * MS, 9 * MS};

    return times[random_below(5)];
}

static void answer_at_random(domus_stack *stack, const void *self)
{
    uint64_t bytes[25];
    unsigned which = random_below(HANDLES);
    unsigned what = random_below(12);
    int result;

    draw_bytes(bytes);
    if (what < 6) {
        const domus_type *type = &answers[random_below(SIZES + 1)];
        result = reply_by_short_or_general_form(stack, type, bytes);
    } else if (what == 6) {
        result = domus_fail(stack, -EIO);
    } else if (what == 7) {
        result = domus_forward(stack, choose_random_actor());
    } else if (what == 8) {
        result = domus_keep(stack, &kept[which]);
    } else if (what == 9) {
        result = domus_stash(stack);
    } else if (what == 10) {
        result = domus_kept_reply(stack, kept[which], &answers[random_below(SIZES + 1)], bytes);
    } else {
        result = domus_kept_forward(stack, kept[which], choose_random_actor());
    }
    record_event(self, __LINE__, result, what);
}

static void call_random_verb(domus_stack *stack, const void *self)
{
    uint64_t bytes[25];
    unsigned which = random_below(HANDLES);
    unsigned what = random_below(16);
    int result = 0;

    draw_bytes(bytes);
    if (what < 4)
        result = notice_by_short_or_general_form(stack, choose_random_actor(),
                                                 &notes[random_below(SIZES)], bytes);
    else if (what < 6)
        result = domus_ask_add(stack, choose_random_actor(), &questions[random_below(SIZES)], bytes,
                               choose_random_time(), which);
    else if (what == 6)
        result = domus_conversation_of(stack, &conversations[which]);
    else if (what == 7)
        result = domus_cancel(stack, conversations[which]);
    else if (what == 8 && random_below(3) == 0)
        result = domus_barrier(stack);
    else if (what == 9)
        domus_unstash(stack);
    else if (what == 10 && random_below(16) == 0)
        result = domus_stop(stack, choose_random_actor());
    else
        answer_at_random(stack, self);
    record_event(self, __LINE__, result, what);
}

static int ask_sleep_or_receive_at_random(domus_stack *stack)
{
    uint64_t bytes[25];
    const domus_type *type = random_below(12) == 0 ? &owning : &questions[random_below(SIZES)];
    const domus_pattern *pattern = &patterns[random_below(3)];

    draw_bytes(bytes);
    switch (random_below(12)) {
    case 0:
        return domus_wait_all(stack, record_answers_and_act);
    case 1:
        return domus_wait_first(stack, record_answers_and_act);
    case 2:
        return domus_sleep(stack, choose_random_time(), record_answers_and_act);
    case 3:
        return domus_receive_within(stack, pattern, choose_random_time(), record_answers_and_act);
    case 4:
        return domus_ask_within(stack, choose_random_actor(), type, bytes, choose_random_time(),
                                record_answers_and_act);
    case 5:
        return -EIO;
    default:
        return ask_by_short_or_general_form(stack, choose_random_actor(), type, bytes,
                                            record_answers_and_act);
    }
}

static int act_at_random(domus_stack *stack, const void *self)
{
    int result = 0;

    if (quiet)
        return 0;
    for (unsigned i = random_below(4); i != 0; i--)
        call_random_verb(stack, self);
    if (random_below(8) < 5)
        result = ask_sleep_or_receive_at_random(stack);
    for (unsigned i = random_below(8) == 0; i != 0; i--)
        call_random_verb(stack, self); /* now and then do something behind a verb that waits */
    record_event(self, __LINE__, result, domus_pending(stack));
    return result;
}

static int record_answers_and_act(domus_stack *stack, void *self, const domus_answer *answer)
{
    record_event(self, __LINE__, domus_sender(stack).house == NULL, domus_now_ns(stack));
    for (; answer != NULL; answer = answer->next)
        record_event(self, __LINE__, answer->error,
                     answer->tag + (answer->error == 0
                                        ? checksum_of_payload(answer->type, answer->payload)
                                        : 0));
    return act_at_random(stack, self);
}

static int handle_question_at_random(domus_stack *stack, void *self, const void *payload)
{
    record_event(self, __LINE__, domus_sender(stack).house == NULL,
                 checksum_of_payload(stack->message->type, payload));
    record_event(self, __LINE__, 0, domus_deadline_ns(stack));
    return act_at_random(stack, self);
}

static domus_on rows[2 * SIZES + 2];

static const domus_behaviour wild = {.name = "wild", .state_size = 8, .on = rows};

static void make_types_of_all_sizes(void)
{
    for (unsigned i = 0; i < SIZES; i++) {
        questions[i] = (domus_type){.name = "question", .size = sizes[i]};
        answers[i] = (domus_type){.name = "answer", .size = sizes[i]};
        notes[i] = (domus_type){.name = "note", .size = sizes[i]};
        /* The frame of this conversation makes its stack a pooled one from the start, so that its
         * asks soon take the short way. */
        rows[2 * i] = (domus_on){&questions[i], handle_question_at_random, i % 2 * 8};
        rows[2 * i + 1] = (domus_on){&notes[i], handle_question_at_random, (i + 1) % 2 * 8};
    }
    answers[SIZES] = (domus_type){.name = "empty answer"};
    rows[2 * SIZES] = (domus_on){&owning, handle_question_at_random, 0};
}

/* --- the world -------------------------------------------------------------------------------- */

static void spawn_actor(uint32_t i)
{
    record_event(NULL, __LINE__,
                 domi_house_spawn_without_parent(domt_outside_manager(&world),
                                                 world.managers[i % 3 == 2], &wild, &(uint64_t){i},
                                                 &actors[i]),
                 i);
}

static bool has_actor_ended(domus_address address)
{
    return address.house == NULL || domi_house_get_address(address.house).lease != address.lease;
}

/* Take a loan of one of a home's houses for the other home, which runs the house. */
static void lend_house_to_other_home(domi_manager *home)
{
    domi_manager *thief = world.managers[home == world.managers[0]];

    if (domi_loans_expose_houses(home, &home->schedule.ready[DOMUS_STATE], 1) == 0)
        return;
    domi_loan *loan = domi_loan_take_exposed_house(thief, home);
    ck_assert_ptr_nonnull(loan);
    if (random_below(2) == 0) /* actors of the thief may put for the lent house meanwhile */
        (void)domt_run_state_queue(thief);
    domi_loan_run_house_and_return(thief, loan);
}

static void do_random_step(void)
{
    domi_manager *home = world.managers[random_below(4) == 0];
    uint32_t i = random_below(ACTORS);
    uint64_t bytes[25];

    draw_bytes(bytes);
    switch (random_below(10)) {
    case 0:
    case 1:
        record_event(
            NULL, __LINE__,
            domt_send_notice(domt_outside_manager(&world), actors[i], &notes[i % SIZES], bytes), i);
        break;
    case 2:
        (void)domt_take_arrivals_and_timers(home);
        break;
    case 3:
        (void)domt_run_state_queue(home);
        break;
    case 4:
        domt_advance_time_without_runs(&world, choose_random_time());
        break;
    case 5:
        if (has_actor_ended(actors[i]))
            spawn_actor(i);
        break;
    case 6:
        lend_house_to_other_home(home);
        break;
    case 7:
        domi_manager_set_memory_level(home, random_below(6) == 0 ? DOMUS_MEMORY_CRITICAL
                                                                 : DOMUS_MEMORY_NORMAL);
        break;
    default:
        (void)domt_iterate_home(home);
        break;
    }
}

static void end_all_actors(void)
{
    quiet = true;
    for (uint32_t i = 0; i < HOMES; i++)
        domi_manager_set_memory_level(world.managers[i], DOMUS_MEMORY_NORMAL);
    for (uint32_t i = 0; i < ACTORS; i++)
        (void)domi_house_ask_to_stop(domt_outside_manager(&world), actors[i]);
    domt_settle_world(&world);
    ck_assert_uint_eq(domt_count_all_objects_in_use(&world), 0);
}

static void run_random_program(bool short_ways)
{
    is_short = short_ways;
    seen_count[is_short] = 0;
    domi_random_init(&dice, now_seed);
    quiet = false;
    memset(&conversations, 0, sizeof conversations);
    memset(&kept, 0, sizeof kept);
    domt_world_init(&world, HOMES);
    world.config.scheduler.mailbox_max = 4 + random_below(64);
    world.config.scheduler.belt_slots = random_below(2) * 64;
    world.config.scheduler.conversations_max = 1 + random_below(12);
    world.config.scheduler.messages_per_run_max = 1 + random_below(64);
    ck_assert_int_eq(domt_world_start(&world), 0);
    for (uint32_t i = 0; i < ACTORS; i++)
        spawn_actor(i);
    for (uint32_t i = 0; i < STEPS; i++)
        do_random_step();
    end_all_actors();
    record_event(NULL, __LINE__, 0, DOMT_SUM(&world, late_replies));
    record_event(NULL, __LINE__, 0, DOMT_SUM(&world, asks_expired));
    for (uint32_t kind = 0; kind < DOMI_MAILBOXES; kind++)
        record_event(NULL, __LINE__, 0, domt_sum_handled_messages(&world, kind));
    domt_world_end(&world);
}

DOMT_TEST(short_ways_change_no_result_of_random_programs)
{
    const char *only = getenv("DOMT_SEED");
    uint64_t first = only != NULL ? strtoull(only, NULL, 10) : 1;
    uint64_t count = only != NULL ? 1 : getenv("DOMT_LONG") != NULL ? 100 * SEEDS : SEEDS;

    make_types_of_all_sizes();
    for (now_seed = first; now_seed < first + count; now_seed++) {
        run_random_program(false);
        run_random_program(true);
        compare_events_of_both_runs();
    }
    if (only == NULL) {
        ck_assert_uint_gt(short_asks, 20 * count);
        ck_assert_uint_gt(short_replies, 20 * count);
    }
    if (getenv("DOMT_SHOW") != NULL)
        printf("%llu asks, %llu replies, %u sights in the last\n", (unsigned long long)short_asks,
               (unsigned long long)short_replies, seen_count[1]);
}

DOMT_SUITE(900)
