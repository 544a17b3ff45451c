/* domus/remote.h: watches of remote actors, stops of remote actors, and the end of a gateway; and a
 * group with an outlet, whose publications go to the gateways, while publications of gateways come
 * to members. */
#include "house/directory/group.h"
#include "house/family/life.h"
#include "house/family/watch.h"
#include "tests/house/remote_world.h"
#include "tests/house/steps.h"

#include <domus/spawn.h>
#include <domus/supervise.h>

#include <string.h>

static domus_down heard[4];
static unsigned downs, rooms;
static int room_reason;

static int record_end_of_watched(domus_stack *stack, void *self, const void *payload)
{
    heard[downs++ % 4] = *(const domus_down *)payload;
    return 0;
}

static int count_room_event(domus_stack *stack, void *self, const void *payload)
{
    room_reason = ((const domus_down *)payload)->reason;
    rooms++;
    return 0;
}

static const domus_behaviour watching = {
    .name = "watching",
    .on = (const domus_on[]){{&domt_call_type, domt_on_call_run_function, 0},
                             {&domus_down_type, record_end_of_watched, 0},
                             {&domus_room_type, count_room_event, 0},
                             {0}}};

static domus_address watcher, remote;
static domus_remote_name name;
static domus_watch held;

static void open_world_with_watcher(uint32_t home)
{
    domt_remote_open_world(NULL);
    downs = rooms = 0;
    watcher =
        domt_spawn(domt_outside_manager(&domt_remote), domt_remote.managers[home], &watching, NULL);
    domt_settle_world(&domt_remote);
    name = domt_remote_name_of_number(
        3, 0); /* watches of this remote actor are told to the gateway of home 0 */
    remote = domt_remote_address(3, 0);
}

static void close_world_with_watcher(void)
{
    for (uint32_t i = 0; i < 2; i++)
        ck_assert_ptr_null(domt_gateways[i].house->attached);
    domt_remote_close_world();
}

static int watch_remote_actor(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_watch_actor(stack, remote, &held), 0);
    return 0;
}

static int watch_room_of_remote(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_watch_room(stack, remote, &held), 0);
    return 0;
}

static int try_to_unwatch(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_unwatch(stack, held), (int)(intptr_t)context);
    return 0;
}

static int report_end_as_gateway(domus_stack *stack, void *reason)
{
    ck_assert_int_eq(domus_remote_end(stack, &name, (int)(intptr_t)reason), 0);
    return 0;
}

static int report_down_as_gateway(domus_stack *stack, void *reason)
{
    ck_assert_int_eq(domus_remote_down(stack, &name, (int)(intptr_t)reason), 0);
    return 0;
}

static int report_room_as_gateway(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_remote_room(stack, &name), 0);
    return 0;
}

static int try_reports_by_other_gateway(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_remote_end(stack, &name, 0), -EXDEV);
    ck_assert_int_eq(domus_remote_down(stack, &name, 0), -EXDEV);
    ck_assert_int_eq(domus_remote_room(stack, &name), -EXDEV);
    return 0;
}

DOMT_TEST(the_end_of_a_remote_actor_is_reported_to_its_watcher)
{
    for (uint32_t home = 0; home < 2; home++) {
        open_world_with_watcher(home);
        domt_run_as_actor(&domt_remote, watcher, watch_remote_actor, NULL);
        ck_assert_uint_eq(domt_carried_by[0].watches, 1);
        ck_assert_uint_eq(domt_carried_by[1].watches, 0);
        ck_assert_uint_eq(domt_carried_by[0].target.number, 3);
        ck_assert(!domt_carried_by[0].room);
        domt_run_as_gateway(1, try_reports_by_other_gateway, NULL);
        ck_assert_uint_eq(downs, 0);
        domt_run_as_gateway(0, report_end_as_gateway, (void *)(intptr_t)-EIO);
        ck_assert_uint_eq(downs, 1);
        ck_assert_int_eq(heard[0].reason, -EIO);
        ck_assert(domus_address_equals(heard[0].who, remote));
        /* the remote actor has ended, so this watch is told at once */
        domt_run_as_actor(&domt_remote, watcher, watch_remote_actor, NULL);
        ck_assert_uint_eq(downs, 2);
        ck_assert_int_eq(heard[1].reason, -ESTALE);
        ck_assert_uint_eq(domt_carried_by[0].watches, 1);
        close_world_with_watcher();
    }
}

