/* Order (M6) over threads that mostly sleep and stand in for each other, with belts and without.
 *
 * Actors of all threads number what they send, for each receiver and kind: small notices that may
 * go by belts, large ones that use inboxes, and asks. Each message lets its receiver send some
 * more, in bursts that go on for a while and end, so that threads fall asleep and doze again and
 * again. The numbers that come from one sender follow each other, whoever runs the two.
 * DOMUS_SEED=n runs one seed, DOMT_LONG many. */
#include "base/random.h"
#include "tests/runtime/running.h"

#include <domus/testkit.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS DOMT_SCALE(12, 6)
#define LONG  200u
#define CROWD 9u
#define STEPS 120u

enum { NOTICES, ASKS, KINDS };

typedef struct numbered {
    uint32_t from;
    uint32_t number;
    uint32_t depth; /* how many more may follow from this one */
    uint32_t check; /* tells a message whose parts belong to two */
} numbered;

typedef struct large_numbered {
    numbered numbered;
    unsigned char ballast[100];
} large_numbered;

static const domus_type small = {.name = "small", .size = sizeof(numbered)};
static const domus_type large = {.name = "large", .size = sizeof(large_numbered)};
static const domus_type question = {.name = "question", .size = sizeof(numbered)};
static const domus_type nothing = {.name = "nothing"};

static domus_address crowd[CROWD];
static _Atomic uint64_t under_way; /* messages and answers */
static _Atomic uint64_t wrong;     /* messages out of their order, or torn */
static _Atomic uint64_t handled;

typedef struct member {
    uint32_t index;
    uint32_t sent[CROWD][KINDS];
    uint32_t came[CROWD][KINDS];
    domi_random random;
} member;

static uint32_t check_of(const numbered *message)
{
    return message->from * 7919 + message->number * 31 + message->depth;
}

/* --- sending ---------------------------------------------------------------------------------- */

static large_numbered make(member *self, uint32_t to, uint32_t kind, uint32_t depth)
{
    large_numbered message = {
        .numbered = {.from = self->index, .number = self->sent[to][kind]++, .depth = depth}};

    message.numbered.check = check_of(&message.numbered);
    return message;
}

static void note(domus_stack *stack, member *self, uint32_t to, uint32_t depth)
{
    large_numbered message = make(self, to, NOTICES, depth);
    const domus_type *type = domi_random_below(&self->random, 3) == 0 ? &large : &small;

    atomic_fetch_add(&under_way, 1);
    if (domus_notice(stack, crowd[to], type, &message) != 0) {
        atomic_fetch_sub(&under_way, 1);
        self->sent[to][NOTICES]--;
    }
}

static int ask(domus_stack *stack, member *self, uint32_t to, uint32_t depth)
{
    large_numbered message = make(self, to, ASKS, depth);

    atomic_fetch_add(&under_way, 2); /* itself, and its answer */
    int error = domus_ask_add(stack, crowd[to], &question, &message, 0, 0);
    if (error != 0) {
        atomic_fetch_sub(&under_way, 2);
        self->sent[to][ASKS]--;
    }
    return error;
}

static int heard(domus_stack *stack, void *self, const domus_answer *answer)
{
    for (; answer != NULL; answer = answer->next) {
        atomic_fetch_add(&wrong, answer->error != 0);
        atomic_fetch_sub(&under_way, 1);
    }
    return 0;
}

/* Send a burst of messages, mostly to one other member. Returns as a handler does. */
static int pass_on(domus_stack *stack, member *self, uint32_t depth)
{
    uint32_t to = (uint32_t)domi_random_below(&self->random, CROWD);
    bool asks = false;

    for (uint32_t i = domi_random_below(&self->random, 20) < 13; i != 0; i++) {
        if (domi_random_below(&self->random, 4) != 0)
            note(stack, self, to, depth);
        else
            asks = ask(stack, self, to, depth) == 0 || asks;
        if (domi_random_below(&self->random, 3) == 0)
            to = (uint32_t)domi_random_below(&self->random, CROWD);
        if (domi_random_below(&self->random, 2) == 0)
            break;
    }
    return asks ? domus_wait_all(stack, heard) : 0;
}

/* --- receiving -------------------------------------------------------------------------------- */

