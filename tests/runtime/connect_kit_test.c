/* Connects in a test kit: the test resolves names, attempts are staggered on the virtual clock, and
 * each allocation fails once. */
#include "base/memory.h"
#include "runtime/control/life.h"
#include "tests/runtime/network.h"
#include "tests/support/suite.h"

#include <domus/channel.h>
#include <domus/connect.h>
#include <domus/supervise.h>

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define MS UINT64_C(1000000)

static const domus_type order_type = {.name = "order", .size = 64};
static int result;
static uint32_t begun, done, opened, closed_, look_ups;
static domus_connected found;
static domus_endpoint own;     /* the local endpoint from which the actors connect */
static domus_endpoint reached; /* the remote endpoint of the channel that was opened last */

/* Resolve the name "far" to three addresses, some of which the test can cut off from the
 * network. */
static int resolve_far_and_mixed(void *context, const char *name, domus_endpoint *ret_found,
                                 uint32_t max)
{
    ck_assert_uint_ge(max, 3);
    ck_assert_ptr_eq(context, &look_ups);
    look_ups++;
    if (strcmp(name, "far") != 0 && strcmp(name, "mixed") != 0)
        return -ENODATA;
    for (uint32_t i = 0; i < 3; i++)
        ret_found[i] = (domus_endpoint){
            .family = AF_INET, .size = 4, .bytes = {10, 0, 0, (unsigned char)(i + 1)}};
    if (strcmp(name, "far") == 0)
        return 3;
    ret_found[1] = (domus_endpoint){.family = AF_INET6, .size = 16, .bytes[15] = 2};
    return 2;
}

static int on_line_open_record_peer(domus_stack *stack, void *self, const void *payload)
{
    opened++;
    return domus_channel_peer(domus_channel_running(stack), &reached);
}

static int on_line_close_count(domus_stack *stack, void *self, const void *payload)
{
    closed_++;
    return 0;
}

static const domus_behaviour line = {
    .name = "line",
    .kind = DOMUS_CHANNELS,
    .state_size = 2000, /* a state so large that it lies beside the house, and not within it */
    .on_open = {on_line_open_record_peer, 0},
    .on_close = {on_line_close_count, 0},
};

static int record_result_of_connect(domus_stack *stack, void *self, const domus_answer *answer)
{
    result = answer->error;
    done++;
    if (answer->error == 0)
        memcpy(&found, answer->payload, sizeof found);
    return 0;
}

static int connect_as_ordered(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_options channel = {.idle_timeout_ns = 77 * MS};
    const domus_connect_options options = {.behaviour = &line, .local = own, .channel = &channel};

    int error = domus_connect(stack, payload, &options, record_result_of_connect);
    begun += error == DOMUS_PARKED;
    return error;
}

static const domus_on rows[] = {{&order_type, connect_as_ordered, 0}, {0}};
static const domus_behaviour business = {.name = "business", .on = rows};

static domus_testkit *begin_kit_with_actor(domus_address *ret_actor)
{
    domus_testkit *kit = domt_net_new_echo_kit("10.0.0.3:80", 7);

    result = 1;
    begun = done = opened = closed_ = look_ups = 0;
    domus_testkit_resolve_with(kit, resolve_far_and_mixed, &look_ups);
    ck_assert_int_eq(
        domus_outside_spawn_on(domus_testkit_system(kit), 0, &business, NULL, ret_actor), 0);
    domt_net_check_ok(kit, domus_testkit_run(kit));
    return kit;
}

static void order_connect_to(domus_testkit *kit, domus_address actor, const char *to)
{
    char text[64] = "";

    memcpy(text, to, strlen(to));
    (void)domus_outside_notice(domus_testkit_system(kit), actor, &order_type, text);
}

static void set_whether_host_is_cut_off(domus_testkit *kit, const char *from, bool broken)
{
    domus_endpoint machine;

    ck_assert_int_eq(domus_endpoint_parse(from, &machine), 0);
    domt_net_check_ok(kit, domus_testkit_net_part(kit, NULL, &machine, broken));
}

