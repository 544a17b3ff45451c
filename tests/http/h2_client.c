/* The client of HTTP over HTTP/2 that tests/http/h2_client.h describes. */
#include "tests/http/h2_client.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const domus_http2_client_options prior = {.prior_knowledge = true};
static const domus_http2_client_options small = {.prior_knowledge = true,
                                                 .streams_max = DOMT_H2C_SMALL_STREAMS,
                                                 .head_max = DOMT_H2C_SMALL_HEAD,
                                                 .fields_max = DOMT_H2C_SMALL_FIELDS,
                                                 .stream_window = DOMT_H2C_SMALL_WINDOW,
                                                 .controls_max = DOMT_H2C_SMALL_CONTROLS};
static const domus_http2_client_options two = {.prior_knowledge = true, .streams_max = 2};
static const domus_http_options by_whole = {.role = DOMUS_ROLE_CLIENT, .origin_form = true};
static const domus_http_options by_pieces = {
    .role = DOMUS_ROLE_CLIENT, .origin_form = true, .streams = true, .body_max = UINT64_MAX};

#define PIPELINE(of_http2, of_http)                                                                \
    {                                                                                              \
        .stages = (const domus_pipeline_stage[]){{&domus_http2_client_stage, of_http2},            \
                                                 {&domus_http_stage, of_http},                     \
                                                 {NULL, NULL}},                                    \
        .encodes = domus_http_client_encodes, .inflight_max = 1                                    \
    }

static const domus_pipeline whole_pipeline = PIPELINE(&prior, &by_whole);
static const domus_pipeline streams_pipeline = PIPELINE(&prior, &by_pieces);
static const domus_pipeline small_pipeline = PIPELINE(&small, &by_whole);
static const domus_pipeline two_pipeline = PIPELINE(&two, &by_whole);

const domus_behaviour domt_h2c_whole = {
    .name = "asks whole", .kind = DOMUS_CHANNELS, .pipeline = &whole_pipeline};
const domus_behaviour domt_h2c_streams = {
    .name = "asks in pieces", .kind = DOMUS_CHANNELS, .pipeline = &streams_pipeline};
const domus_behaviour domt_h2c_small = {
    .name = "asks with small limits", .kind = DOMUS_CHANNELS, .pipeline = &small_pipeline};
const domus_behaviour domt_h2c_two = {
    .name = "asks by two streams", .kind = DOMUS_CHANNELS, .pipeline = &two_pipeline};

void domt_h2c_begin_kit(domt_h2c *h2c, const domus_behaviour *served,
                        const domus_http_client_options *options)
{
    domus_http_client_options own = {.connection = &domt_h2c_whole};

    if (options != NULL)
        own = *options;
    if (own.connection == NULL)
        own.connection = &domt_h2c_whole;
    h2c->kit = domt_served_start_kit(NULL, served, 1);
    ck_assert_int_eq(domus_probe_new(h2c->kit, &h2c->probe), 0);
    ck_assert_int_eq(
        domus_http_client_open_outside(domus_testkit_system(h2c->kit), &own, &h2c->client), 0);
    ck_assert_int_eq(domus_testkit_run(h2c->kit), 0);
}

void domt_h2c_end_kit(domt_h2c *h2c)
{
    ck_assert_int_eq(domus_probe_expect_nothing(h2c->probe, 100 * DOMT_SERVED_MS), 0);
    domt_served_end_kit(h2c->kit);
}

static domus_slice make_slice_of_text(const char *text)
{
    domus_slice made;

    ck_assert_int_eq(domus_slice_copy(text, strlen(text), &made), 0);
    return made;
}

void domt_h2c_send_request_to(domt_h2c *h2c, domus_address of, const domus_http_request *like,
                              const char *url, const char *fields, size_t body, uint64_t within_ns)
{
    domus_http_request request = *like;
    char *bytes = calloc(1, body + 1);

    request.target = make_slice_of_text(url);
    request.fields = make_slice_of_text(fields);
    ck_assert_ptr_nonnull(bytes);
    if (body != 0)
        ck_assert_int_eq(domus_slice_copy(bytes, body, &request.body), 0);
    free(bytes);
    ck_assert_int_eq(
        domus_probe_ask_within(h2c->probe, of, &domus_http_request_type, &request, within_ns), 0);
}

void domt_h2c_send_request(domt_h2c *h2c, domus_http_method method, const char *url,
                           const char *fields, size_t body)
{
    domt_h2c_send_request_to(h2c, h2c->client, &(domus_http_request){.method = (uint8_t)method},
                             url, fields, body, 0);
}

void domt_h2c_send_get(domt_h2c *h2c, const char *url)
{
    domt_h2c_send_request(h2c, DOMUS_HTTP_GET, url, "", 0);
}

static void expect_success(const domt_h2c *h2c, int result)
{
    ck_assert_msg(result == 0, "%d: %s", result, domus_testkit_error(h2c->kit));
}

size_t domt_h2c_expect_answer(domt_h2c *h2c, unsigned status, const char *body)
{
    domus_http_response response;

    expect_success(h2c, domus_probe_expect(h2c->probe, &domus_http_response_type, 5 * DOMT_SERVED_S,
                                           &response));
    ck_assert_uint_eq(response.status, status);
    if (body != NULL)
        ck_assert(domus_slice_equals(response.body, body, strlen(body)));
    size_t size = response.body.size;
    domus_http_response_type.release(&response);
    return size;
}

void domt_h2c_expect_error(domt_h2c *h2c, int error)
{
    expect_success(h2c, domus_probe_expect_error(h2c->probe, error, 5 * DOMT_SERVED_S));
}

void domt_h2c_get_and_expect_answer(domt_h2c *h2c, const char *url, unsigned status,
                                    const char *body)
{
    domt_h2c_send_get(h2c, url);
    domt_h2c_expect_answer(h2c, status, body);
}

int domt_h2c_receive_outcome(domt_h2c *h2c, uint64_t within_ns)
{
    static const int errors[] = {-ETIMEDOUT, -EPIPE,  -ENOTCONN,     -ECONNRESET, -EINVAL,
                                 -ENOBUFS,   -EPROTO, -ECONNREFUSED, -ENOMEM};
    domus_http_response response;

    if (domus_probe_expect(h2c->probe, &domus_http_response_type, within_ns, &response) == 0) {
        domus_http_response_type.release(&response);
        return response.status;
    }
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (domus_probe_expect_error(h2c->probe, errors[i], 0) == 0)
            return errors[i];
    return 0;
}
