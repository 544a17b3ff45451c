/* Asks wait while a client negotiates with its peer, and none of them leaves unencrypted before:
 * during the dialogue of a byte stage, and with domus_pipeline.holds_asks until the pipeline has
 * changed. If the negotiation fails, the asks fail as unsent ones, so a user may send all of them
 * elsewhere. */
#include "tests/runtime/pools.h"
#include "tests/support/stages.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS (DOMT_NET_SECOND / 1000)

/* --- a byte stage that begins with a dialogue ------------------------------------------------- */

typedef struct dialogue {
    bool over;
} dialogue;

/* Begin the dialogue of the byte stage: send the name of the service that the client wants. */
static int begin_dialogue_by_name_of_server(domus_wire *wire, void *state, const void *options)
{
    uint16_t port;
    const char *server = domus_wire_server(wire, &port);
    domus_wire_expect_head(wire);
    return domus_wire_append_text(wire, "%s %u?", server != NULL ? server : "nobody", port);
}

/* Read the peer's answer in the dialogue: "!" if the name is right, and "x" if it is wrong. */
static int decode_answer_of_dialogue(domus_wire *wire, void *state, const char *bytes, size_t size)
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

static int encode_bytes_unchanged(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    return domus_wire_append(wire, bytes, size);
}

static int end_dialogue_stage(domus_wire *wire, void *state)
{
    return ((dialogue *)state)->over ? 0 : domus_wire_append(wire, "#", 1);
}

static const domus_stage shaking = {.name = "shaking",
                                    .state_size = sizeof(dialogue),
                                    .open = begin_dialogue_by_name_of_server,
                                    .decode = decode_answer_of_dialogue,
                                    .wrap = encode_bytes_unchanged,
                                    .finish = end_dialogue_stage};

/* --- pools of it ------------------------------------------------------------------------------ */

static domus_pipeline_stage stages[3] = {{&shaking, NULL}};
static const domus_pipeline shaken = {.stages = stages, .encodes = domt_packets, .inflight_max = 1};
static const domus_behaviour shaking_line = {
    .name = "line", .kind = DOMUS_CHANNELS, .pipeline = &shaken};
static const domus_pool_options on_demand = {.behaviour = &shaking_line,
                                             .connections_max = 2,
                                             .queue_max = 8,
                                             .backoff_min_ns = 100 * MS,
                                             .backoff_max_ns = 100 * MS,
                                             .on_demand = true};
static const domus_pool_options usual = {.behaviour = &shaking_line, .backoff_min_ns = 10 * MS};

static domus_peer_listener *begin_listening_pool(const domus_pool_options *options)
{
    stages[1] = domt_line_stages[0];
    return domt_pool_begin_with_service(options);
}

static void let_time_pass(uint64_t time_ns)
{
    domt_pool_pass_time(time_ns);
}

DOMT_TEST(asks_leave_behind_the_dialogue)
{
    domus_peer_listener *listener = begin_listening_pool(&on_demand);

    domt_pool_ask_line("a");
    domus_peer *one = domt_pool_accept_connection(listener);
    domt_pool_expect_service_got(one, "10.0.0.9 1?");
    domt_pool_service_send(one, "..");
    domt_net_check_ok(domt_pool_kit, domus_peer_expect_nothing(one, 100 * MS));
    domt_pool_service_send(one, "!");
    domt_pool_serve_ask(one, "a", "1");
    domt_pool_ask_line("b"); /* this ask is sent at once, because its connection was kept */
    domt_pool_expect_service_got(one, "b\n");
    domt_pool_ask_line("c");
    domus_peer *two = domt_pool_accept_connection(listener);
    domt_pool_expect_service_got(two, "10.0.0.9 1?");
    domt_pool_answer_and_expect(one, "2");
    domt_pool_expect_service_got(one, "c\n"); /* the connection that was ready first gets the ask */
    domt_pool_ask_line("d");
    domt_pool_service_send(two, "!");
    domt_pool_serve_ask(two, "d", "4");
    domt_pool_answer_and_expect(one, "3");
    domt_pool_end_kit();
}

DOMT_TEST(asks_fail_with_the_error_of_the_dialogue)
{
    domus_peer_listener *listener = begin_listening_pool(&on_demand);

    domt_pool_ask_line(
        "a"); /* the type of this ask is not repeatable, so it may not be sent twice */
    domus_peer *one = domt_pool_accept_connection(listener);
    domt_pool_expect_service_got(one, "10.0.0.9 1?");
    domt_pool_service_send(one, "x");
    /* the peer gets only the byte of the dialogue, and no byte of the ask */
    domt_pool_expect_service_got(one, "#");
    domt_net_check_ok(domt_pool_kit, domus_peer_expect_end(one, DOMT_NET_SECOND));
    domus_peer_finish(one);
    domt_pool_expect_error(-EACCES);
    domt_pool_ask_line("b");
    domt_pool_expect_error(
        -EACCES); /* this ask fails at once, because the pool is in its back-off */
    ck_assert_uint_ge(domt_pool_ask_status().failures, 1);
    let_time_pass(200 * MS);
    domt_pool_ask_line("c");
    one = domt_pool_accept_connection(listener);
    domt_pool_expect_service_got(one, "10.0.0.9 1?");
    domt_pool_service_send(one, "!");
    domt_pool_serve_ask(one, "c", "3");
    domt_pool_end_kit();
}

