/* Restarts do not wait for peers: channels below an actor that restarts are reset, wherever they
 * are, in whatever state, and also if they are already closing. A stop waits for them. */
#include "tests/runtime/network.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <domus/connect.h>
#include <domus/supervise.h>

#include <errno.h>
#include <string.h>

#define MS UINT64_C(1000000)

/* A case: the actors below the actor that restarts, and what happens to them before. */
typedef struct plan {
    bool connects; /* true: the actor itself connects; false: an owner below it listens */
    /* true: another actor stands between the restarting actor and the owner of the channel */
    bool is_deep;
    uint32_t thread;  /* number of the thread of the channel's owner */
    bool closes;      /* true: the channel was closed before, and waits for its peer */
    bool stops_owner; /* true: the owner was stopped before, and waits for its channel */
    bool stops_all;   /* true: the actor is stopped instead of restarted */
} plan;

static const plan *now;
static uint32_t mounts; /* number of times that the restarting actor was mounted */
static domus_address middle, owner, channel;
static domus_testkit *kit;

static const domus_type close_type = {.name = "close"};
static const domus_type fail_type = {.name = "fail"};

static int on_open_record_channel(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    channel = domus_channel_address(event->channel);
    return 0;
}

/* A handler that does nothing: without it, the peer's FIN would close the channel. */
static int on_end_do_nothing(domus_stack *stack, void *self, const void *payload)
{
    return 0;
}

static int close_own_channel(domus_stack *stack, void *self, const void *nothing)
{
    return domus_channel_close(stack, domus_channel_running(stack));
}

static int fail_with_eio(domus_stack *stack, void *self, const void *nothing)
{
    return -EIO;
}

static const domus_behaviour line = {
    .name = "line",
    .kind = DOMUS_CHANNELS,
    .on = (const domus_on[]){{&close_type, close_own_channel, 0}, {0}},
    .on_open = {on_open_record_channel, 0},
    .on_end = {on_end_do_nothing, 0}};

static int listen_at_port_80_in_mount(domus_stack *stack, void *self)
{
    domus_endpoint at;
    owner = domus_self(stack);
    ck_assert_int_eq(domus_endpoint_parse("127.0.0.1:80", &at), 0);
    return domus_listen(stack, &at, NULL, NULL, NULL);
}

static const domus_behaviour listening = {.name = "listening",
                                          .kind = DOMUS_CHANNELS,
                                          .channel = &line,
                                          .on_mount = listen_at_port_80_in_mount};

static int spawn_owner_in_mount(domus_stack *stack, void *self)
{
    const domus_spawn_options options = {.placement = DOMUS_ON_THREAD, .thread = now->thread};
    domus_address address;
    return domus_spawn_with(stack, &listening, NULL, &options, &address);
}

static const domus_behaviour between = {.name = "between", .on_mount = spawn_owner_in_mount};

static int return_error_of_connect(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error;
}

static int connect_or_listen_in_mount(domus_stack *stack, void *self)
{
    const domus_connect_options options = {.behaviour = &line};
    domus_address address;

    middle = domus_self(stack);
    mounts++;
    if (now->connects)
        return domus_connect(stack, "127.0.0.1:80", &options, return_error_of_connect);
    return now->is_deep ? domus_spawn(stack, &between, NULL, &address)
                        : spawn_owner_in_mount(stack, self);
}

static const domus_behaviour failing = {.name = "failing",
                                        .on =
                                            (const domus_on[]){{&fail_type, fail_with_eio, 0}, {0}},
                                        .on_mount = connect_or_listen_in_mount};

static int spawn_failing_child_in_mount(domus_stack *stack, void *self)
{
    domus_address address;
    return domus_spawn(stack, &failing, NULL, &address);
}

static const domus_supervision restarting = {.otherwise = DOMUS_RESTART};
static const domus_behaviour top = {
    .name = "top", .on_mount = spawn_failing_child_in_mount, .supervision = &restarting};

