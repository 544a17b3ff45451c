/* A row's handler that asks for its body as a whole gets it so, also if the length was not
 * announced; up to a bound, and in both versions of HTTP. Other handlers still read their bodies in
 * pieces. */
#include "tests/http/h2_peer.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <domus/http2.h>
#include <domus/http_chain.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS     DOMT_SERVED_MS
#define BUDGET 40u /* budget for bodies: two of up to 20 bytes fit at the same time */

static domus_budget budget;
static unsigned calls; /* number of calls of this file's handlers */

/* Answer with the size of the body, from a handler that accepts up to `size_max` of them. */
static int gather_body_and_answer_with_its_size(domus_stack *stack,
                                                const domus_http_request *request,
                                                uint32_t size_max)
{
    domus_appender text = {0};
    domus_http_response response = {.status = 200};

    calls++;
    int result = domus_http_gather(stack, request, size_max);
    if (result != 0)
        return result;
    ck_assert_uint_eq(request->length, request->body.size);
    (void)domus_append_text(&text, "%u\n", request->body.size);
    result = domus_append_end(&text, &response.body);
    return result != 0 ? result : domus_reply(stack, &domus_http_response_type, &response);
}

static int answer_whole_body(domus_stack *stack, void *self, const domus_http_request *request,
                             const domus_http_match *match)
{
    return gather_body_and_answer_with_its_size(stack, request, 0);
}

static int answer_body_of_up_to_5_bytes(domus_stack *stack, void *self,
                                        const domus_http_request *request,
                                        const domus_http_match *match)
{
    return gather_body_and_answer_with_its_size(stack, request, 5);
}

static int answer_without_gathering(domus_stack *stack, void *self,
                                    const domus_http_request *request,
                                    const domus_http_match *match)
{
    const char *text = request->stream.number != 0 ? "in pieces\n" : "whole\n";

    return domus_reply(stack, &domus_http_text_type, &(domus_http_text){200, NULL, text});
}

static const domus_http_chain chain = {
    .rows = (const domus_http_row[]){
        {{DOMUS_HTTP_ON(POST), "/whole", 0}, answer_whole_body, NULL},
        {{DOMUS_HTTP_ON(POST), "/five", 0}, answer_body_of_up_to_5_bytes, NULL},
        {{DOMUS_HTTP_ON(POST), "/none", 0}, answer_without_gathering, NULL},
        {.handle = NULL}}};
static const domus_http_options options = {.no_date = true,
                                           .streams = true,
                                           .whole_max = 20,
                                           .body_max = 1000,
                                           .budget = &budget,
                                           .chain = &chain};
static const domus_pipeline pipeline = {
    .stages = (const domus_pipeline_stage[]){
        {&domus_http2_stage, NULL}, {&domus_http_stage, &options}, {NULL, NULL}}};

/* The handler of a service that uses the chain without a table of rows. */
static int answer_without_row(domus_stack *stack, void *self, const void *payload)
{
    int result;

    return domus_http_enter(stack, payload, &result)
               ? gather_body_and_answer_with_its_size(stack, payload, 0)
               : result;
}

#define SERVING(handler)                                                                           \
    {                                                                                              \
        .name = "whole", .kind = DOMUS_CHANNELS, .pipeline = &pipeline,                            \
        .on_peer = (const domus_on_peer[])                                                         \
        {                                                                                          \
            {.type = &domus_http_request_type, .handle = (handler)}, {.type = NULL},               \
        }                                                                                          \
    }

static const domus_behaviour by_rows = SERVING(domus_http_dispatch);
static const domus_behaviour by_own = SERVING(answer_without_row);

static domus_testkit *start_service_with_budget(const domus_behaviour *behaviour)
{
    budget = (domus_budget){.bytes_max = BUDGET};
    calls = 0;
    return domt_served_start_kit(NULL, behaviour, 1);
}

static void end_service_and_check_budget(domus_testkit *kit)
{
    domt_served_end_kit(kit);
    ck_assert_uint_eq(budget.used_bytes, 0);
}

#define POST(path)     "POST " path " HTTP/1.1\r\nHost: a\r\n"
#define COUNTED(size)  "Content-Length: " size "\r\n\r\n"
#define CHUNKS         "Transfer-Encoding: chunked\r\n\r\n"
#define TEN            "0123456789"
#define OK(size, text) "HTTP/1.1 200 OK\r\nContent-Length: " size "\r\n\r\n" text "\n"
#define CONTINUE       "HTTP/1.1 100 Continue\r\n\r\n"

