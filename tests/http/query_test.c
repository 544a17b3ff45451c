/* Queries and paths are decoded, and no escape leads out of the root. */
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <domus/http_query.h>

#include <errno.h>
#include <string.h>

/* Decode, in place and elsewhere, and hold what comes. */
static void hold(const char *text, bool form, const char *expected)
{
    char to[64];
    char copy[64];
    size_t size = strlen(text);

    memcpy(copy, text, size);
    ck_assert_int_eq(domus_http_decode(to, text, size, form), (int64_t)strlen(expected));
    ck_assert_mem_eq(to, expected, strlen(expected));
    ck_assert_int_eq(domus_http_decode(copy, copy, size, form), (int64_t)strlen(expected));
    ck_assert_mem_eq(copy, expected, strlen(expected));
}

DOMT_TEST(escapes_are_decoded)
{
    static const char *const wrong[] = {"%",    "a%",   "%4",  "%4g", "%g4",
                                        "%%41", "% 41", "%-1", "%+1"};
    char to[16];

    hold("", false, "");
    hold("a+b%20c%2B%2f%C3%a4", false, "a+b c+/\xc3\xa4");
    hold("a+b%20c%2B", true, "a b c+");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(domus_http_decode(to, wrong[i], strlen(wrong[i]), false), -EINVAL);
    ck_assert_int_eq(domus_http_decode(to, "%00", 3, false), 1);
    ck_assert_int_eq(to[0], '\0');
}

DOMT_TEST(encoded_bytes_are_decoded_to_the_same)
{
    domus_appender appender = {0};
    domus_slice made;
    char bytes[256];
    char to[1024];

    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    ck_assert_int_eq(domus_http_encode(&appender, bytes, 256), 0);
    ck_assert_int_eq(domus_append_end(&appender, &made), 0);
    ck_assert_int_eq(domus_http_decode(to, domus_slice_data(made), made.size, true), 256);
    ck_assert_mem_eq(to, bytes, 256);
    ck_assert_uint_eq(made.size, 66 + 190 * 3);
    domus_slice_free(made);
    ck_assert_int_eq(domus_http_encode(&appender, "a b/~", 5), 0);
    ck_assert_int_eq(domus_append_end(&appender, &made), 0);
    ck_assert(domus_slice_equals(made, "a%20b%2F~", 9));
    domus_slice_free(made);
}

DOMT_TEST(paths_stay_below_the_root)
{
    static const char *const right[][2] = {
        {"/", "/"},
        {"/a", "/a"},
        {"/a/", "/a/"},
        {"//a//b", "/a/b"},
        {"/./a/./b/.", "/a/b/"},
        {"/a/../b", "/b"},
        {"/a/b/..", "/a/"},
        {"/a/b/../..", "/"},
        {"/a/b/%2e%2E/c", "/a/c"},
        {"/%61%20b", "/a b"},
        {"/.../..a/a..", "/.../..a/a.."},
        {"/a+b", "/a+b"},
    };
    static const char *const wrong[] = {"",          "a",          "/..",     "/../a", "/a/../..",
                                        "/%2e%2e/a", "/a/%2f/b",   "/a%5cb",  "/a\\b", "/a%00b",
                                        "/%",        "/a/../../b", "/..%2fa", "/./.."};
    char to[64];

    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        int64_t size = domus_http_decode_path(to, right[i][0], strlen(right[i][0]));
        ck_assert_msg(size == (int64_t)strlen(right[i][1]), "%s", right[i][0]);
        ck_assert_mem_eq(to, right[i][1], (size_t)size);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(domus_http_decode_path(to, wrong[i], strlen(wrong[i])) == -EINVAL, "%s",
                      wrong[i]);
}

DOMT_TEST(parameters_are_found)
{
    domus_slice query = domt_http_slice("&a=1&&b&c==2&%61b+c=x+y%21&a=3&d=%zz&=e");
    domus_http_parameter parameter;
    uint32_t at = 0;
    uint32_t count = 0;
    char to[16];

    while (domus_http_next_parameter(query, &at, &parameter))
        count++;
    ck_assert_uint_eq(count, 7);
    ck_assert_int_eq(domus_http_query_value(query, "a", to, 16), 1);
    ck_assert_int_eq(to[0], '1');
    ck_assert_int_eq(domus_http_query_value(query, "b", to, 16), 0);
    ck_assert_int_eq(domus_http_query_value(query, "c", to, 16), 2);
    ck_assert_mem_eq(to, "=2", 2);
    ck_assert_int_eq(domus_http_query_value(query, "ab c", to, 16), 4);
    ck_assert_mem_eq(to, "x y!", 4);
    ck_assert_int_eq(domus_http_query_value(query, "ab c", to, 5), -EMSGSIZE);
    ck_assert_int_eq(domus_http_query_value(query, "d", to, 16), -EINVAL);
    ck_assert_int_eq(domus_http_query_value(query, "", to, 16), 1);
    ck_assert_int_eq(domus_http_query_value(query, "e", to, 16), -ENOENT);
    ck_assert_int_eq(domus_http_query_value(query, "ab", to, 16), -ENOENT);
    domus_slice_free(query);
    ck_assert_int_eq(domus_http_query_value((domus_slice){NULL, 0, 0}, "a", to, 16), -ENOENT);
}

DOMT_SUITE(10)
