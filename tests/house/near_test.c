/* Asks and replies between two actors of one thread go a shorter way once the asking conversation
 * has a pooled stack. All promises of the long way hold there, too: each test asks twice, and
 * checks the second ask. */
#include "house/conversation/stack.h"
#include "house/family/life.h"
#include "house/message/owned.h"
#include "tests/house/steps.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <domus/receive.h>

#include <errno.h>
#include <string.h>

#define MS    UINT64_C(1000000)
#define SIZES 26u

static domt_world world;
/* three actors: the asker, the one that is asked second, and one that answers the first asks */
static domus_address asker, other, greeter;
static int (*second)(domus_stack *stack); /* the function that sends the asker's second ask */
static domus_resumed *heard;              /* the function in which the asker is resumed */
/* handler of the other actor for messages with a payload */
static domus_handler *answering;
static domus_type sized[SIZES];  /* types with payloads of 0 to 25 bytes */
static domus_on rows[SIZES + 2]; /* the rows of the other actor */
static unsigned char bytes[SIZES] = "abcdefghijklmnopqrstuvwxy";
static unsigned answers;
static int error;

static int handle_payload_as_test_says(domus_stack *stack, void *self, const void *payload)
{
    return answering(stack, self, payload);
}

static const domus_behaviour other_behaviour = {.name = "other", .on = rows};

static int reply_without_payload(domus_stack *stack, void *context)
{
    return domus_reply(stack, &sized[0], NULL);
}

static int count_answer_and_record_error(domus_stack *stack, void *self, const domus_answer *answer)
{
    answers++;
    error = answer->error;
    return 0;
}

/* Make some free envelopes, because the short way allocates none and uses only free ones. */
static int ask_eight_times_to_fill_pool(domus_stack *stack, void *context)
{
    const domt_call call = {reply_without_payload, NULL};

    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(domus_ask_add(stack, greeter, &domt_call_type, &call, 0, 0), 0);
    return domus_wait_all(stack, count_answer_and_record_error);
}

/* Open a world: the asker asks the second time by `again` and is resumed in `then`; the other actor
 * handles that ask by `handle`. */
static void open_world(int (*again)(domus_stack *), domus_resumed *then, domus_handler *handle)
{
    second = again;
    heard = then;
    answering = handle;
    for (uint32_t i = 0; i < SIZES; i++) {
        sized[i] = (domus_type){.name = "sized", .size = i};
        rows[i] = (domus_on){&sized[i], handle_payload_as_test_says, 0};
    }
    rows[SIZES] = (domus_on){&domt_call_type, domt_on_call_run_function, 0};
    domt_world_open(&world, 1);
    asker = domt_spawn(domt_outside_manager(&world), world.managers[0], &domt_agent, NULL);
    other = domt_spawn(domt_outside_manager(&world), world.managers[0], &other_behaviour, NULL);
    greeter = domt_spawn(domt_outside_manager(&world), world.managers[0], &domt_agent, NULL);
    domt_run_as_actor(&world, asker, ask_eight_times_to_fill_pool, NULL);
    answers = 0;
    error = 1;
}

static void close_world(void)
{
    domt_end_clean_world(&world);
}

static int check_first_answer_and_ask_again(domus_stack *stack, void *self,
                                            const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, 0);
    ck_assert_ptr_eq(stack->pooled, stack);
    return second(stack);
}

static int ask_twice(domus_stack *stack, void *context)
{
    const domt_call call = {reply_without_payload, NULL};

    return domus_ask(stack, greeter, &domt_call_type, &call, check_first_answer_and_ask_again);
}

/* --- payloads --------------------------------------------------------------------------------- */

static uint32_t size_asked, size_answered, offset;

static int answer_with_own_bytes(domus_stack *stack, void *self, const void *payload)
{
    return domus_reply(stack, &sized[size_answered], (const char *)payload + offset);
}

static int answer_with_bytes(domus_stack *stack, void *self, const void *payload)
{
    return domus_reply(stack, &sized[size_answered], bytes);
}

static int check_bytes_of_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    answers++;
    ck_assert_ptr_eq(answer->type, &sized[size_answered]);
    if (size_answered != 0)
        ck_assert_mem_eq(answer->payload, bytes + offset, size_answered);
    ck_assert_uint_ge(domi_envelope_bytes_in_all(stack->manager, stack->message),
                      DOMI_ASK_HEAD + size_answered);
    return 0;
}

