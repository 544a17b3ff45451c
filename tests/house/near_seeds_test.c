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
static bool quiet; /* true: the actors begin nothing new */
static uint64_t now_seed;

/* --- what is seen ----------------------------------------------------------------------------- */

typedef struct sight {
    uint16_t who;   /* number of the actor */
    uint16_t what;  /* line of this file at which the event was seen */
    int32_t result; /* result of a verb, or the error of an answer */
    uint64_t number;
} sight;

static sight seen[2][SEEN_MAX];
static uint32_t seen_count[2];
static bool is_short; /* true in the run with the short ways */
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
static void compare(void)
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

static void see_release(void *payload)
{
    record_event(NULL, __LINE__, 0, *(const uint64_t *)payload);
}

static const uint32_t sizes[SIZES] = {8, 16, 24, 40, 200};
static domus_type questions[SIZES], answers[SIZES + 1], notes[SIZES];
static const domus_type owning = {.name = "owning", .size = 8, .release = see_release};

static unsigned draw_below(unsigned below)
{
    return (unsigned)domi_random_below(&dice, below);
}

static void draw_bytes(uint64_t words[25])
{
    uint64_t number = domi_random_next(&dice);

    for (unsigned i = 0; i < 25; i++)
        words[i] = number + i * number;
}

/* Returns the checksum of a payload that draw_bytes() has made. */
static uint64_t sum_of(const domus_type *type, const void *payload)
{
    uint64_t sum = type != NULL ? type->size : 1, word;

    for (uint32_t i = 0; type != NULL && i < type->size; i += 8) {
        memcpy(&word, (const char *)payload + i, 8);
        sum = sum * 31 + word;
    }
    return sum;
}

static domus_address choose_actor(void)
{
    return actors[draw_below(ACTORS)];
}

static int ask_either_way(domus_stack *stack, domus_address to, const domus_type *type,
                          const void *payload, domus_resumed *then)
{
    if (!is_short)
        return domi_ask_slow(stack, to, type, payload, then);
    bool was_pooled = stack->pooled == stack;
    int result = domus_ask(stack, to, type, payload, then);
    short_asks += was_pooled && result == DOMUS_PARKED && type->size <= 24 &&
                  to.house->home == stack->manager;
    return result;
}

static int reply_either_way(domus_stack *stack, const domus_type *type, const void *payload)
{
    if (!is_short)
        return domi_reply_slow(stack, type, payload);
    short_replies += stack->ask != NULL && stack->ask->sender != NULL &&
                     stack->ask->sender->home == stack->manager && type->size <= 24;
    return domus_reply(stack, type, payload);
}

static int notice_either_way(domus_stack *stack, domus_address to, const domus_type *type,
                             const void *payload)
{
    return is_short ? domus_notice(stack, to, type, payload)
                    : domus_notice_all(stack, &to, 1, type, payload, NULL);
}

/* --- what an actor does ----------------------------------------------------------------------- */

static int go_on(domus_stack *stack, void *self, const domus_answer *answer);

static const domus_pattern patterns[] = {
    {NULL, NULL},
    {(const domus_type *const[]){&questions[0], &questions[1], NULL}, NULL},
    {(const domus_type *const[]){&notes[0], &notes[2], NULL}, NULL},
};

static uint64_t some_time(void)
{
    static const uint64_t times[] = {0, 1, MS, 3 * MS, 9 * MS};

    return times[draw_below(5)];
}

static void answer_something(domus_stack *stack, const void *self)
{
    uint64_t bytes[25];
    unsigned which = draw_below(HANDLES);
    unsigned what = draw_below(12);
    int result;

    draw_bytes(bytes);
    if (what < 6) {
        const domus_type *type = &answers[draw_below(SIZES + 1)];
        result = reply_either_way(stack, type, bytes);
    } else if (what == 6) {
        result = domus_fail(stack, -EIO);
    } else if (what == 7) {
        result = domus_forward(stack, choose_actor());
    } else if (what == 8) {
        result = domus_keep(stack, &kept[which]);
    } else if (what == 9) {
        result = domus_stash(stack);
    } else if (what == 10) {
        result = domus_kept_reply(stack, kept[which], &answers[draw_below(SIZES + 1)], bytes);
    } else {
        result = domus_kept_forward(stack, kept[which], choose_actor());
    }
    record_event(self, __LINE__, result, what);
}

