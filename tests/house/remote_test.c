/* domus/remote.h: messages to remote actors come to the gateway of their sender's home, and answers
 * to messages that gateways send as remote actors come to these gateways. */
#include "tests/house/remote_world.h"
#include "tests/house/steps.h"

#include "house/conversation/asks.h"
#include "house/conversation/stack.h"

#include <domus/supervise.h>

#include <string.h>

/* --- to remote actors ------------------------------------------------------------------------- */

typedef struct sending {
    domus_address to;
    uint64_t value;
    uint64_t timeout_ns;
    int expected;
    int error;        /* error of the answer; 1: none came yet */
    uint64_t replied; /* the value in the answer */
    domus_conversation conversation;
} sending;

static sending asked[4];

static int send_notice_to_remote(domus_stack *stack, void *sending_)
{
    sending *now = sending_;

    ck_assert_int_eq(domus_notice(stack, now->to, &domt_word, &now->value), now->expected);
    return 0;
}

static int record_answer_of_remote(domus_stack *stack, void *self, const domus_answer *answer)
{
    asked[0].error = answer->error;
    if (answer->payload != NULL)
        memcpy(&asked[0].replied, answer->payload, 8);
    return 0;
}

static int send_ask_to_remote(domus_stack *stack, void *sending_)
{
    sending *now = sending_;

    now->error = 1;
    ck_assert_int_eq(domus_conversation_of(stack, &now->conversation), 0);
    return domus_ask_within(stack, now->to, &domt_word, &now->value, now->timeout_ns,
                            record_answer_of_remote);
}

static int cancel_ask_to_remote(domus_stack *stack, void *sending_)
{
    ck_assert_int_eq(domus_cancel(stack, ((sending *)sending_)->conversation), 0);
    return 0;
}

DOMT_TEST(notices_come_to_the_gateway_of_their_senders_home)
{
    domt_remote_open_world(NULL);
    domus_remote_name name = domt_remote_name_of_number(3, 1);
    sending now = {.to = domt_remote_address(3, 1), .value = 42};
    for (uint32_t home = 0; home < 2; home++) {
        domt_run_as_agent(home, send_notice_to_remote, &now);
        domt_carried *carried = &domt_carried_by[home];
        ck_assert_uint_eq(carried->notices, 1);
        ck_assert_int_eq(carried->target_error, 0);
        ck_assert(domt_is_same_name(&carried->target, &name));
        ck_assert(domus_address_equals(carried->sender, domt_agents[home]));
        ck_assert_uint_eq(carried->value, 42);
    }
    ck_assert_uint_eq(domt_releases, 2);
    ck_assert(domus_address_is_remote(now.to));
    ck_assert(!domus_address_is_remote(domt_agents[0]));
    ck_assert(!domus_address_is_remote((domus_address){NULL, 0}));
    domt_remote_close_world();
}

DOMT_TEST(senders_without_a_thread_have_one_gateway_each)
{
    domt_remote_open_world(NULL);
    domus_address to = domt_remote_address(3, 1);
    for (uint64_t i = 0; i < 10; i++)
        ck_assert_int_eq(domt_send_notice(domt_outside_manager(&domt_remote), to, &domt_plain, &i),
                         0);
    domt_settle_world(&domt_remote);
    ck_assert_uint_eq(domt_carried_by[0].notices, 10);
    ck_assert_uint_eq(domt_carried_by[0].value, 9);
    ck_assert_ptr_null(domt_carried_by[0].sender.house);
    domt_remote_close_world();
}

static int reply_to_kept_as_gateway(domus_stack *stack, void *value)
{
    ck_assert_int_eq(domus_kept_reply(stack, domt_carried_by[1].kept[0], &domt_plain, value), 0);
    ck_assert_int_eq(domus_kept_reply(stack, domt_carried_by[1].kept[0], &domt_plain, value),
                     -ENOENT);
    return 0;
}

static int fail_kept_as_gateway(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_kept_fail(stack, domt_carried_by[1].kept[0], -EHOSTDOWN), 0);
    return 0;
}

