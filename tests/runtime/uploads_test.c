/* io/pipelines/upload.c: requests of this side that leave in pieces, to a peer that is a script of
 * the test: their order, what cuts them, early answers, and what bounds them. */
#include "tests/runtime/clients.h"
#include "tests/runtime/streams.h"
#include "tests/support/suite.h"

#include <domus/await.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

static domt_line_client client;
static domus_address sender; /* the actor that asks */
static domus_probe *other;

static const domt_stream_options as_client = {.role = DOMUS_ROLE_CLIENT, .cuts = true};
static const domus_type *const encodes[] = {&domt_line_type, &domus_piece_type, NULL};
static const domus_pipeline_stage stages[] = {{&domt_stream_stage, &as_client}, {NULL, NULL}};
static const domus_pipeline_stage cutless[] = {{&domt_cutless_stage, &as_client}, {NULL, NULL}};
static const domus_pipeline pipeline = {
    .stages = stages, .encodes = encodes, .answer_timeout_ns = 5 * SECOND};
static const domus_pipeline without_cut = {.stages = cutless, .encodes = encodes};

/* --- an actor that asks in pieces ---------------------------------------------------------------
 */

#define PIECE 1000u

typedef struct send_frame {
    char how[16];
    uint64_t left; /* bytes to send */
    uint64_t wait_ns;
    uint32_t pieces; /* that were sent */
    int error;       /* of the last write */
    domus_request request;
    domus_body body;
} send_frame;

static _Atomic uint64_t written; /* bytes that were written */
static _Atomic int write_error;  /* of the last write that has failed */
static _Atomic uint32_t begun;

static bool is(const send_frame *frame, const char *how)
{
    return strcmp(frame->how, how) == 0;
}

static domus_slice piece_of(uint64_t left)
{
    static const char text[PIECE] = "abcdefghij";
    domus_slice slice;

    ck_assert_int_eq(domus_slice_copy(text, left < PIECE ? (size_t)left : PIECE, &slice), 0);
    return slice;
}

static int reply_text(domus_stack *stack, const char *text)
{
    domt_line line = {.body = {{NULL, 0}, 0}};

    snprintf(line.text, sizeof line.text, "%s", text);
    return domus_reply(stack, &domt_line_type, &line);
}

static const domt_line head = {.text = "put"};
static const domt_line trailer = {.text = "-end"};

/* The message is "HOW BYTES MS": MS lie before each piece. HOW: `put`; `tail`, with a trailer;
 * `leave`, which ends its conversation when all is written; `stop`, which cuts the request when all
 * is written; `on`, which goes on when the answer has come; `within`, for 100 ms in all; `bad`,
 * whose trailer the stage does not know; `read`, which reads the body of the answer.
 * The answer is the peer's, and for `read` the number of its bytes. */
DOMUS_SEQUENCE(send, send_frame)
{
    unsigned long long bytes = 0, wait_ms = 0;

    DOMUS_BEGIN;
    ck_assert_int_ge(
        sscanf(((const domt_line *)message)->text, "%15s %llu %llu", frame->how, &bytes, &wait_ms),
        2);
    frame->left = bytes;
    frame->wait_ns = wait_ms * MS;
    DOMUS_AWAIT(domus_request_begin(stack, client.channel, &domt_line_type, &head,
                                    is(frame, "within") ? 100 * MS : 0, then));
    if (answer->error != 0)
        return answer->error;
    ck_assert_ptr_eq(answer->type, &domus_request_type);
    frame->request = *(const domus_request *)answer->payload;
    begun++;
    while (frame->error == 0 && frame->left != 0) {
        if (frame->wait_ns != 0)
            DOMUS_SLEEP(frame->wait_ns);
        DOMUS_AWAIT(domus_request_write(stack, frame->request, piece_of(frame->left), then));
        frame->error = is(frame, "on") && answer->error == -EALREADY ? 0 : answer->error;
        if (answer->error != 0)
            write_error = answer->error;
        written += frame->left < PIECE ? frame->left : PIECE;
        frame->left -= frame->left < PIECE ? frame->left : PIECE;
    }
    if (is(frame, "leave"))
        return reply_text(stack, "left");
    if (frame->error != 0 || is(frame, "stop"))
        DOMUS_AWAIT(domus_request_cut(stack, frame->request, then));
    else if (is(frame, "tail"))
        DOMUS_AWAIT(domus_request_end(stack, frame->request, &domt_trailer_type, &trailer, then));
    else if (is(frame, "bad"))
        DOMUS_AWAIT(domus_request_end(stack, frame->request, &domus_packet_type,
                                      &(domus_packet){{NULL, 0, 0}}, then));
    else
        DOMUS_AWAIT(domus_request_end(stack, frame->request, NULL, NULL, then));
    if (answer->error != 0)
        return answer->error;
    if (!is(frame, "read"))
        return reply_text(stack, ((const domt_line *)answer->payload)->text);
    frame->body = ((const domt_line *)answer->payload)->body;
    frame->left = 0;
    for (;;) {
        DOMUS_AWAIT(domus_body_read(stack, frame->body, then));
        if (answer->error != 0)
            return answer->error;
        frame->left += ((const domus_piece *)answer->payload)->bytes.size;
        if (((const domus_piece *)answer->payload)->last)
            break;
    }
    char text[64];
    snprintf(text, sizeof text, "%llu", (unsigned long long)frame->left);
    return reply_text(stack, text);
    DOMUS_END;
}

