/* Requests that wait for a stream of a connection that has no stream free. In each way in which a
 * stream becomes free, the next request begins at once, also when the earlier request was never
 * sent. And a server does anything at any moment, between single steps of the client's thread, and
 * then works normally: it resets each open stream, so each request has one outcome soon, though
 * some have no deadline and some cannot be sent. A failure prints the number of its schedule. */
#include "tests/http/h2_script.h"
#include "tests/support/suite.h"

#include <domus/pool.h>

#include <errno.h>
#include <string.h>

#define MS     DOMT_SERVED_MS
#define SECOND DOMT_SERVED_S
#define GOOD   "Host: a\r\n"
#define WRONG  "Host: a\r\nx y: z\r\n"

static domt_h2c h2c;
static domt_h2s script;
static domus_address pool;

static void send_post_to_pool(const char *fields, size_t body, uint64_t within_ns)
{
    domt_h2c_send_request_to(&h2c, pool, &(domus_http_request){.method = DOMUS_HTTP_POST}, "/a",
                             fields, body, within_ns);
}

/* Begin with a pool of one connection. */
static void begin_script_with_pool(const domus_behaviour *behaviour)
{
    const domus_pool_options options = {
        .behaviour = behaviour, .on_demand = true, .connections_max = 1};

    domt_h2s_begin_kit(&script, &h2c, NULL);
    ck_assert_int_eq(
        domus_outside_pool_open(domus_testkit_system(h2c.kit), DOMT_H2C_SCRIPT, &options, &pool),
        0);
}

static void begin_pool_with_answered_request(void)
{
    begin_script_with_pool(&domt_h2c_small);
    send_post_to_pool(GOOD, 0, 0);
    domt_h2s_accept_connection(&script);
    domt_h2s_answer_and_expect_at_client(&script, &h2c, 1, "ab");
}

/* Let the server answer `count` streams, from stream `first` on. */
static void answer_streams(int32_t first, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        domt_h2s_answer_and_expect_at_client(&script, &h2c, first + 2 * (int32_t)i, "well");
    }
}

/* --- the ways in which the stream 3, one of two, becomes free ------------------------------------
 */

static void reset_stream_3(void)
{
    domt_h2s_reset_stream(&script, 3, NGHTTP2_INTERNAL_ERROR);
    domt_h2c_expect_error(&h2c, -EPIPE);
}

/* Let the server end stream 3 by an empty last frame, as many servers do. */
static void end_stream_3_by_empty_frame(void)
{
    domt_h2s_send_frame(&script, HEADERS, WHOLE, 3, BYTES(S200 LENGTH_2));
    domt_h2s_send_frame(&script, DATA, 0, 3, "ab", 2);
    domt_h2c_expect_answer(&h2c, 200, "ab");
    domt_h2s_advance_and_read(&script, 10 * MS);
    ck_assert_uint_eq(script.asked, 3);
    domt_h2s_send_frame(&script, DATA, LAST, 3, NULL, 0);
}

