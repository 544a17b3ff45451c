/* Conversations keep their frames and payloads, of all sizes, also when many of them are
 * interleaved. The turns of one run use one stack, so a turn must not see what the turn before it
 * has left there. house/dispatch/describe.c says in words what a conversation waits for;
 * tests/runtime/dump_test.c tests the rest of a dump. */
#include "base/random.h"
#include "house/conversation/owed.h"
#include "house/conversation/stack.h"
#include "house/dispatch/describe.h"
#include "house/message/pool.h"
#include "tests/house/steps.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <domus/conversation.h>

#include <errno.h>
#include <string.h>

static domt_world world;

/* --- frames ---------------------------------------------------------------------------------- */

#define STEPS 3

static const domus_type begin_small = {.name = "begin small", .size = 8};
static const domus_type begin_middle = {.name = "begin middle", .size = 8};
static const domus_type begin_large = {.name = "begin large", .size = 8};
static const domus_type begin_none = {.name = "begin none", .size = 8};
static const domus_type number_type = {.name = "number", .size = 8};

static domus_address server;
static unsigned ended;
static unsigned wrong;

static uint32_t size_of_frame(uint64_t which)
{
    static const uint32_t sizes[] = {16, 200, DOMUS_FRAME_MAX};

    return sizes[which];
}

/* Fill a frame: bytes 0 to 15 are the index of its size and the number of steps done; the rest is a
 * pattern made of both. */
static void fill_frame_with_pattern(uint64_t *frame)
{
    memset(frame + 2, (int)(frame[0] * 16 + frame[1]) + 1, size_of_frame(frame[0]) - 16);
}

static int check_frame_and_ask_again(domus_stack *stack, void *self, const domus_answer *answer)
{
    uint64_t *frame = domus_frame(stack);
    const unsigned char *bytes = (unsigned char *)frame;

    for (uint32_t i = 16; i < size_of_frame(frame[0]); i++)
        wrong += bytes[i] != frame[0] * 16 + frame[1] + 1;
    wrong += answer->error != 0 || *(const uint64_t *)answer->payload != frame[1] * 2;
    if (++frame[1] == STEPS) {
        ended++;
        return 0;
    }
    fill_frame_with_pattern(frame);
    return domus_ask(stack, server, &number_type, &frame[1], check_frame_and_ask_again);
}

static int begin_conversation_with_zeroed_frame(domus_stack *stack, void *self, const void *which)
{
    uint64_t *frame = domus_frame(stack);
    const unsigned char *bytes = (unsigned char *)frame;

    for (uint32_t i = 0; i < size_of_frame(*(const uint64_t *)which); i++)
        wrong += bytes[i] != 0;
    frame[0] = *(const uint64_t *)which;
    fill_frame_with_pattern(frame);
    return domus_ask(stack, server, &number_type, &frame[1], check_frame_and_ask_again);
}

static int expect_no_frame(domus_stack *stack, void *self, const void *payload)
{
    wrong += domus_frame(stack) != NULL;
    ended++;
    return 0;
}

static const domus_behaviour framed = {
    .name = "framed",
    .on = (const domus_on[]){{&begin_small, begin_conversation_with_zeroed_frame, 16},
                             {&begin_middle, begin_conversation_with_zeroed_frame, 200},
                             {&begin_large, begin_conversation_with_zeroed_frame, DOMUS_FRAME_MAX},
                             {&begin_none, expect_no_frame, 0},
                             {0}}};

static int reply_with_double_number(domus_stack *stack, void *self, const void *number)
{
    uint64_t doubled = *(const uint64_t *)number * 2;

    return domus_reply(stack, &number_type, &doubled);
}

static const domus_behaviour doubling = {
    .name = "doubling", .on = (const domus_on[]){{&number_type, reply_with_double_number, 0}, {0}}};

DOMT_TEST(frames_are_zeroed_and_kept_through_parks)
{
    const domus_type *const types[] = {&begin_small, &begin_middle, &begin_large};

    domt_world_open(&world, 2);
    domus_address one = domt_spawn(domt_outside_manager(&world), world.managers[0], &framed, NULL);
    server = domt_spawn(domt_outside_manager(&world), world.managers[1], &doubling, NULL);
    /* frames of later rounds lie in memory that earlier ones have left */
    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < 90; i++) {
            uint64_t which = i % 3;
            ck_assert_int_eq(
                domt_send_notice(domt_outside_manager(&world), one, types[which], &which), 0);
        }
        domt_settle_world(&world);
    }
    ck_assert_uint_eq(ended, 270);
    ck_assert_uint_eq(wrong, 0);
    domt_end_clean_world(&world);
}

