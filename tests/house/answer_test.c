/* Each ask is answered once: by a reply, by a failure, by a forward, or later after the ask was
 * kept. The handle of an ask that was answered is stale. */
#include "base/memory.h"
#include "house/conversation/stack.h"
#include "tests/house/steps.h"
#include "tests/house/talk.h"
#include "tests/support/suite.h"

#include <domus/spawn.h>

#include <errno.h>

static domus_kept kept[4];
static unsigned kept_count;

static void open_talk_with_third_agent(void)
{
    kept_count = 0;
    domt_talk = (domt_talking){0};
    domt_talk_open_world();
    domt_talk.third = domt_talk_spawn_agent(0);
}

static void run_as_agent(domus_address agent, int (*function)(domus_stack *, void *), void *context)
{
    domt_run_as_actor(&domt_talk.world, agent, function, context);
}

/* --- reply and fail -------------------------------------------------------------------------- */

static int fail_ask_then_all_answers_are_refused(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_fail(stack, -ENOSPC), 0);
    ck_assert_int_eq(domus_fail(stack, -ENOSPC), -EALREADY);
    ck_assert_int_eq(domt_reply_hello(stack, context), -EALREADY);
    ck_assert_int_eq(domus_forward(stack, domt_talk.third), -EALREADY);
    ck_assert_int_eq(domus_keep(stack, &kept[0]), -EALREADY);
    ck_assert_ptr_eq(domus_sender(stack).house, domt_talk.asker.house);
    /* domus_keep() has failed, but the handler returns 0: the conversation goes on */
    return 0;
}

DOMT_TEST(fail_is_the_one_answer_and_the_handler_goes_on)
{
    open_talk_with_third_agent();
    domt_talk_ask_by_function(fail_ask_then_all_answers_are_refused);
    domt_talk_expect_answers(1, -ENOSPC);
    ck_assert_uint_eq(DOMT_SUM(&domt_talk.world, failures), 0);
    domt_talk_close_world();
}

static int fail_ask_with_number(domus_stack *stack, void *number)
{
    return domus_fail(stack, *(int *)number);
}

static int ask_other_to_fail_with_number(domus_stack *stack, void *number)
{
    domt_call call = {fail_ask_with_number, number};

    return domt_talk_ask_other_agent(stack, &call);
}

DOMT_TEST(fail_with_a_number_that_is_no_error_answers_einval)
{
    int numbers[] = {0, 1, 4711};

    open_talk_with_third_agent();
    for (int i = 0; i < 3; i++) {
        run_as_agent(domt_talk.asker, ask_other_to_fail_with_number, &numbers[i]);
        ck_assert_int_eq(domt_talk.error, -EINVAL);
    }
    domt_talk_close_world();
}

static int try_to_answer_notice(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_fail(stack, -EIO), -EINVAL);
    ck_assert_int_eq(domus_keep(stack, &kept[0]), -EINVAL);
    ck_assert_int_eq(domus_reply(stack, &domt_text, "nothing."), -EINVAL);
    return 0;
}

DOMT_TEST(notice_cannot_be_answered_or_kept)
{
    open_talk_with_third_agent();
    run_as_agent(domt_talk.other, try_to_answer_notice, NULL);
    domt_talk_close_world();
}

/* --- forward --------------------------------------------------------------------------------- */

static domus_address route[16];
static unsigned route_length;
static unsigned hops;
static void *payload_seen[16];

static int forward_along_route(domus_stack *stack, void *context)
{
    payload_seen[hops] = (void *)(uintptr_t)stack->message;
    if (hops == route_length)
        return domt_reply_hello(stack, context);
    ck_assert_ptr_eq(domus_sender(stack).house, domt_talk.asker.house);
    ck_assert_int_eq(domus_forward(stack, route[hops++]), 0);
    ck_assert_int_eq(domus_forward(stack, route[0]), -EALREADY);
    ck_assert_int_eq(domt_reply_hello(stack, context), -EALREADY);
    ck_assert_ptr_eq(domus_sender(stack).house, domt_talk.asker.house);
    return 0;
}

DOMT_TEST(forwarded_ask_is_answered_to_its_first_asker_and_never_copied)
{
    open_talk_with_third_agent();
    for (route_length = 0; route_length < 12; route_length++) {
        domus_address stops[3] = {domt_talk.third, domt_talk.asker, domt_talk.other};
        for (unsigned i = 0; i < route_length; i++)
            route[i] = stops[i % 3];
        hops = 0;
        domt_talk_ask_by_function(forward_along_route);
        domt_talk_expect_answers(route_length + 1, 0);
        ck_assert_ptr_eq(domt_talk.sender.house,
                         route_length == 0 ? domt_talk.other.house : route[route_length - 1].house);
        for (unsigned i = 1; i <= route_length; i++)
            ck_assert_ptr_eq(payload_seen[i], payload_seen[0]);
    }
    domt_talk_close_world();
}

