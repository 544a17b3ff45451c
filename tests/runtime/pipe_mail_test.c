/* io/pipelines/mail.c: messages that actors send to a channel and that the channel sends to its
 * peer, notices of the peer, asks that the peer answers, and messages beside a change of the
 * pipeline. */
#include "tests/runtime/changes.h"
#include "tests/runtime/pipes.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <domus/connect.h>
#include <domus/group.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

static domus_packet make_packet_of_text(const char *text)
{
    domus_packet packet;
    ck_assert_int_eq(domus_slice_copy(text, strlen(text), &packet.bytes), 0);
    return packet;
}

static uint64_t count_dead_letters(void)
{
    domus_profile profile;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(domus_system_profile(domt_pipe_system_of_kit(), i, &profile), 0);
        sum += profile.dead_letters;
    }
    return sum;
}

/* --- notices ---------------------------------------------------------------------------------- */

static void send_packet_to_channel(const domus_type *type, const char *text)
{
    domus_packet packet = make_packet_of_text(text);
    ck_assert_int_eq(
        domus_outside_notice(domt_pipe_system_of_kit(), domt_pipes_now.channel, type, &packet), 0);
}

static void free_bytes_of_packet(void *payload)
{
    domus_slice_free(((domus_packet *)payload)->bytes);
}

static const domus_type strange_type = {
    .name = "strange", .size = sizeof(domus_packet), .release = free_bytes_of_packet};

DOMT_TEST(notices_to_a_channel_go_to_its_peer)
{
    domus_peer *peer = domt_pipe_begin_kit(NULL, &domt_pipe_framed, 1);

    domt_pipe_peer_send_text(peer, "sleep 10 a\n");
    domt_pipe_run_kit();
    send_packet_to_channel(&domus_packet_type, "one");
    send_packet_to_channel(&domt_note_type, "two");
    ck_assert_uint_eq(count_dead_letters(), 0);
    domt_pipe_peer_expect_text(peer, "one\ntwo\na\n");
    /* the stage cannot encode this packet, because it contains the end of a line */
    send_packet_to_channel(&domus_packet_type, "no\nline");
    /* the pipeline's list of types lacks the type of this notice */
    send_packet_to_channel(&strange_type, "strange");
    send_packet_to_channel(&domus_packet_type, "three");
    domt_pipe_peer_expect_text(peer, "three\n");
    ck_assert_uint_eq(count_dead_letters(), 2);
    domus_peer_reset(peer);
    domt_pipe_run_kit();
    domt_pipe_end_kit();
}

DOMT_TEST(notices_to_a_channel_that_closes_are_dead_letters)
{
    domus_peer *peer = domt_pipe_begin_kit(NULL, &domt_pipe_framed, 1);

    domt_pipe_peer_send_text(peer, "+sleep 100 a\nfinish 0 text\n");
    domt_pipe_run_kit();
    uint64_t before = count_dead_letters();
    /* this notice becomes a dead letter, because the channel has finished */
    send_packet_to_channel(&domus_packet_type, "one");
    domt_pipe_run_kit();
    ck_assert_uint_eq(count_dead_letters(), before + 1);
    domus_peer_reset(peer);
    domt_pipe_run_kit();
    /* this notice becomes a dead letter, because the connection is gone, although a conversation of
     * the channel goes on */
    send_packet_to_channel(&domus_packet_type, "two");
    domt_pipe_run_kit();
    ck_assert_uint_eq(count_dead_letters(), before + 2);
    domt_pipe_end_kit();
}

DOMT_TEST(notices_of_the_peer_are_handled_and_may_be_taken)
{
    domus_peer *peer = domt_pipe_begin_kit(NULL, &domt_pipe_framed, 1);

    domt_pipe_peer_send_and_expect(peer, "%a\nsleep 5 b\n%c\n!now 0 d\n%e\n", "%a\n%c\nb\nd\n%e\n");
    ck_assert_uint_eq(domt_pipes_now.notices, 3);
    ck_assert_uint_eq(domt_pipes_now.taken, 3);
    domt_pipe_peer_send_text(peer, "%fail\nnow 0 a\n");
    ck_assert_int_eq(domus_peer_expect_reset(peer, SECOND), 0);
    domt_pipe_run_kit();
    ck_assert_int_eq(domt_pipes_now.close_error, -EBADMSG);
    domt_pipe_end_kit();
}

