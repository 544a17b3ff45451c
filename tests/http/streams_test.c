/* Answers in pieces, failures, bodies that the handler waits for; and a client that requests a
 * tunnel: the bytes that it sends and reads before and after 101. */
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

static const domus_http_options plain = {.no_date = true};
static const domus_http_options streams = {.no_date = true, .streams = true};

#define GET   "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define TAKES "GET / HTTP/1.1\r\nHost: a\r\nTE: gzip, Trailers\r\n\r\n"
#define HEAD  "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"
#define OLD   "GET / HTTP/1.0\r\n\r\n"
#define KEPT  "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"

/* --- streams ---------------------------------------------------------------------------------- */

/* Encode a head, pieces of a body (separated by '|'), and the end, with trailers if there are some.
 * Returns the first error. */
static int encode_in_pieces(domt_codec *http, uint64_t id, const domus_http_response *head,
                            const char *pieces, const char *trailers)
{
    uint64_t word = 0;
    domus_piece piece = {.last = true};

    domus_stage_kit_stream(http->kit, &word);
    int error = domus_stage_kit_encode(http->kit, id, &domus_http_response_type, head);
    while (error == 0 && *pieces != '\0') {
        size_t size = strcspn(pieces, "|");
        domus_piece next = {.last = false};
        ck_assert_int_eq(domus_slice_copy(pieces, size, &next.bytes), 0);
        error = domus_stage_kit_encode(http->kit, id, &domus_piece_type, &next);
        domus_slice_free(next.bytes);
        pieces += size + (pieces[size] == '|');
    }
    if (error == 0 && trailers != NULL) {
        domus_http_trailers end = {domt_slice_of_text(trailers)};
        error = domus_stage_kit_encode(http->kit, id, &domus_http_trailers_type, &end);
        domus_slice_free(end.fields);
    } else if (error == 0) {
        error = domus_stage_kit_encode(http->kit, id, &domus_piece_type, &piece);
    }
    domus_stage_kit_stream(http->kit, NULL);
    return error;
}

static const char *bytes_of_answer(const char *request, const domus_http_response *head,
                                   const char *pieces, const char *trailers)
{
    domt_codec http;

    domt_http_start_codec(&http, &plain);
    uint64_t id = domt_http_feed_request_text(&http, request);
    ck_assert_int_eq(encode_in_pieces(&http, id, head, pieces, trailers), 0);
    const char *sent = domt_codec_take_output(&http);
    bool closes = strstr(sent, "Connection: close\r\n") != NULL;
    ck_assert_int_eq(domus_stage_kit_is_last(http.kit), closes);
    domt_codec_stop(&http);
    return sent;
}

