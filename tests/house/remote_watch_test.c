/* domus/remote.h: watches of remote actors, stops of them, and the end of a gateway. */
#include "house/family/watch.h"
#include "tests/house/remote_world.h"

#include <domus/spawn.h>
#include <domus/supervise.h>

#include <string.h>

static domus_down heard[4];
static unsigned downs, rooms;
static int room_reason;

static int run_call(domus_stack *stack, void *self, const void *call_)
{
    const domt_call *call = call_;

    return call->function(stack, call->context);
}

static int hear_down(domus_stack *stack, void *self, const void *payload)
{
    heard[downs++ % 4] = *(const domus_down *)payload;
    return 0;
}

static int hear_room(domus_stack *stack, void *self, const void *payload)
{
    room_reason = ((const domus_down *)payload)->reason;
    rooms++;
    return 0;
}

static const domus_behaviour watching = {
    .name = "watching",
    .on = (const domus_on[]){{&domt_call_type, run_call, 0},
                             {&domus_down_type, hear_down, 0},
                             {&domus_room_type, hear_room, 0},
                             {NULL, NULL, 0}},
};

static domus_address watcher, remote;
static domus_remote_name name;
static domus_watch held;

static void open_watching(uint32_t home)
{
    domt_remote_open(NULL);
    downs = rooms = 0;
    watcher = domt_spawn(domt_outside(&domt_remote), domt_remote.managers[home], &watching, NULL);
    domt_settle(&domt_remote);
    name = domt_name(3, 0); /* its watches come to the gateway of home 0 */
    remote = domt_far(3, 0);
}

static void close_watching(void)
{
    for (uint32_t i = 0; i < 2; i++)
        ck_assert_ptr_null(domt_gateways[i].house->attached);
    domt_remote_close();
}

static int watch(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_watch_actor(stack, remote, &held), 0);
    return 0;
}

static int watch_room(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_watch_room(stack, remote, &held), 0);
    return 0;
}

static int unwatch(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_unwatch(stack, held), (int)(intptr_t)context);
    return 0;
}

static int tell_end(domus_stack *stack, void *reason)
{
    ck_assert_int_eq(domus_remote_end(stack, &name, (int)(intptr_t)reason), 0);
    return 0;
}

static int tell_down(domus_stack *stack, void *reason)
{
    ck_assert_int_eq(domus_remote_down(stack, &name, (int)(intptr_t)reason), 0);
    return 0;
}

static int tell_room(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_remote_room(stack, &name), 0);
    return 0;
}

static int tell_from_other(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_remote_end(stack, &name, 0), -EXDEV);
    ck_assert_int_eq(domus_remote_down(stack, &name, 0), -EXDEV);
    ck_assert_int_eq(domus_remote_room(stack, &name), -EXDEV);
    return 0;
}

DOMT_TEST(the_end_of_a_remote_actor_is_told_to_who_watches_it)
{
    for (uint32_t home = 0; home < 2; home++) {
        open_watching(home);
        domt_do(&domt_remote, watcher, watch, NULL);
        ck_assert_uint_eq(domt_carried_by[0].watches, 1);
        ck_assert_uint_eq(domt_carried_by[1].watches, 0);
        ck_assert_uint_eq(domt_carried_by[0].target.number, 3);
        ck_assert(!domt_carried_by[0].room);
        domt_as_gateway(1, tell_from_other, NULL);
        ck_assert_uint_eq(downs, 0);
        domt_as_gateway(0, tell_end, (void *)(intptr_t)-EIO);
        ck_assert_uint_eq(downs, 1);
        ck_assert_int_eq(heard[0].reason, -EIO);
        ck_assert(domus_address_equals(heard[0].who, remote));
        domt_do(&domt_remote, watcher, watch, NULL); /* it is gone now */
        ck_assert_uint_eq(downs, 2);
        ck_assert_int_eq(heard[1].reason, -ESTALE);
        ck_assert_uint_eq(domt_carried_by[0].watches, 1);
        close_watching();
    }
}

DOMT_TEST(a_node_that_is_down_leaves_its_addresses)
{
    open_watching(1);
    domt_do(&domt_remote, watcher, watch, NULL);
    domt_as_gateway(0, tell_down, (void *)(intptr_t)-EHOSTDOWN);
    ck_assert_uint_eq(downs, 1);
    ck_assert_int_eq(heard[0].reason, -EHOSTDOWN);
    domt_as_gateway(0, tell_down, (void *)(intptr_t)-EHOSTDOWN);
    ck_assert_uint_eq(downs, 1);
    domt_do(&domt_remote, watcher, watch, NULL);
    ck_assert_uint_eq(domt_carried_by[0].watches, 2);
    ck_assert_uint_eq(downs, 1);
    domt_do(&domt_remote, watcher, unwatch, NULL);
    close_watching();
}

