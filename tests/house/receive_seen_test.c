/* A receive remembers up to which message it has seen a mailbox. When that message is taken out by
 * something else, the mailbox is searched anew: what is remembered would point to freed memory. */
#include "house/family/family.h"
#include "house/family/life.h"
#include "tests/house/picker.h"
#include "tests/support/suite.h"

#include <domus/conversation.h>

#include <errno.h>

#define MS UINT64_C(1000000)

static bool is_seven(const void *self, const void *frame, const domus_type *type,
                     const void *payload)
{
    return *(const int64_t *)payload == 7;
}

static const domus_pattern seventh_question = {
    (const domus_type *const[]){&domt_pick_question, NULL}, is_seven};

static domi_node *seen(void)
{
    return domt_pick.picker.house->family->seen[0];
}

static int hear_nothing(domus_stack *stack, void *self, const domus_answer *answer)
{
    return 0;
}

static int ask_third(domus_stack *stack, void *context)
{
    int64_t number = 3;

    return domus_ask(stack, domt_pick.picker, &domt_pick_question, &number, hear_nothing);
}

/* The receive takes the seventh question although the one that it saw last has gone. */
static void seventh_is_taken(void)
{
    ck_assert_ptr_null(seen());
    domt_ask_picker(7, 0);
    domt_settle(&domt_pick.world);
    ck_assert_str_eq(domt_pick.text, "(q7) ");
    domt_pick_close();
}

DOMT_TEST(receive_looks_anew_when_what_it_saw_last_was_cancelled)
{
    domt_pick_open(0, 0);
    domi_manager *there = domt_pick.world.managers[1];
    domus_address third = domt_spawn(there, there, &domt_agent, NULL);
    domt_begin(domt_receive_one, &seventh_question);
    domt_do(&domt_pick.world, third, ask_third, NULL);
    ck_assert_ptr_nonnull(seen());
    ck_assert_int_eq(domi_house_stop(there, third), 0);
    domt_settle(&domt_pick.world);
    ck_assert_uint_eq(domt_pick.picker.house->mail, 0);
    seventh_is_taken();
}

static int outcome;

static int hear_circle(domus_stack *stack, void *self, const domus_answer *answer)
{
    outcome = answer->error;
    return domus_reply(stack, &domt_pick_number, &(int64_t){0});
}

static int ask_back(domus_stack *stack, void *context)
{
    int64_t number = 3;

    return domus_ask(stack, domt_pick.picker, &domt_pick_question, &number, hear_circle);
}

static int raise_late(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_uint_eq(answer->tag, 2);
    ck_assert_int_eq(domus_barrier(stack), 0);
    return domus_wait_all(stack, hear_nothing);
}

static int ask_and_raise_later(domus_stack *stack, void *context)
{
    static const domt_call back = {ask_back, NULL};

    ck_assert_int_eq(domus_ask_add(stack, domt_pick.asker, &domt_call_type, &back, 0, 1), 0);
    ck_assert_int_eq(domus_sleep_add(stack, 10 * MS, 2), 0);
    return domus_wait_first(stack, raise_late);
}

DOMT_TEST(receive_looks_anew_when_what_it_saw_last_was_a_circle)
{
    domt_pick_open(0, 0);
    outcome = 0;
    domt_begin(ask_and_raise_later, NULL);
    domt_begin(domt_receive_one, &seventh_question);
    domt_settle(&domt_pick.world);
    ck_assert_ptr_nonnull(seen());
    domt_pass(&domt_pick.world, 20 * MS);
    ck_assert_int_eq(outcome, -EDEADLK);
    ck_assert_uint_eq(domt_pick.picker.house->mail, 0);
    seventh_is_taken();
}

DOMT_SUITE(30)