static const struct {
    const char *bytes;
    const char *answer; /* the text with which the answer begins */
    unsigned calls;
} rows[] = {
    {POST("/whole") COUNTED("5") "hello", OK("2", "5"), 1},
    {POST("/whole") COUNTED("0"), OK("2", "0"), 1},
    {POST("/whole") COUNTED("20") TEN TEN, OK("3", "20"), 1},
    {POST("/whole") COUNTED("21") TEN TEN "x", "HTTP/1.1 413 ", 1},
    /* the announced body is too large, so nobody waits for it */
    {POST("/whole") COUNTED("21"), "HTTP/1.1 413 ", 1},
    {POST("/whole") CHUNKS "5\r\nhello\r\n0\r\n\r\n", OK("2", "5"), 2},
    {POST("/whole") CHUNKS "0\r\n\r\n", OK("2", "0"), 2},
    {POST("/whole") CHUNKS "0\r\nA: b\r\n\r\n", OK("2", "0"), 2},
    {POST("/whole") CHUNKS "a\r\n" TEN "\r\na\r\n" TEN "\r\n0\r\nA: b\r\n\r\n", OK("3", "20"), 2},
    {POST("/whole") CHUNKS "a\r\n" TEN "\r\na\r\n" TEN "\r\n1\r\nx\r\n0\r\n\r\n", "HTTP/1.1 413 ",
     1},
    {POST("/whole") CHUNKS "5\r\nhello\r\nx", "HTTP/1.1 400 ", 1},
    {POST("/whole") "Expect: 100-continue\r\n" CHUNKS "2\r\nhi\r\n0\r\n\r\n", CONTINUE OK("2", "2"),
     2},
    {POST("/five") COUNTED("5") "hello", OK("2", "5"), 1},
    {POST("/five") COUNTED("6") "hello!", "HTTP/1.1 413 ", 1},
    {POST("/five") CHUNKS "5\r\nhello\r\n0\r\n\r\n", OK("2", "5"), 2},
    {POST("/five") CHUNKS "6\r\nhello!\r\n0\r\n\r\n", "HTTP/1.1 413 ", 1},
    {POST("/none") CHUNKS "5\r\nhello\r\n0\r\n\r\n", OK("10", "in pieces"), 0},
    {POST("/none") COUNTED("5") "hello", OK("6", "whole"), 0},
    {POST("/whole") CHUNKS "1\r\na\r\n0\r\n\r\n" POST("/five") CHUNKS "2\r\nab\r\n0\r\n\r\n",
     OK("2", "1") OK("2", "2"), 4},
};

/* Send the bytes of a row in steps, and check the answer. A request whose body has come already
 * gets no 100 Continue. */
static void check_answer_to_row(domus_testkit *kit, size_t row, size_t step)
{
    domus_peer *peer = domt_served_connect_peer(kit);
    size_t size = strlen(rows[row].bytes);
    const char *expected = rows[row].answer;
    size_t got;

    calls = 0;
    for (size_t at = 0; at < size; at += step) {
        ck_assert_int_eq(
            domus_peer_send(peer, rows[row].bytes + at, size - at < step ? size - at : step), 0);
        domt_served_advance_kit(kit, MS);
    }
    domt_served_advance_kit(kit, 10 * MS);
    const char *bytes = domus_peer_got(peer, &got);
    if (step >= size && strncmp(expected, CONTINUE, sizeof CONTINUE - 1) == 0 && got != 0 &&
        strncmp(bytes, CONTINUE, sizeof CONTINUE - 1) != 0)
        expected += sizeof CONTINUE - 1;
    ck_assert_msg(got >= strlen(expected) && memcmp(bytes, expected, strlen(expected)) == 0,
                  "row %zu by %zu: %.*s", row, step, (int)got, bytes);
    ck_assert_uint_eq(calls, rows[row].calls);
    domus_peer_reset(peer);
    domt_served_advance_kit(kit, MS);
    ck_assert_uint_eq(budget.used_bytes, 0);
}

DOMT_TEST(handler_gets_the_whole_body)
{
    static const size_t steps[] = {1000, 7, 1};
    domus_testkit *kit = start_service_with_budget(&by_rows);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t j = 0; j < sizeof steps / sizeof steps[0]; j++)
            check_answer_to_row(kit, i, steps[j]);
    }
    end_service_and_check_budget(kit);
}

DOMT_TEST(handler_without_whole_body_in_its_row_gets_501)
{
    domus_testkit *kit = start_service_with_budget(&by_own);
    domus_peer *peer = domt_served_connect_peer(kit);

    domt_served_send_text(peer, POST("/whole") COUNTED("5") "hello");
    domt_served_expect_text(kit, peer, OK("2", "5"));
    domt_served_send_text(peer, POST("/whole") CHUNKS "0\r\n\r\n");
    domt_served_expect_text(kit, peer, "HTTP/1.1 501 ");
    end_service_and_check_budget(kit);
}

/* A body that has begun takes its share of the budget. A body beyond the budget gets 503; one whose
 * peer disconnects, or sends nothing more, gives its share back. */
