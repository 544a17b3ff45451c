/* Forms are looked through as a whole, and their fields are texts, numbers and flags, or are
 * refused. */
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <domus/http_form.h>

#include <errno.h>
#include <string.h>

static domus_http_form read_form(domus_slice body)
{
    domus_http_form form;

    ck_assert_int_eq(domus_http_form_read(body, NULL, &form, NULL), 0);
    return form;
}

DOMT_TEST(forms_are_looked_through)
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
        domus_slice body = domt_http_slice(rows[i].body);
        domus_http_form form = {.body = {NULL, 7, 7}};
        const char *wrong = NULL;
        ck_assert_int_eq(domus_http_form_read(body, &small, &form, &wrong), rows[i].error);
        ck_assert_pstr_eq(wrong, rows[i].wrong);
        ck_assert_uint_eq(form.body.size, rows[i].error == 0 ? body.size : 7);
        domus_slice_free(body);
    }
}

DOMT_TEST(defaults_are_reached_exactly)
{
    static char text[70000];
    domus_http_form form;

    for (size_t size = 65536; size <= 65537; size++) {
        memset(text, 'v', sizeof text);
        memcpy(text, "a=", 2);
        text[2 + size] = '\0';
        domus_slice body = domt_http_slice(text);
        ck_assert_int_eq(domus_http_form_read(body, NULL, &form, NULL),
                         size == 65536 ? 0 : -EMSGSIZE);
        domus_slice_free(body);
    }
    for (size_t size = 128; size <= 129; size++) {
        text[size] = '\0';
        domus_slice body = domt_http_slice(memset(text, 'n', size));
        ck_assert_int_eq(domus_http_form_read(body, NULL, &form, NULL),
                         size == 128 ? 0 : -EMSGSIZE);
        domus_slice_free(body);
    }
    for (size_t count = 100; count <= 101; count++) {
        for (size_t i = 0; i < count; i++)
            memcpy(text + 2 * i, "a&", 3);
        domus_slice body = domt_http_slice(text);
        ck_assert_int_eq(domus_http_form_read(body, NULL, &form, NULL),
                         count == 100 ? 0 : -EMSGSIZE);
        domus_slice_free(body);
    }
}

DOMT_TEST(texts_are_decoded)
{
    domus_slice body = domt_http_slice("a=1&b+c=x+y%2B&b=%C3%A4%0d%0a&twice=1&t%77ice=2&nul=a%00b"
                                       "&latin=%E4&empty=&bare&=nameless");
    domus_http_form form = read_form(body);
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

DOMT_TEST(numbers_are_read_strictly)
{
    static const struct {
        const char *body;
        int error;
        int64_t number;
    } rows[] = {
        {"n=0", 0, 0},
        {"n=9223372036854775807", 0, INT64_MAX},
        {"n=-9223372036854775808", 0, INT64_MIN},
        {"n=%2D7", 0, -7},
        {"n=9223372036854775808", -ERANGE, 0},
        {"n=-9223372036854775809", -ERANGE, 0},
        {"n=18446744073709551616", -ERANGE, 0},
        {"n=99999999999999999999", -ERANGE, 0},
        {"n=111111111111111111111", -EINVAL, 0},
        {"n=", -EINVAL, 0},
        {"n=-", -EINVAL, 0},
        {"n=-0", -EINVAL, 0},
        {"n=01", -EINVAL, 0},
        {"n=%2B1", -EINVAL, 0},
        {"n=+1", -EINVAL, 0},
        {"n=1+", -EINVAL, 0},
        {"n=0x1", -EINVAL, 0},
        {"n=1%00", -EINVAL, 0},
        {"n=1&n=1", -ENOTUNIQ, 0},
        {"m=1", -ENOENT, 0},
    };
    int64_t number;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domus_slice body = domt_http_slice(rows[i].body);
        domus_http_form form = read_form(body);
        number = 42;
        int error = domus_http_form_number(&form, "n", INT64_MIN, INT64_MAX, &number);
        ck_assert_msg(error == rows[i].error, "%s: %d", rows[i].body, error);
        ck_assert_int_eq(number, error == 0 ? rows[i].number : 42);
        domus_slice_free(body);
    }
    domus_slice body = domt_http_slice("n=5");
    domus_http_form form = read_form(body);
    ck_assert_int_eq(domus_http_form_number(&form, "n", 5, 5, &number), 0);
    ck_assert_int_eq(domus_http_form_number(&form, "n", 6, 9, &number), -ERANGE);
    ck_assert_int_eq(domus_http_form_number(&form, "n", 1, 4, &number), -ERANGE);
    domus_slice_free(body);
}

DOMT_TEST(flags_are_words)
{
    domus_slice body = domt_http_slice("a=on&b=1&c=true&d=off&e=0&f=false&g=yes&h=&i=on&i=on&"
                                       "j=falsefalse&k=ON");
    domus_http_form form = read_form(body);
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
        domus_http_request request = {.fields = domt_http_slice(rows[i].fields)};
        ck_assert_int_eq(domus_http_is_form(&request), rows[i].is_form);
        domus_slice_free(request.fields);
    }
}

DOMT_SUITE(10)
