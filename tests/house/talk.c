/* Two agents that talk; tests/house/talk.h tells more. */
#include "tests/house/talk.h"
#include "tests/house/steps.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

domt_talking domt_side_talk_with_other;

static void count_release_of_text(void *payload)
{
    domt_side_talk_with_other.releases++;
}

const domus_type domt_text = {.name = "text", .size = 8, .release = count_release_of_text};

void domt_talk_open_world(void)
{
    domt_world_open(&domt_side_talk_with_other.world, 2);
    domt_side_talk_with_other.asker = domt_talk_spawn_agent(0);
    domt_side_talk_with_other.other = domt_talk_spawn_agent(1);
}

void domt_talk_close_world(void)
{
    ck_assert_uint_eq(domt_side_talk_with_other.asker.house->asks, 0);
    ck_assert_uint_eq(domi_house_count_parked(domt_side_talk_with_other.asker.house), 0);
    domt_end_clean_world(&domt_side_talk_with_other.world);
}

void domt_talk_ask_by_function(int (*function)(domus_stack *, void *))
{
    domt_call question = {function, NULL};

    domt_side_talk_with_other.error = 1;
    domt_side_talk_with_other.type = NULL;
    domt_run_as_actor(&domt_side_talk_with_other.world, domt_side_talk_with_other.asker,
                      domt_talk_ask_other_agent, &question);
}

void domt_talk_expect_answers(unsigned resumed, int error)
{
    ck_assert_uint_eq(domt_side_talk_with_other.resumed, resumed);
    ck_assert_int_eq(domt_side_talk_with_other.error, error);
}

domus_address domt_talk_spawn_agent(uint32_t home)
{
    domt_world *world = &domt_side_talk_with_other.world;
    domus_address agent = domt_spawn(domt_outside(world), world->managers[home], &domt_agent, NULL);

    domt_settle_world(world);
    return agent;
}

int domt_talk_ask_other_agent(domus_stack *stack, void *call)
{
    return domus_ask(stack, domt_side_talk_with_other.other, &domt_call_type, call,
                     domt_talk_hear_answer);
}

int domt_talk_hear_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)domus_take(stack);
    domt_side_talk_with_other.resumed++;
    domt_side_talk_with_other.error = answer->error;
    domt_side_talk_with_other.type = answer->type;
    domt_side_talk_with_other.sender = domus_sender(stack);
    if (answer->type == &domt_text)
        memcpy(domt_side_talk_with_other.text, answer->payload, 8);
    ck_assert((answer->error == 0) == (answer->payload != NULL));
    return 0;
}

int domt_reply_hello(domus_stack *stack, void *context)
{
    return domus_reply(stack, &domt_text, "hello...");
}

int domt_end_without_answer(domus_stack *stack, void *context)
{
    return 0;
}

int domt_fail_with_eio(domus_stack *stack, void *context)
{
    return -EIO;
}
