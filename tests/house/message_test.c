/* house/conversation/message.c: messages are taken as objects, built in place and passed on without
 * a copy, and notices are forwarded. */
#include <domus/message.h>

#include "base/memory.h"
#include "house/family/life.h"
#include "tests/house/steps.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <domus/conversation.h>
#include <domus/receive.h>

#include <errno.h>
#include <string.h>

#define HOMES 3

static domt_world world;
static domus_address actors[HOMES];
static unsigned releases;

static void count_payload_release(void *payload)
{
    releases++;
}

static const domus_type small = {.name = "small", .size = 16, .release = count_payload_release};
static const domus_type middle = {.name = "middle", .size = 700, .release = count_payload_release};
static const domus_type large = {.name = "large", .size = 40000, .release = count_payload_release};
static const domus_type empty = {.name = "empty"};
static const domus_type question = {
    .name = "question", .size = 8, .release = count_payload_release};
static const domus_type *const types[] = {&small, &middle, &large, &empty};
static char bytes[40000];

/* The function that handles each message; each test sets it. */
static int (*on_message)(domus_stack *stack, const void *payload);

/* Addresses of the payloads that handlers have seen, and the senders of their messages. */
static const void *seen[16];
static domus_address senders[16];
static unsigned count;

static void record_payload(domus_stack *stack, const void *payload)
{
    ck_assert_uint_lt(count, 16);
    senders[count] = domus_sender(stack);
    seen[count++] = payload;
}

static int pass_message_to_function_of_test(domus_stack *stack, void *self, const void *payload)
{
    return on_message(stack, payload);
}

static const domus_behaviour passing = {
    .name = "passing",
    .on = (const domus_on[]){{&small, pass_message_to_function_of_test, 0},
                             {&middle, pass_message_to_function_of_test, 100},
                             {&large, pass_message_to_function_of_test, 0},
                             {&empty, pass_message_to_function_of_test, 0},
                             {&question, pass_message_to_function_of_test, 0},
                             {&domt_call_type, domt_on_call_run_function, 0},
                             {0}}};

static void open_world(uint32_t mailbox_max)
{
    count = releases = 0;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7 + i / 255);
    domt_world_init(&world, HOMES);
    if (mailbox_max != 0)
        world.config.scheduler.mailbox_max = mailbox_max;
    ck_assert_int_eq(domt_world_start(&world), 0);
    for (uint32_t i = 0; i < HOMES; i++)
        actors[i] = domt_spawn(domt_outside_manager(&world), world.managers[i], &passing, NULL);
    domt_settle_world(&world);
}

static void close_world(void)
{
    domt_end_clean_world(&world);
}

/* Send a message of this type as a notice from actor 0. */
static int send_message_of_type_to_actor_1(domus_stack *stack, void *type)
{
    return domus_notice(stack, actors[1], type, bytes);
}

static void let_actor_0_send_message_of_type(const domus_type *type)
{
    domt_run_as_actor(&world, actors[0], send_message_of_type_to_actor_1, (void *)(uintptr_t)type);
}

/* --- passed on ------------------------------------------------------------------------------- */

static domus_address next_actor_of_chain(domus_stack *stack)
{
    return domus_self(stack).house == actors[1].house ? actors[2] : actors[0];
}

/* Take the received message as an object and send it to the next actor, until actor 0 has it. */
static int take_message_and_send_to_next(domus_stack *stack, const void *payload)
{
    domus_message *message;

    record_payload(stack, payload);
    if (domus_self(stack).house == actors[0].house)
        return 0;
    ck_assert_int_eq(domus_message_take(stack, &message), 0);
    /* the same message cannot be taken a second time */
    ck_assert_int_eq(domus_message_take(stack, &message), -EINVAL);
    ck_assert_ptr_eq(domus_message_payload(message), payload);
    /* the sender is still known after its message was taken */
    ck_assert_ptr_eq(domus_sender(stack).house, senders[count - 1].house);
    ck_assert_int_eq(domus_forward(stack, actors[0]), -EINVAL);
    ck_assert_mem_eq(payload, bytes, domus_message_type(message)->size);
    ck_assert_int_eq(domus_message_send(stack, next_actor_of_chain(stack), message), 0);
    return 0;
}

static int forward_to_next(domus_stack *stack, const void *payload)
{
    record_payload(stack, payload);
    if (domus_self(stack).house == actors[0].house)
        return 0;
    ck_assert_int_eq(domus_forward(stack, next_actor_of_chain(stack)), 0);
    ck_assert_ptr_eq(domus_sender(stack).house, senders[count - 1].house);
    ck_assert_int_eq(domus_forward(stack, actors[0]), -EINVAL);
    return 0;
}

static void check_message_passes_on_without_copy(int (*how)(domus_stack *, const void *))
{
    on_message = how;
    open_world(0);
    for (int i = 0; i < 4; i++) {
        count = 0;
        let_actor_0_send_message_of_type(types[i]);
        ck_assert_uint_eq(count, 3);
        ck_assert(seen[0] == seen[1] && seen[1] == seen[2]);
        ck_assert_ptr_eq(senders[0].house, actors[0].house);
        for (uint32_t hop = 1; hop < 3; hop++)
            ck_assert_ptr_eq(senders[hop].house,
                             how == forward_to_next ? actors[0].house : actors[hop].house);
        /* the last handler has returned; payloads of the last type own nothing */
        ck_assert_int_eq((int)releases, i < 3 ? i + 1 : 3);
    }
    close_world();
}

