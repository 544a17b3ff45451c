/* io/pipelines/upload.c: requests that are sent in pieces to a peer, which is a script of the test:
 * their order, what cuts them, early answers, and their bounds. */
#include "tests/runtime/clients.h"
#include "tests/runtime/uploads.h"
#include "tests/support/suite.h"

#include <domus/stage_kit.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

static domt_line_client client;
static domus_address sender; /* address of the actor that sends requests */
static domus_probe *other;

static const domus_pipeline pipeline = {
    .stages = domt_upload_stages, .encodes = domt_upload_encodes, .answer_timeout_ns = 5 * SECOND};
static const domus_pipeline without_cut = {.stages = domt_upload_cutless,
                                           .encodes = domt_upload_encodes};

/* --- the kit ---------------------------------------------------------------------------------- */

static void run_kit_until_idle(void)
{
    domt_net_check_ok(client.kit, domus_testkit_run(client.kit));
}

static domus_address spawn_uploader_on_thread(uint32_t thread)
{
    domus_address address;
    ck_assert_int_eq(domus_outside_spawn_on(domus_testkit_system(client.kit), thread,
                                            &domt_uploader, NULL, &address),
                     0);
    return address;
}

/* Make the actors that use the client: one that sends requests, and others that ask. */
static void make_actors_that_use_client(uint32_t thread)
{
    sender = spawn_uploader_on_thread(thread);
    domt_uploads_now.lender = spawn_uploader_on_thread(2);
    other = domt_new_probe(client.kit);
    domt_uploads_now.to = client.channel;
    domt_uploads_now.written = 0;
    domt_uploads_now.begun = 0;
    domt_uploads_now.error = 0;
    run_kit_until_idle();
}

static void begin_client_with_actors(const domus_pipeline *of, const domus_channel_options *options,
                                     uint32_t thread)
{
    domt_line_client_begin(&client, of, options);
    make_actors_that_use_client(thread);
}

static void ask_line_by_probe(domus_probe *probe, domus_address to, const char *text)
{
    domt_line line = {.body = {{NULL, 0}, 0}};
    snprintf(line.text, sizeof line.text, "%s", text);
    ck_assert_int_eq(domus_probe_ask(probe, to, &domt_line_type, &line), 0);
    run_kit_until_idle();
}

static void ask_sender_of_uploads(const char *text)
{
    ask_line_by_probe(client.probe, sender, text);
}

static void answer_by_peer(const char *text)
{
    domt_net_check_ok(client.kit, domus_peer_send(client.peer, text, strlen(text)));
    run_kit_until_idle();
}

static void expect_peer_received(const char *text)
{
    domt_net_check_ok(client.kit, domus_peer_expect(client.peer, text, strlen(text), SECOND));
}

/* Check that the bytes which the peer has received end with `text`, and remove them. Returns how
 * many there were. */
static size_t expect_peer_received_at_end(const char *text)
{
    size_t size, last = strlen(text);
    const char *got = domus_peer_got(client.peer, &size);
    ck_assert_uint_ge(size, last);
    ck_assert_mem_eq(got + size - last, text, last);
    domus_peer_take(client.peer, size);
    return size;
}

static void expect_probe_got_line(domus_probe *probe, const char *text)
{
    domt_line line;
    domt_net_check_ok(client.kit, domus_probe_expect(probe, &domt_line_type, SECOND, &line));
    ck_assert_str_eq(line.text, text);
}

static void expect_client_got_answer(const char *text)
{
    expect_probe_got_line(client.probe, text);
}

/* Check that the peer has received `sent`, let it answer `text`, and check that the asker gets this
 * answer. */
static void serve_request_and_check_answer(const char *sent, const char *text)
{
    char line[32];
    snprintf(line, sizeof line, "%s\n", text);
    expect_peer_received(sent);
    answer_by_peer(line);
    expect_client_got_answer(text);
}

static void expect_client_got_error(int error)
{
    domt_net_check_ok(client.kit, domus_probe_expect_error(client.probe, error, SECOND));
}

static void advance_kit(uint64_t ns)
{
    domt_net_check_ok(client.kit, domus_testkit_advance(client.kit, ns));
}

static void expect_connection_is_reset(void)
{
    ck_assert_int_eq(domus_peer_expect_reset(client.peer, SECOND), 0);
}

/* Check that the connection can still be used. */
static void check_connection_is_usable(void)
{
    ask_line_by_probe(other, client.channel, "next");
    expect_peer_received("next\n");
    answer_by_peer("yes\n");
    expect_probe_got_line(other, "yes");
    domt_line_client_end(&client);
}

