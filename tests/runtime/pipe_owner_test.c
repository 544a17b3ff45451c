/* The actor that owns channels with pipelines restarts or is stopped while their requests, bodies
 * and streams are open: each connection ends, nothing of it is left, and the next connection is
 * served. */
#include "base/memory.h"
#include "runtime/testkit/kit.h"
#include "tests/runtime/streams.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

static domus_address owner;
static uint32_t mounts; /* number of times that the owner was mounted */

static const domus_type fail_type = {.name = "fail"};

static int fail_with_eio(domus_stack *stack, void *self, const void *payload)
{
    return -EIO;
}

static int listen_in_mount(domus_stack *stack, void *self)
{
    domus_endpoint at;
    owner = domus_self(stack);
    mounts++;
    ck_assert_int_eq(domus_endpoint_parse("127.0.0.1:90", &at), 0);
    return domus_listen(stack, &at, NULL, NULL, NULL);
}

static domus_behaviour owning = {.name = "owning",
                                 .kind = DOMUS_CHANNELS,
                                 .on = (const domus_on[]){{&fail_type, fail_with_eio, 0}, {0}},
                                 .on_mount = listen_in_mount};

static int spawn_owner_on_thread_1(domus_stack *stack, void *self)
{
    const domus_spawn_options options = {.placement = DOMUS_ON_THREAD, .thread = 1};
    domus_address address;
    return domus_spawn_with(stack, &owning, NULL, &options, &address);
}

static const domus_supervision restarting = {.otherwise = DOMUS_RESTART};
static const domus_behaviour top = {
    .name = "top", .on_mount = spawn_owner_on_thread_1, .supervision = &restarting};

/* Make a kit, and in it an owner whose channels have this behaviour, beside the channels of the kit
 * itself. */
static void make_kit_with_owner(const domus_behaviour *behaviour, bool streams)
{
    domus_address address;
    (void)(streams ? domt_streams_new_kit(NULL, behaviour)
                   : domt_pipes_new_kit(NULL, behaviour, 3));

    owning.channel = behaviour;
    mounts = 0;
    ck_assert_int_eq(domus_outside_spawn_on(domt_pipe_system_of_kit(), 0, &top, NULL, &address), 0);
    domt_pipe_run_kit();
    ck_assert_uint_eq(mounts, 1);
}

static domus_peer *connect_peer_to_owner(void)
{
    domus_peer *peer;
    ck_assert_int_eq(domus_peer_connect(domt_pipe_kit, "127.0.0.1:90", NULL, &peer), 0);
    ck_assert_int_eq(domus_peer_expect_connected(peer, SECOND), 0);
    return peer;
}

/* Bytes that the peers send, each on its own connection, before the owner restarts or is
 * stopped. */
static const char *const requests[] = {"hang 0 a\n",
                                       "sleep 5000 a\nnow 0 b\nslice 0 c\n",
                                       "far 5000 a\nffar 5000 b\nkeep 5000 c\nkffar 5000 d\n",
                                       "+sleep 20 a\n+ffar 20 b\n+kffar 20 c\n",
                                       "hang 0 a\n!now 0 b\nnow 0 c\n",
                                       "fhang 0 a\n%note\nnow 0 b\nnow"};
static const char *const streams[] = {
    "Q give 5000000\n", "L1000 echo 0\n1234567", "C echo 0\n10:123456789",    "X count 0\n",
    "Q part 100000\n",  "C count 50\n5:12345",   "Q give 100000\nQ hang 0\n", "L500 hang 0\n123",
    "fC echo 0\n5:12"};

#define PEERS_MAX 16

/* Let peers send requests, and `after_ns` later let the owner be stopped, or fail and restart.
 * Check that all connections end. */
