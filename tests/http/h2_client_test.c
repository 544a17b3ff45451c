/* A client of HTTP/2 gets the same answers from this library's own service as over HTTP/1.1, also
 * when allocations fail, and over a network that resets and delays. If a server closes the
 * connection after an answer, the answer is read to its end, however slowly; a server that vanishes
 * silently costs few requests, and a server that is slow is not left. */
#include "base/memory.h"
#include "tests/http/h2_client.h"
#include "tests/http/h2_script.h"
#include "tests/support/codec.h"
#include "tests/support/suite.h"

#include <domus/await.h>
#include <domus/pool.h>
#include <domus/stage_kit.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS DOMT_SERVED_MS

static domt_h2c h2c;

DOMT_TEST(requests_share_one_connection)
{
    domt_h2c_begin_kit(&h2c, &domt_h2_by_whole, NULL);
    domt_h2c_get_and_expect_answer(&h2c, DOMT_H2C_URL("/now"), 200, "now\n");
    for (unsigned i = 0; i < 60; i++)
        domt_h2c_send_get(&h2c, DOMT_H2C_URL("/sleep/100"));
    ck_assert_int_eq(domus_probe_expect_nothing(h2c.probe, 99 * MS), 0);
    for (unsigned i = 0; i < 60; i++)
        domt_h2c_expect_answer(&h2c, 200, "slept\n");
    ck_assert_uint_eq(domus_testkit_net_totals(h2c.kit).connections, 1);
    ck_assert_uint_eq(domt_served_now.closed, 0);
    domt_h2c_end_kit(&h2c);
}

DOMT_TEST(methods_and_bodies_have_their_answers)
{
    static const struct {
        domus_http_method method;
        const char *url, *fields;
        size_t body;
        unsigned status;
        const char *text;
    } cases[] = {
        {DOMUS_HTTP_GET, DOMT_H2C_URL("/now"), "", 0, 200, "now\n"},
        {DOMUS_HTTP_HEAD, DOMT_H2C_URL("/now"), "", 0, 200, ""},
        {DOMUS_HTTP_POST, DOMT_H2C_URL("/bytes"), "", 0, 200, "0\n"},
        {DOMUS_HTTP_POST, DOMT_H2C_URL("/bytes"), "", 10, 200, "10\n"},
        {DOMUS_HTTP_PUT, DOMT_H2C_URL("/bytes"), "", 300000, 200, "300000\n"},
        {DOMUS_HTTP_GET, DOMT_H2C_URL("/unknown"), "", 0, 404, NULL},
        {DOMUS_HTTP_GET, DOMT_H2C_URL("/late"), "", 0, 504, NULL},
        {DOMUS_HTTP_GET, DOMT_H2C_URL("/fields?a"), "", 0, 200, ""},
        {DOMUS_HTTP_GET, DOMT_H2C_URL("/now"), "Cookie: a=1\r\nTE: deflate\r\n", 0, 200, "now\n"},
        {DOMUS_HTTP_GET, DOMT_H2C_URL("/now"), "Host: other\r\n", 0, 200, "now\n"},
        {DOMUS_HTTP_GET, DOMT_H2C_URL("/give/100000"), "", 0, 200, NULL},
    };
    const domus_behaviour *const behaviours[] = {&domt_h2_by_whole, &domt_h2_by_streams};

    for (size_t b = 0; b < 2; b++) {
        domt_h2c_begin_kit(&h2c, behaviours[b], NULL);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            domt_h2c_send_request(&h2c, cases[i].method, cases[i].url, cases[i].fields,
                                  cases[i].body);
            domt_h2c_expect_answer(&h2c, cases[i].status, cases[i].text);
        }
        domt_h2c_end_kit(&h2c);
    }
}

static int begin_and_free_connection(void *context)
{
    domus_stage_kit *made;
    int error = domus_stage_kit_new(domt_h2c_whole.pipeline, &made);

    if (error == 0)
        domus_stage_kit_free(made);
    return error;
}

/* A connection that cannot allocate when it begins keeps no memory. */
DOMT_TEST(a_connection_without_memory_leaves_nothing)
{
    domi_meter meter = {.look_at = INT64_MAX};

    (void)domi_memory_set_meter(&meter);
    domt_fail_each_allocation(begin_and_free_connection, NULL);
    (void)domi_memory_set_meter(NULL);
    ck_assert_int_eq(meter.held, 0);
}

#define MS DOMT_SERVED_MS
/* more allocations than one request, its answer and the network make together */
#define ALLOCATIONS 80
#define BODY        30000u