DOMT_TEST(handler_of_a_row_without_a_frame_gets_no_frame)
{
    domt_world_open(&world, 1);
    domus_address one = domt_spawn(domt_outside_manager(&world), world.managers[0], &framed, NULL);
    ck_assert_int_eq(
        domt_send_notice(domt_outside_manager(&world), one, &begin_none, &(uint64_t){0}), 0);
    domt_settle_world(&world);
    ck_assert_uint_eq(ended, 1);
    ck_assert_uint_eq(wrong, 0);
    domt_world_end(&world);
}

/* --- many at once ---------------------------------------------------------------------------- */

#define SERVERS 3
#define HOPS    5

typedef struct journey {
    uint64_t id;
    uint64_t value;
    uint32_t hops;
} journey;

static domus_address servers[SERVERS];
static uint64_t arrived_sum;

static int check_doubled_number_and_ask_next_server(domus_stack *stack, void *self,
                                                    const domus_answer *answer)
{
    journey *now = domus_frame(stack);

    wrong += answer->error != 0 || *(const uint64_t *)answer->payload != now->value * 2;
    now->value = now->value * 2 + now->id;
    if (++now->hops == HOPS) {
        arrived_sum += now->id;
        ended++;
        return 0;
    }
    return domus_ask(stack, servers[(now->id + now->hops) % SERVERS], &number_type, &now->value,
                     check_doubled_number_and_ask_next_server);
}

static int on_id_ask_first_server(domus_stack *stack, void *self, const void *id)
{
    journey *now = domus_frame(stack);

    now->id = now->value = *(const uint64_t *)id;
    return domus_ask(stack, servers[now->id % SERVERS], &number_type, &now->value,
                     check_doubled_number_and_ask_next_server);
}

static const domus_behaviour traveller = {
    .name = "traveller",
    .on = (const domus_on[]){{&begin_small, on_id_ask_first_server, sizeof(journey)}, {0}}};

DOMT_TEST(many_conversations_of_one_actor_interleave_and_keep_apart)
{
    enum { JOURNEYS = 20000 };
    domi_random random;

    domi_random_init(&random, 8);
    domt_world_open(&world, 3);
    domus_address one =
        domt_spawn(domt_outside_manager(&world), world.managers[0], &traveller, NULL);
    for (uint32_t i = 0; i < SERVERS; i++)
        servers[i] = domt_spawn(domt_outside_manager(&world), world.managers[i], &doubling, NULL);
    for (uint64_t id = 0; id < JOURNEYS; id++) {
        ck_assert_int_eq(domt_send_notice(domt_outside_manager(&world), one, &begin_small, &id), 0);
        if (domi_random_below(&random, 8) == 0)
            (void)domt_iterate_home(world.managers[domi_random_below(&random, 3)]);
    }
    domt_settle_world(&world);
    ck_assert_uint_eq(ended, JOURNEYS);
    ck_assert_uint_eq(arrived_sum, (uint64_t)JOURNEYS * (JOURNEYS - 1) / 2);
    ck_assert_uint_eq(wrong, 0);
    domt_end_clean_world(&world);
}

/* --- payloads of all sizes ------------------------------------------------------------------- */

/* Sizes around the ends of every envelope class, for asks (64 bytes of head) and notices (40
 * bytes). */
static const uint32_t sizes[] = {0,   1,   8,    16,   24,   25,   64,   65,    88,
                                 89,  192, 193,  216,  217,  448,  449,  472,   473,
                                 960, 961, 1024, 1025, 1048, 1049, 4096, 40000, DOMUS_PAYLOAD_MAX};
#define SIZES (sizeof sizes / sizeof sizes[0])

static domus_type sized[SIZES]; /* one type for each size of a payload */
static domus_on sized_rows[SIZES + 1];
static domus_behaviour echoing;
static unsigned char payload[DOMUS_PAYLOAD_MAX + 1];
static const domus_type *reply_type; /* the type of the answers of the echo actor */
static unsigned noticed;
static const domus_type *ask_type;

static void count_wrong_bytes(const void *bytes, uint32_t size)
{
    wrong += memcmp(bytes, payload, size) != 0;
}

/* Count a notice from outside. Answer an ask with its own payload if that is at least as long as
 * the answer, otherwise with another payload. */