DOMT_TEST(a_node_that_is_down_leaves_its_addresses)
{
    open_world_with_watcher(1);
    domt_run_as_actor(&domt_remote, watcher, watch_remote_actor, NULL);
    domt_run_as_gateway(0, report_down_as_gateway, (void *)(intptr_t)-EHOSTDOWN);
    ck_assert_uint_eq(downs, 1);
    ck_assert_int_eq(heard[0].reason, -EHOSTDOWN);
    domt_run_as_gateway(0, report_down_as_gateway, (void *)(intptr_t)-EHOSTDOWN);
    ck_assert_uint_eq(downs, 1);
    domt_run_as_actor(&domt_remote, watcher, watch_remote_actor, NULL);
    ck_assert_uint_eq(domt_carried_by[0].watches, 2);
    ck_assert_uint_eq(downs, 1);
    domt_run_as_actor(&domt_remote, watcher, try_to_unwatch, NULL);
    close_world_with_watcher();
}

DOMT_TEST(a_watch_that_is_taken_back_is_not_told)
{
    open_world_with_watcher(1);
    domt_run_as_actor(&domt_remote, watcher, watch_remote_actor, NULL);
    domt_run_as_actor(&domt_remote, watcher, try_to_unwatch, NULL);
    domt_run_as_actor(&domt_remote, watcher, try_to_unwatch, (void *)(intptr_t)-ENOENT);
    ck_assert_ptr_null(remote.house->attached);
    domt_run_as_gateway(0, report_end_as_gateway, NULL);
    ck_assert_uint_eq(downs, 0);
    close_world_with_watcher();
}

DOMT_TEST(room_of_a_remote_actor_is_told_by_its_gateway)
{
    open_world_with_watcher(1);
    domt_run_as_actor(&domt_remote, watcher, watch_room_of_remote, NULL);
    ck_assert(domt_carried_by[0].room);
    ck_assert_uint_eq(rooms, 0);
    domt_run_as_gateway(0, report_room_as_gateway, NULL);
    domt_run_as_gateway(0, report_room_as_gateway, NULL);
    ck_assert_uint_eq(rooms, 1);
    close_world_with_watcher();
}

DOMT_TEST(watcher_of_room_learns_whether_the_actor_or_its_node_is_gone)
{
    open_world_with_watcher(1);
    domt_run_as_actor(&domt_remote, watcher, watch_room_of_remote, NULL);
    domt_run_as_gateway(0, report_down_as_gateway, (void *)(intptr_t)-EHOSTDOWN);
    ck_assert_uint_eq(rooms, 1);
    ck_assert_int_eq(room_reason, -EHOSTDOWN);
    domt_run_as_actor(&domt_remote, watcher, watch_room_of_remote, NULL);
    domt_run_as_gateway(0, report_end_as_gateway, (void *)(intptr_t)-EIO);
    ck_assert_uint_eq(rooms, 2);
    ck_assert_int_eq(room_reason, -ESTALE);
    close_world_with_watcher();
}

static int stop_itself(domus_stack *stack, void *context)
{
    return domus_stop(stack, domus_self(stack));
}

DOMT_TEST(a_watcher_that_ends_leaves_nothing)
{
    open_world_with_watcher(1);
    domt_run_as_actor(&domt_remote, watcher, watch_remote_actor, NULL);
    domt_run_as_actor(&domt_remote, watcher, stop_itself, NULL);
    ck_assert_ptr_null(remote.house->attached);
    close_world_with_watcher();
}

DOMT_TEST(the_end_of_a_gateway_tells_its_watches)
{
    open_world_with_watcher(1);
    domt_run_as_actor(&domt_remote, watcher, watch_remote_actor, NULL);
    domt_run_as_gateway(0, stop_itself, NULL);
    ck_assert_uint_eq(downs, 1);
    ck_assert_int_eq(heard[0].reason, -EHOSTDOWN);
    ck_assert_ptr_null(remote.house->attached);
    domt_run_as_actor(&domt_remote, watcher, watch_remote_actor, NULL);
    ck_assert_uint_eq(downs, 2); /* no gateway is left that could tell of the end */
    /* Messages of actors on that home go by the other gateway. */
    ck_assert_int_eq(domt_send_notice(domt_remote.managers[0], remote, &domt_plain, "a notice"), 0);
    domt_settle_world(&domt_remote);
    ck_assert_uint_eq(domt_carried_by[1].notices, 1);
    domt_run_as_gateway(1, stop_itself, NULL);
    ck_assert_int_eq(domt_send_notice(domt_remote.managers[0], remote, &domt_plain, "a notice"),
                     -EHOSTDOWN);
    domt_remote_close_world();
}

static int try_to_link_to_remote(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_link_actor(stack, remote, NULL), -EOPNOTSUPP);
    return 0;
}

static int try_to_stop_remote(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_stop(stack, remote), (int)(intptr_t)context);
    return 0;
}

