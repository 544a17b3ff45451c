/* Over many seeds of a network that fails at any byte, actors ask a client of HTTP, which asks a
 * reverse proxy, which asks a server. Each ask has one outcome, and an answer has the body of its
 * own request. DOMUS_SEED=n runs seed n alone; DOMT_LONG runs 20 times as many seeds. */
#include "base/memory.h"
#include "tests/runtime/net_sweep.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <domus/await.h>
#include <domus/http_proxy.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS  DOMT_SCALE(80, 10)
#define ASKERS 4u

/* A few more allocations than two requests with redirects make. */
#define ALLOCATIONS DOMT_SCALE(250, 40)

/* --- the server: "/r/N" leads to "/r/N-1", and everything else is echoed * -------------------- */

static int reply_redirect(domus_stack *stack, unsigned long left)
{
    domus_http_response response = {.status = 307};
    domus_appender fields = {0};
    char where[32];

    (void)snprintf(where, sizeof where, left > 1 ? "/r/%lu" : "../echo", left - 1);
    (void)domus_http_add(&fields, "Location", where);
    int error = domus_append_end(&fields, &response.fields);
    return error != 0 ? error : domus_reply(stack, &domus_http_response_type, &response);
}

static int serve_request_by_path(domus_stack *stack, void *self, const void *payload)
{
    const domus_http_request *request = payload;
    domus_http_response response = {.status = 200};
    const char *path = domus_slice_data(domus_http_path(request));

    if (strncmp(path, "/r/", 3) == 0)
        return reply_redirect(stack, strtoul(path + 3, NULL, 10));
    int error = domus_slice_keep(request->body, &response.body);
    return error != 0 ? error : domus_reply(stack, &domus_http_response_type, &response);
}

static domus_http_proxy proxy;

static int pass_request_on_to_proxy(domus_stack *stack, void *self, const void *payload)
{
    return domus_http_pass(stack, payload, &proxy);
}

static const domus_http_options streams = {.streams = true};
static const domus_pipeline of_server = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, NULL}, {NULL, NULL}}};
static const domus_pipeline of_edge = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, &streams}, {NULL, NULL}}};
static const domus_behaviour server = {
    .name = "server",
    .kind = DOMUS_CHANNELS,
    .pipeline = &of_server,
    .on_peer = (const domus_on_peer[]){
        {.type = &domus_http_request_type, .handle = serve_request_by_path}, {.type = NULL}}};
static const domus_behaviour edge = {
    .name = "edge",
    .kind = DOMUS_CHANNELS,
    .pipeline = &of_edge,
    .on_peer = (const domus_on_peer[]){
        {&domus_http_request_type, pass_request_on_to_proxy, DOMUS_HTTP_PROXY_FRAME, 0, NULL},
        {.type = NULL}}};

/* --- askers ----------------------------------------------------------------------------------- */

static _Atomic uint32_t asked, answered, refused, failed, wrong;
static domus_address client;

typedef struct order {
    uint32_t id;
    uint32_t times;
    uint32_t size_max;
    uint32_t redirects_max;
    uint32_t timeout_ms;
} order;

typedef struct asking {
    order order;
    uint32_t done;
} asking;

static const domus_type order_type = {.name = "order", .size = sizeof(order)};

static uint32_t body_size_of_order(const asking *frame)
{
    return (frame->done * 7919u + frame->order.id * 31u) % (frame->order.size_max + 1);
}

static char body_byte_at(const asking *frame, uint32_t at)
{
    return (char)('a' + (frame->order.id * 5 + frame->done * 3 + at) % 26);
}

static int send_request_of_asker(domus_stack *stack, const asking *frame, domus_resumed *then)
{
    static const uint8_t methods[] = {DOMUS_HTTP_POST, DOMUS_HTTP_PUT, DOMUS_HTTP_PATCH};
    domus_http_request request = {.method = methods[frame->done % 3]};
    domus_appender url = {0};
    domus_appender body = {0};

    (void)domus_append_text(&url, "http://127.0.0.1:1/r/%u",
                            1 + frame->done % frame->order.redirects_max);
    for (uint32_t i = 0; i < body_size_of_order(frame); i++) {
        char byte = body_byte_at(frame, i);
        (void)domus_append(&body, &byte, 1);
    }
    int result = domus_append_end(&url, &request.target);
    int error = domus_append_end(&body, &request.body);
    if (result == 0)
        result = error;
    if (result == 0)
        result = domus_ask_within(stack, client, &domus_http_request_type, &request,
                                  frame->order.timeout_ms * DOMT_SWEEP_MS, then);
    asked++;
    if (result < 0) {
        failed++;
        domus_http_request_type.release(&request);
    }
    return result;
}