static void send_notice_and_run_kit(domus_address to, const domus_type *type)
{
    ck_assert_int_eq(domus_outside_notice(domus_testkit_system(kit), to, type, NULL), 0);
    domt_net_check_ok(kit, domus_testkit_run(kit));
}

/* Make the kit, the actors of the case and a connection. Returns the peer of that connection. */
static domus_peer *begin_kit_with_actors_and_peer(domus_peer_listener **ret_listener)
{
    domus_address address;
    domus_peer *peer;

    mounts = 0;
    kit = domt_kit_new(NULL, 5);
    if (now->connects)
        domt_net_check_ok(kit, domus_peer_listen(kit, "127.0.0.1:80", 0, ret_listener));
    ck_assert_int_eq(domus_outside_spawn_on(domus_testkit_system(kit), 0, &top, NULL, &address), 0);
    domt_net_check_ok(kit, domus_testkit_run(kit));
    if (now->connects) {
        domt_net_check_ok(kit, domus_peer_accept(*ret_listener, MS, &peer));
    } else {
        peer = domt_net_connect_peer(kit, "127.0.0.1:80");
        domt_net_check_ok(kit, domus_peer_expect_connected(peer, MS));
    }
    domt_net_check_ok(kit, domus_testkit_run(kit));
    return peer;
}

static void check_plan_of_restart(const plan *is)
{
    domus_peer_listener *listener = NULL;

    now = is;
    domus_peer *peer = begin_kit_with_actors_and_peer(&listener);
    if (is->closes)
        send_notice_and_run_kit(channel, &close_type);
    if (is->stops_owner) {
        ck_assert_int_eq(domus_outside_stop(domus_testkit_system(kit), owner), 0);
        domt_net_check_ok(kit, domus_testkit_run(kit));
    }
    if (is->stops_all) {
        ck_assert_int_eq(domus_outside_stop(domus_testkit_system(kit), middle), 0);
        domt_net_check_ok(kit, domus_peer_expect_end(peer, MS));
        domt_net_check_ok(kit, domus_testkit_advance(kit, 1000 * MS));
        /* the connection was not reset, because the channel waits for the peer's FIN */
        ck_assert_int_eq(domus_peer_error(peer), 0);
    } else {
        ck_assert_int_eq(domus_peer_has_end(peer), is->closes || is->stops_owner);
        send_notice_and_run_kit(middle, &fail_type);
        domt_net_check_ok(kit, domus_testkit_advance(kit, 10 * MS));
        ck_assert_int_eq(domus_peer_error(peer), -ECONNRESET);
        ck_assert_uint_eq(mounts, 2); /* the actor was mounted again without waiting for a peer */
    }
    domus_testkit_free(kit);
}

DOMT_TEST(restart_resets_all_channels_below)
{
    for (uint32_t thread = 0; thread < 2; thread++) {
        check_plan_of_restart(&(plan){.thread = thread});
        check_plan_of_restart(&(plan){.thread = thread, .is_deep = true});
    }
}

DOMT_TEST(restart_resets_connections_of_a_state_actor)
{
    check_plan_of_restart(&(plan){.connects = true});
    check_plan_of_restart(&(plan){.connects = true, .closes = true});
}

DOMT_TEST(restart_resets_channels_that_close_already)
{
    for (uint32_t thread = 0; thread < 2; thread++) {
        for (int deep = 0; deep < 2; deep++) {
            check_plan_of_restart(&(plan){.thread = thread, .is_deep = deep != 0, .closes = true});
            check_plan_of_restart(
                &(plan){.thread = thread, .is_deep = deep != 0, .stops_owner = true});
        }
    }
}

DOMT_TEST(stop_waits_for_peers)
{
    check_plan_of_restart(&(plan){.connects = true, .stops_all = true});
    check_plan_of_restart(&(plan){.thread = 1, .is_deep = true, .stops_all = true});
}

DOMT_SUITE(60)