DOMT_TEST(streams_leave_in_chunks)
{
    domus_http_response head = {.status = 200, .media = "a/b"};

    ck_assert_str_eq(bytes_of_answer(GET, &head, "hello|0123456789abcdef", NULL),
                     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: a/b\r\n\r\n"
                     "5\r\nhello\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n");
    ck_assert_str_eq(bytes_of_answer(TAKES, &head, "a", "T: u\r\n"),
                     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: a/b\r\n\r\n"
                     "1\r\na\r\n0\r\nT: u\r\n\r\n");
    ck_assert_str_eq(bytes_of_answer(GET, &head, "a", "T: u\r\n"),
                     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: a/b\r\n\r\n"
                     "1\r\na\r\n0\r\n\r\n");
    ck_assert_str_eq(bytes_of_answer(HEAD, &head, "", "T: u\r\n"),
                     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: a/b\r\n\r\n");
    ck_assert_str_eq(bytes_of_answer(OLD, &head, "a|b", "T: u\r\n"),
                     "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: a/b\r\n\r\nab");
    ck_assert_str_eq(bytes_of_answer(KEPT, &head, "a|b", NULL),
                     "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: a/b\r\n\r\nab");
}

DOMT_TEST(answers_in_pieces_of_known_length_have_to_meet_it)
{
    domus_http_response head = {.status = 200, .length = 3};
    domt_codec http;

    ck_assert_str_eq(bytes_of_answer(GET, &head, "ab|c", NULL),
                     "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc");
    ck_assert_str_eq(bytes_of_answer(KEPT, &head, "abc", "T: u\r\n"),
                     "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\nabc");
    ck_assert_str_eq(bytes_of_answer(HEAD, &head, "", NULL),
                     "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n");
    domt_http_start_codec(&http, &plain);
    uint64_t id = domt_http_feed_request_text(&http, GET);
    ck_assert_int_eq(encode_in_pieces(&http, id, &head, "ab|cd", NULL), -EMSGSIZE);
    id = domt_http_feed_request_text(&http, GET);
    ck_assert_int_eq(encode_in_pieces(&http, id, &head, "ab", NULL), -EINVAL);
    ck_assert_int_eq(domus_stage_kit_cut(http.kit, id, -EINVAL), -EINVAL);
    id = domt_http_feed_request_text(&http, HEAD);
    ck_assert_int_eq(domus_stage_kit_cut(http.kit, id, -EINVAL), 0);
    domt_codec_stop(&http);
}

/* Pieces of an answer to HEAD are refused: no client reads them, and an event stream has no end. */
DOMT_TEST(pieces_of_an_answer_to_head_are_refused)
{
    domus_http_response head = {.status = 200};
    domt_codec http;

    domt_http_start_codec(&http, &plain);
    uint64_t id = domt_http_feed_request_text(&http, HEAD);
    ck_assert_int_eq(encode_in_pieces(&http, id, &head, "a", NULL), -EPIPE);
    ck_assert_int_eq(domus_stage_kit_cut(http.kit, id, -EPIPE), 0);
    ck_assert_str_eq(domt_codec_take_output(&http),
                     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    ck_assert(!domus_stage_kit_is_last(http.kit));
    domt_codec_stop(&http);
}

DOMT_TEST(streams_that_http_cannot_say_are_refused)
{
    static const char *const wrong[] = {"T: u\r\n\r\n", "Content-Length: 1\r\n", "Host: a\r\n"};
    domus_http_response head = {.status = 204};
    domt_codec http;

    ck_assert_str_eq(bytes_of_answer(GET, &head, "", NULL), "HTTP/1.1 204 No Content\r\n\r\n");
    domt_http_start_codec(&http, &plain);
    ck_assert_int_eq(
        encode_in_pieces(&http, domt_http_feed_request_text(&http, GET), &head, "a", NULL),
        -EMSGSIZE);
    head.status = 200;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint64_t request = domt_http_feed_request_text(&http, GET);
        ck_assert_int_eq(encode_in_pieces(&http, request, &head, "a", wrong[i]), -EINVAL);
    }
    uint64_t word = 0;
    uint64_t id = domt_http_feed_request_text(&http, GET);
    domus_stage_kit_stream(http.kit, &word);
    ck_assert_int_eq(domus_stage_kit_encode(http.kit, id, &domus_http_response_type, &head), 0);
    ck_assert_int_eq(domus_stage_kit_encode(http.kit, id, &domus_http_response_type, &head),
                     -EOPNOTSUPP); /* a second head of the same answer is refused */
    domus_stage_kit_stream(http.kit, NULL);
    domt_codec_stop(&http);
}

/* --- failures, and 100 Continue --------------------------------------------------------------- */

DOMT_TEST(each_error_of_a_request_gets_its_status)
{
    static const struct {
        int error;
        const char *sent;
    } rows[] = {
        {-EPROTO, "HTTP/1.1 400 Bad Request\r\n"},
        {-EACCES, "HTTP/1.1 403 Forbidden\r\n"},
        {-ENOENT, "HTTP/1.1 404 Not Found\r\n"},
        {-EMSGSIZE, "HTTP/1.1 413 Content Too Large\r\n"},
        {-EINVAL, "HTTP/1.1 500 Internal Server Error\r\n"},
        {-ENOMSG, "HTTP/1.1 500 Internal Server Error\r\n"},
        {-EOPNOTSUPP, "HTTP/1.1 501 Not Implemented\r\n"},
        {-EBUSY, "HTTP/1.1 503 Service Unavailable\r\n"},
        {-ENOBUFS, "HTTP/1.1 503 Service Unavailable\r\n"},
        {-ENOMEM, "HTTP/1.1 503 Service Unavailable\r\n"},
        {-ETIMEDOUT, "HTTP/1.1 504 Gateway Timeout\r\n"},
        {-ETIME, "HTTP/1.1 408 Request Timeout\r\n"},
    };
    domt_codec http;

    domt_http_start_codec(&http, &plain);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t id = domt_http_feed_request_text(&http, GET);
        ck_assert_int_eq(
            domus_stage_kit_fail(http.kit, id, &domus_http_request_type, rows[i].error), 0);
        const char *sent = domt_codec_take_output(&http);
        ck_assert_int_eq(strncmp(sent, rows[i].sent, strlen(rows[i].sent)), 0);
        ck_assert_ptr_null(strstr(sent, "Connection"));
    }
    uint64_t id = domt_http_feed_request_text(&http, HEAD);
    ck_assert_int_eq(domus_stage_kit_fail(http.kit, id, &domus_http_request_type, -ENOENT), 0);
    ck_assert_str_eq(domt_codec_take_output(&http),
                     "HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n"
                     "Content-Type: text/plain\r\n\r\n");
    ck_assert(!domus_stage_kit_is_last(http.kit));
    id = domt_http_feed_request_text(&http, OLD);
    ck_assert_int_eq(domus_stage_kit_fail(http.kit, id, &domus_http_request_type, -ENOENT), 0);
    ck_assert_str_eq(domt_codec_take_output(&http),
                     "HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\nConnection: close\r\n"
                     "Content-Type: text/plain\r\n\r\nNot Found\n");
    ck_assert(domus_stage_kit_is_last(http.kit));
    ck_assert_int_eq(domus_stage_kit_fail(http.kit, DOMUS_NO_ID, NULL, -ETIMEDOUT), 0);
    /* no 408 is sent, because no request has begun */
    ck_assert_str_eq(domt_codec_take_output(&http), "");
    domus_stage_message message;
    ck_assert_int_eq(domus_stage_kit_feed(http.kit, "G", 1), 0);
    ck_assert_int_eq(domus_stage_kit_next(http.kit, &message), 0);
    ck_assert_int_eq(domus_stage_kit_fail(http.kit, DOMUS_NO_ID, NULL, -ETIMEDOUT), 0);
    ck_assert_int_eq(strncmp(domt_codec_take_output(&http), "HTTP/1.1 408 Request Timeout\r\n", 30),
                     0);
    ck_assert_int_eq(domus_stage_kit_fail(http.kit, DOMUS_NO_ID, NULL, -ECONNABORTED), 0);
    /* no answer is sent, because the peer has gone (TLS) */
    ck_assert_str_eq(domt_codec_take_output(&http), "");
    domt_codec_stop(&http);
}