DOMT_TEST(gathered_bodies_have_a_memory_budget)
{
    domus_testkit *kit = start_service_with_budget(&by_rows);
    domus_peer *first = domt_served_connect_peer(kit);
    domus_peer *second = domt_served_connect_peer(kit);
    domus_peer *other = domt_served_connect_peer(kit);

    domt_served_send_text(first, POST("/whole") CHUNKS "10\r\n" TEN "01234");
    domt_served_advance_kit(kit, MS);
    ck_assert_uint_eq(budget.used_bytes, 20);
    domt_served_send_text(second, POST("/whole") CHUNKS "1\r\nx\r\n");
    domt_served_advance_kit(kit, MS);
    ck_assert_uint_eq(budget.used_bytes, BUDGET);
    domt_served_send_text(other, POST("/whole") CHUNKS "1\r\nx\r\n");
    domt_served_expect_text(kit, other, "HTTP/1.1 503 ");
    ck_assert_uint_eq(budget.used_bytes, BUDGET);
    /* the body is larger than `whole_max`, so the answer is 413: a repeated request would not
     * help */
    domt_served_send_text(second, "14\r\n" TEN TEN "\r\n");
    domt_served_expect_text(kit, second, "HTTP/1.1 413 ");
    ck_assert_uint_eq(budget.used_bytes, 20);
    domus_peer_reset(first);
    domt_served_advance_kit(kit, MS);
    ck_assert_uint_eq(budget.used_bytes, 0);

    domus_peer *third = domt_served_connect_peer(kit);
    domt_served_send_text(third, POST("/whole") CHUNKS "5\r\nhello");
    domt_served_expect_text(kit, third, "HTTP/1.1 408 ");

    domus_peer *fourth = domt_served_connect_peer(kit);
    domt_served_send_text(fourth, POST("/whole") CHUNKS "5\r\nhel");
    domt_served_advance_kit(kit, MS);
    domus_peer_finish(fourth);
    domt_served_expect_text(kit, fourth, "HTTP/1.1 400 ");
    end_service_and_check_budget(kit);
}

/* Requests of HTTP/2 without content-length, as many clients send them. */
DOMT_TEST(handler_gets_the_whole_body_of_a_stream)
{
    domt_h2 h2;
    int32_t ids[4];

    domt_h2_begin_nghttp2_client(&h2, start_service_with_budget(&by_rows));
    budget.bytes_max = 100;
    ids[0] = domt_h2_begin_request(&h2, "POST", "/whole", 20, NULL);
    ids[1] = domt_h2_begin_request(&h2, "POST", "/whole", 21, NULL);
    ids[2] = domt_h2_begin_request(&h2, "POST", "/five", 5, NULL);
    ids[3] = domt_h2_begin_request(&h2, "POST", "/none", 5, NULL);
    domt_h2_send_output_and_advance(&h2, 100 * MS);
    domt_h2_expect_answer(&h2, ids[0], 200, "20\n");
    domt_h2_expect_answer(&h2, ids[1], 413, NULL);
    domt_h2_expect_answer(&h2, ids[2], 200, "5\n");
    domt_h2_expect_answer(&h2, ids[3], 200, "in pieces\n");
    domus_peer_close(h2.peer);
    domt_h2_end_client(&h2);
    end_service_and_check_budget(h2.kit);
}

/* --- a part that changes the request ---------------------------------------------------------- */

static int rewrite_target_to_guarded(domus_stack *stack, domus_http_exchange *exchange,
                                     domus_http_request *request, const void *none)
{
    domus_slice_free(request->target);
    return domus_slice_copy("/guarded", 8, &request->target);
}

static int refuse_request_with_403(domus_stack *stack, domus_http_exchange *exchange,
                                   domus_http_request *request, const void *none)
{
    return domus_http_answer(stack, 403, NULL, "text/plain", "no\n");
}

static const domus_http_part rewriting = {.name = "rewriting", .enter = rewrite_target_to_guarded};
static const domus_http_part refusing = {.name = "refusing", .enter = refuse_request_with_403};
static const domus_http_step astray[] = {{&rewriting, NULL}, {NULL, NULL}};
static const domus_http_step guards[] = {{&refusing, NULL}, {NULL, NULL}};
static const domus_http_chain astray_chain = {
    .rows = (const domus_http_row[]){
        {{DOMUS_HTTP_ON(POST), "/open", 0}, answer_whole_body, astray},
        {{DOMUS_HTTP_ON(POST), "/guarded", 0}, answer_without_gathering, guards},
        {.handle = NULL}}};
static const domus_http_options astray_options = {
    .no_date = true, .streams = true, .whole_max = 20, .chain = &astray_chain};
static const domus_pipeline astray_pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, &astray_options}, {NULL, NULL}}};
static const domus_behaviour led_astray = {
    .name = "astray",
    .kind = DOMUS_CHANNELS,
    .pipeline = &astray_pipeline,
    .on_peer = (const domus_on_peer[]){
        {.type = &domus_http_request_type, .handle = domus_http_dispatch}, {.type = NULL}}};

/* When the body has come, the handler of the row whose parts were entered is called, or none. */
DOMT_TEST(gathered_body_calls_only_the_handler_that_was_entered)
{
    domus_testkit *kit = start_service_with_budget(&led_astray);
    domus_peer *peer = domt_served_connect_peer(kit);

    domt_served_send_text(peer, POST("/open") CHUNKS "2\r\nhi\r\n0\r\n\r\n");
    domt_served_expect_text(kit, peer, "HTTP/1.1 500 ");
    end_service_and_check_budget(kit);
}

DOMT_SUITE(60)
