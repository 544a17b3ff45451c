/* Very many asks at once: a fan-out to ten thousand targets on two homes, thousands with time-outs,
 * and more than memory is there for. Each comes to one end. */
#include "base/memory.h"
#include "base/random.h"
#include "house/conversation/stack.h"
#include "tests/house/asking.h"
#include "tests/support/suite.h"

#include <errno.h>

#define MS UINT64_C(1000000)

static domt_world world;
static domus_address asker;    /* home 0 */
static domus_address other[3]; /* one on each home */

/* Counts of what happened to asks and answers. */
static uint64_t handled;
static uint64_t resumed;
static uint64_t answered;
static uint64_t failed;
static uint64_t tag_sum;
static uint64_t number_sum;

typedef struct request {
    uint64_t number;
    uint64_t nap_ns; /* how long the asked actor sleeps before it answers; 0: not at all */
} request;

static const domus_type question = {
    .name = "question", .size = sizeof(request), .release = domt_release_ask};
static const domus_type number_type = {.name = "number", .size = 8, .release = domt_release_reply};

static int reply_later(domus_stack *stack, void *self, const domus_answer *answer)
{
    return domus_reply(stack, &number_type, domus_frame(stack));
}

static int take_question(domus_stack *stack, void *self, const void *request_)
{
    const request *now = request_;

    (void)domus_take(stack);
    handled++;
    *(uint64_t *)domus_frame(stack) = now->number + 1;
    return now->nap_ns != 0 ? domus_sleep(stack, now->nap_ns, reply_later)
                            : reply_later(stack, self, NULL);
}

static const domus_behaviour answering = {
    .name = "answering",
    .on = (const domus_on[]){{&question, take_question, 8}, {NULL, NULL, 0}},
};

static int hear(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)domus_take(stack);
    resumed++;
    for (; answer != NULL; answer = answer->next) {
        tag_sum += answer->tag;
        answered += answer->error == 0;
        failed += answer->error != 0;
        if (answer->error == 0)
            number_sum += *(const uint64_t *)answer->payload;
    }
    return 0;
}

/* --- fan-out --------------------------------------------------------------------------------- */

#define TARGETS 10000

static domus_address targets[TARGETS];

static int hear_each(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)domus_take(stack);
    (void)hear(stack, self, answer);
    return answered + failed < TARGETS ? domus_wait_first(stack, hear_each) : 0;
}

static int ask_all_targets(domus_stack *stack, void *first)
{
    for (uint64_t i = 0; i < TARGETS; i++) {
        request now = {i, 0};
        if (domus_ask_add(stack, targets[i], &question, &now, 0, i) != 0)
            return -ENOMEM;
    }
    ck_assert_uint_eq(domus_pending(stack), TARGETS);
    return first != NULL ? domus_wait_first(stack, hear_each) : domus_wait_all(stack, hear);
}

static void fan_out(void *first)
{
    domt_asking_open(&world, &answering, &asker, other);
    for (uint32_t i = 0; i < TARGETS; i++)
        targets[i] = domt_spawn(domt_outside(&world), world.managers[1 + i % 2], &answering, NULL);
    domt_settle(&world);
    domt_do(&world, asker, ask_all_targets, first);
    ck_assert_uint_eq(answered, TARGETS);
    ck_assert_uint_eq(failed, 0);
    ck_assert_uint_eq(tag_sum, (uint64_t)TARGETS * (TARGETS - 1) / 2);
    ck_assert_uint_eq(number_sum, (uint64_t)TARGETS * (TARGETS + 1) / 2);
    ck_assert_uint_eq(domt_ask_releases + domt_reply_releases, 0);
}

DOMT_TEST(fan_out_to_10000_targets_on_two_homes_waits_for_all)
{
    fan_out(NULL);
    ck_assert_uint_eq(resumed, 1);
    domt_asking_close(&world, asker);
}

DOMT_TEST(fan_out_to_10000_targets_on_two_homes_shows_one_by_one)
{
    fan_out(&world);
    ck_assert_uint_eq(resumed, TARGETS);
    domt_asking_close(&world, asker);
}

/* --- with time-outs -------------------------------------------------------------------------- */

#define MANY 5000

typedef struct order {
    uint32_t to;
    uint64_t timeout_ns;
    request request;
} order;

static order orders[MANY];

static int ask_within(domus_stack *stack, void *order_)
{
    const order *now = order_;

    return domus_ask_within(stack, other[now->to], &question, &now->request, now->timeout_ns, hear);
}

DOMT_TEST(each_of_thousands_is_answered_or_times_out_once)
{
    domi_random random;

    domi_random_init(&random, 11);
    domt_asking_open(&world, &answering, &asker, other);
    for (int i = 0; i < MANY; i++) {
        orders[i] = (order){(uint32_t)domi_random_below(&random, 3),
                            (1 + domi_random_below(&random, 30)) * MS,
                            {1, domi_random_below(&random, 30) * MS}};
        domt_send(world.managers[0], asker, ask_within, &orders[i]);
        if (i % 64 == 0) {
            (void)domt_iterate(world.managers[domi_random_below(&random, 3)]);
            domt_jump(&world, domi_random_below(&random, 3) * MS / 2);
        }
    }
    domt_pass(&world, 70 * MS);
    uint64_t expired = DOMT_SUM(&world, asks_expired);
    ck_assert_uint_eq(answered + failed, MANY);
    ck_assert_uint_eq(resumed, MANY);
    ck_assert_uint_eq(handled, MANY - expired);
    ck_assert_uint_eq(domt_ask_releases, expired);
    ck_assert_uint_eq(domt_reply_releases, failed - expired);
    ck_assert_uint_gt(answered, MANY / 10);
    ck_assert_uint_gt(failed, MANY / 10);
    domt_asking_close(&world, asker);
}

/* --- without memory -------------------------------------------------------------------------- */

static uint64_t refused;

/* More asks than a chunk of promises holds, so that the sweep meets a promise too. */
static int ask_while_memory_lasts(domus_stack *stack, void *context)
{
    for (uint64_t i = 0; i < 3000; i++) {
        request now = {i, 0};
        int result = domus_ask_add(stack, other[i % 3], &question, &now, 0, i);
        ck_assert(result == 0 || result == -ENOMEM);
        refused += result != 0;
    }
    int result = domus_wait_all(stack, hear);
    ck_assert(result == DOMUS_PARKED || result == -ENOMEM);
    return result;
}

static bool clean_without(int count, int stay)
{
    refused = resumed = answered = failed = 0;
    domi_memory_fail_after(-1, 0);
    domt_asking_open(&world, &answering, &asker, other);
    domt_send(world.managers[0], asker, ask_while_memory_lasts, NULL);
    domi_memory_fail_after(count, stay);
    domt_settle(&world);
    domi_memory_fail_after(-1, 0);
    ck_assert_uint_eq(answered + failed + refused, resumed != 0 ? 3000 : refused);
    domt_asking_close(&world, asker);
    return resumed == 1 && answered == 3000;
}

DOMT_TEST(asks_without_memory_fail_and_the_others_are_answered)
{
    for (int stay = 0; stay < 2; stay++) {
        int count = 0;
        while (!clean_without(count, stay))
            ck_assert_int_lt(++count, 1000);
        ck_assert_int_gt(count, 3); /* the sweep has met allocations */
    }
}

DOMT_SUITE(60)
