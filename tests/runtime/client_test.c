/* Asks to the address of a channel whose peer is a script of the test: pipelining, bounds, late
 * answers, cancels, time-outs, and each way in which the connection ends. */
#include "tests/runtime/clients.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static domt_line_client client;

static void begin_client_of_lines(const domus_pipeline *pipeline,
                                  const domus_channel_options *options)
{
    domt_line_client_begin(&client, pipeline, options);
}

static void end_client_of_lines(void)
{
    domt_line_client_end(&client);
}

/* Check that the peer has received exactly the bytes of `text`. */
static void expect_peer_received(const char *text)
{
    domt_net_check_ok(client.kit,
                      domus_peer_expect(client.peer, text, strlen(text), DOMT_NET_SECOND));
}

static void answer_by_peer(const char *text)
{
    domt_net_check_ok(client.kit, domus_peer_send(client.peer, text, strlen(text)));
}

static const domus_pipeline two_under_way = {
    .stages = domt_line_stages, .encodes = domt_packets, .inflight_max = 2, .queue_max = 2};

DOMT_TEST(answers_come_in_the_order_of_the_asks)
{
    begin_client_of_lines(&domt_line_pipeline, NULL);
    domus_probe *other = domt_new_probe(client.kit);
    domt_ask_line(client.probe, client.channel, "a");
    domt_net_check_ok(client.kit, domus_testkit_run(client.kit));
    domt_ask_line(other, client.channel, "b");
    domt_net_check_ok(client.kit, domus_testkit_run(client.kit));
    domt_ask_line(client.probe, client.channel, "c");
    expect_peer_received("a\nb\nc\n");
    answer_by_peer("1\n2\n3\n");
    domt_expect_line(client.kit, client.probe, "1");
    domt_expect_line(client.kit, client.probe, "3");
    domt_expect_line(client.kit, other, "2");
    end_client_of_lines();
}

DOMT_TEST(asks_above_inflight_max_wait_and_above_queue_max_fail)
{
    begin_client_of_lines(&two_under_way, NULL);
    for (char c = 'a'; c <= 'e'; c++)
        domt_ask_line(client.probe, client.channel, (char[]){c, '\0'});
    expect_peer_received("a\nb\n");
    domt_net_check_ok(client.kit,
                      domus_probe_expect_error(client.probe, -ENOBUFS, DOMT_NET_SECOND));
    domt_net_check_ok(client.kit, domus_peer_expect_nothing(client.peer, DOMT_NET_SECOND));
    answer_by_peer("1\n");
    expect_peer_received("c\n");
    answer_by_peer("2\n3\n");
    expect_peer_received("d\n");
    answer_by_peer("4\n");
    for (char c = '1'; c <= '4'; c++)
        domt_expect_line(client.kit, client.probe, (char[]){c, '\0'});
    end_client_of_lines();
}

DOMT_TEST(client_options_default_to_configuration)
{
    static const domus_channel_options options = {.inflight_max = 1, .ask_queue_max = DOMUS_NONE};

    begin_client_of_lines(&domt_line_pipeline, &options);
    domt_ask_line(client.probe, client.channel, "a");
    domt_ask_line(client.probe, client.channel, "b");
    expect_peer_received("a\n");
    domt_net_check_ok(client.kit,
                      domus_probe_expect_error(client.probe, -ENOBUFS, DOMT_NET_SECOND));
    answer_by_peer("1\n");
    domt_expect_line(client.kit, client.probe, "1");
    end_client_of_lines();
}

DOMT_TEST(a_late_answer_is_taken_by_the_ask_that_expired)
{
    begin_client_of_lines(&domt_line_pipeline, NULL);
    domt_ask_line_within(client.probe, client.channel, "a", DOMT_NET_SECOND / 10);
    expect_peer_received("a\n");
    domt_net_check_ok(client.kit,
                      domus_probe_expect_error(client.probe, -ETIMEDOUT, DOMT_NET_SECOND));
    domt_ask_line(client.probe, client.channel, "b");
    expect_peer_received("b\n");
    answer_by_peer("late\n2\n");
    domt_expect_line(client.kit, client.probe, "2");
    ck_assert_uint_eq(domt_profile_of_kit(client.kit).late_replies, 1);
    end_client_of_lines();
}

