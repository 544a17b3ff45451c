/* Bodies that handlers read piece by piece, that are skipped or bounded, and changes of the
 * pipeline while a body is open. */
#include "tests/runtime/clients.h"
#include "tests/runtime/streams.h"
#include "tests/runtime/uploads.h"
#include "tests/support/sanitizer.h"
#include "tests/support/stages.h"
#include "tests/support/suite.h"

#include <domus/await.h>
#include <domus/connect.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* io/pipelines/body.c: bodies that handlers read piece by piece, bodies that are skipped or
 * bounded, and the ends of bodies. */

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

static void advance_kit(domus_testkit *kit, uint64_t ns)
{
    ck_assert_int_eq(domus_testkit_advance(kit, ns), 0);
}

/* --- bodies ----------------------------------------------------------------------------------- */

DOMT_TEST(bodies_are_read_to_their_end)
{
    domt_streams_check_answers("Q drop\nL5 count\nhelloC count\n5:hello6: world0:Q drop\n", false,
                               "dropped\n5 162322\n11 958916\ndropped\n");
    domt_streams_check_answers("C count\n0:L1 count 3\naC fcount\n1:a0:Q drop\n", false,
                               "0 0\n1 97\n1 97\ndropped\n");
    domt_streams_check_answers("C count\n1:aT-x\nC fcount\n1:aT-y\n", false, "1 97-x\n1 97-y\n");
    domt_streams_check_answers("C count\nT-x\nE count 2\nhello", true, "0 0-x\n5 162322\n");
    domt_streams_check_answers("C over\n1:a0:Q drop\n", false, "read ENODATA\ndropped\n");
    domt_streams_check_answers("L1 over\nbQ drop\n", false, "read ENODATA\ndropped\n");
}

DOMT_TEST(a_body_of_a_request_that_is_alone_is_read)
{
    domt_streams_check_answers("Q drop\nAC count 2\n1:a1:b0:Q drop\nAL1 fcount\naAQ drop\n", false,
                               "dropped\n2 3105\ndropped\n1 97\ndropped\n");
}

DOMT_TEST(a_body_is_read_though_its_request_is_the_last_that_may_begin)
{
    domus_config config;
    domt_pipes_make_config(&config);
    config.channel.requests_max = 1;
    domus_testkit *kit = domt_streams_new_kit(&config, &domt_stream_service);
    domus_peer *peer = domt_pipes_connect_peer(kit);

    domt_streams_send_pieces(kit, peer,
                             "C count\n1:a1:b0:C fcount 1\n1:a1:b0:C drop\n1:a1:b0:Q drop\n", 1);
    domt_pipes_peer_expect(kit, peer, "2 3105\n2 3105\ndropped\ndropped\n");
    domt_pipes_peer_send(kit, peer,
                         "C count\n1:a1:b0:C fcount 1\n1:a1:b0:C drop\n1:a1:b0:Q drop\n");
    domt_pipes_peer_expect(kit, peer, "2 3105\n2 3105\ndropped\ndropped\n");
    domus_peer_finish(peer);
    ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
    domt_pipes_end_kit(kit);
}

DOMT_TEST(a_body_is_read_though_send_queue_is_full)
{
    domus_config config;
    domt_pipes_make_config(&config);
    config.channel.send_high_bytes = 10000;
    config.channel.send_low_bytes = 2000;
    domus_testkit *kit = domt_streams_new_kit(&config, &domt_stream_service);
    domus_peer *peer = domt_pipes_connect_peer(kit);

    domus_peer_pause(peer);
    domt_pipes_peer_send(kit, peer, "Q fgive 5000000\nL6 fcount 20\nabc");
    advance_kit(kit, 10 * MS);
    ck_assert_uint_gt(domt_streams_now.given, 10000);
    ck_assert_uint_eq(domt_streams_now.reads, 0);
    advance_kit(kit, 20 * MS);
    ck_assert_uint_eq(domt_streams_now.reads, 1);
    advance_kit(kit, 20 * MS);
    /* these bytes of the body come while the channel reads no other request */
    domt_pipes_peer_send(kit, peer, "def");
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_uint_eq(domt_streams_now.bytes, 6);
    domus_peer_reset(peer);
    advance_kit(kit, SECOND);
    domt_pipes_end_kit(kit);
}

