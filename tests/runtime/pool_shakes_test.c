/* Asks wait while a byte stage comes to terms with its peer, and fail as those that were not sent
 * when it does not: nothing of them has left, so all of them may be done elsewhere. */
#include "tests/runtime/pools.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS (DOMT_NET_SECOND / 1000)

/* --- a byte stage that begins with a dialogue ------------------------------------------------- */

typedef struct dialogue {
    bool over;
} dialogue;

/* It tells the peer with whom it wants to talk. */
static int begin(domus_wire *wire, void *state, const void *options)
{
    uint16_t port;
    const char *server = domus_wire_server(wire, &port);

    domus_wire_expect_head(wire);
    return domus_wire_append_text(wire, "%s %u?", server != NULL ? server : "nobody", port);
}

/* The peer says "!" if that is right, and "x" if it is not. */
static int decode(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    dialogue *own = state;

    if (own->over)
        return domus_wire_pass(wire, bytes, size) == 0 ? (int)size : -ENOMEM;
    if (bytes[0] == 'x')
        return -EACCES;
    own->over = bytes[0] == '!';
    if (!own->over)
        domus_wire_expect_head(wire);
    return 1;
}

static int wrap(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    return domus_wire_append(wire, bytes, size);
}

static int finish(domus_wire *wire, void *state)
{
    return ((dialogue *)state)->over ? 0 : domus_wire_append(wire, "#", 1);
}

static const domus_stage shaking = {.name = "shaking",
                                    .state_size = sizeof(dialogue),
                                    .open = begin,
                                    .decode = decode,
                                    .wrap = wrap,
                                    .finish = finish};

/* --- pools of it ------------------------------------------------------------------------------ */

static domus_pipeline_stage stages[3] = {{&shaking, NULL}};
static const domus_pipeline shaken = {.stages = stages, .encodes = domt_packets, .inflight_max = 1};
static const domus_behaviour line = {.name = "line", .kind = DOMUS_CHANNELS, .pipeline = &shaken};
static const domus_pool_options on_demand = {.behaviour = &line,
                                             .connections_max = 2,
                                             .queue_max = 8,
                                             .backoff_min_ns = 100 * MS,
                                             .backoff_max_ns = 100 * MS,
                                             .on_demand = true};
static const domus_pool_options usual = {.behaviour = &line, .backoff_min_ns = 10 * MS};

static domus_peer_listener *begin_listening(const domus_pool_options *options)
{
    stages[1] = domt_line_stages[0];
    return domt_pool_begin_listening(options);
}

static void pause_ns(uint64_t time_ns)
{
    domt_net_ok(domt_pool_kit, domus_testkit_advance(domt_pool_kit, time_ns));
}

DOMT_TEST(asks_leave_behind_the_dialogue)
{
    domus_peer_listener *listener = begin_listening(&on_demand);

    domt_pool_ask("a");
    domus_peer *one = domt_pool_peer(listener);
    domt_pool_sent(one, "10.0.0.9 1?");
    domt_pool_answer(one, "..");
    domt_net_ok(domt_pool_kit, domus_peer_expect_nothing(one, 100 * MS));
    domt_pool_answer(one, "!");
    domt_pool_sent(one, "a\n");
    domt_pool_answer(one, "1\n");
    domt_expect_line(domt_pool_kit, domt_pool_probe, "1");
    domt_pool_ask("b"); /* the connection is kept */
    domt_pool_sent(one, "b\n");
    domt_pool_ask("c");
    domus_peer *two = domt_pool_peer(listener);
    domt_pool_sent(two, "10.0.0.9 1?");
    domt_pool_answer(one, "2\n");
    domt_expect_line(domt_pool_kit, domt_pool_probe, "2");
    domt_pool_sent(one, "c\n"); /* it was ready first */
    domt_pool_ask("d");
    domt_pool_answer(two, "!");
    domt_pool_sent(two, "d\n");
    domt_pool_answer(two, "4\n");
    domt_expect_line(domt_pool_kit, domt_pool_probe, "4");
    domt_pool_answer(one, "3\n");
    domt_expect_line(domt_pool_kit, domt_pool_probe, "3");
    domt_pool_end();
}

DOMT_TEST(asks_fail_with_the_error_of_the_dialogue)
{
    domus_peer_listener *listener = begin_listening(&on_demand);

    domt_pool_ask("a"); /* of a type that may not be sent twice */
    domus_peer *one = domt_pool_peer(listener);
    domt_pool_sent(one, "10.0.0.9 1?");
    domt_pool_answer(one, "x");
    domt_pool_sent(one, "#"); /* and nothing of the ask */
    domt_net_ok(domt_pool_kit, domus_peer_expect_end(one, DOMT_NET_SECOND));
    domus_peer_finish(one);
    domt_pool_error(-EACCES);
    domt_pool_ask("b");
    domt_pool_error(-EACCES); /* at once, in the back-off */
    ck_assert_uint_ge(domt_pool_look().failures, 1);
    pause_ns(200 * MS);
    domt_pool_ask("c");
    one = domt_pool_peer(listener);
    domt_pool_sent(one, "10.0.0.9 1?");
    domt_pool_answer(one, "!");
    domt_pool_sent(one, "c\n");
    domt_pool_answer(one, "3\n");
    domt_expect_line(domt_pool_kit, domt_pool_probe, "3");
    domt_pool_end();
}

DOMT_TEST(a_cut_dialogue_lets_asks_go_elsewhere)
{
    domus_peer_listener *listener = begin_listening(&usual);
    domus_peer *one = domt_pool_peer(listener);

    domt_pool_sent(one, "10.0.0.9 1?");
    domt_pool_ask("a");
    domus_peer_reset(one);
    one = domt_pool_peer(listener);
    domt_pool_sent(one, "10.0.0.9 1?");
    domt_pool_answer(one, "!1"); /* the first byte of an answer comes with the end */
    domt_pool_sent(one, "a\n");
    domt_pool_answer(one, "2\n");
    domt_expect_line(domt_pool_kit, domt_pool_probe, "12");
    domt_pool_end();
}

DOMT_SUITE(60)