DOMT_TEST(a_failed_allocation_is_recovered_from)
{
    unsigned harmed = 0;

    for (int64_t n = 0; n < ALLOCATIONS; n++) {
        domt_h2c_begin_kit(&h2c, &domt_h2_by_whole, NULL);
        domt_h2c_get_and_expect_answer(&h2c, DOMT_H2C_URL("/now"), 200, "now\n");
        domt_h2c_send_request_to(&h2c, h2c.client, &(domus_http_request){.method = DOMUS_HTTP_POST},
                                 DOMT_H2C_URL("/bytes"), "", BODY, DOMT_SERVED_S);
        domi_memory_fail_allocation_after(n, 0);
        domt_served_advance_kit(h2c.kit, 10 * MS);
        domi_memory_fail_allocation_after(-1, 0);
        int outcome = domt_h2c_receive_outcome(&h2c, 5 * DOMT_SERVED_S);
        ck_assert_msg(outcome != 0 && outcome != -EINVAL, "%s", domus_testkit_error(h2c.kit));
        harmed += outcome != 200;
        domt_served_advance_kit(h2c.kit, 5 * DOMT_SERVED_S);
        domt_h2c_get_and_expect_answer(&h2c, DOMT_H2C_URL("/now"), 200, "now\n");
        domt_h2c_end_kit(&h2c);
    }
    ck_assert_uint_gt(harmed, 2);
}

#define MS     DOMT_SERVED_MS
#define ASKS   5000u /* number of requests for each kind of connection */
#define AT_ONE 50u

static void send_request_number(unsigned n)
{
    static const char *const paths[] = {"/now",     "/sleep/3", "/give/20000", "/unknown",
                                        "/sleep/9", "/hang",    "/bytes",      "/give/300"};
    char url[64];
    const domus_http_request like = {.method =
                                         n % 3 == 0 ? DOMUS_HTTP_POST : (uint8_t)DOMUS_HTTP_GET};
    bool has_end = strcmp(paths[n % 8], "/hang") == 0 || n % 10 == 0;
    (void)snprintf(url, sizeof url, DOMT_H2C_URL("%s"), paths[n % 8]);
    domt_h2c_send_request_to(&h2c, h2c.client, &like, url, "", n % 3 == 0 ? n % 4000 : 0,
                             has_end ? 40 * MS : 0);
}

/* Receive one outcome: an answer, or an error that a lost connection or time explains. Returns
 * whether it is an answer. */
static bool has_received_an_answer(void)
{
    int outcome = domt_h2c_receive_outcome(&h2c, 10 * DOMT_SERVED_S);

    ck_assert_msg(outcome == 200 || outcome == 404 || outcome < 0, "%d: %s", outcome,
                  domus_testkit_error(h2c.kit));
    ck_assert(outcome != -EINVAL && outcome != -ENOMEM);
    return outcome > 0;
}

DOMT_TEST(each_request_has_one_answer)
{
    const domus_behaviour *const connections[] = {&domt_h2c_whole, &domt_h2c_two};
    static const domus_net_faults faults = {.latency_max_ns = 2 * MS,
                                            .short_writes = 100000,
                                            .resets = 900000,
                                            .reset_within_bytes = 200000,
                                            .ends = 500000,
                                            .end_within_bytes = 200000};

    for (size_t c = 0; c < 2; c++) {
        unsigned answered = 0;
        domt_h2c_begin_kit(&h2c, &domt_h2_by_whole,
                           &(domus_http_client_options){.connection = connections[c],
                                                        .connections_max = 3,
                                                        .backoff_ns = MS,
                                                        .queue_max = AT_ONE});
        ck_assert_int_eq(domus_testkit_net_set(h2c.kit, &faults), 0);
        for (unsigned n = 0; n < ASKS; n += AT_ONE) {
            for (unsigned i = 0; i < AT_ONE; i++)
                send_request_number(n + i);
            for (unsigned i = 0; i < AT_ONE; i++)
                answered += has_received_an_answer();
        }
        ck_assert_uint_gt(answered, ASKS / 3);
        ck_assert_uint_gt(domus_testkit_net_totals(h2c.kit).connections, 10);
        ck_assert_int_eq(domus_testkit_net_set(h2c.kit, NULL), 0);
        domt_served_advance_kit(h2c.kit, 5 * DOMT_SERVED_S);
        domt_h2c_get_and_expect_answer(&h2c, DOMT_H2C_URL("/now"), 200, "now\n");
        domt_h2c_end_kit(&h2c);
    }
}