/* --- misuse, and a stream that another actor writes ---------------------------------------------
 */

static const domus_type misuse_type = {.name = "misuse"};
static const domus_type lend_type = {.name = "lend", .size = sizeof(domus_stream)};
static domus_address lender;

#define EXPECT(expected) ck_assert_int_eq(answer->error, expected)

DOMUS_SEQUENCE(misuse, send_frame)
{
    domus_request wrong = frame->request;

    DOMUS_BEGIN;
    (void)message;
    DOMUS_AWAIT(domus_request_begin(stack, domus_self(stack), &domt_line_type, &head, 0, then));
    EXPECT(-EOPNOTSUPP); /* no channel */
    DOMUS_AWAIT(domus_request_begin(stack, client.channel, &domt_trailer_type, &head, 0, then));
    EXPECT(-EOPNOTSUPP); /* not in `encodes` */
    DOMUS_AWAIT(domus_request_begin(stack, client.channel, &domus_piece_type,
                                    &(domus_piece){{NULL, 0, 0}, false}, 0, then));
    EXPECT(-EPROTO); /* the stage does not take it as a head */
    ck_assert_uint_eq(domus_pending(stack), 0);
    DOMUS_AWAIT(domus_request_begin(stack, client.channel, &domt_line_type, &head, 0, then));
    EXPECT(0);
    frame->request = *(const domus_request *)answer->payload;
    ck_assert_uint_eq(domus_pending(stack), 1); /* its answer */
    ck_assert_int_eq(domus_stream_begin(stack, frame->request.stream, &domt_line_type, &head, then),
                     -EINVAL);
    DOMUS_AWAIT(domus_request_write(stack, frame->request, (domus_slice){NULL, 0, 0}, then));
    EXPECT(0);
    wrong = frame->request;
    wrong.stream.number++;
    DOMUS_AWAIT(domus_request_write(stack, wrong, piece_of(1), then));
    EXPECT(-EPIPE);
    wrong = frame->request;
    wrong.serial++;
    ck_assert_int_eq(domus_request_end(stack, wrong, NULL, NULL, then), -ENOENT);
    ck_assert_int_eq(domus_request_cut(stack, wrong, then), -ENOENT);
    DOMUS_AWAIT(domus_ask(stack, lender, &lend_type, &frame->request.stream, then));
    EXPECT(0);
    DOMUS_AWAIT(domus_request_end(stack, frame->request, NULL, NULL, then));
    EXPECT(0);
    ck_assert_int_eq(domus_request_end(stack, frame->request, NULL, NULL, then), -ENOENT);
    DOMUS_AWAIT(domus_request_write(stack, frame->request, piece_of(1), then));
    EXPECT(-EPIPE);
    return reply_text(stack, "ok");
    DOMUS_END;
}

DOMUS_SEQUENCE(lend, domus_stream)
{
    DOMUS_BEGIN;
    *frame = *(const domus_stream *)message;
    DOMUS_AWAIT(domus_stream_write(stack, *frame, piece_of(5), then));
    EXPECT(0);
    return domus_reply(stack, &misuse_type, NULL);
    DOMUS_END;
}

static const domus_behaviour sending = {
    .name = "sending",
    .on = (const domus_on[]){DOMUS_ON(&domt_line_type, send),
                             DOMUS_ON(&misuse_type, misuse),
                             DOMUS_ON(&lend_type, lend),
                             {NULL, NULL, 0}},
};

/* --- the kit ------------------------------------------------------------------------------------
 */