DOMT_TEST(an_ask_that_expires_in_the_queue_is_not_sent)
{
    begin_client_of_lines(&two_under_way, NULL);
    domt_ask_line(client.probe, client.channel, "a");
    domt_ask_line(client.probe, client.channel, "b");
    domt_ask_line_within(client.probe, client.channel, "c", DOMT_NET_SECOND / 10);
    domt_ask_line_within(client.probe, client.channel, "d", DOMT_NET_SECOND / 10);
    expect_peer_received("a\nb\n");
    domt_net_check_ok(client.kit,
                      domus_probe_expect_error(client.probe, -ETIMEDOUT, DOMT_NET_SECOND));
    domt_net_check_ok(client.kit,
                      domus_probe_expect_error(client.probe, -ETIMEDOUT, DOMT_NET_SECOND));
    /* The queue of the channel is full of asks that have expired, and these make room for a new
     * ask. */
    domt_ask_line(client.probe, client.channel, "e");
    domt_net_check_ok(client.kit, domus_testkit_run(client.kit));
    answer_by_peer("1\n2\n");
    domt_expect_line(client.kit, client.probe, "1");
    domt_expect_line(client.kit, client.probe, "2");
    expect_peer_received("e\n");
    answer_by_peer("5\n");
    domt_expect_line(client.kit, client.probe, "5");
    end_client_of_lines();
}

DOMT_TEST(a_cancel_takes_back_an_ask_that_was_not_sent)
{
    begin_client_of_lines(&two_under_way, NULL);
    domus_probe *other = domt_new_probe(client.kit);
    domt_ask_line(client.probe, client.channel, "a");
    domt_net_check_ok(client.kit, domus_testkit_run(client.kit));
    /* this ask is sent to the peer before it is cancelled */
    domt_ask_line(other, client.channel, "b");
    domt_net_check_ok(client.kit, domus_testkit_run(client.kit));
    /* this ask is cancelled before it is sent to the peer */
    domt_ask_line(other, client.channel, "c");
    domt_net_check_ok(client.kit, domus_testkit_run(client.kit));
    domt_ask_line(client.probe, client.channel, "d");
    expect_peer_received("a\nb\n");
    ck_assert_int_eq(
        domus_outside_stop(domus_testkit_system(client.kit), domus_probe_address(other)), 0);
    domt_net_check_ok(client.kit, domus_testkit_run(client.kit));
    answer_by_peer("1\n2\n");
    domt_expect_line(client.kit, client.probe, "1");
    expect_peer_received("d\n");
    answer_by_peer("4\n");
    domt_expect_line(client.kit, client.probe, "4");
    end_client_of_lines();
}

/* --- the end of the connection ---------------------------------------------------------------- */

static void ask_thrice_with_two_under_way(void)
{
    begin_client_of_lines(&two_under_way, NULL);
    for (char c = 'a'; c <= 'c'; c++)
        domt_ask_line(client.probe, client.channel, (char[]){c, '\0'});
    expect_peer_received("a\nb\n");
}

/* Check that three asks fail: two that were sent to the peer, and one that was not. */
static void expect_three_failures(void)
{
    domt_net_check_ok(client.kit, domus_probe_expect_error(client.probe, -EPIPE, DOMT_NET_SECOND));
    domt_net_check_ok(client.kit, domus_probe_expect_error(client.probe, -EPIPE, DOMT_NET_SECOND));
    domt_net_check_ok(client.kit,
                      domus_probe_expect_error(client.probe, -ENOTCONN, DOMT_NET_SECOND));
}