DOMT_TEST(asks_are_kept_by_the_gateway_and_answered)
{
    domt_remote_open_world(NULL);
    uint64_t value = 77;
    asked[0] = (sending){.to = domt_remote_address(4, 0), .value = 9};
    domt_run_as_agent(1, send_ask_to_remote, &asked[0]);
    ck_assert_uint_eq(domt_carried_by[1].asks, 1);
    ck_assert_uint_eq(domt_carried_by[1].value, 9);
    ck_assert_int_eq(asked[0].error, 1);
    domt_run_as_gateway(1, reply_to_kept_as_gateway, &value);
    ck_assert_int_eq(asked[0].error, 0);
    ck_assert_uint_eq(asked[0].replied, 77);
    ck_assert_uint_eq(domt_releases, 1);
    domt_carried_by[1].asks = 0;
    domt_run_as_agent(1, send_ask_to_remote, &asked[0]);
    domt_run_as_gateway(1, fail_kept_as_gateway, NULL);
    ck_assert_int_eq(asked[0].error, -EHOSTDOWN);
    ck_assert_uint_eq(domt_releases, 2);
    domt_remote_close_world();
}

DOMT_TEST(a_cancel_ends_the_kept_ask_and_tells_the_gateway)
{
    domt_remote_open_world(NULL);
    asked[0] = (sending){.to = domt_remote_address(4, 0)};
    domt_run_as_agent(1, send_ask_to_remote, &asked[0]);
    domt_run_as_agent(1, cancel_ask_to_remote, &asked[0]);
    ck_assert_int_eq(asked[0].error, -ECANCELED);
    ck_assert_uint_eq(domt_carried_by[1].cancels, 1);
    ck_assert_uint_eq(domt_carried_by[0].cancels, 0);
    ck_assert_ptr_eq(domt_carried_by[1].cancelled.stack, domt_carried_by[1].kept[0].stack);
    ck_assert_uint_eq(domt_carried_by[1].cancelled.serial, domt_carried_by[1].kept[0].serial);
    ck_assert_uint_eq(domt_releases, 1);
    /* only the conversation of the asker is parked, not the ask that was cancelled */
    ck_assert_uint_eq(domi_house_count_parked_conversations(domt_gateways[1].house), 1);
    domt_remote_close_world();
}

/* Cancel only those asks of a conversation that the gateway keeps, as a channel does whose peer has
 * finished sending. */
static int cancel_kept_asks_of_conversation(domus_stack *stack, void *sending_)
{
    domi_stack_cancel_kept_asks(stack->manager, ((sending *)sending_)->conversation.stack);
    return 0;
}

/* The remote actor may work for the ask, so the gateway counts as working, and the ask is not
 * kept. */
DOMT_TEST(an_ask_on_its_way_to_a_remote_actor_does_not_count_as_kept)
{
    uint64_t value = 77;

    domt_remote_open_world(NULL);
    asked[0] = (sending){.to = domt_remote_address(4, 0)};
    domt_run_as_agent(1, send_ask_to_remote, &asked[0]);
    domt_run_as_agent(1, cancel_kept_asks_of_conversation, &asked[0]);
    ck_assert_int_eq(asked[0].error, 1);
    ck_assert_uint_eq(domt_carried_by[1].cancels, 0);
    domt_run_as_gateway(1, reply_to_kept_as_gateway, &value);
    ck_assert_int_eq(asked[0].error, 0);
    ck_assert_uint_eq(asked[0].replied, 77);
    domt_remote_close_world();
}

DOMT_TEST(a_deadline_travels_and_ends_the_kept_ask)
{
    domt_remote_open_world(NULL);
    asked[0] = (sending){.to = domt_remote_address(4, 0), .timeout_ns = 10 * DOMT_MS};
    domt_run_as_agent(1, send_ask_to_remote, &asked[0]);
    domt_pass_time(&domt_remote, 20 * DOMT_MS);
    ck_assert_int_eq(asked[0].error, -ETIMEDOUT);
    ck_assert_uint_eq(domi_house_count_parked_conversations(domt_gateways[1].house), 1);
    ck_assert_uint_eq(domt_releases, 1);
    domt_remote_close_world();
}

static int send_20_asks_to_remote(domus_stack *stack, void *sending_)
{
    sending *now = sending_;

    for (uint32_t i = 0; i < 20; i++)
        ck_assert_int_eq(domus_ask_add(stack, now->to, &domt_plain, &now->value, 0, 0), 0);
    return domus_wait_all(stack, record_answer_of_remote);
}

