/* domus/remote.h: messages to remote actors come to the gateway of their sender's home, and what
 * gateways send and ask in the name of remote actors is answered to them. */
#include "tests/house/remote_world.h"

#include "house/conversation/cancel.h"
#include "house/conversation/stack.h"

#include <domus/supervise.h>

#include <string.h>

/* --- to remote actors --------------------------------------------------------------------------
 */

typedef struct sending {
    domus_address to;
    uint64_t value;
    uint64_t timeout_ns;
    int expected;
    int error;        /* of the answer; 1: none yet */
    uint64_t replied; /* the value of the answer */
    domus_conversation conversation;
} sending;

static sending asked[4];

static int send_notice(domus_stack *stack, void *sending_)
{
    sending *now = sending_;

    ck_assert_int_eq(domus_notice(stack, now->to, &domt_word, &now->value), now->expected);
    return 0;
}

static int hear(domus_stack *stack, void *self, const domus_answer *answer)
{
    asked[0].error = answer->error;
    if (answer->payload != NULL)
        memcpy(&asked[0].replied, answer->payload, 8);
    return 0;
}

static int send_ask(domus_stack *stack, void *sending_)
{
    sending *now = sending_;

    now->error = 1;
    ck_assert_int_eq(domus_conversation_of(stack, &now->conversation), 0);
    return domus_ask_within(stack, now->to, &domt_word, &now->value, now->timeout_ns, hear);
}

static int cancel_ask(domus_stack *stack, void *sending_)
{
    ck_assert_int_eq(domus_cancel(stack, ((sending *)sending_)->conversation), 0);
    return 0;
}

DOMT_TEST(notices_come_to_the_gateway_of_their_senders_home)
{
    domt_remote_open(NULL);
    domus_remote_name name = domt_name(3, 1);
    sending now = {.to = domt_far(3, 1), .value = 42};
    for (uint32_t home = 0; home < 2; home++) {
        domt_as_agent(home, send_notice, &now);
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
    domt_remote_close();
}

DOMT_TEST(senders_without_a_thread_have_one_gateway_each)
{
    domt_remote_open(NULL);
    domus_address to = domt_far(3, 1);
    for (uint64_t i = 0; i < 10; i++)
        ck_assert_int_eq(domt_notice(domt_outside(&domt_remote), to, &domt_plain, &i), 0);
    domt_settle(&domt_remote);
    ck_assert_uint_eq(domt_carried_by[0].notices, 10);
    ck_assert_uint_eq(domt_carried_by[0].value, 9);
    ck_assert_ptr_null(domt_carried_by[0].sender.house);
    domt_remote_close();
}

static int reply_kept(domus_stack *stack, void *value)
{
    ck_assert_int_eq(domus_kept_reply(stack, domt_carried_by[1].kept[0], &domt_plain, value), 0);
    ck_assert_int_eq(domus_kept_reply(stack, domt_carried_by[1].kept[0], &domt_plain, value),
                     -ENOENT);
    return 0;
}

static int fail_kept(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_kept_fail(stack, domt_carried_by[1].kept[0], -EHOSTDOWN), 0);
    return 0;
}

DOMT_TEST(asks_are_kept_by_the_gateway_and_answered)
{
    uint64_t value = 77;

    domt_remote_open(NULL);
    asked[0] = (sending){.to = domt_far(4, 0), .value = 9};
    domt_as_agent(1, send_ask, &asked[0]);
    ck_assert_uint_eq(domt_carried_by[1].asks, 1);
    ck_assert_uint_eq(domt_carried_by[1].value, 9);
    ck_assert_int_eq(asked[0].error, 1);
    domt_as_gateway(1, reply_kept, &value);
    ck_assert_int_eq(asked[0].error, 0);
    ck_assert_uint_eq(asked[0].replied, 77);
    ck_assert_uint_eq(domt_releases, 1);
    domt_carried_by[1].asks = 0;
    domt_as_agent(1, send_ask, &asked[0]);
    domt_as_gateway(1, fail_kept, NULL);
    ck_assert_int_eq(asked[0].error, -EHOSTDOWN);
    ck_assert_uint_eq(domt_releases, 2);
    domt_remote_close();
}

DOMT_TEST(a_cancel_ends_the_kept_ask_and_tells_the_gateway)
{
    domt_remote_open(NULL);
    asked[0] = (sending){.to = domt_far(4, 0)};
    domt_as_agent(1, send_ask, &asked[0]);
    domt_as_agent(1, cancel_ask, &asked[0]);
    ck_assert_int_eq(asked[0].error, -ECANCELED);
    ck_assert_uint_eq(domt_carried_by[1].cancels, 1);
    ck_assert_uint_eq(domt_carried_by[0].cancels, 0);
    ck_assert_ptr_eq(domt_carried_by[1].cancelled.stack, domt_carried_by[1].kept[0].stack);
    ck_assert_uint_eq(domt_carried_by[1].cancelled.serial, domt_carried_by[1].kept[0].serial);
    ck_assert_uint_eq(domt_releases, 1);
    ck_assert_uint_eq(domi_house_count_parked(domt_gateways[1].house), 1); /* the asker alone */
    domt_remote_close();
}

