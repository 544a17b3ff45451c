/* The proxy of tests/runtime/proxied.h. Its kit has three threads, and a test has one proxy at a
 * time. */
#include "tests/runtime/proxied.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

domt_proxied domt_edge;

static int on_request_pass_on_by_proxy(domus_stack *stack, void *self, const void *payload)
{
    return domus_http_pass(stack, payload, &domt_edge.proxy);
}

static const domus_http_options streams = {.streams = true, .no_date = true};
static const domus_http_options whole = {.no_date = true};
static const domus_pipeline streaming = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, &streams}, {NULL, NULL}}};
static const domus_pipeline gathering = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, &whole}, {NULL, NULL}}};
static const domus_on_peer rows[] = {{&domus_http_request_type, on_request_pass_on_by_proxy,
                                      DOMUS_HTTP_PROXY_FRAME, DOMUS_HTTP_PROXY_MARKS, NULL},
                                     {.type = NULL}};
static const domus_on_peer markless[] = {
    {&domus_http_request_type, on_request_pass_on_by_proxy, DOMUS_HTTP_PROXY_FRAME, 0, NULL},
    {.type = NULL}};
static const domus_on_peer frameless[] = {
    {.type = &domus_http_request_type, .handle = on_request_pass_on_by_proxy}, {.type = NULL}};
const domus_behaviour domt_proxied_edge = {
    .name = "edge", .kind = DOMUS_CHANNELS, .pipeline = &streaming, .on_peer = rows};
const domus_behaviour domt_proxied_gathering_edge = {
    .name = "edge", .kind = DOMUS_CHANNELS, .pipeline = &gathering, .on_peer = rows};
const domus_behaviour domt_proxied_frameless_edge = {
    .name = "edge", .kind = DOMUS_CHANNELS, .pipeline = &streaming, .on_peer = frameless};
const domus_behaviour domt_proxied_plain_edge = {
    .name = "edge", .kind = DOMUS_CHANNELS, .pipeline = &streaming, .on_peer = markless};

void domt_proxied_begin_with(const domus_behaviour *behaviour, const domus_behaviour *connection)
{
    const domus_pool_options options = {.behaviour = connection,
                                        .connections_max = 2,
                                        .queue_max = 1,
                                        .repeatable = domus_http_repeatable,
                                        .on_demand = true};

    domt_edge.proxy = (domus_http_proxy){.path = "/p", .timeout_ns = 100 * MS};
    domt_edge.kit = domt_pipes_new_kit(domt_edge.config, behaviour, 1);
    domt_net_check_ok(domt_edge.kit,
                      domus_peer_listen(domt_edge.kit, "10.0.0.9:80", 0, &domt_edge.listener));
    ck_assert_int_eq(domus_outside_pool_open(domus_testkit_system(domt_edge.kit), "10.0.0.9:80",
                                             &options, &domt_edge.proxy.upstream),
                     0);
    domt_edge.client = domt_pipes_connect_peer(domt_edge.kit);
    domt_edge.server = NULL;
}

void domt_proxied_begin(const domus_behaviour *behaviour)
{
    domt_proxied_begin_with(behaviour, &domus_http_streaming_connection);
}

void domt_proxied_end(void)
{
    domus_peer_close(domt_edge.client);
    domt_pipes_end_kit(domt_edge.kit);
}

void domt_relay_request(const char *sent, const char *expected)
{
    domt_pipes_peer_send(domt_edge.kit, domt_edge.client, sent);
    if (domt_edge.server == NULL)
        domt_net_check_ok(domt_edge.kit,
                          domus_peer_accept(domt_edge.listener, SECOND, &domt_edge.server));
    domt_pipes_peer_expect(domt_edge.kit, domt_edge.server, expected);
}

void domt_relay_answer(const char *sent, const char *expected)
{
    domt_pipes_peer_send(domt_edge.kit, domt_edge.server, sent);
    domt_pipes_peer_expect(domt_edge.kit, domt_edge.client, expected);
}

void domt_relay_empty_answer(void)
{
    domt_relay_answer("HTTP/1.1 204 No Content\r\n\r\n",
                      "HTTP/1.1 204 No Content\r\nVia: 1.1 domus\r\n\r\n");
}

void domt_expect_answer_status(const char *status)
{
    size_t size;
    domt_net_check_ok(domt_edge.kit, domus_testkit_run(domt_edge.kit));
    const char *got = domus_peer_got(domt_edge.client, &size);
    ck_assert_msg(size > strlen(status) && memcmp(got, status, strlen(status)) == 0, "%.*s",
                  (int)size, got);
    domus_peer_take(domt_edge.client, size);
}