DOMT_TEST(asks_that_a_gateway_keeps_do_not_count_as_conversations)
{
    domt_remote_open_world(NULL);
    domt_remote.managers[1]->limits.conversations_max = 4;
    sending now = {.to = domt_remote_address(4, 0)};
    domt_run_as_agent(1, send_20_asks_to_remote, &now);
    ck_assert_uint_eq(domt_carried_by[1].asks, 20);
    domt_run_as_agent(1, send_notice_to_remote, &now);
    ck_assert_uint_eq(domt_carried_by[1].notices, 1);
    domt_remote_close_world();
}

/* --- states of a node ------------------------------------------------------------------------- */

static int state_error;

static int set_state_of_node(domus_stack *stack, void *error)
{
    state_error = domus_remote_node_set(stack, DOMT_NODE, (int)(intptr_t)error);
    return 0;
}

DOMT_TEST(a_node_that_is_full_or_down_refuses_what_is_sent)
{
    static const int errors[] = {-ENOBUFS, -EHOSTDOWN, -ESTALE};

    domt_remote_open_world(NULL);
    domus_address to = domt_remote_address(4, 0);
    for (uint32_t i = 0; i < 3; i++) {
        domt_run_as_gateway(0, set_state_of_node, (void *)(intptr_t)errors[i]);
        ck_assert_int_eq(state_error, 0);
        domt_releases = 0;
        sending now = {.to = to, .expected = errors[i]};
        domt_run_as_agent(0, send_notice_to_remote, &now);
        ck_assert_uint_eq(domt_releases, 0);
        asked[0] = (sending){.to = to};
        domt_run_as_agent(0, send_ask_to_remote, &asked[0]);
        ck_assert_int_eq(asked[0].error, errors[i]);
        ck_assert_uint_eq(domt_releases, 1);
        domt_run_as_gateway(0, set_state_of_node, NULL);
        /* an address that is stale stays so, whatever the state of the node is afterwards */
        now.expected = errors[i] == -ESTALE ? -ESTALE : 0;
        domt_run_as_agent(0, send_notice_to_remote, &now);
    }
    ck_assert_uint_eq(DOMT_SUM(&domt_remote, refusals), 2);
    domt_run_as_gateway(0, set_state_of_node, (void *)(intptr_t)1);
    ck_assert_int_eq(state_error, -EINVAL);
    domt_remote_close_world();
}

static int expect_gateway_verbs_are_refused(domus_stack *stack, void *context)
{
    domus_remote_name name = domt_remote_name_of_number(1, 0);
    domus_remote_message message;
    domus_address address = {NULL, 0};
    uint32_t cursor = 0;

    /* -EOPNOTSUPP: only a channels actor can be a gateway */
    ck_assert_int_eq(domus_remote_open(stack, NULL), -EOPNOTSUPP);
    ck_assert_int_eq(domus_remote_node_open(stack, 1, 0), -EPERM);
    ck_assert_int_eq(domus_remote_node_set(stack, 1, 0), -EPERM);
    ck_assert_int_eq(domus_remote_target(stack, &message), -EPERM);
    ck_assert_int_eq(domus_remote_keep(stack, &(domus_kept){0}), -EPERM);
    ck_assert_int_eq(domus_remote_notice(stack, address, domt_agents[0], &domt_plain, &cursor),
                     -EPERM);
    ck_assert_int_eq(domus_remote_ask(stack, domt_askers[0], address, domt_agents[0], &domt_plain,
                                      &cursor, 0, 0, NULL),
                     -EPERM);
    ck_assert_int_eq(domus_remote_cancel(stack, (domus_remote_asked){NULL, 0}), -EPERM);
    ck_assert_int_eq(domus_remote_end(stack, &name, 0), -EPERM);
    ck_assert_int_eq(domus_remote_down(stack, &name, 0), -EPERM);
    ck_assert_int_eq(domus_remote_room(stack, &name), -EPERM);
    ck_assert_uint_eq(domus_remote_idle(stack, DOMT_NODE, &cursor, &name, 1), 0);
    return 0;
}

DOMT_TEST(only_gateways_use_the_verbs_of_gateways)
{
    domt_remote_open_world(NULL);
    domt_run_as_agent(0, expect_gateway_verbs_are_refused, NULL);
    domt_remote_close_world();
}

/* --- in the name of remote actors ------------------------------------------------------------- */

typedef struct naming {
    domus_address from, to;
    uint64_t value, tag;
    int expected;
    domus_remote_asked asked;
} naming;

static domus_address seen_sender;
static uint64_t seen_value;
static domus_kept seen_kept;
static domus_address passed_to;
static int handling; /* what the worker does with an ask */
enum { REPLIES, FAILS, KEEPS, PASSES_ON, SLEEPS };
static int worker_heard;

