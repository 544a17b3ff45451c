/* Two agents that talk; tests/house/talk.h tells more. */
#include "tests/house/talk.h"
#include "tests/house/steps.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

domt_talking domt_talk;

static void count_release_of_text(void *payload)
{
    domt_talk.releases++;
}

const domus_type domt_text = {.name = "text", .size = 8, .release = count_release_of_text};

void domt_talk_open_world(void)
{
    domt_world_open(&domt_talk.world, 2);
    domt_talk.asker = domt_talk_spawn_agent(0);
    domt_talk.other = domt_talk_spawn_agent(1);
}

void domt_talk_close_world(void)
{
    ck_assert_uint_eq(domt_talk.asker.house->asks, 0);
    ck_assert_uint_eq(domi_house_count_parked_conversations(domt_talk.asker.house), 0);
    domt_end_clean_world(&domt_talk.world);
}

void domt_talk_ask_by_function(int (*function)(domus_stack *, void *))
{
    domt_call question = {function, NULL};

    domt_talk.error = 1;
    domt_talk.type = NULL;
    domt_run_as_actor(&domt_talk.world, domt_talk.asker, domt_talk_ask_other_agent, &question);
}

void domt_talk_expect_answers(unsigned resumed, int error)
{
    ck_assert_uint_eq(domt_talk.resumed, resumed);
    ck_assert_int_eq(domt_talk.error, error);
}

domus_address domt_talk_spawn_agent(uint32_t home)
{
    domt_world *world = &domt_talk.world;
    domus_address agent =
        domt_spawn(domt_outside_manager(world), world->managers[home], &domt_agent, NULL);

    domt_settle_world(world);
    return agent;
}

int domt_talk_ask_other_agent(domus_stack *stack, void *call)
{
    return domus_ask(stack, domt_talk.other, &domt_call_type, call, domt_talk_record_answer);
}

int domt_talk_record_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)domus_take(stack);
    domt_talk.resumed++;
    domt_talk.error = answer->error;
    domt_talk.type = answer->type;
    domt_talk.sender = domus_sender(stack);
    if (answer->type == &domt_text)
        memcpy(domt_talk.text, answer->payload, 8);
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
