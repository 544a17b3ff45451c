/* Gateways that record the messages that they are given, and do as a test says;
 * tests/house/remote_world.h tells more. */
#include "tests/house/remote_world.h"
#include "tests/house/steps.h"

#include "house/dispatch/dispatch.h"

#include <domus/supervise.h>

#include <string.h>

domt_world domt_remote;
domi_remotes domt_remotes;
domi_routers domt_remote_routers;
domus_address domt_gateways[2], domt_agents[2];
domt_carried domt_carried_by[2];
domus_conversation domt_askers[2];

const domus_type domt_word = {.name = "word", .size = 8, .release = domt_count_release};
const domus_type domt_plain = {.name = "plain", .size = 8};

static domt_carried *record_of_gateway(const domus_stack *stack)
{
    return &domt_carried_by[domus_self(stack).house->home->index];
}

static int record_message_and_keep_ask(domus_stack *stack, void *self, const void *payload)
{
    domt_carried *carried = record_of_gateway(stack);
    domus_kept kept;

    domus_remote_message message;
    carried->target_error = domus_remote_target(stack, &message);
    if (carried->target_error == 0) {
        carried->target = message.to;
        carried->type = message.type;
    }
    carried->sender = domus_sender(stack);
    memcpy(&carried->value, payload, sizeof carried->value);
    int error = domus_remote_keep(stack, &kept);
    ck_assert(carried->target_error != 0 || message.is_ask == (error == 0));
    if (error == 0)
        carried->kept[carried->asks++ % 4] = kept;
    else
        carried->notices++;
    return 0;
}

static int record_cancelled_ask(domus_stack *stack, void *self, const void *payload)
{
    record_of_gateway(stack)->cancels++;
    record_of_gateway(stack)->cancelled = ((const domus_remote_cancelled_ask *)payload)->kept;
    return 0;
}

static int record_watch_of_remote(domus_stack *stack, void *self, const void *payload)
{
    const domus_remote_watch *watch = payload;

    record_of_gateway(stack)->watches++;
    record_of_gateway(stack)->target = watch->name;
    record_of_gateway(stack)->room = watch->room;
    return 0;
}

static int record_stop_of_remote(domus_stack *stack, void *self, const void *payload)
{
    record_of_gateway(stack)->stops++;
    record_of_gateway(stack)->target = ((const domus_remote_stop *)payload)->name;
    return 0;
}

static int record_join_of_outlet(domus_stack *stack, void *self, const void *payload)
{
    record_of_gateway(stack)->joins++;
    record_of_gateway(stack)->target = ((const domus_remote_joined *)payload)->outlet;
    return 0;
}

static int record_stop_after_mail(domus_stack *stack, void *self, const void *payload)
{
    domus_remote_message message;

    record_of_gateway(stack)->last_stops++;
    int error = domus_remote_target(stack, &message);
    record_of_gateway(stack)->target = message.to;
    return error;
}

static int record_answer_to_remote(domus_stack *stack, void *self, const domus_answer *answer)
{
    domt_carried *carried = record_of_gateway(stack);

    if (answer->tag == UINT64_MAX)
        return 0; /* the sleep of the conversation is cancelled when the gateway ends */
    carried->answers++;
    carried->answer_error = answer->error;
    carried->answer_tag = answer->tag;
    if (answer->payload != NULL)
        memcpy(&carried->answer_value, answer->payload, sizeof carried->answer_value);
    return domus_wait_first(stack, record_answer_to_remote);
}

static int begin_conversation_for_remote_asks(domus_stack *stack, void *context)
{
    uint32_t home = domus_self(stack).house->home->index;

    ck_assert_int_eq(domus_sleep_add(stack, UINT64_C(1) << 60, UINT64_MAX), 0);
    ck_assert_int_eq(domus_conversation_of(stack, &domt_askers[home]), 0);
    return domus_wait_first(stack, record_answer_to_remote);
}

static const domus_behaviour gateway = {
    .name = "gateway",
    .kind = DOMUS_CHANNELS,
    .on = (const domus_on[]){{&domt_call_type, domt_on_call_run_function, 0},
                             {&domus_remote_cancel_type, record_cancelled_ask, 0},
                             {&domus_remote_watch_type, record_watch_of_remote, 0},
                             {&domus_remote_stop_type, record_stop_of_remote, 0},
                             {&domus_remote_joined_type, record_join_of_outlet, 0},
                             {&domus_remote_stop_after_mail_type, record_stop_after_mail, 0},
                             {NULL, record_message_and_keep_ask, 0}}};

static int open_gateway(domus_stack *stack, void *options)
{
    ck_assert_int_eq(domus_remote_open(stack, options), 0);
    ck_assert_int_eq(domus_remote_open(stack, options), -EEXIST);
    return 0;
}

static int open_node_7(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_remote_node_open(stack, DOMT_NODE, 0), 0);
    ck_assert_int_eq(domus_remote_node_open(stack, DOMT_NODE, 0), -EALREADY);
    return 0;
}

void domt_remote_open_world(const domus_remote_options *options)
{
    domt_releases = 0;
    memset(domt_carried_by, 0, sizeof domt_carried_by);
    domt_world_open(&domt_remote, 2);
    domi_remotes_init(&domt_remotes);
    domi_routers_init(&domt_remote_routers, 8, 8);
    for (uint32_t i = 0; i <= 2; i++) {
        domt_remote.managers[i]->directory.remotes = &domt_remotes;
        domt_remote.managers[i]->directory.routers = &domt_remote_routers;
    }
    for (uint32_t i = 0; i < 2; i++) {
        domi_manager *home = domt_remote.managers[i];
        domt_gateways[i] = domt_spawn(domt_outside_manager(&domt_remote), home, &gateway, NULL);
        domt_agents[i] = domt_spawn(domt_outside_manager(&domt_remote), home, &domt_agent, NULL);
    }
    domt_settle_world(&domt_remote);
    for (uint32_t i = 0; i < 2; i++) {
        domt_run_as_gateway(i, open_gateway, (void *)(uintptr_t)options);
        domt_run_as_gateway(i, begin_conversation_for_remote_asks, NULL);
    }
    domt_run_as_gateway(0, open_node_7, NULL);
}

void domt_remote_close_world(void)
{
    domt_world_end(&domt_remote);
    domi_routers_fini(&domt_remote_routers);
    domi_remotes_fini(&domt_remotes);
}

domus_remote_name domt_remote_name_of_number(uint32_t number, uint16_t home)
{
    return (domus_remote_name){.node = DOMT_NODE, .number = number, .lease = 5, .home = home};
}

bool domt_is_same_name(const domus_remote_name *one, const domus_remote_name *other)
{
    return one->node == other->node && one->number == other->number && one->lease == other->lease &&
           one->home == other->home;
}

typedef struct finding {
    domus_remote_name name;
    domus_address address;
} finding;

static int find_address_of_name(domus_stack *stack, void *finding_)
{
    finding *found = finding_;

    ck_assert_int_eq(domus_remote_address(stack, &found->name, &found->address), 0);
    return 0;
}

domus_address domt_remote_address(uint32_t number, uint16_t home)
{
    finding found = {.name = domt_remote_name_of_number(number, home)};

    domt_run_as_gateway(0, find_address_of_name, &found);
    return found.address;
}

void domt_run_as_gateway(uint32_t home, int (*function)(domus_stack *, void *), void *context)
{
    domt_run_as_actor(&domt_remote, domt_gateways[home], function, context);
}

void domt_run_as_agent(uint32_t home, int (*function)(domus_stack *, void *), void *context)
{
    domt_run_as_actor(&domt_remote, domt_agents[home], function, context);
}
