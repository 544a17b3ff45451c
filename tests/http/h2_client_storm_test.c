/* Ten thousand requests of a client of HTTP/2 to a service that is slow, long, silent and gone by
 * turns, over a network that resets and delays: each request has one answer, and nothing is left.
 * Most of them have no deadline, so that one which is forgotten is seen.
 * A server that resets streams whose bodies nobody has read gets the credit for them. */
#include "tests/http/h2_script.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS     DOMT_SERVED_MS
#define ASKS   5000u /* of each kind of connection */
#define AT_ONE 50u

static domt_h2c h2c;

static void ask(unsigned n)
{
    static const char *const paths[] = {"/now",     "/sleep/3", "/give/20000", "/unknown",
                                        "/sleep/9", "/hang",    "/bytes",      "/give/300"};
    char url[64];
    domus_http_request request = {.method = n % 3 == 0 ? DOMUS_HTTP_POST : (uint8_t)DOMUS_HTTP_GET};
    static const char zeros[4000];

    bool has_end = strcmp(paths[n % 8], "/hang") == 0 || n % 10 == 0;
    int size = snprintf(url, sizeof url, DOMT_H2C_URL("%s"), paths[n % 8]);
    ck_assert_int_eq(domus_slice_copy(url, (size_t)size, &request.target), 0);
    if (n % 3 == 0)
        ck_assert_int_eq(domus_slice_copy(zeros, n % sizeof zeros, &request.body), 0);
    ck_assert_int_eq(domus_probe_ask_within(h2c.probe, h2c.client, &domus_http_request_type,
                                            &request, has_end ? 40 * MS : 0),
                     0);
}

/* Take one outcome: an answer, or an error that a lost connection or time explains. Returns whether
 * it is an answer. */
static bool take_outcome(void)
{
    static const int errors[] = {-ETIMEDOUT, -EPIPE,  -ENOTCONN,    -ECONNRESET,
                                 -ENOBUFS,   -EPROTO, -ECONNREFUSED};
    domus_http_response response;

    int result =
        domus_probe_expect(h2c.probe, &domus_http_response_type, 10 * DOMT_SERVED_S, &response);
    if (result == 0) {
        ck_assert(response.status == 200 || response.status == 404);
        domus_http_response_type.release(&response);
        return true;
    }
    for (size_t i = 0; result != 0 && i < sizeof errors / sizeof *errors; i++)
        result = domus_probe_expect_error(h2c.probe, errors[i], 0);
    ck_assert_msg(result == 0, "%s", domus_testkit_error(h2c.kit));
    return false;
}

static const domus_http2_client_options two_streams = {.prior_knowledge = true, .streams_max = 2};
static const domus_http_options to_servers = {.role = DOMUS_ROLE_CLIENT, .origin_form = true};
static const domus_pipeline two_pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_http2_client_stage, &two_streams},
                                             {&domus_http_stage, &to_servers},
                                             {NULL, NULL}},
    .encodes = domus_http_client_encodes,
    .inflight_max = 1};
static const domus_behaviour by_two = {
    .name = "asks by two streams", .kind = DOMUS_CHANNELS, .pipeline = &two_pipeline};

DOMT_TEST(each_request_has_one_answer)
{
    const domus_behaviour *const connections[] = {&domt_h2c_whole, &by_two};
    static const domus_net_faults faults = {.latency_max_ns = 2 * MS,
                                            .short_writes = 100000,
                                            .resets = 900000,
                                            .reset_within_bytes = 200000,
                                            .ends = 500000,
                                            .end_within_bytes = 200000};

    for (size_t c = 0; c < 2; c++) {
        unsigned answered = 0;
        domt_h2c_begin(&h2c, &domt_h2_by_whole,
                       &(domus_http_client_options){.connection = connections[c],
                                                    .connections_max = 3,
                                                    .backoff_ns = MS,
                                                    .queue_max = AT_ONE});
        ck_assert_int_eq(domus_testkit_net_set(h2c.kit, &faults), 0);
        for (unsigned n = 0; n < ASKS; n += AT_ONE) {
            for (unsigned i = 0; i < AT_ONE; i++)
                ask(n + i);
            for (unsigned i = 0; i < AT_ONE; i++)
                answered += take_outcome();
        }
        ck_assert_uint_gt(answered, ASKS / 3);
        ck_assert_uint_gt(domus_testkit_net_totals(h2c.kit).connections, 10);
        ck_assert_int_eq(domus_testkit_net_set(h2c.kit, NULL), 0);
        domt_served_pass(h2c.kit, 5 * DOMT_SERVED_S);
        domt_h2c_get(&h2c, DOMT_H2C_URL("/now"));
        domt_h2c_expect(&h2c, 200, "now\n");
        domt_h2c_end(&h2c);
    }
}

/* More bytes in all than the window of the connection has. */
DOMT_TEST(resets_do_not_use_up_the_window)
{
    static char bytes[16384];
    domt_h2s script;

    domt_h2c_begin(&h2c, &domt_h2_by_whole, NULL);
    domt_h2s_listen(&script, &h2c);
    for (unsigned n = 0; n < 150; n++) {
        domt_h2c_ask(&h2c, DOMUS_HTTP_POST, DOMT_H2S_URL("/a"), "", 0);
        if (n == 0)
            domt_h2s_accept(&script);
        domt_h2s_pass(&script, 10 * MS);
        domt_h2s_send(&script, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, script.last, "\x88", 1);
        domt_h2s_send(&script, NGHTTP2_DATA, 0, script.last, bytes, sizeof bytes);
        domt_h2s_reset(&script, script.last, NGHTTP2_INTERNAL_ERROR);
        domt_h2c_expect_error(&h2c, -EPIPE);
        ck_assert(!script.is_away);
    }
    domt_h2c_end(&h2c);
}

DOMT_SUITE(300)
