/* A client encodes requests, and a server reads the same requests. */
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

static const domus_http_options client = {.role = DOMUS_ROLE_CLIENT, .host = "a:80"};
static const domus_http_options hostless = {.role = DOMUS_ROLE_CLIENT};

/* Make a request from these texts: its target, fields and body. */
static domus_http_request make_request(domus_http_method method, const char *target,
                                       const char *fields, const char *body)
{
    return (domus_http_request){.method = (uint8_t)method,
                                .target = domt_slice_of_text(target),
                                .fields = domt_slice_of_text(fields),
                                .body = domt_slice_of_text(body)};
}

/* Encode a request by the client's stage, and release it. Returns the error. */
static int encode_request(domt_codec *http, domus_http_request *request)
{
    int error = domus_stage_kit_encode(http->kit, 0, &domus_http_request_type, request);

    domus_http_request_type.release(request);
    return error;
}

static void check_request_encoded_with_options(const domus_http_options *options,
                                               domus_http_request request, const char *expected)
{
    domt_codec http;
    bool closes = request.close;

    domt_http_start_codec(&http, options);
    ck_assert_int_eq(encode_request(&http, &request), 0);
    ck_assert_str_eq(domt_codec_take_output(&http), expected);
    ck_assert_int_eq(domus_stage_kit_is_last(http.kit), closes);
    domt_codec_stop(&http);
}

static void check_encoded_request(domus_http_request request, const char *expected)
{
    check_request_encoded_with_options(&client, request, expected);
}

DOMT_TEST(requests_of_a_client_are_encoded)
{
    domus_http_request closing = make_request(DOMUS_HTTP_DELETE, "/a", "", "");
    domus_http_request upgrading = make_request(DOMUS_HTTP_GET, "/a", "Upgrade: b\r\n", "");

    check_encoded_request(make_request(DOMUS_HTTP_GET, "/a?b", "", ""),
                          "GET /a?b HTTP/1.1\r\nHost: a:80\r\n\r\n");
    check_encoded_request(make_request(DOMUS_HTTP_HEAD, "http://b/", "A: b\r\nhost: b\r\n", ""),
                          "HEAD http://b/ HTTP/1.1\r\nA: b\r\nhost: b\r\n\r\n");
    check_encoded_request(make_request(DOMUS_HTTP_OPTIONS, "*", "", ""),
                          "OPTIONS * HTTP/1.1\r\nHost: a:80\r\n\r\n");
    check_encoded_request(make_request(DOMUS_HTTP_POST, "/", "", ""),
                          "POST / HTTP/1.1\r\nHost: a:80\r\nContent-Length: 0\r\n\r\n");
    check_encoded_request(make_request(DOMUS_HTTP_PUT, "/", "A: b\r\n", "hello"),
                          "PUT / HTTP/1.1\r\nHost: a:80\r\nContent-Length: 5\r\nA: b\r\n\r\nhello");
    closing.close = true;
    check_encoded_request(closing, "DELETE /a HTTP/1.1\r\nHost: a:80\r\nConnection: close\r\n\r\n");
    upgrading.upgrade = true;
    check_encoded_request(
        upgrading, "GET /a HTTP/1.1\r\nHost: a:80\r\nConnection: upgrade\r\nUpgrade: b\r\n\r\n");
}

/* A request without a body sends no Expect field: the server could wait for a body. */
DOMT_TEST(a_body_that_does_not_come_is_not_announced)
{
    static const char expect[] = "Expect: 100-continue\r\n";
    domus_http_request without = make_request(DOMUS_HTTP_PUT, "/", expect, "");
    domt_codec http;

    check_encoded_request(
        make_request(DOMUS_HTTP_PUT, "/", expect, "hello"),
        "PUT / HTTP/1.1\r\nHost: a:80\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello");
    domt_http_start_codec(&http, &client);
    ck_assert_int_eq(encode_request(&http, &without), -EINVAL);
    ck_assert_str_eq(domt_codec_take_output(&http), "");
    domt_codec_stop(&http);
}

