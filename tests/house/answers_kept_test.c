/* Answers that come before their conversation wants them are kept in their order, whatever it waits
 * for and is shown in between. */
#include "house/conversation/stack.h"

#include "tests/house/talk.h"
#include "tests/support/suite.h"

#include <domus/conversation.h>

#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000000)

static char heard[32]; /* the tags of all that were waited for at the end */

static int hear_all(domus_stack *stack, void *self, const domus_answer *answer)
{
    for (; answer != NULL; answer = answer->next) {
        size_t length = strlen(heard);
        snprintf(heard + length, sizeof heard - length, "%d ", (int)answer->tag);
    }
    return 0;
}

static int ask_with(domus_stack *stack, uint64_t tag)
{
    static const domt_call hello = {domt_reply_hello, NULL};

    return domus_ask_add(stack, domt_talk.other, &domt_call_type, &hello, 0, tag);
}

static int ask_more(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_uint_eq(answer->tag, 0); /* the sleep, which came last and is shown first */
    ck_assert_int_eq(ask_with(stack, 3), 0);
    ck_assert_int_eq(ask_with(stack, 4), 0);
    return domus_wait_all(stack, hear_all);
}

static int ask_and_sleep(domus_stack *stack, void *context)
{
    ck_assert_int_eq(ask_with(stack, 1), 0);
    ck_assert_int_eq(ask_with(stack, 2), 0);
    return domus_sleep(stack, 50 * MS, ask_more);
}

DOMT_TEST(answers_that_are_kept_outlast_one_that_came_later_and_was_shown)
{
    domt_talk_open();
    domt_do(&domt_talk.world, domt_talk.asker, ask_and_sleep, NULL);
    ck_assert_uint_eq(domt_talk.asker.house->stacks->pending, 1);
    domt_pass(&domt_talk.world, 60 * MS);
    ck_assert_str_eq(heard, "1 2 3 4 ");
    domt_talk_close();
}

/* --- as many as may be kept ------------------------------------------------------------------- */

static unsigned handled;

static int end_it(domus_stack *stack, void *self, const domus_answer *answer)
{
    return 0;
}

static int sleep_a_while(domus_stack *stack, void *context)
{
    handled++;
    return domus_sleep(stack, 50 * MS, end_it);
}

DOMT_TEST(actor_with_all_its_conversations_takes_mail_again_when_one_ends)
{
    domt_talk_open();
    domt_talk.world.managers[0]->limits.conversations_max = 2;
    for (int i = 0; i < 5; i++)
        domt_do(&domt_talk.world, domt_talk.asker, sleep_a_while, NULL);
    ck_assert_uint_eq(handled, 2);
    domt_pass(&domt_talk.world, 60 * MS);
    ck_assert_uint_eq(handled, 4);
    domt_pass(&domt_talk.world, 60 * MS);
    ck_assert_uint_eq(handled, 5);
    domt_pass(&domt_talk.world, 60 * MS);
    domt_talk_close();
}

DOMT_SUITE(30)
