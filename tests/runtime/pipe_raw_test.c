/* io/pipelines/raw.c, and `finish` and `end` of stages: bytes that an actor writes itself pass the
 * channel's byte stages, these stages send an end of the output, and an end of the connection that
 * the stages did not see is an error. domus_channel_open_rest() says why the rest of the peer's
 * bytes cannot be a body (http_tunnel_test.c tests tunnels). */
#include "tests/runtime/pipes.h"
#include "tests/runtime/streams.h"
#include "tests/support/suite.h"

#include <domus/http.h>
#include <domus/stage_kit.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

/* --- a byte stage with records, and with an end of its own ------------------------------------ */

/* The state of a byte stage with records: a record is "<n:" and n bytes, and the end is "<end>".
 * Its `finish` fails with the error in its options. */
typedef struct seal_state {
    /* options of the stage: the error with which `finish` fails; NULL: it does not fail */
    const int *finish_error;
    bool ended; /* the peer has sent "<end>" */
} seal_state;

static int open_seal_stage(domus_wire *wire, void *state_, const void *options)
{
    seal_state *state = state_;
    state->finish_error = options;
    return 0;
}

static int decode_record(domus_wire *wire, void *state_, const char *bytes, size_t size)
{
    seal_state *state = state_;
    const char *colon;

    if (bytes[0] != '<' || state->ended)
        return -EBADMSG;
    if (size >= 5 && memcmp(bytes, "<end>", 5) == 0) {
        state->ended = true;
        return 5;
    }
    colon = memchr(bytes, ':', size);
    if (colon == NULL)
        return 0;
    size_t length = strtoul(bytes + 1, NULL, 10);
    size_t head = (size_t)(colon - bytes) + 1;
    if (size < head + length)
        return 0;
    int error = domus_wire_pass(wire, colon + 1, length);
    return error != 0 ? error : (int)(head + length);
}

static int end_seal_stage(domus_wire *wire, void *state_, size_t left)
{
    const seal_state *state = state_;
    return state->ended && left == 0 ? 0 : -EPIPE;
}

static int encode_record(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    int error = domus_wire_append_text(wire, "<%zu:", size);
    return error != 0 ? error : domus_wire_append(wire, bytes, size);
}

static int finish_seal_stage(domus_wire *wire, void *state_)
{
    const seal_state *state = state_;
    if (state->finish_error != NULL && *state->finish_error != 0)
        return *state->finish_error;
    return domus_wire_append(wire, "<end>", 5);
}

static const domus_stage seal_stage = {.name = "seal",
                                       .state_size = sizeof(seal_state),
                                       .open = open_seal_stage,
                                       .decode = decode_record,
                                       .end = end_seal_stage,
                                       .wrap = encode_record,
                                       .finish = finish_seal_stage};

static const domt_stream_options as_server = {.role = DOMUS_ROLE_SERVER, .cuts = true};
static const domt_stream_options cutless_server = {.role = DOMUS_ROLE_SERVER};
static int finish_error;
static const domus_pipeline sealed = {
    .stages = (const domus_pipeline_stage[]){
        {&seal_stage, &finish_error}, {&domt_stream_stage, &as_server}, {NULL, NULL}}};
static const domus_pipeline sealed_cutless = {
    .stages = (const domus_pipeline_stage[]){
        {&seal_stage, NULL}, {&domt_cutless_stage, &cutless_server}, {NULL, NULL}}};

/* --- in a kit without a runtime --------------------------------------------------------------- */

static int finish_line_stage_with_bye(domus_wire *wire, void *state)
{
    return domus_wire_append(wire, "bye", 3);
}

DOMT_TEST(stages_end_their_output_from_the_messages_to_the_wire)
{
    domus_stage line = domus_line_stage;
    const domus_pipeline pipeline = {
        .stages = (const domus_pipeline_stage[]){
            {&seal_stage, NULL}, {&seal_stage, NULL}, {&line, NULL}, {NULL, NULL}}};
    domus_stage_kit *kit;
    size_t size;

    line.finish = finish_line_stage_with_bye;
    ck_assert_int_eq(domus_stage_kit_new(&pipeline, &kit), 0);
    ck_assert_int_eq(domus_stage_kit_end_output(kit), 0);
    /* a second end of the output adds nothing */
    ck_assert_int_eq(domus_stage_kit_end_output(kit), 0);
    const char *output = domus_stage_kit_output(kit, &size);
    ck_assert_uint_eq(size, 9 + 8 + 5);
    ck_assert_mem_eq(output, "<6:<3:bye<5:<end><end>", size);
    domus_stage_kit_free(kit);
}