DOMT_TEST(an_absolute_target_is_sent_in_origin_form)
{
    static const domus_http_options origin = {.role = DOMUS_ROLE_CLIENT, .origin_form = true};
    static const char *const wrong[] = {"/a",          "*",           "http://",
                                        "http://a@b/", "http://a:0/", "http://a/b#c"};
    domt_codec http;

    check_request_encoded_with_options(&origin,
                                       make_request(DOMUS_HTTP_GET, "http://a:80/b?c", "", ""),
                                       "GET /b?c HTTP/1.1\r\nHost: a:80\r\n\r\n");
    check_request_encoded_with_options(&origin,
                                       make_request(DOMUS_HTTP_GET, "HTTP://[::1]", "", ""),
                                       "GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n");
    check_request_encoded_with_options(
        &origin, make_request(DOMUS_HTTP_GET, "https://a?b", "host: c\r\n", ""),
        "GET /?b HTTP/1.1\r\nhost: c\r\n\r\n");
    check_request_encoded_with_options(&origin,
                                       make_request(DOMUS_HTTP_GET, "/b", "host: c\r\n", ""),
                                       "GET /b HTTP/1.1\r\nhost: c\r\n\r\n");
    domt_http_start_codec(&http, &origin);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        domus_http_request request = make_request(DOMUS_HTTP_OPTIONS, wrong[i], "", "");
        ck_assert_int_eq(encode_request(&http, &request), -EINVAL);
    }
    domt_codec_stop(&http);
}

DOMT_TEST(requests_that_http_cannot_say_are_refused)
{
    static const char *const targets[] = {"",        "a",        "*",         "/a b", "/a\r\nb: c",
                                          "/\n",     "/#a",      "/\xc3\xa4", "/\t",  " /",
                                          "http://", "ftp://a/", "//\x7f",    "a:80", "**"};
    static const char *const fields[] = {
        "Content-Length: 1\r\n",  "a",         "Connection: close\r\n",         "a: b",
        "Host: a\r\nHost: a\r\n", "a : b\r\n", "Transfer-Encoding: chunked\r\n"};
    domt_codec http;

    domt_http_start_codec(&http, &client);
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        domus_http_request request = make_request(DOMUS_HTTP_GET, targets[i], "", "");
        ck_assert_int_eq(encode_request(&http, &request), -EINVAL);
    }
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        domus_http_request request = make_request(DOMUS_HTTP_GET, "/", fields[i], "");
        ck_assert_int_eq(encode_request(&http, &request), -EINVAL);
    }
    domus_http_request request = make_request(DOMUS_HTTP_CONNECT, "/", "", "");
    ck_assert_int_eq(encode_request(&http, &request), -EINVAL);
    request = make_request(DOMUS_HTTP_METHODS, "/", "", "");
    ck_assert_int_eq(encode_request(&http, &request), -EINVAL);
    request = make_request(DOMUS_HTTP_TRACE, "/", "", "a");
    ck_assert_int_eq(encode_request(&http, &request), -EINVAL);
    domus_http_text text = {.status = 200};
    ck_assert_int_eq(domus_stage_kit_encode(http.kit, 0, &domus_http_text_type, &text),
                     -EOPNOTSUPP);
    /* the request is sent as a notice, so its answer would have no receiver */
    request = make_request(DOMUS_HTTP_GET, "/", "", "");
    ck_assert_int_eq(
        domus_stage_kit_encode(http.kit, DOMUS_NO_ID, &domus_http_request_type, &request),
        -EOPNOTSUPP);
    domus_http_request_type.release(&request);
    ck_assert_str_eq(domt_codec_take_output(&http), "");
    domt_codec_stop(&http);
    domt_http_start_codec(&http, &hostless);
    request = make_request(DOMUS_HTTP_GET, "/", "", "");
    ck_assert_int_eq(encode_request(&http, &request), -EINVAL);
    domt_codec_stop(&http);
}