static int ask_with_payload_of_size(domus_stack *stack)
{
    return domus_ask(stack, other, &sized[size_asked], bytes, heard);
}

DOMT_TEST(payloads_of_each_size_come_and_go)
{
    open_world(ask_with_payload_of_size, check_bytes_of_answer, answer_with_own_bytes);
    for (size_asked = 0; size_asked < SIZES; size_asked++)
        for (offset = 0; offset <= size_asked && offset < 3; offset++) {
            size_answered = size_asked - offset;
            domt_run_as_actor(&world, asker, ask_twice, NULL);
        }
    ck_assert_uint_eq(answers, 1 + 2 + 3 * (SIZES - 2));
    close_world();
}

DOMT_TEST(an_answer_that_does_not_fit_into_its_ask_gets_an_envelope)
{
    open_world(ask_with_payload_of_size, check_bytes_of_answer, answer_with_bytes);
    offset = 0;
    for (size_asked = 0; size_asked < SIZES; size_asked++)
        for (size_answered = 0; size_answered < SIZES; size_answered++)
            domt_run_as_actor(&world, asker, ask_twice, NULL);
    ck_assert_uint_eq(answers, SIZES * SIZES);
    close_world();
}

static int ask_with_counted_payload(domus_stack *stack)
{
    return domus_ask(stack, other, &domt_counted, bytes, heard);
}

DOMT_TEST(payload_of_an_ask_is_released_by_its_answer)
{
    open_world(ask_with_counted_payload, count_answer_and_record_error, answer_with_bytes);
    rows[0].type = &domt_counted; /* the counted type takes the row of the type without bytes */
    size_answered = 8;
    domt_releases = 0;
    domt_run_as_actor(&world, asker, ask_twice, NULL);
    ck_assert_int_eq(error, 0);
    ck_assert_uint_eq(domt_releases, 1);
    close_world();
}

/* --- conversations ---------------------------------------------------------------------------- */

static domus_kept kept;
static uint64_t deadline_ns; /* the deadline of the kept ask */

static int keep_ask_and_record_deadline(domus_stack *stack, void *self, const void *payload)
{
    deadline_ns = domi_stack_deadline_ns(stack);
    return domus_keep(stack, &kept);
}

static int fail_kept_ask(domus_stack *stack, void *context)
{
    (void)domus_kept_fail(stack, kept, -EIO); /* -ENOENT, if the asker has ended meanwhile */
    return 0;
}

static int ask_asker_to_ask_twice(domus_stack *stack, void *context)
{
    const domt_call call = {ask_twice, NULL};

    return domus_ask_within(stack, asker, &domt_call_type, &call, 10 * MS,
                            count_answer_and_record_error);
}

DOMT_TEST(an_ask_inherits_the_deadline_of_the_one_it_is_made_for)
{
    open_world(ask_with_payload_of_size, count_answer_and_record_error,
               keep_ask_and_record_deadline);
    domus_address first =
        domt_spawn(domt_outside_manager(&world), world.managers[0], &domt_agent, NULL);
    size_asked = 8;
    domt_run_as_actor(&world, first, ask_asker_to_ask_twice, NULL);
    ck_assert_uint_eq(answers, 0);
    ck_assert_uint_eq(deadline_ns, world.managers[0]->now_ns + 10 * MS);
    domt_pass_time(&world, 20 * MS);
    ck_assert_uint_eq(answers, 2);
    ck_assert_int_eq(error, -ETIMEDOUT);
    domt_run_as_actor(&world, other, fail_kept_ask, NULL);
    close_world();
}

static int check_answer_has_tag_5(domus_stack *stack, void *self, const domus_answer *answer)
{
    answers++;
    ck_assert_uint_eq(answer->tag, 5);
    ck_assert_uint_eq(*(const unsigned char *)answer->payload, 'b');
    return 0;
}

static int check_answer_and_wait_for_other(domus_stack *stack, void *self,
                                           const domus_answer *answer)
{
    answers++;
    ck_assert_uint_eq(answer->tag, 0);
    ck_assert_uint_eq(*(const unsigned char *)answer->payload, 'a');
    return domus_wait_first(stack, check_answer_has_tag_5);
}

static int ask_two_and_wait_for_each(domus_stack *stack)
{
    ck_assert_int_eq(domus_ask_add(stack, other, &sized[2], bytes + 1, 0, 5), 0);
    return domus_ask(stack, other, &sized[2], bytes, check_answer_and_wait_for_other);
}