static int forward_to_nobody_is_refused(domus_stack *stack, void *context)
{
    domus_address stale = domt_talk.third;

    stale.lease++;
    ck_assert_int_eq(domus_forward(stack, (domus_address){NULL, 0}), -ESTALE);
    ck_assert_int_eq(domus_forward(stack, stale), -ESTALE);
    /* both forwards were refused, so the ask can still be answered */
    return domt_reply_hello(stack, context);
}

DOMT_TEST(ask_that_cannot_be_forwarded_is_still_the_forwarders)
{
    open_talk_with_third_agent();
    domt_talk_ask_by_function(forward_to_nobody_is_refused);
    ck_assert_int_eq(domt_talk.error, 0);
    ck_assert_str_eq(domt_talk.text, "hello...");
    domt_talk_close_world();
}

static int forward_ask_to_third(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, 0);
    return domus_forward(stack, domt_talk.third);
}

/* The other actor asks the asker back, and then forwards; the third actor answers. */
static int ask_then_forward_when_resumed(domus_stack *stack, void *context)
{
    domt_call question = {domt_reply_hello, NULL};

    if (domus_self(stack).house == domt_talk.third.house)
        return domt_reply_hello(stack, context);
    return domus_ask(stack, domt_talk.asker, &domt_call_type, &question, forward_ask_to_third);
}

DOMT_TEST(parked_conversation_may_forward_what_it_was_asked)
{
    open_talk_with_third_agent();
    domt_talk_ask_by_function(ask_then_forward_when_resumed);
    domt_talk_expect_answers(1, 0);
    ck_assert_ptr_eq(domt_talk.sender.house, domt_talk.third.house);
    domt_talk_close_world();
}

/* --- keep ------------------------------------------------------------------------------------ */

static int keep_ask_and_refuse_second_keep(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_keep(stack, &kept[kept_count]), 0);
    ck_assert_int_eq(domus_keep(stack, &kept[kept_count]), -EALREADY);
    ck_assert_int_eq(domt_reply_hello(stack, NULL), -EALREADY);
    ck_assert_ptr_eq(domus_sender(stack).house, domt_talk.asker.house);
    kept_count++;
    return 0;
}

static void expect_stale_handle_of_kept(domus_stack *stack, domus_kept which)
{
    ck_assert_int_eq(domus_kept_reply(stack, which, &domt_text, "nothing."), -ENOENT);
    ck_assert_int_eq(domus_kept_fail(stack, which, -EIO), -ENOENT);
    ck_assert_int_eq(domus_kept_forward(stack, which, domt_talk.third), -ENOENT);
}

static int reply_to_kept(domus_stack *stack, void *index)
{
    domus_kept which = kept[*(unsigned *)index];

    ck_assert_int_eq(domus_kept_reply(stack, which, &domt_text, "at last."), 0);
    expect_stale_handle_of_kept(stack, which);
    return 0;
}

static int fail_kept_ask(domus_stack *stack, void *index)
{
    domus_kept which = kept[*(unsigned *)index];

    ck_assert_int_eq(domus_kept_fail(stack, which, -ENODATA), 0);
    expect_stale_handle_of_kept(stack, which);
    return 0;
}

static int forward_kept_ask(domus_stack *stack, void *index)
{
    domus_kept which = kept[*(unsigned *)index];

    ck_assert_int_eq(domus_kept_forward(stack, which, (domus_address){NULL, 0}), -ESTALE);
    ck_assert_int_eq(domus_kept_forward(stack, which, domt_talk.third), 0);
    expect_stale_handle_of_kept(stack, which);
    return 0;
}

static int try_to_use_stale_kept(domus_stack *stack, void *index)
{
    expect_stale_handle_of_kept(stack, kept[*(unsigned *)index]);
    return 0;
}

DOMT_TEST(kept_asks_are_answered_from_other_handlers_in_any_order)
{
    unsigned index[4] = {0, 1, 2, 3};

    open_talk_with_third_agent();
    for (int i = 0; i < 3; i++)
        domt_talk_ask_by_function(keep_ask_and_refuse_second_keep);
    ck_assert_uint_eq(domt_talk.resumed, 0);
    ck_assert_uint_eq(domi_house_count_parked_conversations(domt_talk.other.house), 3);
    /* Actor `third` may not use the handle of an ask that another actor has kept. */
    run_as_agent(domt_talk.third, try_to_use_stale_kept, &index[1]);
    run_as_agent(domt_talk.other, reply_to_kept, &index[1]);
    ck_assert_uint_eq(domt_talk.resumed, 1);
    ck_assert_str_eq(domt_talk.text, "at last.");
    run_as_agent(domt_talk.other, fail_kept_ask, &index[2]);
    ck_assert_int_eq(domt_talk.error, -ENODATA);
    /* the new actor may get the memory of the one that has ended */
    domt_talk_ask_by_function(keep_ask_and_refuse_second_keep);
    run_as_agent(domt_talk.other, try_to_use_stale_kept, &index[1]);
    run_as_agent(domt_talk.other, try_to_use_stale_kept, &index[2]);
    run_as_agent(domt_talk.other, reply_to_kept, &index[0]);
    run_as_agent(domt_talk.other, reply_to_kept, &index[3]);
    ck_assert_uint_eq(domt_talk.resumed, 4);
    ck_assert_uint_eq(domi_house_count_parked_conversations(domt_talk.other.house), 0);
    domt_talk_close_world();
}