DOMT_TEST(attempts_are_staggered_and_the_first_connection_is_taken)
{
    domus_address actor;
    domus_testkit *kit = begin_kit_with_actor(&actor);
    uint32_t before = domus_testkit_net_totals(kit).descriptors;

    set_whether_host_is_cut_off(kit, "10.0.0.1:0", true);
    set_whether_host_is_cut_off(kit, "10.0.0.2:0", true);
    order_connect_to(kit, actor, "far:80");
    domt_net_check_ok(kit, domus_testkit_advance(kit, 499 * MS));
    ck_assert_uint_eq(done, 0);
    ck_assert_uint_eq(domus_testkit_net_totals(kit).descriptors, before + 2);
    domt_net_check_ok(kit, domus_testkit_advance(kit, 3 * MS));
    ck_assert_uint_eq(done, 1);
    ck_assert_int_eq(result, 0);
    ck_assert_uint_eq(found.peer.bytes[3], 3);
    ck_assert_uint_eq(opened, 1);
    /* two more descriptors: the two ends of the connection */
    ck_assert_uint_eq(domus_testkit_net_totals(kit).descriptors, before + 2);
    /* let the idle time of the connection pass */
    domt_net_check_ok(kit, domus_testkit_advance(kit, 100 * MS));
    ck_assert_uint_eq(closed_, 1);
    set_whether_host_is_cut_off(
        kit, "10.0.0.2:0",
        /* at the address that can be reached nobody listens, so the connect is refused at once */
        false);
    order_connect_to(kit, actor, "far:80");
    domt_net_check_ok(kit, domus_testkit_advance(kit, 252 * MS));
    ck_assert_uint_eq(done, 2);
    ck_assert_uint_eq(opened, 2);
    order_connect_to(kit, actor, "unknown:80");
    domt_net_check_ok(kit, domus_testkit_run(kit));
    ck_assert_int_eq(result, -ENODATA);
    ck_assert_uint_eq(look_ups, 3);
    /* at port 81 nobody listens, and the address that is cut off does not answer */
    order_connect_to(kit, actor, "far:81");
    domt_net_check_ok(kit, domus_testkit_advance(kit, 9990 * MS));
    ck_assert_uint_eq(done, 3);
    domt_net_check_ok(kit, domus_testkit_advance(kit, 20 * MS));
    ck_assert_uint_eq(done, 4);
    ck_assert_int_eq(result, -ETIMEDOUT);
    domus_testkit_resolve_with(kit, NULL, NULL);
    order_connect_to(kit, actor, "far:80");
    domt_net_check_ok(kit, domus_testkit_run(kit));
    ck_assert_int_eq(result, -EOPNOTSUPP);
    ck_assert_uint_eq(domus_testkit_net_totals(kit).descriptors, before);
    domus_testkit_free(kit);
}

/* The first address refuses late, and the second one cannot be tried, because no local endpoint has
 * its family. The connect then fails with the error of the first address. */
DOMT_TEST(error_is_that_of_the_first_address)
{
    domus_address actor;
    domus_testkit *kit = begin_kit_with_actor(&actor);

    own = (domus_endpoint){.family = AF_INET, .size = 4, .bytes = {10, 0, 0, 9}};
    set_whether_host_is_cut_off(kit, "10.0.0.1:0", true);
    order_connect_to(kit, actor, "mixed:80");
    /* The attempt at the second address has failed by now. */
    domt_net_check_ok(kit, domus_testkit_advance(kit, 300 * MS));
    ck_assert_uint_eq(done, 0);
    set_whether_host_is_cut_off(kit, "10.0.0.1:0", false);
    domt_net_check_ok(kit, domus_testkit_advance(kit, MS));
    ck_assert_uint_eq(done, 1);
    ck_assert_int_eq(result, -ECONNREFUSED);
    domus_testkit_free(kit);
}

/* Two attempts connect at the same moment: the answer has the endpoints of the attempt that is
 * used, and the other connection is closed. */
DOMT_TEST(attempt_that_connects_after_another_has_won_changes_nothing)
{
    domus_peer_listener *first, *second;
    domus_peer *loser;
    domus_address actor;
    domus_testkit *kit = begin_kit_with_actor(&actor);
    uint32_t before = domus_testkit_net_totals(kit).descriptors;

    domt_net_check_ok(kit, domus_peer_listen(kit, "10.0.0.1:80", 0, &first));
    domt_net_check_ok(kit, domus_peer_listen(kit, "10.0.0.2:80", 0, &second));
    set_whether_host_is_cut_off(kit, "10.0.0.1:0", true);
    set_whether_host_is_cut_off(kit, "10.0.0.2:0", true);
    order_connect_to(kit, actor, "far:80");
    domt_net_check_ok(kit, domus_testkit_advance(kit, 300 * MS));
    ck_assert_uint_eq(domus_testkit_net_totals(kit).descriptors, before + 2);
    set_whether_host_is_cut_off(kit, "10.0.0.1:0", false);
    set_whether_host_is_cut_off(kit, "10.0.0.2:0", false);
    domt_net_check_ok(kit, domus_testkit_advance(kit, 10 * MS));
    ck_assert_uint_eq(done, 1);
    ck_assert_int_eq(result, 0);
    ck_assert(domus_endpoint_is_same(&found.peer, &reached));
    ck_assert_uint_eq(domus_testkit_net_totals(kit).descriptors, before + 1);
    domt_net_check_ok(kit,
                      domus_peer_accept(reached.bytes[3] == 1 ? second : first, 10 * MS, &loser));
    domt_net_check_ok(kit, domus_peer_expect_end(loser, 10 * MS));
    domus_testkit_free(kit);
}