static void do_something(domus_stack *stack, const void *self)
{
    uint64_t bytes[25];
    unsigned which = draw_below(HANDLES);
    unsigned what = draw_below(16);
    int result = 0;

    draw_bytes(bytes);
    if (what < 4)
        result = notice_either_way(stack, choose_actor(), &notes[draw_below(SIZES)], bytes);
    else if (what < 6)
        result = domus_ask_add(stack, choose_actor(), &questions[draw_below(SIZES)], bytes,
                               some_time(), which);
    else if (what == 6)
        result = domus_conversation_of(stack, &conversations[which]);
    else if (what == 7)
        result = domus_cancel(stack, conversations[which]);
    else if (what == 8 && draw_below(3) == 0)
        result = domus_barrier(stack);
    else if (what == 9)
        domus_unstash(stack);
    else if (what == 10 && draw_below(16) == 0)
        result = domus_stop(stack, choose_actor());
    else
        answer_something(stack, self);
    record_event(self, __LINE__, result, what);
}

static int wait_for_something(domus_stack *stack)
{
    uint64_t bytes[25];
    const domus_type *type = draw_below(12) == 0 ? &owning : &questions[draw_below(SIZES)];
    const domus_pattern *pattern = &patterns[draw_below(3)];

    draw_bytes(bytes);
    switch (draw_below(12)) {
    case 0:
        return domus_wait_all(stack, go_on);
    case 1:
        return domus_wait_first(stack, go_on);
    case 2:
        return domus_sleep(stack, some_time(), go_on);
    case 3:
        return domus_receive_within(stack, pattern, some_time(), go_on);
    case 4:
        return domus_ask_within(stack, choose_actor(), type, bytes, some_time(), go_on);
    case 5:
        return -EIO;
    default:
        return ask_either_way(stack, choose_actor(), type, bytes, go_on);
    }
}

static int act_at_random(domus_stack *stack, const void *self)
{
    int result = 0;

    if (quiet)
        return 0;
    for (unsigned i = draw_below(4); i != 0; i--)
        do_something(stack, self);
    if (draw_below(8) < 5)
        result = wait_for_something(stack);
    for (unsigned i = draw_below(8) == 0; i != 0; i--)
        do_something(stack, self); /* behind the verb that waits */
    record_event(self, __LINE__, result, domus_pending(stack));
    return result;
}

static int go_on(domus_stack *stack, void *self, const domus_answer *answer)
{
    record_event(self, __LINE__, domus_sender(stack).house == NULL, domus_now_ns(stack));
    for (; answer != NULL; answer = answer->next)
        record_event(self, __LINE__, answer->error,
                     answer->tag +
                         (answer->error == 0 ? sum_of(answer->type, answer->payload) : 0));
    return act_at_random(stack, self);
}

static int handle_question(domus_stack *stack, void *self, const void *payload)
{
    record_event(self, __LINE__, domus_sender(stack).house == NULL,
                 sum_of(stack->message->type, payload));
    record_event(self, __LINE__, 0, domus_deadline_ns(stack));
    return act_at_random(stack, self);
}

static domus_on rows[2 * SIZES + 2];

static const domus_behaviour wild = {.name = "wild", .state_size = 8, .on = rows};

static void make_types(void)
{
    for (unsigned i = 0; i < SIZES; i++) {
        questions[i] = (domus_type){.name = "question", .size = sizes[i]};
        answers[i] = (domus_type){.name = "answer", .size = sizes[i]};
        notes[i] = (domus_type){.name = "note", .size = sizes[i]};
        /* A conversation with a frame is pooled from the start, so it soon takes the short way. */
        rows[2 * i] = (domus_on){&questions[i], handle_question, i % 2 * 8};
        rows[2 * i + 1] = (domus_on){&notes[i], handle_question, (i + 1) % 2 * 8};
    }
    answers[SIZES] = (domus_type){.name = "empty answer"};
    rows[2 * SIZES] = (domus_on){&owning, handle_question, 0};
}