DOMT_TEST(a_body_has_one_reader_at_a_time)
{
    domt_streams_check_answers("L1 twice\nxQ drop\n", false, "1 120\ndropped\n");
}

DOMT_TEST(a_peer_hears_that_its_body_is_wanted)
{
    domus_testkit *kit = domt_streams_new_kit(NULL, &domt_stream_service);
    domus_peer *peer = domt_pipes_connect_peer(kit);

    domt_pipes_peer_send(kit, peer, "X count 20\n");
    ck_assert_int_eq(domus_peer_expect_nothing(peer, 10 * MS), 0);
    domt_pipes_peer_expect(kit, peer, "go\n");
    domt_pipes_peer_send(kit, peer, "1:a");
    ck_assert_int_eq(domus_peer_expect_nothing(peer, 100 * MS), 0);
    domt_pipes_peer_send(kit, peer, "1:b0:");
    domt_pipes_peer_expect(kit, peer, "2 3105\n");
    /* Two requests with bodies: one waits for its turn, and nobody reads the body of the other
     * one. */
    domt_pipes_peer_send(kit, peer, "C count 50\n1:a0:");
    advance_kit(kit, 10 * MS);
    domt_pipes_peer_send(kit, peer, "X fcount\n");
    domt_pipes_peer_expect(kit, peer, "1 97\ngo\n");
    domt_pipes_peer_send(kit, peer, "0:X drop\n0:Q drop\n");
    domt_pipes_peer_expect(kit, peer, "0 0\ndropped\ndropped\n");
    domt_pipes_end_kit(kit);
}

/* --- what nobody reads ------------------------------------------------------------------------ */

DOMT_TEST(a_body_that_nobody_reads_is_skipped)
{
    domt_streams_check_answers("L5 drop\nhelloC drop\n5:hello6: world0:C one\n1:a1:bT-x\nQ drop\n",
                               false, "dropped\ndropped\none\ndropped\n");
    domt_streams_check_answers("E drop\nhello", true, "dropped\n");
}

/* Send a request that is answered at once, and a body of `size` bytes behind it. Returns whether
 * the next request is answered, too. */
static bool is_request_behind_body_answered(uint64_t skip_max, size_t size, const char *how)
{
    domus_config config;
    domt_pipes_make_config(&config);
    config.channel.skip_max_bytes = skip_max;
    domus_testkit *kit = domt_streams_new_kit(&config, &domt_stream_service);
    domus_peer *peer = domt_pipes_connect_peer(kit);
    char head[64];
    char *body = calloc(1, size + 1);

    ck_assert_ptr_nonnull(body);
    snprintf(head, sizeof head, "L%zu %s\n", size, how);
    domt_pipes_peer_send(kit, peer, head);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_int_eq(domus_peer_send(peer, body, size), 0);
    free(body);
    domt_pipes_peer_send(kit, peer, "Q drop\n");
    domt_pipes_peer_expect(kit, peer, "dropped\n");
    bool skipped = domus_peer_expect(peer, "dropped\n", 8, 100 * MS) == 0;
    if (!skipped)
        ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
    domus_peer_close(peer);
    domt_pipes_end_kit(kit);
    return skipped;
}

DOMT_TEST(unread_body_above_skip_max_ends_channel_behind_the_answer)
{
    ck_assert(is_request_behind_body_answered(10000, 10000, "drop"));
    ck_assert(!is_request_behind_body_answered(10000, 10001, "drop"));
    ck_assert(!is_request_behind_body_answered(0, 1, "drop"));
    ck_assert(is_request_behind_body_answered(1, 1, "fdrop"));
    ck_assert(!is_request_behind_body_answered(100000, 1000000, "fdrop"));
}