static domus_address spawn_on(uint32_t thread)
{
    domus_address address;

    ck_assert_int_eq(
        domus_outside_spawn_on(domus_testkit_system(client.kit), thread, &sending, NULL, &address),
        0);
    return address;
}

static void begin(const domus_pipeline *of, const domus_channel_options *options, uint32_t thread)
{
    domt_line_client_begin(&client, of, options);
    sender = spawn_on(thread);
    lender = spawn_on(2);
    other = domt_new_probe(client.kit);
    written = 0;
    begun = 0;
    write_error = 0;
    domt_net_ok(client.kit, domus_testkit_run(client.kit));
}

static void ask_by(domus_probe *probe, domus_address to, const char *text)
{
    domt_line line = {.body = {{NULL, 0}, 0}};

    snprintf(line.text, sizeof line.text, "%s", text);
    ck_assert_int_eq(domus_probe_ask(probe, to, &domt_line_type, &line), 0);
    domt_net_ok(client.kit, domus_testkit_run(client.kit));
}

static void ask(const char *text)
{
    ask_by(client.probe, sender, text);
}

static void answer_by(const char *text)
{
    domt_net_ok(client.kit, domus_peer_send(client.peer, text, strlen(text)));
    domt_net_ok(client.kit, domus_testkit_run(client.kit));
}

static void expect_sent(const char *text)
{
    domt_net_ok(client.kit, domus_peer_expect(client.peer, text, strlen(text), SECOND));
}

/* Let the peer forget what it has got. */
static void forget_sent(void)
{
    size_t size;

    (void)domus_peer_got(client.peer, &size);
    domus_peer_take(client.peer, size);
}

static void expect_by(domus_probe *probe, const char *text)
{
    domt_line line;

    domt_net_ok(client.kit, domus_probe_expect(probe, &domt_line_type, SECOND, &line));
    ck_assert_str_eq(line.text, text);
}

static void expect(const char *text)
{
    expect_by(client.probe, text);
}

static void expect_error(int error)
{
    domt_net_ok(client.kit, domus_probe_expect_error(client.probe, error, SECOND));
}

static void pass(uint64_t ns)
{
    domt_net_ok(client.kit, domus_testkit_advance(client.kit, ns));
}

static void expect_reset(void)
{
    ck_assert_int_eq(domus_peer_expect_reset(client.peer, SECOND), 0);
}

/* Hold that the connection still works. */
static void hold_goes_on(void)
{
    ask_by(other, client.channel, "next");
    expect_sent("next\n");
    answer_by("yes\n");
    expect_by(other, "yes");
    domt_line_client_end(&client);
}

/* --- in order -----------------------------------------------------------------------------------
 */

START_TEST(requests_leave_in_pieces)
{
    for (uint32_t thread = 0; thread < 3; thread++) {
        begin(&pipeline, NULL, thread);
        ask("put 3");
        expect_sent("put+\n3:abc0:");
        answer_by("one\n");
        expect("one");
        ask("put 0");
        expect_sent("put+\n0:");
        answer_by("two\n");
        expect("two");
        ask("tail 4 5");
        expect_sent("put+\n4:abcdT-end\n");
        answer_by("three\n");
        expect("three");
        hold_goes_on();
    }
}
END_TEST

START_TEST(nothing_is_asked_within_a_body)
{
    begin(&pipeline, NULL, 1);
    ask_by(other, client.channel, "before");
    ask("put 2000 50");
    ask_by(other, client.channel, "behind");
    ask("put 3");
    expect_sent("before\nput+\n");
    ck_assert_int_eq(domus_peer_expect_nothing(client.peer, 40 * MS), 0);
    pass(80 * MS);
    size_t size;
    const char *got = domus_peer_got(client.peer, &size);
    ck_assert_uint_eq(size, 2 * 1005 + 2 + 7 + 5 + 5 + 2);
    ck_assert_mem_eq(got + size - 21, "0:behind\nput+\n3:abc0:", 21);
    ck_assert_int_eq(domus_probe_expect_nothing(client.probe, MS), 0);
    forget_sent();
    answer_by("1\n2\n3\n4\n");
    expect_by(other, "1");
    expect("2");
    expect_by(other, "3");
    expect("4");
    hold_goes_on();
}
END_TEST