static int record_error_of_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    worker_heard = answer->error;
    return answer->error;
}

static int handle_value_as_test_says(domus_stack *stack, void *self, const void *payload)
{
    uint64_t doubled;

    seen_sender = domus_sender(stack);
    memcpy(&seen_value, payload, 8);
    doubled = 2 * seen_value;
    switch (handling) {
    case FAILS:
        return -ENOTSUP;
    case KEEPS:
        return domus_keep(stack, &seen_kept);
    case PASSES_ON:
        handling = KEEPS;
        return domus_forward(stack, passed_to);
    case SLEEPS:
        return domus_sleep(stack, 1000 * DOMT_MS, record_error_of_sleep);
    default:
        (void)domus_reply(stack, &domt_plain, &doubled);
        ck_assert(domus_address_equals(domus_sender(stack), seen_sender));
        return 0;
    }
}

static const domus_behaviour worker = {
    .name = "worker",
    .on = (const domus_on[]){{&domt_call_type, domt_on_call_run_function, 0},
                             {&domt_word, handle_value_as_test_says, 0},
                             {0}}};

static domus_address workers[2];

static void open_world_with_workers(void)
{
    domt_remote_open_world(NULL);
    for (uint32_t i = 0; i < 2; i++)
        workers[i] =
            domt_spawn(domt_outside_manager(&domt_remote), domt_remote.managers[i], &worker, NULL);
    domt_settle_world(&domt_remote);
    handling = REPLIES;
    worker_heard = 1;
}

static int send_notice_as_remote(domus_stack *stack, void *naming_)
{
    naming *now = naming_;

    ck_assert_int_eq(domus_remote_notice(stack, now->from, now->to, &domt_word, &now->value),
                     now->expected);
    return 0;
}

static int send_ask_as_remote(domus_stack *stack, void *naming_)
{
    naming *now = naming_;
    uint32_t home = domus_self(stack).house->home->index;

    ck_assert_int_eq(domus_remote_ask(stack, domt_askers[home], now->from, now->to, &domt_word,
                                      &now->value, 0, now->tag, &now->asked),
                     now->expected);
    return 0;
}

DOMT_TEST(a_notice_in_the_name_of_a_remote_actor_shows_it_as_the_sender)
{
    open_world_with_workers();
    naming now = {.from = domt_remote_address(8, 1), .to = workers[1], .value = 5};
    domt_run_as_gateway(0, send_notice_as_remote, &now);
    ck_assert(domus_address_equals(seen_sender, now.from));
    ck_assert_uint_eq(seen_value, 5);
    ck_assert_uint_eq(domt_releases, 1);
    now.from = (domus_address){NULL, 0};
    domt_run_as_gateway(0, send_notice_as_remote, &now);
    ck_assert_ptr_null(seen_sender.house);
    now.from = workers[0];
    now.expected = -EINVAL;
    domt_run_as_gateway(0, send_notice_as_remote, &now);
    now.from = domt_remote_address(8, 1);
    now.to.lease++;
    now.expected = -ESTALE;
    domt_run_as_gateway(0, send_notice_as_remote, &now);
    ck_assert_uint_eq(domt_releases, 2);
    domt_remote_close_world();
}

DOMT_TEST(an_ask_in_the_name_of_a_remote_actor_is_answered_to_the_gateway)
{
    open_world_with_workers();
    for (uint32_t home = 0; home < 2; home++) {
        for (uint32_t target = 0; target < 2; target++) {
            naming now = {
                .from = domt_remote_address(8, 1), .to = workers[target], .value = 5, .tag = 11};
            domt_carried *carried = &domt_carried_by[home];
            unsigned before = carried->answers;
            handling = REPLIES;
            domt_run_as_gateway(home, send_ask_as_remote, &now);
            ck_assert(domus_address_equals(seen_sender, now.from));
            ck_assert_uint_eq(carried->answers, before + 1);
            ck_assert_int_eq(carried->answer_error, 0);
            ck_assert_uint_eq(carried->answer_tag, 11);
            ck_assert_uint_eq(carried->answer_value, 10);
            handling = FAILS;
            domt_run_as_gateway(home, send_ask_as_remote, &now);
            ck_assert_int_eq(carried->answer_error, -ENOTSUP);
        }
    }
    ck_assert_uint_eq(domt_releases, 8);
    domt_remote_close_world();
}

