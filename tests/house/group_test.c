/* house/directory/group.c: each member gets a publication once and in order, and its payload is
 * released once. */
#include "tests/house/members.h"
#include "tests/house/steps.h"

#include "house/dispatch/dispatch.h"
#include "house/dispatch/settle.h"

/* --- delivery --------------------------------------------------------------------------------- */

DOMT_TEST(ten_thousand_members_get_each_publication_once_and_in_order)
{
    open_group_with_members(10000);
    uint64_t before = domt_count_all_objects_in_use(&world);
    let_agent_publish(0, 10);
    let_agent_publish(1, 10);
    domt_settle_world(&world);
    ck_assert_uint_eq(handled, 20 * 10000);
    ck_assert_uint_eq(releases, 20);
    ck_assert_int_eq(published, 0);
    ck_assert_uint_eq(domt_count_all_objects_in_use(&world), before);
    const struct member *last = members[9999].house->self;
    ck_assert_ptr_eq(last->from.house, agents[1].house);
    ck_assert_uint_eq(DOMT_SUM(&world, refusals), 0);
    close_world_of_groups();
    ck_assert_uint_eq(releases, 20);
}

static const void *seen[4];
static uint32_t seen_count;

static int check_and_record_album_payload(domus_stack *stack, void *self, const void *payload)
{
    seen[seen_count++ % 4] = payload;
    ck_assert_int_eq(((const unsigned char *)payload)[39999], 7);
    return 0;
}

static const domus_type album = {.name = "album", .size = 40000, .release = count_payload_release};
static const domus_behaviour viewer = {
    .name = "viewer",
    .on = (const domus_on[]){{&album, check_and_record_album_payload, 0}, {0}},
    .on_mount = join_group};

static int publish_album(domus_stack *stack, void *context)
{
    static unsigned char bytes[40000];

    bytes[39999] = 7;
    return domus_publish(stack, group, &album, bytes);
}

DOMT_TEST(all_members_look_at_one_payload)
{
    open_group_with_members(0);
    for (uint32_t i = 0; i < 4; i++)
        domt_spawn(domt_outside_manager(&world), world.managers[i % 2], &viewer, NULL);
    domt_settle_world(&world);
    domt_run_as_actor(&world, agents[0], publish_album, NULL);
    ck_assert_uint_eq(seen_count, 4);
    for (uint32_t i = 1; i < 4; i++)
        ck_assert_ptr_eq(seen[i], seen[0]);
    ck_assert_uint_eq(releases, 1);
    close_world_of_groups();
}

DOMT_TEST(without_members_a_publication_is_dropped_at_once)
{
    open_group_with_members(0);
    let_agent_publish(0, 3);
    (void)domt_iterate_home(world.managers[0]);
    ck_assert_uint_eq(releases, 3);
    ck_assert_int_eq(published, 0);
    close_world_of_groups();
}

DOMT_TEST(shard_delivers_to_a_large_group_in_parts)
{
    open_group_with_members(10000);
    let_agent_publish(0, 1);
    (void)domt_iterate_home(world.managers[0]);    /* runs the agent, which publishes */
    (void)domt_run_state_queue(world.managers[0]); /* runs the shard, which delivers a part */
    uint32_t ready = world.managers[0]->schedule.ready[DOMUS_STATE].count;
    ck_assert_uint_ge(ready, 64);
    ck_assert_uint_le(ready, 64 * 64 + 1);
    domt_settle_world(&world);
    ck_assert_uint_eq(handled, 10000);
    close_world_of_groups();
}

/* --- joining and leaving ---------------------------------------------------------------------- */

static uint32_t agent_got;

static int count_news_of_agent(domus_stack *stack, void *self, const void *payload)
{
    agent_got++;
    return 0;
}

static const domus_behaviour reader = {
    .name = "reader",
    .on = (const domus_on[]){
        {&news, count_news_of_agent, 0}, {&domt_call_type, domt_on_call_run_function, 0}, {0}}};

DOMT_TEST(member_gets_its_own_publications)
{
    open_group_with_members(2);
    agent_got = 0;
    domus_address one = domt_spawn(domt_outside_manager(&world), world.managers[1], &reader, NULL);
    domt_run_as_actor(&world, one, join_and_publish, NULL);
    ck_assert_uint_eq(agent_got, 1);
    /* an actor that joins twice is one member and gets a publication once */
    domt_run_as_actor(&world, one, join_and_publish, NULL);
    ck_assert_uint_eq(agent_got, 2);
    ck_assert_uint_eq(domus_group_members(group), 3);
    close_world_of_groups();
}