/* Check that the part of the answer that was read belongs to its request. */
static void check_answer_belongs_to_request(const asking *frame, const domus_answer *answer)
{
    const domus_http_response *response = answer->payload;

    if (answer->error != 0) {
        failed++;
        return;
    }
    if (response->status != 200) {
        refused++;
        return;
    }
    answered++;
    bool is_right = response->body.size == body_size_of_order(frame);
    for (uint32_t i = 0; is_right && i < response->body.size; i++)
        is_right = domus_slice_data(response->body)[i] == body_byte_at(frame, i);
    wrong += !is_right;
}

DOMUS_SEQUENCE(ask_on, asking)
{
    DOMUS_BEGIN;
    frame->order = *(const order *)message;
    for (; frame->done < frame->order.times; frame->done++) {
        DOMUS_AWAIT(send_request_of_asker(stack, frame, then));
        check_answer_belongs_to_request(frame, answer);
    }
    DOMUS_END;
}

static const domus_behaviour asker = {.name = "asker",
                                      .on = (const domus_on[]){DOMUS_ON(&order_type, ask_on), {0}}};

/* --- a seed ----------------------------------------------------------------------------------- */

static void make_kit_with_site_and_proxy(domt_sweep *sweep)
{
    const domus_channel_options channel = {.answer_timeout_ns = DOMT_SWEEP_SECOND,
                                           .body_timeout_ns = DOMT_SWEEP_SECOND};
    domus_listener_config listeners[] = {
        {.name = "edge", .address = "127.0.0.1:1", .backlog = 8},
        {.name = "server", .address = "127.0.0.1:2", .backlog = 8},
    };
    const domus_pool_options upstream = {
        .behaviour = &domus_http_streaming_connection,
        .connections_max = 1 + (uint32_t)domt_sweep_draw_below(sweep, 4),
        .backoff_min_ns = DOMT_SWEEP_MS,
        .backoff_max_ns = 100 * DOMT_SWEEP_MS,
        .repeatable = domus_http_repeatable,
        .per_thread = domt_sweep_draw_below(sweep, 2) == 0,
        .on_demand = true,
        .channel = &channel,
    };
    const domus_http_client_options options = {
        .connections_max = 1 + (uint32_t)domt_sweep_draw_below(sweep, 4),
        .queue_max = 1 + (uint32_t)domt_sweep_draw_below(sweep, 4),
        .backoff_ns = DOMT_SWEEP_MS,
        .connection = domt_sweep_draw_below(sweep, 2) == 0 ? NULL : &domus_http_connection,
        .per_thread = domt_sweep_draw_below(sweep, 2) == 0,
    };
    domus_config config;

    domt_sweep_draw_config(sweep, &config);
    domt_sweep_make_kit(sweep, &config, listeners, 2);
    domus_system *system = domus_testkit_system(sweep->kit);
    ck_assert_int_eq(domus_serve(system, "edge", &edge, NULL, NULL), 0);
    ck_assert_int_eq(domus_serve(system, "server", &server, NULL, NULL), 0);
    proxy = (domus_http_proxy){.timeout_ns = DOMT_SWEEP_SECOND};
    DOMT_SWEEP_HOLD(
        sweep, domus_outside_pool_open(system, "127.0.0.1:2", &upstream, &proxy.upstream) == 0);
    DOMT_SWEEP_HOLD(sweep, domus_http_client_open_outside(system, &options, &client) == 0);
}