static void check_end_of_owner(const char *const *sent, size_t count, bool is_stream, bool stops,
                               uint64_t after_ns)
{
    make_kit_with_owner(is_stream ? &domt_stream_service : &domt_pipe_framed, is_stream);
    domus_system *system = domt_pipe_system_of_kit();
    domus_peer *peers[PEERS_MAX];

    for (size_t i = 0; i < count; i++) {
        peers[i] = connect_peer_to_owner();
        if (i % 2 != 0)
            domus_peer_pause(peers[i]);
        domt_pipe_peer_say(peers[i], sent[i]);
    }
    domt_pipe_pass_time(after_ns);
    if (stops) {
        ck_assert_int_eq(domus_outside_stop(system, owner), 0);
    } else {
        ck_assert_int_eq(domus_outside_notice(system, owner, &fail_type, NULL), 0);
        domt_pipe_pass_time(10 * MS);
        ck_assert_uint_eq(mounts, 2); /* the owner has restarted without waiting for its peers */
    }
    domt_pipe_pass_time(10 * SECOND);
    for (size_t i = 0; i < count; i++) {
        domus_peer_resume(peers[i]);
        domt_pipe_pass_time(SECOND);
        ck_assert_msg(domus_peer_has_end(peers[i]) || domus_peer_error(peers[i]) != 0, "%s",
                      sent[i]);
        domus_peer_close(peers[i]);
    }
    if (!stops) {
        domus_peer *peer = connect_peer_to_owner();
        domt_pipe_peer_say(peer, is_stream ? "Q wait 1\n" : "now 0 text\n");
        if (is_stream)
            domt_pipe_pass_time(SECOND);
        else
            domt_pipe_peer_hear(peer, "text\n");
        ck_assert_int_eq(domus_peer_error(peer), 0);
        domus_peer_close(peer);
    }
    domt_pipe_end_kit();
}

static void check_end_of_owner_at_all_times(bool stops)
{
    static const uint64_t afters[] = {0, 3 * MS, 100 * MS};
    for (size_t i = 0; i < sizeof afters / sizeof afters[0]; i++) {
        check_end_of_owner(requests, sizeof requests / sizeof requests[0], false, stops, afters[i]);
        check_end_of_owner(streams, sizeof streams / sizeof streams[0], true, stops, afters[i]);
    }
}

DOMT_TEST(a_restart_ends_requests_and_streams)
{
    check_end_of_owner_at_all_times(false);
}

DOMT_TEST(a_stop_ends_requests_and_streams)
{
    check_end_of_owner_at_all_times(true);
}

/* --- without memory --------------------------------------------------------------------------- */

/* Let the owner fail while allocation number `fails_after` fails. Returns whether the owner has
 * restarted all the same. */
static bool has_owner_restarted_without_memory(bool is_stream, int64_t fails_after)
{
    const char *const *sent = is_stream ? streams : requests;
    make_kit_with_owner(is_stream ? &domt_stream_service : &domt_pipe_framed, is_stream);
    domus_system *system = domt_pipe_system_of_kit();
    domus_peer *peers[6];

    for (size_t i = 0; i < 6; i++) {
        peers[i] = connect_peer_to_owner();
        domt_pipe_peer_say(peers[i], sent[i]);
        domt_pipe_run_kit();
    }
    ck_assert_int_eq(domus_outside_notice(system, owner, &fail_type, NULL), 0);
    domi_memory_fail_allocation_after(fails_after, 0);
    int result = domus_testkit_advance(domt_pipe_kit, 100 * MS);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_msg(result == 0, "allocation %d: %s", (int)fails_after,
                  domus_testkit_error(domt_pipe_kit));
    domt_pipe_pass_time(10 * SECOND);
    bool has_lost =
        /* true if the simulated network itself has lost something for lack of memory */
        domt_pipe_kit->net->is_out_of_memory;
    for (size_t i = 0; i < 6; i++)
        ck_assert_msg(has_lost || domus_peer_error(peers[i]) != 0 || domus_peer_has_end(peers[i]),
                      "allocation %d: %s", (int)fails_after, sent[i]);
    bool has_restarted = mounts == 2 && !has_lost;
    domt_pipe_end_kit();
    return has_restarted;
}

DOMT_TEST(owner_restart_without_memory_ends_requests)
{
    for (int is_stream = 0; is_stream < 2; is_stream++) {
        uint32_t clean = 0;
        for (int64_t n = 0; clean < 10; n++)
            clean = has_owner_restarted_without_memory(is_stream != 0, n) ? clean + 1 : 0;
    }
}

DOMT_SUITE(120)
