/* Browsers are told which sites may call this one, as the Fetch standard says. */
#include "tests/http/chained.h"
#include "tests/support/suite.h"

#include <domus/http_cors.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const two[] = {"https://a.example", "http://b.example:8080", NULL};
static const char *const every[] = {"*", NULL};

static const domus_http_cors of_two = {.origins = two,
                                       .credentials = true,
                                       .methods = DOMUS_HTTP_ON(PUT) | DOMUS_HTTP_ON(DELETE),
                                       .headers = "Content-Type, X-A",
                                       .exposed = "ETag",
                                       .max_age_s = 600};
static const domus_http_cors of_every = {.origins = every};

#define PREFLIGHT "Access-Control-Request-Method: PUT\r\n"
#define OF_A                                                                                       \
    "Vary: Origin\r\nAccess-Control-Allow-Origin: https://a.example\r\n"                           \
    "Access-Control-Allow-Credentials: true\r\nAccess-Control-Expose-Headers: ETag\r\n"

DOMT_TEST(sites_are_told_what_they_may_do)
{
    static const struct {
        const domus_http_cors *cors;
        const char *line;
        const char *fields;
        const char *got;
    } rows[] = {
        {&of_two, "GET /now", "",
         "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nVary: Origin\r\n\r\nnow\n"},
        {&of_two, "GET /now", "Origin: https://a.example\r\n",
         "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n" OF_A "\r\nnow\n"},
        {&of_two, "GET /fail", "Origin: https://a.example\r\n",
         "HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\nContent-Type: text/plain\r\n" OF_A
         "\r\nNot Found\n"},
        {&of_two, "GET /now", "Origin: https://A.example\r\n",
         "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nVary: Origin\r\n\r\nnow\n"},
        {&of_two, "GET /now", "Origin: https://a.example.evil\r\n",
         "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nVary: Origin\r\n\r\nnow\n"},
        {&of_two, "GET /now", "Origin: null\r\n",
         "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nVary: Origin\r\n\r\nnow\n"},
        {&of_two, "GET /now", "Origin: https://a.example\r\nOrigin: https://a.example\r\n",
         "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nVary: Origin\r\n\r\nnow\n"},
        {&of_two, "OPTIONS /none", "Origin: https://a.example\r\n" PREFLIGHT,
         "HTTP/1.1 204 No Content\r\n" OF_A "Access-Control-Allow-Methods: PUT, DELETE\r\n"
         "Access-Control-Allow-Headers: Content-Type, X-A\r\nAccess-Control-Max-Age: 600\r\n\r\n"},
        {&of_two, "OPTIONS /now", "Origin: https://c.example\r\n" PREFLIGHT,
         "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nVary: Origin\r\n\r\n"},
        {&of_two, "OPTIONS /now", PREFLIGHT,
         "HTTP/1.1 204 No Content\r\nVary: Origin\r\nAllow: GET, HEAD, POST, OPTIONS\r\n\r\n"},
        {&of_every, "GET /now", "Origin: https://c.example\r\n",
         "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nAccess-Control-Allow-Origin: *\r\n\r\nnow\n"},
        {&of_every, "GET /now", "", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnow\n"},
        {&of_every, "OPTIONS /now", "Origin: null\r\n" PREFLIGHT,
         "HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Origin: *\r\n"
         "Access-Control-Allow-Methods: GET, HEAD, POST\r\n\r\n"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const domus_http_step parts[] = {{&domus_http_cross_origin, rows[i].cors}, {NULL, NULL}};
        domus_testkit *kit = domt_chained_start(&domt_chained, parts);
        ck_assert_str_eq(domt_chained_ask(kit, rows[i].line, rows[i].fields), rows[i].got);
        domt_served_end(kit);
    }
}

static int check_origin(const char *origin)
{
    const char *const origins[] = {origin, NULL};
    const domus_http_cors cors = {.origins = origins};

    return domus_http_cross_origin.check(&cors);
}

DOMT_TEST(origins_are_checked)
{
    static const char *const wrong[] = {"",
                                        "null",
                                        "a.example",
                                        "https://",
                                        "https://a/",
                                        "://a",
                                        "https://A",
                                        "https://a b",
                                        "https://*.example",
                                        "https://a,https://b",
                                        "HTTP://",
                                        "https://a\r\nb",
                                        "https://a.example?"};
    char text[DOMUS_HTTP_ORIGIN_MAX + 2] = "https://";

    ck_assert_int_eq(check_origin("https://a.example:8443"), 0);
    ck_assert_int_eq(check_origin("*"), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(check_origin(wrong[i]) == -EINVAL, "%s", wrong[i]);
    memset(text + 8, 'a', DOMUS_HTTP_ORIGIN_MAX - 8);
    ck_assert_int_eq(check_origin(text), 0);
    text[DOMUS_HTTP_ORIGIN_MAX] = 'a';
    ck_assert_int_eq(check_origin(text), -EINVAL);
}

DOMT_TEST(wrong_options_are_refused)
{
    static const char *const none[] = {NULL};
    static const char *const more[] = {"*", "https://a", NULL};
    const domus_http_cors rows[] = {
        {.origins = NULL},
        {.origins = none},
        {.origins = more},
        {.origins = every, .credentials = true},
        {.origins = two, .credentials = true, .headers = "*"},
        {.origins = two, .credentials = true, .exposed = "*"},
        {.origins = two, .headers = "a b"},
        {.origins = two, .exposed = "a,,b"},
        {.origins = two, .exposed = "a\r\nb: c"},
        {.origins = two, .methods = 1u << DOMUS_HTTP_METHODS},
        {.origins = two, .max_age_s = DOMUS_HTTP_CORS_AGE_MAX + 1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_int_eq(domus_http_cross_origin.check(&rows[i]), -EINVAL);
    ck_assert_int_eq(domus_http_cross_origin.check(NULL), -EINVAL);
    ck_assert_int_eq(domus_http_cross_origin.check(&of_two), 0);
    ck_assert_int_eq(
        domus_http_cross_origin.check(&(domus_http_cors){.origins = every,
                                                         .headers = "*",
                                                         .exposed = "*",
                                                         .max_age_s = DOMUS_HTTP_CORS_AGE_MAX}),
        0);
}

DOMT_SUITE(20)