static int reply_to_kept_by_worker(domus_stack *stack, void *value)
{
    ck_assert_int_eq(domus_kept_reply(stack, seen_kept, &domt_plain, value), 0);
    return 0;
}

DOMT_TEST(ask_of_a_remote_actor_may_be_kept_and_passed_on)
{
    uint64_t value = 123;

    open_world_with_workers();
    naming now = {.from = domt_remote_address(8, 1), .to = workers[0], .value = 5, .tag = 1};
    handling = KEEPS;
    domt_run_as_gateway(0, send_ask_as_remote, &now);
    domt_run_as_actor(&domt_remote, workers[0], reply_to_kept_by_worker, &value);
    ck_assert_uint_eq(domt_carried_by[0].answer_value, 123);
    handling = PASSES_ON;
    passed_to = workers[1];
    value = 124;
    domt_run_as_gateway(0, send_ask_as_remote, &now);
    ck_assert(domus_address_equals(seen_sender, now.from));
    domt_run_as_actor(&domt_remote, workers[1], reply_to_kept_by_worker, &value);
    ck_assert_uint_eq(domt_carried_by[0].answer_value, 124);
    domt_remote_close_world();
}

DOMT_TEST(an_ask_of_a_remote_actor_may_be_passed_on_to_another_one)
{
    uint64_t value = 99;

    open_world_with_workers();
    domus_remote_name name = domt_remote_name_of_number(9, 0);
    naming now = {.from = domt_remote_address(8, 1), .to = workers[0], .value = 5, .tag = 1};
    handling = PASSES_ON;
    passed_to = domt_remote_address(9, 0);
    domt_run_as_gateway(0, send_ask_as_remote, &now);
    /* The ask goes on by the gateway that has the watches of its sender. */
    ck_assert_uint_eq(domt_carried_by[1].asks, 1);
    ck_assert(domt_is_same_name(&domt_carried_by[1].target, &name));
    ck_assert(domus_address_equals(domt_carried_by[1].sender, now.from));
    domt_run_as_gateway(1, reply_to_kept_as_gateway, &value);
    ck_assert_uint_eq(domt_carried_by[0].answer_value, 99);
    domt_remote_close_world();
}

static int cancel_ask_as_remote(domus_stack *stack, void *naming_)
{
    naming *now = naming_;

    ck_assert_int_eq(domus_remote_cancel(stack, now->asked), now->expected);
    return 0;
}

DOMT_TEST(a_cancel_of_a_remote_actor_comes_to_the_worker_for_it)
{
    for (uint32_t passes = 0; passes < 2; passes++) {
        open_world_with_workers();
        naming now = {.from = domt_remote_address(8, 1), .to = workers[1], .value = 5, .tag = 6};
        handling = SLEEPS;
        domt_run_as_gateway(0, send_ask_as_remote, &now);
        domt_run_as_gateway(0, cancel_ask_as_remote, &now);
        ck_assert_int_eq(worker_heard, -ECANCELED);
        ck_assert_int_eq(domt_carried_by[0].answer_error, -ECANCELED);
        ck_assert_uint_eq(domt_carried_by[0].answer_tag, 6);
        now.expected = -ENOENT;
        domt_run_as_gateway(0, cancel_ask_as_remote, &now);
        domt_run_as_gateway(1, cancel_ask_as_remote, &now);
        ck_assert_uint_eq(domi_house_count_parked_conversations(workers[1].house), 0);
        domt_remote_close_world();
    }
}

DOMT_TEST(ask_of_a_remote_actor_fails_as_any_other)
{
    open_world_with_workers();
    naming now = {.from = domt_remote_address(8, 1), .to = workers[0], .tag = 6};
    now.to.lease++;
    domt_run_as_gateway(1, send_ask_as_remote, &now);
    ck_assert_int_eq(domt_carried_by[1].answer_error, -ESTALE);
    now.from = workers[0];
    now.expected = -EINVAL;
    domt_run_as_gateway(1, send_ask_as_remote, &now);
    now.from = (domus_address){NULL, 0};
    domt_run_as_gateway(1, send_ask_as_remote, &now);
    domt_askers[1].serial++;
    now.from = domt_remote_address(8, 1);
    now.expected = -ENOENT;
    domt_run_as_gateway(1, send_ask_as_remote, &now);
    domt_remote_close_world();
}

DOMT_SUITE(20)