DOMT_TEST(taken_message_is_sent_on_without_a_copy)
{
    check_message_passes_on_without_copy(take_message_and_send_to_next);
}

DOMT_TEST(forwarded_notice_keeps_its_sender_and_its_place)
{
    check_message_passes_on_without_copy(forward_to_next);
}

/* --- built in place -------------------------------------------------------------------------- */

static const void *built[4];

static int build_and_send_messages(domus_stack *stack, void *context)
{
    for (int i = 0; i < 4; i++) {
        domus_message *message;
        ck_assert_int_eq(domus_message_new(stack, types[i], &message), 0);
        ck_assert_ptr_eq(domus_message_type(message), types[i]);
        void *payload = domus_message_payload(message);
        ck_assert_uint_eq((uintptr_t)payload % 8, 0);
        memcpy(payload, bytes, types[i]->size);
        built[i] = payload;
        ck_assert_int_eq(domus_message_send(stack, actors[1], message), 0);
    }
    return 0;
}

static int check_and_record_payload(domus_stack *stack, const void *payload)
{
    ck_assert_mem_eq(payload, bytes, types[count]->size);
    record_payload(stack, payload);
    return 0;
}

DOMT_TEST(message_built_in_place_arrives_in_its_place)
{
    on_message = check_and_record_payload;
    open_world(0);
    domt_run_as_actor(&world, actors[0], build_and_send_messages, NULL);
    ck_assert_uint_eq(count, 4);
    for (int i = 0; i < 4; i++) {
        ck_assert_ptr_eq(seen[i], built[i]);
        ck_assert_ptr_eq(senders[i].house, actors[0].house);
    }
    close_world();
}

static int try_wrong_messages(domus_stack *stack, void *context)
{
    static const domus_type beyond = {.name = "beyond", .size = DOMUS_PAYLOAD_MAX + 1};
    domus_message *message = NULL;

    ck_assert_int_eq(domus_message_new(stack, &beyond, &message), -EMSGSIZE);
    domi_memory_fail_allocation_after(0, 1);
    ck_assert_int_eq(domus_message_new(stack, &large, &message), -ENOMEM);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_ptr_null(message);
    domus_message_free(stack, NULL);
    return 0;
}

static int send_largest_and_refuse_larger(domus_stack *stack, void *context)
{
    static const domus_type largest = {.name = "largest", .size = DOMUS_PAYLOAD_MAX};
    static const domus_type beyond = {.name = "beyond", .size = DOMUS_PAYLOAD_MAX + 1};
    static const unsigned char zeros[DOMUS_PAYLOAD_MAX + 1];

    ck_assert_int_eq(domus_notice(stack, actors[1], &largest, zeros), 0);
    ck_assert_int_eq(domus_notice(stack, actors[1], &beyond, zeros), -EMSGSIZE);
    return 0;
}

DOMT_TEST(notice_has_the_largest_payload_and_no_larger_one)
{
    open_world(0);
    domt_run_as_actor(&world, actors[0], send_largest_and_refuse_larger, NULL);
    close_world();
}

DOMT_TEST(message_that_cannot_be_built_changes_nothing)
{
    open_world(0);
    domt_run_as_actor(&world, actors[0], try_wrong_messages, NULL);
    close_world();
}

/* --- kept, refused, freed -------------------------------------------------------------------- */

static domus_message *mine;

static int take_message_and_keep(domus_stack *stack, const void *payload)
{
    record_payload(stack, payload);
    return domus_message_take(stack, &mine);
}

static int try_to_send_kept_message(domus_stack *stack, void *result)
{
    *(int *)result = domus_message_send(stack, actors[2], mine);
    return 0;
}

static int free_kept_message(domus_stack *stack, void *context)
{
    domus_message_free(stack, mine);
    return 0;
}

DOMT_TEST(kept_message_outlives_its_handler_and_is_released_when_it_is_freed)
{
    on_message = take_message_and_keep;
    open_world(0);
    for (int i = 0; i < 4; i++) {
        let_actor_0_send_message_of_type(types[i]);
        ck_assert_ptr_eq(domus_message_type(mine), types[i]);
        ck_assert_ptr_eq(domus_message_payload(mine), seen[i]);
        ck_assert_mem_eq(seen[i], bytes, types[i]->size);
        ck_assert_int_eq((int)releases, i);
        domt_run_as_actor(&world, actors[1], free_kept_message, NULL);
    }
    ck_assert_uint_eq(releases, 3);
    close_world();
}