DOMT_TEST(a_second_ask_under_way_has_an_answer_of_its_own)
{
    open_world(ask_two_and_wait_for_each, NULL, answer_with_own_bytes);
    size_answered = 2;
    offset = 0;
    domt_run_as_actor(&world, asker, ask_twice, NULL);
    ck_assert_uint_eq(answers, 2);
    close_world();
}

static int expect_cancel_and_ask_again(domus_stack *stack, void *self, const domus_answer *answer)
{
    answers++;
    ck_assert_int_eq(answer->error, -ECANCELED);
    error = domus_ask(stack, other, &sized[8], bytes, count_answer_and_record_error);
    return 0;
}

static domus_conversation running;

static int remember_conversation_and_ask(domus_stack *stack)
{
    ck_assert_int_eq(domus_conversation_of(stack, &running), 0);
    return domus_ask(stack, other, &sized[8], bytes, expect_cancel_and_ask_again);
}

static int cancel_remembered_conversation(domus_stack *stack, void *context)
{
    return domus_cancel(stack, running);
}

DOMT_TEST(a_conversation_that_was_cancelled_asks_no_more)
{
    for (int stops = 0; stops < 2; stops++) {
        open_world(remember_conversation_and_ask, NULL, keep_ask_and_record_deadline);
        domt_run_as_actor(&world, asker, ask_twice, NULL);
        if (stops != 0) {
            domt_stop_actor_and_settle(&world, domt_outside_manager(&world), asker);
        } else {
            domt_run_as_actor(&world, asker, cancel_remembered_conversation, NULL);
        }
        ck_assert_uint_eq(answers, 1);
        ck_assert_int_eq(error, -ECANCELED);
        domt_run_as_actor(&world, other, fail_kept_ask, NULL);
        close_world();
    }
}

/* --- the other side --------------------------------------------------------------------------- */

static int reply_to_received_then_to_first(domus_stack *stack, void *self,
                                           const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, 0);
    /* this replies to the received ask, which is the current message */
    ck_assert_int_eq(domus_reply(stack, &sized[1], "r"), 0);
    /* this replies to the conversation's own, first ask */
    return domus_reply(stack, &sized[1], "f");
}

static const domus_pattern of_nine = {(const domus_type *const[]){&sized[9], NULL}, NULL};

static int receive_another_ask(domus_stack *stack, void *self, const void *payload)
{
    return domus_receive(stack, &of_nine, reply_to_received_then_to_first);
}

/* two letters for each answer: who was resumed (`a`: the asker, `t`: the other), and its text */
static char order[8];

static int record_letter_of_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, 0);
    order[answers++] = domus_self(stack).house == asker.house ? 'a' : 't';
    order[answers++] = *(const char *)answer->payload;
    return 0;
}

DOMT_TEST(a_received_ask_is_found_and_answered)
{
    open_world(ask_with_payload_of_size, record_letter_of_answer, receive_another_ask);
    domus_address third =
        domt_spawn(domt_outside_manager(&world), world.managers[0], &domt_agent, NULL);
    memset(order, 0, sizeof order);
    size_asked = 8;
    /* the other actor is in a receive now, and keeps its first ask waiting */
    domt_run_as_actor(&world, asker, ask_twice, NULL);
    ck_assert_uint_eq(answers, 0);
    size_asked = 9;
    domt_run_as_actor(&world, third, ask_twice, NULL);
    ck_assert_str_eq(order, "traf");
    close_world();
}

static uint64_t runs_before[2];

/* Handle an ask, and then the notice that the actor has sent to itself. */
static int count_runs_and_notice_itself(domus_stack *stack, void *self, const void *payload)
{
    ck_assert_uint_lt(answers, 2);
    runs_before[answers] = DOMT_SUM(&world, runs);
    if (answers++ != 0)
        return 0;
    ck_assert_int_eq(domus_notice(stack, domus_self(stack), &sized[9], bytes), 0);
    return domus_reply(stack, &sized[0], NULL);
}

DOMT_TEST(notice_to_itself_during_a_run_is_taken_in_the_same_run)
{
    open_world(ask_with_payload_of_size, domt_hear_nothing, count_runs_and_notice_itself);
    size_asked = 8;
    domt_run_as_actor(&world, asker, ask_twice, NULL);
    ck_assert_uint_eq(answers, 2);
    ck_assert_uint_eq(runs_before[0], runs_before[1]);
    close_world();
}

DOMT_SUITE(60)
