/* A client of HTTP/2 whose allocations fail, one after the other: a request has one outcome, and
 * the next one is answered. */
#include "base/memory.h"
#include "tests/http/h2_client.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define MS          DOMT_SERVED_MS
#define ALLOCATIONS 80 /* of a request, its answer and the network, and some more */
#define BODY        30000u

static domt_h2c h2c;

static void post(void)
{
    static const char url[] = DOMT_H2C_URL("/bytes");
    static const char zeros[BODY];
    domus_http_request request = {.method = DOMUS_HTTP_POST};

    ck_assert_int_eq(domus_slice_copy(url, strlen(url), &request.target), 0);
    ck_assert_int_eq(domus_slice_copy(zeros, BODY, &request.body), 0);
    ck_assert_int_eq(domus_probe_ask_within(h2c.probe, h2c.client, &domus_http_request_type,
                                            &request, DOMT_SERVED_S),
                     0);
}

/* Take the outcome of a request. Returns whether it is the right answer. */
static bool take_outcome(void)
{
    static const int errors[] = {-ENOMEM,  -EPIPE,      -ETIMEDOUT,    -ENOTCONN,
                                 -ENOBUFS, -ECONNRESET, -ECONNREFUSED, -EPROTO};
    domus_http_response response;

    int result =
        domus_probe_expect(h2c.probe, &domus_http_response_type, 5 * DOMT_SERVED_S, &response);
    if (result == 0) {
        result = response.status;
        domus_http_response_type.release(&response);
        return result == 200;
    }
    for (size_t i = 0; result != 0 && i < sizeof errors / sizeof *errors; i++)
        result = domus_probe_expect_error(h2c.probe, errors[i], 0);
    ck_assert_msg(result == 0, "%s", domus_testkit_error(h2c.kit));
    return false;
}

DOMT_TEST(an_allocation_that_fails_is_got_over)
{
    unsigned harmed = 0;

    for (int64_t n = 0; n < ALLOCATIONS; n++) {
        domt_h2c_begin(&h2c, &domt_h2_by_whole, NULL);
        domt_h2c_get(&h2c, DOMT_H2C_URL("/now"));
        domt_h2c_expect(&h2c, 200, "now\n");
        post();
        domi_memory_fail_after(n, 0);
        domt_served_pass(h2c.kit, 10 * MS);
        domi_memory_fail_after(-1, 0);
        harmed += !take_outcome();
        domt_served_pass(h2c.kit, 5 * DOMT_SERVED_S);
        domt_h2c_get(&h2c, DOMT_H2C_URL("/now"));
        domt_h2c_expect(&h2c, 200, "now\n");
        domt_h2c_end(&h2c);
    }
    ck_assert_uint_gt(harmed, 2);
}

DOMT_SUITE(120)
