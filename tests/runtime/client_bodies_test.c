/* Bodies of answers, which actors on the asking side read piece by piece (io/pipelines/body.c):
 * their order, which are skipped, and what ends their connection. */
#include "tests/runtime/clients.h"
#include "tests/runtime/streams.h"
#include "tests/support/suite.h"

#include <domus/await.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

static domt_line_client client;
static domus_address fetcher;

static const domt_stream_options as_client = {.role = DOMUS_ROLE_CLIENT};
static const domus_type *const encodes[] = {&domt_line_type, NULL};
static const domus_pipeline_stage stages[] = {{&domt_stream_stage, &as_client}, {NULL, NULL}};
static const domus_pipeline pipeline = {.stages = stages, .encodes = encodes};
static const domus_pipeline one_by_one = {
    .stages = stages, .encodes = encodes, .inflight_max = 1, .answer_timeout_ns = 2 * SECOND};

/* --- an actor that asks, and reads what it gets ----------------------------------------------- */

typedef struct fetch_frame {
    uint64_t wait_ns; /* pause of the actor before each read of a piece, in ns */
    bool leaves;      /* true: the actor leaves the body unread */
    domus_body body;
    uint64_t bytes;
    domt_line trailer;
    bool ended;
} fetch_frame;

static int reply_line_with_text(domus_stack *stack, const char *text)
{
    domt_line line = {.body = {{NULL, 0}, 0}};

    snprintf(line.text, sizeof line.text, "%s", text);
    return domus_reply(stack, &domt_line_type, &line);
}

static int reply_count_and_trailer(domus_stack *stack, const fetch_frame *frame)
{
    char text[64];

    snprintf(text, sizeof text, "%llu%.16s", (unsigned long long)frame->bytes, frame->trailer.text);
    return reply_line_with_text(stack, text);
}

/* Ask the peer for the line in the message, and read the body of the answer. The first letter of
 * the line says how: "w" waits for 100 ms before each piece, and "l" leaves the body unread. */
DOMUS_SEQUENCE(fetch, fetch_frame)
{
    DOMUS_BEGIN;
    frame->wait_ns = ((const domt_line *)message)->text[0] == 'w' ? 100 * MS : 0;
    frame->leaves = ((const domt_line *)message)->text[0] == 'l';
    DOMUS_ASK(client.channel, &domt_line_type, message);
    if (answer->error != 0)
        return answer->error;
    frame->body = ((const domt_line *)answer->payload)->body;
    if (frame->leaves || frame->body.number == 0)
        return reply_line_with_text(stack, ((const domt_line *)answer->payload)->text);
    while (!frame->ended) {
        if (frame->wait_ns != 0)
            DOMUS_SLEEP(frame->wait_ns);
        DOMUS_AWAIT(domus_body_read(stack, frame->body, then));
        if (answer->error != 0)
            return answer->error;
        if (answer->type == &domt_trailer_type) {
            frame->trailer = *(const domt_line *)answer->payload;
            break;
        }
        frame->bytes += ((const domus_piece *)answer->payload)->bytes.size;
        frame->ended = ((const domus_piece *)answer->payload)->last;
    }
    return reply_count_and_trailer(stack, frame);
    DOMUS_END;
}

static const domus_behaviour fetching = {
    .name = "fetching", .on = (const domus_on[]){DOMUS_ON(&domt_line_type, fetch), {0}}};

/* Connect a channel, and spawn an actor that asks it from another thread. */
static void begin_client_with_fetcher(const domus_pipeline *of,
                                      const domus_channel_options *options)
{
    domt_line_client_begin(&client, of, options);
    ck_assert_int_eq(
        domus_outside_spawn_on(domus_testkit_system(client.kit), 1, &fetching, NULL, &fetcher), 0);
    domt_net_check_ok(client.kit, domus_testkit_run(client.kit));
}

static void ask_fetcher_by_probe(const char *text)
{
    domt_line line = {.body = {{NULL, 0}, 0}};

    snprintf(line.text, sizeof line.text, "%s", text);
    ck_assert_int_eq(domus_probe_ask(client.probe, fetcher, &domt_line_type, &line), 0);
    domt_net_check_ok(client.kit, domus_testkit_run(client.kit));
}