/* --- the world -------------------------------------------------------------------------------- */

static void spawn_actor(uint32_t i)
{
    record_event(NULL, __LINE__,
                 domi_house_spawn(domt_outside(&world), world.managers[i % 3 == 2], &wild,
                                  &(uint64_t){i}, &actors[i]),
                 i);
}

static bool is_gone(domus_address address)
{
    return address.house == NULL || domi_house_address(address.house).lease != address.lease;
}

/* Lend a house of a home to the other home, which runs it. */
static void lend_house(domi_manager *home)
{
    domi_manager *thief = world.managers[home == world.managers[0]];

    if (domi_loans_expose(home, &home->schedule.ready[DOMUS_STATE], 1) == 0)
        return;
    domi_loan *loan = domi_loan_take(thief, home);
    ck_assert_ptr_nonnull(loan);
    if (draw_below(2) == 0) /* other actors put for the house meanwhile */
        (void)domt_run_state(thief);
    domi_loan_run(thief, loan);
}

static void do_random_step(void)
{
    domi_manager *home = world.managers[draw_below(4) == 0];
    uint32_t i = draw_below(ACTORS);
    uint64_t bytes[25];

    draw_bytes(bytes);
    switch (draw_below(10)) {
    case 0:
    case 1:
        record_event(NULL, __LINE__,
                     domt_notice(domt_outside(&world), actors[i], &notes[i % SIZES], bytes), i);
        break;
    case 2:
        (void)domt_events(home);
        break;
    case 3:
        (void)domt_run_state(home);
        break;
    case 4:
        domt_jump(&world, some_time());
        break;
    case 5:
        if (is_gone(actors[i]))
            spawn_actor(i);
        break;
    case 6:
        lend_house(home);
        break;
    case 7:
        domi_manager_set_pressure(home,
                                  draw_below(6) == 0 ? DOMUS_MEMORY_CRITICAL : DOMUS_MEMORY_NORMAL);
        break;
    default:
        (void)domt_iterate(home);
        break;
    }
}

static void calm_down(void)
{
    quiet = true;
    for (uint32_t i = 0; i < HOMES; i++)
        domi_manager_set_pressure(world.managers[i], DOMUS_MEMORY_NORMAL);
    for (uint32_t i = 0; i < ACTORS; i++)
        (void)domi_house_stop(domt_outside(&world), actors[i]);
    domt_settle(&world);
    ck_assert_uint_eq(domt_in_use_all(&world), 0);
}

static void run_program(bool short_ways)
{
    is_short = short_ways;
    seen_count[is_short] = 0;
    domi_random_init(&dice, now_seed);
    quiet = false;
    memset(&conversations, 0, sizeof conversations);
    memset(&kept, 0, sizeof kept);
    domt_world_init(&world, HOMES);
    world.config.scheduler.mailbox_max = 4 + draw_below(64);
    world.config.scheduler.belt_slots = draw_below(2) * 64;
    world.config.scheduler.conversations_max = 1 + draw_below(12);
    world.config.scheduler.messages_per_run_max = 1 + draw_below(64);
    ck_assert_int_eq(domt_world_start(&world), 0);
    for (uint32_t i = 0; i < ACTORS; i++)
        spawn_actor(i);
    for (uint32_t i = 0; i < STEPS; i++)
        do_random_step();
    calm_down();
    record_event(NULL, __LINE__, 0, DOMT_SUM(&world, late_replies));
    record_event(NULL, __LINE__, 0, DOMT_SUM(&world, asks_expired));
    for (uint32_t kind = 0; kind < DOMI_MAILBOXES; kind++)
        record_event(NULL, __LINE__, 0, domt_handled(&world, kind));
    domt_world_end(&world);
}

DOMT_TEST(short_ways_are_seen_by_nobody)
{
    const char *only = getenv("DOMT_SEED");
    uint64_t first = only != NULL ? strtoull(only, NULL, 10) : 1;
    uint64_t count = only != NULL ? 1 : getenv("DOMT_LONG") != NULL ? 100 * SEEDS : SEEDS;

    make_types();
    for (now_seed = first; now_seed < first + count; now_seed++) {
        run_program(false);
        run_program(true);
        compare();
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
