/* Groups at their limits: full members and threads, wrong names, publications under way at the end
 * of the system, and no memory. */
#include "tests/house/members.h"

#include "base/memory.h"

#include <stdio.h>

/* --- limits ----------------------------------------------------------------------------------- */

DOMT_TEST(a_full_member_is_counted_and_the_others_get_it)
{
    open_world_of_groups(MEMBERS_MAX);
    world.config.scheduler.mailbox_max = 16;
    start_world_and_open_group();
    for (uint32_t i = 0; i < 4; i++)
        members[i] = domt_spawn(domt_outside_manager(&world), world.managers[0], &member, NULL);
    domt_settle_world(&world);
    let_agent_publish(0, 1);
    (void)domt_take_arrivals_and_timers(world.managers[0]);
    /* runs the agent, which publishes; the shard runs next */
    (void)domt_run_state_queue(world.managers[0]);
    for (uint32_t i = 0; i < 16; i++)
        ck_assert_int_eq(domt_send_notice(world.managers[0], members[0], &fail_type, NULL), 0);
    domt_settle_world(&world);
    ck_assert_uint_eq(handled, 3);
    ck_assert_uint_eq(releases, 1);
    ck_assert_uint_eq(DOMT_SUM(&world, refusals), 1);
    close_world_of_groups();
}

DOMT_TEST(publication_is_refused_for_a_full_thread_and_reaches_others)
{
    open_world_of_groups(MEMBERS_MAX);
    world.config.scheduler.mailbox_max = 16;
    start_world_and_open_group();
    for (uint32_t i = 0; i < 2; i++)
        members[i] = domt_spawn(domt_outside_manager(&world), world.managers[i], &member, NULL);
    domt_settle_world(&world);
    for (uint32_t i = 0; i < 16; i++) {
        let_agent_publish(0, 1);
        /* only home 0 works, so publications wait for home 1 */
        (void)domt_iterate_home(world.managers[0]);
        ck_assert_int_eq(published, 0);
    }
    let_agent_publish(0, 1);
    (void)domt_iterate_home(world.managers[0]);
    ck_assert_int_eq(published, -ENOBUFS);
    domt_settle_world(&world);
    ck_assert_uint_eq(handled, 16 + 17);
    ck_assert_uint_eq(releases, 17);
    close_world_of_groups();
}

static int results[16];

static int open_groups_up_to_limit(domus_stack *stack, void *context)
{
    static const char *const wrong[] = {
        "", "a b", "a\n", "1234567890123456789012345678901234567890123456789012345678901234"};
    domus_group other;
    char name[16];

    for (uint32_t i = 0; i < 9; i++) {
        snprintf(name, sizeof name, "group %u", i);
        name[5] = '-';
        results[i] = domus_group_open(stack, name, &other);
    }
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_int_eq(domus_group_open(stack, wrong[i], &other), -EINVAL);
    ck_assert_int_eq(domus_group_open(stack, NULL, &other), -EINVAL);
    ck_assert_int_eq(domus_group_open(stack, "news", &other), 0);
    ck_assert_ptr_eq(other.group, group.group);
    return 0;
}

DOMT_TEST(groups_max_refuses_new_names_only)
{
    open_group_with_members(0);
    domt_run_as_actor(&world, agents[1], open_groups_up_to_limit, NULL);
    for (uint32_t i = 0; i < 9; i++)
        ck_assert_int_eq(results[i], i < GROUPS_MAX - 1 ? 0 : -ENOSPC);
    close_world_of_groups();
}

DOMT_TEST(members_max_refuses_and_recovers)
{
    open_world_of_groups(3);
    start_world_and_open_group();
    for (uint32_t i = 0; i < 3; i++)
        members[i] = domt_spawn(domt_outside_manager(&world), world.managers[i % 2], &member, NULL);
    domt_settle_world(&world);
    int result = 0;
    domt_run_as_actor(&world, agents[0], try_to_join, &result);
    ck_assert_int_eq(result, -ENOSPC);
    stop_members(1, 1);
    domt_settle_world(&world);
    domt_run_as_actor(&world, agents[0], try_to_join, &result);
    ck_assert_int_eq(result, 0);
    ck_assert_uint_eq(domus_group_members(group), 3);
    close_world_of_groups();
}

static int try_wrong_calls_of_groups(domus_stack *stack, void *context)
{
    static const domus_type huge = {
        .name = "huge", .size = 65536, .release = count_payload_release};
    const domus_group none = {NULL};

    ck_assert_int_eq(domus_group_join(stack, none), -EINVAL);
    ck_assert_int_eq(domus_group_leave(stack, none), -EINVAL);
    ck_assert_int_eq(domus_publish(stack, none, &news, "12345678"), -EINVAL);
    ck_assert_int_eq(domus_publish(stack, group, &huge, NULL), -EMSGSIZE);
    ck_assert_uint_eq(domus_group_members(none), 0);
    ck_assert_uint_eq(releases, 2);
    return 0;
}

DOMT_TEST(a_publication_that_fails_is_dropped_too)
{
    open_group_with_members(1);
    domt_run_as_actor(&world, agents[0], try_wrong_calls_of_groups, NULL);
    close_world_of_groups();
}

/* --- the end ---------------------------------------------------------------------------------- */

DOMT_TEST(publication_under_way_at_the_end_is_dropped_once)
{
    for (uint32_t turns = 0; turns < 6; turns++) {
        open_group_with_members(1000);
        let_agent_publish(0, 2);
        let_agent_publish(1, 1);
        for (uint32_t i = 0; i < turns; i++) {
            (void)domt_take_arrivals_and_timers(world.managers[i % 2]);
            (void)domt_run_state_queue(world.managers[i % 2]);
        }
        domt_world_end(&world);
        ck_assert_uint_eq(releases, turns == 0 ? 0 : turns == 1 ? 2 : 3);
        domi_groups_fini(&groups);
    }
}

DOMT_TEST(a_shard_that_ends_before_its_mount_lets_its_members_go)
{
    open_group_with_members(0);
    domt_send_function_to_call(world.managers[0], agents[0], join_and_publish, NULL);
    (void)domt_run_state_queue(world.managers[0]);
    close_world_of_groups();
    ck_assert_uint_eq(releases, 1);
}

static int use_group_with_failing_allocation(domus_stack *stack, void *context)
{
    domus_group other;

    domi_memory_fail_allocation_after((intptr_t)context, 1);
    int error = domus_group_open(stack, "other", &other);
    if (error == 0)
        error = domus_group_join(stack, other);
    uint64_t number = ++next_number;
    published = domus_publish(stack, error == 0 ? other : group, &news, &number);
    return 0;
}

DOMT_TEST(publications_without_memory_are_dropped_and_leak_nothing)
{
    for (intptr_t n = 0; n < 12; n++) {
        open_group_with_members(200);
        domt_run_as_actor(&world, agents[0], use_group_with_failing_allocation, (void *)n);
        domi_memory_fail_allocation_after(-1, 0);
        ck_assert_uint_eq(releases, 1);
        domt_settle_world(&world);
        close_world_of_groups();
    }
}

DOMT_SUITE(20)