DOMT_TEST(a_reset_tells_what_was_sent_from_what_was_not)
{
    ask_thrice_with_two_under_way();
    domus_peer_reset(client.peer);
    expect_three_failures();
    end_client_of_lines();
}

DOMT_TEST(a_peer_that_finishes_answers_nothing_more)
{
    ask_thrice_with_two_under_way();
    answer_by_peer("1\n");
    domus_peer_finish(client.peer);
    domt_expect_line(client.kit, client.probe, "1");
    domt_net_check_ok(client.kit, domus_probe_expect_error(client.probe, -EPIPE, DOMT_NET_SECOND));
    domt_net_check_ok(client.kit, domus_testkit_run(client.kit));
    domt_expect_actor_gone(client.kit, client.channel);
    domus_testkit_free(client.kit);
}

DOMT_TEST(a_close_by_this_side_ends_the_asks)
{
    ask_thrice_with_two_under_way();
    ck_assert_int_eq(domus_outside_stop(domus_testkit_system(client.kit), client.channel), 0);
    expect_three_failures();
    end_client_of_lines();
}

DOMT_TEST(an_ask_to_a_channel_that_is_gone_is_stale)
{
    begin_client_of_lines(&domt_line_pipeline, NULL);
    domus_peer_reset(client.peer);
    domt_net_check_ok(client.kit, domus_testkit_run(client.kit));
    domt_ask_line(client.probe, client.channel, "a");
    domt_net_check_ok(client.kit, domus_probe_expect_error(client.probe, -ESTALE, DOMT_NET_SECOND));
    end_client_of_lines();
}

DOMT_TEST(answer_without_ask_resets_the_connection)
{
    begin_client_of_lines(&domt_line_pipeline, NULL);
    answer_by_peer("what\n");
    domt_net_check_ok(client.kit, domus_peer_expect_reset(client.peer, DOMT_NET_SECOND));
    domt_ask_line(client.probe, client.channel, "a");
    domt_net_check_ok(client.kit,
                      domus_probe_expect_error(client.probe, -ENOTCONN, DOMT_NET_SECOND));
    end_client_of_lines();
}

DOMT_TEST(a_line_that_cannot_be_encoded_fails_alone)
{
    begin_client_of_lines(&domt_line_pipeline, NULL);
    domt_ask_line(client.probe, client.channel, "a");
    domt_ask_line(client.probe, client.channel, "b\nc");
    domt_ask_line(client.probe, client.channel, "d");
    domt_net_check_ok(client.kit, domus_probe_expect_error(client.probe, -EINVAL, DOMT_NET_SECOND));
    expect_peer_received("a\nd\n");
    answer_by_peer("1\n4\n");
    domt_expect_line(client.kit, client.probe, "1");
    domt_expect_line(client.kit, client.probe, "4");
    end_client_of_lines();
}

/* --- time ------------------------------------------------------------------------------------- */

/* A byte stage that passes all received bytes on, and fails when a '#' is to be sent. */
static int decode_by_passing_bytes_on(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    int error = domus_wire_pass(wire, bytes, size);

    return error != 0 ? error : (int)size;
}

static int encode_but_fail_at_hash(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    return memchr(bytes, '#', size) != NULL ? -EIO : domus_wire_append(wire, bytes, size);
}

static const domus_stage stumbling = {
    .name = "stumbling", .decode = decode_by_passing_bytes_on, .wrap = encode_but_fail_at_hash};
static const domus_pipeline_stage *const line_stage = &domt_line_stages[0];