/* The member runs on another thread than its home, as a house does that a thief has taken. */
DOMT_TEST(a_member_that_is_lent_joins_and_leaves_in_order)
{
    open_group_with_members(0);
    agent_got = 0;
    domi_manager *home = world.managers[0];
    domus_address one = domt_spawn(domt_outside_manager(&world), home, &reader, NULL);
    domt_settle_world(&world);
    domt_send_function_to_call(home, one, join_and_publish, NULL);
    domi_house *house = domi_queue_take_house(&home->schedule.ready[DOMUS_STATE]);
    domi_house_settle_after_run(home, house, domi_house_run_lent(world.managers[1], house));
    ck_assert_uint_eq(domus_group_members(group), 1);
    domt_settle_world(&world);
    ck_assert_uint_eq(agent_got, 1);
    ck_assert_uint_eq(releases, 1);
    close_world_of_groups();
}

DOMT_TEST(member_that_has_left_gets_no_more_publications)
{
    open_group_with_members(4);
    ck_assert_int_eq(domt_send_notice(domt_outside_manager(&world), members[0], &leave_type, NULL),
                     0);
    domt_settle_world(&world);
    ck_assert_uint_eq(domus_group_members(group), 3);
    ck_assert_int_eq(domt_send_notice(domt_outside_manager(&world), members[0], &leave_type, NULL),
                     0);
    let_agent_publish(1, 5);
    domt_settle_world(&world);
    ck_assert_uint_eq(handled, 15);
    close_world_of_groups();
}

DOMT_TEST(member_that_ends_leaves_also_during_a_publication)
{
    open_group_with_members(1000);
    uint64_t before = domt_count_all_objects_in_use(&world);
    for (uint32_t turn = 0; turn < 8; turn++) {
        let_agent_publish(turn % 2, 3);
        stop_members(turn * 50, 25);
        (void)domt_take_arrivals_and_timers(world.managers[turn % 2]);
        (void)domt_run_state_queue(world.managers[turn % 2]); /* the shards have begun to deliver */
        stop_members(turn * 50 + 25, 25);
        (void)domt_iterate_home(world.managers[1 - turn % 2]);
    }
    domt_settle_world(&world);
    ck_assert_uint_eq(domus_group_members(group), 600);
    ck_assert_uint_eq(releases, 24);
    /* the memberships of the ended members are given back */
    ck_assert_uint_eq(domt_count_all_objects_in_use(&world), before - 400);
    uint64_t so_far = handled;
    let_agent_publish(0, 1);
    domt_settle_world(&world);
    ck_assert_uint_eq(handled - so_far, 600);
    close_world_of_groups();
}

/* Run each ready house but that of the shard, which has begun to deliver. */
static void run_houses_but_shard(domi_manager *home)
{
    domi_queue *ready = &home->schedule.ready[DOMUS_STATE];
    domi_house *shard = NULL;

    for (domi_house *house; (house = domi_queue_take_house(ready)) != NULL;) {
        if (house->behaviour == &domi_shard_behaviour)
            shard = house;
        else
            (void)domi_house_run_and_settle(home, house);
    }
    ck_assert_ptr_nonnull(shard);
    domi_queue_put_house(ready, shard);
}

/* Let a shard deliver a publication to only a part of its members. Returns how many members have
 * got it. */
static uint64_t deliver_part_of_publication(domi_manager *home)
{
    let_agent_publish(home->index, 1);
    (void)domt_take_arrivals_and_timers(home);
    (void)domt_run_state_queue(home); /* runs the agent, which publishes */
    (void)domi_house_run_and_settle(home,
                                    domi_queue_take_house(&home->schedule.ready[DOMUS_STATE]));
    run_houses_but_shard(home);
    return handled;
}

DOMT_TEST(next_member_of_a_publication_may_end)
{
    open_group_with_members(10000); /* members with even numbers are on home 0 */
    uint64_t so_far = deliver_part_of_publication(world.managers[0]);
    ck_assert_uint_lt(so_far, 4800);
    stop_members(2 * (uint32_t)so_far, 200);
    (void)domt_take_arrivals_and_timers(world.managers[0]);
    run_houses_but_shard(world.managers[0]);
    domt_settle_world(&world);
    ck_assert_uint_eq(handled, 10000 - 200);
    ck_assert_uint_eq(releases, 1);
    close_world_of_groups();
}

DOMT_TEST(member_behind_one_that_ends_is_not_skipped)
{
    open_group_with_members(10000);
    uint64_t so_far = deliver_part_of_publication(world.managers[0]);
    stop_members(2 * (uint32_t)so_far, 1);
    (void)domt_take_arrivals_and_timers(world.managers[0]);
    run_houses_but_shard(world.managers[0]);
    domt_settle_world(&world);
    ck_assert_uint_eq(handled, 10000 - 1);
    ck_assert_uint_eq(releases, 1);
    close_world_of_groups();
}