/* The server sends more bytes in all than the window of the connection holds. */
DOMT_TEST(resets_do_not_use_up_the_connection_window)
{
    static char bytes[16384];
    domt_h2s script;

    domt_h2s_begin_kit(&script, &h2c, NULL);
    for (unsigned n = 0; n < 150; n++) {
        domt_h2c_send_request(&h2c, DOMUS_HTTP_POST, DOMT_H2S_URL("/a"), "", 0);
        if (n == 0)
            domt_h2s_accept_connection(&script);
        domt_h2s_advance_and_read(&script, 10 * MS);
        domt_h2s_send_frame(&script, HEADERS, WHOLE, script.last, "\x88", 1);
        domt_h2s_send_frame(&script, DATA, 0, script.last, bytes, sizeof bytes);
        domt_h2s_reset_stream(&script, script.last, NGHTTP2_INTERNAL_ERROR);
        domt_h2c_expect_error(&h2c, -EPIPE);
        ck_assert(!script.is_away);
    }
    domt_h2c_end_kit(&h2c);
}

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

/* Send a request, and read its answer, which comes in many pieces. */
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

DOMT_TEST(an_answer_is_read_on_after_its_server_has_ended)
{
    const domus_pool_options options = {
        .behaviour = &domt_h2c_streams, .on_demand = true, .connections_max = 2};
    static char bytes[5001];
    domus_address asker;
    outcome made;

    for (unsigned says = 0; says < 2; says++) {
        domt_h2s_begin_kit(&script, &h2c, NULL);
        domus_system *system = domus_testkit_system(h2c.kit);
        ck_assert_int_eq(domus_outside_pool_open(system, DOMT_H2C_SCRIPT, &options, &to), 0);
        ck_assert_int_eq(domus_outside_spawn(system, &reader, NULL, &asker), 0);
        for (unsigned i = 0; i < 2; i++)
            ck_assert_int_eq(domus_probe_ask(h2c.probe, asker, &slowly_type, NULL), 0);
        domt_h2s_accept_connection(&script);
        memset(bytes, 'x', sizeof bytes - 1);
        domt_h2s_answer_stream(&script, 1, bytes);
        if (says != 0)
            domt_h2s_send_goaway(&script, 1, NGHTTP2_NO_ERROR);
        domus_peer_finish(script.peer);
        /* GOAWAY says that the server has not processed the request, so it is sent again */
        if (says != 0) {
            domt_h2s_accept_connection(&script);
            domt_h2s_answer_stream(&script, 1, "ab");
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
        domt_h2c_end_kit(&h2c);
    }
}

/* A server refuses an upload: it answers before it has received the upload, and closes the
 * connection. */
DOMT_TEST(an_early_answer_is_kept_although_the_server_closes)
{
    for (unsigned says = 0; says < 2; says++) {
        domt_h2s_begin_kit(&script, &h2c, NULL);
        domt_h2c_send_request(&h2c, DOMUS_HTTP_POST, DOMT_H2S_URL("/a"), "", 200000);
        domt_h2s_accept_connection(&script);
        domt_h2s_advance_and_read(&script, 100 * MS);
        ck_assert_uint_eq(script.asked, 1);
        ck_assert_uint_eq(script.ended, 0);
        domt_h2s_answer_stream(&script, 1, "ab");
        if (says != 0)
            domt_h2s_send_goaway(&script, 1, NGHTTP2_NO_ERROR);
        domus_peer_finish(script.peer);
        domt_h2c_expect_answer(&h2c, 200, "ab");
        domt_h2s_advance_and_read(&script, 10 * MS);
        ck_assert(domus_peer_has_end(script.peer));
        domt_h2c_end_kit(&h2c);
    }
}

static void begin_script_with_one_connection(void)
{
    domt_h2s_begin_kit(&script, &h2c, &(domus_http_client_options){.connections_max = 1});
}

static void send_request_within(domus_http_method method, uint64_t within_ns)
{
    domt_h2c_send_request_to(&h2c, h2c.client, &(domus_http_request){.method = (uint8_t)method},
                             DOMT_H2S_URL("/a"), "", 0, within_ns);
}

static void answer_last_stream(void)
{
    domt_h2s_answer_and_expect_at_client(&script, &h2c, script.last, "well");
}

/* Accept a connection, and answer its first request. */
static void accept_connection_and_answer(void)
{
    domt_h2s_accept_connection(&script);
    ck_assert_uint_eq(script.asked, 1);
    answer_last_stream();
}

/* Begin with one request that the server answers, and one that reaches its time-out. */
static void set_up_server_that_falls_silent(uint64_t within_ns)
{
    begin_script_with_one_connection();
    send_request_within(DOMUS_HTTP_POST, SECOND);
    accept_connection_and_answer();
    send_request_within(DOMUS_HTTP_POST, within_ns);
    domt_h2s_advance_and_read(&script, within_ns);
    domt_h2c_expect_error(&h2c, -ETIMEDOUT);
    domt_h2s_advance_and_read(&script, 0);
    ck_assert_uint_eq(script.asked, 2);
    ck_assert_uint_eq(script.pongs, 1);
}

static void acknowledge_ping(void)
{
    domt_h2s_send_frame(&script, NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, "\0\0\0\0\0\0\0\0", 8);
}

/* After DOMUS_HTTP2_SILENCE_NS without a sign of the server, the next request goes to another
 * connection, whatever its method is; before that it does not. */
DOMT_TEST(a_silent_server_is_left_for_another_connection)
{
    static const struct {
        uint64_t later_ns; /* time between the request that was not answered and the next one */
        bool is_left;
    } cases[] = {{DOMUS_HTTP2_SILENCE_NS - 50 * MS, false}, {DOMUS_HTTP2_SILENCE_NS + MS, true}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_up_server_that_falls_silent(SECOND);
        domt_h2s_advance_and_read(&script, cases[i].later_ns);
        send_request_within(DOMUS_HTTP_POST, 5 * SECOND);
        domt_h2s_advance_and_read(&script, 10 * MS);
        ck_assert_uint_eq(script.asked, cases[i].is_left ? 2 : 3);
        if (cases[i].is_left)
            accept_connection_and_answer();
        else
            answer_last_stream();
        domt_h2c_end_kit(&h2c);
    }
}

/* Short requests follow each other; each one is lost until the limit of silence is reached. */
DOMT_TEST(few_requests_are_lost_to_a_silent_server)
{
    unsigned lost = 0;

    set_up_server_that_falls_silent(100 * MS);
    while (domus_testkit_net_totals(h2c.kit).connections == 1) {
        ck_assert_uint_lt(lost++, 25);
        send_request_within(DOMUS_HTTP_GET, 100 * MS);
        domt_served_advance_kit(h2c.kit, 100 * MS);
        domt_h2c_expect_error(&h2c, -ETIMEDOUT);
    }
    ck_assert_uint_ge(lost, 15);
    send_request_within(DOMUS_HTTP_GET, 5 * SECOND);
    domt_h2s_accept_connection(&script);
    answer_last_stream();
    domt_h2c_end_kit(&h2c);
}

/* A server that answers the client's PING, or sends anything else, still gets requests on its
 * connection. */
DOMT_TEST(a_server_that_is_slow_is_not_left)
{
    for (unsigned way = 0; way < 2; way++) {
        set_up_server_that_falls_silent(SECOND);
        for (unsigned i = 0; i < 3; i++) {
            if (way == 0)
                acknowledge_ping();
            else
                domt_h2s_send_frame(&script, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\1", 4);
            domt_h2s_advance_and_read(&script, 10 * SECOND);
            send_request_within(DOMUS_HTTP_POST, SECOND);
            domt_h2s_advance_and_read(&script, SECOND);
            domt_h2c_expect_error(&h2c, -ETIMEDOUT);
            domt_h2s_advance_and_read(&script, 0);
            ck_assert_uint_eq(script.asked, 3 + i);
            ck_assert_uint_eq(script.pongs, 2 + i);
        }
        ck_assert_uint_eq(domus_testkit_net_totals(h2c.kit).connections, 1);
        domt_h2c_end_kit(&h2c);
    }
}

/* A server that has sent something since the request began gets no PING from the client, and
 * neither does one with an idle connection. */
DOMT_TEST(a_server_that_is_heard_gets_no_ping)
{
    begin_script_with_one_connection();
    send_request_within(DOMUS_HTTP_POST, SECOND);
    accept_connection_and_answer();
    send_request_within(DOMUS_HTTP_POST, SECOND);
    domt_h2s_advance_and_read(&script, 100 * MS);
    domt_h2s_send_frame(&script, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\1", 4);
    domt_h2s_advance_and_read(&script, SECOND);
    domt_h2c_expect_error(&h2c, -ETIMEDOUT);
    domt_h2s_advance_and_read(&script, 10 * SECOND);
    send_request_within(DOMUS_HTTP_POST, 5 * SECOND);
    domt_h2s_advance_and_read(&script, 0);
    ck_assert_uint_eq(script.asked, 3);
    ck_assert_uint_eq(script.pongs, 0);
    answer_last_stream();
    domt_h2c_end_kit(&h2c);
}

DOMT_SUITE(300)