static int echo_ask_or_count_notice(domus_stack *stack, void *self, const void *bytes)
{
    /* a message without a sender is a notice from outside */
    if (domus_sender(stack).house == NULL) {
        noticed++;
        count_wrong_bytes(bytes, reply_type->size);
        return 0;
    }
    count_wrong_bytes(bytes, ask_type->size);
    return domus_reply(stack, reply_type, ask_type->size >= reply_type->size ? bytes : payload);
}

static int check_echoed_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    wrong += answer->error != 0 || answer->type != reply_type;
    count_wrong_bytes(answer->payload, reply_type->size);
    ended++;
    return 0;
}

static int ask_for_echo(domus_stack *stack, void *to)
{
    return domus_ask(stack, *(domus_address *)to, ask_type, payload, check_echoed_answer);
}

static void open_world_of_echo(void)
{
    for (size_t i = 0; i < SIZES; i++) {
        sized[i] = (domus_type){.name = "sized", .size = sizes[i]};
        sized_rows[i] = (domus_on){&sized[i], echo_ask_or_count_notice, 0};
    }
    echoing = (domus_behaviour){.name = "echoing", .on = sized_rows};
    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (unsigned char)(i * 31 + i / 251);
    domt_world_open(&world, 2);
}

DOMT_TEST(asks_and_replies_of_all_sizes_arrive_whole)
{
    open_world_of_echo();
    domus_address agent =
        domt_spawn(domt_outside_manager(&world), world.managers[0], &domt_agent, NULL);
    for (uint32_t home = 0; home < 2; home++) {
        domus_address to =
            domt_spawn(domt_outside_manager(&world), world.managers[home], &echoing, NULL);
        for (size_t i = 0; i < SIZES; i++) {
            for (size_t j = 0; j < SIZES; j++) {
                ask_type = &sized[i];
                reply_type = &sized[j];
                domt_run_as_actor(&world, agent, ask_for_echo, &to);
            }
        }
    }
    ck_assert_uint_eq(ended, 2 * SIZES * SIZES);
    ck_assert_uint_eq(wrong, 0);
    domt_end_clean_world(&world);
}

DOMT_TEST(notices_of_all_sizes_arrive_whole)
{
    open_world_of_echo();
    domus_address to = domt_spawn(domt_outside_manager(&world), world.managers[0], &echoing, NULL);
    for (size_t i = 0; i < SIZES; i++) {
        reply_type = &sized[i];
        ck_assert_int_eq(domt_send_notice(domt_outside_manager(&world), to, &sized[i], payload), 0);
        domt_settle_world(&world);
    }
    ck_assert_uint_eq(noticed, SIZES);
    ck_assert_uint_eq(wrong, 0);
    domt_end_clean_world(&world);
}

/* --- one stack for all turns of a run --------------------------------------------------------- */

#define MS UINT64_C(1000000)

static domt_world world;
static domus_address worker, asker, other;
static int replied, resumed, turns;
static domus_address seen[2];
static uint32_t seen_count;

static void open_world_of_three_agents(void)
{
    domt_world_open(&world, 1);
    worker = domt_spawn(world.managers[0], world.managers[0], &domt_agent, NULL);
    asker = domt_spawn(world.managers[0], world.managers[0], &domt_agent, NULL);
    other = domt_spawn(world.managers[0], world.managers[0], &domt_agent, NULL);
    domt_settle_world(&world);
    replied = resumed = turns = 0;
}

static int reply_twice(domus_stack *stack, void *context)
{
    turns++;
    ck_assert_int_eq(domus_reply(stack, &domt_call_type, &(domt_call){0}), 0);
    ck_assert_int_eq(domus_reply(stack, &domt_call_type, &(domt_call){0}), -EALREADY);
    return 0;
}

static int try_to_answer_notice(domus_stack *stack, void *context)
{
    turns++;
    replied = domus_reply(stack, &domt_call_type, &(domt_call){0});
    return 0;
}

static int expect_success(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, 0);
    return 0;
}

static int ask_worker(domus_stack *stack, void *context)
{
    return domus_ask(stack, worker, &domt_call_type, &(domt_call){reply_twice, NULL},
                     expect_success);
}

DOMT_TEST(a_notice_behind_an_answered_ask_has_no_ask)
{
    open_world_of_three_agents();
    domt_send_function_to_call(world.managers[0], asker, ask_worker, NULL);
    domt_send_function_to_call(world.managers[0], worker, try_to_answer_notice, NULL);
    uint64_t before = DOMT_SUM(&world, runs);
    (void)domt_run_state_queue(world.managers[0]);
    domt_settle_world(&world);
    ck_assert_uint_gt(DOMT_SUM(&world, runs), before);
    ck_assert_int_eq(turns, 2);
    ck_assert_int_eq(replied, -EINVAL);
    domt_world_end(&world);
}

