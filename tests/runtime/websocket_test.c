/* WebSocket in a channel: the handshake changes the channel's pipeline, messages are echoed and
 * published, and the connection is ended by the peer, the actor, a time-out, or a drain. */
#include "tests/runtime/network.h"
#include "tests/runtime/pipes.h"
#include "tests/runtime/running.h"
#include "tests/runtime/sockets.h"
#include "tests/support/frames.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SECOND DOMT_PIPE_SECOND

#define HELLO_AT(path)                                                                             \
    "GET " path                                                                                    \
    " HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"            \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"                 \
    "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
#define HELLO HELLO_AT("/socket")
#define WELCOME                                                                                    \
    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"            \
    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"

/* --- the service ------------------------------------------------------------------------------ */

static domus_websocket_options options;
static const domus_type *const encodes[] = {&domus_websocket_message_type,
                                            &domus_websocket_frame_type, NULL};
static const domus_pipeline socket_pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_websocket_stage, &options}, {NULL, NULL}},
    .encodes = encodes};
static const domus_websocket_service offer = {.pipeline = &socket_pipeline};

static domus_group room;
static int sent_result;  /* result of a send of a message within the turn of the handshake */
static int closed_error; /* error that the last on_close got */
static unsigned closed;
static unsigned heard_code; /* code of the last close that came from a peer */

static domus_websocket_message make_text_message(const char *text)
{
    domus_websocket_message message = {.binary = false};
    ck_assert_int_eq(domus_slice_copy(text, strlen(text), &message.bytes), 0);
    return message;
}

/* Send "hi" twice: at once, with its result in `sent_result`, and by a notice to this channel, so
 * that it comes behind the answer of the handshake. */
static int send_greeting(domus_stack *stack)
{
    domus_websocket_message message = make_text_message("hi");
    sent_result = domus_channel_send(stack, domus_channel_running(stack),
                                     &domus_websocket_message_type, &message);
    return domus_notice(stack, domus_self(stack), &domus_websocket_message_type, &message);
}

static int accept_and_join_room(domus_stack *stack, void *self, const void *payload)
{
    bool greets = domus_slice_equals(domus_http_path(payload), "/greet", 6);
    domus_websocket_outcome outcome;
    ck_assert_int_eq(domus_group_open(stack, "room", &room), 0);
    ck_assert_int_eq(domus_group_join(stack, room), 0);
    int error = domus_websocket_accept(stack, payload, &offer, &outcome);
    return error == 0 && greets && outcome.status == 101 ? send_greeting(stack) : error;
}

/* Publish the message to all members of the room, encoded once as a frame. */
static int publish_to_room(domus_stack *stack, const domus_websocket_message *message)
{
    domus_slice frame;
    ck_assert_int_eq(domus_websocket_frame(message, &frame), 0);
    return domus_publish(stack, room, &domus_websocket_frame_type, &frame);
}

static int answer_message_by_text(domus_stack *stack, void *self, const void *payload)
{
    const domus_websocket_message *message = payload;
    if (domus_slice_equals(message->bytes, "end", 3))
        return domus_channel_close(stack, domus_channel_running(stack));
    if (domus_slice_equals(message->bytes, "all", 3))
        return publish_to_room(stack, message);
    return domt_on_websocket_message_echo(stack, self, message);
}

static int record_code_of_close(domus_stack *stack, void *self, const void *payload)
{
    heard_code = ((const domus_websocket_close *)payload)->code;
    return 0;
}

static int record_error_of_end(domus_stack *stack, void *self, const void *payload)
{
    closed_error = ((const domus_channel_event *)payload)->error;
    closed++;
    return 0;
}

static const domus_http_options of_http = {.no_date = true};
static const domus_pipeline web = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, &of_http}, {NULL, NULL}}};
static const domus_behaviour service = {
    .name = "sockets",
    .kind = DOMUS_CHANNELS,
    .pipeline = &web,
    .on_close = {record_error_of_end, 0},
    .on_peer = (const domus_on_peer[]){
        {.type = &domus_http_request_type, .handle = accept_and_join_room},
        {.type = &domus_websocket_message_type, .handle = answer_message_by_text},
        {.type = &domus_websocket_close_type, .handle = record_code_of_close},
        {.type = NULL}}};

/* --- peers ------------------------------------------------------------------------------------ */

static domus_peer *peer;

static void begin_kit_with_websocket(void)
{
    options = (domus_websocket_options){.role = DOMUS_ROLE_SERVER};
    closed = heard_code = 0;
    closed_error = 1;
    peer = domt_pipe_begin_kit(NULL, &service, 1);
}

