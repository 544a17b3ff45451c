/* A client of HTTP over HTTP/2 asks this library's own service: what it gets is what it gets over
 * HTTP/1.1. */
#include "tests/http/h2_client.h"
#include "tests/support/codec.h"
#include "tests/support/suite.h"

#include "base/memory.h"

#include <domus/stage_kit.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS DOMT_SERVED_MS

static domt_h2c h2c;

DOMT_TEST(requests_share_one_connection)
{
    domt_h2c_begin(&h2c, &domt_h2_by_whole, NULL);
    domt_h2c_get(&h2c, DOMT_H2C_URL("/now"));
    domt_h2c_expect(&h2c, 200, "now\n");
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

DOMT_SUITE(120)