static void answer_by_peer(const char *text)
{
    domt_net_check_ok(client.kit, domus_peer_send(client.peer, text, strlen(text)));
}

static void expect_peer_received(const char *text)
{
    domt_net_check_ok(client.kit, domus_peer_expect(client.peer, text, strlen(text), SECOND));
}

static void expect_probe_got_answer(const char *text)
{
    domt_line line;

    domt_net_check_ok(client.kit, domus_probe_expect(client.probe, &domt_line_type, SECOND, &line));
    ck_assert_str_eq(line.text, text);
}

static void expect_probe_got_error(int error, uint64_t within_ns)
{
    domt_net_check_ok(client.kit, domus_probe_expect_error(client.probe, error, within_ns));
}

/* --- bodies ----------------------------------------------------------------------------------- */

DOMT_TEST(client_reads_bodies_of_answers)
{
    begin_client_with_fetcher(&pipeline, NULL);
    ask_fetcher_by_probe("a");
    ask_fetcher_by_probe("wb");
    ask_fetcher_by_probe("c");
    expect_peer_received("a\nwb\nc\n");
    answer_by_peer("one+\n5:hello");
    ck_assert_int_eq(domus_probe_expect_nothing(client.probe, 10 * MS), 0);
    answer_by_peer("6: world0:two+\n2:hiT-x\nthree\n");
    expect_probe_got_answer("11");
    expect_probe_got_answer("2-x");
    expect_probe_got_answer("three");
    domt_line_client_end(&client);
}

DOMT_TEST(a_connection_is_busy_until_its_body_has_ended)
{
    begin_client_with_fetcher(&one_by_one, NULL);
    ask_fetcher_by_probe("wa");
    ask_fetcher_by_probe("b");
    expect_peer_received("wa\n");
    answer_by_peer("one+\n1:x");
    ck_assert_int_eq(domus_peer_expect_nothing(client.peer, SECOND), 0);
    answer_by_peer("1:y");
    ck_assert_int_eq(domus_peer_expect_nothing(client.peer, SECOND), 0);
    answer_by_peer("0:");
    expect_probe_got_answer("2");
    expect_peer_received("b\n");
    answer_by_peer("two\n");
    expect_probe_got_answer("two");
    domt_line_client_end(&client);
}

DOMT_TEST(a_body_that_does_not_go_on_ends_its_connection)
{
    begin_client_with_fetcher(&one_by_one, NULL);
    ask_fetcher_by_probe("a");
    expect_peer_received("a\n");
    answer_by_peer("one+\n1:x");
    domt_net_check_ok(client.kit, domus_testkit_advance(client.kit, 1900 * MS));
    answer_by_peer("1:x");
    domt_net_check_ok(client.kit, domus_testkit_advance(client.kit, 1900 * MS));
    ck_assert_int_eq(domus_probe_expect_nothing(client.probe, 10 * MS), 0);
    expect_probe_got_error(-ETIMEDOUT, SECOND);
    ck_assert_int_eq(domus_peer_expect_reset(client.peer, SECOND), 0);
    domt_expect_actor_gone(client.kit, client.channel);
    domt_line_client_end(&client);
}

DOMT_TEST(a_body_that_nobody_reads_ends_its_connection)
{
    static const domus_channel_options options = {.body_timeout_ns = 3 * SECOND};

    begin_client_with_fetcher(&pipeline, &options);
    ask_fetcher_by_probe("l");
    ask_fetcher_by_probe("b");
    expect_peer_received("l\nb\n");
    answer_by_peer("left+\n1:x");
    expect_probe_got_answer("left+");
    domt_net_check_ok(client.kit, domus_testkit_advance(client.kit, 2900 * MS));
    ck_assert_int_eq(domus_probe_expect_nothing(client.probe, MS), 0);
    expect_probe_got_error(-EPIPE, SECOND);
    ck_assert_int_eq(domus_peer_expect_reset(client.peer, SECOND), 0);
    domt_line_client_end(&client);
}