/* The channel will be closed soon, so its last answer has "Connection: close" in any case. */
DOMT_TEST(answers_in_a_drain_say_connection_close)
{
    static const domus_http_text text = {200, "a/b", "c"};
    static const char *const asked[] = {GET, HEAD, KEPT, OLD};
    domus_http_response head = {.status = 200};
    domt_codec http;

    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        domt_http_start_codec(&http, &plain);
        uint64_t id = domt_http_feed_request_text(&http, asked[i]);
        domus_stage_kit_drain(http.kit);
        ck_assert_int_eq(domus_stage_kit_encode(http.kit, id, &domus_http_text_type, &text), 0);
        ck_assert_ptr_nonnull(strstr(domt_codec_take_output(&http), "Connection: close\r\n"));
        ck_assert(domus_stage_kit_is_last(http.kit));
        domt_codec_stop(&http);
    }
    domt_http_start_codec(&http, &plain);
    uint64_t id = domt_http_feed_request_text(&http, GET);
    domus_stage_kit_drain(http.kit);
    ck_assert_int_eq(encode_in_pieces(&http, id, &head, "a", NULL), 0);
    ck_assert_ptr_nonnull(strstr(domt_codec_take_output(&http), "Connection: close\r\n"));
    id = domt_http_feed_request_text(&http, GET);
    ck_assert_int_eq(domus_stage_kit_fail(http.kit, id, &domus_http_request_type, -ENOENT), 0);
    ck_assert_ptr_nonnull(strstr(domt_codec_take_output(&http), "Connection: close\r\n"));
    domt_codec_stop(&http);
}

#define EXPECT(length)                                                                             \
    "PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: " #length "\r\n\r\n"
#define CONTINUE "HTTP/1.1 100 Continue\r\n\r\n"

