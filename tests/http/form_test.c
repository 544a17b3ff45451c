/* Names and values that strangers send are read: in queries, paths, forms and cookies; and cookies
 * are set in such a way that no value adds another field. */
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <domus/http_cookie.h>
#include <domus/http_form.h>
#include <domus/http_query.h>

#include <errno.h>
#include <string.h>

static domus_http_form read_form_without_error(domus_slice body)
{
    domus_http_form form;

    ck_assert_int_eq(domus_http_form_read(body, NULL, &form, NULL), 0);
    return form;
}

DOMT_TEST(form_limits_and_errors_are_told)
{
    static const domus_http_form_limits small = {.fields_max = 2, .name_max = 3, .value_max = 4};
    static const struct {
        const char *body;
        int error;
        const char *wrong;
    } rows[] = {
        {"", 0, NULL},
        {"&&&", 0, NULL},
        {"a=1&&b=2&", 0, NULL},
        {"abc=1234&%61bc=%31%32%33+", 0, NULL},
        {"a&b&c", -EMSGSIZE, "too many fields"},
        {"abcd=1", -EMSGSIZE, "the name of a field is too long"},
        {"abc%64=1", -EMSGSIZE, "the name of a field is too long"},
        {"abc=12345", -EMSGSIZE, "a field is too long"},
        {"abc=1234%00", -EMSGSIZE, "a field is too long"},
        {"a=%", -EPROTO, "an escape is wrong"},
        {"a=%4", -EPROTO, "an escape is wrong"},
        {"a=%4g", -EPROTO, "an escape is wrong"},
        {"%g4=1", -EPROTO, "an escape is wrong"},
        {"a=%&41=1", -EPROTO, "an escape is wrong"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domus_slice body = domt_slice_of_text(rows[i].body);
        domus_http_form form = {.body = {NULL, 7, 7}};
        const char *wrong = NULL;
        ck_assert_int_eq(domus_http_form_read(body, &small, &form, &wrong), rows[i].error);
        ck_assert_pstr_eq(wrong, rows[i].wrong);
        ck_assert_uint_eq(form.body.size, rows[i].error == 0 ? body.size : 7);
        domus_slice_free(body);
    }
}

static int read_form_error(const char *text)
{
    domus_slice body = domt_slice_of_text(text);
    domus_http_form form;
    int error = domus_http_form_read(body, NULL, &form, NULL);

    domus_slice_free(body);
    return error;
}

DOMT_TEST(default_limits_of_forms_are_exact)
{
    static char text[70000];

    memset(text, 'v', 2 + 65537);
    memcpy(text, "a=", 2);
    ck_assert_int_eq(read_form_error(text), -EMSGSIZE);
    text[2 + 65536] = '\0';
    ck_assert_int_eq(read_form_error(text), 0);
    memset(text, 'n', 129);
    text[129] = '\0';
    ck_assert_int_eq(read_form_error(text), -EMSGSIZE);
    text[128] = '\0';
    ck_assert_int_eq(read_form_error(text), 0);
    for (size_t i = 0; i < 101; i++)
        memcpy(text + 2 * i, "a&", 3);
    ck_assert_int_eq(read_form_error(text), -EMSGSIZE);
    text[2 * 100] = '\0';
    ck_assert_int_eq(read_form_error(text), 0);
}

DOMT_TEST(texts_of_form_fields_are_decoded)
{
    domus_slice body =
        domt_slice_of_text("a=1&b+c=x+y%2B&b=%C3%A4%0d%0a&twice=1&t%77ice=2&nul=a%00b"
                           "&latin=%E4&empty=&bare&=nameless");
    domus_http_form form = read_form_without_error(body);
    static const struct {
        const char *name;
        int64_t size;
        const char *text;
    } rows[] = {
        {"a", 1, "1"},          {"b c", 4, "x y+"},       {"b", 4, "\xc3\xa4\r\n"},
        {"empty", 0, ""},       {"bare", 0, ""},          {"", 8, "nameless"},
        {"c", -ENOENT, ""},     {"twice", -ENOTUNIQ, ""}, {"nul", -EILSEQ, ""},
        {"latin", -EILSEQ, ""},
    };
    char to[32];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t size = domus_http_form_text(&form, rows[i].name, to, sizeof to);
        ck_assert_int_eq(size, rows[i].size);
        if (size < 0)
            continue;
        ck_assert_str_eq(to, rows[i].text);
        ck_assert_int_eq(domus_http_form_text(&form, rows[i].name, to, (size_t)size + 1), size);
        ck_assert_int_eq(domus_http_form_text(&form, rows[i].name, to, (size_t)size), -EMSGSIZE);
    }
    domus_http_parameter field;
    uint32_t count = 0;
    for (uint32_t at = 0; domus_http_form_next(&form, &at, &field); count++)
        ck_assert(count != 1 || domus_slice_equals(field.name, "b+c", 3));
    ck_assert_uint_eq(count, 10);
    domus_slice_free(body);
}

