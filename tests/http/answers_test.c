/* The stage of HTTP writes how long answers are: no field of a user can say where an answer ends,
 * or end its own line. Answers that wait for their turn do not slow down the answer before them,
 * however large they are. */
#include "io/channels/crowd.h"
#include "runtime/system/system.h"
#include "tests/http/served.h"
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const domus_http_options plain = {.no_date = true};

#define GET     "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define HEAD    "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"
#define OLD     "GET / HTTP/1.0\r\n\r\n"
#define KEPT    "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
#define LAST    "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
#define UPGRADE "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: b\r\n\r\n"

/* Answer a request, and return the bytes that the peer receives. */
static const char *bytes_of_answer(const char *request, const domus_type *type, const void *payload)
{
    domt_codec http;

    domt_http_start_codec(&http, &plain);
    uint64_t id = domt_http_feed_request_text(&http, request);
    ck_assert_int_eq(domus_stage_kit_encode(http.kit, id, type, payload), 0);
    const char *sent = domt_codec_take_output(&http);
    bool closes = strstr(sent, "Connection: close\r\n") != NULL;
    ck_assert_int_eq(domus_stage_kit_is_last(http.kit), closes);
    domt_codec_stop(&http);
    return sent;
}

/* Answer a request with a wrong response, and return the error. Checks that no bytes are sent. */
static int error_of_refused_answer(const char *request, const domus_type *type, const void *payload)
{
    domt_codec http;

    domt_http_start_codec(&http, &plain);
    uint64_t id = domt_http_feed_request_text(&http, request);
    int error = domus_stage_kit_encode(http.kit, id, type, payload);
    ck_assert_str_eq(domt_codec_take_output(&http), "");
    domt_codec_stop(&http);
    return error;
}

DOMT_TEST(whole_answers_are_sent_with_trailers)
{
    static const char takes[] = "GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n";
    static const struct {
        const char *request, *body, *sent;
    } cases[] = {
        {takes, "hello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nT: u\r\n\r\n"},
        {takes, "", "Transfer-Encoding: chunked\r\n\r\n0\r\nT: u\r\n\r\n"},
        {GET, "hello", "Content-Length: 5\r\n\r\nhello"},
        {OLD, "hello", "Content-Length: 5\r\nConnection: close\r\n\r\nhello"},
        {"HEAD / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n", "hello",
         "Content-Length: 5\r\n\r\n"},
        {"GET / HTTP/1.0\r\nTE: trailers\r\n\r\n", "a",
         "Content-Length: 1\r\nConnection: close\r\n\r\na"},
    };
    static const char *const wrong[] = {"T", "Host: a\r\n", "Content-Length: 1\r\n",
                                        "T: u\r\n\r\n"};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        domus_http_response response = {.status = 200,
                                        .body = domt_slice_of_text(cases[i].body),
                                        .trailers = domt_slice_of_text("T: u\r\n")};
        const char *sent = bytes_of_answer(cases[i].request, &domus_http_response_type, &response);
        ck_assert_str_eq(strstr(sent, "\r\n") + 2, cases[i].sent);
        domus_http_response_type.release(&response);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        domus_http_response response = {.status = 200, .trailers = domt_slice_of_text(wrong[i])};
        ck_assert_int_eq(error_of_refused_answer(takes, &domus_http_response_type, &response),
                         -EINVAL);
        ck_assert_int_eq(error_of_refused_answer(GET, &domus_http_response_type, &response),
                         -EINVAL);
        domus_http_response_type.release(&response);
    }
}