static int keep_ask_or_reply_as_third(domus_stack *stack, void *context)
{
    return domus_self(stack).house == domt_talk.third.house
               ? domt_reply_hello(stack, context)
               : keep_ask_and_refuse_second_keep(stack, context);
}

DOMT_TEST(kept_ask_may_be_forwarded)
{
    unsigned index = 0;

    open_talk_with_third_agent();
    domt_talk_ask_by_function(keep_ask_or_reply_as_third);
    run_as_agent(domt_talk.other, forward_kept_ask, &index);
    domt_talk_expect_answers(1, 0);
    ck_assert_ptr_eq(domt_talk.sender.house, domt_talk.third.house);
    domt_talk_close_world();
}

DOMT_TEST(kept_ask_fails_with_estale_when_its_actor_stops)
{
    open_talk_with_third_agent();
    domt_talk_ask_by_function(keep_ask_and_refuse_second_keep);
    domt_stop_actor_and_settle(&domt_talk.world, domt_outside_manager(&domt_talk.world),
                               domt_talk.other);
    domt_talk_expect_answers(1, -ESTALE);
    ck_assert_uint_eq(DOMT_SUM(&domt_talk.world, stops), 1);
    domt_talk_close_world();
}

static int keep_ask_while_stopping(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_stop(stack, domus_self(stack)), 0);
    return keep_ask_and_refuse_second_keep(stack, context);
}

DOMT_TEST(ask_kept_by_an_actor_that_stops_itself_fails_with_estale)
{
    open_talk_with_third_agent();
    domt_talk_ask_by_function(keep_ask_while_stopping);
    domt_talk_expect_answers(1, -ESTALE);
    ck_assert_uint_eq(DOMT_SUM(&domt_talk.world, stops), 1);
    domt_talk_close_world();
}

static int try_to_keep_after_cancel(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, -ECANCELED);
    ck_assert_int_eq(domus_keep(stack, &kept[0]), -ECANCELED);
    return 0;
}

static int sleep_then_try_to_keep(domus_stack *stack, void *context)
{
    return domus_sleep(stack, UINT64_MAX, try_to_keep_after_cancel);
}

/* If an ask could be kept after everything was cancelled, nobody would cancel it, and the actor
 * would never end. */
DOMT_TEST(stopping_actor_keeps_no_more_asks)
{
    open_talk_with_third_agent();
    domt_talk_ask_by_function(sleep_then_try_to_keep);
    domt_stop_actor_and_settle(&domt_talk.world, domt_outside_manager(&domt_talk.world),
                               domt_talk.other);
    ck_assert_uint_eq(DOMT_SUM(&domt_talk.world, stops), 1);
    domt_talk_expect_answers(1, -ENOMSG);
    domt_talk_close_world();
}

DOMT_TEST(world_may_end_while_asks_are_kept)
{
    open_talk_with_third_agent();
    for (int i = 0; i < 3; i++)
        domt_talk_ask_by_function(keep_ask_and_refuse_second_keep);
    domt_world_end(&domt_talk.world);
    ck_assert_uint_eq(domt_talk.resumed, 0);
}

static int try_to_keep_without_memory(domus_stack *stack, void *context)
{
    /* An object that is free in the slab needs no memory, so all free objects are taken first. */
    domi_memory_fail_allocation_after(0, 1);
    while (domi_stack_new(stack->manager, domi_stack_get_house(stack), 0) != NULL)
        ;
    ck_assert_int_eq(domus_keep(stack, &kept[0]), -ENOMEM);
    domi_memory_fail_allocation_after(-1, 0);
    return domt_reply_hello(stack, context); /* the ask was not kept, so it can be answered */
}

DOMT_TEST(ask_that_cannot_be_kept_may_still_be_answered)
{
    open_talk_with_third_agent();
    domt_talk_ask_by_function(try_to_keep_without_memory);
    ck_assert_int_eq(domt_talk.error, 0);
    ck_assert_str_eq(domt_talk.text, "hello...");
    domt_world_end(&domt_talk.world);
}

/* Two asks are kept, as many as conversations are allowed. A third ask waits until a kept one is
 * answered; no handler of a notice can do that, because notices wait, too. */
DOMT_TEST(kept_asks_count_as_conversations)
{
    open_talk_with_third_agent();
    domt_talk.world.managers[1]->limits.conversations_max = 2;
    for (int i = 0; i < 3; i++)
        domt_talk_ask_by_function(keep_ask_and_refuse_second_keep);
    ck_assert_uint_eq(kept_count, 2);
    ck_assert_uint_eq(domt_talk.other.house->mail, 1);
    domt_stop_actor_and_settle(&domt_talk.world, domt_outside_manager(&domt_talk.world),
                               domt_talk.other);
    domt_talk_expect_answers(3, -ESTALE);
    domt_talk_close_world();
}

DOMT_SUITE(60)