DOMT_TEST(an_unread_body_holds_the_peer_up)
{
    enum { BYTES = 8 << 20 };
    domus_testkit *kit = domt_streams_new_kit(NULL, &domt_stream_service);
    domus_peer *peer = domt_pipes_connect_peer(kit);
    char *body = calloc(1, BYTES);
    domus_profile profile;

    ck_assert_ptr_nonnull(body);
    domt_pipes_peer_send(kit, peer, "L8388608 count 500\n");
    ck_assert_int_eq(domus_peer_send(peer, body, BYTES), 0);
    free(body);
    advance_kit(kit, 400 * MS);
    ck_assert_int_eq(domus_system_profile(domus_testkit_system(kit), 0, &profile), 0);
    uint64_t received = profile.received_bytes;
    ck_assert_uint_lt(received, 2 << 20);
    advance_kit(kit, 200 * MS); /* the handler reads one piece of the body in this time */
    ck_assert_uint_eq(domt_streams_now.reads, 1);
    domus_peer_reset(peer);
    /* the channel notices that the handler was cancelled when it receives again */
    advance_kit(kit, 1000 * SECOND);
    ck_assert_uint_eq(domt_pipes_now.closed, 1);
    domt_pipes_end_kit(kit);
}

/* --- ends ------------------------------------------------------------------------------------- */

/* A case: the bytes that a peer sends, whether it then finishes, and all the answers that come
 * before the channel ends. */
typedef struct last_words {
    const char *sent, *answered;
    bool finishes;
} last_words;

static void expect_channel_ends_behind_text(const last_words *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        domus_testkit *kit = domt_streams_new_kit(NULL, &domt_stream_service);
        domus_peer *peer = domt_pipes_connect_peer(kit);
        domt_pipes_peer_send(kit, peer, cases[i].sent);
        if (cases[i].finishes)
            domus_peer_finish(peer);
        domt_pipes_peer_expect(kit, peer, cases[i].answered);
        ck_assert_msg(domus_peer_expect_end(peer, SECOND) == 0, "%s", cases[i].sent);
        domus_peer_close(peer);
        domt_pipes_end_kit(kit);
    }
}

DOMT_TEST(wrong_and_short_bodies_end_the_channel)
{
    static const last_words cases[] = {
        /* the peer finishes within a body, so the read of the handler fails */
        {"C count\n5:hel", "read EPIPE\n", true},
        {"L9 count\nhello", "read EPIPE\n", true},
        {"C fcount\n5:hello", "read EPIPE\n", true},
        {"C count\n", "read EPIPE\n", true},
        {"C count\n12", "read EPIPE\n", true},
        {"C count\nTtra", "read EPIPE\n", true},
        /* the bytes behind the request cannot be a body */
        {"Q drop\nC count\nx:Q drop\n", "dropped\nread EPROTO\n", false},
        {"Q drop\nC fcount\n5:hello123456789:Q drop\n", "dropped\nread EPROTO\n", false},
        /* the bytes cannot be a body, which is skipped because nobody reads it */
        {"C drop\nx:Q drop\n", "dropped\n", false},
    };

    expect_channel_ends_behind_text(cases, sizeof cases / sizeof cases[0]);
}

DOMT_TEST(a_connection_that_is_gone_ends_its_readers)
{
    static const char *const sent[] = {"C count\n5:hello", "C fcount\n5:hello"};

    for (size_t i = 0; i < sizeof sent / sizeof sent[0]; i++) {
        domus_testkit *kit = domt_streams_new_kit(NULL, &domt_stream_service);
        domus_peer *peer = domt_pipes_connect_peer(kit);
        domt_pipes_peer_send(kit, peer, sent[i]);
        ck_assert_int_eq(domus_testkit_run(kit), 0);
        ck_assert_uint_eq(domt_streams_now.reads, 1);
        domus_peer_reset(peer);
        ck_assert_int_eq(domus_testkit_run(kit), 0);
        ck_assert_uint_eq(domt_streams_now.ended, 1);
        ck_assert(domt_streams_now.error == -ECONNRESET || domt_streams_now.error == -ESTALE);
        domt_pipes_end_kit(kit);
    }
}

