/* Cancels that come in crowds: an asker gives up thousands of asks at once. Some of these are being
 * answered, some are kept, some were put aside, and some have not begun. Each cancel finds its own
 * ask, and no other one. */

#include "house/conversation/holder.h"
#include "house/conversation/stack.h"
#include "house/family/family.h"
#include "house/message/types.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <errno.h>

#define CROWD 3000u
#define MS    UINT64_C(1000000)

static const domus_type question_type = {.name = "question", .size = sizeof(uint32_t)};

static domt_world world;
static domus_address asker;
static domus_address other;
static domus_address answerer;
static domus_conversation crowd;
static uint32_t cancelled, resumed, wrong, shown;

static int woken(domus_stack *stack, void *self, const domus_answer *answer)
{
    resumed++;
    cancelled += answer->error == -ECANCELED;
    return 0;
}

/* The number decides whether the conversation sleeps, keeps the ask or puts it aside. */
static int on_question(domus_stack *stack, void *self, const void *number)
{
    domus_kept kept;

    switch (*(const uint32_t *)number % 3) {
    case 0:
        return domus_sleep(stack, 3600000 * MS, woken);
    case 1:
        return domus_keep(stack, &kept);
    default:
        return domus_stash(stack);
    }
}

static const domus_behaviour answerer_behaviour = {
    .name = "answerer",
    .on = (const domus_on[]){{&question_type, on_question, 0}, {NULL, NULL, 0}},
};

static int all_came(domus_stack *stack, void *self, const domus_answer *answer)
{
    for (; answer != NULL; answer = answer->next) {
        shown++;
        wrong += answer->error != -ECANCELED;
    }
    return 0;
}

static int ask_crowd(domus_stack *stack, void *count)
{
    for (uint32_t i = 0; i < *(const uint32_t *)count; i++) {
        int error = domus_ask_add(stack, answerer, &question_type, &i, 0, i);
        if (error != 0)
            return error;
    }
    (void)domus_conversation_of(stack, &crowd);
    return domus_wait_all(stack, all_came);
}

static int give_up(domus_stack *stack, void *context)
{
    return domus_cancel(stack, crowd);
}

static void open_world(void)
{
    domt_world_open(&world, 2);
    asker = domt_spawn(world.managers[0], world.managers[0], &domt_agent, NULL);
    other = domt_spawn(world.managers[0], world.managers[0], &domt_agent, NULL);
    answerer = domt_spawn(world.managers[1], world.managers[1], &answerer_behaviour, NULL);
    domt_settle(&world);
    cancelled = resumed = wrong = shown = 0;
}

DOMT_TEST(each_cancel_of_a_crowd_finds_its_own)
{
    uint32_t few = 30;
    uint32_t many = CROWD;

    open_world();
    domt_do(&world, other, ask_crowd, &few); /* these stay */
    domt_do(&world, asker, ask_crowd, &many);
    ck_assert_uint_eq(domi_house_count_parked(answerer.house), (CROWD + few) / 3 * 2);
    ck_assert_uint_eq(answerer.house->family->stashed, (CROWD + few) / 3);
    domt_do(&world, asker, give_up, NULL);
    ck_assert_uint_eq(shown, CROWD);
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_eq(cancelled, CROWD / 3);
    ck_assert_uint_eq(domi_house_count_parked(answerer.house), few / 3 * 2);
    ck_assert_uint_eq(answerer.house->family->stashed, few / 3);
    domt_world_end(&world);
}

DOMT_TEST(crowd_that_has_not_begun_is_dropped)
{
    uint32_t many = CROWD;

    open_world();
    domt_send(world.managers[0], asker, ask_crowd, &many);
    (void)domt_iterate(world.managers[0]);
    (void)domt_events(world.managers[1]); /* sorted, and not run */
    domt_send(world.managers[0], asker, give_up, NULL);
    (void)domt_iterate(world.managers[0]);
    (void)domt_iterate(world.managers[1]); /* asks before events: some begin */
    domt_settle(&world);
    ck_assert_uint_eq(shown, CROWD);
    ck_assert_uint_eq(domi_house_count_parked(answerer.house), 0);
    ck_assert_uint_eq(answerer.house->mail, 0);
    ck_assert(answerer.house->family == NULL || answerer.house->family->stashed == 0);
    ck_assert_uint_lt(resumed, CROWD / 3); /* not all have been begun */
    domt_world_end(&world);
}

/* A cancel that is only for kept asks hides no other one that waits with it, before or behind it,
 * neither for a conversation that works nor for an ask that has not begun. */
DOMT_TEST(cancel_of_kept_asks_hides_no_other_one)
{
    uint32_t one = 1;

    for (uint32_t way = 0; way < 4; way++) {
        open_world();
        domt_send(world.managers[0], asker, ask_crowd, &one); /* its conversation sleeps */
        (void)domt_iterate(world.managers[0]);
        (void)domt_events(world.managers[1]);
        const domi_promise *promise = asker.house->stacks->waiting;
        domi_return cancels[2] = {{.promise = (domi_promise *)(uintptr_t)promise,
                                   .serial = domi_promise_serial(promise)}};
        cancels[1] = cancels[0];
        cancels[way % 2].note = DOMI_CANCEL_KEPT;
        if (way < 2)
            domt_settle(&world);
        domi_ask_put_cancel(world.managers[0], answerer, &cancels[0]);
        domi_ask_put_cancel(world.managers[0], answerer, &cancels[1]);
        (void)domt_events(world.managers[1]);
        ck_assert_uint_eq(domi_house_count_events(answerer.house), 2);
        domt_settle(&world);
        ck_assert_uint_eq(domi_house_count_parked(answerer.house), 0);
        ck_assert_uint_eq(cancelled, resumed);
        ck_assert_uint_eq(shown, 1);
        domt_world_end(&world);
    }
}

DOMT_SUITE(60)