DOMT_TEST(stage_of_a_client_runs_in_a_stage_kit)
{
    static const domt_line head = {.text = "put"};
    domus_piece piece = {.last = false};
    domus_stage_kit *kit;
    domus_stage_message message;
    uint64_t stream = 0;
    size_t size;

    ck_assert_int_eq(domus_stage_kit_new(&pipeline, &kit), 0);
    domus_stage_kit_stream(kit, &stream);
    ck_assert_int_eq(domus_slice_copy("abc", 3, &piece.bytes), 0);
    ck_assert_int_eq(domus_stage_kit_encode(kit, 0, &domus_piece_type, &piece), -EPROTO);
    ck_assert_int_eq(domus_stage_kit_encode(kit, 0, &domt_line_type, &head), 0);
    ck_assert_int_eq(domus_stage_kit_encode(kit, 0, &domus_piece_type, &piece), 0);
    ck_assert_int_eq(domus_stage_kit_cut(kit, 0, -ECANCELED), 0);
    domus_slice_free(piece.bytes);
    ck_assert_mem_eq(domus_stage_kit_output(kit, &size), "put+\n3:abc!ECANCELED\n", 21);
    ck_assert_uint_eq(size, 21);
    ck_assert_int_eq(domus_stage_kit_feed(kit, "seen\n", 5), 0);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 1);
    ck_assert(message.kind == DOMUS_STAGE_ANSWER && !message.has_body);
    domus_stage_kit_free(kit);
}

/* --- in order --------------------------------------------------------------------------------- */

DOMT_TEST(client_sends_request_body_in_pieces)
{
    for (uint32_t thread = 0; thread < 3; thread++) {
        begin_client_with_actors(&pipeline, NULL, thread);
        ask_sender_of_uploads("put 3");
        serve_request_and_check_answer("put+\n3:abc0:", "one");
        ask_sender_of_uploads("put 0");
        serve_request_and_check_answer("put+\n0:", "two");
        ask_sender_of_uploads("tail 4 5");
        serve_request_and_check_answer("put+\n4:abcdT-end\n", "three");
        check_connection_is_usable();
    }
}

DOMT_TEST(no_other_ask_is_sent_within_the_body_of_a_request)
{
    begin_client_with_actors(&pipeline, NULL, 1);
    ask_line_by_probe(other, client.channel, "before");
    ask_sender_of_uploads("put 2000 50");
    ask_line_by_probe(other, client.channel, "behind");
    ask_sender_of_uploads("put 3");
    expect_peer_received("before\nput+\n");
    ck_assert_int_eq(domus_peer_expect_nothing(client.peer, 40 * MS), 0);
    advance_kit(80 * MS);
    ck_assert_uint_eq(expect_peer_received_at_end("0:behind\nput+\n3:abc0:"),
                      2 * 1005 + 2 + 7 + 5 + 5 + 2);
    ck_assert_int_eq(domus_probe_expect_nothing(client.probe, MS), 0);
    answer_by_peer("1\n2\n3\n4\n");
    expect_probe_got_line(other, "1");
    expect_client_got_answer("2");
    expect_probe_got_line(other, "3");
    expect_client_got_answer("4");
    check_connection_is_usable();
}

DOMT_TEST(a_write_waits_for_a_peer_that_does_not_read)
{
    static const domus_channel_options options = {.send_high_bytes = 10000, .send_low_bytes = 2000};

    begin_client_with_actors(&pipeline, &options, 1);
    domus_peer_pause(client.peer);
    ask_sender_of_uploads("put 50000000");
    advance_kit(100 * MS);
    uint64_t before = domt_uploads_now.written;
    ck_assert_uint_lt(before, 5000000);
    advance_kit(500 * MS);
    ck_assert_uint_eq(domt_uploads_now.written, before);
    domus_peer_resume(client.peer);
    advance_kit(5 * MS);
    ck_assert_uint_gt(domt_uploads_now.written, before);
    domus_peer_reset(client.peer);
    expect_client_got_error(-EPIPE);
    domt_line_client_end(&client);
}

DOMT_TEST(wrong_uses_of_requests_are_refused)
{
    begin_client_with_actors(&pipeline, NULL, 1);
    ck_assert_int_eq(domus_probe_ask(client.probe, sender, &domt_misuse_type, NULL), 0);
    run_kit_until_idle();
    expect_peer_received("put+\n5:abcde0:");
    answer_by_peer("x\n");
    expect_client_got_answer("ok");
    check_connection_is_usable();
}

DOMT_TEST(an_end_that_cannot_be_encoded_cuts_the_request)
{
    begin_client_with_actors(&pipeline, NULL, 1);
    ask_sender_of_uploads("bad 3");
    expect_peer_received("put+\n3:abc!EOPNOTSUPP\n");
    expect_client_got_error(-EOPNOTSUPP);
    answer_by_peer("late\n"); /* this answer belongs to the request that was cut */
    check_connection_is_usable();
}