DOMT_TEST(the_last_request_ends_the_channel_when_all_are_answered)
{
    static const last_words cases[] = {
        {"C fcount 20\n1:a0:ZQ drop\nQ drop\n", "1 97\ndropped\n", false},
        {"C fcount 20\n1:a0:AZQ drop\nQ drop\n", "1 97\ndropped\n", false},
        {"ZC count\n1:a0:Q drop\n", "1 97\n", false},
        {"AZL1 fcount 5\naQ drop\n", "1 97\n", false},
        {"ZC drop\n1:a0:Q drop\n", "dropped\n", false},
        {"Q drop\nL5 flast\n", "dropped\nlast\n", false},
        {"ZC drop\n999999:", "dropped\n", false},
    };

    expect_channel_ends_behind_text(cases, sizeof cases / sizeof cases[0]);
}

DOMT_TEST(body_is_skipped_when_its_request_expires)
{
    domus_testkit *kit = domt_streams_new_kit(NULL, &domt_stream_hasty);
    domus_peer *peer = domt_pipes_connect_peer(kit);

    domt_pipes_peer_send(kit, peer, "C count\n5:hel");
    domt_pipes_peer_expect(kit, peer, "error ETIMEDOUT\n");
    domt_pipes_peer_send(kit, peer, "lo0:C fcount\n");
    domt_pipes_peer_expect(kit, peer, "error ETIMEDOUT\n");
    domt_pipes_peer_send(kit, peer, "0:Q drop\n");
    domt_pipes_peer_expect(kit, peer, "dropped\n");
    domt_pipes_end_kit(kit);
}

/* --- pipe change bodies ----------------------------------------------------------------------- */

/* A change of the pipeline while a body is open: the change is made behind the body of the peer's
 * request, or behind an answer that is sent in pieces; it is refused while a body of an ask to the
 * peer is open. */

/* --- a service -------------------------------------------------------------------------------- */

static const domt_stream_options as_server = {.role = DOMUS_ROLE_SERVER, .cuts = true};
static const domus_pipeline stuffed = {
    .stages = (const domus_pipeline_stage[]){
        {&domt_stuff_stage, NULL}, {&domt_stream_stage, &as_server}, {NULL, NULL}}};

typedef struct change_frame {
    domt_line line;
    domus_slice bytes;
    bool ended;
} change_frame;

static const domt_line ok = {.text = "ok}"};
static int result;

static bool does_line_contain_word(const change_frame *frame, const char *word)
{
    return strstr(frame->line.text, word) != NULL;
}

/* Handle a request "KIND HOW". With "up" in HOW the change of the pipeline is requested first. Then
 * the body is read ("read"), sent back as a stream ("echo"), or left. */
DOMUS_SEQUENCE(change, change_frame)
{
    DOMUS_BEGIN;
    frame->line = *(const domt_line *)message;
    if (does_line_contain_word(frame, "up"))
        result = domus_channel_set_pipeline(
            stack, domus_channel_running(stack), &stuffed,
            does_line_contain_word(frame, "clean") ? DOMUS_PIPELINE_CLEAN : 0);
    if (does_line_contain_word(frame, "echo")) {
        DOMUS_AWAIT(domus_reply_begin(stack, &domt_line_type, &ok, then));
        ck_assert_int_eq(answer->error, 0);
    }
    while (!frame->ended &&
           (does_line_contain_word(frame, "read") || does_line_contain_word(frame, "echo"))) {
        DOMUS_AWAIT(domus_body_read(stack, frame->line.body, then));
        ck_assert_int_eq(answer->error, 0);
        frame->ended = ((const domus_piece *)answer->payload)->last;
        frame->bytes = ((const domus_piece *)answer->payload)->bytes;
        if (does_line_contain_word(frame, "echo")) {
            ck_assert_int_eq(domus_take(stack), 0);
            DOMUS_AWAIT(domus_reply_write(stack, frame->bytes, then));
            ck_assert_int_eq(answer->error, 0);
        }
    }
    return does_line_contain_word(frame, "echo") ? domus_reply_end(stack, NULL, NULL)
                                                 : domus_reply(stack, &domt_line_type, &ok);
    DOMUS_END;
}