DOMT_TEST(a_body_gets_100_continue_when_it_is_read)
{
    static const domus_http_text done = {.status = 200};
    domt_codec http;

    domt_http_start_codec(&http, &streams);
    uint64_t id = domt_http_feed_request_text(&http, EXPECT(2));
    ck_assert_str_eq(domt_codec_take_output(&http), "");
    ck_assert_int_eq(domus_stage_kit_wanted(http.kit), 0);
    ck_assert_str_eq(domt_codec_take_output(&http), CONTINUE);
    ck_assert_int_eq(domus_stage_kit_wanted(http.kit), 0); /* 100 Continue is sent only once */
    ck_assert_str_eq(domt_codec_take_output(&http), "");
    (void)domt_http_feed_request_text(&http, "ab");
    ck_assert_int_eq(domus_stage_kit_encode(http.kit, id, &domus_http_text_type, &done), 0);
    ck_assert_str_eq(domt_codec_take_output(&http), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    domt_codec_stop(&http);
}

DOMT_TEST(a_body_that_got_no_100_continue_ends_the_connection)
{
    static const domus_http_text refusal = {.status = 403};
    domt_codec http;

    domt_http_start_codec(&http, &streams);
    uint64_t id = domt_http_feed_request_text(&http, EXPECT(2));
    ck_assert_int_eq(domus_stage_kit_encode(http.kit, id, &domus_http_text_type, &refusal), 0);
    ck_assert_str_eq(domt_codec_take_output(&http),
                     "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    ck_assert(domus_stage_kit_is_last(http.kit));
    domt_codec_stop(&http);
    domt_http_start_codec(&http, &streams);
    /* the body of this request is wanted only after the answer has begun */
    id = domt_http_feed_request_text(&http, EXPECT(2));
    ck_assert_int_eq(encode_in_pieces(&http, id, &(domus_http_response){.status = 200}, "a", NULL),
                     0);
    ck_assert_ptr_nonnull(strstr(domt_codec_take_output(&http), "\r\nConnection: close\r\n"));
    ck_assert_int_eq(domus_stage_kit_wanted(http.kit), 0);
    ck_assert_str_eq(domt_codec_take_output(&http), "");
    domt_codec_stop(&http);
    domt_http_start_codec(&http, &streams);
    id = domt_http_feed_request_text(&http, EXPECT(2));
    ck_assert_int_eq(domus_stage_kit_fail(http.kit, id, &domus_http_request_type, -EACCES), 0);
    ck_assert_ptr_nonnull(strstr(domt_codec_take_output(&http), "\r\nConnection: close\r\n"));
    ck_assert(domus_stage_kit_is_last(http.kit));
    domt_codec_stop(&http);
}

/* Feed bytes that do not complete a request, and return the bytes that are sent. */
static const char *feed_and_return_sent(domt_codec *http, const char *bytes)
{
    domus_stage_message message;

    ck_assert_int_eq(domus_stage_kit_feed(http->kit, bytes, strlen(bytes)), 0);
    ck_assert_int_eq(domus_stage_kit_next(http->kit, &message), 0);
    return domt_codec_take_output(http);
}

DOMT_TEST(a_body_of_a_later_request_gets_100_continue_as_well)
{
    static const domus_http_text done = {.status = 200};
    domt_codec http;

    domt_http_start_codec(&http, &streams);
    uint64_t first = domt_http_feed_request_text(&http, EXPECT(2));
    ck_assert_int_eq(domus_stage_kit_wanted(http.kit), 0);
    (void)domt_http_feed_request_text(&http, "ab");
    uint64_t second = domt_http_feed_request_text(&http, EXPECT(2));
    (void)domt_codec_take_output(&http);
    ck_assert_int_eq(domus_stage_kit_encode(http.kit, first, &domus_http_text_type, &done), 0);
    ck_assert_str_eq(domt_codec_take_output(&http), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    ck_assert_int_eq(domus_stage_kit_wanted(http.kit), 0);
    ck_assert_str_eq(domt_codec_take_output(&http), CONTINUE);
    (void)domt_http_feed_request_text(&http, "ab");
    ck_assert_int_eq(domus_stage_kit_encode(http.kit, second, &domus_http_text_type, &done), 0);
    ck_assert(!domus_stage_kit_is_last(http.kit));
    domt_codec_stop(&http);
}

DOMT_TEST(a_body_that_comes_whole_gets_100_continue_at_once)
{
    static const domus_http_text done = {.status = 200};
    static const char *const heads[] = {
        EXPECT(2), EXPECT(20000),
        "PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nTransfer-Encoding: chunked\r\n\r\n"};
    domt_codec http;

    for (int i = 0; i < 3; i++) {
        domt_http_start_codec(&http, &plain);
        ck_assert_str_eq(feed_and_return_sent(&http, heads[i]), CONTINUE);
        ck_assert_str_eq(feed_and_return_sent(&http, "1"), "");
        domt_codec_stop(&http);
        /* 100 Continue is sent behind the answers to earlier requests */
        domt_http_start_codec(&http, &plain);
        uint64_t first = domt_http_feed_request_text(&http, GET);
        uint64_t second = domt_http_feed_request_text(&http, GET);
        ck_assert_str_eq(feed_and_return_sent(&http, heads[i]), "");
        ck_assert_int_eq(domus_stage_kit_encode(http.kit, first, &domus_http_text_type, &done), 0);
        ck_assert_ptr_null(strstr(domt_codec_take_output(&http), CONTINUE));
        ck_assert_int_eq(domus_stage_kit_encode(http.kit, second, &domus_http_text_type, &done), 0);
        ck_assert_str_eq(domt_codec_take_output(&http),
                         "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" CONTINUE);
        domt_codec_stop(&http);
    }
    /* 100 Continue is sent behind the last of these answers, in whatever order they are encoded */
    domt_http_start_codec(&http, &plain);
    uint64_t first = domt_http_feed_request_text(&http, GET);
    uint64_t second = domt_http_feed_request_text(&http, GET);
    ck_assert_str_eq(feed_and_return_sent(&http, heads[0]), "");
    ck_assert_int_eq(domus_stage_kit_encode(http.kit, second, &domus_http_text_type, &done), 0);
    ck_assert_ptr_nonnull(strstr(domt_codec_take_output(&http), CONTINUE));
    ck_assert_int_eq(domus_stage_kit_encode(http.kit, first, &domus_http_text_type, &done), 0);
    ck_assert_ptr_null(strstr(domt_codec_take_output(&http), CONTINUE));
    domt_codec_stop(&http);
    /* a part of the body has come already, so no 100 Continue is sent */
    domt_http_start_codec(&http, &plain);
    ck_assert_str_eq(feed_and_return_sent(&http, EXPECT(2) "1"), "");
    domt_codec_stop(&http);
    domt_http_start_codec(&http, &plain); /* the request has no body, so no 100 Continue is sent */
    (void)domt_http_feed_request_text(&http, EXPECT(0));
    ck_assert_str_eq(domt_codec_take_output(&http), "");
    domt_codec_stop(&http);
}

static const domus_http_options tunnel_streams = {
    .role = DOMUS_ROLE_CLIENT, .host = "a", .streams = true, .body_max = 5};
static const domus_http_options tunnel_whole = {.role = DOMUS_ROLE_CLIENT, .host = "a"};

#define ASKED  "GET /a HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: b\r\n\r\n"
#define SWITCH "HTTP/1.1 101 x\r\nUpgrade: b\r\n\r\n"

/* Encode a request for a tunnel in a client's stage. Returns the result. */
static int ask_for_tunnel(domt_codec *http, domus_http_request like)
{
    like.target = domt_slice_of_text("/a");
    like.fields = domt_slice_of_text("Upgrade: b\r\n");
    int error = domus_stage_kit_encode(http->kit, 0, &domus_http_request_type, &like);
    domus_http_request_type.release(&like);
    return error;
}

/* Begin with a client's stage that has sent a request for a tunnel. */
static void begin_tunnel_request(domt_codec *http, uint64_t *word)
{
    *word = 0;
    domt_http_start_codec(http, &tunnel_streams);
    domus_stage_kit_stream(http->kit, word);
    ck_assert_int_eq(ask_for_tunnel(http, (domus_http_request){.upgrade = true, .tunnels = true}),
                     0);
    ck_assert_str_eq(domt_codec_take_output(http), ASKED);
}

static int encode_piece_of_tunnel(domt_codec *http, const char *text)
{
    domus_piece piece = {.last = *text == '\0'};

    if (!piece.last)
        piece.bytes = domt_slice_of_text(text);
    int error = domus_stage_kit_encode(http->kit, 0, &domus_piece_type, &piece);
    domus_slice_free(piece.bytes);
    return error;
}

/* Check that the next message is a piece of the tunnel with these bytes; "": the tunnel's end. */
static void expect_piece_of_tunnel(domt_codec *http, const char *text)
{
    domus_stage_message message;

    ck_assert_int_eq(domus_stage_kit_next(http->kit, &message), 1);
    ck_assert_int_eq(message.kind, DOMUS_STAGE_PIECE);
    const domus_piece *piece = message.payload;
    ck_assert(domus_slice_equals(piece->bytes, text, strlen(text)));
    ck_assert(piece->last == (*text == '\0'));
}

static void feed_bytes_of_tunnel(domt_codec *http, const char *text)
{
    ck_assert_int_eq(domus_stage_kit_feed(http->kit, text, strlen(text)), 0);
}

DOMT_TEST(bytes_behind_101_are_those_of_the_tunnel)
{
    domus_stage_message message;
    domt_codec http;
    uint64_t word;

    begin_tunnel_request(&http, &word);
    ck_assert_int_eq(encode_piece_of_tunnel(&http, "early"), -EPIPE);
    feed_bytes_of_tunnel(&http, SWITCH "HTTP/1.1 200 OK\r\n\r\n");
    ck_assert_int_eq(domus_stage_kit_next(http.kit, &message), 1);
    const domus_http_response *response = message.payload;
    ck_assert(response->status == 101 && response->stream.number != 0 && response->close);
    /* a tunnel may carry more bytes than body_max, the limit of bodies */
    expect_piece_of_tunnel(&http, "HTTP/1.1 200 OK\r\n\r\n");
    ck_assert_int_eq(encode_piece_of_tunnel(&http, "more than five"), 0);
    ck_assert_str_eq(domt_codec_take_output(&http), "more than five");
    domus_stage_kit_finish(http.kit);
    expect_piece_of_tunnel(&http, "");
    ck_assert_int_eq(encode_piece_of_tunnel(&http, "a"), 0);
    ck_assert_int_eq(encode_piece_of_tunnel(&http, ""), 0);
    ck_assert_str_eq(domt_codec_take_output(&http), "a");
    domt_codec_stop(&http);
}

DOMT_TEST(another_answer_leaves_the_connection_as_it_is)
{
    domus_stage_message message;
    uint64_t word;

    for (int cuts = 0; cuts < 2; cuts++) {
        domt_codec http;
        begin_tunnel_request(&http, &word);
        feed_bytes_of_tunnel(&http, "HTTP/1.1 204 x\r\n\r\n");
        ck_assert_int_eq(domus_stage_kit_next(http.kit, &message), 1);
        ck_assert(!((const domus_http_response *)message.payload)->close);
        ck_assert_int_eq(encode_piece_of_tunnel(&http, "a"), -EPIPE);
        ck_assert_int_eq(cuts != 0 ? domus_stage_kit_cut(http.kit, 0, -ECANCELED)
                                   : encode_piece_of_tunnel(&http, ""),
                         0);
        word = 0;
        ck_assert_int_eq(
            ask_for_tunnel(&http, (domus_http_request){.upgrade = true, .tunnels = true}), 0);
        ck_assert_str_eq(domt_codec_take_output(&http), ASKED);
        domt_codec_stop(&http);
    }
}

/* If a tunnel is cut before its answer, the connection ends: the peer may send any bytes next. */
DOMT_TEST(a_tunnel_that_is_cut_ends_the_connection)
{
    domt_codec http;
    uint64_t word;

    begin_tunnel_request(&http, &word);
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

    domt_http_start_codec(&http, &tunnel_streams);
    ck_assert_int_eq(ask_for_tunnel(&http, (domus_http_request){.tunnels = true, .upgrade = true}),
                     -EINVAL);
    domus_stage_kit_stream(http.kit, &word);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(ask_for_tunnel(&http, wrong[i]), -EINVAL);
    domt_codec_stop(&http);
    domt_http_start_codec(&http, &tunnel_whole);
    domus_stage_kit_stream(http.kit, &word);
    ck_assert_int_eq(ask_for_tunnel(&http, (domus_http_request){.tunnels = true, .upgrade = true}),
                     -EINVAL);
    domt_codec_stop(&http);
}

DOMT_SUITE(20)
