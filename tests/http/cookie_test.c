/* Cookies are read, and set without letting anything else in. */
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <domus/http_cookie.h>

#include <errno.h>
#include <string.h>

DOMT_TEST(cookies_are_found)
{
    domus_slice fields = domt_http_slice("Host: a\r\nCookie: a=1; b=\"2\";c=;  d=4=5 ;;e\r\n"
                                         "cookie: a=7; f=8\r\n");
    static const char *const rows[][2] = {
        {"a", "1"}, {"b", "2"}, {"c", ""}, {"d", "4=5"}, {"f", "8"}};
    domus_slice value;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert(domus_http_cookie(fields, rows[i][0], &value));
        ck_assert(domus_slice_equals(value, rows[i][1], strlen(rows[i][1])));
    }
    ck_assert(!domus_http_cookie(fields, "e", &value));
    ck_assert(!domus_http_cookie(fields, "A", &value));
    ck_assert(!domus_http_cookie(fields, "Host", &value));
    domus_slice_free(fields);
}

static void hold(const domus_http_set_cookie *cookie, const char *expected)
{
    domus_appender fields = {0};
    domus_slice made;

    ck_assert_int_eq(domus_http_add_cookie(&fields, cookie), 0);
    ck_assert_int_eq(domus_append_end(&fields, &made), 0);
    ck_assert(domus_slice_equals(made, expected, strlen(expected)));
    domus_slice_free(made);
}

DOMT_TEST(cookies_are_set)
{
    domus_http_set_cookie plain = {.name = "a", .value = "b"};
    domus_http_set_cookie full = {.name = "a",
                                  .value = "b=c",
                                  .path = "/d",
                                  .domain = "e.f",
                                  .max_age = 60,
                                  .secure = true,
                                  .http_only = true,
                                  .site = DOMUS_HTTP_SITE_STRICT};
    domus_http_set_cookie gone = {.name = "a", .value = "", .max_age = -1};

    hold(&plain, "Set-Cookie: a=b\r\n");
    hold(&full, "Set-Cookie: a=b=c; Path=/d; Domain=e.f; Max-Age=60; SameSite=Strict; Secure; "
                "HttpOnly\r\n");
    hold(&gone, "Set-Cookie: a=; Max-Age=0\r\n");
}

DOMT_TEST(wrong_cookies_are_refused)
{
    static const domus_http_set_cookie wrong[] = {
        {.name = "", .value = "b"},
        {.name = "a=", .value = "b"},
        {.name = "a b", .value = "b"},
        {.name = "a", .value = "b; Secure"},
        {.name = "a", .value = "b\r\nc: d"},
        {.name = "a", .value = "b,c"},
        {.name = "a", .value = "\"b\""},
        {.name = "a", .value = "\xc3\xa4"},
        {.name = "a", .value = "b", .path = "/;Domain=c"},
        {.name = "a", .value = "b", .domain = "c\n"},
        {.name = "a", .value = "b", .site = DOMUS_HTTP_SITE_NONE},
        {.name = "a", .value = "b", .site = 4, .secure = true},
    };
    domus_slice made;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        domus_appender fields = {0};
        ck_assert_int_eq(domus_http_add_cookie(&fields, &wrong[i]), -EINVAL);
        ck_assert_int_eq(domus_append_end(&fields, &made), -EINVAL);
    }
}

DOMT_SUITE(10)