/* Encode a request in pieces, and decode it by a server's stage. */
static const char *bytes_of_request_in_pieces(uint64_t length, const char *trailers)
{
    static const domus_http_options server = {.streams = true};
    domus_http_request head = make_request(DOMUS_HTTP_PUT, "/", "", "");
    domus_piece piece = {.bytes = domt_slice_of_text("hello")};
    const domus_piece last = {.last = true};
    domt_codec http;
    uint64_t word = 0;

    head.length = length;
    domt_http_start_codec(&http, &client);
    domus_stage_kit_stream(http.kit, &word);
    ck_assert_int_eq(encode_request(&http, &head), 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(domus_stage_kit_encode(http.kit, 0, &domus_piece_type, &piece), 0);
    if (trailers != NULL) {
        domus_http_trailers end = {domt_slice_of_text(trailers)};
        ck_assert_int_eq(domus_stage_kit_encode(http.kit, 0, &domus_http_trailers_type, &end), 0);
        domus_slice_free(end.fields);
    } else {
        ck_assert_int_eq(domus_stage_kit_encode(http.kit, 0, &domus_piece_type, &last), 0);
    }
    domus_slice_free(piece.bytes);
    const char *sent = domt_codec_take_output(&http);
    domt_codec_stop(&http);
    return domt_http_trace_of_bytes(&server, "", sent, strlen(sent), 0, 0);
}

DOMT_TEST(requests_leave_in_pieces)
{
    ck_assert_str_eq(bytes_of_request_in_pieces(0, NULL),
                     "PUT / 1.1 (Host: a:80|Transfer-Encoding: chunked) "
                     "0 in pieces: [hellohello]\n");
    ck_assert_str_eq(bytes_of_request_in_pieces(0, "T: u\r\n"),
                     "PUT / 1.1 (Host: a:80|Transfer-Encoding: chunked) "
                     "0 in pieces: [hellohello] (T: u)\n");
    ck_assert_str_eq(bytes_of_request_in_pieces(10, NULL),
                     "PUT / 1.1 (Host: a:80|Content-Length: 10) "
                     "10 in pieces: [hellohello]\n");
}

/* --- bodies that wait for 100 Continue -------------------------------------------------------- */

#define ANNOUNCED  "PUT / HTTP/1.1\r\nHost: a:80\r\nExpect: 100-continue\r\n"
#define CONTINUE   "HTTP/1.1 100 Continue\r\n\r\n"
#define NO_CONTENT "HTTP/1.1 204 a\r\n\r\n"

/* Encode a request that announces its body and waits before it sends that: the body "hello", or one
 * in pieces. */
static int encode_request_that_waits(domt_codec *http, bool in_pieces, uint64_t length)
{
    domus_http_request request = make_request(DOMUS_HTTP_PUT, "/", "", in_pieces ? "" : "hello");

    request.expects = true;
    request.length = length;
    return encode_request(http, &request);
}

static int encode_piece_of_body(domt_codec *http, const char *text, bool is_last)
{
    const domus_piece piece = {domt_slice_of_text(text), is_last};
    int error = domus_stage_kit_encode(http->kit, 0, &domus_piece_type, &piece);

    domus_slice_free(piece.bytes);
    return error;
}

/* Feed bytes of the server to the client. Returns the status of the answer in them; 0 if there is
 * none; or the error. */
static int status_of_fed_answer(domt_codec *http, const char *bytes)
{
    domus_stage_message message;

    ck_assert_int_eq(domus_stage_kit_feed(http->kit, bytes, strlen(bytes)), 0);
    int result = domus_stage_kit_next(http->kit, &message);
    return result == 1 ? ((const domus_http_response *)message.payload)->status : result;
}

static void expect_bytes_sent(domt_codec *http, const char *expected)
{
    ck_assert_str_eq(domt_codec_take_output(http), expected);
}

DOMT_TEST(a_whole_body_waits_for_100_continue)
{
    domt_codec http;

    domt_http_start_codec(&http, &client);
    ck_assert_int_eq(encode_request_that_waits(&http, false, 0), 0);
    expect_bytes_sent(&http, ANNOUNCED "Content-Length: 5\r\n\r\n");
    ck_assert_uint_eq(domus_stage_kit_wake_ns(http.kit), 1000000000);
    ck_assert_int_eq(status_of_fed_answer(&http, "HTTP/1.1 103 a\r\n\r\n"), 0);
    expect_bytes_sent(&http, "");
    ck_assert_int_eq(status_of_fed_answer(&http, CONTINUE CONTINUE), 0);
    expect_bytes_sent(&http, "hello");
    ck_assert_uint_eq(domus_stage_kit_wake_ns(http.kit), 0);
    ck_assert_int_eq(status_of_fed_answer(&http, NO_CONTENT), 204);
    ck_assert(!domus_stage_kit_is_last(http.kit));
    /* the body of this second request will leave when its wait is over */
    ck_assert_int_eq(encode_request_that_waits(&http, false, 0), 0);
    expect_bytes_sent(&http, ANNOUNCED "Content-Length: 5\r\n\r\n");
    ck_assert_int_eq(domus_stage_kit_wake(http.kit, false), 0);
    expect_bytes_sent(&http, "hello");
    ck_assert_int_eq(status_of_fed_answer(&http, CONTINUE NO_CONTENT), 204);
    expect_bytes_sent(&http, "");
    ck_assert(!domus_stage_kit_is_last(http.kit));
    domt_codec_stop(&http);
}

/* A body does not wait if another request follows on the connection. An interim answer 100 belongs
 * to the oldest request. */
DOMT_TEST(a_body_waits_for_100_behind_other_requests)
{
    domt_codec http;

    domt_http_start_codec(&http, &client);
    check_encoded_request(make_request(DOMUS_HTTP_GET, "/", "", ""),
                          "GET / HTTP/1.1\r\nHost: a:80\r\n\r\n");
    domt_http_encode_requests(&http, "G");
    ck_assert_int_eq(encode_request_that_waits(&http, false, 0), 0);
    expect_bytes_sent(&http, ANNOUNCED "Content-Length: 5\r\n\r\n");
    ck_assert_int_eq(status_of_fed_answer(&http, CONTINUE), 0);
    expect_bytes_sent(&http, "");
    ck_assert_int_eq(status_of_fed_answer(&http, NO_CONTENT), 204);
    ck_assert(!domus_stage_kit_is_last(http.kit));
    expect_bytes_sent(&http, "");
    ck_assert_int_eq(encode_request_that_waits(&http, false, 0), 0);
    expect_bytes_sent(&http, "hello" ANNOUNCED "Content-Length: 5\r\n\r\n");
    ck_assert_int_eq(status_of_fed_answer(&http, NO_CONTENT), 204);
    ck_assert(!domus_stage_kit_is_last(http.kit));
    /* the answer to the second request comes although its body was not sent */
    ck_assert_int_eq(status_of_fed_answer(&http, NO_CONTENT), 204);
    ck_assert(domus_stage_kit_is_last(http.kit));
    ck_assert_uint_eq(domus_stage_kit_wake_ns(http.kit), 0);
    domus_http_request more = make_request(DOMUS_HTTP_GET, "/", "", "");
    ck_assert_int_eq(encode_request(&http, &more), -EPIPE);
    expect_bytes_sent(&http, "");
    domt_codec_stop(&http);
}

DOMT_TEST(the_first_piece_of_a_body_waits_for_100_continue)
{
    for (uint64_t length = 0; length < 20; length += 10) {
        uint64_t word = 0;
        domt_codec http;

        domt_http_start_codec(&http, &client);
        domus_stage_kit_stream(http.kit, &word);
        ck_assert_int_eq(encode_request_that_waits(&http, true, length), 0);
        expect_bytes_sent(&http, length == 0 ? ANNOUNCED "Transfer-Encoding: chunked\r\n\r\n"
                                             : ANNOUNCED "Content-Length: 10\r\n\r\n");
        if (length != 0)
            ck_assert_int_eq(encode_piece_of_body(&http, "more than ten", false), -EMSGSIZE);
        ck_assert_int_eq(encode_piece_of_body(&http, "hello", false), 0);
        expect_bytes_sent(&http, "");
        ck_assert_int_eq(status_of_fed_answer(&http, CONTINUE), 0);
        expect_bytes_sent(&http, length == 0 ? "5\r\nhello\r\n" : "hello");
        if (length != 0)
            ck_assert_int_eq(encode_piece_of_body(&http, "world!", false), -EMSGSIZE);
        ck_assert_int_eq(encode_piece_of_body(&http, "world", false), 0);
        ck_assert_int_eq(encode_piece_of_body(&http, "", true), 0);
        expect_bytes_sent(&http, length == 0 ? "5\r\nworld\r\n0\r\n\r\n" : "world");
        domt_codec_stop(&http);
    }
}

/* A body that the client has complete is sent at once: waiting for 100 Continue would save
 * nothing. */
DOMT_TEST(a_body_that_is_complete_does_not_wait_for_100)
{
    uint64_t word = 0;
    domt_codec http;

    domt_http_start_codec(&http, &client);
    domus_stage_kit_stream(http.kit, &word);
    ck_assert_int_eq(encode_request_that_waits(&http, true, 0), 0);
    ck_assert_int_eq(encode_piece_of_body(&http, "hello", false), 0);
    domus_http_trailers end = {domt_slice_of_text("T: u\r\n")};
    ck_assert_int_eq(domus_stage_kit_encode(http.kit, 0, &domus_http_trailers_type, &end), 0);
    domus_slice_free(end.fields);
    expect_bytes_sent(&http, ANNOUNCED
                      "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nT: u\r\n\r\n");
    ck_assert_uint_eq(domus_stage_kit_wake_ns(http.kit), 0);
    domt_codec_stop(&http);
}

DOMT_TEST(pieces_of_a_refused_body_are_never_sent)
{
    for (int cuts = 0; cuts < 2; cuts++) {
        uint64_t word = 0;
        domt_codec http;

        domt_http_start_codec(&http, &client);
        domus_stage_kit_stream(http.kit, &word);
        ck_assert_int_eq(encode_request_that_waits(&http, true, 0), 0);
        (void)domt_codec_take_output(&http);
        ck_assert_int_eq(encode_piece_of_body(&http, "hello", false), 0);
        ck_assert_int_eq(status_of_fed_answer(&http, "HTTP/1.1 413 a\r\nContent-Length: 0\r\n\r\n"),
                         413);
        ck_assert(domus_stage_kit_is_last(http.kit));
        ck_assert_int_eq(encode_piece_of_body(&http, "hello", false), 0);
        if (cuts != 0)
            ck_assert_int_eq(domus_stage_kit_cut(http.kit, 0, -ECANCELED), 0);
        else
            ck_assert_int_eq(encode_piece_of_body(&http, "", true), 0);
        expect_bytes_sent(&http, "");
        domt_codec_stop(&http);
    }
}

/* A server that changes the protocol has to receive the body first. */
DOMT_TEST(a_101_before_a_body_that_waits_is_a_protocol_error)
{
    domus_http_request request = make_request(DOMUS_HTTP_PUT, "/", "Upgrade: b\r\n", "hello");
    domt_codec http;

    request.upgrade = request.expects = true;
    domt_http_start_codec(&http, &client);
    ck_assert_int_eq(encode_request(&http, &request), 0);
    ck_assert_int_eq(
        status_of_fed_answer(&http, "HTTP/1.1 101 a\r\nUpgrade: b\r\nConnection: upgrade\r\n\r\n"),
        -EPROTO);
    domt_codec_stop(&http);
}

DOMT_TEST(a_request_without_a_body_expects_nothing)
{
    static const uint64_t wrong[] = {1, 999999, UINT64_C(60000000001)};
    domus_http_request request = make_request(DOMUS_HTTP_POST, "/", "", "");
    domus_http_request said = make_request(DOMUS_HTTP_PUT, "/", "expect: 100-continue\r\n", "a");
    domt_codec http;

    request.expects = said.expects = true;
    check_encoded_request(request, "POST / HTTP/1.1\r\nHost: a:80\r\nContent-Length: 0\r\n\r\n");
    check_encoded_request(
        said, "PUT / HTTP/1.1\r\nHost: a:80\r\nContent-Length: 1\r\nexpect: 100-continue\r\n\r\n");
    domus_http_options options = client;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        options.continue_timeout_ns = wrong[i];
        ck_assert_int_eq(domus_http_stage.check(&options), -EINVAL);
    }
    options.continue_timeout_ns = 1000000;
    ck_assert_int_eq(domus_http_stage.check(&options), 0);
    domt_http_start_codec(&http, &options);
    ck_assert_int_eq(encode_request_that_waits(&http, false, 0), 0);
    ck_assert_uint_eq(domus_stage_kit_wake_ns(http.kit), 1000000);
    domt_codec_stop(&http);
}