static const domus_behaviour service = {
    .name = "changing",
    .kind = DOMUS_CHANNELS,
    .pipeline = &domt_stream_server,
    .on_peer = (const domus_on_peer[]){DOMUS_ON_PEER(&domt_line_type, change, 0), {.type = NULL}}};

/* Requests of the peer. Bytes behind the first body are stuffed: "}]" stands for '}'. */
static const char *const asked[] = {
    "L4 up read\n}~}~Q next}]\n", "L4 up\n}~}~Q next}]\n", "C up read\n2:}~2:}~0:Q next}]\n",
    "C up echo\n4:}~}~0:Q next}]\n", "Q x\nC up echo\n4:}~}~0:Q next}]\n"};
static const char *const answered[] = {"ok}\nok}]\n", "ok}\nok}]\n", "ok}\nok}]\n", NULL, NULL};

DOMT_TEST(a_change_takes_place_behind_the_body_of_its_request)
{
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        size_t size = strlen(asked[i]);
        for (size_t cut = 1; cut < size; cut++) {
            domus_testkit *kit = domt_streams_new_kit(NULL, &service);
            domus_peer *peer = domt_pipes_connect_peer(kit);
            result = 1;
            ck_assert_int_eq(domus_peer_send(peer, asked[i], cut), 0);
            ck_assert_int_eq(domus_testkit_run(kit), 0);
            ck_assert_int_eq(domus_peer_send(peer, asked[i] + cut, size - cut), 0);
            if (answered[i] != NULL) {
                domt_pipes_peer_expect(kit, peer, answered[i]);
            } else { /* the answer is a stream, whose pieces depend on how the request was cut */
                ck_assert_int_eq(domus_testkit_run(kit), 0);
                const char *got = domus_peer_got(peer, &size);
                ck_assert_uint_ge(size, 12);
                ck_assert_mem_eq(got + size - 7, "0:ok}]\n", 7);
                /* the stream was sent by the old stages, without stuffing */
                ck_assert_ptr_null(memmem(got, size - 7, "}]", 2));
                size = strlen(asked[i]);
            }
            ck_assert_int_eq(result, 0);
            domus_testkit_free(kit);
        }
    }
}

DOMT_TEST(clean_change_resets_if_bytes_came_behind_the_body)
{
    static const char *const sent[] = {"L4 up clean read\n}~}~", "L4 up clean read\n}~}~Q"};

    for (size_t i = 0; i < 2; i++) {
        domus_testkit *kit = domt_streams_new_kit(NULL, &service);
        domus_peer *peer = domt_pipes_connect_peer(kit);
        domt_pipes_peer_send(kit, peer, sent[i]);
        if (i == 0) {
            domt_pipes_peer_expect(kit, peer, "ok}\n");
            domt_pipes_peer_send(kit, peer, "Q next}]\n");
            domt_pipes_peer_expect(kit, peer, "ok}]\n");
        } else {
            ck_assert_int_eq(domus_peer_expect_reset(peer, SECOND), 0);
        }
        domus_testkit_free(kit);
    }
}

/* --- a client --------------------------------------------------------------------------------- */

static const domt_stream_options as_client = {.role = DOMUS_ROLE_CLIENT, .cuts = true};
static const domus_pipeline before = {.stages = domt_upload_stages, .encodes = domt_upload_encodes};
static const domus_pipeline behind = {
    .stages = (const domus_pipeline_stage[]){{&domt_stuff_stage, NULL},
                                             {&domt_stream_stage, &as_client},
                                             {NULL, NULL}},
    .encodes = domt_upload_encodes};
static const domus_type change_type = {.name = "change"}, connect_type = {.name = "connect"};

static int set_pipeline_in_handler(domus_stack *stack, void *self, const void *payload)
{
    result = domus_channel_set_pipeline(stack, domus_channel_running(stack), &behind, 0);
    return 0;
}

