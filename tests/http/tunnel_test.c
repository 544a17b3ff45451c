/* A client asks for a tunnel: what it sends and reads before and behind 101. */
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

static const domus_http_options streams = {
    .role = DOMUS_ROLE_CLIENT, .host = "a", .streams = true, .body_max = 5};
static const domus_http_options whole = {.role = DOMUS_ROLE_CLIENT, .host = "a"};

#define ASKED  "GET /a HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: b\r\n\r\n"
#define SWITCH "HTTP/1.1 101 x\r\nUpgrade: b\r\n\r\n"

/* Encode the request. Returns the result. */
static int ask(domt_codec *http, domus_http_request like)
{
    like.target = domt_http_slice("/a");
    like.fields = domt_http_slice("Upgrade: b\r\n");
    int error = domus_stage_kit_encode(http->kit, 0, &domus_http_request_type, &like);
    domus_http_request_type.release(&like);
    return error;
}

/* Begin with a tunnel that is asked for. */
static void begin(domt_codec *http, uint64_t *word)
{
    *word = 0;
    domt_http_start(http, &streams);
    domus_stage_kit_stream(http->kit, word);
    ck_assert_int_eq(ask(http, (domus_http_request){.upgrade = true, .tunnels = true}), 0);
    ck_assert_str_eq(domt_codec_sent(http), ASKED);
}

static int send_piece(domt_codec *http, const char *text)
{
    domus_piece piece = {.last = *text == '\0'};

    if (!piece.last)
        piece.bytes = domt_http_slice(text);
    int error = domus_stage_kit_encode(http->kit, 0, &domus_piece_type, &piece);
    domus_slice_free(piece.bytes);
    return error;
}

/* Check that the next message is a piece with these bytes; "": the end. */
static void expect_piece(domt_codec *http, const char *text)
{
    domus_stage_message message;

    ck_assert_int_eq(domus_stage_kit_next(http->kit, &message), 1);
    ck_assert_int_eq(message.kind, DOMUS_STAGE_PIECE);
    const domus_piece *piece = message.payload;
    ck_assert(domus_slice_equals(piece->bytes, text, strlen(text)));
    ck_assert(piece->last == (*text == '\0'));
}

static void feed(domt_codec *http, const char *text)
{
    ck_assert_int_eq(domus_stage_kit_feed(http->kit, text, strlen(text)), 0);
}

DOMT_TEST(bytes_behind_101_are_those_of_the_tunnel)
{
    domus_stage_message message;
    domt_codec http;
    uint64_t word;

    begin(&http, &word);
    ck_assert_int_eq(send_piece(&http, "early"), -EPIPE);
    feed(&http, SWITCH "HTTP/1.1 200 OK\r\n\r\n");
    ck_assert_int_eq(domus_stage_kit_next(http.kit, &message), 1);
    const domus_http_response *response = message.payload;
    ck_assert(response->status == 101 && response->stream.number != 0 && response->close);
    expect_piece(&http, "HTTP/1.1 200 OK\r\n\r\n"); /* longer than body_max */
    ck_assert_int_eq(send_piece(&http, "more than five"), 0);
    ck_assert_str_eq(domt_codec_sent(&http), "more than five");
    domus_stage_kit_finish(http.kit);
    expect_piece(&http, "");
    ck_assert_int_eq(send_piece(&http, "a"), 0);
    ck_assert_int_eq(send_piece(&http, ""), 0);
    ck_assert_str_eq(domt_codec_sent(&http), "a");
    domt_codec_stop(&http);
}

DOMT_TEST(another_answer_leaves_the_connection_as_it_is)
{
    domus_stage_message message;
    uint64_t word;

    for (int cuts = 0; cuts < 2; cuts++) {
        domt_codec http;
        begin(&http, &word);
        feed(&http, "HTTP/1.1 204 x\r\n\r\n");
        ck_assert_int_eq(domus_stage_kit_next(http.kit, &message), 1);
        ck_assert(!((const domus_http_response *)message.payload)->close);
        ck_assert_int_eq(send_piece(&http, "a"), -EPIPE);
        ck_assert_int_eq(
            cuts != 0 ? domus_stage_kit_cut(http.kit, 0, -ECANCELED) : send_piece(&http, ""), 0);
        word = 0;
        ck_assert_int_eq(ask(&http, (domus_http_request){.upgrade = true, .tunnels = true}), 0);
        ck_assert_str_eq(domt_codec_sent(&http), ASKED);
        domt_codec_stop(&http);
    }
}

/* A tunnel that is cut before its answer leaves nobody knowing what the peer does. */
DOMT_TEST(a_tunnel_that_is_cut_ends_the_connection)
{
    domt_codec http;
    uint64_t word;

    begin(&http, &word);
    ck_assert_int_eq(domus_stage_kit_cut(http.kit, 0, -ETIMEDOUT), -ETIMEDOUT);
    domt_codec_stop(&http);
}

DOMT_TEST(a_tunnel_needs_an_upgrade_and_bodies_in_pieces)
{
    static const domus_http_request wrong[] = {{.tunnels = true},
                                               {.tunnels = true, .upgrade = true, .length = 1},
                                               {.tunnels = true, .upgrade = true, .expects = true}};
    domt_codec http;
    uint64_t word = 0;

    domt_http_start(&http, &streams);
    ck_assert_int_eq(ask(&http, (domus_http_request){.tunnels = true, .upgrade = true}), -EINVAL);
    domus_stage_kit_stream(http.kit, &word);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(ask(&http, wrong[i]), -EINVAL);
    domt_codec_stop(&http);
    domt_http_start(&http, &whole);
    domus_stage_kit_stream(http.kit, &word);
    ck_assert_int_eq(ask(&http, (domus_http_request){.tunnels = true, .upgrade = true}), -EINVAL);
    domt_codec_stop(&http);
}

DOMT_SUITE(20)