/* --- cuts ------------------------------------------------------------------------------------- */

DOMT_TEST(a_request_whose_asker_gives_up_is_cut)
{
    static const char *const asked[] = {"leave 3", "within 3000 60", "put 3000 60"};
    static const char *const told[] = {"!ECANCELED\n", "!ETIMEDOUT\n", "!ECANCELED\n"};

    for (size_t i = 0; i < 3; i++) {
        begin_client_with_actors(&pipeline, NULL, 1);
        ask_sender_of_uploads(asked[i]);
        if (i == 2)
            ck_assert_int_eq(domus_outside_stop(domus_testkit_system(client.kit), sender), 0);
        advance_kit(250 * MS);
        ck_assert_uint_gt(expect_peer_received_at_end(told[i]), strlen(told[i]) + 4);
        if (i == 0)
            expect_client_got_answer("left");
        else
            expect_client_got_error(i == 1 ? -ETIMEDOUT : -ESTALE);
        answer_by_peer("late\n");
        check_connection_is_usable();
    }
}

DOMT_TEST(cut_request_without_a_text_resets_the_channel)
{
    begin_client_with_actors(&without_cut, NULL, 1);
    ask_sender_of_uploads("leave 3");
    /* this ask waits behind the request, and is never sent */
    ask_line_by_probe(other, client.channel, "behind");
    expect_peer_received("put+\n3:abc");
    expect_client_got_answer("left");
    expect_connection_is_reset();
    domt_net_check_ok(client.kit, domus_probe_expect_error(other, -ENOTCONN, SECOND));
    domt_line_client_end(&client);
}

DOMT_TEST(request_that_its_asker_cuts_is_answered_or_reset)
{
    begin_client_with_actors(&pipeline, NULL, 1);
    ask_sender_of_uploads("stop 3");
    serve_request_and_check_answer("put+\n3:abc!ECANCELED\n", "seen");
    check_connection_is_usable();
    begin_client_with_actors(&without_cut, NULL, 1);
    ask_sender_of_uploads("stop 3");
    expect_peer_received("put+\n3:abc");
    expect_connection_is_reset();
    expect_client_got_error(-EPIPE);
    domt_line_client_end(&client);
}

DOMT_TEST(the_end_of_the_connection_fails_the_request)
{
    for (int i = 0; i < 3; i++) {
        begin_client_with_actors(&pipeline, NULL, 1);
        ask_sender_of_uploads("put 3000 60");
        expect_peer_received("put+\n");
        if (i == 0)
            domus_peer_reset(client.peer);
        else if (i == 1)
            domus_peer_finish(client.peer);
        else
            ck_assert_int_eq(domus_outside_stop(domus_testkit_system(client.kit), client.channel),
                             0);
        expect_client_got_error(-EPIPE);
        if (i != 0)
            expect_connection_is_reset();
        ck_assert(domt_uploads_now.error == -EPIPE || domt_uploads_now.error == -ESTALE);
        domt_expect_actor_gone(client.kit, client.channel);
        domt_line_client_end(&client);
    }
}

DOMT_TEST(a_request_that_has_not_begun_fails_as_any_ask)
{
    static const domus_pipeline narrow = {.stages = domt_upload_stages,
                                          .encodes = domt_upload_encodes,
                                          .inflight_max = 1,
                                          .queue_max = 1};

    begin_client_with_actors(&narrow, NULL, 1);
    ask_line_by_probe(other, client.channel, "first");
    ask_sender_of_uploads("put 3");
    ask_sender_of_uploads("put 3");
    expect_client_got_error(-ENOBUFS);
    domus_peer_reset(client.peer);
    expect_client_got_error(-ENOTCONN);
    domt_net_check_ok(client.kit, domus_probe_expect_error(other, -EPIPE, SECOND));
    ck_assert_uint_eq(domt_uploads_now.begun, 0);
    domt_line_client_end(&client);
}

/* --- early answers ---------------------------------------------------------------------------- */

DOMT_TEST(a_protocol_with_ids_has_no_requests_in_pieces)
{
    static const domus_type *const lines[] = {&domt_line_type, NULL};
    static const domus_line_options as_peer = {.role = DOMUS_ROLE_CLIENT};
    const domus_pipeline by_ids = {
        .stages = (const domus_pipeline_stage[]){{&domus_line_stage, &as_peer}, {NULL, NULL}},
        .encodes = lines,
        .by_id = true};

    begin_client_with_actors(&by_ids, NULL, 1);
    ask_sender_of_uploads("put 3");
    expect_client_got_error(-EOPNOTSUPP);
    domt_line_client_end(&client);
}

