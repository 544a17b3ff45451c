/* Processes that share with others: payloads of publications, and rules that their
 * spawner gets late. */
#include "house/directory/group.h"
#include "house/dispatch/dispatch.h"
#include "tests/house/processing.h"

#include <domus/group.h>
#include <domus/receive.h>
#include <domus/supervise.h>

static domi_groups groups;
static domus_group group;

static int join_group(domus_stack *stack)
{
    ck_assert_int_eq(domus_group_open(stack, "news", &group), 0);
    ck_assert_int_eq(domus_link_actor(stack, other, NULL), 0);
    return domus_group_join(stack, group);
}

static int publish_owned(domus_stack *stack, void *unused)
{
    return domus_publish(stack, group, &owned_type, &(uint64_t){1});
}

DOMT_TEST(publication_that_no_step_has_seen_is_dropped_once)
{
    static const uint64_t key[2] = {1, 2};

    releases = 0;
    init_does = join_group;
    open_world(&spawner);
    ck_assert_int_eq(domi_groups_init(&groups, 8, 8, 2, 0, key), 0);
    for (uint32_t i = 0; i < 3; i++)
        world.managers[i]->directory.groups = &groups;
    domt_do(&world, agent, spawn_in, "count");
    ck_assert_uint_eq(steps, 1);
    domt_send(domt_outside(&world), agent, publish_owned, NULL);
    domi_manager *home = world.managers[0];
    (void)domt_events(home);
    for (uint32_t i = 0; i < 2; i++) /* the agent, the shard: the process has it in its mailbox */
        (void)domi_house_run(home, domi_queue_take(&home->schedule.ready[DOMUS_STATE]));
    ck_assert_int_eq(domi_house_stop(home, other), 0);
    for (uint32_t i = 0; i < 3; i++)
        (void)domt_iterate(world.managers[1]);
    domt_settle(&world); /* it gathers, and on the same turn hears that the other has ended */
    ck_assert_uint_eq(closes, 1);
    ck_assert_uint_eq(steps, 1);
    ck_assert_uint_eq(releases, 1);
    close_world();
    domi_groups_fini(&groups);
}

static int become_supervisor(domus_stack *stack, void *unused)
{
    return domus_become(stack, &supervisor);
}

static int fail_step(domus_stack *stack, const domus_process_event *events, uint32_t count,
                     domus_process_output *out)
{
    return count != 0 ? -EIO : 0;
}

DOMT_TEST(process_whose_spawner_got_rules_later_may_be_restarted)
{
    step_does = fail_step;
    open_process();
    domt_do(&world, agent, become_supervisor, NULL);
    send(&number_type, 1);
    domt_settle(&world);
    close_world();
}

DOMT_SUITE(60)