DOMT_TEST(texts_are_encoded_as_answers)
{
    static const domus_http_text hello = {200, "text/plain", "hello"};
    static const domus_http_text none = {.status = 404};
    static const domus_http_text empty = {.status = 204};

    ck_assert_str_eq(
        bytes_of_answer(GET, &domus_http_text_type, &hello),
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n\r\nhello");
    ck_assert_str_eq(bytes_of_answer(HEAD, &domus_http_text_type, &hello),
                     "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n\r\n");
    ck_assert_str_eq(bytes_of_answer(GET, &domus_http_text_type, &none),
                     "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    ck_assert_str_eq(bytes_of_answer(GET, &domus_http_text_type, &empty),
                     "HTTP/1.1 204 No Content\r\n\r\n");
}

DOMT_TEST(answer_says_close_or_keep_alive_as_the_peer_has_asked)
{
    static const domus_http_text empty = {.status = 200};

    ck_assert_str_eq(bytes_of_answer(LAST, &domus_http_text_type, &empty),
                     "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    ck_assert_str_eq(bytes_of_answer(OLD, &domus_http_text_type, &empty),
                     "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    ck_assert_str_eq(bytes_of_answer(KEPT, &domus_http_text_type, &empty),
                     "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n");
    domus_http_response closing = {.status = 200, .close = true};
    ck_assert_str_eq(bytes_of_answer(GET, &domus_http_response_type, &closing),
                     "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

DOMT_TEST(responses_are_sent_with_fields_and_bodies)
{
    domus_http_response response = {.status = 201, .media = "a/b"};
    domus_appender fields = {0};

    ck_assert_int_eq(domus_http_add(&fields, "Location", "/a\tb"), 0);
    ck_assert_int_eq(domus_http_add_number(&fields, "X-Number", 12345678901), 0);
    ck_assert_int_eq(domus_http_add_bytes(&fields, "Empty", "", 0), 0);
    ck_assert_int_eq(domus_append_end(&fields, &response.fields), 0);
    response.body = domt_slice_of_text("body");
    ck_assert_str_eq(bytes_of_answer(GET, &domus_http_response_type, &response),
                     "HTTP/1.1 201 Created\r\nContent-Length: 4\r\nContent-Type: a/b\r\n"
                     "Location: /a\tb\r\nX-Number: 12345678901\r\nEmpty: \r\n\r\nbody");
    domus_http_response_type.release(&response);
    response = (domus_http_response){.status = 304, .length = 70};
    ck_assert_str_eq(bytes_of_answer(GET, &domus_http_response_type, &response),
                     "HTTP/1.1 304 Not Modified\r\nContent-Length: 70\r\n\r\n");
    response = (domus_http_response){.status = 304};
    ck_assert_str_eq(bytes_of_answer(GET, &domus_http_response_type, &response),
                     "HTTP/1.1 304 Not Modified\r\n\r\n");
    response = (domus_http_response){.status = 200, .length = 70};
    ck_assert_str_eq(bytes_of_answer(HEAD, &domus_http_response_type, &response),
                     "HTTP/1.1 200 OK\r\nContent-Length: 70\r\n\r\n");
    response = (domus_http_response){.status = 599};
    ck_assert_str_eq(bytes_of_answer(GET, &domus_http_response_type, &response),
                     "HTTP/1.1 599 \r\nContent-Length: 0\r\n\r\n");
    response = (domus_http_response){.status = 101};
    ck_assert_str_eq(bytes_of_answer(UPGRADE, &domus_http_response_type, &response),
                     "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\r\n");
}

DOMT_TEST(long_answers_are_whole)
{
    static char text[5001];
    domus_http_response response = {.status = 200};
    domus_appender fields = {0};

    memset(text, 'x', 5000);
    response.body = domt_slice_of_text(text);
    for (int i = 0; i < 2; i++) {
        const char *sent = bytes_of_answer(GET, &domus_http_response_type, &response);
        const char *body = strstr(sent, "\r\n\r\n");
        ck_assert_ptr_nonnull(strstr(sent, "Content-Length: 5000\r\n"));
        ck_assert_str_eq(body + 4, text);
        if (i == 0) {
            ck_assert_int_eq(domus_http_add(&fields, "Long", text), 0);
            ck_assert_int_eq(domus_append_end(&fields, &response.fields), 0);
        }
    }
    domus_http_response_type.release(&response);
    domus_http_text long_text = {200, NULL, text};
    const char *sent = bytes_of_answer(GET, &domus_http_text_type, &long_text);
    ck_assert_str_eq(strstr(sent, "\r\n\r\n") + 4, text);
}

DOMT_TEST(answers_that_http_cannot_say_are_refused)
{
    static const char *const fields[] = {
        "a: b",       "a: b\r\n\r\n",           "\r\n",        "a: b\rc: d\r\n",
        "a\r\n",      "a: b\nc: d\r\n",         "a: b\r",      "a: b\r\n c\r\n",
        "a: b\n",     "a: b\rxc: d\r\n",        ": b\r\n",     "a: b\n\nc: d\r\n",
        "a : b\r\n",  "Content-Length: 5\r\n",  " a: b\r\n",   "CONNECTION: close\r\n",
        "a b: c\r\n", "Host: a\r\nHost: b\r\n", "a: \x01\r\n", "transfer-encoding: chunked\r\n",
        "a: \x7f\r\n"};

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        domus_http_response response = {.status = 200, .fields = domt_slice_of_text(fields[i])};
        ck_assert_int_eq(error_of_refused_answer(GET, &domus_http_response_type, &response),
                         -EINVAL);
        domus_http_response_type.release(&response);
    }
    static const unsigned statuses[] = {0, 100, 103, 199, 600, 65535};
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        domus_http_text text = {.status = (uint16_t)statuses[i]};
        ck_assert_int_eq(error_of_refused_answer(GET, &domus_http_text_type, &text), -EINVAL);
    }
    domus_http_text upgrade = {.status = 101};
    ck_assert_int_eq(error_of_refused_answer(GET, &domus_http_text_type, &upgrade), -EINVAL);
    domus_http_text body = {.status = 204, .text = "a"};
    ck_assert_int_eq(error_of_refused_answer(GET, &domus_http_text_type, &body), -EINVAL);
    body.status = 304;
    ck_assert_int_eq(error_of_refused_answer(GET, &domus_http_text_type, &body), -EINVAL);
    domus_http_text media = {.status = 200, .media = "a\r\nb: c"};
    ck_assert_int_eq(error_of_refused_answer(GET, &domus_http_text_type, &media), -EINVAL);
    domus_piece piece = {.last = true};
    ck_assert_int_eq(error_of_refused_answer(GET, &domus_piece_type, &piece), -EOPNOTSUPP);
    domus_packet packet = {{NULL, 0, 0}};
    ck_assert_int_eq(error_of_refused_answer(GET, &domus_packet_type, &packet), -EOPNOTSUPP);
}

DOMT_TEST(names_and_values_of_added_fields_are_checked)
{
    static const char *const names[] = {"", "a b", "a:", "a\r\n", "\xc3\xa4", "a\"", "a("};
    static const char *const values[] = {"\r", "\n", "a\r\nb: c", "\x01", "\x7f", "a\x0b"};
    domus_slice made;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        domus_appender fields = {0};
        ck_assert_int_eq(domus_http_add(&fields, names[i], "b"), -EINVAL);
        /* the appender keeps the error, so a correct field does not help */
        ck_assert_int_eq(domus_http_add(&fields, "a", "b"), -EINVAL);
        ck_assert_int_eq(domus_append_end(&fields, &made), -EINVAL);
    }
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        domus_appender fields = {0};
        ck_assert_int_eq(domus_http_add(&fields, "a", "b"), 0);
        ck_assert_int_eq(domus_http_add(&fields, "a", values[i]), -EINVAL);
        ck_assert_int_eq(domus_append_end(&fields, &made), -EINVAL);
    }
    domus_appender fields = {0};
    ck_assert_int_eq(domus_http_add_bytes(&fields, "a", "b\0c", 3), -EINVAL);
    domus_append_drop(&fields);
    domus_appender small = {.size_max = 5};
    ck_assert_int_eq(domus_http_add(&small, "a", "b"), -EMSGSIZE);
    domus_append_drop(&small);
}