DOMT_TEST(notices_that_are_taken_or_not_forwarded_end_with_their_turn)
{
    domus_peer *peer = domt_pipe_begin_kit(NULL, &domt_pipe_framed, 1);
    domt_pipe_peer_send_and_expect(
        peer, "%own\nnow 0 a\n%forward\n%own\nsleep 5 b\n%forward\nnow 0 c\n", "a\nb\nc\n");
    ck_assert_uint_eq(domt_pipes_now.notices, 4);
    domt_pipe_close_peer_and_end_kit(peer);
}

/* --- a broadcast ------------------------------------------------------------------------------ */

static domus_group crowd;

static int on_open_join_crowd(domus_stack *stack, void *self, const void *payload)
{
    domt_pipes_now.opened++;
    return domus_group_join(stack, crowd);
}

static int open_crowd_in_mount(domus_stack *stack, void *self)
{
    return domus_group_open(stack, "crowd", &crowd);
}

static const domus_behaviour founder = {.name = "founder", .on_mount = open_crowd_in_mount};

DOMT_TEST(a_broadcast_goes_to_a_thousand_peers)
{
    static domus_peer *peers[1000];
    domus_behaviour behaviour = domt_pipe_plain;
    domus_address address;

    behaviour.on_open.handle = on_open_join_crowd;
    (void)domt_pipes_new_kit(NULL, &behaviour, 1);
    ck_assert_int_eq(domus_outside_spawn(domt_pipe_system_of_kit(), &founder, NULL, &address), 0);
    domt_pipe_run_kit();
    for (uint32_t i = 0; i < 1000; i++)
        peers[i] = domt_pipe_connect_peer();
    domt_pipe_run_kit();
    domus_packet packet = make_packet_of_text("to all of you");
    ck_assert_int_eq(
        domus_outside_publish(domt_pipe_system_of_kit(), crowd, &domus_packet_type, &packet), 0);
    for (uint32_t i = 0; i < 1000; i++)
        domt_pipe_peer_expect_text(peers[i], "to all of you\n");
    domt_pipe_end_kit();
}

/* --- a client --------------------------------------------------------------------------------- */

static const domus_line_options as_client = {.role = DOMUS_ROLE_CLIENT};
static const domus_type *const asked_types[] = {&domus_packet_type, NULL};
static const domus_pipeline client_lines = {
    .stages = (const domus_pipeline_stage[]){{&domus_line_stage, &as_client}, {NULL, NULL}},
    .encodes = asked_types,
    .inflight_max = 2,
    .queue_max = 2};

static int record_close_of_channel(domus_stack *stack, void *self, const void *payload)
{
    domt_pipes_now.closed++;
    domt_pipes_now.close_error = ((const domus_channel_event *)payload)->error;
    return 0;
}

static const domus_behaviour client = {.name = "client",
                                       .kind = DOMUS_CHANNELS,
                                       .pipeline = &client_lines,
                                       .on_close = {record_close_of_channel, 0}};

static const domus_type order_type = {.name = "order"};

static int record_connected_channel(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, 0);
    domt_pipes_now.channel = ((const domus_connected *)answer->payload)->channel;
    domt_pipes_now.opened++;
    return 0;
}

static int connect_client_in_handler(domus_stack *stack, void *self, const void *payload)
{
    const domus_connect_options options = {.behaviour = &client};
    return domus_connect(stack, "127.0.0.1:81", &options, record_connected_channel);
}

static const domus_behaviour connecting = {
    .name = "connecting",
    .on = (const domus_on[]){{&order_type, connect_client_in_handler, 0}, {0}}};

static domus_peer *server;
static domus_probe *probe;

