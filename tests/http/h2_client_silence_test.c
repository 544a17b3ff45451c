/* Servers of HTTP/2 that say nothing: one that is gone without a word costs few requests, and one
 * that is there, however slow, is not left. */
#include "tests/http/h2_script.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define MS     DOMT_SERVED_MS
#define SECOND DOMT_SERVED_S

static domt_h2c h2c;
static domt_h2s script;

static void begin(void)
{
    domt_h2c_begin(&h2c, &domt_h2_by_whole, &(domus_http_client_options){.connections_max = 1});
    domt_h2s_listen(&script, &h2c);
}

static void ask(domus_http_method method, uint64_t within_ns)
{
    domus_http_request request = {.method = (uint8_t)method};

    ck_assert_int_eq(domus_slice_copy(DOMT_H2S_URL("/a"), 17, &request.target), 0);
    ck_assert_int_eq(domus_probe_ask_within(h2c.probe, h2c.client, &domus_http_request_type,
                                            &request, within_ns),
                     0);
}

static void answer(void)
{
    domt_h2s_answer(&script, script.last, "well");
    domt_h2c_expect(&h2c, 200, "well");
}

/* Accept a connection, and answer its first request. */
static void accept_and_answer(void)
{
    domt_h2s_accept(&script);
    domt_h2s_pass(&script, 0);
    ck_assert_uint_eq(script.asked, 1);
    answer();
}

/* Begin with a request that is answered, and one that is not answered in its time. */
static void begin_silent(uint64_t within_ns)
{
    begin();
    ask(DOMUS_HTTP_POST, SECOND);
    accept_and_answer();
    ask(DOMUS_HTTP_POST, within_ns);
    domt_h2s_pass(&script, within_ns);
    domt_h2c_expect_error(&h2c, -ETIMEDOUT);
    domt_h2s_pass(&script, 0);
    ck_assert_uint_eq(script.asked, 2);
    ck_assert_uint_eq(script.pongs, 1);
}

static void send_pong(void)
{
    domt_h2s_send(&script, NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, "\0\0\0\0\0\0\0\0", 8);
}

/* The next request goes to another connection, whatever its method is; up to the limit it does not.
 */
DOMT_TEST(a_server_that_is_gone_is_left)
{
    static const struct {
        uint64_t later_ns; /* behind the first request */
        bool is_left;
    } cases[] = {{DOMUS_HTTP2_SILENCE_NS - 50 * MS, false}, {DOMUS_HTTP2_SILENCE_NS + MS, true}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_silent(SECOND);
        domt_h2s_pass(&script, cases[i].later_ns);
        ask(DOMUS_HTTP_POST, 5 * SECOND);
        domt_h2s_pass(&script, 10 * MS);
        ck_assert_uint_eq(script.asked, cases[i].is_left ? 2 : 3);
        if (cases[i].is_left)
            accept_and_answer();
        else
            answer();
        domt_h2c_end(&h2c);
    }
}

/* Short requests, one behind the other, of which each is lost until the limit is over. */
DOMT_TEST(few_requests_are_lost)
{
    unsigned lost = 0;

    begin_silent(100 * MS);
    while (domus_testkit_net_totals(h2c.kit).connections == 1) {
        ck_assert_uint_lt(lost++, 25);
        ask(DOMUS_HTTP_GET, 100 * MS);
        domt_served_pass(h2c.kit, 100 * MS);
        domt_h2c_expect_error(&h2c, -ETIMEDOUT);
    }
    ck_assert_uint_ge(lost, 15);
    ask(DOMUS_HTTP_GET, 5 * SECOND);
    domt_h2s_accept(&script);
    domt_h2s_pass(&script, 0);
    answer();
    domt_h2c_end(&h2c);
}

/* A server that answers the PING, or anything else, is there: its connection is used on. */
DOMT_TEST(a_server_that_is_slow_is_not_left)
{
    for (unsigned way = 0; way < 2; way++) {
        begin_silent(SECOND);
        for (unsigned i = 0; i < 3; i++) {
            if (way == 0)
                send_pong();
            else
                domt_h2s_send(&script, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\1", 4);
            domt_h2s_pass(&script, 10 * SECOND);
            ask(DOMUS_HTTP_POST, SECOND);
            domt_h2s_pass(&script, SECOND);
            domt_h2c_expect_error(&h2c, -ETIMEDOUT);
            domt_h2s_pass(&script, 0);
            ck_assert_uint_eq(script.asked, 3 + i);
            ck_assert_uint_eq(script.pongs, 2 + i);
        }
        ck_assert_uint_eq(domus_testkit_net_totals(h2c.kit).connections, 1);
        domt_h2c_end(&h2c);
    }
}

/* A server that has said something since the request began gets no PING, nor does one that is idle.
 */
DOMT_TEST(a_server_that_is_heard_gets_no_ping)
{
    begin();
    ask(DOMUS_HTTP_POST, SECOND);
    accept_and_answer();
    ask(DOMUS_HTTP_POST, SECOND);
    domt_h2s_pass(&script, 100 * MS);
    domt_h2s_send(&script, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\1", 4);
    domt_h2s_pass(&script, SECOND);
    domt_h2c_expect_error(&h2c, -ETIMEDOUT);
    domt_h2s_pass(&script, 10 * SECOND);
    ask(DOMUS_HTTP_POST, 5 * SECOND);
    domt_h2s_pass(&script, 0);
    ck_assert_uint_eq(script.asked, 3);
    ck_assert_uint_eq(script.pongs, 0);
    answer();
    domt_h2c_end(&h2c);
}

DOMT_SUITE(120)
