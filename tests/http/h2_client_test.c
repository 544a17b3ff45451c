/* A client of HTTP over HTTP/2 asks this library's own service: what it gets is what it gets over
 * HTTP/1.1; each request has one outcome, and the next one is answered, when allocations fail one
 * after the other, and over a network that resets and delays. */
#include "base/memory.h"
#include "tests/http/h2_client.h"
#include "tests/http/h2_script.h"
#include "tests/support/codec.h"
#include "tests/support/suite.h"

#include <domus/stage_kit.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS DOMT_SERVED_MS

static domt_h2c h2c;

DOMT_TEST(requests_share_one_connection)
{
    domt_h2c_begin(&h2c, &domt_h2_by_whole, NULL);
    domt_h2c_hold(&h2c, DOMT_H2C_URL("/now"), 200, "now\n");
    for (unsigned i = 0; i < 60; i++)
        domt_h2c_get(&h2c, DOMT_H2C_URL("/sleep/100"));
    ck_assert_int_eq(domus_probe_expect_nothing(h2c.probe, 99 * MS), 0);
    for (unsigned i = 0; i < 60; i++)
        domt_h2c_expect(&h2c, 200, "slept\n");
    ck_assert_uint_eq(domus_testkit_net_totals(h2c.kit).connections, 1);
    ck_assert_uint_eq(domt_served_now.closed, 0);
    domt_h2c_end(&h2c);
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
        domt_h2c_begin(&h2c, behaviours[b], NULL);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            domt_h2c_ask(&h2c, cases[i].method, cases[i].url, cases[i].fields, cases[i].body);
            domt_h2c_expect(&h2c, cases[i].status, cases[i].text);
        }
        domt_h2c_end(&h2c);
    }
}

static int begin_connection(void *context)
{
    domus_stage_kit *made;
    int error = domus_stage_kit_new(domt_h2c_whole.pipeline, &made);

    if (error == 0)
        domus_stage_kit_free(made);
    return error;
}

/* A connection that finds no memory as it begins keeps none. */
DOMT_TEST(a_connection_without_memory_leaves_nothing)
{
    domi_meter meter = {.look_at = INT64_MAX};

    (void)domi_memory_set_meter(&meter);
    domt_fail_allocations(begin_connection, NULL);
    (void)domi_memory_set_meter(NULL);
    ck_assert_int_eq(meter.held, 0);
}

#define MS          DOMT_SERVED_MS
#define ALLOCATIONS 80 /* of a request, its answer and the network, and some more */
#define BODY        30000u

DOMT_TEST(an_allocation_that_fails_is_got_over)
{
    unsigned harmed = 0;

    for (int64_t n = 0; n < ALLOCATIONS; n++) {
        domt_h2c_begin(&h2c, &domt_h2_by_whole, NULL);
        domt_h2c_hold(&h2c, DOMT_H2C_URL("/now"), 200, "now\n");
        domt_h2c_ask_of(&h2c, h2c.client, &(domus_http_request){.method = DOMUS_HTTP_POST},
                        DOMT_H2C_URL("/bytes"), "", BODY, DOMT_SERVED_S);
        domi_memory_fail_after(n, 0);
        domt_served_pass(h2c.kit, 10 * MS);
        domi_memory_fail_after(-1, 0);
        int outcome = domt_h2c_take(&h2c, 5 * DOMT_SERVED_S);
        ck_assert_msg(outcome != 0 && outcome != -EINVAL, "%s", domus_testkit_error(h2c.kit));
        harmed += outcome != 200;
        domt_served_pass(h2c.kit, 5 * DOMT_SERVED_S);
        domt_h2c_hold(&h2c, DOMT_H2C_URL("/now"), 200, "now\n");
        domt_h2c_end(&h2c);
    }
    ck_assert_uint_gt(harmed, 2);
}

#define MS     DOMT_SERVED_MS
#define ASKS   5000u /* of each kind of connection */
#define AT_ONE 50u

static void ask_in_storm(unsigned n)
{
    static const char *const paths[] = {"/now",     "/sleep/3", "/give/20000", "/unknown",
                                        "/sleep/9", "/hang",    "/bytes",      "/give/300"};
    char url[64];
    const domus_http_request like = {.method =
                                         n % 3 == 0 ? DOMUS_HTTP_POST : (uint8_t)DOMUS_HTTP_GET};
    bool has_end = strcmp(paths[n % 8], "/hang") == 0 || n % 10 == 0;
    (void)snprintf(url, sizeof url, DOMT_H2C_URL("%s"), paths[n % 8]);
    domt_h2c_ask_of(&h2c, h2c.client, &like, url, "", n % 3 == 0 ? n % 4000 : 0,
                    has_end ? 40 * MS : 0);
}

/* Take one outcome: an answer, or an error that a lost connection or time explains. Returns whether
 * it is an answer. */
static bool take_outcome(void)
{
    int outcome = domt_h2c_take(&h2c, 10 * DOMT_SERVED_S);

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
        domt_h2c_begin(&h2c, &domt_h2_by_whole,
                       &(domus_http_client_options){.connection = connections[c],
                                                    .connections_max = 3,
                                                    .backoff_ns = MS,
                                                    .queue_max = AT_ONE});
        ck_assert_int_eq(domus_testkit_net_set(h2c.kit, &faults), 0);
        for (unsigned n = 0; n < ASKS; n += AT_ONE) {
            for (unsigned i = 0; i < AT_ONE; i++)
                ask_in_storm(n + i);
            for (unsigned i = 0; i < AT_ONE; i++)
                answered += take_outcome();
        }
        ck_assert_uint_gt(answered, ASKS / 3);
        ck_assert_uint_gt(domus_testkit_net_totals(h2c.kit).connections, 10);
        ck_assert_int_eq(domus_testkit_net_set(h2c.kit, NULL), 0);
        domt_served_pass(h2c.kit, 5 * DOMT_SERVED_S);
        domt_h2c_hold(&h2c, DOMT_H2C_URL("/now"), 200, "now\n");
        domt_h2c_end(&h2c);
    }
}

/* More bytes in all than the window of the connection has. */
DOMT_TEST(resets_do_not_use_up_the_window)
{
    static char bytes[16384];
    domt_h2s script;

    domt_h2s_begin(&script, &h2c, NULL);
    for (unsigned n = 0; n < 150; n++) {
        domt_h2c_ask(&h2c, DOMUS_HTTP_POST, DOMT_H2S_URL("/a"), "", 0);
        if (n == 0)
            domt_h2s_accept(&script);
        domt_h2s_pass(&script, 10 * MS);
        domt_h2s_send(&script, HEADERS, WHOLE, script.last, "\x88", 1);
        domt_h2s_send(&script, DATA, 0, script.last, bytes, sizeof bytes);
        domt_h2s_reset(&script, script.last, NGHTTP2_INTERNAL_ERROR);
        domt_h2c_expect_error(&h2c, -EPIPE);
        ck_assert(!script.is_away);
    }
    domt_h2c_end(&h2c);
}

DOMT_SUITE(300)