START_TEST(a_write_waits_for_a_peer_that_does_not_read)
{
    static const domus_channel_options options = {.send_high_bytes = 10000, .send_low_bytes = 2000};

    begin(&pipeline, &options, 1);
    domus_peer_pause(client.peer);
    ask("put 50000000");
    pass(100 * MS);
    uint64_t before = written;
    ck_assert_uint_lt(before, 5000000);
    pass(500 * MS);
    ck_assert_uint_eq(written, before);
    domus_peer_resume(client.peer);
    pass(5 * MS);
    ck_assert_uint_gt(written, before);
    domus_peer_reset(client.peer);
    expect_error(-EPIPE);
    domt_line_client_end(&client);
}
END_TEST

START_TEST(wrong_uses_are_refused)
{
    begin(&pipeline, NULL, 1);
    ck_assert_int_eq(domus_probe_ask(client.probe, sender, &misuse_type, NULL), 0);
    domt_net_ok(client.kit, domus_testkit_run(client.kit));
    expect_sent("put+\n5:abcde0:");
    answer_by("x\n");
    expect("ok");
    hold_goes_on();
}
END_TEST

START_TEST(an_end_that_cannot_be_encoded_cuts_the_request)
{
    begin(&pipeline, NULL, 1);
    ask("bad 3");
    expect_sent("put+\n3:abc!EOPNOTSUPP\n");
    expect_error(-EOPNOTSUPP);
    answer_by("late\n"); /* to the request that was cut */
    hold_goes_on();
}
END_TEST

/* --- cuts ---------------------------------------------------------------------------------------
 */

START_TEST(a_request_whose_asker_gives_up_is_cut)
{
    static const char *const asked[] = {"leave 3", "within 3000 60", "put 3000 60"};
    static const char *const told[] = {"!ECANCELED\n", "!ETIMEDOUT\n", "!ECANCELED\n"};

    for (size_t i = 0; i < 3; i++) {
        begin(&pipeline, NULL, 1);
        ask(asked[i]);
        if (i == 2)
            ck_assert_int_eq(domus_outside_stop(domus_testkit_system(client.kit), sender), 0);
        pass(250 * MS);
        size_t size, told_size = strlen(told[i]);
        const char *got = domus_peer_got(client.peer, &size);
        ck_assert_uint_gt(size, told_size + 4);
        ck_assert_mem_eq(got + size - told_size, told[i], told_size);
        forget_sent();
        if (i == 0)
            expect("left");
        else
            expect_error(i == 1 ? -ETIMEDOUT : -ESTALE);
        answer_by("late\n");
        hold_goes_on();
    }
}
END_TEST

START_TEST(without_a_text_for_cuts_the_channel_is_reset)
{
    begin(&without_cut, NULL, 1);
    ask("leave 3");
    ask_by(other, client.channel, "behind"); /* never sent */
    expect_sent("put+\n3:abc");
    expect("left");
    expect_reset();
    domt_net_ok(client.kit, domus_probe_expect_error(other, -ENOTCONN, SECOND));
    domt_line_client_end(&client);
}
END_TEST

START_TEST(a_cut_by_the_asker_is_answered)
{
    begin(&pipeline, NULL, 1);
    ask("stop 3");
    expect_sent("put+\n3:abc!ECANCELED\n");
    answer_by("seen\n");
    expect("seen");
    hold_goes_on();
    begin(&without_cut, NULL, 1);
    ask("stop 3");
    expect_sent("put+\n3:abc");
    expect_reset();
    expect_error(-EPIPE);
    domt_line_client_end(&client);
}
END_TEST

START_TEST(the_end_of_the_connection_fails_the_request)
{
    for (int i = 0; i < 3; i++) {
        begin(&pipeline, NULL, 1);
        ask("put 3000 60");
        expect_sent("put+\n");
        if (i == 0)
            domus_peer_reset(client.peer);
        else if (i == 1)
            domus_peer_finish(client.peer);
        else
            ck_assert_int_eq(domus_outside_stop(domus_testkit_system(client.kit), client.channel),
                             0);
        expect_error(-EPIPE);
        if (i != 0)
            expect_reset();
        ck_assert(write_error == -EPIPE || write_error == -ESTALE);
        domt_expect_gone(client.kit, client.channel);
        domt_line_client_end(&client);
    }
}
END_TEST

START_TEST(a_request_that_has_not_begun_fails_as_any_ask)
{
    static const domus_pipeline narrow = {
        .stages = stages, .encodes = encodes, .inflight_max = 1, .queue_max = 1};

    begin(&narrow, NULL, 1);
    ask_by(other, client.channel, "first");
    ask("put 3");
    ask("put 3");
    expect_error(-ENOBUFS);
    domus_peer_reset(client.peer);
    expect_error(-ENOTCONN);
    domt_net_ok(client.kit, domus_probe_expect_error(other, -EPIPE, SECOND));
    ck_assert_uint_eq(begun, 0);
    domt_line_client_end(&client);
}
END_TEST