static const domus_behaviour line = {
    .name = "line",
    .kind = DOMUS_CHANNELS,
    .pipeline = &before,
    .on = (const domus_on[]){{&change_type, set_pipeline_in_handler, 0}, {0}}};

static int record_connected_channel(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, 0);
    domt_uploads_now.to = ((const domus_connected *)answer->payload)->channel;
    return 0;
}

static int connect_to_peer(domus_stack *stack, void *self, const void *payload)
{
    const domus_connect_options options = {.behaviour = &line};
    return domus_connect(stack, "10.0.0.9:1", &options, record_connected_channel);
}

static const domus_behaviour dialler = {
    .name = "dialler",
    .kind = DOMUS_CHANNELS,
    .on = (const domus_on[]){{&connect_type, connect_to_peer, 0}, {0}}};

static int let_channel_change_pipeline(domus_testkit *kit)
{
    result = 1;
    ck_assert_int_eq(
        domus_outside_notice(domus_testkit_system(kit), domt_uploads_now.to, &change_type, NULL),
        0);
    domt_net_check_ok(kit, domus_testkit_run(kit));
    return result;
}

static void send_text_from_peer(domus_testkit *kit, domus_peer *peer, const char *text)
{
    domt_net_check_ok(kit, domus_peer_send(peer, text, strlen(text)));
    domt_net_check_ok(kit, domus_testkit_run(kit));
}

DOMT_TEST(a_client_does_not_change_within_bodies_of_asks)
{
    domus_peer_listener *listener;
    domus_address address, uploader;
    domus_peer *peer;
    domt_line question = {.text = "read 1000 50"};
    domus_testkit *kit = domt_net_new_echo_kit("10.0.0.3:80", 7);
    domus_system *system = domus_testkit_system(kit);
    domus_probe *probe = domt_new_probe(kit);

    domt_net_check_ok(kit, domus_peer_listen(kit, "10.0.0.9:1", 0, &listener));
    ck_assert_int_eq(domus_outside_spawn(system, &dialler, NULL, &address), 0);
    ck_assert_int_eq(domus_outside_notice(system, address, &connect_type, NULL), 0);
    domt_net_check_ok(kit, domus_peer_accept(listener, SECOND, &peer));
    domt_net_check_ok(kit, domus_testkit_run(kit));
    ck_assert_int_eq(domus_outside_spawn(system, &domt_uploader, NULL, &uploader), 0);
    ck_assert_int_eq(domus_probe_ask(probe, uploader, &domt_line_type, &question), 0);
    domt_net_check_ok(kit, domus_peer_expect(peer, "put+\n", 5, SECOND));
    /* the change is refused, because the body of the request is open */
    ck_assert_int_eq(let_channel_change_pipeline(kit), -EBUSY);
    send_text_from_peer(kit, peer, "early+\n2:hi");
    /* the change is refused, because only the begin of an early answer has come, so the ask is not
     * over */
    ck_assert_int_eq(let_channel_change_pipeline(kit), -EBUSY);
    domt_net_check_ok(kit, domus_testkit_advance(kit, 60 * MS));
    /* the change is refused, because the body of the answer is open */
    ck_assert_int_eq(let_channel_change_pipeline(kit), -EBUSY);
    send_text_from_peer(kit, peer, "0:");
    domt_net_check_ok(kit, domus_probe_expect(probe, &domt_line_type, SECOND, &question));
    ck_assert_int_eq(let_channel_change_pipeline(kit), 0);
    size_t size;
    (void)domus_peer_got(peer, &size);
    domus_peer_take(peer, size);
    snprintf(question.text, sizeof question.text, "}");
    ck_assert_int_eq(domus_probe_ask(probe, domt_uploads_now.to, &domt_line_type, &question), 0);
    domt_net_check_ok(kit, domus_peer_expect(peer, "}]\n", 3, SECOND));
    domus_testkit_free(kit);
}

DOMT_SUITE(120)