static int stop_remote_after_mail(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_stop_after_mail(stack, remote), 0);
    return 0;
}

DOMT_TEST(stops_are_told_to_a_gateway)
{
    open_world_with_watcher(1);
    domt_run_as_actor(&domt_remote, watcher, try_to_link_to_remote, NULL);
    domt_run_as_actor(&domt_remote, watcher, try_to_stop_remote, NULL);
    ck_assert_uint_eq(domt_carried_by[0].stops, 1);
    ck_assert_uint_eq(domt_carried_by[0].target.number, 3);
    domt_run_as_actor(&domt_remote, watcher, stop_remote_after_mail, NULL);
    /* the gateway gets this stop behind what the actor has sent */
    ck_assert_uint_eq(domt_carried_by[1].last_stops, 1);
    ck_assert_uint_eq(domt_carried_by[1].target.number, 3);
    domt_run_as_gateway(0, report_end_as_gateway, NULL);
    domt_run_as_actor(&domt_remote, watcher, try_to_stop_remote, (void *)(intptr_t)-ESTALE);
    close_world_with_watcher();
}

/* --- groups ----------------------------------------------------------------------------------- */

#define OUTLET_NUMBER 9u
#define OUTLET_HOME   1u /* messages to the outlet go by the gateway of home 1 */

static domi_groups groups;
static domus_group group;
static domus_address outlet;

typedef struct had {
    unsigned count;
    uint64_t value;
    domus_address from;
} had;

static had members_had[2]; /* publications that members have got, by home */
static domus_address forward_to;

static int record_word_and_forward(domus_stack *stack, void *self, const void *payload)
{
    had *now = &members_had[domus_self(stack).house->home->index];

    now->count++;
    memcpy(&now->value, payload, sizeof now->value);
    now->from = domus_sender(stack);
    return forward_to.house != NULL ? domus_forward(stack, forward_to) : 0;
}

static int join_group_of_test(domus_stack *stack, void *self)
{
    return domus_group_join(stack, group);
}

static const domus_behaviour member = {
    .name = "member",
    .on_mount = join_group_of_test,
    .on = (const domus_on[]){{&domt_word, record_word_and_forward, 0}, {0}}};

static int open_group(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_group_open(stack, "news", &group), 0);
    return 0;
}

static int try_to_join_outlet(domus_stack *stack, void *expected)
{
    ck_assert_int_eq(domus_remote_join(stack, group, outlet), (int)(intptr_t)expected);
    return 0;
}

static void open_world(void)
{
    static const uint64_t key[2] = {1, 2};

    memset(members_had, 0, sizeof members_had);
    forward_to = (domus_address){NULL, 0};
    domt_remote_open_world(NULL);
    ck_assert_int_eq(domi_groups_init(&groups, 4, 100, 2, 0, key), 0);
    for (uint32_t i = 0; i <= 2; i++)
        domt_remote.managers[i]->directory.groups = &groups;
    domt_run_as_agent(0, open_group, NULL);
    outlet = domt_remote_address(OUTLET_NUMBER, OUTLET_HOME);
}

static void close_world(void)
{
    domt_remote_close_world();
    domi_groups_fini(&groups);
}

static domus_address spawn_member(uint32_t home)
{
    domus_address address =
        domt_spawn(domt_outside_manager(&domt_remote), domt_remote.managers[home], &member, NULL);

    domt_settle_world(&domt_remote);
    return address;
}

static int publish_word(domus_stack *stack, void *value)
{
    ck_assert_int_eq(domus_publish(stack, group, &domt_word, value), 0);
    return 0;
}

DOMT_TEST(publications_come_to_the_gateway_of_the_publishers_home)
{
    open_world();
    const domus_remote_name there = domt_remote_name_of_number(OUTLET_NUMBER, OUTLET_HOME);
    (void)spawn_member(1);
    domt_run_as_agent(0, try_to_join_outlet, 0);
    ck_assert_uint_eq(domus_group_members(group), 1);
    for (uint64_t home = 0; home < 2; home++) {
        uint64_t value = 40 + home;
        domt_run_as_agent((uint32_t)home, publish_word, &value);
        const domt_carried *carried = &domt_carried_by[home];
        ck_assert_uint_eq(carried->notices, 1);
        ck_assert_int_eq(carried->target_error, 0);
        ck_assert(domt_is_same_name(&carried->target, &there));
        ck_assert(domus_address_equals(carried->sender, domt_agents[home]));
        ck_assert_uint_eq(carried->value, value);
        ck_assert_uint_eq(members_had[1].count, home + 1);
    }
    ck_assert_uint_eq(domt_releases, 2);
    close_world();
}

