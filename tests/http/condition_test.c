/* Conditions of requests are compared in the order of RFC 9110. */
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <domus/http_condition.h>

#define NOV_5 "Sat, 05 Nov 1994 08:49:37 GMT"
#define NOV_6 "Sun, 06 Nov 1994 08:49:37 GMT"
#define NOV_7 "Mon, 07 Nov 1994 08:49:37 GMT"

static const domus_http_version version = {
    .etag = "\"a\"", .modified = 784111777, .is_there = true};
static const domus_http_version weak = {.etag = "W/\"a\"", .is_there = true};
static const domus_http_version none = {.is_there = false};

static unsigned check(domus_http_method method, const char *fields, const domus_http_version *of)
{
    domus_http_request request = {.method = (uint8_t)method, .fields = domt_http_slice(fields)};
    unsigned status = domus_http_check_conditions(&request, of);

    domus_slice_free(request.fields);
    return status;
}

DOMT_TEST(sender_has_it_already)
{
    static const char *const has[] = {"If-None-Match: \"a\"\r\n",
                                      "If-None-Match: W/\"a\"\r\n",
                                      "If-None-Match: \"b\", W/\"c\" ,\"a\"\r\n",
                                      "If-None-Match: *\r\n",
                                      "If-None-Match: \"b\"\r\nIf-None-Match: \"a\"\r\n",
                                      "If-Modified-Since: " NOV_6 "\r\n",
                                      "If-Modified-Since: " NOV_7 "\r\n"};
    static const char *const has_not[] = {
        "",
        "If-None-Match: \"b\"\r\n",
        "If-None-Match: a\r\n",
        "If-None-Match: \"a\r\n",
        "If-None-Match: \"aa\"\r\n",
        "If-None-Match:\r\n",
        "If-Modified-Since: " NOV_5 "\r\n",
        "If-Modified-Since: yesterday\r\n",
        "If-Modified-Since: " NOV_7 "\r\nIf-None-Match: \"b\"\r\n", /* the tag counts */
    };

    for (size_t i = 0; i < sizeof has / sizeof has[0]; i++) {
        ck_assert_uint_eq(check(DOMUS_HTTP_GET, has[i], &version), 304);
        ck_assert_uint_eq(check(DOMUS_HTTP_HEAD, has[i], &version), 304);
        ck_assert_uint_eq(check(DOMUS_HTTP_GET, has[i], &none), 0);
        ck_assert_uint_eq(check(DOMUS_HTTP_PUT, has[i], &version), i < 5 ? 412 : 0);
    }
    for (size_t i = 0; i < sizeof has_not / sizeof has_not[0]; i++)
        ck_assert_uint_eq(check(DOMUS_HTTP_GET, has_not[i], &version), 0);
    ck_assert_uint_eq(check(DOMUS_HTTP_GET, "If-None-Match: \"a\"\r\n", &weak), 304);
    ck_assert_uint_eq(check(DOMUS_HTTP_GET, "If-Modified-Since: " NOV_7 "\r\n", &weak), 0);
}

DOMT_TEST(sender_means_another_version)
{
    ck_assert_uint_eq(check(DOMUS_HTTP_PUT, "If-Match: \"a\"\r\n", &version), 0);
    ck_assert_uint_eq(check(DOMUS_HTTP_PUT, "If-Match: *\r\n", &version), 0);
    ck_assert_uint_eq(check(DOMUS_HTTP_PUT, "If-Match: *\r\n", &none), 412);
    ck_assert_uint_eq(check(DOMUS_HTTP_PUT, "If-Match: \"b\"\r\n", &version), 412);
    ck_assert_uint_eq(check(DOMUS_HTTP_PUT, "If-Match: W/\"a\"\r\n", &version), 412);
    ck_assert_uint_eq(check(DOMUS_HTTP_PUT, "If-Match: W/\"a\"\r\n", &weak), 412);
    ck_assert_uint_eq(check(DOMUS_HTTP_PUT, "If-Unmodified-Since: " NOV_5 "\r\n", &version), 412);
    ck_assert_uint_eq(check(DOMUS_HTTP_PUT, "If-Unmodified-Since: " NOV_6 "\r\n", &version), 0);
    ck_assert_uint_eq(check(DOMUS_HTTP_PUT, "If-None-Match: *\r\n", &none), 0);
    ck_assert_uint_eq(
        check(DOMUS_HTTP_PUT, "If-Unmodified-Since: " NOV_5 "\r\nIf-Match: \"a\"\r\n", &version),
        0);
}

static bool may(domus_http_method method, const char *fields, const domus_http_version *of)
{
    domus_http_request request = {.method = (uint8_t)method, .fields = domt_http_slice(fields)};
    bool result = domus_http_may_range(&request, of);

    domus_slice_free(request.fields);
    return result;
}

DOMT_TEST(range_is_heeded_of_the_same_version)
{
    ck_assert(may(DOMUS_HTTP_GET, "", &version));
    ck_assert(!may(DOMUS_HTTP_HEAD, "", &version));
    ck_assert(may(DOMUS_HTTP_GET, "If-Range: \"a\"\r\n", &version));
    ck_assert(!may(DOMUS_HTTP_GET, "If-Range: \"b\"\r\n", &version));
    ck_assert(!may(DOMUS_HTTP_GET, "If-Range: W/\"a\"\r\n", &weak));
    ck_assert(!may(DOMUS_HTTP_GET, "If-Range: *\r\n", &version));
    ck_assert(may(DOMUS_HTTP_GET, "If-Range: " NOV_6 "\r\n", &version));
    ck_assert(!may(DOMUS_HTTP_GET, "If-Range: " NOV_7 "\r\n", &version));
    ck_assert(!may(DOMUS_HTTP_GET, "If-Range: " NOV_6 "\r\n", &weak));
}

DOMT_SUITE(10)