DOMT_TEST(a_stage_that_cannot_end_its_output_breaks_it)
{
    static const int error = -EIO;
    const domus_pipeline pipeline = {
        .stages = (const domus_pipeline_stage[]){
            {&seal_stage, &error}, {&domus_line_stage, NULL}, {NULL, NULL}}};
    domus_stage_kit *kit;
    size_t size;

    ck_assert_int_eq(domus_stage_kit_new(&pipeline, &kit), 0);
    ck_assert_int_eq(domus_stage_kit_end_output(kit), -EIO);
    ck_assert_int_eq(domus_stage_kit_fail(kit, 1, &domus_packet_type, -EIO), -EIO);
    (void)domus_stage_kit_output(kit, &size);
    ck_assert_uint_eq(size, 0);
    domus_stage_kit_free(kit);
}

DOMT_TEST(stream_without_the_end_of_its_byte_stage_is_an_error)
{
    static const char *const fed[] = {"<14:E count\nhello!", "<14:E count\nhello!<end>",
                                      "<14:E count\nhello!<en"};

    for (size_t i = 0; i < 3; i++) {
        domus_stage_kit *kit;
        domus_stage_message message;
        ck_assert_int_eq(domus_stage_kit_new(&sealed, &kit), 0);
        ck_assert_int_eq(domus_stage_kit_feed(kit, fed[i], strlen(fed[i])), 0);
        domus_stage_kit_finish(kit);
        ck_assert_int_eq(domus_stage_kit_next(kit, &message), 1);
        ck_assert_int_eq(domus_stage_kit_next(kit, &message), 1);
        ck_assert(!message.last);
        ck_assert_int_eq(domus_stage_kit_next(kit, &message), i == 1 ? 1 : -EPIPE);
        ck_assert(i != 1 || message.last);
        domus_stage_kit_free(kit);
    }
}

/* --- in a channel ----------------------------------------------------------------------------- */

static domus_peer *peer;

static void begin_with_pipeline(const domus_pipeline *pipeline,
                                int (*on_open)(domus_stack *, void *, const void *))
{
    static domus_behaviour behaviour;

    behaviour = domt_stream_service;
    behaviour.pipeline = pipeline;
    if (on_open != NULL)
        behaviour.on_open.handle = on_open;
    finish_error = 0;
    (void)domt_streams_new_kit(NULL, &behaviour);
    peer = domt_pipe_connect_peer();
    domt_pipe_run_kit();
}

static domus_buffer *make_buffer_of_text(domus_stack *stack, const char *text)
{
    domus_buffer *buffer;
    ck_assert_int_eq(domus_buffer_new(stack, strlen(text), &buffer), 0);
    memcpy(domus_buffer_data(buffer), text, strlen(text));
    return buffer;
}

static int on_open_write_greeting(domus_stack *stack, void *self, const void *payload)
{
    static const char zeros[3000];
    domus_channel *channel = ((const domus_channel_event *)payload)->channel;
    domus_slice slice;

    domt_pipes_now.opened++;
    ck_assert_int_eq(domus_channel_append(stack, channel, "one", 3), 0);
    ck_assert_int_eq(domus_channel_append(stack, channel, "", 0), 0);
    ck_assert_int_eq(domus_channel_write(stack, channel, make_buffer_of_text(stack, "four")), 0);
    for (uint32_t size = 3; size <= 3000; size += 2997) {
        ck_assert_int_eq(domus_slice_copy(zeros, size, &slice), 0);
        ck_assert_int_eq(domus_channel_write_slice(stack, channel, slice), 0);
    }
    return 0;
}

DOMT_TEST(bytes_that_an_actor_writes_pass_its_byte_stages)
{
    begin_with_pipeline(&sealed, on_open_write_greeting);
    ck_assert_int_eq(domus_peer_expect(peer, "<3:one<4:four<3:\0\0\0<3000:", 25, SECOND), 0);
    domt_pipe_run_kit();
    size_t size;
    (void)domus_peer_got(peer, &size);
    ck_assert_uint_eq(size, 3000);
    domus_peer_take(peer, size);
    domt_pipe_peer_send_and_expect(peer, "<7:Q drop\n", "<8:dropped\n");
    domt_pipe_end_kit();
}

static uint64_t send_max;