/* --- early answers ------------------------------------------------------------------------------
 */

START_TEST(an_early_answer_stops_the_writer)
{
    begin(&pipeline, NULL, 1);
    ask("put 5000 50");
    expect_sent("put+\n");
    answer_by("no\n");
    pass(60 * MS);
    ck_assert_int_eq(write_error, -EALREADY);
    expect("no");
    size_t size;
    const char *got = domus_peer_got(client.peer, &size);
    ck_assert_uint_eq(size, 1005 + 11);
    ck_assert_mem_eq(got + 1005, "!ECANCELED\n", 11);
    forget_sent();
    hold_goes_on();
}
END_TEST

START_TEST(an_early_answer_wakes_a_writer_that_waits)
{
    static const domus_channel_options options = {.send_high_bytes = 10000, .send_low_bytes = 2000};

    begin(&without_cut, &options, 1);
    domus_peer_pause(client.peer);
    ask("put 50000000");
    pass(100 * MS);
    answer_by("no\n");
    expect("no");
    ck_assert_int_eq(write_error, -EALREADY);
    domus_peer_resume(client.peer);
    expect_reset();
    domt_line_client_end(&client);
}
END_TEST

START_TEST(a_writer_may_go_on_behind_an_early_answer)
{
    begin(&pipeline, NULL, 1);
    ask("on 2000 50");
    ask_by(other, client.channel, "behind");
    answer_by("soon\n");
    pass(60 * MS);
    ck_assert_int_eq(write_error, -EALREADY);
    ck_assert_int_eq(domus_probe_expect_nothing(client.probe, MS), 0);
    pass(60 * MS);
    expect("soon");
    size_t size;
    const char *got = domus_peer_got(client.peer, &size);
    ck_assert_mem_eq(got + size - 9, "0:behind\n", 9);
    forget_sent();
    answer_by("yes\n");
    expect_by(other, "yes");
    hold_goes_on();
}
END_TEST

START_TEST(the_body_of_an_early_answer_is_read_before_the_reset)
{
    begin(&without_cut, NULL, 1);
    ask("read 5000 20");
    expect_sent("put+\n");
    answer_by("no+\n5:hello");
    pass(60 * MS);
    ck_assert_int_eq(write_error, -EALREADY);
    ck_assert_int_eq(domus_peer_expect_nothing(client.peer, MS) == 0, false); /* its piece */
    forget_sent();
    ask_by(other, client.channel, "behind");
    answer_by("6: world0:");
    expect("11");
    expect_reset();
    domt_net_ok(client.kit, domus_probe_expect_error(other, -ENOTCONN, SECOND));
    domt_line_client_end(&client);
}
END_TEST

START_TEST(the_time_for_the_answer_begins_behind_the_body)
{
    begin(&pipeline, NULL, 1);
    ask("put 1000 8000");
    pass(7900 * MS);
    ck_assert_int_eq(domus_probe_expect_nothing(client.probe, MS), 0);
    pass(4900 * MS);
    ck_assert_int_eq(domus_probe_expect_nothing(client.probe, MS), 0);
    expect_error(-EPIPE);
    expect_reset();
    domt_line_client_end(&client);
}
END_TEST

START_TEST(a_drain_waits_for_the_end_of_a_request)
{
    begin(&pipeline, NULL, 1);
    ask("put 2000 50");
    expect_sent("put+\n");
    ck_assert_int_eq(domus_testkit_stop(client.kit), 1); /* within the time of the test */
    domus_testkit_free(client.kit);
}
END_TEST

DOMT_MAIN("uploads", 120, requests_leave_in_pieces, nothing_is_asked_within_a_body,
          a_write_waits_for_a_peer_that_does_not_read, wrong_uses_are_refused,
          an_end_that_cannot_be_encoded_cuts_the_request, a_request_whose_asker_gives_up_is_cut,
          without_a_text_for_cuts_the_channel_is_reset, a_cut_by_the_asker_is_answered,
          the_end_of_the_connection_fails_the_request,
          a_request_that_has_not_begun_fails_as_any_ask, an_early_answer_stops_the_writer,
          an_early_answer_wakes_a_writer_that_waits, a_writer_may_go_on_behind_an_early_answer,
          the_body_of_an_early_answer_is_read_before_the_reset,
          the_time_for_the_answer_begins_behind_the_body, a_drain_waits_for_the_end_of_a_request)