DOMT_TEST(numbers_in_form_fields_are_read_strictly)
{
    static const struct {
        const char *body;
        int error;
        int64_t number;
    } rows[] = {{"n=0", 0, 0},         {"n=%2B1", -EINVAL, 0},
                {"n=%2D7", 0, -7},     {"n=1%00", -EINVAL, 0},
                {"n=", -EINVAL, 0},    {"n=1&n=1", -ENOTUNIQ, 0},
                {"n=-", -EINVAL, 0},   {"n=9223372036854775808", -ERANGE, 0},
                {"m=1", -ENOENT, 0},   {"n=-9223372036854775809", -ERANGE, 0},
                {"n=-0", -EINVAL, 0},  {"n=18446744073709551616", -ERANGE, 0},
                {"n=01", -EINVAL, 0},  {"n=99999999999999999999", -ERANGE, 0},
                {"n=+1", -EINVAL, 0},  {"n=9223372036854775807", 0, INT64_MAX},
                {"n=1+", -EINVAL, 0},  {"n=111111111111111111111", -EINVAL, 0},
                {"n=0x1", -EINVAL, 0}, {"n=-9223372036854775808", 0, INT64_MIN}};
    int64_t number;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domus_slice body = domt_slice_of_text(rows[i].body);
        domus_http_form form = read_form_without_error(body);
        number = 42;
        int error = domus_http_form_number(&form, "n", INT64_MIN, INT64_MAX, &number);
        ck_assert_msg(error == rows[i].error, "%s: %d", rows[i].body, error);
        ck_assert_int_eq(number, error == 0 ? rows[i].number : 42);
        domus_slice_free(body);
    }
    domus_slice body = domt_slice_of_text("n=5");
    domus_http_form form = read_form_without_error(body);
    ck_assert_int_eq(domus_http_form_number(&form, "n", 5, 5, &number), 0);
    ck_assert_int_eq(domus_http_form_number(&form, "n", 6, 9, &number), -ERANGE);
    ck_assert_int_eq(domus_http_form_number(&form, "n", 1, 4, &number), -ERANGE);
    domus_slice_free(body);
}

DOMT_TEST(flags_in_form_fields_are_words)
{
    domus_slice body = domt_slice_of_text("a=on&b=1&c=true&d=off&e=0&f=false&g=yes&h=&i=on&i=on&"
                                          "j=falsefalse&k=ON");
    domus_http_form form = read_form_without_error(body);
    char name[2] = "a";
    bool flag;

    for (; *name < 'g'; ++*name) {
        flag = *name >= 'd';
        ck_assert_int_eq(domus_http_form_flag(&form, name, &flag), 0);
        ck_assert_int_eq(flag, *name < 'd');
    }
    flag = true;
    ck_assert_int_eq(domus_http_form_flag(&form, "g", &flag), -EINVAL);
    ck_assert_int_eq(domus_http_form_flag(&form, "h", &flag), -EINVAL);
    ck_assert_int_eq(domus_http_form_flag(&form, "i", &flag), -ENOTUNIQ);
    ck_assert_int_eq(domus_http_form_flag(&form, "j", &flag), -EINVAL);
    ck_assert_int_eq(domus_http_form_flag(&form, "k", &flag), -EINVAL);
    ck_assert(flag);
    ck_assert_int_eq(domus_http_form_flag(&form, "none", &flag), 0);
    ck_assert(!flag);
    domus_slice_free(body);
}