DOMT_TEST(a_shard_that_is_stopped_delivers_what_it_has_begun)
{
    open_group_with_members(10000);
    ck_assert_uint_lt(deliver_part_of_publication(world.managers[0]), 5000);
    domi_house *shard = atomic_load(&group.group->slots[0].shard);
    domt_stop_actor_and_settle(&world, world.managers[0], domi_house_get_address(shard));
    ck_assert_uint_eq(handled, 10000);
    ck_assert_uint_eq(releases, 1);
    ck_assert_uint_eq(domus_group_members(group), 5000); /* the members of home 1 are left */
    let_agent_publish(1, 1);
    domt_settle_world(&world);
    ck_assert_int_eq(published, 0);
    ck_assert_uint_eq(handled, 15000);
    domt_run_as_actor(&world, agents[0], try_to_join, &published);
    ck_assert_int_eq(published, -ESHUTDOWN);
    close_world_of_groups();
}

static int spawn_member(domus_stack *stack, void *context)
{
    return domus_spawn(stack, &member, NULL, &members[0]);
}

static const domus_supervision again = {.otherwise = DOMUS_RESTART};
static const domus_behaviour parent = {
    .name = "parent",
    .on = (const domus_on[]){{&domt_call_type, domt_on_call_run_function, 0}, {0}},
    .supervision = &again};

DOMT_TEST(a_restart_changes_nothing_about_membership)
{
    open_group_with_members(0);
    domus_address one = domt_spawn(domt_outside_manager(&world), world.managers[0], &parent, NULL);
    domt_run_as_actor(&world, one, spawn_member, NULL);
    ck_assert_int_eq(domt_send_notice(domt_outside_manager(&world), members[0], &fail_type, NULL),
                     0);
    domt_settle_world(&world);
    ck_assert_uint_eq(DOMT_SUM(&world, restarts), 1);
    let_agent_publish(1, 1);
    domt_settle_world(&world);
    ck_assert_uint_eq(handled, 1);
    ck_assert_uint_eq(domus_group_members(group), 1);
    close_world_of_groups();
}

/* --- what a member may do with it ------------------------------------------------------------- */

static domus_message *kept;
static domus_address heir;

static int keep_first_news_forward_second(domus_stack *stack, void *self, const void *payload)
{
    if (kept == NULL) {
        ck_assert_int_eq(domus_message_take(stack, &kept), 0);
        ck_assert_ptr_eq(domus_message_payload(kept), payload);
        ck_assert_ptr_eq(domus_message_type(kept), &news);
        return 0;
    }
    return domus_forward(stack, heir);
}

static int send_kept_to_heir(domus_stack *stack, void *context)
{
    return domus_message_send(stack, heir, kept);
}

static const domus_behaviour keeper = {
    .name = "keeper",
    .on = (const domus_on[]){{&news, keep_first_news_forward_second, 0},
                             {&domt_call_type, domt_on_call_run_function, 0},
                             {0}},
    .on_mount = join_group};

DOMT_TEST(a_publication_can_be_kept_and_passed_on)
{
    open_group_with_members(3);
    kept = NULL;
    agent_got = 0;
    uint64_t before = domt_count_all_objects_in_use(&world);
    heir = domt_spawn(domt_outside_manager(&world), world.managers[1], &reader, NULL);
    domus_address one = domt_spawn(domt_outside_manager(&world), world.managers[0], &keeper, NULL);
    domt_settle_world(&world);
    let_agent_publish(0, 1);
    domt_settle_world(&world);
    ck_assert_uint_eq(handled, 3);
    ck_assert_uint_eq(releases, 0); /* the notice is not released, because an actor has kept it */
    let_agent_publish(0, 1);
    domt_settle_world(&world);
    /* the publication was forwarded to the agent on the other thread */
    ck_assert_uint_eq(agent_got, 1);
    ck_assert_uint_eq(releases, 1);
    domt_run_as_actor(&world, one, send_kept_to_heir, NULL);
    ck_assert_uint_eq(agent_got, 2);
    ck_assert_uint_eq(releases, 2);
    /* the membership of the actor that has kept the notice is left */
    ck_assert_uint_eq(domt_count_all_objects_in_use(&world), before + 1);
    close_world_of_groups();
}

static int check_received_news_is_next(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_ptr_eq(answer->type, &news);
    ck_assert_uint_eq(*(const uint64_t *)answer->payload, next_number);
    agent_got++;
    return 0;
}

static int join_and_receive_news(domus_stack *stack, void *context)
{
    static const domus_type *const types[] = {&news, NULL};
    static const domus_pattern pattern = {.types = types};

    int error = domus_group_join(stack, group);
    return error != 0 ? error : domus_receive(stack, &pattern, check_received_news_is_next);
}

DOMT_TEST(a_receive_takes_a_publication)
{
    open_group_with_members(0);
    agent_got = 0;
    domt_run_as_actor(&world, agents[1], join_and_receive_news, NULL);
    let_agent_publish(0, 1);
    domt_settle_world(&world);
    ck_assert_uint_eq(agent_got, 1);
    ck_assert_uint_eq(releases, 1);
    close_world_of_groups();
}

DOMT_SUITE(20)
