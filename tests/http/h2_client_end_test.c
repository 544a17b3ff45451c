/* Servers of HTTP/2 that end or say nothing. One that finishes behind its answers: they are read to
 * their ends, however slowly, and requests that it has not answered fail. One that is gone without
 * a word costs few requests, and one that is there, however slow, is not left. */
#include "tests/http/h2_script.h"
#include "tests/support/suite.h"

#include <domus/await.h>
#include <domus/pool.h>

#include <errno.h>
#include <string.h>

#define MS     DOMT_SERVED_MS
#define SECOND DOMT_SERVED_S

typedef struct outcome {
    int error;
    uint32_t bytes;
} outcome;

static const domus_type slowly_type = {.name = "slowly"};
static const domus_type outcome_type = {.name = "outcome", .size = sizeof(outcome)};
static domus_address to;

typedef struct slow_frame {
    domus_http_request request;
    domus_body body;
    outcome made;
    bool ended;
} slow_frame;

/* Get an answer, and read it in many pieces. */
DOMUS_SEQUENCE(read_slowly, slow_frame)
{
    DOMUS_BEGIN;
    frame->request.method = DOMUS_HTTP_POST;
    ck_assert_int_eq(domus_slice_copy("/a", 2, &frame->request.target), 0);
    ck_assert_int_eq(domus_slice_copy("Host: a\r\n", 9, &frame->request.fields), 0);
    DOMUS_AWAIT(domus_ask(stack, to, &domus_http_request_type, &frame->request, then));
    frame->made.error = answer->error;
    if (answer->error == 0)
        frame->body = ((const domus_http_response *)answer->payload)->stream;
    while (frame->body.number != 0 && !frame->ended) {
        DOMUS_SLEEP(20 * MS);
        DOMUS_AWAIT(domus_body_read(stack, frame->body, then));
        const domus_piece *piece = answer->payload;
        frame->made.error = answer->error;
        frame->ended = answer->error != 0 || piece->last;
        frame->made.bytes += answer->error == 0 ? piece->bytes.size : 0;
    }
    return domus_reply(stack, &outcome_type, &frame->made);
    DOMUS_END;
}

static const domus_behaviour reader = {
    .name = "reader",
    .kind = DOMUS_CHANNELS,
    .on = (const domus_on[]){DOMUS_ON(&slowly_type, read_slowly), {NULL, NULL, 0}}};

static domt_h2c h2c;
static domt_h2s script;

DOMT_TEST(an_answer_is_read_behind_the_end_of_its_server)
{
    const domus_pool_options options = {
        .behaviour = &domt_h2c_streams, .on_demand = true, .connections_max = 2};
    static char bytes[5001];
    domus_address asker;
    outcome made;

    for (unsigned says = 0; says < 2; says++) {
        domt_h2s_begin(&script, &h2c, NULL);
        domus_system *system = domus_testkit_system(h2c.kit);
        ck_assert_int_eq(domus_outside_pool_open(system, DOMT_H2C_SCRIPT, &options, &to), 0);
        ck_assert_int_eq(domus_outside_spawn(system, &reader, NULL, &asker), 0);
        for (unsigned i = 0; i < 2; i++)
            ck_assert_int_eq(domus_probe_ask(h2c.probe, asker, &slowly_type, NULL), 0);
        domt_h2s_accept(&script);
        memset(bytes, 'x', sizeof bytes - 1);
        domt_h2s_answer(&script, 1, bytes);
        if (says != 0)
            domt_h2s_go_away(&script, 1, NGHTTP2_NO_ERROR);
        domus_peer_finish(script.peer);
        if (says != 0) { /* it was not looked at, so it is asked again */
            domt_h2s_accept(&script);
            domt_h2s_answer(&script, 1, "ab");
            ck_assert_int_eq(domus_probe_expect(h2c.probe, &outcome_type, SECOND, &made), 0);
            ck_assert_int_eq(made.error, 0);
            ck_assert_uint_eq(made.bytes, 2);
        } else {
            ck_assert_int_eq(domus_probe_expect(h2c.probe, &outcome_type, SECOND, &made), 0);
            ck_assert_int_eq(made.error, -EPIPE);
        }
        ck_assert_int_eq(domus_probe_expect(h2c.probe, &outcome_type, 5 * SECOND, &made), 0);
        ck_assert_int_eq(made.error, 0);
        ck_assert_uint_eq(made.bytes, 5000);
        domt_h2c_end(&h2c);
    }
}

/* A server that refuses an upload answers before it has come, and ends. */
DOMT_TEST(an_early_answer_is_kept_behind_the_end)
{
    for (unsigned says = 0; says < 2; says++) {
        domt_h2s_begin(&script, &h2c, NULL);
        domt_h2c_ask(&h2c, DOMUS_HTTP_POST, DOMT_H2S_URL("/a"), "", 200000);
        domt_h2s_accept(&script);
        domt_h2s_pass(&script, 100 * MS);
        ck_assert_uint_eq(script.asked, 1);
        ck_assert_uint_eq(script.ended, 0);
        domt_h2s_answer(&script, 1, "ab");
        if (says != 0)
            domt_h2s_go_away(&script, 1, NGHTTP2_NO_ERROR);
        domus_peer_finish(script.peer);
        domt_h2c_expect(&h2c, 200, "ab");
        domt_h2s_pass(&script, 10 * MS);
        ck_assert(domus_peer_has_end(script.peer));
        domt_h2c_end(&h2c);
    }
}

static void begin(void)
{
    domt_h2s_begin(&script, &h2c, &(domus_http_client_options){.connections_max = 1});
}

static void ask(domus_http_method method, uint64_t within_ns)
{
    domt_h2c_ask_of(&h2c, h2c.client, &(domus_http_request){.method = (uint8_t)method},
                    DOMT_H2S_URL("/a"), "", 0, within_ns);
}

static void answer(void)
{
    domt_h2s_hold(&script, &h2c, script.last, "well");
}

/* Accept a connection, and answer its first request. */
static void accept_and_answer(void)
{
    domt_h2s_accept(&script);
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