DOMT_TEST(a_body_whose_asker_waits_no_more_is_skipped)
{
    static const domus_channel_options options = {.skip_max_bytes = 1000};
    domt_line line = {.text = "a"};

    /* first a body that is not larger than the bound, and then one that is larger */
    for (int i = 0; i < 2; i++) {
        begin_client_with_fetcher(&pipeline, &options);
        ck_assert_int_eq(
            domus_probe_ask_within(client.probe, client.channel, &domt_line_type, &line, 10 * MS),
            0);
        expect_probe_got_error(-ETIMEDOUT, SECOND);
        ask_fetcher_by_probe("b");
        expect_peer_received("a\nb\n");
        answer_by_peer(i == 0 ? "late+\n5:hello0:" : "late+\n2000:hello");
        if (i == 0) {
            answer_by_peer("two\n");
            expect_probe_got_answer("two");
        } else {
            char more[1500] = "";
            memset(more, 'x', sizeof more - 1);
            answer_by_peer(more);
            expect_probe_got_error(-EPIPE, SECOND);
            ck_assert_int_eq(domus_peer_expect_reset(client.peer, SECOND), 0);
        }
        domt_line_client_end(&client);
    }
}

DOMT_TEST(an_end_within_a_body_fails_its_reader_and_the_asks_behind)
{
    static const char *const bytes[] = {"one+\n5:hel", "one+\n", "one+\n5:hello", "one+\nx:"};

    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        begin_client_with_fetcher(&pipeline, NULL);
        ask_fetcher_by_probe("a");
        ask_fetcher_by_probe("b");
        expect_peer_received("a\nb\n");
        answer_by_peer(bytes[i]);
        if (i < 3)
            domus_peer_finish(client.peer);
        expect_probe_got_error(i < 3 ? -EPIPE : -EPROTO, SECOND);
        expect_probe_got_error(-EPIPE, SECOND);
        domt_line_client_end(&client);
    }
}

DOMT_TEST(the_last_answer_ends_the_connection)
{
    static const char *const bytes[] = {"Zone\n", "Zone+\n2:hi0:"};
    static const char *const expected[] = {"Zone", "2"};

    for (size_t i = 0; i < 2; i++) {
        begin_client_with_fetcher(&pipeline, NULL);
        ask_fetcher_by_probe("a");
        ask_fetcher_by_probe("b");
        expect_peer_received("a\nb\n");
        answer_by_peer(bytes[i]);
        expect_probe_got_answer(expected[i]);
        expect_probe_got_error(-EPIPE, SECOND);
        ck_assert_int_eq(domus_peer_expect_end(client.peer, SECOND), 0);
        ask_fetcher_by_probe("c");
        expect_probe_got_error(-ENOTCONN, SECOND);
        domt_line_client_end(&client);
    }
}

DOMT_TEST(a_reset_within_a_body_fails_its_reader)
{
    begin_client_with_fetcher(&pipeline, NULL);
    ask_fetcher_by_probe("a");
    ask_fetcher_by_probe("b");
    expect_peer_received("a\nb\n");
    answer_by_peer("one+\n5:hel");
    domt_net_check_ok(client.kit, domus_testkit_run(client.kit));
    domus_peer_reset(client.peer);
    expect_probe_got_error(-ECONNRESET, SECOND);
    expect_probe_got_error(-EPIPE, SECOND);
    domt_line_client_end(&client);
}

DOMT_TEST(a_stop_of_the_reader_lets_the_connection_end)
{
    static const domus_channel_options options = {.body_timeout_ns = SECOND};

    begin_client_with_fetcher(&pipeline, &options);
    ask_fetcher_by_probe("a");
    expect_peer_received("a\n");
    answer_by_peer("one+\n1:x");
    domt_net_check_ok(client.kit, domus_testkit_run(client.kit));
    ck_assert_int_eq(domus_outside_stop(domus_testkit_system(client.kit), fetcher), 0);
    domt_net_check_ok(client.kit, domus_testkit_run(client.kit));
    answer_by_peer("1:x"); /* with these bytes the channel learns that nobody reads the body */
    ck_assert_int_eq(domus_peer_expect_reset(client.peer, 2 * SECOND), 0);
    domt_net_check_ok(client.kit, domus_probe_expect_error(client.probe, -ESTALE, SECOND));
    domt_line_client_end(&client);
}

DOMT_SUITE(120)