/* Answer with a field, and check that of all fields the answer has exactly `made_text` of it. */
static void check_fields_passed_on(const char *received_text, const char *made_text)
{
    domus_slice received = domt_slice_of_text(received_text);
    domus_appender fields = {0};
    domus_slice made;

    ck_assert_int_eq(domus_http_add_end_to_end(&fields, received), 0);
    ck_assert_int_eq(domus_append_end(&fields, &made), 0);
    ck_assert(domus_slice_equals(made, made_text, strlen(made_text)));
    domus_slice_free(made);
    domus_slice_free(received);
}

DOMT_TEST(fields_of_the_connection_are_not_passed_on)
{
    check_fields_passed_on(
        "Host: a\r\nConnection: X-Own, keep-alive\r\nX-Own: 1\r\nx-own: 2\r\nKeep-Alive: 5\r\n"
        "TE: trailers\r\nTrailer: a\r\nTransfer-Encoding: chunked\r\nUpgrade: b\r\n"
        "Proxy-Connection: c\r\nContent-Length: 5\r\nX-Kept: d\r\n",
        "Host: a\r\nX-Kept: d\r\n");
}

DOMT_TEST(fields_named_by_any_connection_field_are_left_out)
{
    check_fields_passed_on("X-One: 1\r\nX-Kept: a\r\nConnection: x-one\r\nX-Two: 2\r\nX-Also: b\r\n"
                           "Connection: close ,, x-two\r\nX-Three: 3\r\nConnection: x-three",
                           "X-Kept: a\r\nX-Also: b\r\n");
}

DOMT_TEST(answers_have_a_date)
{
    static const domus_http_text done = {.status = 200};
    domt_codec http;

    domt_http_start_codec(&http, NULL);
    uint64_t id = domt_http_feed_request_text(&http, GET);
    ck_assert_int_eq(domus_stage_kit_encode(http.kit, id, &domus_http_text_type, &done), 0);
    const char *date = strstr(domt_codec_take_output(&http), "\r\nDate: ");
    ck_assert_ptr_nonnull(date);
    ck_assert_int_eq(strncmp(date + 8 + 29 - 4, " GMT\r\n", 6), 0);
    id = domt_http_feed_request_text(&http, GET);
    domus_http_response own = {.status = 200, .fields = domt_slice_of_text("DATE: a\r\n")};
    ck_assert_int_eq(domus_stage_kit_encode(http.kit, id, &domus_http_response_type, &own), 0);
    ck_assert_ptr_null(strstr(domt_codec_take_output(&http), "Date: "));
    domus_http_response_type.release(&own);
    domt_codec_stop(&http);
}