DOMT_TEST(forms_have_a_media_type)
{
    static const struct {
        const char *fields;
        bool is_form;
    } rows[] = {
        {"Content-Type: application/x-www-form-urlencoded\r\n", true},
        {"Content-type: Application/X-WWW-Form-Urlencoded; charset=utf-8\r\n", true},
        {"Content-Type: text/plain\r\n", false},
        {"Host: a\r\n", false},
        {"", false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domus_http_request request = {.fields = domt_slice_of_text(rows[i].fields)};
        ck_assert_int_eq(domus_http_is_form(&request), rows[i].is_form);
        domus_slice_free(request.fields);
    }
}

/* Check that a text is decoded to the expected one, in place and to another buffer. */
static void check_text_is_decoded(const char *text, bool form, const char *expected)
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

DOMT_TEST(percent_escapes_are_decoded)
{
    static const char *const wrong[] = {"%",    "a%",   "%4",  "%4g", "%g4",
                                        "%%41", "% 41", "%-1", "%+1"};
    char to[16];

    check_text_is_decoded("", false, "");
    check_text_is_decoded("a+b%20c%2B%2f%C3%a4", false, "a+b c+/\xc3\xa4");
    check_text_is_decoded("a+b%20c%2B", true, "a b c+");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(domus_http_decode(to, wrong[i], strlen(wrong[i]), false), -EINVAL);
    ck_assert_int_eq(domus_http_decode(to, "%00", 3, false), 1);
    ck_assert_int_eq(to[0], '\0');
}

DOMT_TEST(percent_encoded_bytes_are_decoded_to_the_same)
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

DOMT_TEST(decoded_paths_stay_below_the_root)
{
    static const char *const right[][2] = {
        {"/", "/"},     {"/a+b", "/a+b"},   {"/a/b/..", "/a/"},   {"/./a/./b/.", "/a/b/"},
        {"/a", "/a"},   {"/a/../b", "/b"},  {"/a/b/../..", "/"},  {"/a/b/%2e%2E/c", "/a/c"},
        {"/a/", "/a/"}, {"//a//b", "/a/b"}, {"/%61%20b", "/a b"}, {"/.../..a/a..", "/.../..a/a.."}};
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

DOMT_TEST(parameters_of_a_query_are_found)
{
    domus_slice query = domt_slice_of_text("&a=1&&b&c==2&%61b+c=x+y%21&a=3&d=%zz&=e");
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

DOMT_TEST(cookies_of_a_request_are_found)
{
    domus_slice fields = domt_slice_of_text("Host: a\r\nCookie: a=1; b=\"2\";c=;  d=4=5 ;;e\r\n"
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

static void expect_set_cookie_field(const domus_http_set_cookie *cookie, const char *expected)
{
    domus_appender fields = {0};
    domus_slice made;

    ck_assert_int_eq(domus_http_add_cookie(&fields, cookie), 0);
    ck_assert_int_eq(domus_append_end(&fields, &made), 0);
    ck_assert(domus_slice_equals(made, expected, strlen(expected)));
    domus_slice_free(made);
}

DOMT_TEST(fields_that_set_cookies_are_written)
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

    expect_set_cookie_field(&plain, "Set-Cookie: a=b\r\n");
    expect_set_cookie_field(
        &full, "Set-Cookie: a=b=c; Path=/d; Domain=e.f; Max-Age=60; SameSite=Strict; Secure; "
               "HttpOnly\r\n");
    expect_set_cookie_field(&gone, "Set-Cookie: a=; Max-Age=0\r\n");
}

DOMT_TEST(wrong_set_cookies_are_refused)
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