DOMT_TEST(refused_message_is_still_the_senders)
{
    int result = 1;

    on_message = take_message_and_keep;
    open_world(2);
    let_actor_0_send_message_of_type(&middle);
    /* Actor 2 does not work: two messages wait there, and no more. */
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(domt_send_notice(world.managers[1], actors[2], &question, bytes), 0);
    domt_send_function_to_call(world.managers[1], actors[1], try_to_send_kept_message, &result);
    (void)domt_run_state_queue(world.managers[1]);
    ck_assert_int_eq(result, -ENOBUFS);
    ck_assert_mem_eq(domus_message_payload(mine), bytes, middle.size);

    on_message = check_and_record_payload;
    count = 1;
    seen[1] = NULL;
    domt_stop_actor_and_settle(&world, world.managers[2], actors[2]);
    ck_assert_uint_eq(releases, 2);
    domt_run_as_actor(&world, actors[1], try_to_send_kept_message, &result);
    ck_assert_int_eq(result, -ESTALE);
    ck_assert_mem_eq(domus_message_payload(mine), bytes, middle.size);
    ck_assert_uint_eq(releases, 2);
    domt_run_as_actor(&world, actors[1], free_kept_message, NULL);
    ck_assert_uint_eq(releases, 3);
    close_world();
}

static int try_to_forward_to_stale_address(domus_stack *stack, const void *payload)
{
    domus_address stale = actors[2];

    stale.lease++;
    record_payload(stack, payload);
    ck_assert_int_eq(domus_forward(stack, stale), -ESTALE);
    ck_assert_int_eq(domus_forward(stack, (domus_address){NULL, 0}), -ESTALE);
    /* the refused forwards have left the payload where it is */
    ck_assert_mem_eq(payload, bytes, middle.size);
    ck_assert_int_eq(domus_forward(stack, actors[0]), 0);
    on_message = check_and_record_payload;
    count = 1;
    return 0;
}

DOMT_TEST(notice_that_cannot_be_forwarded_is_still_the_forwarders)
{
    on_message = try_to_forward_to_stale_address;
    open_world(0);
    let_actor_0_send_message_of_type(&middle);
    ck_assert_uint_eq(count, 2);
    ck_assert_ptr_eq(seen[0], seen[1]);
    close_world();
}

/* --- what is no notice ----------------------------------------------------------------------- */

static int try_to_take_ask_and_reply(domus_stack *stack, const void *payload)
{
    domus_message *message = NULL;

    ck_assert_int_eq(domus_message_take(stack, &message), -EINVAL);
    ck_assert_ptr_null(message);
    return domus_reply(stack, &question, payload);
}

static int try_to_take_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    domus_message *message = NULL;

    ck_assert_int_eq(answer->error, 0);
    /* A reply cannot be taken as a message. */
    ck_assert_int_eq(domus_message_take(stack, &message), -EINVAL);
    ck_assert_int_eq(domus_forward(stack, actors[2]), -EINVAL);
    count++;
    return 0;
}

static int ask_second_actor(domus_stack *stack, void *context)
{
    return domus_ask(stack, actors[1], &question, bytes, try_to_take_answer);
}

DOMT_TEST(asks_and_replies_cannot_be_taken)
{
    on_message = try_to_take_ask_and_reply;
    open_world(0);
    domt_run_as_actor(&world, actors[0], ask_second_actor, NULL);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(releases, 2); /* the ask and its answer are released once each */
    close_world();
}

static int take_received_and_send_on(domus_stack *stack, void *self, const domus_answer *answer)
{
    domus_message *message;

    record_payload(stack, answer->payload);
    ck_assert_int_eq(domus_message_take(stack, &message), 0);
    ck_assert_ptr_eq(domus_message_payload(message), answer->payload);
    ck_assert_int_eq(domus_message_send(stack, actors[2], message), 0);
    on_message = check_and_record_payload;
    return 0;
}

static int receive_any_message(domus_stack *stack, void *context)
{
    static const domus_pattern any = {0};

    return domus_receive(stack, &any, take_received_and_send_on);
}

DOMT_TEST(received_notice_may_be_taken_and_sent_on)
{
    open_world(0);
    domt_run_as_actor(&world, actors[1], receive_any_message, NULL);
    let_actor_0_send_message_of_type(&middle);
    ck_assert_uint_eq(count, 2);
    ck_assert_ptr_eq(seen[0], seen[1]);
    ck_assert_ptr_eq(senders[1].house, actors[1].house);
    close_world();
}

static int park_after_taking(domus_stack *stack, const void *payload)
{
    if (domus_self(stack).house != actors[1].house) {
        record_payload(stack, payload);
        return 0;
    }
    domus_message *message;
    record_payload(stack, payload);
    ck_assert_int_eq(domus_message_take(stack, &message), 0);
    ck_assert_int_eq(domus_message_send(stack, actors[2], message), 0);
    return domus_sleep(stack, 0, try_to_take_answer);
}

DOMT_TEST(handler_may_take_its_message_and_wait)
{
    on_message = park_after_taking;
    open_world(0);
    /* one message for each kind of stack: that of the run, and one with a frame */
    for (int i = 0; i < 2; i++)
        let_actor_0_send_message_of_type(types[i]);
    domt_pass_time(&world, 1000000);
    ck_assert_uint_eq(count, 6);
    close_world();
}

DOMT_SUITE(60)
