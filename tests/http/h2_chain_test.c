/* A chain around handlers hears which protocol a request has come by, and who carries it. */
#include "tests/http/h2_peer.h"
#include "tests/support/suite.h"

#include <domus/http_chain.h>

#include <stdio.h>
#include <string.h>

static char via[16];
static char carrier[16];
static unsigned ended;

static int note_carrier(domus_stack *stack, void *self, const domus_http_request *request,
                        const domus_http_match *match)
{
    const char *name = domus_channel_carrier(domus_channel_running(stack));

    snprintf(carrier, sizeof carrier, "%s", name != NULL ? name : "-");
    int result = domus_http_answer(stack, 200, NULL, "text/plain", "now\n");
    return result == DOMUS_HTTP_ANSWERED ? 0 : result;
}

static void note_via(domus_http_exchange *exchange, const void *options)
{
    snprintf(via, sizeof via, "%s", exchange->via);
    ended++;
}

static const domus_http_part part = {.name = "notes", .end = note_via};
static const domus_http_chain chain = {
    .parts = (const domus_http_step[]){{&part, NULL}, {NULL, NULL}},
    .rows = (const domus_http_row[]){{{DOMUS_HTTP_ON(GET), "/now", 1}, note_carrier, NULL},
                                     {.handle = NULL}}};
static const domus_http_options http = {.chain = &chain};
static const domus_pipeline pipeline = {
    .stages = (const domus_pipeline_stage[]){
        {&domus_http2_stage, NULL}, {&domus_http_stage, &http}, {NULL, NULL}}};
static const domus_behaviour behaviour = {
    .name = "chain",
    .kind = DOMUS_CHANNELS,
    .pipeline = &pipeline,
    .on_peer = (const domus_on_peer[]){
        {.type = &domus_http_request_type, .handle = domus_http_dispatch}, {.type = NULL}}};

static void hold_last(const char *version, const char *by, unsigned count)
{
    ck_assert_uint_eq(ended, count);
    ck_assert_str_eq(via, version);
    ck_assert_str_eq(carrier, by);
}

DOMT_TEST(chains_hear_of_the_protocol)
{
    static const char *const versions[] = {"HTTP/1.0", "HTTP/1.1"};
    domus_testkit *kit = domt_served_start(NULL, &behaviour, 1);
    char text[64];
    domt_h2 h2;

    for (unsigned i = 0; i < 2; i++) {
        domus_peer *peer = domt_served_peer(kit);
        snprintf(text, sizeof text, "GET /now %s\r\nHost: a\r\n\r\n", versions[i]);
        domt_served_send(peer, text);
        ck_assert_int_eq(domus_testkit_advance(kit, 10 * DOMT_SERVED_MS), 0);
        hold_last(versions[i], "-", 1 + i);
        domus_peer_close(peer);
    }
    domt_h2_begin(&h2, kit);
    domt_h2_hold_well(&h2);
    hold_last("HTTP/2.0", "http2", 3);
    int32_t wrong = domt_h2_ask(&h2, "GET", "/a\xff", 0, NULL); /* it enters nothing */
    domt_h2_pass(&h2, 0);
    domt_h2_hold(&h2, wrong, 400, NULL);
    ck_assert_uint_eq(ended, 4);
    domus_peer_close(h2.peer);
    domt_h2_end(&h2);
    domt_served_end(kit);
}

DOMT_SUITE(20)