DOMT_TEST(a_byte_stage_that_fails_resets_the_connection)
{
    const domus_pipeline_stage stages[] = {{&stumbling, NULL}, *line_stage, {NULL, NULL}};
    const domus_pipeline pipeline = {.stages = stages, .encodes = domt_packets};

    for (int is_notice = 0; is_notice < 2; is_notice++) {
        begin_client_of_lines(&pipeline, NULL);
        domt_ask_line(client.probe, client.channel, "a");
        expect_peer_received("a\n");
        if (is_notice != 0) {
            domus_packet packet;
            ck_assert_int_eq(domus_slice_copy("#", 1, &packet.bytes), 0);
            ck_assert_int_eq(domus_outside_notice(domus_testkit_system(client.kit), client.channel,
                                                  &domus_packet_type, &packet),
                             0);
        } else {
            domt_ask_line(client.probe, client.channel, "#");
            domt_net_check_ok(client.kit,
                              domus_probe_expect_error(client.probe, -EIO, DOMT_NET_SECOND));
        }
        domt_net_check_ok(client.kit,
                          domus_probe_expect_error(client.probe, -EPIPE, DOMT_NET_SECOND));
        domt_net_check_ok(client.kit, domus_peer_expect_reset(client.peer, DOMT_NET_SECOND));
        domt_expect_actor_gone(client.kit, client.channel);
        end_client_of_lines();
    }
}

DOMT_TEST(a_peer_that_does_not_answer_in_time_is_reset)
{
    static const domus_pipeline impatient = {
        .stages = domt_line_stages, .encodes = domt_packets, .answer_timeout_ns = DOMT_NET_SECOND};

    begin_client_of_lines(&impatient, NULL);
    domt_ask_line(client.probe, client.channel, "a");
    expect_peer_received("a\n");
    domt_net_check_ok(client.kit, domus_testkit_advance(client.kit, DOMT_NET_SECOND / 2));
    domt_ask_line(client.probe, client.channel, "b");
    expect_peer_received("b\n");
    answer_by_peer("1\n");
    domt_expect_line(client.kit, client.probe, "1");
    /* The time-out of the second ask begins when that ask is sent to the peer. */
    domt_net_check_ok(client.kit,
                      domus_probe_expect_nothing(client.probe, DOMT_NET_SECOND * 9 / 10));
    domt_net_check_ok(client.kit,
                      domus_probe_expect_error(client.probe, -EPIPE, DOMT_NET_SECOND / 5));
    domt_net_check_ok(client.kit, domus_peer_expect_reset(client.peer, DOMT_NET_SECOND));
    end_client_of_lines();
}

/* The peer reads no requests as long as nobody reads its answers. */
DOMT_TEST(a_full_channel_still_takes_answers)
{
    /* both sockets have a buffer, and this is more bytes than both buffers hold */
    enum { SENT = 3 * DOMUS_NET_BUFFER_BYTES / 2048 };
    static const domus_channel_options options = {
        .send_high_bytes = 1024, .send_low_bytes = 512, .inflight_max = SENT};
    char text[2048];

    begin_client_of_lines(&domt_line_pipeline, &options);
    domus_peer_pause(client.peer);
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    for (uint32_t i = 0; i < SENT; i++)
        domt_ask_line(client.probe, client.channel, text);
    domt_net_check_ok(client.kit, domus_testkit_run(client.kit));
    answer_by_peer("1\n");
    domt_expect_line(client.kit, client.probe, "1");
    domus_peer_resume(client.peer);
    for (uint32_t i = 1; i < SENT; i++)
        answer_by_peer("n\n");
    for (uint32_t i = 1; i < SENT; i++)
        domt_expect_line(client.kit, client.probe, "n");
    end_client_of_lines();
}

DOMT_TEST(a_stop_of_the_system_waits_for_answers)
{
    begin_client_of_lines(&domt_line_pipeline, NULL);
    domt_ask_line(client.probe, client.channel, "a");
    expect_peer_received("a\n");
    uint64_t begun_ns = domus_testkit_now_ns(client.kit);
    /* the result is 1, because one channel was cut */
    ck_assert_int_eq(domus_testkit_stop(client.kit), 1);
    ck_assert_uint_ge(domus_testkit_now_ns(client.kit) - begun_ns, 10 * DOMT_NET_SECOND);
    domus_testkit_free(client.kit);
}

DOMT_SUITE(60)