/* Let the client send frames, which are given as text (tests/support/frames.h). */
static void send_frames_of_client(domus_peer *by, const char *frames)
{
    static char bytes[DOMT_FRAMES_ROOM];
    size_t size = domt_websocket_write_frames(true, frames, bytes);
    ck_assert_int_eq(domus_peer_send(by, bytes, size), 0);
}

/* Check that exactly these frames of the server come next. */
static void expect_frames_of_server(domus_peer *by, const char *frames)
{
    static char bytes[DOMT_FRAMES_ROOM];
    size_t size = domt_websocket_write_frames(false, frames, bytes);
    domt_net_check_ok(domt_pipe_kit, domus_peer_expect(by, bytes, size, SECOND));
}

static void send_and_expect_frames(domus_peer *by, const char *said, const char *heard)
{
    send_frames_of_client(by, said);
    expect_frames_of_server(by, heard);
}

static void begin_kit_and_upgrade_peer(void)
{
    begin_kit_with_websocket();
    domt_pipe_peer_send_and_expect(peer, HELLO, WELCOME);
}

static void finish_and_check_close_error(int error)
{
    domt_pipe_run_kit();
    ck_assert_uint_eq(closed, 1);
    ck_assert_int_eq(closed_error, error);
    domt_pipe_close_peer_and_end_kit(peer);
}

/* Let the peer answer the server's close, and check that the connection ends in order. */
static void check_end_in_order(void)
{
    ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
    domus_peer_finish(peer);
    finish_and_check_close_error(0);
}

DOMT_TEST(frames_behind_the_handshake_are_not_lost)
{
    static char bytes[DOMT_FRAMES_ROOM];
    size_t head = sizeof HELLO - 1;

    memcpy(bytes, HELLO, head);
    size_t size = head + domt_websocket_write_frames(true, "81:hello 01:a 89:x 80:b 88:\x03\xe8",
                                                     bytes + head);
    for (size_t cut = 1; cut < size; cut += cut < head - 3 ? 50 : 1) {
        begin_kit_with_websocket();
        ck_assert_int_eq(domus_peer_send(peer, bytes, cut), 0);
        if (cut % 2 == 0)
            domt_pipe_run_kit();
        ck_assert_int_eq(domus_peer_send(peer, bytes + cut, size - cut), 0);
        domt_pipe_peer_expect_text(peer, WELCOME);
        expect_frames_of_server(peer, "81:hello 8a:x 81:ab 88:\x03\xe8");
        ck_assert_uint_eq(heard_code, 1000);
        check_end_in_order();
    }
}

DOMT_TEST(greeting_leaves_behind_the_answer)
{
    begin_kit_with_websocket();
    domt_pipe_peer_send_and_expect(peer, HELLO_AT("/greet"), WELCOME);
    expect_frames_of_server(peer, "81:hi");
    ck_assert_int_eq(sent_result, -EBUSY);
    send_and_expect_frames(peer, "88:", "88:");
    ck_assert_uint_eq(heard_code, DOMUS_WEBSOCKET_NO_CODE);
    check_end_in_order();
}

DOMT_TEST(refused_handshake_leaves_http_as_it_was)
{
    begin_kit_with_websocket();
    domt_pipe_peer_send_and_expect(peer, "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
                                   "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n"
                                   "Connection: upgrade\r\nUpgrade: websocket\r\n"
                                   "Sec-WebSocket-Version: 13\r\n\r\n");
    domt_pipe_peer_send_and_expect(peer, HELLO, WELCOME);
    send_and_expect_frames(peer, "88:", "88:");
    check_end_in_order();
}

DOMT_TEST(actor_closes_and_hears_the_answer)
{
    begin_kit_and_upgrade_peer();
    send_and_expect_frames(peer, "81:close",
                           "88:\x0f\xa0"
                           "bye");
    /* after the actor's close, none of these frames reaches the actor or is answered */
    send_frames_of_client(peer, "81:late 89: 01:la 80:ter");
    ck_assert_int_eq(domus_peer_expect_nothing(peer, SECOND), 0);
    ck_assert_uint_eq(closed, 0);
    send_frames_of_client(peer, "88:\x0f\xa0");
    domt_pipe_run_kit();
    ck_assert_uint_eq(heard_code, 4000);
    check_end_in_order();
}