static int on_open_write_until_full(domus_stack *stack, void *self, const void *payload)
{
    domus_channel *channel = ((const domus_channel_event *)payload)->channel;
    domus_buffer *buffer;

    domt_pipes_now.opened++;
    for (int i = 0; i < 1000; i++) {
        ck_assert_int_eq(domus_buffer_new(stack, 1 << 20, &buffer), 0);
        int error = domus_channel_write(stack, channel, buffer);
        if (error != 0) {
            ck_assert_int_eq(error, -ENOBUFS);
            ck_assert_int_gt(i, 0);
            /* the limit is reached before so many bytes are written, because records are longer
             * than their bytes */
            ck_assert_uint_lt((uint64_t)i << 20, send_max);
            ck_assert_int_eq(domus_channel_finish(stack, channel), 0);
            ck_assert_int_eq(domus_channel_append(stack, channel, "x", 1), -EPIPE);
            return domus_channel_reset(stack, channel, -EIO);
        }
    }
    ck_abort();
}

DOMT_TEST(bytes_that_an_actor_writes_are_bounded)
{
    domus_config config = domt_pipe_default_config();
    send_max = config.channel.send_max_bytes;
    begin_with_pipeline(&sealed, on_open_write_until_full);
    ck_assert_int_eq(domus_peer_expect_reset(peer, SECOND), 0);
    domt_pipe_end_kit();
}

static void expect_text_and_end(const char *text)
{
    domt_pipe_peer_expect_text(peer, text);
    ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
}

DOMT_TEST(stages_end_their_output_before_the_fin)
{
    begin_with_pipeline(&sealed, NULL); /* the peer sends its end and FIN */
    domt_pipe_peer_send_text(peer, "<7:Q drop\n<end>");
    domus_peer_finish(peer);
    expect_text_and_end("<8:dropped\n<end>");
    domt_pipe_end_kit();

    begin_with_pipeline(&sealed, NULL); /* the service ends the connection behind its last answer */
    domt_pipe_peer_send_text(peer, "<7:Q last\n");
    expect_text_and_end("<5:last\n<end>");
    domt_pipe_end_kit();

    begin_with_pipeline(&sealed, NULL); /* the channel's actor is stopped without a request */
    domt_pipe_stop_channel();
    expect_text_and_end("<end>");
    domt_pipe_end_kit();

    begin_with_pipeline(&sealed, NULL); /* a drain ends an idle connection */
    domt_pipe_pass_time(60 * SECOND);
    ck_assert_int_eq(domus_testkit_stop(domt_pipe_kit), 0);
    expect_text_and_end("<end>");
    domt_pipe_end_kit();
}

DOMT_TEST(channel_whose_stage_cannot_end_its_output_is_reset)
{
    begin_with_pipeline(&sealed, NULL);
    finish_error = -EIO;
    domt_pipe_stop_channel();
    ck_assert_int_eq(domus_peer_expect_reset(peer, SECOND), 0);
    domt_pipe_run_kit();
    ck_assert_int_eq(domt_pipes_now.close_error, -EIO);
    domt_pipe_end_kit();
}

/* Check that the peer's connection is reset, and that no byte comes before. */
static void expect_reset_at_once(void)
{
    size_t size;
    ck_assert_int_eq(domus_peer_expect_reset(peer, SECOND), 0);
    (void)domus_peer_got(peer, &size);
    ck_assert_uint_eq(size, 0);
}

DOMT_TEST(cut_output_is_reset_without_the_end_of_its_stages)
{
    begin_with_pipeline(&sealed_cutless, NULL);
    domt_pipe_peer_send_and_expect(peer, "<9:Q part 3\n", "<6:part+\n<5:3:abc");
    expect_reset_at_once();
    domt_pipe_end_kit();

    begin_with_pipeline(&sealed_cutless, NULL); /* the channel is stopped within a stream */
    domt_pipe_peer_send_and_expect(peer, "<14:C echo\n5:hello", "<6:echo+\n<7:5:hello");
    domt_pipe_stop_channel();
    expect_reset_at_once();
    domt_pipe_end_kit();
}

DOMT_TEST(a_truncated_stream_is_an_error)
{
    static const char *const sent[] = {"<14:E count\nhello!<end>", "<14:E count\nhello!",
                                       "<14:E count\nhello!<9:hello"};

    for (size_t i = 0; i < 3; i++) {
        begin_with_pipeline(&sealed, NULL);
        domt_pipe_peer_send_text(peer, sent[i]);
        domus_peer_finish(peer);
        if (i == 0)
            expect_text_and_end("<8:6 32015\n<end>");
        else
            expect_text_and_end("<11:read EPIPE\n<end>");
        ck_assert_int_eq(domt_streams_now.error, i == 0 ? 0 : -EPIPE);
        domt_pipe_end_kit();
    }
    /* the connection ends between two messages, without "<end>" */
    begin_with_pipeline(&sealed, NULL);
    domt_pipe_peer_send_text(peer, "<7:Q drop\n");
    domus_peer_finish(peer);
    expect_text_and_end("<8:dropped\n<12:wrong EPIPE\n<end>");
    domt_pipe_end_kit();
}