static int take(domus_stack *stack, member *self, const numbered *message, uint32_t kind)
{
    uint32_t depth = message->depth;

    if (message->from < CROWD) { /* otherwise it came from outside */
        uint32_t *came = &self->came[message->from][kind];
        bool is_wrong = message->number != *came || message->check != check_of(message);
        atomic_fetch_add(&wrong, is_wrong);
        *came = message->number + 1;
    }
    atomic_fetch_add(&handled, 1);
    int result = depth != 0 ? pass_on(stack, self, depth - 1) : 0;
    atomic_fetch_sub(&under_way, 1);
    return result;
}

static int take_notice(domus_stack *stack, void *self, const void *message)
{
    return take(stack, self, message, NOTICES);
}

static int take_question(domus_stack *stack, void *self, const void *message)
{
    const numbered question_of = *(const numbered *)message;

    /* The answer comes before all that follows from the question. */
    int error = domus_reply(stack, &nothing, NULL);
    return error != 0 ? error : take(stack, self, &question_of, ASKS);
}

static const domus_behaviour behaviour = {
    .name = "member",
    .state_size = sizeof(member),
    .on = (const domus_on[]){{&small, take_notice, 0},
                             {&large, take_notice, 0},
                             {&question, take_question, 0},
                             {NULL, NULL, 0}},
};

/* --- a seed ----------------------------------------------------------------------------------- */

static domus_config sleepy_config(uint64_t seed)
{
    domus_config config = domt_config((uint32_t)(2 + seed % 2));

    config.io.backend = seed % 4 == 0 ? DOMUS_BACKEND_EPOLL : DOMUS_BACKEND_AUTO;
    config.scheduler.idle.stand_in_ns = 1000 * DOMT_MS;
    config.scheduler.idle.doze_ns = (seed % 3 == 0 ? 2 : 1000) * DOMT_MS;
    config.scheduler.belt_slots = seed % 3 == 1 ? 0 : 64;
    config.scheduler.messages_per_run_max = seed % 2 == 0 ? 3 : 256;
    return config;
}

/* Let one of them begin, and wait for a while. */
static void begin_burst(domus_system *system, domi_random *dice)
{
    const numbered first = {.from = CROWD, .depth = 6};

    for (uint64_t i = 1 + domi_random_below(dice, 3); i != 0; i--) {
        atomic_fetch_add(&under_way, 1);
        if (domus_outside_notice(system, crowd[domi_random_below(dice, CROWD)], &small, &first) !=
            0)
            atomic_fetch_sub(&under_way, 1);
    }
    domt_pause_ns(20000 + domi_random_below(dice, 500000));
}

static _Atomic uint64_t stood_in;

static int run_seed(uint64_t seed, void *context)
{
    domi_random dice;
    const domus_config config = sleepy_config(seed);
    domus_system *system = domt_start(&config);

    domi_random_init(&dice, seed);
    for (uint32_t i = 0; i < CROWD; i++) {
        member state = {.index = i};
        domi_random_init(&state.random, seed * CROWD + i);
        crowd[i] = domt_spawn(system, i % config.system.threads, &behaviour, &state);
    }
    for (uint32_t i = 0; i < STEPS; i++)
        begin_burst(system, &dice);
    DOMT_WAIT_FOR(60, atomic_load(&under_way) == 0);
    atomic_fetch_add(&stood_in, domt_profile_all(system).steals);
    ck_assert_uint_eq(domt_profile_all(system).cap_wakeups_with_work, 0);
    domt_end(system);
    return atomic_load(&wrong) == 0 ? 0 : -EIO;
}

DOMT_TEST(order_holds_whoever_stands_in)
{
    const char *many = getenv("DOMT_LONG");
    uint64_t seed = 0;

    int result = domus_testkit_sweep(1, many != NULL && many[0] != '\0' ? LONG : SEEDS, run_seed,
                                     NULL, &seed);
    ck_assert_msg(result == 0, "seed %llu: %llu messages out of their order",
                  (unsigned long long)seed, (unsigned long long)atomic_load(&wrong));
    ck_assert_uint_gt(atomic_load(&stood_in), 0);
    if (getenv("DOMT_SUMS") != NULL)
        printf("handled %llu, stood in %llu\n", (unsigned long long)atomic_load(&handled),
               (unsigned long long)atomic_load(&stood_in));
}

DOMT_SUITE(200)