DOMT_TEST(a_watch_that_is_taken_back_is_not_told)
{
    open_watching(1);
    domt_do(&domt_remote, watcher, watch, NULL);
    domt_do(&domt_remote, watcher, unwatch, NULL);
    domt_do(&domt_remote, watcher, unwatch, (void *)(intptr_t)-ENOENT);
    ck_assert_ptr_null(remote.house->attached);
    domt_as_gateway(0, tell_end, NULL);
    ck_assert_uint_eq(downs, 0);
    close_watching();
}

DOMT_TEST(room_is_told_by_the_gateway)
{
    open_watching(1);
    domt_do(&domt_remote, watcher, watch_room, NULL);
    ck_assert(domt_carried_by[0].room);
    ck_assert_uint_eq(rooms, 0);
    domt_as_gateway(0, tell_room, NULL);
    domt_as_gateway(0, tell_room, NULL);
    ck_assert_uint_eq(rooms, 1);
    close_watching();
}

DOMT_TEST(who_waits_for_room_hears_whether_the_actor_or_its_node_is_gone)
{
    open_watching(1);
    domt_do(&domt_remote, watcher, watch_room, NULL);
    domt_as_gateway(0, tell_down, (void *)(intptr_t)-EHOSTDOWN);
    ck_assert_uint_eq(rooms, 1);
    ck_assert_int_eq(room_reason, -EHOSTDOWN);
    domt_do(&domt_remote, watcher, watch_room, NULL);
    domt_as_gateway(0, tell_end, (void *)(intptr_t)-EIO);
    ck_assert_uint_eq(rooms, 2);
    ck_assert_int_eq(room_reason, -ESTALE);
    close_watching();
}

static int stop_self(domus_stack *stack, void *context)
{
    return domus_stop(stack, domus_self(stack));
}

DOMT_TEST(a_watcher_that_ends_leaves_nothing)
{
    open_watching(1);
    domt_do(&domt_remote, watcher, watch, NULL);
    domt_do(&domt_remote, watcher, stop_self, NULL);
    ck_assert_ptr_null(remote.house->attached);
    close_watching();
}

DOMT_TEST(the_end_of_a_gateway_tells_its_watches)
{
    open_watching(1);
    domt_do(&domt_remote, watcher, watch, NULL);
    domt_as_gateway(0, stop_self, NULL);
    ck_assert_uint_eq(downs, 1);
    ck_assert_int_eq(heard[0].reason, -EHOSTDOWN);
    ck_assert_ptr_null(remote.house->attached);
    domt_do(&domt_remote, watcher, watch, NULL);
    ck_assert_uint_eq(downs, 2); /* nobody could tell it any more */
    /* what the actors of that home send goes by another gateway */
    ck_assert_int_eq(domt_notice(domt_remote.managers[0], remote, &domt_plain, "a notice"), 0);
    domt_settle(&domt_remote);
    ck_assert_uint_eq(domt_carried_by[1].notices, 1);
    domt_as_gateway(1, stop_self, NULL);
    ck_assert_int_eq(domt_notice(domt_remote.managers[0], remote, &domt_plain, "a notice"),
                     -EHOSTDOWN);
    domt_remote_close();
}

static int cannot_link(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_link_actor(stack, remote, NULL), -EOPNOTSUPP);
    return 0;
}

static int stop_remote(domus_stack *stack, void *context)
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
    open_watching(1);
    domt_do(&domt_remote, watcher, cannot_link, NULL);
    domt_do(&domt_remote, watcher, stop_remote, NULL);
    ck_assert_uint_eq(domt_carried_by[0].stops, 1);
    ck_assert_uint_eq(domt_carried_by[0].target.number, 3);
    domt_do(&domt_remote, watcher, stop_remote_after_mail, NULL);
    ck_assert_uint_eq(domt_carried_by[1].last_stops, 1); /* behind what this actor has sent */
    ck_assert_uint_eq(domt_carried_by[1].target.number, 3);
    domt_as_gateway(0, tell_end, NULL);
    domt_do(&domt_remote, watcher, stop_remote, (void *)(intptr_t)-ESTALE);
    close_watching();
}

DOMT_SUITE(20)
