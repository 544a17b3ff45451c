/* Restarts do not wait for peers: channels below an actor that restarts are reset, wherever they
 * are and in whatever state, also if they are already closing. A stop waits for them. */
#include "tests/runtime/network.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <domus/connect.h>
#include <domus/supervise.h>

#include <errno.h>
#include <string.h>

#define MS UINT64_C(1000000)

/* The actors below the one that restarts, and what happens to them. */
typedef struct plan {
    bool connects;    /* the actor connects itself; else an owner below it listens */
    bool is_deep;     /* another actor stands between the restarting actor and the owner */
    uint32_t thread;  /* thread of the owner */
    bool closes;      /* the channel is closed, and waits for its peer */
    bool stops_owner; /* the owner is stopped, and waits for its channel */
    bool stops_all;   /* the actor is stopped, and not restarted */
} plan;

static const plan *now;
static uint32_t mounts; /* number of mounts of the restarting actor */
static domus_address middle, owner, channel;
static domus_testkit *kit;

static const domus_type close_type = {.name = "close"};
static const domus_type fail_type = {.name = "fail"};

static int on_open(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    channel = domus_channel_address(event->channel);
    return 0;
}

/* This handler is there because the end of the peer would close the channel otherwise. */
static int on_end(domus_stack *stack, void *self, const void *payload)
{
    return 0;
}

static int on_close_it(domus_stack *stack, void *self, const void *nothing)
{
    return domus_channel_close(stack, domus_channel_running(stack));
}

static int on_fail(domus_stack *stack, void *self, const void *nothing)
{
    return -EIO;
}

static const domus_behaviour line = {.name = "line",
                                     .kind = DOMUS_CHANNELS,
                                     .on = (const domus_on[]){{&close_type, on_close_it, 0}, {0}},
                                     .on_open = {on_open, 0},
                                     .on_end = {on_end, 0}};

static int listen_at(domus_stack *stack, void *self)
{
    domus_endpoint at;
    owner = domus_self(stack);
    ck_assert_int_eq(domus_endpoint_parse("127.0.0.1:80", &at), 0);
    return domus_listen(stack, &at, NULL, NULL, NULL);
}

static const domus_behaviour listening = {
    .name = "listening", .kind = DOMUS_CHANNELS, .channel = &line, .on_mount = listen_at};

static int bear_owner(domus_stack *stack, void *self)
{
    const domus_spawn_options options = {.placement = DOMUS_ON_THREAD, .thread = now->thread};
    domus_address address;
    return domus_spawn_with(stack, &listening, NULL, &options, &address);
}

static const domus_behaviour between = {.name = "between", .on_mount = bear_owner};

static int on_connected(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error;
}

static int mount_middle(domus_stack *stack, void *self)
{
    const domus_connect_options options = {.behaviour = &line};
    domus_address address;

    middle = domus_self(stack);
    mounts++;
    if (now->connects)
        return domus_connect(stack, "127.0.0.1:80", &options, on_connected);
    return now->is_deep ? domus_spawn(stack, &between, NULL, &address) : bear_owner(stack, self);
}

static const domus_behaviour failing = {.name = "failing",
                                        .on = (const domus_on[]){{&fail_type, on_fail, 0}, {0}},
                                        .on_mount = mount_middle};

static int mount_top(domus_stack *stack, void *self)
{
    domus_address address;
    return domus_spawn(stack, &failing, NULL, &address);
}

static const domus_supervision restarting = {.otherwise = DOMUS_RESTART};
static const domus_behaviour top = {
    .name = "top", .on_mount = mount_top, .supervision = &restarting};

static void send_notice(domus_address to, const domus_type *type)
{
    ck_assert_int_eq(domus_outside_notice(domus_testkit_system(kit), to, type, NULL), 0);
    domt_net_ok(kit, domus_testkit_run(kit));
}

/* Make the tree and a connection. Returns the peer of that connection. */
static domus_peer *begin_tree(domus_peer_listener **ret_listener)
{
    domus_address address;
    domus_peer *peer;

    mounts = 0;
    kit = domt_kit_new(NULL, 5);
    if (now->connects)
        domt_net_ok(kit, domus_peer_listen(kit, "127.0.0.1:80", 0, ret_listener));
    ck_assert_int_eq(domus_outside_spawn_on(domus_testkit_system(kit), 0, &top, NULL, &address), 0);
    domt_net_ok(kit, domus_testkit_run(kit));
    if (now->connects) {
        domt_net_ok(kit, domus_peer_accept(*ret_listener, MS, &peer));
    } else {
        peer = domt_net_client(kit, "127.0.0.1:80");
        domt_net_ok(kit, domus_peer_expect_connected(peer, MS));
    }
    domt_net_ok(kit, domus_testkit_run(kit));
    return peer;
}

static void check_plan(const plan *is)
{
    domus_peer_listener *listener = NULL;

    now = is;
    domus_peer *peer = begin_tree(&listener);
    if (is->closes)
        send_notice(channel, &close_type);
    if (is->stops_owner) {
        ck_assert_int_eq(domus_outside_stop(domus_testkit_system(kit), owner), 0);
        domt_net_ok(kit, domus_testkit_run(kit));
    }
    if (is->stops_all) {
        ck_assert_int_eq(domus_outside_stop(domus_testkit_system(kit), middle), 0);
        domt_net_ok(kit, domus_peer_expect_end(peer, MS));
        domt_net_ok(kit, domus_testkit_advance(kit, 1000 * MS));
        ck_assert_int_eq(domus_peer_error(peer), 0); /* the channel waits for the peer's end */
    } else {
        ck_assert_int_eq(domus_peer_has_end(peer), is->closes || is->stops_owner);
        send_notice(middle, &fail_type);
        domt_net_ok(kit, domus_testkit_advance(kit, 10 * MS));
        ck_assert_int_eq(domus_peer_error(peer), -ECONNRESET);
        ck_assert_uint_eq(mounts, 2); /* the restart has waited for no peer */
    }
    domus_testkit_free(kit);
}

DOMT_TEST(restart_resets_all_channels_below)
{
    for (uint32_t thread = 0; thread < 2; thread++) {
        check_plan(&(plan){.thread = thread});
        check_plan(&(plan){.thread = thread, .is_deep = true});
    }
}

DOMT_TEST(restart_resets_connections_of_a_state_actor)
{
    check_plan(&(plan){.connects = true});
    check_plan(&(plan){.connects = true, .closes = true});
}

DOMT_TEST(restart_resets_channels_that_close_already)
{
    for (uint32_t thread = 0; thread < 2; thread++) {
        for (int deep = 0; deep < 2; deep++) {
            check_plan(&(plan){.thread = thread, .is_deep = deep != 0, .closes = true});
            check_plan(&(plan){.thread = thread, .is_deep = deep != 0, .stops_owner = true});
        }
    }
}

DOMT_TEST(stop_waits_for_peers)
{
    check_plan(&(plan){.connects = true, .stops_all = true});
    check_plan(&(plan){.thread = 1, .is_deep = true, .stops_all = true});
}

DOMT_SUITE(60)