/* Cancel what is only kept for a conversation, as a channel does whose peer has finished sending.
 */
static int cancel_kept(domus_stack *stack, void *sending_)
{
    domi_stack_cancel_kept(stack->manager, ((sending *)sending_)->conversation.stack);
    return 0;
}

/* The remote actor may work for it, so the gateway does, too. */
DOMT_TEST(an_ask_on_its_way_to_a_remote_actor_does_not_count_as_kept)
{
    uint64_t value = 77;

    domt_remote_open(NULL);
    asked[0] = (sending){.to = domt_far(4, 0)};
    domt_as_agent(1, send_ask, &asked[0]);
    domt_as_agent(1, cancel_kept, &asked[0]);
    ck_assert_int_eq(asked[0].error, 1);
    ck_assert_uint_eq(domt_carried_by[1].cancels, 0);
    domt_as_gateway(1, reply_kept, &value);
    ck_assert_int_eq(asked[0].error, 0);
    ck_assert_uint_eq(asked[0].replied, 77);
    domt_remote_close();
}

DOMT_TEST(a_deadline_travels_and_ends_the_kept_ask)
{
    domt_remote_open(NULL);
    asked[0] = (sending){.to = domt_far(4, 0), .timeout_ns = 10 * DOMT_MS};
    domt_as_agent(1, send_ask, &asked[0]);
    domt_pass(&domt_remote, 20 * DOMT_MS);
    ck_assert_int_eq(asked[0].error, -ETIMEDOUT);
    ck_assert_uint_eq(domi_house_count_parked(domt_gateways[1].house), 1);
    ck_assert_uint_eq(domt_releases, 1);
    domt_remote_close();
}

static int send_asks(domus_stack *stack, void *sending_)
{
    sending *now = sending_;

    for (uint32_t i = 0; i < 20; i++)
        ck_assert_int_eq(domus_ask_add(stack, now->to, &domt_plain, &now->value, 0, 0), 0);
    return domus_wait_all(stack, hear);
}

DOMT_TEST(asks_that_a_gateway_keeps_do_not_count_as_conversations)
{
    domt_remote_open(NULL);
    domt_remote.managers[1]->limits.conversations_max = 4;
    sending now = {.to = domt_far(4, 0)};
    domt_as_agent(1, send_asks, &now);
    ck_assert_uint_eq(domt_carried_by[1].asks, 20);
    domt_as_agent(1, send_notice, &now);
    ck_assert_uint_eq(domt_carried_by[1].notices, 1);
    domt_remote_close();
}

/* --- states of a node --------------------------------------------------------------------------
 */

static int state_error;

static int set_state(domus_stack *stack, void *error)
{
    state_error = domus_remote_node_set(stack, DOMT_NODE, (int)(intptr_t)error);
    return 0;
}

DOMT_TEST(a_node_that_is_full_or_down_refuses_what_is_sent)
{
    static const int errors[] = {-ENOBUFS, -EHOSTDOWN, -ESTALE};

    domt_remote_open(NULL);
    domus_address to = domt_far(4, 0);
    for (uint32_t i = 0; i < 3; i++) {
        domt_as_gateway(0, set_state, (void *)(intptr_t)errors[i]);
        ck_assert_int_eq(state_error, 0);
        domt_releases = 0;
        sending now = {.to = to, .expected = errors[i]};
        domt_as_agent(0, send_notice, &now);
        ck_assert_uint_eq(domt_releases, 0);
        asked[0] = (sending){.to = to};
        domt_as_agent(0, send_ask, &asked[0]);
        ck_assert_int_eq(asked[0].error, errors[i]);
        ck_assert_uint_eq(domt_releases, 1);
        domt_as_gateway(0, set_state, NULL);
        now.expected = errors[i] == -ESTALE ? -ESTALE : 0; /* that is for ever */
        domt_as_agent(0, send_notice, &now);
    }
    ck_assert_uint_eq(DOMT_SUM(&domt_remote, refusals), 2);
    domt_as_gateway(0, set_state, (void *)(intptr_t)1);
    ck_assert_int_eq(state_error, -EINVAL);
    domt_remote_close();
}

static int cannot(domus_stack *stack, void *context)
{
    domus_remote_name name = domt_name(1, 0);
    domus_remote_message message;
    domus_address address = {NULL, 0};
    uint32_t cursor = 0;

    ck_assert_int_eq(domus_remote_open(stack, NULL), -EOPNOTSUPP); /* a state actor */
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

DOMT_TEST(only_gateways_use_these_verbs)
{
    domt_remote_open(NULL);
    domt_as_agent(0, cannot, NULL);
    domt_remote_close();
}

DOMT_SUITE(20)