/* --- the rest of the bytes -------------------------------------------------------------------- */

/* the channel of the first connection, to which later requests refer */
static domus_channel *first;
static int on_open_result, results[5];
static domus_body body;

static int on_open_open_rest_early(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    first = first == NULL ? event->channel : first;
    on_open_result = domus_channel_open_rest(stack, event->channel, NULL);
    return 0;
}

static int on_close_forget_channel(domus_stack *stack, void *self, const void *payload)
{
    first = NULL;
    return 0;
}

static const domus_pipeline web = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, NULL}, {NULL, NULL}}};

/* Handle a request: do what its path says, and record the results. */
static int handle_request_by_path(domus_stack *stack, void *self, const void *payload)
{
    domus_channel *channel = domus_channel_running(stack);
    char how = domus_slice_data(domus_http_path(payload))[1];

    if (how == 'c')
        (void)domus_channel_close(stack, channel);
    if (how == 's')
        (void)domus_channel_set_pipeline(stack, channel, &web, 0);
    if (how == 'f')
        channel = first;
    results[0] = domus_channel_open_rest(stack, channel, NULL);
    results[1] = domus_channel_open_rest(stack, channel, &body);
    results[2] = domus_channel_open_rest(stack, channel, &body);
    int error = domus_reply(stack, &domus_http_text_type, &(domus_http_text){.status = 204});
    results[3] = domus_channel_open_rest(stack, channel, NULL);
    return error;
}

static uint32_t marks_of_request(const void *payload)
{
    return domus_slice_data(domus_http_path(payload))[1] == 'n' ? 0 : DOMUS_ALONE;
}

static const domus_behaviour service = {
    .name = "rest",
    .kind = DOMUS_CHANNELS,
    .pipeline = &web,
    .on_open = {on_open_open_rest_early, 0},
    .on_close = {on_close_forget_channel, 0},
    .on_peer = (const domus_on_peer[]){
        {&domus_http_request_type, handle_request_by_path, 0, 0, marks_of_request},
        {.type = NULL}}};

/* Send a request on a new connection, and wait until the kit is at rest. */
static void send_request_on_new_connection(const char *request)
{
    domus_peer *asker = domt_pipe_connect_peer();
    memset(results, 1, sizeof results);
    body.number = 0;
    domt_pipe_peer_send_text(asker, request);
    domt_pipe_run_kit();
    domus_peer_close(asker);
}

static void expect_results_of_request(int checked, int opened, int again, int answered)
{
    const int expected[] = {checked, opened, again, answered};
    for (int i = 0; i < 4; i++)
        ck_assert_msg(results[i] == expected[i], "%d: %d", i, results[i]);
    ck_assert((body.number != 0) == (opened == 0));
}

#define GET(path) "GET /" path " HTTP/1.1\r\nHost: a\r\n\r\n"

DOMT_TEST(rest_of_the_bytes_is_opened_once_by_a_request_alone)
{
    (void)domt_pipes_new_kit(NULL, &service, 1);

    peer = domt_pipe_connect_peer();
    domt_pipe_run_kit();
    ck_assert_int_eq(on_open_result, -EINVAL);
    send_request_on_new_connection(GET("a"));
    expect_results_of_request(0, 0, -EBUSY, -EALREADY);
    send_request_on_new_connection(GET("n"));
    expect_results_of_request(-EPERM, -EPERM, -EPERM, -EALREADY);
    send_request_on_new_connection(GET("s"));
    expect_results_of_request(-EBUSY, -EBUSY, -EBUSY, -EALREADY);
    send_request_on_new_connection(GET("c"));
    expect_results_of_request(-EPIPE, -EPIPE, -EPIPE, -EPIPE);
    ck_assert_ptr_null(first);
    domus_peer_close(peer);
    peer = domt_pipe_connect_peer();
    domt_pipe_run_kit();
    ck_assert_ptr_nonnull(first);
    send_request_on_new_connection(GET("f"));
    expect_results_of_request(-EPERM, -EPERM, -EPERM, -EPERM);
    send_request_on_new_connection("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nb");
    expect_results_of_request(0, 0, -EBUSY, -EALREADY);
    domt_pipe_close_peer_and_end_kit(peer);
}

DOMT_SUITE(60)