/* Let the server answer stream 3, and then give credit for the last byte of its request. */
static void answer_stream_3_and_give_credit(void)
{
    domt_h2s_answer_and_expect_at_client(&script, &h2c, 3, "ab");
    domt_h2s_advance_and_read(&script, 10 * MS);
    ck_assert_uint_eq(script.asked, 3);
    domt_h2s_send_frame(&script, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\1\0\0", 4);
    domt_h2s_send_frame(&script, NGHTTP2_WINDOW_UPDATE, 0, 3, "\0\1\0\0", 4);
}

/* Let the server send an answer that is complete by its length, and never end the stream. */
static void answer_stream_3_without_end(void)
{
    domt_h2s_send_frame(&script, HEADERS, WHOLE, 3, BYTES(S200 LENGTH_2));
    domt_h2s_send_frame(&script, DATA, 0, 3, "ab", 2);
    domt_h2c_expect_answer(&h2c, 200, "ab");
    domt_h2s_advance_and_read(&script, 900 * MS);
    ck_assert_uint_eq(script.resets, 0);
    domt_h2s_advance_and_read(&script, 200 * MS);
    ck_assert_uint_eq(script.resets, 1);
    ck_assert_uint_eq(script.reset_code, NGHTTP2_CANCEL);
}

DOMT_TEST(a_stream_that_is_free_goes_to_the_next_request)
{
    static const struct {
        void (*end)(void);
        size_t body;
    } cases[] = {{reset_stream_3, 0},
                 {end_stream_3_by_empty_frame, 0},
                 {answer_stream_3_and_give_credit, 70000},
                 {answer_stream_3_without_end, 0}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_pool_with_answered_request();
        send_post_to_pool(GOOD, cases[i].body, 0);
        send_post_to_pool(GOOD, 0, 0);
        send_post_to_pool(GOOD, 0, 0);
        domt_h2s_advance_and_read(&script, 1000 * MS);
        ck_assert_uint_eq(script.asked, 1 + DOMT_H2C_SMALL_STREAMS);
        cases[i].end();
        domt_h2s_advance_and_read(&script, 10 * MS);
        ck_assert_msg(script.asked == 2 + DOMT_H2C_SMALL_STREAMS, "%zu: %u", i, script.asked);
        answer_streams(5, 2);
        domt_h2c_end_kit(&h2c);
    }
}

/* Requests that cannot be sent take no stream, however many there are, and hold up no other
 * request, neither on inner channels that were used before nor on new ones. */
DOMT_TEST(requests_that_cannot_be_sent_take_no_stream)
{
    for (unsigned used = 0; used < 2; used++) {
        begin_pool_with_answered_request();
        if (used != 0) {
            send_post_to_pool(GOOD, 0, 0);
            send_post_to_pool(GOOD, 0, 0);
            domt_h2s_advance_and_read(&script, 0);
            answer_streams(3, 2);
        }
        for (unsigned i = 0; i < 3; i++) {
            for (unsigned n = 0; n < DOMT_H2C_SMALL_STREAMS + 2; n++)
                send_post_to_pool(WRONG, 0, 0);
            for (unsigned n = 0; n < DOMT_H2C_SMALL_STREAMS + 2; n++)
                domt_h2c_expect_error(&h2c, -EINVAL);
        }
        uint32_t before = script.asked;
        for (unsigned n = 0; n < DOMT_H2C_SMALL_STREAMS; n++)
            send_post_to_pool(GOOD, 0, 0);
        domt_h2s_advance_and_read(&script, 10 * MS);
        ck_assert_uint_eq(script.asked, before + DOMT_H2C_SMALL_STREAMS);
        answer_streams(script.last - 2, 2);
        domt_h2c_end_kit(&h2c);
    }
}

/* The process is suspended at each of the steps between the ask and the begin of its stream. */
DOMT_TEST(requests_out_of_time_on_their_way_take_no_stream)
{
    for (unsigned steps = 1; steps < 40; steps++) {
        begin_pool_with_answered_request();
        send_post_to_pool(GOOD, 0, 50 * MS);
        send_post_to_pool(GOOD, 0, 50 * MS);
        for (unsigned i = 0; i < steps; i++)
            (void)domus_testkit_step(h2c.kit);
        ck_assert_int_eq(domus_testkit_jump(h2c.kit, 100 * MS), 0);
        domt_h2s_advance_and_read(&script, 1000 * MS);
        domt_h2c_expect_error(&h2c, -ETIMEDOUT);
        domt_h2c_expect_error(&h2c, -ETIMEDOUT);
        uint32_t before = script.asked;
        send_post_to_pool(GOOD, 0, 0);
        send_post_to_pool(GOOD, 0, 0);
        domt_h2s_advance_and_read(&script, 10 * MS);
        ck_assert_msg(script.asked == before + 2, "%u steps", steps);
        answer_streams(script.last - 2, 2);
        domt_h2c_end_kit(&h2c);
    }
}

/* If a server allows no stream at all, the client leaves that connection when a waiting request
 * reaches its time-out: the next request goes to another connection. */
DOMT_TEST(a_server_that_allows_no_stream_is_left)
{
    begin_script_with_pool(&domt_h2c_whole);
    send_post_to_pool(GOOD, 0, 5 * SECOND);
    ck_assert_int_eq(domus_peer_accept(script.listener, SECOND, &script.peer), 0);
    domt_h2s_send_frame(&script, NGHTTP2_SETTINGS, 0, 0, "\0\3\0\0\0\0", 6);
    domt_h2s_advance_and_read(&script, 4 * SECOND);
    ck_assert(!domus_peer_has_end(script.peer));
    domt_h2s_advance_and_read(&script, 2 * SECOND);
    domt_h2c_expect_error(&h2c, -ETIMEDOUT);
    ck_assert_uint_eq(script.asked, 0);
    ck_assert(domus_peer_has_end(script.peer));
    domus_peer_close(script.peer);
    send_post_to_pool(GOOD, 0, 0);
    domt_h2s_accept_connection(&script);
    ck_assert_uint_eq(script.asked, 1);
    answer_streams(1, 1);
    domt_h2c_end_kit(&h2c);
}

/* If a server allows no stream for a while, a waiting request is sent when the server allows
 * streams again. */
DOMT_TEST(a_request_waits_for_the_streams_of_the_server)
{
    begin_script_with_pool(&domt_h2c_whole);
    send_post_to_pool(GOOD, 0, 5 * SECOND);
    ck_assert_int_eq(domus_peer_accept(script.listener, SECOND, &script.peer), 0);
    domt_h2s_send_frame(&script, NGHTTP2_SETTINGS, 0, 0, "\0\3\0\0\0\0", 6);
    domt_h2s_advance_and_read(&script, 3 * SECOND);
    ck_assert_uint_eq(script.asked, 0);
    domt_h2s_send_frame(&script, NGHTTP2_SETTINGS, 0, 0, "\0\3\0\0\0\1", 6);
    domt_h2s_advance_and_read(&script, 0);
    ck_assert_uint_eq(script.asked, 1);
    answer_streams(1, 1);
    domt_h2c_end_kit(&h2c);
}

static uint32_t open_channels;

static int count_opened_channel(domus_stack *stack, void *self, const void *payload)
{
    open_channels++;
    return 0;
}

static int count_closed_channel(domus_stack *stack, void *self, const void *payload)
{
    open_channels--;
    return 0;
}

/* A burst of requests does not keep places of connect.maxConnections, and a request that takes long
 * keeps its place. */
DOMT_TEST(a_burst_gives_its_connection_places_back)
{
    domus_behaviour counted = domt_h2c_whole;

    counted.on_open.handle = count_opened_channel;
    counted.on_close.handle = count_closed_channel;
    open_channels = 0;
    begin_script_with_pool(&counted);
    for (unsigned i = 0; i < 21; i++)
        send_post_to_pool(GOOD, 0, 0);
    domt_h2s_accept_connection(&script);
    answer_streams(1, 20);
    ck_assert_uint_eq(open_channels, 1 + 21);
    domt_h2s_advance_and_read(&script, DOMUS_INNER_REST_NS - 100 * MS);
    ck_assert_uint_eq(open_channels, 1 + 21);
    send_post_to_pool(GOOD, 0, 0); /* this request uses the inner channel of an earlier one */
    domt_h2s_advance_and_read(&script, 200 * MS);
    ck_assert_uint_eq(open_channels, 1 + 2);
    domt_h2s_advance_and_read(&script, 5 * SECOND);
    ck_assert_uint_eq(open_channels, 1 + 2);
    answer_streams(41, 2);
    domt_h2c_end_kit(&h2c);
}

#define MS DOMT_SERVED_MS

#define SCHEDULES 300u
#define DEEDS     25u
#define ROUNDS    200u /* number of rounds of 20 ms within which all requests have their outcomes */

static domt_h2c h2c;
static domt_h2s script;
static domus_address pool;
static unsigned asked, seed;

static unsigned random_below(unsigned below)
{
    seed = seed * 1103515245u + 12345;
    return (seed >> 16) % below;
}

static void send_random_request(void)
{
    const char *fields = random_below(5) == 0 ? "Host: a\r\nx y: z\r\n" : "Host: a\r\n";
    uint64_t within_ns = random_below(3) * 30 * MS;
    const domus_http_request like = {.method = random_below(2) ? DOMUS_HTTP_POST : DOMUS_HTTP_GET};
    size_t body = like.method == DOMUS_HTTP_POST && random_below(3) == 0 ? 100000 : 0;

    domt_h2c_send_request_to(&h2c, pool, &like, "/a", fields, body, within_ns);
    asked++;
}

/* Receive the outcomes of requests that have come. */
static void receive_outcomes_that_have_come(void)
{
    for (int outcome = 1; asked != 0 && outcome != 0; asked -= outcome != 0) {
        outcome = domt_h2c_receive_outcome(&h2c, 0);
        ck_assert_int_ne(outcome, -ENOMEM);
    }
}

static void send_limit_of_streams(unsigned most)
{
    const uint8_t entry[] = {0, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0, 0, 0, (uint8_t)most};

    domt_h2s_send_frame(&script, NGHTTP2_SETTINGS, 0, 0, entry, sizeof entry);
}

static void do_random_action_of_server(void)
{
    static const uint32_t codes[] = {NGHTTP2_NO_ERROR, NGHTTP2_INTERNAL_ERROR,
                                     NGHTTP2_REFUSED_STREAM, NGHTTP2_CANCEL,
                                     NGHTTP2_ENHANCE_YOUR_CALM};
    int32_t id = 1 + 2 * (int32_t)random_below(6);
    uint32_t code = codes[random_below(sizeof codes / sizeof *codes)];

    switch (random_below(12)) {
    case 0:
        domt_h2s_send_frame(&script, HEADERS, WHOLE, id, BYTES(S200));
        break;
    case 1:
        domt_h2s_send_frame(&script, HEADERS, WHOLE, id, BYTES(S200 LENGTH_2));
        break;
    case 2:
        domt_h2s_send_frame(&script, HEADERS, WHOLE | LAST, id, BYTES(S200));
        break;
    case 3:
        domt_h2s_send_frame(&script, DATA, 0, id, "ab", 2);
        break;
    case 4:
        domt_h2s_send_frame(&script, DATA, LAST, id, NULL, 0);
        break;
    case 5:
        domt_h2s_answer_stream(&script, id, "ab");
        break;
    case 6:
        domt_h2s_reset_stream(&script, id, code);
        break;
    case 7:
        send_limit_of_streams(random_below(4));
        break;
    case 8:
        domt_h2s_send_frame(&script, NGHTTP2_WINDOW_UPDATE, 0, random_below(2) ? id : 0, "\0\1\0\0",
                            4);
        break;
    case 9:
        if (random_below(4) == 0)
            domt_h2s_send_goaway(&script, id, code);
        break;
    case 10:
        send_random_request();
        break;
    default:
        domt_h2s_advance_and_read(&script, random_below(20) * MS);
    }
    for (unsigned i = random_below(3) == 0 ? random_below(8) : 0; i != 0; i--)
        (void)domus_testkit_step(h2c.kit);
}

/* Serve as a normal server: accept connections, and reset each open stream once. */
static void serve_and_reset_each_stream(void)
{
    int32_t reset = -1;

    send_limit_of_streams(100);
    for (unsigned round = 0; round < ROUNDS && asked != 0; round++) {
        domus_peer *next;
        if (domus_peer_accept(script.listener, 0, &next) == 0) {
            script = (domt_h2s){.kit = script.kit, .listener = script.listener, .peer = next};
            domt_h2s_send_frame(&script, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
            reset = -1;
        }
        domt_h2s_advance_and_read(&script, 20 * MS);
        while (reset < script.last)
            domt_h2s_reset_stream(&script, reset += 2, NGHTTP2_INTERNAL_ERROR);
        receive_outcomes_that_have_come();
    }
}

DOMT_TEST(each_request_has_one_outcome_whatever_the_server_does)
{
    for (unsigned n = 0; n < SCHEDULES; n++) {
        const domus_pool_options options = {.behaviour =
                                                n % 2 == 0 ? &domt_h2c_two : &domt_h2c_whole,
                                            .on_demand = n % 3 != 0,
                                            .connections_max = 1 + n % 2,
                                            .backoff_min_ns = MS,
                                            .backoff_max_ns = 2 * MS};
        asked = 0;
        seed = n * 2654435761u;
        domt_h2s_begin_kit(&script, &h2c, NULL);
        ck_assert_int_eq(domus_outside_pool_open(domus_testkit_system(h2c.kit), DOMT_H2C_SCRIPT,
                                                 &options, &pool),
                         0);
        for (unsigned i = 0; i < 5; i++)
            send_random_request();
        ck_assert_int_eq(domus_peer_accept(script.listener, 1000 * MS, &script.peer), 0);
        if (random_below(2))
            send_limit_of_streams(random_below(4));
        else
            domt_h2s_send_frame(&script, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
        for (unsigned i = 0; i < DEEDS; i++)
            do_random_action_of_server();
        serve_and_reset_each_stream();
        ck_assert_msg(asked == 0, "schedule %u: %u requests have no outcome: %s", n, asked,
                      domus_testkit_error(h2c.kit));
        domt_h2c_end_kit(&h2c);
    }
}

DOMT_SUITE(120)