static void begin_kit_with_client(void)
{
    domus_peer_listener *listener;
    domus_address address;

    domus_system *system = domus_testkit_system(domt_pipes_new_kit(NULL, &domt_pipe_plain, 1));
    ck_assert_int_eq(domus_peer_listen(domt_pipe_kit, "127.0.0.1:81", 0, &listener), 0);
    ck_assert_int_eq(domus_outside_spawn_on(system, 0, &connecting, NULL, &address), 0);
    ck_assert_int_eq(domus_outside_notice(system, address, &order_type, NULL), 0);
    ck_assert_int_eq(domus_peer_accept(listener, SECOND, &server), 0);
    domt_pipe_run_kit();
    ck_assert_uint_eq(domt_pipes_now.opened, 1);
    ck_assert_int_eq(domus_probe_new(domt_pipe_kit, &probe), 0);
}

static void ask_channel_by_probe(const char *text)
{
    domus_packet packet = make_packet_of_text(text);
    ck_assert_int_eq(domus_probe_ask(probe, domt_pipes_now.channel, &domus_packet_type, &packet),
                     0);
}

static void expect_probe_got_answer(const char *text)
{
    domus_packet packet;
    ck_assert_int_eq(domus_probe_expect(probe, &domus_packet_type, SECOND, &packet), 0);
    ck_assert(domus_slice_equals(packet.bytes, text, strlen(text)));
    domus_slice_free(packet.bytes);
}

static void expect_probe_got_error(int error)
{
    ck_assert_int_eq(domus_probe_expect_error(probe, error, SECOND), 0);
}

DOMT_TEST(asks_are_answered_by_the_peer_in_their_order)
{
    begin_kit_with_client();
    ask_channel_by_probe("a");
    ask_channel_by_probe("b");
    /* this ask waits, because at most two asks may be under way to the peer */
    ask_channel_by_probe("c");
    domt_pipe_peer_expect_text(server, "a\nb\n");
    ck_assert_int_eq(domus_peer_expect_nothing(server, MS), 0);
    domt_pipe_peer_send_text(server, "1\n");
    expect_probe_got_answer("1");
    domt_pipe_peer_expect_text(server, "c\n");
    domt_pipe_peer_send_text(server, "2\n3");
    expect_probe_got_answer("2");
    domt_pipe_peer_send_text(server, "4\n");
    expect_probe_got_answer("34");
    ask_channel_by_probe("d");
    domt_pipe_peer_expect_text(server, "d\n");
    domt_pipe_peer_send_text(server, "5\n");
    expect_probe_got_answer("5");
    domt_pipe_end_kit();
}

DOMT_TEST(asks_that_are_too_many_or_wrong_fail)
{
    begin_kit_with_client();
    for (int i = 0; i < 5; i++)
        ask_channel_by_probe("a");
    expect_probe_got_error(-ENOBUFS);
    domt_pipe_peer_expect_text(server, "a\na\n");
    domt_pipe_peer_send_text(server, "1\n2\n3\n4\n");
    for (int i = 1; i <= 4; i++)
        expect_probe_got_answer(i == 1 ? "1" : i == 2 ? "2" : i == 3 ? "3" : "4");
    ask_channel_by_probe("no\nline");
    expect_probe_got_error(-EINVAL);
    ask_channel_by_probe("b");
    domt_pipe_peer_expect_text(server, "a\na\nb\n");
    domt_pipe_peer_send_text(server, "5\n");
    expect_probe_got_answer("5");
    domt_pipe_end_kit();
}

DOMT_TEST(the_answer_to_an_ask_that_expired_is_thrown_away)
{
    begin_kit_with_client();
    domus_packet packet = make_packet_of_text("a");

    ck_assert_int_eq(
        domus_probe_ask_within(probe, domt_pipes_now.channel, &domus_packet_type, &packet, 10 * MS),
        0);
    ask_channel_by_probe("b");
    expect_probe_got_error(-ETIMEDOUT);
    domt_pipe_peer_send_text(server, "late\n2\n");
    expect_probe_got_answer("2");
    domt_pipe_end_kit();
}

/* End the connection while two of four asks are under way to the peer and two were not sent, and
 * check how the asks end. */
static void check_asks_when_connection_ends(void (*end)(domus_peer *), const char *answers,
                                            uint32_t answered)
{
    begin_kit_with_client();
    for (int i = 0; i < 4; i++)
        ask_channel_by_probe("a");
    domt_pipe_peer_expect_text(server, "a\na\n");
    domt_pipe_peer_send_text(server, answers);
    end(server);
    for (uint32_t i = 0; i < answered; i++)
        expect_probe_got_answer("1");
    for (uint32_t i = 0; i < 2 - answered; i++)
        expect_probe_got_error(-EPIPE);
    if (answered == 0) {
        for (int i = 0; i < 2; i++)
            expect_probe_got_error(-ENOTCONN);
    }
    domt_pipe_pass_time(30 * SECOND);
    ck_assert_uint_eq(domt_pipes_now.closed, 1);
    domt_pipe_end_kit();
}