static int count_resumption(domus_stack *stack, void *self, const domus_answer *answer)
{
    resumed++;
    return 0;
}

static int sleep_once(domus_stack *stack, void *context)
{
    turns++;
    return domus_sleep(stack, MS, count_resumption);
}

static int return_error(domus_stack *stack, void *context)
{
    turns++;
    return -EIO;
}

static int raise_barrier_and_return(domus_stack *stack, void *context)
{
    turns++;
    return domus_barrier(stack);
}

DOMT_TEST(turn_inherits_no_park_failure_or_barrier_of_the_one_before)
{
    open_world_of_three_agents();
    domt_send_function_to_call(world.managers[0], worker, sleep_once, NULL);
    domt_send_function_to_call(world.managers[0], worker, try_to_answer_notice, NULL);
    domt_send_function_to_call(world.managers[0], worker, raise_barrier_and_return, NULL);
    domt_send_function_to_call(world.managers[0], worker, sleep_once, NULL);
    domt_send_function_to_call(world.managers[0], worker, return_error, NULL);
    domt_send_function_to_call(world.managers[0], worker, sleep_once, NULL);
    domt_settle_world(&world);
    ck_assert_int_eq(turns, 6);
    ck_assert_int_eq(replied, -EINVAL);
    ck_assert_int_eq(resumed, 0);
    domt_pass_time(&world, 3 * MS);
    ck_assert_int_eq(resumed, 3);
    domt_world_end(&world);
}

static int record_sender(domus_stack *stack, void *context)
{
    seen[seen_count++] = domus_sender(stack);
    return 0;
}

static int send_to_worker(domus_stack *stack, void *context)
{
    return domus_notice(stack, worker, &domt_call_type, &(domt_call){record_sender, NULL});
}

DOMT_TEST(each_turn_sees_the_sender_of_its_own_message)
{
    open_world_of_three_agents();
    seen_count = 0;
    domt_send_function_to_call(world.managers[0], other, send_to_worker, NULL);
    domt_send_function_to_call(world.managers[0], worker, record_sender, NULL);
    (void)domt_run_state_queue(
        world.managers[0]); /* both answers wait for the worker when it runs */
    domt_settle_world(&world);
    ck_assert_uint_eq(seen_count, 2);
    ck_assert_ptr_null(seen[0].house);
    ck_assert_ptr_eq(seen[1].house, other.house);
    domt_world_end(&world);
}

/* --- in words --------------------------------------------------------------------------------- */

static const domus_type question_type = {.name = "question", .size = sizeof(domi_begin)};
static char text[4096];

static int on_question_keep_ask(domus_stack *stack, void *self, const void *question)
{
    static domus_kept kept;

    return domus_keep(stack, &kept);
}

static const domus_behaviour silent = {
    .name = "silent", .on = (const domus_on[]){{&question_type, on_question_keep_ask, 0}, {0}}};

static int begin_ask_in_parts(domus_stack *stack, void *to)
{
    domi_begin begin = {.stack = NULL};

    return domi_ask_put_first_part_and_wait(stack, *(const domus_address *)to, &question_type,
                                            &begin, &begin, 0, count_resumption);
}

static void describe_actor(domi_manager *home, domus_address actor)
{
    domi_text into = {.at = text, .size = sizeof text};

    domi_house_describe(home, actor.house, &into);
    ck_assert_uint_lt(into.length, sizeof text);
}

/* An ask that the channel sends in parts is still one ask before its first part has left. */
DOMT_TEST(ask_in_parts_waits_for_its_begin)
{
    domt_world_open(&world, 1);
    domi_manager *home = world.managers[0];
    asker = domt_spawn(domt_outside_manager(&world), home, &domt_agent, NULL);
    domus_address asked = domt_spawn(domt_outside_manager(&world), home, &silent, NULL);
    domt_run_as_actor(&world, asker, begin_ask_in_parts, &asked);
    describe_actor(home, asker);
    ck_assert_msg(strstr(text, "waits for one of 2\n") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "      ask question to 0/") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "      the begin of that ask, since 0 ms\n") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "something else") == NULL, "%s", text);
    domt_world_end(&world);
}

DOMT_SUITE(60)