static void spawn_askers_at_random(domt_sweep *sweep)
{
    domus_system *system = domus_testkit_system(sweep->kit);
    domus_address address;

    for (uint32_t id = 0; id < ASKERS; id++) {
        const order what = {
            .id = id,
            .times = 1 + (uint32_t)domt_sweep_draw_below(sweep, 6),
            .size_max = (uint32_t)domt_sweep_draw_below(sweep, 1000),
            .redirects_max = 1 + (uint32_t)domt_sweep_draw_below(sweep, 3),
            .timeout_ms = 1 + (uint32_t)domt_sweep_draw_below(sweep, 3000),
        };
        DOMT_SWEEP_HOLD(sweep, domus_outside_spawn(system, &asker, NULL, &address) == 0);
        DOMT_SWEEP_HOLD(sweep, domus_outside_notice(system, address, &order_type, &what) == 0);
    }
}

static int run_sweep_of_seed(uint64_t seed, void *context)
{
    domt_sweep sweep = {.seed = seed, .is_relayed = true};

    domi_random_init(&sweep.random, seed);
    asked = answered = refused = failed = wrong = 0;
    make_kit_with_site_and_proxy(&sweep);
    if (seed % 8 != 0) {
        domt_sweep_draw_faults(&sweep);
        ck_assert_int_eq(domus_testkit_net_set(sweep.kit, &sweep.faults), 0);
    }
    spawn_askers_at_random(&sweep);
    DOMT_SWEEP_HOLD(&sweep, domus_testkit_advance(sweep.kit, 60 * DOMT_SWEEP_SECOND) == 0);
    DOMT_SWEEP_HOLD(&sweep, asked != 0);
    DOMT_SWEEP_HOLD(&sweep, asked == answered + refused + failed);
    DOMT_SWEEP_HOLD(&sweep, wrong == 0);
    /* in each eighth seed, which has no faults, some ask must be answered */
    DOMT_SWEEP_HOLD(&sweep, answered != 0 || seed % 8 != 0);
    return domt_sweep_end_and_check_seed(&sweep);
}

DOMT_TEST(each_request_has_one_outcome_and_its_own_body)
{
    domt_sweep_run_seeds(SEEDS, run_sweep_of_seed);
}

/* Let one asker ask twice, with a body and redirects each time. Returns how many of the asks were
 * answered. */
static uint32_t ask_twice_with_redirects(domt_sweep *sweep)
{
    const order what = {.times = 2, .size_max = 1000, .redirects_max = 2, .timeout_ms = 1000};
    domus_system *system = domus_testkit_system(sweep->kit);
    domus_address address;

    asked = answered = refused = failed = wrong = 0;
    if (domus_outside_spawn(system, &asker, NULL, &address) != 0 ||
        domus_outside_notice(system, address, &order_type, &what) != 0)
        return 0;
    DOMT_SWEEP_HOLD(sweep, domus_testkit_advance(sweep->kit, 10 * DOMT_SWEEP_SECOND) == 0);
    DOMT_SWEEP_HOLD(sweep, asked == answered + refused + failed);
    DOMT_SWEEP_HOLD(sweep, wrong == 0);
    return answered;
}

/* One allocation after the other fails while requests are under way. Each ask still has one
 * outcome, and later asks are answered. */
DOMT_TEST(http_requests_survive_a_failed_allocation)
{
    uint32_t harmed = 0;

    for (int64_t n = 0; n < ALLOCATIONS; n++) {
        domt_sweep sweep = {.seed = 8, .is_relayed = true};
        domi_random_init(&sweep.random, sweep.seed);
        make_kit_with_site_and_proxy(&sweep);
        DOMT_SWEEP_HOLD(&sweep, domus_testkit_run(sweep.kit) == 0);
        domi_memory_fail_allocation_after(n, 0);
        harmed += ask_twice_with_redirects(&sweep) != 2;
        domi_memory_fail_allocation_after(-1, 0);
        DOMT_SWEEP_HOLD(&sweep, domus_testkit_advance(sweep.kit, DOMT_SWEEP_SECOND) == 0);
        DOMT_SWEEP_HOLD(&sweep, ask_twice_with_redirects(&sweep) == 2);
        ck_assert_msg(domt_sweep_end_and_check_seed(&sweep) == 0, "allocation %d", (int)n);
    }
    ck_assert_uint_gt(harmed, 10);
}

DOMT_SUITE(3000)