DOMT_TEST(close_that_is_not_answered_has_a_time)
{
    begin_kit_and_upgrade_peer();
    send_and_expect_frames(peer, "81:close",
                           "88:\x0f\xa0"
                           "bye");
    for (int i = 0; i < 4; i++) { /* messages do not prolong the time for the answer to a close */
        domt_pipe_pass_time(SECOND);
        send_frames_of_client(peer, "89:x");
    }
    ck_assert_uint_eq(closed, 0);
    ck_assert_int_eq(domus_peer_expect_reset(peer, 2 * SECOND), 0);
    finish_and_check_close_error(-ETIMEDOUT);
}

DOMT_TEST(channel_that_is_closed_says_going_away)
{
    begin_kit_and_upgrade_peer();
    send_and_expect_frames(peer, "81:end", "88:\x03\xe9");
    check_end_in_order();
}

DOMT_TEST(drain_closes_with_going_away_code)
{
    begin_kit_and_upgrade_peer();
    domt_pipe_pass_time(10 * SECOND);
    ck_assert_int_eq(domus_testkit_stop(domt_pipe_kit), 0);
    expect_frames_of_server(peer, "88:\x03\xe9");
    ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
    domt_pipe_end_kit();
}

DOMT_TEST(wrong_bytes_are_answered_with_their_code)
{
    begin_kit_and_upgrade_peer();
    send_and_expect_frames(peer, "81:a 81:\xff 81:b", "81:a 88:\x03\xef");
    check_end_in_order();
    begin_kit_and_upgrade_peer();
    send_and_expect_frames(peer, "81:a", "81:a");
    domus_peer_finish(peer); /* all errors of this connection count as one refused channel */
    ck_assert_int_eq(domus_peer_expect_reset(peer, SECOND), 0);
    ck_assert_uint_eq(domt_profile_of_all_threads(domt_pipe_system_of_kit()).channels_refused, 1);
    finish_and_check_close_error(-EPIPE);
}

DOMT_TEST(silent_peer_is_pinged_and_then_reset)
{
    begin_kit_and_upgrade_peer();
    for (int i = 0; i < 3; i++) { /* a peer that answers pings stays connected */
        domt_pipe_pass_time(25 * SECOND);
        send_frames_of_client(peer, "8a:");
        ck_assert_int_eq(domus_peer_expect_nothing(peer, 4 * SECOND), 0);
    }
    domt_pipe_pass_time(60 * SECOND);
    expect_frames_of_server(peer, "89:");
    ck_assert_uint_eq(closed, 0);
    ck_assert_int_eq(domus_peer_expect_reset(peer, 31 * SECOND), 0);
    finish_and_check_close_error(-ETIMEDOUT);
}

DOMT_TEST(peer_is_never_pinged_if_the_options_say_so)
{
    begin_kit_with_websocket();
    options.ping_ns = DOMUS_WEBSOCKET_NEVER;
    domt_pipe_peer_send_and_expect(peer, HELLO, WELCOME);
    ck_assert_int_eq(domus_peer_expect_nothing(peer, 1000 * SECOND), 0);
    send_and_expect_frames(peer, "81:a 88:", "81:a 88:");
    check_end_in_order();
}

DOMT_TEST(one_frame_goes_to_all_members)
{
    begin_kit_and_upgrade_peer();
    domus_peer *other = domt_pipe_connect_peer();
    domt_pipe_peer_send_and_expect(other, HELLO, WELCOME);
    send_and_expect_frames(peer, "81:all", "81:all");
    expect_frames_of_server(other, "81:all");
    domus_peer_close(other);
    domt_pipe_run_kit();
    closed = 0;
    send_and_expect_frames(peer, "88:", "88:");
    check_end_in_order();
}

/* A peer that sends pings without end and reads no pong is no longer read, so it takes no more
 * memory than any peer that does not read. */
DOMT_TEST(flood_of_pings_takes_bounded_memory)
{
    static char bytes[DOMT_FRAMES_ROOM];
    char ping[256];
    size_t size = domt_websocket_write_frames(true, "89:*125", ping);
    size_t filled = 0;

    for (; filled + size <= sizeof bytes; filled += size)
        memcpy(bytes + filled, ping, size);
    begin_kit_and_upgrade_peer();
    domus_peer_pause(peer);
    for (int i = 0; i < 64; i++) { /* in all, 8 MiB of pings are sent */
        ck_assert_int_eq(domus_peer_send(peer, bytes, filled), 0);
        domt_pipe_run_kit();
    }
    uint64_t queued = domt_profile_of_all_threads(domt_pipe_system_of_kit()).queued_bytes;
    ck_assert_uint_gt(queued, 0);
    ck_assert_uint_lt(queued, 1u << 20);
    domus_peer_reset(peer);
    domt_pipe_run_kit();
    domt_pipe_end_kit();
}

DOMT_SUITE(60)
