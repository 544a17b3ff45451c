/* A client of HTTP/2 whose server is a script: whatever a server may do to a stream or to a
 * connection, each request gets one answer. */
#include "tests/http/h2_script.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define MS DOMT_SERVED_MS

static domt_h2c h2c;
static domt_h2s script;

static void begin_script_with_client(const domus_behaviour *connection)
{
    domt_h2s_begin_kit(
        &script, &h2c,
        &(domus_http_client_options){.connection = connection, .connections_max = 4});
}

static void send_get_to_script(void)
{
    domt_h2c_send_get(&h2c, DOMT_H2S_URL("/a"));
}

static void send_post_to_script(void)
{
    domt_h2c_send_request(&h2c, DOMUS_HTTP_POST, DOMT_H2S_URL("/a"), "", 1);
}

/* Send `asks` requests, and let the script of the server read them. */
static void set_up_with_requests(const domus_behaviour *connection, unsigned asks)
{
    begin_script_with_client(connection);
    for (unsigned i = 0; i < asks; i++)
        send_get_to_script();
    domt_h2s_accept_connection(&script);
}

DOMT_TEST(asks_wait_for_the_settings_of_the_server)
{
    begin_script_with_client(NULL);
    send_get_to_script();
    ck_assert_int_eq(domus_peer_accept(script.listener, DOMT_SERVED_S, &script.peer), 0);
    domt_h2s_advance_and_read(&script, 50 * MS);
    ck_assert(script.has_preface);
    ck_assert_uint_eq(script.asked, 0);
    domt_h2s_send_frame(&script, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    domt_h2s_advance_and_read(&script, 0);
    ck_assert_uint_eq(script.asked, 1);
    domt_h2s_answer_and_expect_at_client(&script, &h2c, 1, "ab");
    domt_h2c_end_kit(&h2c);
}

DOMT_TEST(answers_come_in_any_order)
{
    set_up_with_requests(NULL, 3);
    ck_assert_uint_eq(script.asked, 3);
    domt_h2s_answer_and_expect_at_client(&script, &h2c, 5, "five");
    domt_h2s_answer_and_expect_at_client(&script, &h2c, 1, "one");
    domt_h2s_answer_and_expect_at_client(&script, &h2c, 3, "three");
    send_get_to_script();
    domt_h2s_advance_and_read(&script, 0);
    ck_assert_int_eq(script.last, 7);
    domt_h2s_answer_and_expect_at_client(&script, &h2c, 7, "");
    domt_h2c_end_kit(&h2c);
}

DOMT_TEST(a_request_out_of_time_resets_its_stream_alone)
{
    set_up_with_requests(NULL, 1);
    domt_h2c_send_request_to(&h2c, h2c.client, &(domus_http_request){.method = DOMUS_HTTP_GET},
                             DOMT_H2S_URL("/b"), "", 0, 200 * MS);
    domt_h2s_advance_and_read(&script, 100 * MS);
    ck_assert_uint_eq(script.resets, 0);
    domt_h2s_advance_and_read(&script, 200 * MS);
    domt_h2c_expect_error(&h2c, -ETIMEDOUT);
    ck_assert_uint_eq(script.resets, 1);
    ck_assert_uint_eq(script.reset_code, NGHTTP2_CANCEL);
    ck_assert_int_eq(script.reset_id, 3);
    domt_h2s_answer_and_expect_at_client(&script, &h2c, 1, "ab");
    ck_assert(!script.is_away);
    domt_h2c_end_kit(&h2c);
}

/* The body of a request waits for 100 Continue, and other interim answers do not release it. */
DOMT_TEST(a_body_waits_for_100_continue)
{
    domus_http_request request = {.method = DOMUS_HTTP_POST, .expects = true};

    set_up_with_requests(NULL, 1);
    ck_assert_int_eq(domus_slice_copy(DOMT_H2S_URL("/b"), 17, &request.target), 0);
    ck_assert_int_eq(domus_slice_copy("hello", 5, &request.body), 0);
    ck_assert_int_eq(domus_probe_ask(h2c.probe, h2c.client, &domus_http_request_type, &request), 0);
    domt_h2s_advance_and_read(&script, 0);
    ck_assert_int_eq(script.last, 3);
    domt_h2s_send_frame(&script, HEADERS, WHOLE, 3, "\010\003103", 5);
    domt_h2s_advance_and_read(&script, 0);
    ck_assert_uint_eq(script.data, 0);
    domt_h2s_send_frame(&script, HEADERS, WHOLE, 3, "\010\003100", 5);
    domt_h2s_advance_and_read(&script, 0);
    ck_assert_uint_eq(script.data, 5);
    domt_h2s_answer_and_expect_at_client(&script, &h2c, 3, "ab");
    domt_h2s_answer_and_expect_at_client(&script, &h2c, 1, "cd");
    domt_h2c_end_kit(&h2c);
}

/* A refused stream was not processed by the server, so its request is sent again, at most
 * `tries_max` times, whatever its method is. */
DOMT_TEST(a_refused_stream_is_asked_again)
{
    begin_script_with_client(NULL);
    send_post_to_script();
    domt_h2s_accept_connection(&script);
    domt_h2s_reset_stream(&script, 1, NGHTTP2_REFUSED_STREAM);
    domt_h2s_advance_and_read(&script, 0);
    ck_assert_int_eq(script.last, 3);
    domt_h2s_answer_and_expect_at_client(&script, &h2c, 3, "ab");
    send_post_to_script();
    domt_h2s_advance_and_read(&script, 0);
    domt_h2s_reset_stream(&script, 5, NGHTTP2_REFUSED_STREAM);
    domt_h2s_advance_and_read(&script, 0);
    domt_h2s_reset_stream(&script, 7, NGHTTP2_REFUSED_STREAM);
    domt_h2c_expect_error(&h2c, -EPIPE);
    domt_h2s_advance_and_read(&script, 0);
    ck_assert_int_eq(script.last, 7);
    domt_h2c_end_kit(&h2c);
}

DOMT_TEST(a_reset_stream_is_asked_again_if_it_may_be)
{
    set_up_with_requests(NULL, 1);
    send_post_to_script();
    domt_h2s_advance_and_read(&script, 0);
    domt_h2s_reset_stream(&script, 3, NGHTTP2_INTERNAL_ERROR);
    domt_h2c_expect_error(&h2c, -EPIPE);
    domt_h2s_reset_stream(&script, 1, NGHTTP2_INTERNAL_ERROR);
    domt_h2s_advance_and_read(&script, 0);
    ck_assert_int_eq(script.last, 5);
    domt_h2s_answer_and_expect_at_client(&script, &h2c, 5, "ab");
    domt_h2c_end_kit(&h2c);
}

/* After GOAWAY the streams up to the last one are answered; requests on later streams, and new
 * requests, go to another connection. */
DOMT_TEST(goaway_moves_requests_to_another_connection)
{
    begin_script_with_client(NULL);
    send_post_to_script();
    domt_h2s_accept_connection(&script);
    send_post_to_script();
    domt_h2s_advance_and_read(&script, 0);
    domt_h2s_send_goaway(&script, 1, NGHTTP2_NO_ERROR);
    domt_h2s old = script;
    domt_h2s_accept_connection(&script);
    ck_assert_uint_eq(script.asked, 1);
    domt_h2s_answer_and_expect_at_client(&script, &h2c, 1, "new");
    domt_h2s_answer_and_expect_at_client(&old, &h2c, 1, "old");
    ck_assert_int_eq(domus_peer_error(old.peer), 0);
    domt_h2s_advance_and_read(&old, 10 * MS);
    ck_assert(domus_peer_has_end(old.peer));
    send_get_to_script();
    domt_h2s_advance_and_read(&script, 0);
    domt_h2s_answer_and_expect_at_client(&script, &h2c, 3, "");
    domt_h2c_end_kit(&h2c);
}

DOMT_TEST(a_lost_connection_fails_each_request_once)
{
    for (unsigned way = 0; way < 3; way++) {
        begin_script_with_client(NULL);
        send_post_to_script();
        domt_h2s_accept_connection(&script);
        for (unsigned i = 0; i < 9; i++)
            send_post_to_script();
        domt_h2s_advance_and_read(&script, 0);
        ck_assert_uint_eq(script.asked, 10);
        if (way == 0)
            domus_peer_reset(script.peer);
        else if (way == 1)
            domus_peer_finish(script.peer);
        else
            domt_h2s_send_goaway(&script, 19, NGHTTP2_INTERNAL_ERROR);
        if (way == 2)
            domus_peer_close(script.peer);
        for (unsigned i = 0; i < 10; i++)
            domt_h2c_expect_error(&h2c, -EPIPE);
        domt_h2c_end_kit(&h2c);
    }
}

/* Requests beyond the server's limit of streams wait, and the pool makes another connection for
 * them. */
DOMT_TEST(requests_above_the_servers_limit_of_streams_wait)
{
    static const uint8_t one[] = {0, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0, 0, 0, 2};

    domt_h2s_begin_kit(&script, &h2c, &(domus_http_client_options){.connections_max = 1});
    for (unsigned i = 0; i < 5; i++)
        send_get_to_script();
    ck_assert_int_eq(domus_peer_accept(script.listener, DOMT_SERVED_S, &script.peer), 0);
    domt_h2s_send_frame(&script, NGHTTP2_SETTINGS, 0, 0, one, sizeof one);
    for (int32_t id = 1; id < 11; id += 2) {
        domt_h2s_advance_and_read(&script, 0);
        ck_assert_uint_le(script.asked, (unsigned)(id + 1) / 2 + 1);
        domt_h2s_answer_and_expect_at_client(&script, &h2c, id, "ab");
    }
    domt_h2c_end_kit(&h2c);
}

/* While the first connection is made, more requests wait than the server's limit of streams then
 * allows on it. */
DOMT_TEST(requests_beyond_a_full_connection_get_further_ones)
{
    domt_h2s other[3];

    begin_script_with_client(&domt_h2c_small);
    for (unsigned i = 0; i < 5; i++)
        send_get_to_script();
    for (unsigned n = 0; n < 3; n++) {
        domt_h2s_accept_connection(&script);
        ck_assert_uint_eq(script.asked, n < 2 ? 2 : 1);
        other[n] = script;
    }
    for (unsigned n = 0; n < 5; n++) {
        domt_h2s_answer_and_expect_at_client(&other[n / 2], &h2c, n % 2 == 0 ? 1 : 3, "ab");
    }
    domt_h2c_end_kit(&h2c);
}

DOMT_TEST(requests_above_the_clients_own_limit_of_streams_wait)
{
    domt_h2s_begin_kit(
        &script, &h2c,
        &(domus_http_client_options){.connection = &domt_h2c_small, .connections_max = 1});
    for (unsigned i = 0; i < DOMT_H2C_SMALL_STREAMS + 1; i++)
        send_get_to_script();
    domt_h2s_accept_connection(&script);
    domt_h2s_advance_and_read(&script, 10 * MS);
    ck_assert_uint_eq(script.asked, DOMT_H2C_SMALL_STREAMS);
    for (int32_t id = 1; id < 7; id += 2) {
        domt_h2s_answer_and_expect_at_client(&script, &h2c, id, "ab");
        domt_h2s_advance_and_read(&script, 0);
    }
    domt_h2c_end_kit(&h2c);
}

/* A request that is too large cannot be sent to any server, so it fails and is not repeated; a
 * request of exactly the largest size is sent. */
DOMT_TEST(a_request_that_is_too_large_fails)
{
    static const struct {
        unsigned fields; /* number of header fields of the request beside Host */
        unsigned name;   /* number of bytes in each field's name */
        bool fits;
    } cases[] = {{123, 1, true}, {124, 1, false}, {4, 1023, true}, {4, 1024, false}};
    static char fields[8192];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size = 0;
        set_up_with_requests(NULL, 1);
        for (unsigned n = 0; n < cases[i].fields; n++) {
            memset(fields + size, 'a', cases[i].name);
            size += cases[i].name;
            memcpy(fields + size, ": b\r\n", 6);
            size += 5;
        }
        domt_h2c_send_request(&h2c, DOMUS_HTTP_GET, DOMT_H2S_URL("/b"), fields, 0);
        domt_h2s_advance_and_read(&script, 0);
        ck_assert_uint_eq(script.asked, cases[i].fits ? 2 : 1);
        if (cases[i].fits) {
            domt_h2s_answer_and_expect_at_client(&script, &h2c, 3, "ab");
        } else {
            domt_h2c_expect_error(&h2c, -E2BIG);
        }
        domt_h2s_answer_and_expect_at_client(&script, &h2c, 1, "cd");
        domt_h2c_end_kit(&h2c);
    }
}

DOMT_SUITE(120)