DOMT_TEST(wrong_options_of_the_http_stage_are_refused)
{
    static const domus_http_options wrong[] = {
        {.head_max = 63},    {.target_max = 60001},  {.role = DOMUS_ROLE_PEER},     {.host = ""},
        {.trailer_max = 1},  {.fields_max = 65536},  {.whole_max = (1u << 30) + 1}, {.host = "a b"},
        {.head_max = 61441}, {.trailer_max = 61441}, {.body_max = (1ull << 30) + 1}};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        domus_pipeline_stage stages[] = {{&domus_http_stage, &wrong[i]}, {NULL, NULL}};
        domus_pipeline pipeline = {.stages = stages};
        domus_stage_kit *kit;
        ck_assert_int_eq(domus_stage_kit_new(&pipeline, &kit), -EINVAL);
    }
}

#define TURN         DOMT_SERVED_S
#define FIRST        500000u /* bytes in the body of the first answer */
#define GET_OF(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

static void lower_marks_of_send_queue(domus_config *config)
{
    config->channel.send_high_bytes = 10000;
    config->channel.send_low_bytes = 1000;
}

static void keep_default_marks(domus_config *config)
{
}

/* In the bytes that a peer has got, count the chunks of answers to /give/N (1,000 bytes each), and
 * the answers to /now. */
static void count_chunks_and_nows(const char *got, uint32_t *ret_chunks, uint32_t *ret_nows)
{
    *ret_chunks = *ret_nows = 0;
    for (const char *at = got; (at = strstr(at, "\r\n3e8\r\n")) != NULL; at++)
        ++*ret_chunks;
    for (const char *at = got; (at = strstr(at, "now\n")) != NULL; at++)
        ++*ret_nows;
}

static void check_answers_behind_stream_wait(void (*change)(domus_config *config),
                                             uint64_t queue_max, const char *behind, uint32_t times,
                                             uint32_t chunks, uint32_t nows)
{
    domus_config config;
    char first[128];
    size_t size = 0;
    uint32_t got_chunks = 0, got_nows = 0;

    domt_served_init_config(&config);
    change(&config);
    domus_testkit *kit = domt_served_start_kit(&config, &domt_served_by_streams, 1);
    for (uint32_t i = 0; queue_max != 0 && i < 3; i++)
        domi_io_set_bound_of_queued_bytes(&domus_testkit_system(kit)->threads[i].io, queue_max);
    domus_peer *peer = domt_served_connect_peer(kit);
    snprintf(first, sizeof first, GET_OF("/give/%u"), FIRST);
    domt_served_send_text(peer, first);
    for (uint32_t i = 0; i < times; i++)
        domt_served_send_text(peer, behind);
    domt_served_advance_kit(kit, TURN);
    const char *bytes = domus_peer_got(peer, &size);
    char *got = malloc(size + 1);
    ck_assert_ptr_nonnull(got);
    /* zeros of the bodies become points, so that the bytes are a text */
    for (size_t i = 0; i < size; i++)
        got[i] = bytes[i] != '\0' ? bytes[i] : '.';
    got[size] = '\0';
    count_chunks_and_nows(got, &got_chunks, &got_nows);
    free(got);
    ck_assert_uint_eq(got_chunks, FIRST / 1000 + chunks);
    ck_assert_uint_eq(got_nows, nows);
    domus_peer_close(peer);
    domt_served_end_kit(kit);
}

DOMT_TEST(answers_in_pieces_do_not_hold_up_the_one_before)
{
    check_answers_behind_stream_wait(lower_marks_of_send_queue, 0, GET_OF("/give/3000"), 8, 24, 0);
}

DOMT_TEST(whole_answers_do_not_hold_up_one_in_pieces_before)
{
    check_answers_behind_stream_wait(lower_marks_of_send_queue, 0, GET_OF("/now"), 50, 0, 50);
}

/* The marks of the send queue are not reached, but each channel may queue only a small share of
 * what its thread may queue. */
DOMT_TEST(answers_do_not_crowd_out_one_in_pieces_before)
{
    check_answers_behind_stream_wait(keep_default_marks, 120000, GET_OF("/give/3000"), 8, 24, 0);
}

DOMT_SUITE(20)