DOMT_TEST(asks_fail_when_the_peer_resets)
{
    check_asks_when_connection_ends(domus_peer_reset, "", 0);
}

DOMT_TEST(asks_fail_when_the_peer_finishes)
{
    check_asks_when_connection_ends(domus_peer_finish, "", 0);
}

DOMT_TEST(asks_fail_when_the_peer_closes)
{
    check_asks_when_connection_ends(domus_peer_close, "", 0);
}

DOMT_TEST(asks_fail_when_the_peer_finishes_within_an_answer)
{
    check_asks_when_connection_ends(domus_peer_finish, "par", 0);
}

DOMT_TEST(asks_that_wait_when_the_system_stops_are_drained_or_fail)
{
    begin_kit_with_client();
    for (int i = 0; i < 4; i++)
        ask_channel_by_probe("a");
    domt_pipe_peer_expect_text(server, "a\na\n");
    domt_pipe_end_kit();
}

/* --- mail beside a change --------------------------------------------------------------------- */

static void send_notice_to_channel(const char *words)
{
    domus_packet packet;
    ck_assert_int_eq(domus_slice_copy(words, strlen(words), &packet.bytes), 0);
    ck_assert_int_eq(domus_probe_send(probe, domt_pipes_now.channel, &domus_packet_type, &packet),
                     0);
}

/* An actor sends messages to the peer at any step. A message that leaves behind the answer is
 * encoded by the new stages. */
DOMT_TEST(mail_behind_the_answer_leaves_by_the_new_stages)
{
    for (uint64_t seed = 1; seed <= DOMT_SCALE(200, 40); seed++) {
        domus_peer *peer;
        domus_testkit *kit = domt_change_begin_kit(seed, &peer);
        domt_bytes coded = {.size = 0};
        size_t size, at = 0, notes = 0, rest;

        domt_append_coded_packet(&coded, "n");
        ck_assert_int_eq(domus_probe_new(kit, &probe), 0);
        domt_pipes_peer_send(kit, peer, "x 0 a\n");
        domt_pipes_peer_expect(kit, peer, "a\n");
        domt_pipes_peer_send(kit, peer, seed % 2 == 0 ? "slow 0 b\nup 0 ok\n" : "fwd 0 ok\n");
        for (int i = 0; i < 40; i++) {
            send_notice_to_channel("n");
            (void)domus_testkit_step(kit);
        }
        ck_assert_int_eq(domus_testkit_advance(kit, 10 * MS), 0);
        const char *got = domus_peer_got(peer, &size);
        while (at + 2 <= size && memcmp(got + at, "ok", 2) != 0) {
            notes += got[at] == 'n';
            at += 2; /* skip a line of two bytes, "n\n" or "b\n" */
        }
        ck_assert_msg(at + 3 <= size, "no answer in %zu bytes", size);
        for (at += 3, rest = (size - at) % coded.size; at + coded.size <= size; notes++) {
            ck_assert_mem_eq(got + at, coded.bytes, coded.size);
            at += coded.size;
        }
        ck_assert_uint_eq(rest, 0);
        ck_assert_uint_eq(notes, 40);
        domus_peer_close(peer);
        domt_change_end_kit(kit);
    }
}

DOMT_TEST(notice_of_the_handler_behind_the_answer_leaves_by_the_new_stages)
{
    domt_bytes wanted = {.size = 0};
    domus_peer *peer;
    domus_testkit *kit = domt_change_begin_kit(1, &peer);

    domt_append_line_packet(&wanted, "b");
    domt_append_coded_packet(&wanted, "b");
    domt_pipes_peer_send(kit, peer, "note 1 b\n");
    domt_change_expect_bytes(kit, peer, &wanted);
    domus_peer_close(peer);
    domt_change_end_kit(kit);
}

DOMT_SUITE(120)