/* --- ends ------------------------------------------------------------------------------------- */

static uint64_t count_stopped_actors(domus_testkit *kit)
{
    domus_profile profile;
    uint64_t stops = 0;

    for (uint32_t i = 0; domus_system_profile(domus_testkit_system(kit), i, &profile) == 0; i++)
        stops += profile.stops;
    return stops;
}

/* Begin a connect with attempts at two addresses, neither of which answers. */
static domus_testkit *begin_connect_to_silent_hosts(domus_address *ret_actor)
{
    domus_testkit *kit = begin_kit_with_actor(ret_actor);

    set_whether_host_is_cut_off(kit, "10.0.0.1:0", true);
    set_whether_host_is_cut_off(kit, "10.0.0.2:0", true);
    order_connect_to(kit, *ret_actor, "far:80");
    domt_net_check_ok(kit, domus_testkit_advance(kit, 300 * MS));
    return kit;
}

/* The internal actor that makes a connect ends with it: when the connect fails, at once or later,
 * and when it is cancelled. */
DOMT_TEST(internal_actor_of_a_connect_ends_with_the_connect)
{
    domus_address actor;
    domus_testkit *kit = begin_connect_to_silent_hosts(&actor);
    uint64_t before = count_stopped_actors(kit);

    order_connect_to(kit, actor, "unknown:80");
    domt_net_check_ok(kit, domus_testkit_run(kit));
    ck_assert_uint_eq(done, 1);
    ck_assert_uint_eq(count_stopped_actors(kit), before + 1);
    ck_assert_int_eq(domus_outside_stop(domus_testkit_system(kit), actor), 0);
    domt_net_check_ok(kit, domus_testkit_advance(kit, 10 * MS));
    ck_assert_uint_eq(count_stopped_actors(kit), before + 3);
    domus_testkit_free(kit);
}

DOMT_TEST(stop_closes_the_sockets_of_attempts)
{
    for (uint32_t steps = 0; steps < 20; steps++) {
        domus_address actor;
        domus_testkit *kit = begin_connect_to_silent_hosts(&actor);
        uint32_t threads = domus_system_threads(domus_testkit_system(kit));
        if (steps != 0) /* with 0 steps the connect is ended by the stop of the system */
            ck_assert_int_eq(domus_outside_stop(domus_testkit_system(kit), actor), 0);
        for (uint32_t i = 1; i < steps; i++)
            (void)domus_testkit_step(kit);
        ck_assert_int_eq(domus_testkit_stop(kit), 0);
        /* only the eventfd of each thread is left of all descriptors */
        ck_assert_uint_eq(domus_testkit_net_totals(kit).descriptors, threads);
        domus_testkit_free(kit);
    }
}

/* A drain is over when no connection is left, though a connect may still be under way. If that
 * one completes while threads still spawn actors, its channel is reset; if later, no channel is
 * made. */
DOMT_TEST(connect_that_completes_after_the_drain_leaves_no_channel)
{
    for (int is_late = 0; is_late < 2; is_late++) {
        domus_address actor;
        domus_testkit *kit = begin_kit_with_actor(&actor);
        domus_peer_listener *listener;
        domus_system *system = domus_testkit_system(kit);

        domt_net_check_ok(kit, domus_peer_listen(kit, "10.0.0.1:80", 0, &listener));
        if (is_late != 0)
            set_whether_host_is_cut_off(kit, "10.0.0.1:0", true);
        order_connect_to(kit, actor, "10.0.0.1:80");
        domt_net_check_ok(kit, domus_testkit_advance(kit, MS));
        ck_assert_uint_eq(opened, is_late == 0);
        domi_system_set_stop_step(system, DOMI_STOP_CLOSE);
        domt_net_check_ok(kit, domus_testkit_advance(kit, MS));
        if (is_late != 0)
            set_whether_host_is_cut_off(kit, "10.0.0.1:0", false);
        domt_net_check_ok(kit, domus_testkit_advance(kit, 10 * MS));
        ck_assert_uint_eq(done, 1);
        ck_assert_int_eq(result, is_late != 0 ? -ESHUTDOWN : 0);
        ck_assert_uint_eq(opened, is_late == 0);
        ck_assert_uint_eq(closed_, opened);
        /* only the eventfd of each thread is left of all descriptors */
        ck_assert_uint_eq(domus_testkit_net_totals(kit).descriptors, domus_system_threads(system));
        domus_testkit_free(kit);
    }
}