DOMT_TEST(an_early_answer_stops_the_writer)
{
    begin_client_with_actors(&pipeline, NULL, 1);
    ask_sender_of_uploads("put 5000 50");
    expect_peer_received("put+\n");
    answer_by_peer("no\n");
    advance_kit(60 * MS);
    ck_assert_int_eq(domt_uploads_now.error, -EALREADY);
    expect_client_got_answer("no");
    ck_assert_uint_eq(expect_peer_received_at_end("!ECANCELED\n"), 1005 + 11);
    check_connection_is_usable();
}

DOMT_TEST(an_early_answer_wakes_a_writer_that_waits)
{
    static const domus_channel_options options = {.send_high_bytes = 10000, .send_low_bytes = 2000};

    begin_client_with_actors(&without_cut, &options, 1);
    domus_peer_pause(client.peer);
    ask_sender_of_uploads("put 50000000");
    advance_kit(100 * MS);
    answer_by_peer("no\n");
    expect_client_got_answer("no");
    ck_assert_int_eq(domt_uploads_now.error, -EALREADY);
    domus_peer_resume(client.peer);
    expect_connection_is_reset();
    domt_line_client_end(&client);
}

DOMT_TEST(a_writer_may_go_on_behind_an_early_answer)
{
    begin_client_with_actors(&pipeline, NULL, 1);
    ask_sender_of_uploads("on 2000 50");
    ask_line_by_probe(other, client.channel, "behind");
    answer_by_peer("soon\n");
    advance_kit(60 * MS);
    ck_assert_int_eq(domt_uploads_now.error, -EALREADY);
    ck_assert_int_eq(domus_probe_expect_nothing(client.probe, MS), 0);
    advance_kit(60 * MS);
    expect_client_got_answer("soon");
    (void)expect_peer_received_at_end("0:behind\n");
    answer_by_peer("yes\n");
    expect_probe_got_line(other, "yes");
    check_connection_is_usable();
}

DOMT_TEST(the_body_of_an_early_answer_is_read_before_the_reset)
{
    begin_client_with_actors(&without_cut, NULL, 1);
    ask_sender_of_uploads("read 5000 20");
    expect_peer_received("put+\n");
    answer_by_peer("no+\n5:hello");
    advance_kit(60 * MS);
    ck_assert_int_eq(domt_uploads_now.error, -EALREADY);
    /* another piece of the request comes, because a request cannot be cut without a text for it */
    ck_assert_int_eq(domus_peer_expect_nothing(client.peer, MS) == 0, false);
    (void)expect_peer_received_at_end("");
    ask_line_by_probe(other, client.channel, "behind");
    answer_by_peer("6: world0:");
    expect_client_got_answer("11");
    expect_connection_is_reset();
    domt_net_check_ok(client.kit, domus_probe_expect_error(other, -ENOTCONN, SECOND));
    domt_line_client_end(&client);
}

/* The asker ends after an early answer, and the peer sends FIN before the channel has noticed
 * that. */
DOMT_TEST(a_cut_in_the_run_of_the_last_byte_is_counted_once)
{
    domt_line_client_begin_ignoring_fin(&client, &pipeline);
    make_actors_that_use_client(1);
    ask_sender_of_uploads("leave 5000 50");
    expect_peer_received("put+\n");
    answer_by_peer("no\n");
    advance_kit(50 * MS);
    expect_client_got_answer("left");
    domus_peer_finish(client.peer);
    advance_kit(300 * MS);
    ask_line_by_probe(other, client.channel, "late");
    domt_net_check_ok(client.kit, domus_probe_expect_error(other, -ENOTCONN, SECOND));
    ck_assert_int_eq(domus_testkit_stop(client.kit), 0);
    domus_testkit_free(client.kit);
}

DOMT_TEST(the_time_for_the_answer_begins_behind_the_body)
{
    begin_client_with_actors(&pipeline, NULL, 1);
    ask_sender_of_uploads("put 1000 8000");
    advance_kit(7900 * MS);
    ck_assert_int_eq(domus_probe_expect_nothing(client.probe, MS), 0);
    advance_kit(4900 * MS);
    ck_assert_int_eq(domus_probe_expect_nothing(client.probe, MS), 0);
    expect_client_got_error(-EPIPE);
    expect_connection_is_reset();
    domt_line_client_end(&client);
}

DOMT_TEST(a_drain_waits_for_the_end_of_a_request)
{
    begin_client_with_actors(&pipeline, NULL, 1);
    ask_sender_of_uploads("put 2000 50");
    expect_peer_received("put+\n");
    /* the stop returns in time, and one channel was cut */
    ck_assert_int_eq(domus_testkit_stop(client.kit), 1);
    domus_testkit_free(client.kit);
}

DOMT_SUITE(120)