DOMT_TEST(a_cut_dialogue_lets_asks_go_elsewhere)
{
    domus_peer_listener *listener = begin_listening_pool(&usual);
    domus_peer *one = domt_pool_accept_connection(listener);

    domt_pool_expect_service_got(one, "10.0.0.9 1?");
    domt_pool_ask_line("a");
    domus_peer_reset(one);
    one = domt_pool_accept_connection(listener);
    domt_pool_expect_service_got(one, "10.0.0.9 1?");
    /* the end of the dialogue and the first byte of an answer come together */
    domt_pool_service_send(one, "!1");
    domt_pool_expect_service_got(one, "a\n");
    domt_pool_service_send(one, "2\n");
    domt_pool_expect_answer("12");
    domt_pool_end_kit();
}

/* --- a pipeline that changes ------------------------------------------------------------------ */

static const domus_line_options as_client = {.role = DOMUS_ROLE_CLIENT};
static const domus_pipeline before = {
    .stages = domt_line_stages, .encodes = domt_packets, .queue_max = 2, .holds_asks = true};
static const domus_pipeline behind = {
    .stages = (const domus_pipeline_stage[]){{&domt_stuff_stage, NULL},
                                             {&domus_line_stage, &as_client},
                                             {NULL, NULL}},
    .encodes = domt_packets};
static const domus_pipeline without_asks = {
    .stages = (const domus_pipeline_stage[]){{&domus_line_stage, &as_client}, {NULL, NULL}}};
static const domus_pipeline *next;
static const domus_type strange_type = {.name = "strange"};

static int set_pipeline_after_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error != 0 ? answer->error
                              : domus_channel_set_pipeline(stack, domus_channel_running(stack),
                                                           next, DOMUS_PIPELINE_CLEAN);
}

static int on_open_ask_own_channel(domus_stack *stack, void *self, const void *payload)
{
    domus_packet packet;
    ck_assert_int_eq(domus_slice_copy("start", 5, &packet.bytes), 0);
    return domus_ask(stack, domus_self(stack), &domus_packet_type, &packet,
                     set_pipeline_after_answer);
}

static const domus_behaviour holding_line = {.name = "line",
                                             .kind = DOMUS_CHANNELS,
                                             .pipeline = &before,
                                             .on_open = {on_open_ask_own_channel, 0}};

static domus_probe *other;
static domus_peer_listener *listener;

static void begin_pool_with_held_channel(void)
{
    static const domus_pool_options options = {.behaviour = &holding_line};
    next = &behind;
    listener = domt_pool_begin_with_service(&options);
    other = domt_new_probe(domt_pool_kit);
}

static domus_peer *accept_peer_and_expect_start(void)
{
    domus_peer *peer = domt_pool_accept_connection(listener);
    domt_pool_expect_service_got(peer, "start\n");
    return peer;
}

static void send_line_and_strange_ask(void)
{
    domt_ask_line(domt_pool_probe, domt_pool, "a}");
    ck_assert_int_eq(domus_probe_ask(other, domt_pool, &strange_type, NULL), 0);
    domt_pool_run_kit();
}

DOMT_TEST(asks_wait_until_the_pipeline_has_changed)
{
    begin_pool_with_held_channel();
    domus_peer *peer = accept_peer_and_expect_start();
    send_line_and_strange_ask();
    domt_ask_line(other, domt_pool, "too many");
    domt_net_check_ok(domt_pool_kit, domus_probe_expect_error(other, -ENOBUFS, DOMT_NET_SECOND));
    ck_assert_int_eq(domus_peer_expect_nothing(peer, DOMT_NET_SECOND), 0);
    domt_pool_service_send(peer, "go\n");
    domt_pool_expect_service_got(peer, "a}]\n");
    domt_net_check_ok(domt_pool_kit, domus_probe_expect_error(other, -EOPNOTSUPP, DOMT_NET_SECOND));
    domt_pool_answer_and_expect(peer, "1");
    domt_ask_line(domt_pool_probe, domt_pool, "b");
    domt_pool_expect_service_got(peer, "b\n");
    domus_testkit_free(domt_pool_kit);
}

DOMT_TEST(asks_that_wait_for_a_pipeline_change_count_as_not_sent)
{
    begin_pool_with_held_channel();
    domus_peer *peer = accept_peer_and_expect_start();
    send_line_and_strange_ask();
    domus_peer_reset(peer);
    peer = accept_peer_and_expect_start();
    domt_pool_service_send(peer, "go\n");
    domt_pool_expect_service_got(peer, "a}]\n");
    domt_net_check_ok(domt_pool_kit, domus_probe_expect_error(other, -EOPNOTSUPP, DOMT_NET_SECOND));
    domus_testkit_free(domt_pool_kit);
}

DOMT_TEST(asks_that_the_next_pipeline_does_not_encode_fail)
{
    begin_pool_with_held_channel();
    next = &without_asks;
    domus_peer *peer = accept_peer_and_expect_start();
    send_line_and_strange_ask();
    domt_pool_service_send(peer, "go\n");
    domt_pool_expect_error(-EOPNOTSUPP);
    domt_net_check_ok(domt_pool_kit, domus_probe_expect_error(other, -EOPNOTSUPP, DOMT_NET_SECOND));
    domus_testkit_free(domt_pool_kit);
}

DOMT_SUITE(60)