/* An allocation fails while the waiting body is appended to the output: its bytes are kept for
 * another try. */
static int encode_request_with_failing_memory(void *context)
{
    const domus_http_request *request = context;
    domt_codec http;
    int error;

    http.stages[0] = (domus_pipeline_stage){&domus_http_stage, &client};
    http.stages[1] = (domus_pipeline_stage){NULL, NULL};
    http.pipeline = (domus_pipeline){.stages = http.stages};
    error = domus_stage_kit_new(&http.pipeline, &http.kit);
    if (error != 0)
        return error;
    for (int i = 0; i < 2 && error == 0; i++)
        error = domus_stage_kit_encode(http.kit, 0, &domus_http_request_type, request);
    if (error == 0)
        error = domus_stage_kit_wake(http.kit, false);
    domus_stage_kit_free(http.kit);
    return error;
}

DOMT_TEST(failing_memory_harms_no_body_that_waits_for_100)
{
    domus_http_request request = make_request(DOMUS_HTTP_PUT, "/", "", "hello");

    request.expects = true;
    domt_fail_each_allocation(encode_request_with_failing_memory, &request);
    domus_http_request_type.release(&request);
}

DOMT_TEST(requests_without_an_answer_have_a_bound)
{
    static const char answer[] = "HTTP/1.1 204 a\r\n\r\n";
    domus_stage_message message;
    domt_codec http;

    domt_http_start_codec(&http, &client);
    for (int i = 0; i < 3000; i++) {
        domus_http_request request =
            make_request(i % 3 == 0 ? DOMUS_HTTP_HEAD : DOMUS_HTTP_GET, "/", "", "");
        ck_assert_int_eq(encode_request(&http, &request), i < 1024 ? 0 : -ENOBUFS);
    }
    ck_assert_int_eq(domus_stage_kit_feed(http.kit, answer, sizeof answer - 1), 0);
    ck_assert_int_eq(domus_stage_kit_next(http.kit, &message), 1);
    domus_http_request request = make_request(DOMUS_HTTP_GET, "/", "", "");
    ck_assert_int_eq(encode_request(&http, &request), 0);
    domt_codec_stop(&http);
}

DOMT_SUITE(20)