typedef struct publishing {
    domus_address from;
    domus_group group;
    uint64_t value;
    int expected;
} publishing;

static int publish_as_remote_actor(domus_stack *stack, void *publishing_)
{
    publishing *now = publishing_;

    ck_assert_int_eq(domus_remote_publish(stack, now->from, now->group, &domt_word, &now->value),
                     now->expected);
    return 0;
}

DOMT_TEST(publications_from_afar_come_to_members_and_not_back)
{
    open_world();
    for (uint32_t home = 0; home < 2; home++)
        (void)spawn_member(home);
    domt_run_as_agent(0, try_to_join_outlet, 0);
    publishing now = {.from = domt_remote_address(3, 0), .group = group, .value = 77};
    domt_run_as_gateway(1, publish_as_remote_actor, &now);
    now.from = (domus_address){NULL, 0};
    domt_run_as_gateway(0, publish_as_remote_actor, &now);
    for (uint32_t home = 0; home < 2; home++) {
        ck_assert_uint_eq(members_had[home].count, 2);
        ck_assert_uint_eq(members_had[home].value, 77);
        ck_assert_uint_eq(domt_carried_by[home].notices, 0);
    }
    ck_assert_uint_eq(domt_releases, 2);
    close_world();
}

DOMT_TEST(a_publication_from_afar_shows_its_publisher_and_can_be_forwarded_afar)
{
    open_world();
    (void)spawn_member(1);
    domt_run_as_agent(0, try_to_join_outlet, 0);
    forward_to = domt_remote_address(4, 1);
    publishing now = {.from = domt_remote_address(3, 0), .group = group, .value = 78};
    domt_run_as_gateway(1, publish_as_remote_actor, &now);
    ck_assert(domus_address_equals(members_had[1].from, now.from));
    ck_assert_uint_eq(domt_carried_by[0].notices + domt_carried_by[1].notices, 1);
    ck_assert_uint_eq(domt_releases, 1);
    close_world();
}

DOMT_TEST(the_gateway_of_the_outlet_hears_of_first_members)
{
    open_world();
    const domus_remote_name there = domt_remote_name_of_number(OUTLET_NUMBER, OUTLET_HOME);
    domt_run_as_agent(0, try_to_join_outlet, 0);
    ck_assert_uint_eq(domt_carried_by[1].joins, 0);
    for (unsigned round = 1; round <= 2; round++) {
        domus_address first = spawn_member(0);
        ck_assert_uint_eq(domt_carried_by[1].joins, round);
        ck_assert(domt_is_same_name(&domt_carried_by[1].target, &there));
        domus_address second = spawn_member(1);
        ck_assert_uint_eq(domt_carried_by[1].joins, round);
        ck_assert_int_eq(domi_house_ask_to_stop(domt_outside_manager(&domt_remote), first), 0);
        domt_stop_actor_and_settle(&domt_remote, domt_outside_manager(&domt_remote), second);
        ck_assert_uint_eq(domus_group_members(group), 0);
    }
    ck_assert_uint_eq(domt_carried_by[0].joins, 0);
    close_world();
}

DOMT_TEST(a_group_that_has_members_tells_so_when_it_gets_its_outlet)
{
    open_world();
    (void)spawn_member(0);
    domt_run_as_agent(0, try_to_join_outlet, 0);
    ck_assert_uint_eq(domt_carried_by[1].joins, 1);
    close_world();
}

DOMT_TEST(wrong_calls_for_outlets_and_publications_are_refused)
{
    open_world();
    domt_run_as_agent(1, try_to_join_outlet, 0);
    domt_run_as_agent(0, try_to_join_outlet, (void *)(intptr_t)-EALREADY);
    outlet = domt_agents[0];
    domt_run_as_agent(0, try_to_join_outlet, (void *)(intptr_t)-EINVAL);
    outlet = domt_remote_address(OUTLET_NUMBER, OUTLET_HOME);
    publishing now = {.from = domt_agents[0], .group = group, .expected = -EINVAL};
    domt_run_as_gateway(0, publish_as_remote_actor, &now);
    now = (publishing){.group = group, .expected = -EPERM};
    domt_run_as_agent(0, publish_as_remote_actor, &now);
    now = (publishing){.expected = -EINVAL};
    domt_run_as_gateway(0, publish_as_remote_actor, &now);
    ck_assert_uint_eq(domt_releases, 3); /* refused publications release their payloads, too */
    group = (domus_group){NULL};
    domt_run_as_agent(0, try_to_join_outlet, (void *)(intptr_t)-EINVAL);
    close_world();
}

DOMT_SUITE(60)