/* A connect that begins during the drain is refused at once, even to an address that does not
 * answer. */
DOMT_TEST(connect_is_refused_at_once_while_those_of_this_side_drain)
{
    domus_address actor;
    domus_testkit *kit = begin_kit_with_actor(&actor);

    set_whether_host_is_cut_off(kit, "10.0.0.1:0", true);
    domi_system_set_stop_step(domus_testkit_system(kit), DOMI_STOP_UPSTREAM);
    domt_net_check_ok(kit, domus_testkit_advance(kit, MS));
    order_connect_to(kit, actor, "10.0.0.1:80");
    domt_net_check_ok(kit, domus_testkit_advance(kit, MS));
    ck_assert_uint_eq(done, 1);
    ck_assert_int_eq(result, -ESHUTDOWN);
    domus_testkit_free(kit);
}

/* --- who connects again and again ------------------------------------------------------------- */

static int connect_again_in_mount(domus_stack *stack, void *self, const void *nothing)
{
    static const domus_connect_options options = {.behaviour = &line};

    begun++;
    return domus_connect(stack, "10.0.0.1:80", &options, record_result_of_connect);
}

static int watch_connected_channel(domus_stack *stack, void *self, const domus_answer *answer)
{
    result = answer->error;
    done++;
    if (answer->error != 0)
        return 0;
    memcpy(&found, answer->payload, sizeof found);
    return domus_watch_actor(stack, found.channel, NULL);
}

static int connect_and_watch_in_mount(domus_stack *stack, void *self)
{
    static const domus_connect_options options = {.behaviour = &line};

    begun++;
    return domus_connect(stack, "10.0.0.1:80", &options, watch_connected_channel);
}

static const domus_behaviour faithful = {
    .name = "faithful",
    .on = (const domus_on[]){{&domus_down_type, connect_again_in_mount, 0}, {0}},
    .on_mount = connect_and_watch_in_mount};

/* The peer of the actor is silent: it reads neither bytes nor a FIN. */
DOMT_TEST(actor_that_connects_again_does_not_hold_the_stop)
{
    domus_peer_listener *listener;
    domus_address actor;
    domus_testkit *kit = begin_kit_with_actor(&actor);
    domus_system *system = domus_testkit_system(kit);

    domt_net_check_ok(kit, domus_peer_listen(kit, "10.0.0.1:80", 0, &listener));
    ck_assert_int_eq(domus_outside_spawn_on(system, 0, &faithful, NULL, &actor), 0);
    domt_net_check_ok(kit, domus_testkit_advance(kit, 10 * MS));
    ck_assert_uint_eq(opened, 1);
    uint64_t before_ns = domus_testkit_now_ns(kit);
    ck_assert_int_eq(domus_testkit_stop(kit), 0);
    ck_assert_uint_le(domus_testkit_now_ns(kit) - before_ns, 2000 * MS);
    ck_assert_uint_eq(opened, 1);
    ck_assert_uint_eq(begun, 2);
    ck_assert_int_eq(result, -ESHUTDOWN);
    domus_testkit_free(kit);
}

/* --- without memory --------------------------------------------------------------------------- */

/* Each allocation fails in turn: the actor gets an error, or its handler fails, and nothing is
 * left. Each connect that was begun has ended in time. */
DOMT_TEST(connect_without_memory_leaves_nothing)
{
    uint32_t failed = 0;

    for (int64_t count = 0;; count++) {
        domus_address actor;
        domus_testkit *kit = begin_kit_with_actor(&actor);
        uint32_t before = domus_testkit_net_totals(kit).descriptors;

        set_whether_host_is_cut_off(kit, "10.0.0.1:0", true);
        domi_memory_fail_allocation_after(count, 0);
        order_connect_to(kit, actor, "far:80");
        domt_net_check_ok(kit, domus_testkit_advance(kit, 300 * MS));
        domi_memory_fail_allocation_after(-1, 0);
        bool is_clean = done == 1 && result == 0;
        /* no attempt of a connect was under way */
        if (domus_testkit_net_totals(kit).descriptors == before)
            ck_assert_uint_eq(done, begun);
        domt_net_check_ok(kit, domus_testkit_advance(kit, 11000 * MS));
        ck_assert_uint_eq(done, begun);
        ck_assert_uint_eq(opened, closed_);
        ck_assert_uint_eq(domus_testkit_net_totals(kit).descriptors, before);
        domus_testkit_free(kit);
        failed += !is_clean;
        if (is_clean && count > 30)
            break;
    }
    ck_assert_uint_gt(failed, 2);
}

DOMT_SUITE(60)
